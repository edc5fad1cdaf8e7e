"""Agents of other libraries: their trials, their tables, and the arms that they train on."""

import sys
import types

import numpy as np
import pytest

from reacher import ReacherEnvironment
from research import baselines
from research.baselines import AGENTS, SPACE, Baseline, settings_of
from research.report import baselines as report
from research.training import as_csv


@pytest.fixture
def arms():
    """Two arms of seed 3, ready for Stable-Baselines3."""
    pytest.importorskip("stable_baselines3")
    from research.libraries import ArmVecEnv

    return ArmVecEnv(2, seed=3)


def test_arms_score_like_the_environment_and_report_the_true_last_observation(arms):
    """After the last decision: the next episode's first observation, and the old one's last."""
    actions = np.random.default_rng(0).uniform(-1, 1, (1001, 2, 4)).astype(np.float32)
    total = np.zeros(2)
    arms.reset()
    with ReacherEnvironment(2, seed=3) as env:
        env.reset()
        for number, action in enumerate(actions):
            observations, rewards, dones, infos = arms.step(action)
            answer = env.step(action)[env.brain_names[0]]
            total += answer.rewards
            np.testing.assert_array_equal(observations, answer.vector_observations)
            assert rewards.dtype == np.float32 and dones.all() == (number == 1000)
            assert infos == [{}, {}] or number == 1000
    assert all(info["TimeLimit.truncated"] for info in infos)
    last = np.array([info["terminal_observation"] for info in infos])
    assert np.abs(last - observations).max() > 1  # the arms hang again, the last ones did not
    assert arms.scores == [pytest.approx(total.mean(), abs=1e-4)] and len(arms.seconds) == 1


def test_arms_scale_what_an_agent_sees_and_not_their_scores(arms):
    from research.libraries import ArmVecEnv

    scale = np.full(33, 2, np.float32)
    scale[3:7] = np.inf
    scaled = ArmVecEnv(2, seed=3, scale=scale, reward_scale=10)
    policy = np.random.default_rng(0).uniform(-1, 1, (1001, 2, 4)).astype(np.float32)
    assert not (scaled.reset() - arms.reset() / scale).any()
    paid = np.zeros(2)
    for action in policy:
        seen, rewards, _, infos = scaled.step(action)
        plain, _, _, truth = arms.step(action)
        paid += rewards
    np.testing.assert_array_equal(seen, plain / scale)
    last, true_last = (found[0]["terminal_observation"] for found in (infos, truth))
    np.testing.assert_array_equal(last, true_last / scale)
    assert paid.mean() == pytest.approx(10 * scaled.scores[0]) and scaled.scores == arms.scores


@pytest.mark.parametrize("agent", AGENTS)
def test_a_trial_draws_what_the_plan_allows_and_the_same_each_time(agent):
    library, algorithm, policy = AGENTS[agent]
    own = settings_of(agent, 0)
    assert own.get("noise") == (0.1 if algorithm in ("DDPG", "TD3") else None)
    assert own.keys() <= {"noise", "policy_kwargs"}
    assert settings_of(agent, 1)["gradient_steps"] == 40  # as `default`
    seen = []
    for trial in range(2, baselines.TRIALS):
        drawn = settings_of(agent, trial)
        assert drawn == settings_of(agent, trial) and drawn not in seen
        seen.append(drawn)
        assert ("tau" in drawn) == (algorithm != "CrossQ")
        assert ("noise" in drawn) == ("fading" in drawn) == (algorithm in ("DDPG", "TD3"))
        assert ("ent_coef" in drawn) == (algorithm not in ("DDPG", "TD3"))
        of_its_own = algorithm == "CrossQ" or policy == "SimbaPolicy"
        assert ("layer_norm" in drawn["policy_kwargs"]) == (library == "sbx" and not of_its_own)
        assert drawn["observations"] != "raw" or policy != "SimbaPolicy"


def test_each_value_is_tried_as_often_as_the_others():
    trials = [baselines.drawn(trial) for trial in range(2, baselines.TRIALS)]
    for name, values in SPACE.items():
        counts = [sum(trial[name] == value for trial in trials) for value in values]
        assert counts == [len(trials) / len(values)] * len(values), name


def test_every_agent_has_a_title():
    assert {*report.TITLES} == {*AGENTS, *baselines.OURS}


def lines_of(run, monkeypatch):
    """The lines of its table, of two arms."""
    monkeypatch.setattr(baselines, "ARMS", 2)
    tables = baselines.train(run)
    assert list(tables)[-1] == f"{run.agent}.csv"  # which means done, so it is stored last
    return [line.split(",") for line in tables[f"{run.agent}.csv"].splitlines()]


