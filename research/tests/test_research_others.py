"""The planner, policies from Unity, figures."""

from __future__ import annotations

import json

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from reacher import ReacherVectorEnv
from reacher.episode import evaluate_policy
from research import fidelity, planner
from research.__main__ import main
from tutorial.paths import PROJECT

UNITY = PROJECT.parent / "shared" / "unity_policies"


def test_all_arms_of_the_planner_have_the_same_goal():
    plans = np.tile(np.random.default_rng(0).uniform(-1, 1, (1, 20, 4)), (3, 1, 1))
    scores, distances, _ = planner.play(planner.Goal(3), plans, 20, policy=None)
    assert np.ptp(scores) == np.ptp(distances) == 0
    other = planner.play(planner.Goal(4), plans, 20, policy=None)[1]
    assert other[0] != distances[0]


def test_a_search_ends_closer_to_the_goal_than_it_began(monkeypatch):
    monkeypatch.setattr(planner, "CANDIDATES", 40)
    monkeypatch.setattr(planner, "ELITE", 8)
    monkeypatch.setattr(planner, "ROUNDS", 6)
    goal, still = planner.Goal(0), np.zeros((planner.PLANNED, 4))

    def value(plan):
        scores, distances, _ = planner.play(goal, plan[None], planner.SEEN, rest)
        return scores[0] - planner.DISTANCE_COST * distances[0]

    def rest(seen):
        return np.zeros((len(seen), 4))

    assert value(planner.search(goal, still, 1.0, rest)) > value(still)


@pytest.fixture
def folder(tmp_path):
    """A folder with a small network as its only policy."""
    layers = {"one": torch.nn.Linear(33, 8), "norm": torch.nn.BatchNorm1d(8)}
    layers["two"] = torch.nn.Linear(8, 4)
    network = torch.nn.ModuleDict(layers).eval()
    network["norm"].running_mean.uniform_()
    network["norm"].running_var.uniform_(1, 2)
    np.savez(tmp_path / "actor.npz", **{k: v.numpy() for k, v in network.state_dict().items()})
    entry = {"file": "actor.npz", "layers": ["one", "norm", "relu", "two", "tanh"]}
    write(tmp_path, [entry | {"unity_score": 1.0}])
    return tmp_path, network, entry


def write(folder, entries):
    (folder / "policies.json").write_text(json.dumps(entries))


def test_a_stored_policy_acts_like_its_network(folder):
    path, network, _ = folder
    seen = np.random.default_rng(0).normal(size=(5, 33)).astype(np.float32)
    x = network["norm"](network["one"](torch.from_numpy(seen))).relu()
    [(_, act)] = fidelity.read_policies(path)
    assert act(seen) == pytest.approx(network["two"](x).tanh().detach().numpy(), abs=1e-6)


@pytest.mark.parametrize(
    "wrong", [{"layers": ["none"]}, {"layers": ["one"]}, {"unity_score": None, "file": "no.npz"}]
)
def test_a_wrong_entry_is_named(folder, wrong):
    path, _, entry = folder
    write(path, [entry | {"unity_score": 1.0} | wrong])
    with pytest.raises((ValueError, FileNotFoundError), match=r"layers|no\.npz"):
        fidelity.read_policies(path)


def test_a_figure_is_drawn(tmp_path):
    assert main(["figure", "--out", str(tmp_path / "bugs.png")]) == 0
    assert plt.imread(tmp_path / "bugs.png").std() > 0.05  # something is there


@pytest.mark.skipif(not UNITY.is_dir(), reason=f"no reference data in {UNITY}")
def test_policies_trained_in_unity_score_here_what_they_scored_there():
    differences = {}
    for policy, act in fidelity.read_policies(UNITY):
        env = ReacherVectorEnv(20, seed=0)
        score = np.mean([evaluate_policy(env, act) for _ in range(3)])
        differences[policy["file"]] = score - policy["unity_score"]
    assert len(differences) == 7
    off = np.abs(list(differences.values()))
    assert off.max() <= 2.5, differences
    assert off.mean() <= 0.9, differences
