"""An actor without PyTorch, and the command that writes a page."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from reacher.episode import play_episode, random_torques
from research.bugs import BATCH
from tutorial.notebook import load_definitions
from tutorial.paths import NOTEBOOK, PROJECT
from tutorial.run_files import save_hyperparameters, save_networks
from web import watch
from web.actor import actor_of, load_actor, pretrained_actors, read_settings

KEPT, GALLERY = (PROJECT / "checkpoints" / name / "seed0" for name in ("default", "gallery"))
SETTINGS = {"actor_hidden": [8], "noisy_layers": False}
SHAPES = {  # of the weights of such an actor
    "layers.0.factor": 33,
    "layers.1.0.weight": (8, 33),
    "layers.1.0.bias": 8,
    "layers.1.1.weight": 8,
    "layers.1.1.bias": 8,
    "layers.2.weight": (4, 8),
    "layers.2.bias": 4,
}


def some_weights():
    generator = np.random.default_rng(0)
    return {name: generator.normal(size=shape) for name, shape in SHAPES.items()}


def write_run(folder, settings=None, weights=None, suffix="best", **more):
    """A run folder with settings and an actor."""
    folder.mkdir(exist_ok=True, parents=True)
    settings = {**SETTINGS, **(settings or {})}
    (folder / "hyperparameters.json").write_text(
        json.dumps({"format": 1, "hyperparameters": settings, "preset": "mine", "seed": 3, **more})
    )
    weights = some_weights() if weights is None else weights
    save_file(
        {name: np.asarray(value, np.float32) for name, value in weights.items()},
        folder / f"actor_{suffix}.safetensors",
    )
    return folder


# --------------------------------------------------------------------------------------- the actor


@pytest.mark.parametrize(
    "overrides",
    [
        {"mirrors": "none"},
        {"mirrors": "canonical"},
        {"noisy_layers": False},
        {"actor_hidden": [64, 32, 16]},
        {"actor_hidden": [20]},
    ],
    ids=["default", "mirrors", "not noisy", "deep", "one layer"],
)
def test_the_actor_is_the_notebooks(notebook, defaults, tmp_path, overrides):
    """In single precision, whose sums depend on their order: 1e-5 of torques up to 1."""
    settings = defaults(**overrides)
    torch.manual_seed(1)
    network = notebook.Actor(notebook.OBSERVATION_SCALE, 4, settings)
    observations = play_episode(random_torques(0), 20, 0, 100).observations.reshape(-1, 33)
    save_hyperparameters(tmp_path, settings, preset="default", seed=0)
    save_networks(tmp_path, "_best", actor=network)
    with torch.no_grad():
        expected = network(torch.from_numpy(observations)).numpy()
    actions = load_actor(tmp_path)(observations)
    assert np.ptp(expected) > 0.1 and actions.dtype == np.float32
    np.testing.assert_allclose(actions, expected, atol=1e-5)


def test_a_kept_actor_holds_its_goals():
    episode = play_episode(load_actor(KEPT), 5, 1000, 300)
    assert episode.scores.mean() > 0.04 * 300 * 0.9
    assert play_episode(random_torques(0), 5, 1000, 300).scores.mean() < 1


def test_an_actor_needs_neither_torch_nor_the_notebooks_helpers():
    program = (
        "import sys; sys.modules['torch'] = sys.modules['matplotlib'] = None; "
        f"sys.path.insert(0, {str(PROJECT)!r}); "
        "from web.watch import watch_page; "
        f"print(len(watch_page({str(KEPT)!r}, arms=1)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0 and int(done.stdout) > 10_000, done.stderr


def test_actors_of_episodes_are_kept_beside_best_and_last(tmp_path):
    for suffix in ("best", "last", "episode10", "episode2", "episodeX", "target_best"):
        write_run(tmp_path, suffix=suffix)
    assert pretrained_actors(tmp_path) == ["best", "last", "2", "10"]
    seen = np.ones((2, 33))
    np.testing.assert_array_equal(load_actor(tmp_path, "10")(seen), load_actor(tmp_path)(seen))


# -------------------------------------------------------------------------------------- bad input


def test_what_is_missing_is_a_clear_error_that_names_what_there_is(tmp_path):
    with pytest.raises(
        FileNotFoundError, match="no run in .*nowhere: train one first .*checkpoints/default/seed0"
    ):
        load_actor(tmp_path / "nowhere")
    folder = write_run(tmp_path / "run", suffix="episode3")
    with pytest.raises(FileNotFoundError, match="no actor 'best' in .*: it holds 3; 'random'"):
        load_actor(folder)
    for name in ("../../etc/passwd", "3.safetensors", "", "x" * 5000, "\x1b[31m"):
        with pytest.raises(FileNotFoundError, match="no actor") as error:
            load_actor(folder, name)
        assert len(str(error.value)) < 600 and "\x1b" not in str(error.value)
    (folder / "hyperparameters.json").unlink()
    with pytest.raises(FileNotFoundError, match="hyperparameters.json"):
        load_actor(folder, "3")


def test_a_run_of_something_else_is_a_clear_error():
    with pytest.raises(ValueError, match="Pendulum-v1.*not of arms"):
        load_actor(PROJECT / "checkpoints" / "pendulum" / "seed0")


@pytest.mark.parametrize(
    "settings",
    [
        {"actor_hidden": [8, 8]},
        {"mirrors": "canonical"},
    ],
)
def test_weights_of_another_network_are_a_clear_error(tmp_path, settings):
    told = "another network.*33 observations and 4 actions|is none of the notebook's Actor"
    with pytest.raises(ValueError, match=told):
        load_actor(write_run(tmp_path, settings))


@pytest.mark.parametrize(
    "more, less",
    [
        ({"layers.1.1.running_mean": np.zeros(8), "layers.1.1.running_var": np.ones(8)}, ()),
        ({"layers.1.1.num_batches_tracked": np.array(7)}, ()),
        ({"layers.0.running_mean": np.zeros(33)}, ("layers.0.factor",)),
        ({"layers.1.2.weight": np.full(1, 0.25)}, ()),  # of PReLU
        ({}, ("layers.1.1.weight", "layers.1.1.bias")),
        ({}, ("layers.1.1.bias",)),
        ({}, ("layers.0.factor",)),
    ],
    ids=lambda names: ", ".join(names) or "-",
)
def test_the_weights_of_an_edited_actor_are_a_clear_error(more, less):
    """With other layers than linear ones and layer normalization, it would act otherwise here."""
    weights = {name: value for name, value in some_weights().items() if name not in less} | more
    actor_of(some_weights(), SETTINGS, "mine")
    with pytest.raises(ValueError, match="^mine"):
        actor_of(weights, SETTINGS, "mine")


@pytest.mark.parametrize(
    "edit",
    [
        BATCH,
        ("nn.LayerNorm(outputs), nn.ReLU()", "nn.ReLU()"),
        ("nn.LayerNorm(outputs), nn.ReLU()", "nn.LayerNorm(outputs), nn.PReLU()"),
    ],
    ids=["batch", "none", "PReLU"],
)
def test_an_actor_of_edited_cells_is_a_clear_error(defaults, edit):
    cells, settings = load_definitions(NOTEBOOK, [edit]), defaults(actor_hidden=(8,))
    actor = cells.Actor(cells.OBSERVATION_SCALE, 4, settings)
    weights = {name: value.numpy() for name, value in actor.state_dict().items()}
    with pytest.raises(ValueError, match="^mine"):
        actor_of(weights, settings.model_dump(), "mine")


@pytest.mark.parametrize(
    "weights",
    [
        {"layers.1.0.weight": np.full((8, 33), np.nan)},
        {"layers.1.0.weight": np.zeros((8, 3))},
    ],
)
def test_wrong_numbers_are_a_clear_error(tmp_path, weights):
    with pytest.raises(ValueError, match="another network|finite"):
        load_actor(write_run(tmp_path, weights=some_weights() | weights))


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"hyperparameters": 3}',
        '{"hyperparameters": {}}',
        "[" * 100_000,
        json.dumps({"hyperparameters": SETTINGS | {"actor_hidden": []}}),
    ],
)
def test_damaged_settings_are_a_clear_error(tmp_path, content):
    folder = write_run(tmp_path)
    (folder / "hyperparameters.json").write_text(content)
    with pytest.raises(ValueError, match="hyperparameters.json is damaged or of another version"):
        read_settings(folder)


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"no safetensors",
        b"\xff" * 8 + b"{}",
        b"\x80\x04cos\nsystem\n(S'exit 1'\ntR.",
        lambda whole: whole[:-10],
        lambda whole: whole[:30],
    ],
)
def test_hostile_weights_stay_data(tmp_path, damage):
    folder = write_run(tmp_path)
    path = folder / "actor_best.safetensors"
    path.write_bytes(damage(path.read_bytes()) if callable(damage) else damage)
    with pytest.raises(ValueError, match="damaged or no safetensors file"):
        load_actor(folder)


@given(st.binary(max_size=300))
def test_any_bytes_are_weights_or_a_clear_error(tmp_path_factory, content):
    folder = write_run(tmp_path_factory.getbasetemp() / "any")
    (folder / "actor_best.safetensors").write_bytes(content)
    with pytest.raises(ValueError, match=r"damaged|another network"):
        load_actor(folder)


def test_noise_is_not_in_what_is_evaluated():
    """By hand: 0.33 and 0.99 become -1 and 1, up to LayerNorm's epsilon, 5e-5 of them."""
    weights = {
        "layers.0.factor": np.ones(33),
        "layers.1.0.weight": np.outer([1, 3], np.ones(33)),
        "layers.1.0.bias": np.zeros(2),
        "layers.1.1.weight": np.ones(2),
        "layers.1.1.bias": np.zeros(2),
        "layers.2.weight": np.tile([7.0, 0.5], (4, 1)),
        "layers.2.bias": np.zeros(4),
        "layers.2.sigma_weight": np.full((4, 2), 9.0),
        "layers.2.sigma_bias": np.ones(4),
    }
    act = actor_of(weights, {"actor_hidden": [2], "noisy_layers": True}, "test")
    np.testing.assert_allclose(act(np.full((2, 33), 0.01)), np.tanh(0.5), rtol=1e-4)


