"""Plans, what is stored of them, their tables, and statistics by hand and beside SciPy."""

import functools

import numpy as np
import pytest
from scipy import stats

from research import runner, tables
from research.__main__ import parser, setting, sweep_of
from research.plans import PLANS
from research.statistics import difference, effect_of_seeds, holm, permutation_p
from research.training import check, make_training
from tutorial.paths import plan_folder

RUNNABLE = [name for name, plan in PLANS.items() if plan.trainings(name)]
MADE = [name for name, plan in PLANS.items() if plan.variants]


@pytest.mark.parametrize("name", RUNNABLE)
def test_a_plan_names_each_training_once_and_allowed_settings(name):
    trainings = PLANS[name].trainings(name)
    assert len({str(one) for one in trainings}) == len(trainings)
    for training in {one.variant: one for one in trainings}.values():
        check(training)
    assert set(sum(PLANS[name].differences(), ())) <= {one.variant for one in trainings}


@pytest.mark.parametrize("name", MADE)
def test_what_is_stored_is_of_the_plan(name):
    """All its seeds, with all their episodes; nothing of a finished plan is trained again."""
    plan = PLANS[name]
    for variant, stored in tables.read(name).items():
        if variant in plan.changes():
            training = make_training(name, variant, 0, plan.changes()[variant])
            assert stored["seed"][:, 0].tolist() == [*range(*plan.seeds)]
            assert stored["episode"][0, -1] == training.episodes
    assert not plan.commit or not plan.trainings(name)


report = functools.cache(tables.report)


@pytest.mark.parametrize("name", PLANS)
def test_every_plan_has_its_tables(name):
    found = report(name)
    assert PLANS[name].question in found
    assert ("| variant | seeds |" in found) == plan_folder(name).exists()


def test_published_numbers_are_those_of_the_tables():
    """Some cells of doc/results.md, and of ingredients.md and comparisons.md."""
    for name, cells in {
        "leave_one_out": ["-3.1 (-3.7 to -2.5)", "shown, alike", "0.7, 0.87"],
        "study": ["+6.9 (+3.9 to +10.0) | 0.0015 | 0.034 | shown", "-10.4 (-17.0 to -3.9)"],
        "rates": ["+13.1 (+10.2 to +16.1) | 1.5e-06 | 5.9e-06 | shown"],
        "three": ["-2.2 (-8.7 to +4.3) | 0.49"],
        "late": ["+22.1) | 1.6e-14", "0.047 | 0.14 | suggested", "0.00064 | 0.0025 | shown"],
        "sparse_long": ["-36.4 (-143.5 to +70.8)"],
        "bugs": ["0.677 (0.655 to 0.678)", "31.3 (29 to 37.5)"],
        "baselines": ["| sbx_crossq | 37.63 (36.47 to 38.79) | 59.5 (39.4 to 93.7)"],
    }.items():
        found = report(name)
        assert [cell for cell in cells if cell not in found] == []


def test_a_sweep_combines_all_values_with_all_seeds():
    words = "sweep n_step=1,3 tau=0.02 episodes=5 --seeds 2 --first-seed 7".split()
    trainings = sweep_of(parser().parse_args(words))
    assert len(trainings) == 4
    assert trainings[1].variant == "n_step_3_tau_0.02_episodes_5"
    assert (trainings[1].seed, trainings[1].episodes) == (7, 5)
    assert trainings[1].overrides == {"n_step": 3, "tau": 0.02}
    assert setting("noise_schedule=constant,best_score")[1] == ["constant", "best_score"]


@pytest.mark.parametrize(
    "changes", [{"n_stepp": 1}, {"learner": "TD4"}, {"networks": "whole"}, {"arms": 0}]
)
def test_a_wrong_setting_is_refused_before_anything_is_trained(changes, tmp_path):
    training = make_training("plan", "variant", 0, changes)
    with pytest.raises(ValueError, match=next(iter(changes))):
        runner.run_trainings([training], tmp_path)


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


def test_flips_of_sign_and_holm_by_hand():
    found = effect_of_seeds([1.0, 2.0, 3.0, 4.0])
    assert found["p"] == 2 / 2**4  # only all signs as they are, or all turned, are as far from 0
    assert found["effect"] == 2.5
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
