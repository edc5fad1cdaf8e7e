"""Weights that are kept and loaded: those of the notebook's training, and damaged ones."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import safetensors.torch
import torch

import small_training
from reacher.task import OBSERVATION_SIZE
from small_training import code_cells
from tutorial.run import load_network, load_run

[CELL] = code_cells(text="actor_best.safetensors")  # of section 12, "Keep it, and play"
NEW_SESSION = f"""from pathlib import Path
import helpers
helpers.definitions()
from Continuous_Control import *
folder, task = Path("run"), ARMS
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
    safetensors.torch.save_file(weights, path)
    if "incomplete" in told:
        path.write_bytes(path.read_bytes()[:-10])
    before = {name: tensor.clone() for name, tensor in actor.state_dict().items()}
    with pytest.raises(ValueError, match=rf"actor.safetensors holds no weights(?s:.*){told}"):
        load_network(path, actor)
    if "size" not in told:  # PyTorch has copied what fits by then
        assert all(torch.equal(before[name], now) for name, now in actor.state_dict().items())


@pytest.mark.parametrize("content", ["", "[]", '{"hyperparameters": 3}', "[" * 100_000, "\xff"])
def test_settings_that_are_none_are_refused_by_the_file_s_name(tmp_path, content):
    (tmp_path / "hyperparameters.json").write_bytes(content.encode("latin1"))
    with pytest.raises(ValueError, match=r"hyperparameters.json is damaged"):
        load_run(tmp_path)
    (tmp_path / "hyperparameters.json").write_text(json.dumps({"hyperparameters": {"n_step": 3}}))
    assert load_run(tmp_path)["hyperparameters"] == {"n_step": 3}
