"""What the notebook's cells call: environments, settings, scores, weights, and the only door."""

import json
import os
import subprocess
import sys

import nbformat
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

import helpers
import small_training
from reacher.task import OBSERVATION_SIZE
from small_training import code_cells
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
        ("train", "false", "write False, as in -p train False"),
        ("overrides", "{'n_step': 5}", "write -y .{overrides: {n_step: 5}}"),
        ("env_location", "Pendulum-v1", "no Unity build: a cell opens it, as in the appendix"),
        ("env_location", "gymnasium:Pendulum-v1", "no Unity build: a cell opens it"),
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


[CELL] = code_cells(text="actor_best.safetensors")  # of section 12, "Keep it, and play"
NEW_SESSION = f"""from pathlib import Path
import helpers
helpers.definitions()
from Continuous_Control import *
folder = Path("run")
{CELL.partition("environment.close")[0]}
np.save("actions.npy", policy(np.load("observations.npy")))
"""


def test_an_agent_that_was_kept_acts_the_same_in_a_new_session(small, tmp_path, monkeypatch):
    """Which has only the notebook's file and what the training left."""
    monkeypatch.chdir(tmp_path)
    agent = small_training.train("run", episodes=1)
    observations = np.random.default_rng(0).standard_normal((20, OBSERVATION_SIZE), np.float32)
    np.save("observations.npy", observations)
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", NEW_SESSION], check=True, env=os.environ | path)
    np.testing.assert_array_equal(np.load("actions.npy"), agent.policy(observations))


@pytest.mark.parametrize(
    "change, told",
    [
        (lambda weight: weight.fill_(torch.nan), "layers.0.weight is not finite"),
        (lambda weight: weight.half(), "layers.0.weight has the type torch.float16"),
        (lambda weight: weight[:3].clone(), "size mismatch"),
        (lambda weight: weight, "incomplete metadata"),  # with the end of the file cut off
    ],
)
def test_weights_that_are_none_are_refused_by_name(notebook, tmp_path, change, told):
    path = tmp_path / "actor.safetensors"
    actor, _ = notebook.plain_networks(notebook.PlainSettings())
    weights = {name: tensor.clone() for name, tensor in actor.state_dict().items()}
    weights["layers.0.weight"] = change(weights["layers.0.weight"])
    save_file(weights, path)
    if "incomplete" in told:
        path.write_bytes(path.read_bytes()[:-10])
    before = {name: tensor.clone() for name, tensor in actor.state_dict().items()}
    with pytest.raises(ValueError, match=rf"actor.safetensors holds no weights(?s:.*){told}"):
        helpers.load_network(path, actor)
    if "size" not in told:  # PyTorch has copied what fits by then
        assert all(torch.equal(before[name], now) for name, now in actor.state_dict().items())


@pytest.mark.parametrize("content", ["", "[]", '{"hyperparameters": 3}', "[" * 100_000, "\xff"])
def test_settings_that_are_none_are_refused_by_the_file_s_name(tmp_path, content):
    (tmp_path / "hyperparameters.json").write_bytes(content.encode("latin1"))
    with pytest.raises(ValueError, match=r"hyperparameters.json is damaged"):
        helpers.load_run(tmp_path)
    (tmp_path / "hyperparameters.json").write_text(json.dumps({"hyperparameters": {"n_step": 3}}))
    assert helpers.load_run(tmp_path)["hyperparameters"] == {"n_step": 3}
