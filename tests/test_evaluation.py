"""What a reader sees beside a training's table: evaluation, and TensorBoard's scalars."""

import numpy as np
import pytest

import small_training
from reacher.episode import evaluate_policy
from small_training import ARMS
from tutorial import evaluation as evaluation_module
from tutorial.environments import open_environment
from tutorial.evaluation import Evaluation, open_evaluation
from tutorial.scores import read_scores


def sideways(observations):
    return np.tile(np.float32([1, 0, -1, 0.5]), (len(observations), 1))


@pytest.fixture(autouse=True)
def short_episodes(monkeypatch):
    small_training.shrink(monkeypatch.setattr)


def test_each_evaluation_meets_the_same_goals_in_every_training():
    environment = open_environment("", 3, 5)
    evaluation = Evaluation(environment, every=5)
    first, second = (evaluation.scores(sideways, earlier=k) for k in range(2))
    assert np.ptp(first) > 0 and (first != second).any()  # goals differ between arms, and then
    np.testing.assert_array_equal(evaluation.scores(sideways, earlier=0), first)
    np.testing.assert_array_equal(evaluation.scores(sideways, earlier=1), second)
    assert (evaluation.scores(lambda seen: -sideways(seen)) != first).any()


def test_evaluations_stand_beside_the_scores_and_change_nothing(tmp_path):
    agent = small_training.train(tmp_path / "with", evaluate=True)
    table = read_scores(tmp_path / "with" / "evaluation.csv")
    assert table["episode"].tolist() == [2, 4, 6]
    assert table["decisions"].tolist() == [2 * small_training.DECISIONS * k for k in (1, 2, 3)]
    environment = open_environment("", ARMS, evaluation_module.SEED)
    environment.reset(), environment.reset()  # of the two evaluations before
    last = evaluate_policy(environment, agent.policy)
    assert table["score"][-1] == pytest.approx(last.mean(), abs=1e-6)
    other = small_training.train(tmp_path / "without")
    left = small_training.left_by(tmp_path / "with", agent)
    del left["evaluation.csv"]
    small_training.assert_same(left, small_training.left_by(tmp_path / "without", other))


def test_a_unity_build_gives_no_evaluation(capsys):
    assert open_evaluation("some/Reacher.x86_64", 2) is None
    assert "no evaluation beside the training: a Unity build" in capsys.readouterr().out


def test_tensorboard_shows_the_scores_of_a_resumed_training_once(tmp_path):
    reading = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    for episodes in 2, 3:
        small_training.train(tmp_path / "run", episodes=episodes)
    found = reading.EventAccumulator(str(tmp_path / "run" / "tensorboard")).Reload()
    shown = {one.step: one.value for one in found.Scalars("score")}
    scores = read_scores(tmp_path / "run" / "scores.csv")["score"]
    assert [*shown] == [1, 2, 3] and [*shown.values()] == pytest.approx([*scores], rel=1e-6)
    assert {"score", "average", "Q", "TD error"} <= {*found.Tags()["scalars"]}