def test_ours_gives_a_line_for_each_episode(monkeypatch):
    small = {"actor_hidden": (8,), "critic_hidden": (8,), "gradient_steps": 1}
    monkeypatch.setitem(baselines.OURS, "default", small)
    first, last = lines_of(Baseline("comparison", "default", -1, 3, 2), monkeypatch)
    assert first[:3] == ["-1", "3", "1"] and last[2] == "2"
    assert float(first[4]) >= 0 and 0 < float(first[5]) < float(last[5])


def test_a_library_whose_numbers_explode_gets_no_points_from_there_on(monkeypatch):
    def train(agent, settings, arms, seed, episodes, after_episode):
        arms.scores, arms.seconds = [12.0], [3.0]
        after_episode(lambda seen: np.zeros((len(seen), 4)))
        raise FloatingPointError("actions must be finite")

    class Arms(types.SimpleNamespace):
        def __init__(self, number, seed, scale, reward_scale):
            super().__init__(scores=[], seconds=[])

    fake = types.SimpleNamespace(ArmVecEnv=Arms, train=train)
    monkeypatch.setitem(sys.modules, "research.libraries", fake)
    monkeypatch.setattr("research.libraries", fake, raising=False)
    monkeypatch.setattr(baselines, "make_evaluation", lambda: lambda policy: 7.0)
    found = lines_of(Baseline("tuning", "sbx_td3", 4, 3, 3), monkeypatch)
    assert [line[3] for line in found] == ["12.000", "0.000", "0.000"]
    assert [line[4] for line in found] == ["7.000", "0.000", "0.000"]
    assert [line[5] for line in found] == ["3.00"] * 3


def test_a_library_is_evaluated_after_each_episode_and_its_noise_fades(arms):
    """With the clock stopped; the noise is as large as what is missing to a score of 30."""
    from research import libraries

    arms.reset()
    arms.scores, arms.started = [], arms.started - 100  # as if 100 s had passed
    noises, seen = [], []

    def after_episode():
        began = libraries.time.perf_counter()
        while libraries.time.perf_counter() < began + 0.05:
            pass
        seen.append(len(arms.scores))

    episodes = libraries.Episodes(arms, 2, after_episode)
    started = arms.started
    for score in (None, 15.0, None, 31.0):
        arms.scores += [score] if score else []
        noises.append(episodes._on_step())
    assert noises == [True, True, True, False] and seen == [1, 2]
    assert arms.started >= started + 0.1
    noise = libraries.FadingNoise(2, sigma=0.5)
    assert noise().shape == (2, 4) and (noise() != 0).all()
    noise.factor = 0.0
    assert (noise() == 0).all()


def write(path, trials):
    """A table with the evaluations of (trial, seed)."""
    lines = [
        [*which, episode, 0, score, episode]
        for which, scores in trials.items()
        for episode, score in enumerate(scores, 1)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(as_csv([report.COLUMNS, *lines]))


def test_the_best_three_trials_get_more_seeds_and_the_best_of_them_is_compared(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    path, agent = tmp_path / "tuning" / "sbx_td3.csv", "sbx_td3"
    monkeypatch.setattr(baselines, "TRIALS", 4)
    assert [run.trial for run in baselines.runs_of("tuning", agent)] == [0, 1, 2, 3]
    assert baselines.runs_of("comparison", agent) == []
    trials = {(0, 3300): [1, 2], (1, 3300): [9, 9], (2, 3300): [2, 3], (3, 3300): [8, 2]}
    write(path, trials)
    more = baselines.runs_of("tuning", agent)[4:]
    assert [(run.trial, run.seed) for run in more] == [
        (trial, seed) for trial in (1, 3, 2) for seed in (3301, 3302)
    ]
    assert report.best_trial(agent) is None
    write(path, trials | {(run.trial, run.seed): [run.trial * 10, 1] for run in more})
    assert {run.trial for run in baselines.runs_of("comparison", agent)} == {3}


def test_an_agent_that_never_gets_there_counts_as_the_slowest(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    path = tmp_path / "comparison" / "sbx_td3.csv"
    write(path, {(4, 1): [1, 30], (4, 2): [31, 40], (4, 3): [1, 2]})
    assert "| SBX, TD3 | 2 (1 to never) | 2 (1 to never) |" in report.comparison_table()


def test_the_figure_has_a_point_for_each_seed_and_tells_who_never_gets_there(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    write(tmp_path / "comparison" / "sbx_td3.csv", {(4, 1): [1, 30], (4, 2): [31, 40]})
    write(tmp_path / "comparison" / "sbx_sac.csv", {(4, 1): [1, 2], (4, 2): [1, 30]})
    figure = report.draw()
    try:
        episodes, seconds = figure.axes
        assert [label.get_text() for label in episodes.get_yticklabels()] == [
            "SBX, TD3",
            "SBX, SAC",
        ]
        points = [line.get_xdata().tolist() for line in episodes.lines if line.get_marker() == "o"]
        assert points == [[2, 1], [np.inf, 2]]
        assert [text.get_text() for text in seconds.texts] == ["1 not in 2 episodes"]
    finally:
        report.plt.close(figure)
