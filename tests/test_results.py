"""What a reader sees of runs: tables, effects and figures, evaluations, TensorBoard's scalars."""

import numpy as np
import pytest

import helpers
import small_training
from reacher import ReacherVectorEnv
from reacher.episode import evaluate_policy
from tutorial import figures, results, run
from tutorial.environments import open_environment
from tutorial.results import read_scores


def test_a_plan_is_read_by_variant_and_seed(tmp_path):
    (tmp_path / "plan").mkdir()
    lines = "seed,episode,score,evaluation\n1,1,10,\n1,2,20,21\n2,1,30,\n2,2,40,41\n"
    (tmp_path / "plan" / "default.csv").write_text(lines)
    (tmp_path / "plan" / "numbers.csv").write_text("variant,seed\ndefault,1\n")
    [(name, variant)] = results.read_plan("plan", tmp_path).items()
    assert name == "default"
    np.testing.assert_array_equal(variant["score"], [[10, 20], [30, 40]])
    np.testing.assert_array_equal(variant["evaluation"], [[np.nan, 21], [np.nan, 41]])
    with pytest.raises(FileNotFoundError, match="no tables of a plan 'plam'"):
        results.read_plan("plam", tmp_path)


def test_a_gain_by_hand():
    gain, low, high = results.gain(np.array([3.0, 4, 5]), np.array([1.0, 2, 3]))
    half = 2.776 * np.sqrt(2 / 3)  # t of four degrees of freedom; both variances are 1
    np.testing.assert_allclose([gain, low, high], [2, 2 - half, 2 + half], atol=1e-3)


def test_two_seeds_have_a_mean_and_no_interval():
    """By Student's t theirs would be twelve times as wide as their distance."""
    assert results.mean_and_interval([-1.0, 3.0]) == "1.00 (no interval of 2)"
    assert results.mean_and_interval([1.0, 2.0, 3.0]) == "2.00 (-0.48 to 4.48)"


def test_a_training_that_reached_the_mark_and_was_not_solved():
    scores = {"score": np.array([10.0, 31.0, 35.0]), "seconds": np.array([1.0, 2.4, 3.0])}
    assert results.training_summary(scores).splitlines() == [
        "first episode at 30: 2, after 2 s of training",
        "solved at episode: not yet",
        "mean of all 3 episodes: 25.33, of the last ten: 25.33",
    ]


def test_the_table_of_settings_has_each_once_in_the_group_that_gives_its_default(notebook):
    lines = results.settings_table(notebook.Hyperparameters).data.splitlines()[2:]
    names = [line.split("`")[1] for line in lines if "`" in line]
    assert sorted(names) == sorted(notebook.Hyperparameters.model_fields)
    phases = next(k for k, line in enumerate(lines) if "Phases" in line)
    assert lines[phases + 1].startswith("| `train_freq` | 10 | 1 | 50 |")


def test_the_score_plot_holds_the_scores_and_their_average():
    score = np.random.default_rng(0).uniform(1, 40, 120)
    scores = {"episode": np.arange(1, 121), "score": score, "min": score - 1, "max": score + 1}
    [axes] = figures.plot_scores(scores).axes
    lines = [line.get_ydata() for line in axes.lines]
    np.testing.assert_array_equal(lines[0], score)
    assert lines[1][-1] == pytest.approx(score[-100:].mean())
    assert [list(line) for line in lines[2:]] == [[30, 30]]


def test_without_opengl_the_notebook_goes_on(monkeypatch, capsys):
    monkeypatch.setenv("MUJOCO_GL", "disable")
    figures.show_swing(ReacherVectorEnv(5), lambda seen: np.zeros((5, 4)))
    assert "no moving picture: " in capsys.readouterr().out


def test_evaluations_stand_beside_the_scores_and_change_nothing(small, tmp_path):
    agent = small_training.train(tmp_path / "with", evaluate=True)
    table = read_scores(tmp_path / "with" / "evaluation.csv")
    assert table["episode"].tolist() == [2, 4, 6]
    assert table["decisions"].tolist() == [2 * small_training.DECISIONS * k for k in (1, 2, 3)]
    environment = open_environment("", small_training.ARMS, run.EVALUATION_SEED)
    environment.reset(seed=run.EVALUATION_SEED - 2 * small_training.ARMS)  # after two evaluations
    last = evaluate_policy(environment, agent.policy)
    assert table["score"][-1] == pytest.approx(last.mean(), abs=1e-6)
    small_training.train(tmp_path / "without")
    left = small_training.left_by(tmp_path / "with")
    del left["evaluation.csv"]
    assert left == small_training.left_by(tmp_path / "without")


def test_a_unity_build_gives_no_evaluation(capsys):
    assert helpers.training_options("default", 0, "", 2)["evaluation"].environment.num_envs == 2
    assert "evaluation" not in helpers.training_options("default", 0, "some/Reacher.x86_64", 2)
    assert "no evaluation beside the training: a Unity build" in capsys.readouterr().out


def test_tensorboard_shows_the_scores(small, tmp_path):
    reading = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    small_training.train(tmp_path / "run", episodes=3)
    found = reading.EventAccumulator(str(tmp_path / "run" / "tensorboard")).Reload()
    shown = {one.step: one.value for one in found.Scalars("score")}
    scores = read_scores(tmp_path / "run" / "scores.csv")["score"]
    assert [*shown] == [1, 2, 3] and [*shown.values()] == pytest.approx([*scores], rel=1e-6)
    assert {"score", "average", "Q", "TD error"} <= {*found.Tags()["scalars"]}
