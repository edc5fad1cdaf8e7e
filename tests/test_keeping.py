"""Weights that are kept and loaded: those of the agent that a reader builds, and damaged ones."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import nbformat
import numpy as np
import pytest
import safetensors.torch
import torch

from reacher.task import OBSERVATION_SIZE
from tutorial.paths import NOTEBOOK
from tutorial.run import load_network, load_run

[LINES] = re.findall(  # the notebook's
    r"```python\n(from safetensors.*?)```",
    "\n".join(cell.source for cell in nbformat.read(NOTEBOOK, as_version=4).cells),
    re.DOTALL,
)
KEEP, LOAD = LINES.split("\n", 1)
NEW_SESSION = f"""import helpers
import numpy as np
import torch

{LOAD}
observations = torch.from_numpy(np.load("observations.npy"))
np.save("actions.npy", actor(observations).detach().numpy())
"""


def test_the_agent_that_one_has_built_is_kept_in_three_lines(notebook, tmp_path, monkeypatch):
    """And acts the same in a process that has only the notebook's file and these weights."""
    monkeypatch.chdir(tmp_path)
    generator, settings = np.random.default_rng(0), notebook.PlainSettings()
    learner = notebook.PlainDDPG(*notebook.normalized_networks(), settings)
    memory = notebook.UniformReplay(settings, generator)
    trained_agent = notebook.PlainAgent(learner, memory, generator, settings)
    exec(KEEP, {"trained_agent": trained_agent})
    observations = generator.standard_normal((20, OBSERVATION_SIZE), np.float32)
    np.save("observations.npy", observations)
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", NEW_SESSION], check=True, env=os.environ | path)
    np.testing.assert_array_equal(np.load("actions.npy"), trained_agent.policy(observations))


@pytest.mark.parametrize(
    "change, told",
    [
        (lambda weight: weight.fill_(torch.nan), "layers.0.weight is not finite"),
        (lambda weight: weight.fill_(torch.inf), "layers.0.weight is not finite"),
        (lambda weight: weight.half(), "layers.0.weight has the type torch.float16"),
        (lambda weight: weight.double(), "layers.0.weight has the type torch.float64"),
        (lambda weight: weight.int(), "layers.0.weight has the type torch.int32"),
        (lambda weight: weight[:3].clone(), "size mismatch"),
    ],
)
def test_weights_that_are_none_are_refused_by_name(notebook, tmp_path, change, told):
    actor, _ = notebook.plain_networks()
    weights = {name: tensor.clone() for name, tensor in actor.state_dict().items()}
    weights["layers.0.weight"] = change(weights["layers.0.weight"])
    safetensors.torch.save_file(weights, tmp_path / "actor.safetensors")
    before = {name: tensor.clone() for name, tensor in actor.state_dict().items()}
    with pytest.raises(ValueError, match=rf"actor.safetensors holds no weights(?s:.*){told}"):
        load_network(tmp_path / "actor.safetensors", actor)
    if "size" not in told:  # PyTorch has copied what fits by then
        assert all(torch.equal(before[name], now) for name, now in actor.state_dict().items())


@pytest.mark.parametrize(
    "content", ["", "[]", "null", "7", "{}", '{"hyperparameters": 3}', "[" * 100_000, "{", "\xff"]
)
def test_settings_that_are_none_are_refused_by_the_file_s_name(tmp_path, content):
    (tmp_path / "hyperparameters.json").write_bytes(content.encode("latin1"))
    with pytest.raises(ValueError, match=r"hyperparameters.json is damaged"):
        load_run(tmp_path)
    (tmp_path / "hyperparameters.json").write_text(json.dumps({"hyperparameters": {"n_step": 3}}))
    assert load_run(tmp_path)["hyperparameters"] == {"n_step": 3}
