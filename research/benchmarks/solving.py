"""How long a whole training takes until the task is solved, and how few episodes it needs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from research.benchmarks import trainings
from research.benchmarks.measure import SEEDS
from tutorial.scores import first_at, solved_at
from tutorial.tables import as_markdown

ARMS, EPISODES, MAX_EPISODES = 20, 100, 300
FIRST_SEED = 3000  # fresh: nothing was chosen by what these seeds scored

TITLE = "Solving the task"
EXPLANATION = f"""\
The notebook, executed by papermill as `make run` does, 20 arms, until the average of 100 episodes
reaches 30; at least 100 episodes by that definition. *Training* is the wall clock of section 6 up
to the solving episode, from `scores.csv`; *whole notebook* adds imports, compilation, figures and
demo. *Floor* is what no learner that plays 100 episodes one after another can go below: the same
number of episodes of the trained actor, without noise and without learning, timed right after the
training, by the engine that trained and by PyTorch. Seeds from {FIRST_SEED} on, whose scores chose
no setting, one training after another. `fast` was measured again later on the same day, because
its settings had changed. How good it becomes is in section 7.1 of the notebook, on ten other
seeds."""


def run() -> dict[str, dict]:
    """Train and act with every preset and seed: what was measured, by both."""
    measured = {}
    for seed, preset in itertools.product(range(FIRST_SEED, FIRST_SEED + SEEDS), trainings.PRESETS):
        with trainings.notebook_run(
            preset=preset, seed=seed, num_agents=ARMS, max_episodes=MAX_EPISODES
        ) as (folder, scores, notebook_seconds):
            solved, first = solved_at(scores["score"]), first_at(scores["score"])
            floors: dict[str, Any] = {
                name: trainings.acting_seconds(folder, ARMS, seed, EPISODES, engine)
                for name, engine in (("floor", "auto"), ("floor, PyTorch", "torch"))
            }
            measured[f"{preset}, seed {seed}"] = floors | {
                "solved at": solved,
                "first at 30": first,
                "mean of 1-100": float(scores["score"][:100].mean()),
                "training": float(scores["seconds"][solved - 1]) if solved else None,
                "to 30": float(scores["seconds"][first - 1]) if first else None,
                "whole notebook": notebook_seconds,
            }
            print(f"  {preset}, seed {seed}", flush=True)
    return measured


QUANTITIES = {  # of the table: its columns, and how their numbers are written
    "solved at": ("solved at episode", ".0f"),
    "first at 30": ("first episode at 30", ".1f"),
    "mean of 1-100": ("mean of 1-100", ".2f"),
    "to 30": ("s until 30", ".1f"),
    "training": ("training, s", ".1f"),
    "floor": ("floor, s", ".1f"),
    "floor, PyTorch": ("floor by PyTorch, s", ".1f"),
    "whole notebook": ("whole notebook, s", ".1f"),
}


def medians(measured, preset: str) -> dict[str, float | None]:
    """Median over the seeds of each quantity; None where some seed did not get there."""
    runs = [run for name, run in measured.items() if name.startswith(preset + ", ")]
    values = {quantity: [run[quantity] for run in runs] for quantity in QUANTITIES}
    return {
        quantity: float(np.median(numbers)) if numbers and None not in numbers else None
        for quantity, numbers in values.items()
    }


def table(measured) -> str:
    named = dict(sorted(measured.items())) | {
        f"**{preset}, median**": medians(measured, preset) for preset in trainings.PRESETS
    }
    lines = [
        [
            name,
            *(
                "-" if run[quantity] is None else f"{run[quantity]:{form}}"
                for quantity, (_, form) in QUANTITIES.items()
            ),
        ]
        for name, run in named.items()
    ]
    head = ["preset, seed", *(column for column, _ in QUANTITIES.values())]
    return as_markdown(head, lines)
