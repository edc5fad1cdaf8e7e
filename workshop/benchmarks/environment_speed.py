"""Decisions per second of the embedded environment, beside bare MuJoCo steps of the same model."""

from __future__ import annotations

import mujoco
import numpy as np

from reacher import ReacherEnvironment
from reacher.physics import Physics
from reacher.task import STEPS_PER_DECISION
from workshop.benchmarks import measure
from workshop.benchmarks.measure import Options, Recorder, Target

TITLE = "Environment"
WHOLE, BARE = "environment", "bare MuJoCo"
BOUNDS = {20: 0.4, 1000: 0.8}  # smallest share of bare MuJoCo's speed
EXPLANATION = """\
One decision of all arms through the interface of `unityagents` (checks, goals, torques, four
physics steps, rewards, observations), beside `mj_step` of the same model, four times, without
torques: nothing but MuJoCo. *Share* is the environment's speed as a part of that."""


def run(options: Options, recorder: Recorder) -> None:
    """Measure 1, 20 and 1,000 arms."""
    for arms in (1, 20, options.size(1000, 40)):
        environment = ReacherEnvironment(arms, seed=0)
        environment.reset()
        actions = np.random.default_rng(0).uniform(-1, 1, (arms, 4))
        physics = Physics(arms)  # without torques: nothing that diverges
        seconds = measure.time_in_turn({
            WHOLE: lambda: environment.step(actions),
            BARE: lambda: mujoco.mj_step(physics.model, physics.data, STEPS_PER_DECISION)}, options)
        recorder.put_seconds(seconds, prefix=f"{arms} arms, ")


def arm_numbers(measured) -> list[int]:
    """The numbers of arms of which both were measured."""
    numbers = sorted({int(name.split()[0]) for name in measured})
    return [arms for arms in numbers if share(measured, arms) is not None]


def share(measured, arms: int) -> float | None:
    """The environment's speed as a part of bare MuJoCo's."""
    return measure.ratio(measured, f"{arms} arms, {BARE}", f"{arms} arms, {WHOLE}")


def tables(measured) -> list[str]:
    lines = ["| arms | environment, decisions/s | bare MuJoCo, decisions/s | share |",
             "|---|---|---|---|"]
    for arms in arm_numbers(measured):
        rates = []
        for name in (WHOLE, BARE):
            per_second = [1 / value for value in measured[f"{arms} arms, {name}"]["seconds"]]
            low, high = measure.quartiles(per_second)
            rates.append(f"{measure.median(per_second):,.0f} ({low:,.0f} to {high:,.0f})")
        lines.append(f"| {arms} | {rates[0]} | {rates[1]} | {share(measured, arms):.2f} |")
    return ["\n".join(lines)]


def targets(measured) -> list[Target]:
    found = []
    for arms, bound in BOUNDS.items():
        value = share(measured, arms)
        found.append(Target(f"{arms:,} arms: at least {bound:g} of bare MuJoCo's speed",
                            "not measured" if value is None else f"{value:.2f}",
                            None if value is None else value >= bound))
    return found
