"""Files, plots and pictures around the agent."""

from __future__ import annotations

import io
import json
import os
import random

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from torch import nn

import helpers
from reacher import ReacherEnvironment, drawing
from reacher.files import write_whole
from tutorial.run_files import save_hyperparameters, save_networks, to_bytes
from tutorial.scores import ScoreFile, first_at

BRAIN = "ReacherBrain"
HEADER = "episode,score,min,max,seconds\n"


def network(hidden=3):
    return nn.Sequential(nn.Linear(2, hidden), nn.BatchNorm1d(hidden))


# ------------------------------------------------------------------------- environments and seeds


def test_an_empty_location_is_the_embedded_environment():
    with helpers.open_environment() as env:
        assert isinstance(env, ReacherEnvironment) and env.num_agents == 20
    with helpers.open_environment("", num_agents=3, seed=5) as env:
        first = env.reset()[BRAIN].vector_observations
    with ReacherEnvironment(num_agents=3, seed=5) as env:
        np.testing.assert_array_equal(env.reset()[BRAIN].vector_observations, first)


def test_one_seed_seeds_every_source_of_chance():
    def draw(seed):
        generator = helpers.seed_everything(seed)
        return generator.random(), random.random(), np.random.random(), torch.rand(1).item()

    first, other = draw(3), draw(4)
    assert draw(3) == first
    assert all(a != b for a, b in zip(first, other, strict=True))
    assert len(draw(2**40)) == 4  # NumPy's own seed has 32 bits


def test_versions_name_what_the_numbers_depend_on():
    versions = helpers.versions()
    assert versions["torch"].startswith(torch.__version__.split("+")[0])
    assert {"python", "numpy", "mujoco", "numba"} <= versions.keys()


# ----------------------------------------------------------------------------------------- writing


def test_a_file_is_written_whole(tmp_path):
    path = tmp_path / "file"
    write_whole(path, b"old and long")
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch, failing):
    path = tmp_path / "file"
    write_whole(path, b"old")

    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, failing, full)
    with pytest.raises(OSError, match="no space"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"


def test_run_folders_are_named_after_preset_and_seed(tmp_path):
    assert helpers.run_folder(tmp_path, "default", 3) == tmp_path / "default" / "seed3"


# ----------------------------------------------------------------------------------------- scores


def test_scores_are_on_disk_after_every_episode(tmp_path):
    file = ScoreFile(tmp_path / "new" / "folder")
    assert file.path.read_text() == HEADER
    file.append(1, np.array([0.5, 1.0, 3.0]), 2.25)
    assert file.path.read_text() == HEADER + "1,1.500000,0.500000,3.000000,2.250\n"
    file.append(2, np.array([30.0, 31.0]), 4.5)
    scores = helpers.read_scores(file.path)
    assert list(scores) == ["episode", "score", "min", "max", "seconds"]
    assert {name: column.tolist() for name, column in scores.items()} == {
        "episode": [1, 2],
        "score": [1.5, 30.5],
        "min": [0.5, 30],
        "max": [3, 31],
        "seconds": [2.25, 4.5],
    }


def test_a_new_training_begins_a_new_file(tmp_path):
    ScoreFile(tmp_path).append(1, np.ones(2), 1.0)
    assert ScoreFile(tmp_path).path.read_text() == HEADER


@pytest.mark.parametrize(
    "content, message",
    [
        ("", "does not begin with the columns"),
        ("episode,score\n1,2\n", "does not begin with the columns"),
        ("1,2,3,4,5\n", "does not begin with the columns"),
        (HEADER, "no episode yet"),
        (HEADER + "1,0.5,0.1,0.9,2.0\n2,0.6", "cut or holds no numbers"),
        (HEADER + "1,0.5,0.1", "scores.csv"),
        (HEADER + "1,0.5,0.1,0.9,2.", "cut or holds no numbers"),  # before the end of the number
        (HEADER + "1,0.5,0.1,0.9,2.0,7\n", "scores.csv"),
        (HEADER + "1,0.5,none,0.9,2.0\n", "cut or holds no numbers"),
        (HEADER + "\n", "scores.csv"),
        (HEADER + "1,nan,0.1,0.9,2.0\n", "not finite"),
        (HEADER + "1,0.5,0.1,inf,2.0\n", "not finite"),
        (HEADER + "1,0.5,0.1,0.9,2.0\n1,0.5,0.1,0.9,3.0\n", "count 1, 2, 3"),
        (HEADER + "2,0.5,0.1,0.9,2.0\n1,0.5,0.1,0.9,3.0\n", "count 1, 2, 3"),
        (HEADER + "1,0.5,0.1,0.9,2.0\n3,0.5,0.1,0.9,3.0\n", "count 1, 2, 3"),
        (HEADER + "-1,0.5,0.1,0.9,2.0\n", "count 1, 2, 3"),
        (HEADER + "1.5,0.5,0.1,0.9,2.0\n", "count 1, 2, 3"),
    ],
)
def test_a_damaged_score_file_is_a_clear_error(tmp_path, content, message):
    path = tmp_path / "scores.csv"
    path.write_text(content)
    with pytest.raises(ValueError, match=message) as error:
        helpers.read_scores(path)
    assert str(path) in str(error.value)


def test_a_missing_score_file_is_a_clear_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="train first"):
        helpers.read_scores(tmp_path / "scores.csv")


