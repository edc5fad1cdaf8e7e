"""Policies that were trained in the Unity build: the files, the table and the measurement."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from reacher import ReacherEnvironment
from research import fidelity

LAYERS = ["fc1", "bn1", "relu", "fc2", "tanh"]


class Actor(torch.nn.Module):
    """An actor as people's notebooks have it."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.fc1, self.bn1, self.fc2 = (
            torch.nn.Linear(33, 16),
            torch.nn.BatchNorm1d(16),
            torch.nn.Linear(16, 4),
        )
        with torch.no_grad():
            self.bn1.running_mean += torch.randn(16)
            self.bn1.running_var *= 1 + torch.rand(16)

    def forward(self, x):
        return torch.tanh(self.fc2(torch.relu(self.bn1(self.fc1(x)))))


@pytest.fixture(scope="module")
def actor():
    return Actor().eval()


@pytest.fixture
def folder(tmp_path, actor):
    """A folder with one policy in both files of weights."""
    weights = {name: value.numpy() for name, value in actor.state_dict().items()}
    np.savez(tmp_path / "actor.npz", **weights)
    save_file(weights, tmp_path / "actor.safetensors")
    write_table(
        tmp_path,
        [
            {"file": "actor.npz", "layers": LAYERS, "unity_score": 0.5, "source": "mine @ 1"},
            {"file": "actor.safetensors", "layers": LAYERS, "unity_score": 1},
        ],
    )
    return tmp_path


def write_table(folder, entries):
    (folder / "policies.json").write_text(json.dumps(entries))


def policy(**changes):
    """An entry of the table, with something changed."""
    return {"file": "actor.npz", "layers": LAYERS, "unity_score": 1} | changes


@pytest.mark.parametrize("name", ["actor.npz", "actor.safetensors"])
def test_stored_weights_act_like_the_network(folder, actor, name):
    observations = np.random.default_rng(0).normal(size=(200, 33)).astype(np.float32)
    actions = fidelity.stored_policy(folder / name, LAYERS)(observations)
    with torch.no_grad():
        expected = actor(torch.from_numpy(observations)).numpy()
    np.testing.assert_allclose(actions, expected, atol=1e-5)  # single precision, sums of 33
    assert np.abs(expected).max() > 0.1


def test_the_command_plays_every_policy_and_prints_a_table(folder, actor, capsys):
    out = folder / "found.json"
    assert fidelity.main([str(folder), "--episodes", "2", "--out", str(out)]) == 0
    with ReacherEnvironment(20, seed=0) as environment, torch.no_grad():

        def act(observations):
            return actor(torch.from_numpy(observations)).numpy()

        expected = [fidelity.evaluate_policy(environment, act).mean() for _ in range(2)]
    found = json.loads(out.read_text())
    assert [one["source"] for one in found["trained"]] == ["mine", "actor.safetensors"]
    for one in found["trained"]:
        # Rounding differs, and motion is chaotic: a score of random-like torques, within noise.
        np.testing.assert_allclose(one["scores"], expected, atol=0.3)
    assert "random" not in found and found["episodes"] == 2
    here = np.mean(found["trained"][0]["scores"])
    assert f"| mine | - | 0.50 | {here:.2f} | {here - 0.5:+.2f} |" in capsys.readouterr().out


def test_random_torques_are_measured_where_the_folder_has_their_scores(folder, monkeypatch, capsys):
    (folder / "random_policy_scores.json").write_text(
        json.dumps({"mean_over_20_arms": [0.1, 0.2], "single_arm": [0, 0, 0.4]})
    )
    monkeypatch.setattr(fidelity, "RANDOM_EPISODES", 2)
    assert fidelity.main([str(folder), "--episodes", "1"]) == 0
    line = "random torques, Unity, 2 episodes of 20 arms; of 3 single arms 67 % at 0 |  | 0.150 |"
    assert line in capsys.readouterr().out


def test_all_resets_are_played_at_once():
    """The first reset of 60 arms has the goals of three resets of 20."""
    seen = []

    def act(observations):
        seen.append(observations)
        return np.zeros((len(observations), 4))

    assert fidelity.scores_by_reset(act, arms=20, seed=2, resets=3).shape == (3, 20)
    with ReacherEnvironment(20, seed=2, goals="unity") as environment:
        for first in seen[0].reshape(3, 20, 33):
            [answer] = environment.reset().values()
            np.testing.assert_array_equal(answer.vector_observations, first)


def test_the_reset_is_found_at_which_scores_per_arm_were_made(folder, capsys):
    act = fidelity.stored_policy(folder / "actor.npz", LAYERS)
    scores = fidelity.scores_by_reset(act, arms=20, seed=3)[7].tolist()
    (folder / "per_arm.json").write_text(
        json.dumps(
            [
                {
                    "file": "actor.npz",
                    "layers": LAYERS,
                    "unity_seed": 3,
                    "unity_scores_per_arm": scores,
                }
            ]
        )
    )
    out = folder / "found.json"
    assert fidelity.main([str(folder), "--episodes", "1", "--out", str(out)]) == 0
    [found] = json.loads(out.read_text())["per_arm"]
    assert found["reset"] == 7 and found["correlations"][7] == 1
    assert found["unity"] == scores and found["here"] == np.round(scores, 2).tolist()
    assert len(found["correlations"]) == fidelity.RESETS
    assert "most alike at reset 7 of seed 3" in capsys.readouterr().out