# ------------------------------------------------------------------------------------- the command


def written(capsys, tmp_path, *arguments):
    out = tmp_path / "deep" / "page.html"
    code = watch.main([*map(str, arguments), "--out", str(out)])
    printed = capsys.readouterr()
    return code, out, printed


def data_of(content):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', content, re.S)
    return json.loads(found[1])


def test_the_command_writes_a_page_of_all_actors(capsys, tmp_path):
    code, out, printed = written(capsys, tmp_path, GALLERY, KEPT)
    assert code == 0 and str(out) in printed.out and not printed.err
    assert out.stat().st_size < 1_000_000
    content = out.read_text()
    data = data_of(content)
    assert [actor["label"] for actor in data["actors"]] == ["0", "1", "2", "3", "5", "20", "best"]
    scores = [actor["score"] for actor in data["actors"]]
    assert scores[:3] == sorted(scores[:3]) and scores[0] < 1 < scores[1] and min(scores[3:]) > 35
    assert data["actors"][-1]["episode"] == 1 + np.argmax(data["scores"]) and data["critic"]
    assert "preset default, seed 0" in content and str(PROJECT) not in content
    assert "://" not in content and content.count("src=") == 1  # the still


def test_actors_stand_in_the_order_of_their_episodes_and_the_best_acts_first(tmp_path):
    for suffix in ("best", "last"):
        run = write_run(tmp_path / "run", suffix=suffix)
    weights = {name: np.ones(shape, np.float32) for name, shape in SHAPES.items()}
    write_run(run, weights=weights, suffix="last")
    for scores, expected, first in (
        ("2\n9\n4\n", [("0", 0), ("best", 2), ("last", 3)], 1),
        (None, [("0", 0), ("last", None), ("best", None)], 2),
    ):
        (run / "scores.csv").unlink(missing_ok=True)
        if scores:
            (run / "scores.csv").write_text("score\n" + scores)
        data = data_of(watch.watch_page(run, arms=1))
        assert [(actor["label"], actor["episode"]) for actor in data["actors"]] == expected
        assert data["first"] == first


