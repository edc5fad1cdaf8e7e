"""How long a whole training takes until the task is solved."""

from __future__ import annotations

import helpers
from workshop.benchmarks import measure, trainings
from workshop.benchmarks.measure import Options, Recorder, Target

TITLE = "Solving the task"
EXPLANATION = """\
The notebook, executed by papermill as `make run` does, 20 arms, until the average of 100 episodes
reaches 30; at least 100 episodes by that definition. *Training* is the wall clock of section 6 up
to the solving episode, from `scores.csv`; *whole notebook* adds imports, compilation, figures and
demo. *Floor* is what no learner that plays 100 episodes one after another can go below: the same
number of episodes of the trained actor, without noise and without learning, timed right after the
training. Seeds 0, 1, 2, one training after another; presets in turn."""

ARMS, EPISODES, MAX_EPISODES = 20, 100, 300
FLOOR_FACTOR, FAST_SECONDS, DEFAULT_FACTOR = 2.0, 80.0, 1.5


def run(options: Options, recorder: Recorder) -> None:
    """Train and act with every preset and seed."""
    arms, episodes = options.size(ARMS, 2), options.size(EPISODES, 1)
    for seed in range(options.size(options.seeds, 1)):
        for preset in trainings.PRESETS:
            name = f"{preset}, seed {seed}"
            if recorder.has(name):
                continue
            with trainings.notebook_run(preset=preset, seed=seed, num_agents=arms,
                                        max_episodes=options.size(MAX_EPISODES, 1)
                                        ) as (folder, scores, notebook_seconds):
                solved = helpers.solved_at(scores["score"])
                first = helpers.first_at(scores["score"])
                recorder.put(name, {
                    "solved at": solved,
                    "training": float(scores["seconds"][solved - 1]) if solved else None,
                    "to 30": float(scores["seconds"][first - 1]) if first else None,
                    "whole notebook": notebook_seconds,
                    "floor": trainings.acting_seconds(folder, arms, seed, episodes)})


def of_preset(measured, preset: str, quantity: str) -> list:
    """One quantity of all seeds of a preset."""
    return [run[quantity] for name, run in sorted(measured.items())
            if name.startswith(preset + ", ")]


def medians(measured, preset: str) -> dict[str, float | None]:
    """Median over the seeds of each quantity; None where some seed did not get there."""
    found = {}
    for quantity in ("training", "floor", "to 30", "whole notebook", "solved at"):
        values = of_preset(measured, preset, quantity)
        found[quantity] = measure.median(values) if values and None not in values else None
    return found


def tables(measured) -> list[str]:
    lines = ["| preset, seed | solved at episode | training, s | floor, s | training / floor "
             "| first episode at 30 after, s | whole notebook, s |",
             "|---|---|---|---|---|---|---|"]

    def line(name, run):
        number = {key: "-" if value is None else f"{value:.1f}" for key, value in run.items()}
        solved = "-" if run["solved at"] is None else f"{run['solved at']:.0f}"
        factor = "-" if run["training"] is None else f"{run['training'] / run['floor']:.2f}"
        return (f"| {name} | {solved} | {number['training']} | {number['floor']} | {factor} "
                f"| {number['to 30']} | {number['whole notebook']} |")

    lines += [line(name, run) for name, run in sorted(measured.items())]
    for preset in trainings.PRESETS:
        if of_preset(measured, preset, "floor"):
            lines.append(line(f"**{preset}, median**", medians(measured, preset)))
    return ["\n".join(lines)]


def targets(measured) -> list[Target]:
    found = {preset: medians(measured, preset) for preset in trainings.PRESETS}
    fast, default = found["fast"]["training"], found["default"]["training"]
    floor = found["fast"]["floor"]

    def target(what, value, bound, unit):
        return Target(what, "not measured" if value is None else f"{value:.2f} {unit}",
                      None if value is None else value <= bound)

    return [
        target(f"Preset fast: training at most {FLOOR_FACTOR:g} times the floor",
               fast / floor if fast and floor else None, FLOOR_FACTOR, "times"),
        target(f"Preset fast: training at most {FAST_SECONDS:g} s", fast, FAST_SECONDS, "s"),
        target(f"Preset default: training at most {DEFAULT_FACTOR:g} times that of fast",
               default / fast if default and fast else None, DEFAULT_FACTOR, "times")]