def test_a_policy_from_unity_scores_arm_by_arm_as_in_unity(unity_policies):
    """And so on the goals of one reset only, out of twenty.

    Its arms move chaotically, so one number says little: with observations changed by a millionth,
    41 repetitions had correlations from 0.82 to 0.97 at that reset, and 38 of them were above
    0.85. So at least 8 of 15 are, and with them the median (the probability of fewer is 3e-6).
    At other resets, twenty arms that have nothing to do with each other stay below 0.6 with a
    probability of 99.8 % each (Fisher: atanh 0.6 is 2.9 standard deviations of 1 / sqrt(17)).
    """
    [entry] = json.loads((unity_policies / "per_arm.json").read_text())
    act = fidelity.stored_policy(unity_policies / entry["file"], entry["layers"])
    scores, seed = entry["unity_scores_per_arm"], entry["unity_seed"]
    found = fidelity.compared_by_arm(act, scores, seed)
    assert found["reset"] == entry["unity_reset"] == 1
    assert max(np.delete(found["correlations"], 1)) < 0.6

    rng, repeated = np.random.default_rng(0), []
    for _ in range(15):

        def nearly(observations):
            return act(observations * (1 + 1e-6 * rng.standard_normal(observations.shape)))

        here = fidelity.scores_by_reset(nearly, len(scores), seed, resets=2)[1]
        repeated.append(np.corrcoef(scores, here)[0, 1])
    assert np.median(repeated) > 0.85


BAD = {
    "no table": (lambda folder: (folder / "policies.json").unlink(), "no .*policies.json.*unity"),
    "no JSON": (
        lambda folder: (folder / "policies.json").write_text("file,score"),
        "policies.json",
    ),
    "no list": (lambda folder: write_table(folder, {}), "policies.json.*valid (list|array)"),
    "no entry": (lambda folder: write_table(folder, [3]), "policies.json.*0"),
    "no score": (
        lambda folder: write_table(folder, [{"file": "actor.npz", "layers": LAYERS}]),
        "policies.json.*a unity_score or unity_scores_per_arm is needed",
    ),
    "no list of scores": (
        lambda folder: write_table(folder, [policy(unity_scores_per_arm=3)]),
        "policies.json.*unity_scores_per_arm.*valid (list|array)",
    ),
    "few scores": (
        lambda folder: write_table(folder, [policy(unity_scores_per_arm=[1, 2])]),
        "policies.json.*unity_scores_per_arm.*at least 5",
    ),
    "equal scores": (
        lambda folder: write_table(folder, [policy(unity_scores_per_arm=[1.0] * 20)]),
        "must not be all the same",
    ),
    "no seed": (
        lambda folder: write_table(folder, [policy(unity_seed=-1)]),
        "policies.json.*unity_seed.*greater than or equal to 0",
    ),
    "second table": (
        lambda folder: (folder / "per_arm.json").write_text("[3]"),
        "per_arm.json.*0",
    ),
    "no file": (lambda folder: write_table(folder, [policy(file="x.npz")]), "no .*x.npz"),
    "other file": (
        lambda folder: write_table(folder, [policy(file="policies.json")]),
        "must be .npz or .safetensors",
    ),
    "no layers": (
        lambda folder: write_table(folder, [policy(layers=[])]),
        r"must make finite actions \(arms, 4\).*made \(20, 33\)",
    ),
    "other layers": (
        lambda folder: write_table(folder, [policy(layers=["fc1", "elu"])]),
        "does not work with layers.*'elu.weight'",
    ),
    "other order": (
        lambda folder: write_table(folder, [policy(layers=["fc2", "fc1"])]),
        "does not work",
    ),
    "damaged": (lambda folder: (folder / "actor.npz").write_bytes(b"weights"), "actor.npz"),
    "random": (
        lambda folder: (folder / "random_policy_scores.json").write_text("[]"),
        "random_policy_scores.json",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_in_the_folder_is_said_before_anything_is_played(
    folder, monkeypatch, capsys, name
):
    damage, message = BAD[name]
    damage(folder)
    monkeypatch.setattr(fidelity, "evaluate_policy", None)
    assert fidelity.main([str(folder)]) == 2
    error = capsys.readouterr().err
    assert re.search(message, error, re.DOTALL), error


@pytest.mark.parametrize("option", [["--episodes", "0"], ["--out", "nowhere/found.json"]])
def test_wrong_options_are_named(folder, capsys, option):
    with pytest.raises(SystemExit):
        fidelity.main([str(folder), *option])
    assert option[0] in capsys.readouterr().err
