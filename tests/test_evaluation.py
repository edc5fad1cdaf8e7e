"""Evaluation beside a training, and playing an episode with a policy."""

from __future__ import annotations

import numpy as np
import pytest

import helpers
from reacher import task
from workshop.training import episodes
from workshop.training.evaluation import Evaluation


def sideways(observations):
    return np.tile(np.float32([1, 0, -1, 0.5]), (len(observations), 1))


@pytest.fixture(autouse=True)
def short_episodes(monkeypatch):
    monkeypatch.setattr(task, "EPISODE_DECISIONS", 40)
    monkeypatch.setattr(task, "RESET_PARAMETERS", task.RESET_PARAMETERS | {"goal_size": 24.0})


def test_an_episode_is_what_the_interface_tells():
    with helpers.open_environment("", 3, 5) as one, helpers.open_environment("", 3, 5) as other:
        answer = one.reset()["ReacherBrain"]
        for seen, done, paid in episodes.decisions(other, sideways):
            np.testing.assert_array_equal(seen, answer.vector_observations.astype(np.float32))
            answer = one.step(done)["ReacherBrain"]
            np.testing.assert_array_equal(paid, answer.rewards)
        assert all(answer.local_done)


def test_evaluations_meet_the_same_goals_each_time():
    with helpers.open_environment("", 3, 5) as environment:
        evaluation = Evaluation(environment, every=5)
        first = evaluation.scores(sideways)
        assert np.ptp(first) > 0  # goals differ from arm to arm
        np.testing.assert_array_equal(evaluation.scores(sideways), first)
        assert (evaluation.scores(lambda seen: -sideways(seen)) != first).any()
        assert [episode for episode in range(1, 12) if evaluation.due(episode)] == [5, 10]
