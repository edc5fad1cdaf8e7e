"""The stored runs of the report's agent: what is kept of which networks, and once."""

from __future__ import annotations

from safetensors.numpy import load_file

from reacher import task
from research import report
from tutorial.run import load_run


def test_a_run_is_kept_once_for_its_settings(tmp_path, monkeypatch):
    monkeypatch.setattr(task, "EPISODE_DECISIONS", 14)
    settings = {"engine": "torch", "hidden_units": 8, "learning_starts": 20, "batch_size": 16}
    monkeypatch.setattr(report, "make_settings", lambda model, *_: model(**settings))
    kept = tmp_path / "whole" / "seed0"
    assert report.train("whole", 0, 5, tmp_path) and report.train("default", 1, 5, tmp_path)
    assert {file.name for file in kept.iterdir()} == {*report.TABLES, *report.WEIGHTS}
    assert {file.name for file in (tmp_path / "default/seed1").iterdir()} == {*report.TABLES}
    names = load_file(kept / "actor_best.safetensors")
    assert {"frame.signs", "layers.1.weight", "layers.3.sigma_weight"} <= {*names}
    assert load_run(kept)["networks"] == "whole_networks"
    assert len((kept / "evaluation.csv").read_text().splitlines()) == 2
    assert not report.train("whole", 0, 5, tmp_path)
    settings["tau"] = 0.5
    assert report.train("whole", 0, 5, tmp_path)
    assert load_run(kept)["hyperparameters"]["tau"] == 0.5
