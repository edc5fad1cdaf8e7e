"""What scores of several seeds support: means, intervals, tests.

The measures are those that Agarwal et al. (2021, "Deep Reinforcement Learning at the Edge of the
Statistical Precipice") advise, on SciPy.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
from scipy import stats

DRAWS = 9_999  # of a bootstrap or a permutation test, by chance where there are more to choose from
FACTORS = ("n_step", "replay", "noisy_layers")


def interquartile_mean(values: Sequence[float]) -> float:
    """Mean of the middle half of the values."""
    return float(stats.trim_mean(np.asarray(values, dtype=float), 0.25))


def interval(values: Sequence[float]) -> tuple[float, float]:
    """95 % bootstrap interval of the mean over seeds, bias-corrected and accelerated (BCa).

    Returns:
        Its ends; both the value itself where all values are equal.
    """
    values = np.asarray(values, dtype=float)
    if np.ptp(values) == 0:
        return float(values[0]), float(values[0])
    resampled = stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=DRAWS,
        confidence_level=0.95,
        method="BCa",
        rng=np.random.default_rng(0),
    )
    return float(resampled.confidence_interval.low), float(resampled.confidence_interval.high)


def difference(one: Sequence[float], other: Sequence[float]) -> dict[str, float]:
    """Mean of one group of seeds minus that of another, with Welch's interval.

    Returns:
        `difference`, and its 95 % interval `low` to `high`.
    """
    ends = stats.ttest_ind(one, other, equal_var=False).confidence_interval(0.95)
    return {
        "difference": float(np.mean(one) - np.mean(other)),
        "low": float(ends.low),
        "high": float(ends.high),
    }


def permutation_of_groups(one: Sequence[float], other: Sequence[float]) -> float:
    """p, two-sided, of a permutation test that two groups of seeds have the same mean.

    Exact up to ten seeds against ten, which have 184,756 divisions; of more, 200,000 at random.
    """
    test = stats.permutation_test(
        (np.asarray(one, dtype=float), np.asarray(other, dtype=float)),
        lambda x, y, axis: np.mean(x, axis=axis) - np.mean(y, axis=axis),
        n_resamples=200_000,
        vectorized=True,
        batch=10_000,
        rng=np.random.default_rng(0),
    )
    return float(test.pvalue)


def probability_of_improvement(one: Sequence[float], other: Sequence[float]) -> float:
    """How often a seed of one group is above one of the other; a tie counts half."""
    above = np.subtract.outer(np.asarray(one, dtype=float), np.asarray(other, dtype=float))
    return float((np.sign(above).mean() + 1) / 2)


def holm(p: Sequence[float]) -> np.ndarray:
    """p-values adjusted for testing all of them at once (Holm, 1979)."""
    p = np.asarray(p, dtype=float)
    order = np.argsort(p)
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1)
    return adjusted


def equivalence(values: Sequence[float], margin: float) -> float:
    """p of two one-sided t-tests (TOST) that a mean lies within -margin and +margin.

    Args:
        values: (seeds,) differences, one for each seed.
    """
    low = stats.ttest_1samp(values, -margin, alternative="greater").pvalue
    high = stats.ttest_1samp(values, margin, alternative="less").pvalue
    return float(max(low, high))


def equivalence_of_groups(one: Sequence[float], other: Sequence[float], margin: float) -> float:
    """p of two one-sided Welch tests that the means of two groups differ by less than a margin."""
    one, other = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    low = stats.ttest_ind(one, other - margin, equal_var=False, alternative="greater").pvalue
    high = stats.ttest_ind(one, other + margin, equal_var=False, alternative="less").pvalue
    return float(max(low, high))


# --------------------------------------------------------------------------------- the factorial


def contrasts(values: np.ndarray) -> dict[str, np.ndarray]:
    """Main effects and interactions of pairs in a 2 x 2 x 2 factorial, seed by seed.

    Args:
        values: (2, 2, 2, seeds), an axis for each of FACTORS, off and on.

    Returns:
        By name, such as `n_step` or `n_step x replay`, (pairs, seeds): differences that have a mean
        of 0 if the effect is absent. A main effect has four pairs (on minus off, for each setting
        of the others); an interaction has two (the effect of one factor with the other on, minus
        that with it off).
    """
    values = np.asarray(values, dtype=float)
    by_effect = {}
    for axis, name in enumerate(FACTORS):
        by_effect[name] = np.diff(values, axis=axis).reshape(-1, values.shape[-1])
    for one, other in itertools.combinations(range(len(FACTORS)), 2):
        twice = np.diff(np.diff(values, axis=one), axis=other)
        by_effect[f"{FACTORS[one]} x {FACTORS[other]}"] = twice.reshape(-1, values.shape[-1])
    return by_effect


def sign_flip_test(differences: np.ndarray, draws: int = DRAWS) -> float:
    """p, two-sided, of a permutation test that differences have a mean of 0.

    If a factor does nothing, its two levels can change places within every pair of runs that share
    all else, the seed too; so each difference could as well have the other sign.

    Args:
        differences: (pairs, seeds), as `contrasts` returns them.
        draws: of signs by chance; exact where there are no more ways than that.
    """
    differences = np.asarray(differences, dtype=float)
    test = stats.permutation_test(
        (differences.ravel(),),
        lambda x, axis: np.mean(x, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=draws,
        rng=np.random.default_rng(0),
    )
    return float(test.pvalue)


def effect_of_seeds(differences: np.ndarray) -> dict[str, float]:
    """The mean of differences (seeds,), which takes a seed as one observation.

    Returns:
        `effect`, its 95 % t-interval `low` to `high`, and `p_seeds`, of sign flips over the seeds,
        which are exact up to 13 of them.
    """
    low, high = stats.ttest_1samp(differences, 0).confidence_interval(0.95)
    return {
        "effect": float(np.mean(differences)),
        "low": float(low),
        "high": float(high),
        "p_seeds": sign_flip_test(differences),
    }


def factorial_table(values: np.ndarray, margin: float) -> dict[str, dict[str, float]]:
    """Every effect of `contrasts`: `effect`, 95 % interval, p of the tests.

    The interval and the test of equivalence take a seed as one observation: the mean of its pairs.

    Returns:
        By name: what `effect_of_seeds` gives, `p` (that there is none, over pairs), `p_equivalent`
        (that it is not within the margin).
    """
    return {
        name: effect_of_seeds(pairs.mean(axis=0))
        | {
            "p": sign_flip_test(pairs),
            "p_equivalent": equivalence(pairs.mean(axis=0), margin),
        }
        for name, pairs in contrasts(values).items()
    }


def stratified_interval(
    groups: Sequence[Sequence[float]], statistic: Callable[..., float]
) -> tuple[float, float]:
    """95 % bootstrap interval of a statistic of groups, seeds drawn anew within each of them.

    Args:
        groups: (seeds,) of each stratum.
        statistic: of the groups, one after another, to a number.
    """
    generator = np.random.default_rng(0)
    values = [
        statistic(*(generator.choice(group, len(group)) for group in groups))
        for _ in range(DRAWS // 5)
    ]
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)
