"""The runner of the report's trainings: on this machine, and on a Ray cluster that loses a machine.

The tests of the cluster need the extra `ray` and are skipped without it.
"""

from __future__ import annotations

import os
import re
import time

import numpy as np
import pytest

import helpers
from workshop.experiments import runner
from workshop.experiments.runner import Experiment, Run

SCORES = b"episode,score,min,max,seconds\n1,2.0,1.0,3.0,2700.0\n"
SMALL = {"actor_hidden": (8,), "critic_hidden": (8,), "learn_steps": 1, "replay_capacity": 50_000}


def small_runs(number: int) -> list[Run]:
    experiment = Experiment(overrides=SMALL, max_episodes=2, num_agents=2)
    return [Run("small", experiment, seed) for seed in range(number)]


def assert_kept(kept, runs):
    for run in runs:
        assert run.done(kept)
        scores = helpers.read_scores(run.folder(kept) / "scores.csv")
        assert list(scores["episode"]) == [1, 2] and np.isfinite(scores["score"]).all()
        assert helpers.load_hyperparameters(run.folder(kept))["actor_hidden"] == [8]
        assert sorted(os.listdir(run.folder(kept))) == ["hyperparameters.json", "scores.csv"]


def test_every_run_of_the_list_is_valid(notebook):
    """Presets, overrides and their combinations; a name is a folder, or one in another."""
    for name, experiment in runner.EXPERIMENTS.items():
        assert re.fullmatch(r"(\w+/)?[\w.]+", name) and experiment.seeds >= 1
        notebook.make_hyperparameters(experiment.preset, experiment.overrides)
    logs = {Run(name, experiment, 0).file_name for name, experiment in
            runner.EXPERIMENTS.items()}
    assert len(logs) == len(runner.EXPERIMENTS)


def test_each_ablation_changes_something_of_the_default(notebook):
    usual = notebook.Hyperparameters()
    seen = set()
    for name in runner.ABLATIONS:
        settings = notebook.make_hyperparameters(
            "default", runner.EXPERIMENTS[f"ablations/{name}"].overrides)
        assert settings != usual, name
        seen.add(settings.model_dump_json())
    assert len(seen) == len(runner.ABLATIONS)  # and no two the same


def test_what_is_done_is_not_run_again(monkeypatch, tmp_path, capsys):
    """And a run that fails is told by name, while the others go on."""
    for seed in (0, 2):
        Run("pendulum", runner.EXPERIMENTS["pendulum"], seed).keep(
            {"scores.csv": SCORES}, tmp_path)
    monkeypatch.setattr(runner.Run, "command", lambda run, out: [
        "python3", "-c", "import sys; sys.exit('the reason')"])
    arguments = ["--only", "pendulum", "--kept", str(tmp_path), "--out", str(tmp_path / "out")]
    assert runner.main([*arguments, "--list"]) == 0
    assert capsys.readouterr().out.split("\n")[:4] == [
        *(f"{f'pendulum seed {seed}':44} {state}"
          for seed, state in enumerate(("done", "to do", "done"))),
        "2 of 3 runs done, 1.5 hours of training by their score files"]
    assert runner.main(arguments) == 1
    printed = capsys.readouterr().out
    assert "1/1 pendulum seed 1: FAILED" in printed and "the reason" in printed
    assert (tmp_path / "pendulum/seed0/scores.csv").read_bytes() == SCORES


def test_ray_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(ModuleNotFoundError, match=r"'\.\[ray\]'"):
        next(runner.train_on_ray(small_runs(1), "local"))


def test_a_run_on_this_machine_keeps_its_files(tmp_path):
    runs = small_runs(1)
    assert runner.keep_all(runner.train_here(runs, tmp_path / "out", 1), 1, tmp_path) == 0
    assert_kept(tmp_path, runs)


def test_a_cluster_finishes_all_runs_though_a_machine_dies(tmp_path):
    """Two machines, each a raylet of its own; one is killed while it trains."""
    pytest.importorskip("ray", reason="Ray is an extra")
    from ray.cluster_utils import Cluster

    runs = small_runs(4)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
        outcomes = runner.train_on_ray(runs, cluster.address)
        first, files = next(outcomes)  # so both machines are in the middle of something
        first.keep(files, tmp_path)
        time.sleep(2)
        cluster.remove_node(nodes[1], allow_graceful=False)
        assert runner.keep_all(outcomes, 3, tmp_path) == 0
    finally:
        cluster.shutdown()
    assert_kept(tmp_path, runs)
