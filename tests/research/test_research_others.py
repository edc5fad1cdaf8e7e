"""The planner, agents of other libraries, policies from Unity, figures."""

from __future__ import annotations

import json

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from research import fidelity, figures, planner
from research.training import COLUMNS, Training, train


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


# ------------------------------------------------------------------------------- other libraries


def test_arms_score_as_the_environment_and_their_mirrors_look_alike(notebook):
    """A frame shows an arm and its mirror image as one, and turns actions back."""
    libraries = pytest.importorskip("research.libraries", exc_type=ImportError)
    arms = libraries.ArmVecEnv(4, 5, frame=notebook.CanonicalFrame())
    seen = arms.reset()
    assert (seen[:, 26] >= 0).all() and (seen[:, 28] >= 0).all()  # where goals are
    action = np.tile(np.float32([0.3, -0.2, 0.1, 0.4]), (4, 1))
    paid, plain = 0.0, libraries.ArmVecEnv(4, 5)
    plain.reset()
    for _ in range(1001):
        signs = arms.action_signs
        arms.step_async(action)
        _, reward, done, _ = arms.step_wait()
        plain.step_async(signs * action)
        assert (plain.step_wait()[1] == reward).all()
        paid += reward.mean()
    assert done.all() and arms.scores == pytest.approx([paid])


def test_a_librarys_agent_gives_the_rows_of_ours():
    pytest.importorskip("stable_baselines3")
    options = {"policy_kwargs": {"net_arch": [8]}, "learning_starts": 10**6, "noise": 0.1}
    training = Training(
        "plan", "td3", 1, arms=2, episodes=2, evaluate_every=2, library="sb3_td3", overrides=options
    )
    rows = train(training)
    assert [row[COLUMNS.index("episode")] for row in rows] == ["1", "2"]
    assert rows[0][COLUMNS.index("evaluation")] == "" != rows[1][COLUMNS.index("evaluation")]


# ------------------------------------------------------------------------------ policies of Unity


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


@pytest.mark.parametrize("name", figures.FIGURES)
def test_a_figure_is_drawn(name, tmp_path):
    path = figures.draw(name, tmp_path)
    assert plt.imread(path).std() > 0.05  # something is there
