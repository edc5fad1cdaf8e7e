"""What the notebook shows of stored runs: tables, effects and figures, by hand."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import stats

from tutorial import figures, results, summaries


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    yield
    plt.close("all")


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """An empty folder of stored tables."""
    monkeypatch.setattr(results, "CHECKPOINTS", tmp_path)
    return tmp_path


# ----------------------------------------------------------------------------------------- effects


def test_a_plan_is_read_by_variant_and_seed(stored):
    (stored / "plan").mkdir()
    lines = "seed,episode,score,evaluation\n1,1,10,\n1,2,20,21\n2,1,30,\n2,2,40,41\n"
    (stored / "plan" / "default.csv").write_text(lines)
    (stored / "plan" / "numbers.csv").write_text("variant,seed\ndefault,1\n")
    [(name, variant)] = results.read_plan("plan").items()
    assert name == "default"
    np.testing.assert_array_equal(variant["score"], [[10, 20], [30, 40]])
    np.testing.assert_array_equal(variant["evaluation"], [[np.nan, 21], [np.nan, 41]])
    with pytest.raises(FileNotFoundError, match=r"no tables of a plan 'plam'.*\['plan'\]"):
        results.read_plan("plam")


def study_table(score):
    """A task of the study with five seeds; score of n_step, replay, noisy_layers as 0 or 1."""
    lines = ["setting,n_step,replay,noisy_layers,seed,episode,score"]
    for cell in np.ndindex(2, 2, 2):
        levels = [pair[k] for pair, k in zip(results.LEVELS.values(), cell, strict=True)]
        for seed in range(5):
            lines += [
                ",".join(map(str, ["", *levels, seed, episode, score(*cell, seed)]))
                for episode in (2, 4)
            ]
    return "\n".join(lines) + "\n"


def test_the_effects_of_a_factorial_are_those_that_were_put_in(stored):
    """n = 3 adds 3, replay 5 (8 where both are on), and seeds differ; NoisyNet does nothing."""
    (stored / "study").mkdir()
    table = study_table(lambda n, replay, noisy, seed: 3 * n + 5 * replay * (1 + 0.6 * n) + seed)
    for task in results.TASKS:
        (stored / "study" / f"{task}.csv").write_text(table)
    for effects in results.study_effects().values():
        n_step, replay, noisy = effects.values()
        assert n_step.mean == pytest.approx(3 + 0.5 * 3) and replay.mean == pytest.approx(5 + 1.5)
        assert noisy.mean == 0 and noisy.verdict.endswith("alike")
    episodes, scores = results.study_curve("one_arm", 3, "prioritized", False)
    assert episodes.tolist() == [2, 4]
    np.testing.assert_allclose(scores[:, 1], 11 + np.arange(5))


def test_what_is_left_out_is_compared_with_default(stored):
    (stored / "leave_one_out").mkdir()
    noise = np.random.default_rng(0).normal(size=(6, 20))
    for lost, spread, name in zip(
        (0, 0, 0, 2, 5, 0), noise, ["default", *results.LEFT_OUT], strict=True
    ):
        lines = [f"{seed},1,{30 - lost + 0.3 * spread[seed]:.6f}" for seed in range(20)]
        text = "\n".join(["seed,episode,evaluation", *lines])
        (stored / "leave_one_out" / f"{name}.csv").write_text(text + "\n")
    effects = results.left_out_effects()
    assert [effect.verdict for effect in effects.values()] == [
        "alike",
        "alike",
        "shown",
        "shown",
        "alike",
    ]
    one, base = 28 + 0.3 * noise[3], 30 + 0.3 * noise[0]
    ends = stats.ttest_ind(one, base, equal_var=False).confidence_interval()
    found = effects["no NoisyNet"]
    assert (found.mean, found.low, found.high) == pytest.approx((one.mean() - base.mean(), *ends))


def test_permutations_by_hand():
    """Three differences have eight signs; two against two have six divisions."""
    assert results.permutation_p(np.array([1.0, 2.0, 3.0])) == pytest.approx(2 / 8)
    assert results.permutation_p(np.array([1.0, 2.0]), np.array([5.0, 6.0])) == pytest.approx(2 / 6)
    corrected = results.holm([0.04, 0.01, 0.03])
    np.testing.assert_allclose(corrected, [0.06, 0.03, 0.06])


def test_the_stored_tables_say_what_the_pages_say():
    """The verdicts of section 7, which doc/ gives, too."""
    study = results.study_effects()
    shown = [
        (task, name)
        for task, effects in study.items()
        for name, effect in effects.items()
        if effect.verdict == "shown"
    ]
    assert shown == [
        ("small_goals", "prioritized replay"),
        ("delayed_rewards", "prioritized replay"),
    ]
    assert str(results.left_out_effects()["no mirrors"]) == "-3.1 (-3.7 to -2.5), shown"
    assert set(results.QUIZ) < results.read_plan("bugs").keys()


# --------------------------------------------------------------------------------- tables and text


def test_a_training_that_reached_the_mark_and_was_not_solved():
    scores = {"score": np.array([10.0, 31.0, 35.0]), "seconds": np.array([1.0, 2.4, 3.0])}
    assert summaries.training_summary(scores, 30.0).splitlines() == [
        "first episode at 30: 2, after 2 s of training",
        "solved at episode: not yet",
        "mean of all 3 episodes: 25.33, of the last ten: 25.33",
    ]
    assert "first episode" not in summaries.training_summary(scores, None)


def test_rewards_of_an_episode():
    rewards = np.zeros((200, 2))
    rewards[2:, 0] = 0.04  # the first arm from the third decision on, the second from the fifth
    rewards[4:, 1] = 0.04
    assert summaries.reward_summary(rewards).splitlines() == [
        "first touch of any arm: decision 3",
        "90 % of the largest reward, mean over the arms: decision 5",
        "mean reward from decision 101 on: 100.0 % of the largest",
    ]


# ----------------------------------------------------------------------------------------- figures


@pytest.mark.parametrize("threshold", [30.0, None])
def test_the_score_plot_holds_the_scores_and_their_average(threshold):
    score = np.random.default_rng(0).uniform(1, 40, 120)
    scores = {"episode": np.arange(1, 121), "score": score, "min": score - 1, "max": score + 1}
    [axes] = figures.plot_scores(scores, reward_threshold=threshold).axes
    lines = [line.get_ydata() for line in axes.lines]
    np.testing.assert_array_equal(lines[0], score)
    assert lines[1][-1] == pytest.approx(score[-100:].mean())
    assert [list(line) for line in lines[2:]] == ([[30, 30]] if threshold else [])


def test_every_bug_has_a_panel_with_its_runs():
    plan = results.read_plan("bugs")
    figure = figures.plot_bugs(plan, dict(zip(results.QUIZ, "ABCDEFGHIJK", strict=True)))
    panels = {axes.get_title(): axes for axes in figure.axes if axes.get_title()}
    assert list(panels) == list("ABCDEFGHIJK")
    for name, axes in zip(results.QUIZ, panels.values(), strict=True):
        drawn = [line.get_ydata() for line in axes.lines[:-1]]  # the last is the threshold
        np.testing.assert_array_equal(drawn, plan[name]["score"])