def test_all_kept_scores_are_read():
    paths = list(helpers.CHECKPOINTS.glob("**/scores.csv"))
    assert paths
    for path in paths:
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


@pytest.mark.parametrize("reward_threshold", [-150.0, 0.0, 0.5, 90.0])
def test_solved_by_the_mark_of_an_environment(reward_threshold):
    assert helpers.solved_at([reward_threshold] * 100, reward_threshold) == 100
    assert helpers.solved_at([reward_threshold - 0.01] * 300, reward_threshold) is None


def test_without_a_mark_nothing_is_solved():
    assert helpers.solved_at([1e9] * 200, None) is None


def test_solved_needs_a_full_window_of_100_episodes():
    assert helpers.solved_at([40.0] * 99) is None
    assert helpers.solved_at([30.0] * 100) == 100
    assert helpers.solved_at([0.0] + [30.0] * 100) == 101
    assert helpers.solved_at([]) is None


# ------------------------------------------------------------------------- weights, hyperparameters


def test_networks_come_back_bit_for_bit(tmp_path):
    torch.manual_seed(0)
    actor, critic = network(), network(4)
    actor(torch.randn(8, 2))  # moves the running statistics
    save_networks(tmp_path, "_best", actor=actor, critic=critic)
    assert sorted(os.listdir(tmp_path)) == ["actor_best.safetensors", "critic_best.safetensors"]
    for name, saved in (("actor", actor), ("critic", critic)):
        loaded = network(saved[0].out_features)
        helpers.load_network(tmp_path / f"{name}_best.safetensors", loaded)
        for key, value in saved.state_dict().items():
            assert torch.equal(loaded.state_dict()[key], value), key


def test_networks_with_shared_memory_can_be_saved(tmp_path):
    """safetensors refuses tensors that share memory, so copies are saved."""
    layer = nn.Linear(2, 2)
    tied = nn.Sequential(layer, layer)
    save_networks(tmp_path, actor=tied)
    helpers.load_network(tmp_path / "actor.safetensors", nn.Sequential(layer, layer))


def test_weights_that_cannot_be_loaded_are_clear_errors(tmp_path):
    save_networks(tmp_path, actor=network())
    path = tmp_path / "actor.safetensors"
    whole = path.read_bytes()
    with pytest.raises(FileNotFoundError, match="train first"):
        helpers.load_network(tmp_path / "critic.safetensors", network())
    for other in (network(5), nn.Linear(2, 3)):
        with pytest.raises(ValueError, match="another network"):
            helpers.load_network(path, other)
    for damaged in (whole[:-10], whole[:20], b"", b"not safetensors at all"):
        path.write_bytes(damaged)
        before = network()
        kept = [value.clone() for value in before.state_dict().values()]
        with pytest.raises(ValueError, match="damaged"):
            helpers.load_network(path, before)
        assert all(map(torch.equal, kept, before.state_dict().values()))


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_numbers_that_are_no_weights_are_not_loaded(tmp_path, value):
    tensors = network().state_dict()
    tensors["0.weight"] = torch.full_like(tensors["0.weight"], value)
    path = tmp_path / "actor.safetensors"
    write_whole(path, to_bytes(tensors))
    target = network()
    before = {name: tensor.clone() for name, tensor in target.state_dict().items()}
    with pytest.raises(ValueError, match="holds no weights: 0.weight is not finite") as error:
        helpers.load_network(path, target)
    assert str(path) in str(error.value)
    assert all(torch.equal(before[name], tensor) for name, tensor in target.state_dict().items())


def test_weights_of_another_network_change_nothing(tmp_path):
    """Of those that would fit neither."""
    other = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 4))
    save_networks(tmp_path, actor=other)
    target = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 5))
    before = {name: tensor.clone() for name, tensor in target.state_dict().items()}
    with pytest.raises(ValueError, match=r"another network(?s:.*)1.bias.*\[4\].*\[5\]"):
        helpers.load_network(tmp_path / "actor.safetensors", target)
    assert all(torch.equal(before[name], tensor) for name, tensor in target.state_dict().items())


def test_an_agent_that_is_not_kept_is_a_clear_error_that_names_those_that_are(tmp_path):
    for name in ("default", "fast"):
        folder = helpers.run_folder(tmp_path, name, 0)
        folder.mkdir(parents=True)
        save_networks(folder, "_best", actor=network())
    helpers.require_pretrained(folder)
    with pytest.raises(FileNotFoundError, match="these can be shown: default seed0, fast seed0;"):
        helpers.require_pretrained(helpers.run_folder(tmp_path, "fast", 1))


