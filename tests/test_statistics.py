"""Statistics of the report: against numbers worked out by hand, and against their own promises."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from research.report import statistics
from research.report.statistics import FACTORS


def test_the_interquartile_mean_leaves_out_a_quarter_at_each_end():
    assert statistics.interquartile_mean([100, 1, 2, 3, 4, -100, 5, 6]) == pytest.approx(3.5)


def test_holm_by_hand():
    """Sorted 0.01, 0.02, 0.04: times 3, 2, 1; never below the one before."""
    np.testing.assert_allclose(statistics.holm([0.04, 0.01, 0.02]), [0.04, 0.03, 0.04])
    np.testing.assert_allclose(statistics.holm([0.5, 0.9]), [1.0, 1.0])


def test_probability_of_improvement_counts_pairs():
    """Of four pairs two are above, one ties and one is below: (2 + 1/2) / 4."""
    assert statistics.probability_of_improvement([2, 3], [2, 2.5]) == pytest.approx(2.5 / 4)


def test_contrasts_of_a_known_factorial():
    """Effects 1, 2 and 4, and an interaction of 3 between the first two: each comes out."""
    a, b, c = np.meshgrid([0, 1], [0, 1], [0, 1], indexing="ij")
    values = (a + 2 * b + 4 * c + 3 * a * b)[..., None] + np.arange(5)  # seeds differ, effects not
    found = {name: pairs.mean() for name, pairs in statistics.contrasts(values).items()}
    one, two, three = FACTORS
    assert found == {
        one: 1 + 3 / 2,
        two: 2 + 3 / 2,
        three: 4,
        f"{one} x {two}": 3,
        f"{one} x {three}": 0,
        f"{two} x {three}": 0,
    }


def test_the_sign_flip_test_is_exact_where_all_signs_can_be_listed():
    """Five differences of one sign: of 32 choices of signs two are as far from 0."""
    assert statistics.sign_flip_test([[1.0, 2.0, 3.0, 4.0, 5.0]]) == pytest.approx(2 / 32)


def test_rejections_without_an_effect_are_as_rare_as_promised():
    """Of 300 factorials of noise, 5 % in expectation: more than 10 % has a chance below 0.0003."""
    generator = np.random.default_rng(0)
    rejected = equivalent = 0
    for _ in range(300):
        seeds = generator.exponential(size=(1, 4, 8)) - generator.exponential(size=(1, 4, 8))
        rejected += statistics.sign_flip_test(seeds) < 0.05
        # An effect that is just as large as the margin must not be called equivalent.
        equivalent += statistics.equivalence(generator.normal(1.0, 1.0, 12), margin=1.0) < 0.05
    assert stats.binom.sf(30, 300, 0.05) < 0.0003
    assert rejected <= 30 and equivalent <= 30


def test_equivalence_is_found_where_it_holds():
    values = np.random.default_rng(0).normal(0.0, 1.0, 40)
    assert statistics.equivalence(values, margin=1.0) < 0.001
    assert statistics.equivalence(values, margin=0.05) > 0.05


def test_groups_are_equivalent_within_a_margin_and_not_beyond():
    generator = np.random.default_rng(3)
    one, other = generator.normal(38.0, 0.3, 10), generator.normal(38.1, 0.3, 10)
    assert statistics.equivalence_of_groups(one, other, margin=1.0) < 0.001
    assert statistics.equivalence_of_groups(one, other + 2.0, margin=1.0) > 0.9
    # Right at the margin it errs in one case of twenty; 2,000 cases: a standard error of 0.005.
    wrong = [
        statistics.equivalence_of_groups(*generator.normal([[0.0], [1.0]], 0.3, (2, 10)), 1.0)
        < 0.05
        for _ in range(2_000)
    ]
    assert 0.03 < np.mean(wrong) < 0.07


def test_an_interval_covers_and_a_constant_has_none():
    """Of 200 intervals of 20 normal numbers each; 174 or fewer has a chance below 0.003."""
    generator = np.random.default_rng(1)
    covered = sum(
        low <= 0 <= high
        for low, high in (statistics.interval(generator.normal(size=20)) for _ in range(200))
    )
    assert stats.binom.cdf(174, 200, 0.93) < 0.003  # BCa of twenty covers about 93 %
    assert covered >= 175
    assert statistics.interval([3.0, 3.0, 3.0]) == (3.0, 3.0)


def test_welchs_interval_by_hand():
    """Variances 1 of three and 20/3 of four: an error of sqrt(1/3 + 5/3), 4.08 degrees of freedom
    (Welch and Satterthwaite), so 2.76 errors to each side."""
    found = statistics.difference([1.0, 2.0, 3.0], [2.0, 4.0, 6.0, 8.0])
    assert found["difference"] == -3
    freedom = 2**2 / ((1 / 3) ** 2 / 2 + (5 / 3) ** 2 / 3)
    half = stats.t.isf(0.025, freedom) * np.sqrt(2)
    assert [found["low"], found["high"]] == pytest.approx([-3 - half, -3 + half])


def test_a_permutation_of_groups_by_hand():
    """Of the 20 divisions of six numbers into threes, this one and its mirror are the extremes."""
    assert statistics.permutation_of_groups([1, 2, 3], [4, 5, 6]) == pytest.approx(2 / 20)


def test_a_stratified_interval_keeps_what_divides_the_strata():
    """Within both strata all are equal: whatever is drawn, the difference stays."""
    groups = [[1.0, 1.0, 1.0], [4.0, 4.0]]
    interval = statistics.stratified_interval(groups, lambda a, b: np.mean(b) - np.mean(a))
    assert interval == (3.0, 3.0)
