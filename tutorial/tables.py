"""Tables of scores over seeds, as Markdown."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence

import numpy as np
from scipy import stats

from tutorial.paths import CHECKPOINTS
from tutorial.scores import first_at, solved_at

Runs = Mapping[str, Mapping[str, np.ndarray]]  # of several seeds, as `read_runs` returns them


def as_markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the cells of its head and of its lines are text."""
    first, *others = (f"| {' | '.join(cells)} |" for cells in (head, *lines))
    return "\n".join([first, "|" + "---|" * len(head), *others])


def median_and_range(values: Sequence[float | None]) -> str:
    """Of numbers over seeds, or None, which counts as larger than any."""
    numbers = [np.inf if value is None else value for value in values]
    low, middle, high = (
        "never" if number == np.inf else f"{number:.3g}"
        for number in (min(numbers), np.median(numbers), max(numbers))
    )
    return f"{middle} ({low} to {high})"


def mean_and_interval(values: Sequence[float], digits: int = 2) -> str:
    """Mean over seeds with its 95 % t-interval."""
    ends = stats.ttest_1samp(values, 0).confidence_interval()
    mean, low, high = (f"{end:.{digits}f}" for end in (np.mean(values), *ends))
    return f"{mean} ({low} to {high})"


def presets_table(trainings: Mapping[str, Runs], evaluations: Mapping[str, Runs]) -> str:
    """What the seeds of each preset reached, in training and in evaluations without noise.

    Args:
        trainings: scores by preset and seed.
        evaluations: of the same runs.
    """
    head = [
        "preset",
        "seeds",
        "first training score of 30: episode, median (range)",
        "seconds until then",
        "training scores of 1-100, mean (95%)",
        "evaluations after 100, mean (95%)",
        "lowest seed's",
        "solved at 100",
    ]
    lines = []
    for name, runs in trainings.items():
        firsts = {seed: first_at(run["score"]) for seed, run in runs.items()}
        seconds = [first and runs[seed]["seconds"][first - 1] for seed, first in firsts.items()]
        final = [run["score"][run["episode"] > 100].mean() for run in evaluations[name].values()]
        solved = sum(solved_at(run["score"]) == 100 for run in runs.values())
        lines.append(
            [
                f"`{name}`",
                str(len(runs)),
                median_and_range([*firsts.values()]),
                median_and_range(seconds),
                mean_and_interval([run["score"][:100].mean() for run in runs.values()]),
                mean_and_interval(final),
                f"{min(final):.2f}",
                f"{solved} of {len(runs)}",
            ]
        )
    return as_markdown(head, lines)


def public_record_table(trainings: Mapping[str, Runs]) -> str:
    """What others printed of this task in the Unity build with 20 arms, and the presets here."""
    with open(CHECKPOINTS / "public_results.csv", newline="", encoding="utf-8") as file:
        [_, *head], *others = csv.reader(file)
    this_project = [
        [
            f"this notebook, `{name}`, {len(runs)} seeds",
            "DDPG",
            f"{np.median([first_at(run['score']) or np.inf for run in runs.values()]):g} (median)",
            f"{np.mean([run['score'][:100] for run in runs.values()]):.2f}",
            f"{np.mean([run['score'][80:100] for run in runs.values()]):.1f}",
            f"{np.median([run['seconds'][99] for run in runs.values()]) / 60:.1f} min",
        ]
        for name, runs in trainings.items()
    ]
    return as_markdown(["who", *head], [*others, *this_project])
