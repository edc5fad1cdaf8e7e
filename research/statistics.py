"""What scores of several seeds support: intervals, tests, and what a plan can find.

The unit is always the seed: whatever several runs with one seed say becomes one number first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import optimize, stats

GRID = 4_000

Numbers = Sequence[float] | np.ndarray


def mean_interval(values: Numbers) -> tuple[float, float, float]:
    """Mean over seeds and its 95 % t-interval, which is empty where all values are equal."""
    values = np.asarray(values, dtype=float)
    if len(values) < 2 or np.ptp(values) == 0:
        return float(values.mean()), float(values.mean()), float(values.mean())
    low, high = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    return float(values.mean()), float(low), float(high)


def difference(one: Numbers, other: Numbers, margin: float | None = None) -> dict[str, Any]:
    """Mean of one group of seeds minus that of another.

    Args:
        margin: within which the two count as alike; None: no such test.

    Returns:
        `effect`; `low` and `high`, Welch's 95 % interval; `p`, two-sided, of a permutation test;
        `alike`, whether Welch's 90 % interval lies within the margin (the two one-sided tests of
        equivalence at 0.05).
    """
    one, other = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    welch = stats.ttest_ind(one, other, equal_var=False)
    low, high = welch.confidence_interval(0.95)
    inner = welch.confidence_interval(0.90)
    return {
        "effect": float(one.mean() - other.mean()),
        "low": float(low),
        "high": float(high),
        "p": permutation_p(one, other),
        "alike": margin is not None and bool(-margin < inner.low and inner.high < margin),
    }


def permutation_p(one: np.ndarray, other: np.ndarray) -> float:
    """p, two-sided, of a permutation test that two groups of seeds have the same mean.

    All ways to divide the seeds are counted by their sums, of values that are rounded to one in
    GRID of their range; p is twice the smaller tail, as in SciPy.
    """
    together = np.concatenate([one, other])
    cells = np.rint((together - together.min()) * (GRID / (np.ptp(together) or 1))).astype(int)
    ways = np.zeros((len(one) + 1, cells.sum() + 1))  # to choose so many seeds with such a sum
    ways[0, 0] = 1
    most = 0  # so far
    for seeds, cell in enumerate(np.sort(cells), 1):
        most, chosen = most + cell, min(seeds, len(one))
        ways[1 : chosen + 1, cell : most + 1] += ways[:chosen, : most + 1 - cell]
    found, rounding = cells[: len(one)].sum(), int(np.sqrt(len(cells)))  # of a sum, in cells
    below = ways[-1, : found + rounding + 1].sum()
    tail = min(below, ways[-1, max(0, found - rounding) :].sum())
    return float(min(1.0, 2 * tail / ways[-1].sum()))


def effect_of_seeds(differences: Numbers, margin: float | None = None) -> dict[str, Any]:
    """The mean of differences (seeds,) within seeds; p is of flips of their signs.

    Returns:
        As `difference`, with t-intervals of one sample.
    """
    differences = np.asarray(differences, dtype=float)
    student = stats.ttest_1samp(differences, 0)
    low, high = student.confidence_interval(0.95)
    inner = student.confidence_interval(0.90)
    test = stats.permutation_test(
        (differences,),
        lambda x, axis: np.mean(x, axis=axis),
        permutation_type="samples",
        n_resamples=200_000,  # exact up to 17 seeds
        vectorized=True,
        batch=100_000,
        rng=np.random.default_rng(0),
    )
    return {
        "effect": float(differences.mean()),
        "low": float(low),
        "high": float(high),
        "p": float(test.pvalue),
        "alike": margin is not None and bool(-margin < inner.low and inner.high < margin),
    }


def detectable(groups: Sequence[np.ndarray], tests: int = 1, power: float = 0.8) -> float:
    """The true difference of two groups that a t-test at 0.05 finds with this probability.

    Args:
        groups: of equally many seeds each; their pooled spread is what the test would meet.
        tests: in one family, of which this is the first step of Holm's correction.
    """
    seeds = len(groups[0])
    error = np.sqrt(np.mean([np.var(group, ddof=1) for group in groups]) * 2 / seeds)
    freedom = 2 * (seeds - 1)
    limit = stats.t.ppf(1 - 0.05 / tests / 2, freedom)
    size = optimize.brentq(lambda size: stats.nct.sf(limit, freedom, size) - power, 0, limit + 5)
    return float(error * size)


def holm(p: Numbers) -> np.ndarray:
    """p-values adjusted for testing all of them at once (Holm, 1979)."""
    p = np.asarray(p, dtype=float)
    order = np.argsort(p)
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1)
    return adjusted


def judged(effects: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Effects of one family with `holm`, the corrected p, and `verdict`.

    *shown*: corrected p below 0.05; *suggested*: only the uncorrected one; *alike*: equivalent.
    """
    found = []
    for effect, p in zip(effects, holm([effect["p"] for effect in effects]), strict=True):
        words = ["shown"] * bool(p < 0.05) + ["alike"] * effect["alike"]
        words = words or ["suggested" if effect["p"] < 0.05 else "not shown"]
        found.append(effect | {"holm": float(p), "verdict": ", ".join(words)})
    return found
