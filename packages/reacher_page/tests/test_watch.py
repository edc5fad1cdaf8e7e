"""An actor without PyTorch, and the command that writes a page."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save, save_file

from reacher_page import watch
from reacher_page.actor import network_of, read_network
from reacher_page.page import page

PROJECT = Path(__file__).parents[3]

KEPT = PROJECT / "checkpoints" / "whole" / "seed0"
WEIGHTS = load_file(KEPT / "actor_best.safetensors")  # with mirrors and layer normalization


def write_run(folder, suffix="best", weights=None, scores=None):
    """A run folder with an actor, and perhaps a curve."""
    folder.mkdir(exist_ok=True, parents=True)
    save_file(weights or WEIGHTS, folder / f"actor_{suffix}.safetensors")
    if scores:
        lines = [f"{k},{score},{10 * k}" for k, score in enumerate(scores, 1)]
        (folder / "scores.csv").write_text("\n".join(["episode,score,seconds", *lines]))
    return folder


@pytest.mark.parametrize(
    "more, less",
    [
        ({"layers.4.running_mean": np.zeros(128)}, ()),
        ({"layers.5.weight": np.full(1, 0.25)}, ()),  # of PReLU
        ({"layers.5.weight": np.eye(128), "layers.5.bias": np.zeros(128)}, ()),  # no ReLU
        ({}, ("layers.4.weight", "layers.4.bias")),  # a layer without numbers
        ({}, ("layers.0.weight",)),
        ({"layers.3.weight": np.zeros((128, 3))}, ()),
        ({"layers.6.weight": np.zeros((1, 128)), "layers.6.bias": np.zeros(1)}, ()),  # no arms
        ({"layers.3.weight": np.full((128, 128), np.nan)}, ()),
        ({"frame.signs": np.ones((4, 37))}, ()),
    ],
    ids=lambda names: ", ".join(names) or "-",
)
def test_other_networks_are_a_clear_error(more, less):
    """With other layers than linear ones and layer normalization, it would act otherwise here."""
    weights = {name: value for name, value in WEIGHTS.items() if name not in less} | more
    assert network_of(WEIGHTS, "mine")
    with pytest.raises(ValueError, match="^mine is no network of the notebook for arms"):
        network_of(weights, "mine")


@given(st.binary(max_size=300) | st.integers(0, 1500).map(lambda end: save(WEIGHTS)[:end]))
def test_any_bytes_are_weights_or_a_clear_error(tmp_path_factory, content):
    folder = write_run(tmp_path_factory.getbasetemp() / "any")
    (folder / "actor_best.safetensors").write_bytes(content)
    with pytest.raises(ValueError, match=r"damaged|no network of the notebook"):
        read_network(folder / "actor_best.safetensors")


def data_of(content):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', content, re.S)
    return json.loads(found[1])


def test_the_command_writes_a_page_of_all_actors(capsys, tmp_path):
    out = tmp_path / "deep" / "page.html"
    more = ["--tutorial", "index.html", "--agent", "helpers:quick_agent"]
    assert watch.main([str(KEPT), "--out", str(out), *more]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith(out.as_uri()) and not printed.err
    content = out.read_text(encoding="utf-8")
    data, head = data_of(content), content.partition("</head>")[0]
    assert len(content) < 1_200_000 and str(PROJECT) not in content
    assert data["learning"]["settings"]["n_step"] == 3
    assert "self.actor.frame.signs" in data["learning"]["programs"]["state"]
    labels = [actor["label"] for actor in data["actors"]]
    assert sorted(labels) == ["0", "1", "2", "20", "3", "5", "best"] and labels[:3] == [*"012"]
    scores = [actor["score"] for actor in data["actors"]]
    assert scores[:3] == sorted(scores[:3]) and scores[0] < 1 < scores[1] and min(scores[3:]) > 35
    best = data["actors"][labels.index("best")]
    assert data["scores"][best["episode"] - 1] == max(data["scores"]) and data["critic"]
    [what] = re.findall('name="description" content="(.*?)"', head)
    assert re.search(r"of 40 points after \d+ seconds", what)
    assert 'rel="icon"' in head and '<a href="index.html">' in content


@pytest.mark.parametrize(
    "scores, labels, first", [([-9, -2, -4], ["0", "best", "3"], 1), (None, ["0", "3", "best"], 2)]
)
def test_actors_stand_in_order_and_the_best_acts_first(tmp_path, scores, labels, first):
    for suffix in ("best", "last", "episode3"):
        write_run(tmp_path, suffix, scores=scores)
    data = data_of(watch.watch_page(tmp_path, arms=1))
    assert [actor["label"] for actor in data["actors"]] == labels and data["first"] == first
    assert data["critic"] is None


def test_an_actor_that_moves_otherwise_than_in_its_training_is_not_shown(tmp_path):
    """Weights of other activations look like those of the notebook's cells."""
    weights = WEIGHTS | {"layers.6.weight": -WEIGHTS["layers.6.weight"]}
    with pytest.raises(ValueError, match="39.0 in its training.*edited"):
        watch.watch_page(write_run(tmp_path, weights=weights, scores=[2, 39]), arms=1)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["nowhere"], "no actor in nowhere: train one first"),
        ([str(KEPT), "--arms", "0"], "must be from 1"),
        (["empty"], "empty/scores.csv has no columns score and seconds"),
        ([str(KEPT), "--agent", "no_such_module:agent"], "--agent no_such_module:agent gives no"),
        ([str(KEPT), "--agent", "helpers:read_scores"], "--agent helpers:read_scores gives no"),
    ],
)
def test_a_bad_call_is_one_line_and_writes_nothing(
    capsys, tmp_path, monkeypatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    (write_run(tmp_path / "empty") / "scores.csv").write_text("")
    assert watch.main([*arguments, "--out", "page.html"]) == 2
    printed = capsys.readouterr().err
    assert message in printed and not (tmp_path / "page.html").exists()
    assert printed.count("\n") == 1 and printed.startswith("python -m reacher_page.watch: ")


def test_names_are_only_text():
    evil = '</script><script>alert(1)</script>&"><img src=x onerror=alert(2)>'
    untrained = {"label": evil, "network": None, "episode": None, "score": None}
    content = page([untrained], arms=1, what=evil, tutorial=evil)
    assert content.count("<script") == 3 and "<img src=x" not in content
    assert data_of(content)["actors"][0]["label"] == evil
