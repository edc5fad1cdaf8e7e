"""Stored results that the notebook shows, from the tables of plans.

A plan of trainings has a folder in `checkpoints/` or `research/results/`, and in it a table for
each variant of the agent, with a line for each seed and episode. `research` writes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy import stats

from tutorial.paths import plan_folder

Variant = dict[str, np.ndarray]  # column to (seeds, episodes), NaN where there is no number
HEAD = "seed,episode,"  # begins tables of variants; others may lie beside them


def read_plan(plan: str, folder: Path | None = None) -> dict[str, Variant]:
    """All variants of a plan by name; of each the columns, (seeds, episodes), seeds in order.

    Args:
        folder: of plans; None: where this one is stored.

    Raises:
        FileNotFoundError: there is no such plan.
        ValueError: seeds of a variant have different numbers of episodes.
    """
    place = folder / plan if folder else plan_folder(plan)
    paths = [path for path in sorted(place.glob("*.csv")) if path.read_text().startswith(HEAD)]
    if not paths:
        raise FileNotFoundError(f"no tables of a plan {plan!r} in {place.parent}")
    return {path.stem: read_variant(path) for path in paths}


def read_variant(path: Path) -> Variant:
    """One table, as `read_plan` reads it."""
    table = np.genfromtxt(path, delimiter=",", names=True, ndmin=1)
    _, episodes = np.unique(table["seed"], return_counts=True)
    if len(set(episodes)) != 1:
        raise ValueError(f"{path} has seeds with {min(episodes)} to {max(episodes)} episodes")
    return {name: table[name].reshape(len(episodes), -1) for name in table.dtype.names or ()}


def gain(
    one: np.ndarray, other: np.ndarray, confidence: float = 0.95
) -> tuple[float, float, float]:
    """The difference of the means of two groups (seeds,), and its interval by Welch's t."""
    interval = stats.ttest_ind(one, other, equal_var=False).confidence_interval(confidence)
    return float(np.mean(one) - np.mean(other)), float(interval.low), float(interval.high)


def as_markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the cells of its head and of its lines are text."""
    first, *others = (f"| {' | '.join(cells)} |" for cells in (head, *lines))
    return "\n".join([first, "|" + "---|" * len(head), *others])


def mean_interval(values: Sequence[float] | np.ndarray) -> tuple[float, float, float]:
    """Mean over seeds and its 95 % t-interval, which is empty where all values are equal."""
    mean = float(np.mean(values))
    if np.ptp(values) == 0:
        return mean, mean, mean
    low, high = stats.ttest_1samp(values, 0).confidence_interval()
    return mean, float(low), float(high)


def mean_and_interval(values: Sequence[float] | np.ndarray) -> str:
    """`mean_interval` as text; without the interval for fewer than three, which would be huge."""
    if len(values) < 3:
        return f"{np.mean(values):.2f} (no interval of {len(values)})"
    mean, low, high = (f"{end:.2f}" for end in mean_interval(values))
    return f"{mean} ({low} to {high})"
