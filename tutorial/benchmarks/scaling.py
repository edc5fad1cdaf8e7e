"""How time and memory grow with the number of arms and of stored transitions."""

from __future__ import annotations

import gc
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import psutil  # comes with Jupyter's kernel

import helpers
from reacher import ReacherEnvironment
from tutorial import notebook
from tutorial.benchmarks import measure, replay
from tutorial.benchmarks.measure import Options, Recorder, Target

TITLE = "Scaling"
FIGURE = "scaling.png"
ARMS = (1, 20, 200, 2000)
TRANSITIONS = (10**4, 10**5, 10**6, 10**7)
EXPLANATION = """\
Time of one decision against the number of arms: the environment alone, and together with the
acting agent (default preset, with noise). Time to draw 128 transitions and set their new
priorities against the number held, as in the row *Prioritized replay*; every row of the memory is
written first, so that it is real memory. *Memory* is by how much a new process grew with
environment and agent, whose replay is still empty; for the replay, what rows and tree take. The
bound for the replay is that time grows by no more than log N, so by log 10^7 / log 10^4 = 1.75
from 10^4 to 10^7. Counted in steps of the tree it does; what a machine's caches do with it is
measured here. One thread.

![Time of a decision against arms; time of a draw against transitions](scaling.png)"""


def run(options: Options, recorder: Recorder) -> None:
    """Measure arms and transitions."""
    definitions = notebook.definitions()
    with measure.torch_threads(1):
        for call in decision(definitions, 1).values():  # loads what the first call loads
            call()
        for number in ARMS if not options.quick else ARMS[:2]:
            recorder.put(f"{number} arms, memory", {"MB": in_new_process(growth, number) / 1e6})
            seconds = measure.time_in_turn(decision(definitions, number), options)
            recorder.put_seconds(seconds, prefix=f"{number} arms, ")
        for number in TRANSITIONS if not options.quick else (10**2, 10**3):
            rows, td_errors = replay.transitions(number)
            call = replay.ours(rows, td_errors, definitions)
            seconds = measure.time_in_turn({"draw and update": call}, options)["draw and update"]
            leaves = 2 ** int(np.ceil(np.log2(number)))
            recorder.put(
                f"{number} transitions",
                {"seconds": seconds, "rows MB": rows.nbytes / 1e6, "tree MB": 2 * leaves * 8 / 1e6},
            )
            del rows, td_errors, call


def in_new_process(function: Callable[[int], int], argument: int) -> int:
    """What the function returns there: nothing was allocated or freed before."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, argument).result()


def growth(arms: int) -> int:
    """Bytes by which this process grows with environment and agent of so many arms."""
    definitions = notebook.definitions()
    for call in decision(definitions, 2).values():  # loads what the first call loads
        call()
    before = resident_bytes()
    calls = decision(definitions, arms)
    for call in calls.values():
        call()
    return resident_bytes() - before


def resident_bytes() -> int:
    """Main memory of this process."""
    gc.collect()
    return psutil.Process().memory_info().rss


def decision(definitions, arms: int):
    """Calls for one decision of so many arms: environment alone, environment and agent."""
    environment = ReacherEnvironment(arms, seed=0)
    first = environment.reset()[environment.brain_names[0]].vector_observations
    settings = definitions.make_hyperparameters("default", {})
    agent = definitions.Agent(
        definitions.OBSERVATION_SCALE, replay.ACTION, arms, settings, np.random.default_rng(0)
    )
    actions = np.random.default_rng(0).uniform(-1, 1, (arms, replay.ACTION))
    seen = [first]

    def both():
        answer = environment.step(agent.act(seen[0].astype(np.float32)))
        seen[0] = answer[environment.brain_names[0]].vector_observations

    return {"environment": lambda: environment.step(actions), "environment and agent": both}


def curve(measured, ending: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers (k,), medians (k,) in s and quartiles (2, k) of entries '<number> <ending>'."""
    found = {
        int(name.split()[0]): entry["seconds"]
        for name, entry in measured.items()
        if name.partition(" ")[2] == ending
    }
    numbers = sorted(found)
    return (
        np.array(numbers),
        np.array([measure.median(found[n]) for n in numbers]),
        np.array([measure.quartiles(found[n]) for n in numbers]).T,
    )


