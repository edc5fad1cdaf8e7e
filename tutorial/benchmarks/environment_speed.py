"""Decisions per second of the embedded environment, beside bare MuJoCo steps of the same model."""

from __future__ import annotations

import itertools

import mujoco
import numpy as np

from reacher import ReacherEnvironment
from reacher.physics import Physics
from reacher.task import STEPS_PER_DECISION
from tutorial.benchmarks import measure
from tutorial.benchmarks.measure import Options, Recorder, Target
from tutorial.report.tables import as_markdown

TITLE = "Environment"
WHOLE, BARE, SWINGING = "environment", "bare MuJoCo", "bare MuJoCo, swinging"
BOUNDS = {20: 0.4, 1000: 0.8}  # smallest share of bare MuJoCo's speed
EXPLANATION = """\
One decision of all arms through the interface of `unityagents` (checks, goals, torques, four
physics steps, rewards, observations), beside `mj_step` of the same model, four times, without
torques: nothing but MuJoCo. *Share* is the environment's speed as a part of that. Bare arms hang
still, at angles of 0, whose sines and cosines cost less than those of the arms beside them, which
move; *swinging* ones begin at random angles of up to one radian."""


def run(options: Options, recorder: Recorder) -> None:
    """Measure 1, 20 and 1,000 arms."""
    for arms in (1, 20, options.size(1000, 40)):
        environment = ReacherEnvironment(arms, seed=0)
        environment.reset()
        actions = np.random.default_rng(0).uniform(-1, 1, (arms, 4))
        hanging, swinging = Physics(arms), Physics(arms)  # without torques: nothing that diverges
        swinging.data.qpos[:] = np.random.default_rng(1).uniform(-1, 1, 4 * arms)
        seconds = measure.time_in_turn(
            {
                WHOLE: lambda: environment.step(actions),
                BARE: lambda: mujoco.mj_step(hanging.model, hanging.data, STEPS_PER_DECISION),
                SWINGING: lambda: mujoco.mj_step(swinging.model, swinging.data, STEPS_PER_DECISION),
            },
            options,
        )
        recorder.put_seconds(seconds, prefix=f"{arms} arms, ")


def arm_numbers(measured) -> list[int]:
    """The numbers of arms of which both were measured."""
    numbers = sorted({int(name.split()[0]) for name in measured})
    return [arms for arms in numbers if share(measured, arms) is not None]


def share(measured, arms: int, bare: str = BARE) -> float | None:
    """The environment's speed as a part of bare MuJoCo's."""
    return measure.ratio(measured, f"{arms} arms, {bare}", f"{arms} arms, {WHOLE}")


def tables(measured) -> list[str]:
    lines = []
    for arms in arm_numbers(measured):
        rates = []
        for name in (WHOLE, BARE, SWINGING):
            per_second = [1 / value for value in measured[f"{arms} arms, {name}"]["seconds"]]
            low, high = measure.quartiles(per_second)
            rates.append(f"{measure.median(per_second):,.0f} ({low:,.0f} to {high:,.0f})")
        shares = (f"{share(measured, arms, bare):.2f}" for bare in (BARE, SWINGING))
        lines.append([str(arms), rates[0], rates[1], next(shares), rates[2], next(shares)])
    head = ["arms", *(f"{name}, decisions/s" for name in ("environment", "bare MuJoCo"))]
    return [as_markdown([*head, "share", "swinging, decisions/s", "share"], lines)]


def targets(measured) -> list[Target]:
    return [
        measure.at_least(
            f"{arms:,} arms: at least {bound:g} of the speed of {bare}",
            share(measured, arms, bare),
            bound,
            unit="",
        )
        for (arms, bound), bare in itertools.product(BOUNDS.items(), (BARE, SWINGING))
    ]
