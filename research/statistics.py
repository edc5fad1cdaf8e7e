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
Effect = dict[str, Any]


def difference(one: Numbers, other: Numbers, margin: float | None = None) -> Effect:
    """Mean of one group of seeds minus that of another, by Welch and by permutation of groups."""
    one, other = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    welch = stats.ttest_ind(one, other, equal_var=False)
    return as_effect(one.mean() - other.mean(), welch, permutation_p(one, other), margin)


def effect_of_seeds(differences: Numbers, margin: float | None = None) -> Effect:
    """The mean of differences (seeds,) within seeds, by Student and by flips of their signs."""
    differences = np.asarray(differences, dtype=float)
    flips = stats.permutation_test(
        (differences,),
        np.mean,
        permutation_type="samples",
        n_resamples=200_000,  # exact up to 17 seeds
        vectorized=True,
        batch=100_000,
        rng=np.random.default_rng(0),
    )
    student = stats.ttest_1samp(differences, 0)
    return as_effect(differences.mean(), student, flips.pvalue, margin)


def as_effect(effect: float, test: Any, p: float, margin: float | None) -> Effect:
    """An effect with the intervals of a t-test.

    Returns:
        `effect`, its 95 % interval `low` to `high`, `p`, and `alike`: whether the 90 % interval
        lies within the margin, which is two one-sided tests of equivalence at 0.05.
    """
    low, high = test.confidence_interval(0.95)
    inner = test.confidence_interval(0.90)
    alike = margin is not None and bool(-margin < inner.low and inner.high < margin)
    found = {"effect": effect, "low": low, "high": high, "p": p}
    return {name: float(value) for name, value in found.items()} | {"alike": alike}


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


def detectable(groups: Sequence[np.ndarray], tests: int = 1, power: float = 0.8) -> float:
    """The true difference of two groups that a t-test at 0.05 finds with this probability.

    Args:
        groups: values by seed; their pooled spread is what the test would meet.
        tests: in one family, of which this is the first step of Holm's correction.
    """
    seeds = min(map(len, groups))  # the test with the fewest
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


def judged(effects: Sequence[Effect]) -> list[Effect]:
    """Effects of one family with `holm`, the corrected p, and `verdict`.

    *shown*: corrected p below 0.05; *suggested*: only the uncorrected one; *alike*: equivalent.
    """
    found = []
    for effect, p in zip(effects, holm([effect["p"] for effect in effects]), strict=True):
        words = ["shown"] * bool(p < 0.05) + ["alike"] * effect["alike"]
        words = words or ["suggested" if effect["p"] < 0.05 else "not shown"]
        found.append(effect | {"holm": float(p), "verdict": ", ".join(words)})
    return found