def tables(measured) -> list[str]:
    lines = [
        "| arms | environment, ms a decision | with agent, ms a decision | memory, MB |",
        "|---|---|---|---|",
    ]
    numbers, alone, _ = curve(measured, "arms, environment")
    _, both, _ = curve(measured, "arms, environment and agent")
    lines += [
        f"| {n:,} | {1e3 * a:.3f} | {1e3 * b:.3f} | {measured[f'{n} arms, memory']['MB']:.1f} |"
        for n, a, b in zip(numbers, alone, both, strict=True)
    ]
    more = [
        "| transitions held | draw and update, µs | quartiles, µs | rows, MB | tree, MB |",
        "|---|---|---|---|---|",
    ]
    numbers, middle, spread = curve(measured, "transitions")
    for n, seconds, low, high in zip(numbers, middle, *spread, strict=True):
        entry = measured[f"{n} transitions"]
        more.append(
            f"| {n:,} | {1e6 * seconds:.1f} | {1e6 * low:.1f} to {1e6 * high:.1f} "
            f"| {entry['rows MB']:,.1f} | {entry['tree MB']:,.1f} |"
        )
    return ["\n".join(lines), "\n".join(more)]


def draw(measured, path: Path) -> None:
    """Write the figure: both axes logarithmic, dashed lines for linear and logarithmic growth."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    colors = helpers.COLORS
    for ending, label, color, marker in (
        ("arms, environment", "environment", colors["score"], "o"),
        ("arms, environment and agent", "environment and agent", colors["average"], "s"),
    ):
        numbers, middle, spread = curve(measured, ending)
        left.errorbar(
            numbers,
            1e3 * middle,
            1e3 * np.abs(spread - middle),
            color=color,
            marker=marker,
            capsize=3,
            label=label,
        )
    left.plot(
        numbers,
        1e3 * middle[-1] * numbers / numbers[-1],
        "--",
        color="0.5",
        zorder=0,
        label="linear",
    )
    left.set(xscale="log", yscale="log", xlabel="arms", ylabel="time of a decision, ms")
    numbers, middle, spread = curve(measured, "transitions")
    right.errorbar(
        numbers,
        1e6 * middle,
        1e6 * np.abs(spread - middle),
        color=colors["score"],
        marker="o",
        capsize=3,
        label="draw and update 128",
    )
    right.plot(
        numbers,
        1e6 * middle[0] * np.log(numbers) / np.log(numbers[0]),
        "--",
        color="0.5",
        zorder=0,
        label="log N",
    )
    right.set(xscale="log", xlabel="transitions held, N", ylabel="time of a draw and update, µs")
    right.set_ylim(0, None)
    for axes in (left, right):
        axes.legend(frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def targets(measured) -> list[Target]:
    def growth(ending, first, last):
        numbers, middle, _ = curve(measured, ending)
        there = dict(zip(numbers.tolist(), middle, strict=True))
        return there[last] / there[first] if first in there and last in there else None

    bound = np.log(TRANSITIONS[-1]) / np.log(TRANSITIONS[0])
    found = []
    for what, value, limit in (
        (
            "Replay, 10^4 to 10^7 transitions: time grows by log N at most, 1.75 times",
            growth("transitions", TRANSITIONS[0], TRANSITIONS[-1]),
            bound,
        ),
        (
            "Environment, 20 to 2,000 arms: time grows linearly at most, 100 times",
            growth("arms, environment", 20, 2000),
            100.0,
        ),
        (
            "Environment and agent, 20 to 2,000 arms: the same",
            growth("arms, environment and agent", 20, 2000),
            100.0,
        ),
    ):
        found.append(
            Target(
                what,
                "not measured" if value is None else f"{value:.2f} times",
                None if value is None else bool(value <= limit),
            )
        )
    return found