def test_goals_are_those_of_the_seed_and_as_large_and_fast_as_asked(capsys, tmp_path):
    run = write_run(tmp_path / "run", suffix="episode3")
    code, out, _ = written(
        capsys, tmp_path, run, "--arms", 2, "--seed", 5, "--goal-size", 8, "--goal-speed", 3
    )
    data = data_of(out.read_text())
    assert code == 0 and [actor["title"] for actor in data["actors"]][1:] == ["3 episodes"]
    assert data["world"] == {"size": 8, "speed": 3} and data["critic"] is None
    goals = play_episode(random_torques(0), 2, 5, 1, goal_speed=3).observations[0][:, [26, 28, 32]]
    angle, share = np.transpose(data["goals"])
    np.testing.assert_allclose(
        goals,
        np.transpose([8 * np.sin(np.radians(angle)), 8 * np.cos(np.radians(angle)), 3 * share]),
        atol=1e-5,
    )


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["nowhere"], "no nowhere"),
        ([KEPT, GALLERY, KEPT], "different labels"),
        ([KEPT, "--arms", "0"], "arms must be from 1 to 40"),
        ([KEPT, "--arms", "41"], "arms must be from 1 to 40"),
        ([KEPT, "--seed", "-1"], "seed must be from 0"),
        ([KEPT, "--goal-size", "-1"], "'goal_size' must be a number from 0"),
        ([PROJECT / "checkpoints" / "pendulum" / "seed0"], "not of arms"),
    ],
)
def test_a_bad_call_is_one_clear_line_and_writes_nothing(capsys, tmp_path, arguments, message):
    code, out, printed = written(capsys, tmp_path, *arguments)
    assert code == 2 and message in printed.err and not out.exists()
    assert printed.err.count("\n") == 1 and printed.err.startswith("python -m web.watch: ")


