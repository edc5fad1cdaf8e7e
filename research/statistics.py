"""What scores of several seeds support: intervals, tests, and what a plan can find.

The unit is always the seed: whatever several runs with one seed say becomes one number first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import optimize, stats

MOST_SEEDS = 40  # of two groups together, up to which their permutation test is exact
DRAWS = 200_000  # of a permutation test by chance

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

    It is twice the smaller tail, as in SciPy. Up to MOST_SEEDS it is exact: all ways to divide the
    seeds are counted by sums of subsets of each half of them.
    """
    if len(one) + len(other) > MOST_SEEDS:
        test = stats.permutation_test(
            (one, other),
            lambda x, y, axis: np.mean(x, axis=axis) - np.mean(y, axis=axis),
            n_resamples=DRAWS,
            vectorized=True,
            batch=10_000,
            rng=np.random.default_rng(0),
        )
        return float(test.pvalue)
    together = np.concatenate([one, other]) - np.mean([*one, *other])
    target, rounding = together[: len(one)].sum(), 1e-9 * np.abs(together).sum()
    (sums, sizes), (other_sums, other_sizes) = map(subsets, np.array_split(together, 2))
    above = below = 0
    for size in range(len(one) + 1):
        rest = target - sums[sizes == size]
        ends = np.sort(other_sums[other_sizes == len(one) - size])
        above += (len(ends) - np.searchsorted(ends, rest - rounding)).sum()
        below += np.searchsorted(ends, rest + rounding, side="right").sum()
    return float(min(1.0, 2 * min(above, below) / math.comb(len(together), len(one))))


def subsets(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sums and sizes of all 2^k subsets of k numbers."""
    sums, sizes = np.zeros(1), np.zeros(1, int)
    for value in values:
        sums, sizes = np.append(sums, sums + value), np.append(sizes, sizes + 1)
    return sums, sizes


def effect_of_seeds(differences: Numbers, margin: float | None = None) -> dict[str, Any]:
    """The mean of differences (seeds,) within seeds; p is of exact flips of sign.

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
        n_resamples=DRAWS,  # exact up to 17 seeds
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
