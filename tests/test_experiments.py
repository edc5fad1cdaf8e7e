"""The runner of the report's trainings."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import filelock
import numpy as np
import psutil
import pytest
import torch

from research import runner
from research.benchmarks import measure
from research.runner import Experiment, Run
from tutorial.environments import open_environment
from tutorial.notebook import definitions
from tutorial.paths import CHECKPOINTS, PROJECT
from tutorial.randomness import seed_everything, versions
from tutorial.run_files import load_hyperparameters, save_hyperparameters
from tutorial.scores import read_scores

SCORES = b"episode,score,min,max,seconds\n1,2.0,1.0,3.0,2700.0\n"
SMALL = {
    "actor_hidden": (8,),
    "critic_hidden": (8,),
    "gradient_steps": 1,
    "replay_capacity": 50_000,
}


def small_runs(number: int) -> list[Run]:
    experiment = Experiment(overrides=SMALL, max_episodes=2, num_agents=2)
    return [Run("small", experiment, seed) for seed in range(number)]


def store_pendulum(seed, results, **changes):
    """Store files as a training of the list leaves them, the settings with these changes."""
    run = Run("pendulum", runner.EXPERIMENTS["pendulum"], seed)
    run.store({"scores.csv": SCORES, "hyperparameters.json": settings_of(run, **changes)}, results)


def settings_of(run, **changes):
    """The hyperparameters.json of a run."""
    experiment = run.experiment
    settings = definitions().make_hyperparameters(experiment.preset, experiment.overrides)
    with tempfile.TemporaryDirectory() as folder:
        save_hyperparameters(
            Path(folder),
            settings.model_dump() | changes,
            preset=experiment.preset,
            seed=run.seed,
            num_agents=experiment.num_agents,
            env_location=experiment.env_location,
            engine="torch",
            evaluate_every=0,
            goal_size=5.0,
            goal_speed=1.0,
        )
        return (Path(folder) / "hyperparameters.json").read_bytes()


def assert_stored(results, runs):
    for run in runs:
        assert run.stored(results)
        scores = read_scores(run.folder(results) / "scores.csv")
        assert list(scores["episode"]) == [1, 2] and np.isfinite(scores["score"]).all()
        assert load_hyperparameters(run.folder(results))["actor_hidden"] == [8]
        assert sorted(os.listdir(run.folder(results))) == [
            "evaluation.csv",
            "hyperparameters.json",
            "scores.csv",
        ]


def test_every_run_of_the_list_is_valid(notebook):
    """Presets, overrides and their combinations; a name is a folder, or one in another."""
    for name, experiment in runner.EXPERIMENTS.items():
        assert re.fullmatch(r"(\w+/)?[\w.]+", name) and experiment.seeds >= 1
        notebook.make_hyperparameters(experiment.preset, experiment.overrides)
    logs = {Run(name, experiment, 0).file_name for name, experiment in runner.EXPERIMENTS.items()}
    assert len(logs) == len(runner.EXPERIMENTS)


def test_what_is_done_is_not_run_again(monkeypatch, tmp_path, capsys):
    """And a run that fails is told by name, while the others go on."""
    for seed in (0, 2):
        store_pendulum(seed, tmp_path)
    monkeypatch.setattr(
        runner.Run,
        "command",
        lambda run, out: ["python3", "-c", "import sys; sys.exit('the reason')"],
    )
    arguments = ["--only", "pendulum", "--results", str(tmp_path), "--out", str(tmp_path / "out")]
    assert runner.main([*arguments, "--list"]) == 0
    assert capsys.readouterr().out.split("\n")[:4] == [
        *(
            f"{f'pendulum seed {seed}':44} {state}"
            for seed, state in enumerate(("done", "to do", "done"))
        ),
        "2 of 3 runs done, 1.5 hours of training by their score files",
    ]
    assert runner.main(arguments) == 1
    printed = capsys.readouterr().out
    assert "1/1 pendulum seed 1: FAILED" in printed and "the reason" in printed
    assert (tmp_path / "pendulum/seed0/scores.csv").read_bytes() == SCORES


def test_every_kept_run_has_the_settings_of_the_list(capsys):
    assert runner.main(["--list"]) == 0
    states = re.findall(r"^\S+ seed \d+ +(.+)$", capsys.readouterr().out, re.MULTILINE)
    number = sum(experiment.seeds for experiment in runner.EXPERIMENTS.values())
    assert len(states) == number and set(states) <= {"done", "to do"}


def test_a_kept_run_with_other_settings_is_trained_anew_only_when_told(
    monkeypatch, tmp_path, capsys
):
    """Its old files, one of which the new run does not write, go with it."""
    for seed in range(3):
        store_pendulum(seed, tmp_path, **({"n_step": 7} if seed == 1 else {}))
    changed = Run("pendulum", runner.EXPERIMENTS["pendulum"], 1)
    (changed.folder(tmp_path) / "actor_best.safetensors").write_bytes(b"of the other settings")
    new = settings_of(changed)
    trained = []

    def train(run, out):
        trained.append(run.seed)
        return {"scores.csv": SCORES, "hyperparameters.json": new}

    monkeypatch.setattr(runner.Run, "train", train)
    arguments = ["--only", "pendulum", "--results", str(tmp_path), "--out", str(tmp_path / "out")]
    assert runner.main([*arguments, "--list"]) == 0
    assert "n_step is 3 and was 7" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        runner.main(arguments)
    said = capsys.readouterr().err
    assert "n_step is 3 and was 7" in said and "--redo" in said and trained == []
    assert runner.main([*arguments, "--redo"]) == 0
    assert trained == [1] and not changed.changed_settings(tmp_path)
    assert sorted(os.listdir(changed.folder(tmp_path))) == ["hyperparameters.json", "scores.csv"]


@pytest.mark.parametrize("workers", ["0", "-1"])
def test_no_workers_are_an_error(workers, capsys):
    with pytest.raises(SystemExit):
        runner.main(["--workers", workers])
    assert f"--workers is {workers}, and must be at least 1" in capsys.readouterr().err


def test_a_kept_file_is_whole_or_is_not_there(monkeypatch, tmp_path):
    """The disk is full in the middle of the scores: nothing is left that reads as done."""
    run = Run("pendulum", runner.EXPERIMENTS["pendulum"], 0)
    monkeypatch.setattr("os.fsync", lambda file: full(os.fstat(file).st_size))

    def full(size):
        if size == len(SCORES):
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        run.store({"scores.csv": SCORES, "hyperparameters.json": b"{}"}, tmp_path)
    assert os.listdir(run.folder(tmp_path)) == ["hyperparameters.json"] and not run.stored(tmp_path)


JOB = """
import subprocess, sys
from pathlib import Path
source, seed = Path(sys.argv[1]), int(sys.argv[2])
(source.parents[2] / f"began{seed}").touch()
if seed >= 2:  # like papermill: a kernel in a session of its own, which does not hear Ctrl-C
    sleep = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
    command = [sys.executable, "-c", sleep]
    subprocess.Popen(command, start_new_session=True).wait()
