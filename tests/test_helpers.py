"""What the notebook's cells call: environments, settings, scores, weights, and the only door."""

import nbformat
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import helpers
from tutorial.notebook import parameters_of
from tutorial.paths import NOTEBOOK

HEADER = "episode,score,min,max,seconds\n"


@pytest.mark.parametrize(
    "name, value, words",
    [
        ("preset", "defalt", "did you mean 'default'"),
        ("seed", -1, "greater than or equal to 0"),
        ("num_agents", 2.5, "valid integer"),
        ("out_dir", "x" * 300, "File name too long"),
        ("out_dir", f"{NOTEBOOK}/x", "(Not a directory|File exists)"),
        ("overrides", "n_step=5", "valid dictionary"),
        ("train", "resum", "'resume'"),
        ("train", "false", "write False, as in -p train False"),
        ("overrides", "{'n_step': 5}", "write -y .{overrides: {n_step: 5}}"),
        ("env_location", "Pendulum-v1", "did you mean 'gymnasium:Pendulum-v1'"),
        ("env_location", "gymnasium:Pendulum-v9", "version `v9`"),
        ("env_location", "/nowhere/Reacher.x86_64", "does not exist"),
    ],
)
def test_a_wrong_parameter_is_named_with_what_is_allowed(name, value, words):
    parameters = parameters_of(nbformat.read(NOTEBOOK, as_version=4))
    helpers.check_parameters(parameters)
    with pytest.raises(ValueError, match=rf"{name}(?s:.*){words}"):
        helpers.check_parameters(parameters | {name: value})
    del parameters[name]
    with pytest.raises(ValueError, match=rf"{name}(?s:.*)required"):
        helpers.check_parameters(parameters)


@pytest.mark.parametrize(
    "overrides, words",
    [
        ({"n_steps": 5}, "unknown setting 'n_steps': did you mean 'n_step'"),
        ({"n_step": 0}, "n_step(?s:.*)greater than or equal to 1"),
        ({"discount": 1.0}, "discount(?s:.*)less than 1"),
        ({"tau": float("nan")}, "tau(?s:.*)finite number"),
        ({"engine": "jax"}, "engine(?s:.*)'auto', 'compiled' or 'torch'"),
        ({"replay_capacity": 100}, "must not exceed replay_capacity"),
    ],
    ids=str,
)
def test_a_bad_override_is_an_error_that_names_it(notebook, overrides, words):
    with pytest.raises(ValueError, match=words):
        helpers.make_settings(notebook.Hyperparameters, "default", overrides)


def test_what_an_environment_cannot_have_is_left_out_or_refused(notebook):
    options = notebook.Hyperparameters, "default"
    environment = helpers.open_environment("gymnasium:Pendulum-v1", 1)
    task = helpers.task_of(environment, notebook.ARMS)
    assert (task.name, task.action_size, task.is_arms) == ("Pendulum", 1, False)
    assert (task.scale.tolist(), task.reward_threshold) == ([1, 1, 8], None)
    settings = helpers.make_settings(*options, {}, task)
    assert settings.noise_schedule == "constant"
    with pytest.raises(ValueError, match="choose 'constant' here"):
        helpers.make_settings(*options, {"noise_schedule": "best_score"}, task)


@pytest.mark.parametrize(
    "content", ["", HEADER + "1,0.5,0.1", HEADER + "1,nan,0.1,0.9,2\n", "\0\1\2"]
)
def test_a_file_without_scores_is_a_clear_error(tmp_path, content):
    path = tmp_path / "scores.csv"
    with pytest.raises(FileNotFoundError, match="train first"):
        helpers.read_scores(path)
    path.write_text(content)
    with pytest.raises(ValueError, match=r"scores\.csv holds no scores"):
        helpers.read_scores(path)


@given(scores=st.lists(st.floats(0, 40), min_size=1, max_size=30), window=st.integers(1, 12))
def test_moving_averages_against_brute_force(scores, window):
    expected = [np.mean(scores[max(0, k - window + 1) : k + 1]) for k in range(len(scores))]
    np.testing.assert_allclose(helpers.moving_average(scores, window), expected, atol=1e-9)


@given(st.lists(st.integers(28, 32), min_size=95, max_size=130))
def test_solved_against_brute_force(scores):
    """Whole numbers add up exactly, so an average of exactly 30 is tested as well."""
    solved = [k for k in range(100, len(scores) + 1) if sum(scores[k - 100 : k]) >= 100 * 30]
    assert helpers.solved_at(scores) == (solved[0] if solved else None)


def test_solved_by_the_threshold_of_an_environment():
    assert helpers.solved_at([-150.0] * 100, -150.0) == 100
    assert helpers.solved_at([-150.01] * 300, -150.0) is None
    assert helpers.solved_at([1e9] * 200, None) is None
