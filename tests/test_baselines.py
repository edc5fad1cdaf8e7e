"""Agents of other libraries: their trials, their tables, and the arms that they train on."""

import sys
import types

import numpy as np
import pytest

from reacher import ReacherEnvironment
from tutorial.experiments import baselines
from tutorial.experiments.baselines import AGENTS, SPACE, Baseline, settings_of
from tutorial.experiments.training import as_csv
from tutorial.report import baselines as report


@pytest.fixture
def arms():
    """Two arms of seed 3, ready for Stable-Baselines3."""
    pytest.importorskip("stable_baselines3")
    from tutorial.experiments.libraries import ArmVecEnv

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


@pytest.mark.parametrize("agent", AGENTS)
def test_a_trial_draws_what_the_plan_allows_and_the_same_each_time(agent):
    library, algorithm, policy = AGENTS[agent]
    assert settings_of(agent, 0) == {}
    assert settings_of(agent, 1)["gradient_steps"] == 40  # as `default`
    seen = []
    for trial in range(2, baselines.TRIALS):
        drawn = settings_of(agent, trial)
        assert drawn == settings_of(agent, trial) and drawn not in seen
        seen.append(drawn)
        networks = drawn["policy_kwargs"]
        assert networks["net_arch"] in SPACE["net_arch"]
        assert (drawn["train_freq"][0], drawn["gradient_steps"]) in SPACE["updates"]
        assert all(drawn[name] in SPACE[name] for name in SPACE.keys() & drawn.keys())
        assert ("tau" in drawn) == (algorithm != "CrossQ")
        assert ("noise" in drawn) == (algorithm in ("DDPG", "TD3"))
        of_its_own = algorithm == "CrossQ" or policy == "SimbaPolicy"
        assert ("layer_norm" in networks) == (library == "sbx" and not of_its_own)


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
    assert first[:3] == ["-1", "3", "1"] and first[4] == ""
    assert last[2] == "2" and float(last[4]) >= 0 and float(last[5]) > float(first[5])


def test_a_library_whose_numbers_explode_gets_no_points_from_there_on(monkeypatch):
    def train(library, algorithm, policy, settings, arms, seed, episodes):
        arms.scores, arms.seconds = [12.0], [3.0]
        raise FloatingPointError("actions must be finite")

    class Arms(types.SimpleNamespace):
        def __init__(self, number, seed):
            super().__init__(scores=[], seconds=[])

    fake = types.SimpleNamespace(ArmVecEnv=Arms, train=train)
    monkeypatch.setitem(sys.modules, "tutorial.experiments.libraries", fake)
    monkeypatch.setattr("tutorial.experiments.libraries", fake, raising=False)
    found = lines_of(Baseline("tuning", "sbx_td3", 4, 3, 3), monkeypatch)
    assert [line[3] for line in found] == ["12.000", "0.000", "0.000"]
    assert [line[4] for line in found] == ["", "", "0.000"]


def write(path, trials):
    """A table with the scores of (trial, seed)."""
    lines = [
        [*which, episode, score, "20" if episode == len(scores) else "", episode]
        for which, scores in trials.items()
        for episode, score in enumerate(scores, 1)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(as_csv([report.COLUMNS, *lines]))


def test_the_best_trial_waits_for_all_of_them(tmp_path):
    path = tmp_path / "sbx_td3.csv"
    assert report.best_trial(tmp_path, "sbx_td3", 3) is None
    write(path, {(0, 9): [1, 2], (1, 9): [9, 0]})
    assert report.best_trial(tmp_path, "sbx_td3", 3) is None
    write(path, {(0, 9): [1, 2], (1, 9): [9, 0], (2, 9): [2, 3]})
    assert report.best_trial(tmp_path, "sbx_td3", 3) == 1


def test_an_agent_that_never_gets_there_counts_as_the_slowest(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    path = tmp_path / "comparison" / "sbx_td3.csv"
    write(path, {(4, 1): [1, 30], (4, 2): [31, 40], (4, 3): [1, 2]})
    assert "| SBX, TD3 | 2 (1 to never) | 2 (1 to never) |" in report.comparison_table()
