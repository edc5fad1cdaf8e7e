"""Evaluation beside a training, and playing an episode with a policy."""

from __future__ import annotations

import random

import gymnasium
import numpy as np
import pytest

import small_training
from reacher import task
from reacher.episode import evaluate_policy
from small_training import ARMS
from tutorial import evaluation as evaluation_module
from tutorial.environments import open_environment
from tutorial.evaluation import Evaluation, open_evaluation
from tutorial.randomness import seed_everything
from tutorial.scores import read_scores


def sideways(observations):
    return np.tile(np.float32([1, 0, -1, 0.5]), (len(observations), 1))


@pytest.fixture(autouse=True)
def short_episodes(monkeypatch):
    monkeypatch.setattr(task, "EPISODE_DECISIONS", 40)
    monkeypatch.setattr(task, "RESET_PARAMETERS", task.RESET_PARAMETERS | {"goal_size": 24.0})


def test_each_evaluation_meets_the_same_goals_in_every_training():
    with open_environment("", 3, 5) as environment:
        evaluation = Evaluation(environment, every=5)
        first, second = (evaluation.scores(sideways, earlier=k) for k in range(2))
        assert np.ptp(first) > 0 and (first != second).any()  # goals differ between arms, and then
        np.testing.assert_array_equal(evaluation.scores(sideways, earlier=0), first)
        np.testing.assert_array_equal(evaluation.scores(sideways, earlier=1), second)
        assert (evaluation.scores(lambda seen: -sideways(seen)) != first).any()
        assert [episode for episode in range(1, 12) if evaluation.due(episode)] == [5, 10]


def test_evaluations_stand_beside_the_scores_and_change_nothing(monkeypatch, tmp_path):
    small_training.shrink(monkeypatch.setattr)
    agent = small_training.train(tmp_path / "with", evaluate=True)
    table = read_scores(tmp_path / "with" / "evaluation.csv")
    assert table["episode"].tolist() == [2, 4, 6]
    assert table["decisions"].tolist() == [2 * small_training.DECISIONS * k for k in (1, 2, 3)]
    with open_environment("", ARMS, evaluation_module.SEED) as environment:
        environment.reset(), environment.reset()  # of the two evaluations before
        last = evaluate_policy(environment, lambda seen: agent.act(seen, explore=False))
    assert table["score"][-1] == pytest.approx(last.mean(), abs=1e-6)
    other = small_training.train(tmp_path / "without")
    left = small_training.left_by(tmp_path / "with", agent)
    del left["evaluation.csv"]
    small_training.assert_same(left, small_training.left_by(tmp_path / "without", other))


class Drawing(gymnasium.Env):
    """Draws from the global generators, which a training draws from, too."""

    observation_space = gymnasium.spaces.Box(-10, 10, (2,), np.float64)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def observe(self):
        return np.array([np.random.random(), random.random()])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observe(), {}

    def step(self, action):
        return self.observe(), float(np.random.normal() + action[0]), False, False, {}


def test_an_environment_that_draws_from_global_generators(notebook, monkeypatch, tmp_path):
    """Evaluations take no numbers from a training, and meet the same ones in every training."""
    name = "test/Drawing-v0"
    gymnasium.register(name, entry_point=Drawing, max_episode_steps=14)
    settings = notebook.make_hyperparameters("default", small_training.SMALL, has_mirrors=False)

    def train(folder, every):
        generator = seed_everything(0)
        evaluation = open_evaluation(f"gymnasium:{name}", ARMS, every=every)
        with open_environment(f"gymnasium:{name}", ARMS, 0) as environment:
            scale = environment.observation_scale
            agent = notebook.Agent(scale, 1, settings, generator)
            scores = notebook.train_agent(
                environment, agent, tmp_path / folder, 5, evaluation=evaluation
            )
        return scores, evaluation

    try:
        (scores, evaluation), (expected, _) = train("with", 2), train("without", 0)
        assert scores == expected
        first = evaluation.scores(lambda seen: seen[:, :1], earlier=1)
        np.random.random(7)
        np.testing.assert_array_equal(evaluation.scores(lambda seen: seen[:, :1], earlier=1), first)
    finally:
        del gymnasium.registry[name]


def test_a_unity_build_and_nothing_wanted_give_no_evaluation(capsys):
    assert open_evaluation("", 2, every=0) is None and not capsys.readouterr().out
    assert open_evaluation("some/Reacher.x86_64", 2) is None
    assert "no evaluation beside the training: a Unity build" in capsys.readouterr().out
