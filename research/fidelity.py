"""Scores here of policies that were trained in the Unity build, beside those that they had there.

    python -m research fidelity FOLDER

doc/unity.md describes the folder. `research/results/fidelity.json` is of commit a9d1400, which also
compared a policy arm by arm, and random torques. `SweptPhysics`, of `sweeps.csv`, is at 1fa90736.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from reacher import ReacherVectorEnv
from reacher.episode import Policy, evaluate_policy
from research.tables import table_of

ARMS, EPISODES = 20, 10
Entry = Mapping[str, Any]


def read_policies(folder: Path) -> list[tuple[Entry, Policy]]:
    """The entries of a folder's table, each with its policy."""
    entries = json.loads((folder / "policies.json").read_text())
    return [(entry, stored_policy(folder / entry["file"], entry["layers"])) for entry in entries]


def stored_policy(path: Path, layers: Sequence[str]) -> Policy:
    """A policy in plain NumPy; the module's docstring describes the files."""
    arrays = load_file(path) if path.suffix == ".safetensors" else dict(np.load(path))

    def act(x):
        for layer in layers:
            if layer == "relu":
                x = np.maximum(x, 0)
            elif layer == "tanh":
                x = np.tanh(x)
            elif f"{layer}.running_var" in arrays:  # batch normalization, as in evaluation
                spread = np.sqrt(arrays[f"{layer}.running_var"] + 1e-5)
                x = (x - arrays[f"{layer}.running_mean"]) / spread
                x = x * arrays[f"{layer}.weight"] + arrays[f"{layer}.bias"]
            else:
                x = x @ arrays[f"{layer}.weight"].T + arrays[f"{layer}.bias"]
        return x

    return act


def table(folder: Path) -> str:
    """Scores of the same policies in Unity and here, in EPISODES episodes."""
    lines = []
    for entry, act in read_policies(folder):
        environment = ReacherVectorEnv(ARMS, seed=0)
        here = np.mean([evaluate_policy(environment, act) for _ in range(EPISODES)])
        unity, source = entry["unity_score"], entry.get("source") or entry["file"]
        line = {"policy": source.split(" ")[0], "Unity": f"{unity:.2f}", "here": f"{here:.2f}"}
        lines.append(line | {"difference": f"{here - unity:+.2f}"})
    return table_of(lines)