def test_a_page_that_cannot_be_written_is_named_and_the_one_before_stays(
    capsys, tmp_path, monkeypatch
):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    out = tmp_path / "page.html"
    out.write_text("the one before")
    monkeypatch.setattr(os, "fsync", full)
    assert watch.main(["checkpoints/default/seed0", "--arms", "1", "--out", str(out)]) == 2
    assert "page.html" in capsys.readouterr().err and out.read_text() == "the one before"


def test_names_from_a_runs_files_are_only_text(tmp_path):
    evil = "</script><script>alert(1)</script>&<img src=x onerror=alert(2)>"
    run = write_run(tmp_path / "run", preset=evil)
    content = watch.watch_page(run, arms=1)
    assert content.count("<script") == 2 and "<img src=x" not in content
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in content


def test_a_damaged_critic_or_curve_is_a_clear_error(tmp_path):
    run = write_run(tmp_path / "run")
    (run / "scores.csv").write_text("episode,points\n1,2\n")
    with pytest.raises(ValueError, match=r"scores.csv is damaged: it needs a column score"):
        watch.watch_page(run)
    (run / "scores.csv").unlink()
    save_file({"output.weight": np.zeros((1, 8), np.float32)}, run / "critic_best.safetensors")
    with pytest.raises(ValueError, match="critic_best.safetensors holds the weights of another"):
        watch.watch_page(run)
