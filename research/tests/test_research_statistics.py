"""Intervals, tests and power, by hand and beside SciPy."""

import numpy as np
import pytest
from scipy import stats

from research.statistics import difference, effect_of_seeds, holm, permutation_p


@pytest.mark.parametrize(
    ("sizes", "shift", "digits"),
    [((5, 7), 0, 1), ((10, 10), 1, 3), ((3, 9), 2, 1), ((5, 5), 5, 3), ((8, 9), 0.5, 2)],
)
def test_the_permutation_test_counts_as_scipy_does(sizes, shift, digits):
    """Values are rounded to one in 4,000 of their range, so some divisions become ties: p may be
    larger by their share."""
    generator = np.random.default_rng(1)
    one, other = (generator.normal(k * shift, 1, n).round(digits) for k, n in enumerate(sizes))
    exact = stats.permutation_test(  # all divisions
        (one, other),
        lambda x, y, axis: np.mean(x, axis=axis) - np.mean(y, axis=axis),
        vectorized=True,
        n_resamples=200_000,
    ).pvalue
    assert exact <= permutation_p(one, other) + 1e-12 <= 1.01 * exact + 1e-9


def test_a_difference_has_welchs_intervals():
    one, other = np.array([1.0, 2, 4, 7]), np.array([0.0, 1, 1, 2, 0])
    found, welch = difference(one, other, margin=1.0), stats.ttest_ind(one, other, equal_var=False)
    assert (found["low"], found["high"]) == pytest.approx(tuple(welch.confidence_interval(0.95)))
    assert found["effect"] == pytest.approx(3.5 - 0.8)
    assert not found["alike"]
    assert difference(one, other, margin=100)["alike"]


def test_flips_of_sign_by_hand():
    found = effect_of_seeds([1.0, 2.0, 3.0, 4.0])
    assert found["p"] == 2 / 2**4  # only all signs as they are, or all turned, are as far from 0
    assert found["effect"] == 2.5


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