source.mkdir(parents=True)
for name in ("hyperparameters.json", "evaluation.csv", "scores.csv"):
    (source / name).write_text("content")
"""
JOBS = """
import sys
from pathlib import Path
from research import runner
from research.runner import Experiment, Run

out, kept, job = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
Run.command = lambda run, out: [sys.executable, "-c", job, str(run.output(out)), str(run.seed)]
runs = [Run("small", Experiment(), seed) for seed in range(20)]
runner.stop_children.__defaults__ = (4,)  # seconds until it kills
runner.interrupt_on_termination()
sys.exit(runner.report_all(runner.train_here(runs, out, 2, kept), 20, kept))
"""


@pytest.mark.skipif(os.name == "nt", reason="one process cannot press another's Ctrl-C there")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_cancels_what_waits_and_stops_what_runs(number, tmp_path):
    """Twenty jobs, two at a time: two end, two are cut with the processes under them.

    These take their time to end, and a second signal does not cut that short.
    """
    out, kept = tmp_path / "out", tmp_path / "kept"
    process = subprocess.Popen(
        [sys.executable, "-c", JOBS, str(out), str(kept), JOB],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    family, end = [], time.monotonic() + 120
    try:
        while len(family) < 4 or not all((out / f"began{seed}").exists() for seed in (2, 3)):
            assert process.poll() is None and time.monotonic() < end, process.communicate()
            time.sleep(0.1)
            family = psutil.Process(process.pid).children(recursive=True)
        os.killpg(process.pid, number)  # as a terminal does
        time.sleep(1)
        os.killpg(process.pid, number)
        printed, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        alive = [*filter(runner.is_alive, family)]
        for left in alive:
            left.kill()
    assert "stopped: 2 of 20 runs are done and stored" in printed
    assert process.returncode == 130 and "Traceback" not in errors
    assert alive == []
    assert {path.name for path in out.glob("began*")} == {f"began{seed}" for seed in range(4)}
    assert {path.name for path in (kept / "small").iterdir()} == {"seed0", "seed1"}


PRINT_HANDLER = """
import runpy, signal, sys
from research import runner
runner.report_all = lambda *_: print(signal.getsignal(signal.SIGTERM) is signal.default_int_handler)
sys.argv = ["program", "--results", sys.argv[1]]
runpy.run_module("research", run_name="__main__")
"""


def test_the_runner_takes_a_termination_for_an_interrupt(tmp_path):
    command = [sys.executable, "-c", PRINT_HANDLER, str(tmp_path)]
    printed = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True)
    assert printed.stdout.splitlines()[-1:] == ["True"], printed.stderr


@pytest.mark.skipif(os.name == "nt", reason="no process can be asked to end there")
def test_a_command_hands_a_termination_on(tmp_path):
    """`make experiments` is a process of its own around the runner."""
    child = "import os, pathlib, time; pathlib.Path('pid').write_text(str(os.getpid())); "
    child = f"import os; os.chdir({str(tmp_path)!r}); {child}time.sleep(600)"
    program = f"import sys; from tutorial import tasks; tasks.call(sys.executable, '-c', {child!r})"
    process, pid = subprocess.Popen([sys.executable, "-c", program], cwd=PROJECT), tmp_path / "pid"
    end = time.monotonic() + 60
    while not (pid.exists() and pid.read_text()):
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.05)
    started = psutil.Process(int(pid.read_text()))
    process.terminate()
    try:
        assert process.wait(timeout=30) != 0 and not runner.is_alive(started)
    finally:
        if runner.is_alive(started):
            started.kill()


def test_a_run_that_another_runner_has_is_not_trained(monkeypatch, tmp_path):
    """Seed 0 was stored meanwhile, seed 1 is being trained, seed 2 is free."""
    runs, out = [Run("pendulum", runner.EXPERIMENTS["pendulum"], seed) for seed in range(3)], "out"
    trained = []

    def train(run, out):
        trained.append(run.seed)
        return {"scores.csv": SCORES, "hyperparameters.json": settings_of(run)}

    monkeypatch.setattr(Run, "train", train)
    store_pendulum(0, tmp_path)
    (tmp_path / out).mkdir()
    with filelock.FileLock(tmp_path / out / f"{runs[1].file_name}.lock"):
        outcomes = {
            run.seed: outcome
            for run, outcome in runner.train_here(runs, tmp_path / out, 3, tmp_path)
        }
    assert trained == [2] and runs[2].done(tmp_path) and not runs[1].stored(tmp_path)
    assert [outcomes[seed].split(",")[0] for seed in range(3)] == [
        "done meanwhile by another runner",
        "left to another runner",
        "done",
    ]


def test_the_code_gives_the_stored_scores(notebook, tmp_path):
    """An episode of `default_torch`, seed 0, to the last digit that its score file holds.

    Motion is chaotic, so other versions or another kind of processor give other scores; it is
    skipped there. All but the first fifty decisions learn.
    """
    run = Run("default_torch", runner.EXPERIMENTS["default_torch"], 0)
    metadata = json.loads((run.folder(CHECKPOINTS) / "hyperparameters.json").read_text())
    here = measure.processor(), torch.backends.cpu.get_cpu_capability()
    if metadata["versions"] != versions() or here != ("Intel(R) Xeon(R) Processor", "AVX512"):
        pytest.skip("other versions, or another processor, than those of the stored scores")
    settings = notebook.make_hyperparameters(run.experiment.preset, run.experiment.overrides)
    arms = run.experiment.num_agents
    with open_environment(run.experiment.env_location, arms, run.seed) as environment:
        generator = seed_everything(run.seed)
        scale = notebook.OBSERVATION_SCALE
        agent = notebook.Agent(scale, 4, settings, generator, engine="torch")
        scores = notebook.train_agent(environment, agent, tmp_path / "run", 1)
    assert agent.num_updates > 2_000
    stored = read_scores(run.folder(CHECKPOINTS) / "scores.csv")["score"][:1]
    np.testing.assert_allclose(scores, stored, rtol=0, atol=5e-7)  # six decimals in the file


def test_a_run_on_this_machine_keeps_its_files(tmp_path):
    runs = small_runs(1)
    assert (
        runner.report_all(runner.train_here(runs, tmp_path / "out", 1, tmp_path), 1, tmp_path) == 0
    )
    assert_stored(tmp_path, runs)