def test_hyperparameters_come_back_with_seed_and_versions(tmp_path):
    save_hyperparameters(tmp_path, {"n_step": 3, "actor_hidden": (8, 4)}, seed=7)
    content = json.loads((tmp_path / "hyperparameters.json").read_text())
    assert content["seed"] == 7 and content["versions"] == helpers.versions()
    assert helpers.load_hyperparameters(tmp_path) == {"n_step": 3, "actor_hidden": [8, 4]}


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"hyperparameters"'])
def test_damaged_hyperparameters_are_a_clear_error(tmp_path, content):
    (tmp_path / "hyperparameters.json").write_text(content)
    with pytest.raises(ValueError, match="hyperparameters.json is damaged"):
        helpers.load_hyperparameters(tmp_path)


def test_missing_hyperparameters_are_a_clear_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="train first"):
        helpers.load_hyperparameters(tmp_path)


# ---------------------------------------------------------------------------------------- pictures


def observed(agents=12, decisions=30, seed=0):
    """An environment in motion, and its observations after each decision."""
    env = ReacherEnvironment(agents, seed=seed)
    generator = np.random.default_rng(seed)
    frames = [env.reset()[BRAIN].vector_observations]
    for _ in range(decisions):
        actions = generator.uniform(-1, 1, (agents, 4))
        frames.append(env.step(actions)[BRAIN].vector_observations)
    return env, frames


def test_arm_points_are_where_the_physics_has_them():
    env, frames = observed()
    points = drawing.arm_points(frames[-1])
    # float32 observations of up to 14 m are exact to 1e-6.
    np.testing.assert_allclose(points["hand"], env._task.physics.hand, atol=1e-5)
    assert np.abs(points["hand"] - [0, -13, 0]).max() > 1  # they have moved
    # The elbow, 3 m from both centres and 6 m from the hand.
    for end, start, length in (
        ("elbow", frames[-1][:, 0:3], 3),
        ("elbow", frames[-1][:, 13:16], 3),
        ("elbow", points["hand"], 6),
        ("elbow", [0, 0.02, 0], 7.02),
    ):
        np.testing.assert_allclose(np.linalg.norm(points[end] - start, axis=1), length, atol=1e-5)
    np.testing.assert_array_equal(points["goal"], frames[-1][:, 26:29])
    assert not points["base"].any()


def test_arm_points_take_any_leading_axes():
    _, frames = observed(agents=3, decisions=4)
    together = drawing.arm_points(np.array(frames))
    for name, points in drawing.arm_points(frames[2]).items():
        assert together[name].shape == (5, 3, 3)
        np.testing.assert_array_equal(together[name][2], points)


@pytest.mark.parametrize("agents", [1, 12])
def test_the_animation_is_an_animated_png_of_all_frames(agents):
    _, frames = observed(agents, decisions=5)
    content = helpers.animated_png(frames)
    assert content.startswith(b"\x89PNG\r\n\x1a\n") and b"acTL" in content
    picture = Image.open(io.BytesIO(content))
    assert picture.is_animated and picture.n_frames == len(frames)
    assert picture.info["loop"] == 0  # for ever
    seen = []
    for k in range(picture.n_frames):
        picture.seek(k)
        assert picture.info["duration"] == 160
        seen.append(np.asarray(picture.convert("RGBA")))
    assert all(
        (one != other).any()  # it moves
        for one, other in zip(seen[:-1], seen[1:], strict=True)
    )
    assert (np.array(seen)[:, [0, -1], [0, -1], 3] == 0).all()  # a card with rounded corners
    assert not plt.get_fignums()  # and leaves no figure open


def test_a_goal_changes_its_colour_where_the_hand_touches_it():
    """The drawing's rule is the reward's: centres within 3.5 m."""
    _, frames = observed(agents=2, decisions=0)
    observations = frames[0].copy()
    observations[0, 26:29] = [0, -13 + 3.4, 0]
    observations[1, 26:29] = [0, -13 + 3.6, 0]
    figure, axes = plt.subplots()
    drawing.draw_arms(axes, observations)
    touched, apart = axes.collections[0].get_facecolors()
    np.testing.assert_allclose(touched[:3], plt.matplotlib.colors.to_rgb(drawing.TOUCHED_GOAL))
    assert not np.allclose(touched, apart)
    plt.close(figure)


@pytest.mark.parametrize(
    "reward_threshold, first, solved",
    [(30.0, 2, 101), (20.0, 1, 100), (41.0, None, None), (None, None, None)],
)
def test_the_mark_is_the_environments(reward_threshold, first, solved):
    scores = [25.0] + [35.0] * 99 + [35.0]
    scores[2:7] = [-65.0] * 5  # so that the first full window averages 29.9, the second 30.0
    assert first_at(scores, reward_threshold) == first
    assert helpers.solved_at(scores, reward_threshold) == solved
