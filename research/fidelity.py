"""Scores here of policies that were trained in the Unity build, beside those that they had there.

    python -m research fidelity FOLDER

doc/unity.md describes the folder. `research/results/fidelity.json` is of commit a9d1400, which also
compared a policy arm by arm, and random torques. For `sweeps.csv`, `SweptPhysics`, compiled by
numba, was the arms' physics; `exact` solved both joints at once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file
from scipy.spatial.transform import Rotation

from reacher import ReacherVectorEnv
from reacher.episode import Policy, evaluate_policy
from reacher.physics import ANGULAR_DRAG, GRAVITY, MAX_ANGULAR_VELOCITY, PHYSICS_STEP, Physics
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


class SweptPhysics(Physics):
    """The arms with joints solved in sweeps, as PhysX does: each the shoulder, then the elbow."""

    sweeps = 6, 1  # that take back the joints' errors too and move the bodies; for the velocities

    def step(self, torques: np.ndarray) -> None:
        n, center, turn = self.num_agents, self._joints[3], self.rotation
        inverse = np.einsum("bik,bk,bjk->bij", turn, 1 / self._bodies[1], turn)
        w = self.velocity[:, :3] + PHYSICS_STEP * np.einsum("bij,bj->bi", inverse, torques)
        w *= 1 - ANGULAR_DRAG * PHYSICS_STEP
        cut = MAX_ANGULAR_VELOCITY / np.linalg.norm(w, axis=1, keepdims=True).clip(1e-9)
        self.velocity[:, :3] = w * cut.clip(max=1)
        self.velocity[:, 4] -= PHYSICS_STEP * GRAVITY
        y, z, at = turn[:, :, 1].reshape(n, 2, 3), turn[:, :, 2].reshape(n, 2, 3), center[::2]
        own = y * [[-4.02], [-3 - self.model.body_ipos[2, 1]]]  # center of mass to joint
        parent = np.stack([0 * at + [0, 0.02, 0], 3 * y[:, 0]], 1)  # the elbow on the upper arm
        x = np.stack([0 * at + [1, 0, 0], turn[::2, :, 0]], 1)  # first turn, of the parent
        error = center.reshape(n, 2, 3) + own - parent - np.stack([0 * at, at], 1)
        error = np.append(error, -(x * z).sum(-1, keepdims=True), -1) / PHYSICS_STEP
        rows = np.zeros((n, 2, 4, 2, 6))  # per joint three of its point, one of twist; body; w, v
        for joint, body, sign, arm in (0, 0, 1, own), (1, 1, 1, own), (1, 0, -1, parent):
            rows[:, joint, :3, body, 3:] = sign * np.eye(3)
            rows[:, joint, :3, body, :3] = sign * np.cross(arm[:, joint, None], np.eye(3))
            rows[:, joint, 3, body, :3] = sign * np.cross(x, z)[:, joint]
        pulls = rows.copy()
        pulls[..., :3] = np.einsum("abij,anrbj->anrbi", inverse.reshape(n, 2, 3, 3), rows[..., :3])
        solved = np.linalg.inv(np.einsum("ajrbi,ajsbi->ajrs", rows, pulls))
        velocity = self.velocity.reshape(n, 2, 6)  # a view
        for share, sweeps in zip((1, 0), self.sweeps, strict=True):
            for joint in sweeps * [0, 1]:
                off = np.einsum("arbi,abi->ar", rows[:, joint], velocity) + share * error[:, joint]
                velocity -= np.einsum("arbi,ars,as->abi", pulls[:, joint], solved[:, joint], off)
            if share:
                motion = PHYSICS_STEP * self.velocity
        now = Rotation.from_quat(self.quaternion, scalar_first=True)
        now = Rotation.from_rotvec(motion[:, :3]) * now
        self.quaternion[:], turn[:] = now.as_quat(scalar_first=True), now.as_matrix()
        center += motion[:, 3:]
        self.position[:] = center - turn[:, :, 1] * self.model.body_ipos[1:, 1:2]
