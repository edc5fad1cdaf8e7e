"""All trainings that the report draws from, run through the notebook: `make experiments`.

    python -m research --list
    python -m research --workers 2 --only default fast

Each experiment is a preset with overrides over some seeds. A run is the notebook itself, up to its
section on results, executed by papermill in `--out`; its score file and hyperparameters, and for a
preset's first seed the best weights, are then copied to `checkpoints/<experiment>/seed<N>/`. What
is there is not run again, also where another runner has put it there meanwhile, and a run that was
cut, by Ctrl-C or else, goes on from its last state. A stored run with other settings than this list
is an error, until `--redo`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import threading
import time
import warnings
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import filelock
import nbformat
import psutil

from reacher.files import write_whole
from research.training import call_apart
from tutorial.notebook import cell_with_tag, definitions, papermill_command
from tutorial.paths import CHECKPOINTS, NOTEBOOK, PROJECT
from tutorial.run_files import load_about, load_hyperparameters, require_same_run
from tutorial.scores import read_scores
from tutorial.states import TrainingState


@dataclass(frozen=True)
class Experiment:
    """One line of a comparison: what it trains, and on how many seeds."""

    preset: str = "default"
    overrides: dict = field(default_factory=dict)
    seeds: int = 3
    max_episodes: int = 150
    stop_when_solved: bool = True
    num_agents: int = 20
    env_location: str = ""
    engine: str = "auto"
    weights: bool = False  # store the best weights of the first seed


# What the default had before it used the mirrors of the task (doc/mirrors.md):
NO_MIRRORS: dict[str, Any] = {"mirrors": "none", "gradient_steps": 30, "policy_delay": 2}
EXPERIMENTS = {
    "default": Experiment(seeds=10, stop_when_solved=False, weights=True),
    "fast": Experiment("fast", seeds=10, stop_when_solved=False, weights=True),
    "no_mirrors": Experiment(overrides=NO_MIRRORS, seeds=10, stop_when_solved=False),
    "default_torch": Experiment(overrides=NO_MIRRORS, seeds=10, engine="torch"),
    "pendulum": Experiment(
        overrides=NO_MIRRORS
        | {
            "reward_scale": 1.0,
            "gaussian_sigma": 0.2,
            "noise_schedule": "constant",
            "batch_size": 128,
            "gradient_steps": 20,
            "anneal_gradient_steps": 1,
            "anneal_episodes": None,
            "policy_delay": 1,
            "tau": 5e-3,
            "max_samples_per_insert": 256.0,
        },
        num_agents=1,
        env_location="gymnasium:Pendulum-v1",
    ),
}


@dataclass(frozen=True)
class Run:
    """One training: an experiment by name, and a seed."""

    name: str
    experiment: Experiment
    seed: int

    def __str__(self) -> str:
        return f"{self.name} seed {self.seed}"

    def stored(self, results: Path) -> bool:
        """Whether it is there, with these settings or others."""
        return (self.folder(results) / "scores.csv").exists()

    def done(self, results: Path) -> bool:
        """Whether it is there with these settings."""
        return self.stored(results) and not self.changed_settings(results)

    def changed_settings(self, results: Path) -> str:
        """How a stored run's settings differ from these; empty: they do not."""
        experiment, folder = self.experiment, self.folder(results)
        settings = definitions().make_hyperparameters(experiment.preset, experiment.overrides)
        engine = {} if experiment.engine == "auto" else {"engine": experiment.engine}
        try:
            before = load_hyperparameters(folder)
            if (settings.anneal_score, before.get("anneal_score")) == (None, 36.0):  # with the arms
                settings = settings.model_copy(update={"anneal_score": 36.0})
            metadata = (
                load_about(folder)
                | engine
                | {
                    "seed": self.seed,
                    "num_agents": experiment.num_agents,
                    "goal_size": 5.0,
                    "goal_speed": 1.0,
                    "env_location": experiment.env_location,
                }
            )
            with warnings.catch_warnings(action="ignore"):  # other versions of packages may be
                require_same_run(folder, settings, **metadata)
        except (FileNotFoundError, ValueError) as error:
            return str(error)
        return ""

    def folder(self, results: Path) -> Path:
        """Where its files stay."""
        return results / self.name / f"seed{self.seed}"

    @property
    def file_name(self) -> str:
        return f"{self.name.replace('/', '_')}_seed{self.seed}"

    def output(self, out: Path) -> Path:
        """Where the notebook writes them."""
        return out / self.name / self.experiment.preset / f"seed{self.seed}"

    def log(self, out: Path) -> Path:
        return out / f"{self.file_name}.log"

    def training_notebook(self, out: Path) -> Path:
        """The part of the notebook that trains."""
        return out / f"{self.file_name}.part.ipynb"

    def command(self, out: Path) -> list[str]:
        """The papermill command that trains it into `<out>/<name>/`."""
        experiment = self.experiment
        parameters = {
            "preset": experiment.preset,
            "seed": self.seed,
            "num_agents": experiment.num_agents,
            "max_episodes": experiment.max_episodes,
            "overrides": experiment.overrides,
            "stop_when_solved": experiment.stop_when_solved,
            "resume": TrainingState(self.output(out)).exists(),
            "env_location": experiment.env_location,
            "engine": experiment.engine,
            "out_dir": str(out / self.name),
        }
        output = out / f"{self.file_name}.ipynb"
        return papermill_command(self.training_notebook(out), output, parameters)

    def train(self, out: Path) -> dict[str, bytes]:
        """Execute the notebook; return what is to be stored, file by file.

        Raises:
            RuntimeError: the notebook failed; with the end of its log.
        """
        out.mkdir(parents=True, exist_ok=True)
        out, log = out.resolve(), self.log(out)
        write_training_part(self.training_notebook(out))
        with open(log, "w") as file:
            failed = call_apart(
                self.command(out),
                stdout=file,
                stderr=file,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
            )
        if failed:
            raise RuntimeError(f"{log}: " + log.read_text()[-2000:])
        output, names = self.output(out), ["hyperparameters.json", "evaluation.csv", "scores.csv"]
        if self.experiment.weights and self.seed == 0:
            names = ["actor_best.safetensors", "critic_best.safetensors", *names]
        files = {name: (output / name).read_bytes() for name in names}
        shutil.rmtree(output / "state", ignore_errors=True)  # large, and no longer needed
        return files

    def store(self, files: dict[str, bytes], results: Path) -> None:
        """Write the files in the place of any others, the scores last, since they mean done."""
        folder = self.folder(results)
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(folder.iterdir(), key=lambda path: path.name != "scores.csv"):
            path.unlink()
        for name in sorted(files, key="scores.csv".__eq__):
            write_whole(folder / name, files[name])


def write_training_part(path: Path) -> None:
    """Write the notebook up to its training: what follows comes from the runs made here."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    del notebook.cells[cell_with_tag(notebook, "training") + 1 :]
    write_whole(path, nbformat.writes(notebook).encode())


class Training(Protocol):
    """What the functions below run: a `Run`, or a `research.training.TableRun`."""

    @property
    def file_name(self) -> str: ...

    def done(self, results: Path) -> bool: ...

    def train(self, out: Path) -> dict[str, bytes]: ...

    def store(self, files: dict[str, bytes], results: Path) -> None: ...


Outcome = tuple[Training, str | BaseException]  # what to say of the run, or why it failed
Outcomes = Generator[Outcome, None, None]


def is_alive(process: psutil.Process) -> bool:
    """Whether it runs; one that has ended may still be listed until its parent has noticed."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def stop_children(seconds: float = 10) -> None:
    """End what this process has started, with the kernels under it."""
    family = psutil.Process().children(recursive=True)
    for end in (psutil.Process.terminate, psutil.Process.kill):
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                end(process)
        deadline = time.monotonic() + seconds
        while (family := [*filter(is_alive, family)]) and time.monotonic() < deadline:
            time.sleep(0.05)


@contextlib.contextmanager
def signals_ignored() -> Iterator[None]:
    """Let no further Ctrl-C or SIGTERM cut short what ends the children of this process."""
    names = ("SIGINT", "SIGTERM", "SIGHUP")
    before = {
        number: signal.signal(number, signal.SIG_IGN)
        for number in (getattr(signal, name, None) for name in names)
        if number and threading.current_thread() is threading.main_thread()
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def interrupt_on_termination() -> None:
    """Make an end from outside, SIGTERM or SIGHUP, as orderly as Ctrl-C."""
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.default_int_handler)


def train_and_store(run: Training, out: Path, results: Path) -> str:
    """Train a run and store it, unless another runner has it; return which."""
    out.mkdir(parents=True, exist_ok=True)
    try:
        with filelock.FileLock(out / f"{run.file_name}.lock", timeout=0):
            if run.done(results):
                return "done meanwhile by another runner"
            run.store(run.train(out), results)
            return "done"
    except filelock.Timeout:
        return "left to another runner, which trains it"


def train_here(runs: Iterable[Training], out: Path, workers: int, results: Path) -> Outcomes:
    """Train on this machine, some at a time; yield each when it is stored.

    On Ctrl-C, or when it is closed, what waits is canceled and what runs is stopped.
    """
    pool, futures = ThreadPoolExecutor(workers), {}
    try:
        for run in runs:
            futures[pool.submit(train_and_store, run, out, results)] = run
        for future in as_completed(futures):
            yield futures[future], future.exception() or future.result()
    finally:
        with signals_ignored():
            pool.shutdown(wait=False, cancel_futures=True)
            while not all(future.done() for future in futures):  # one may be about to start
                stop_children()
            pool.shutdown()


def report_all(outcomes: Outcomes, number: int, results: Path) -> int:
    """Say of each run how it went, as it comes; return an exit status: 0, 1 where a run failed, or
    130 after Ctrl-C, as shells count it."""
    start, count, failures = time.perf_counter(), 0, 0
    try:
        with contextlib.closing(outcomes):
            for run, outcome in outcomes:
                if isinstance(outcome, BaseException):
                    failures += 1
                    outcome = f"FAILED, {outcome}"
                count += 1
                seconds = time.perf_counter() - start
                print(
                    f"{count}/{number} {run}: {outcome}, {seconds:.0f} s since the start",
                    flush=True,
                )
    except KeyboardInterrupt:
        print(
            f"stopped: {count - failures} of {number} runs are done and stored in {results}; the "
            "same command goes on with the others",
            flush=True,
        )
        return 130
    print(f"{number} runs in {time.perf_counter() - start:.0f} s, {failures} failed")
    return min(1, failures)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=list(EXPERIMENTS), default=list(EXPERIMENTS))
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="runs at a time")
    parser.add_argument(
        "--out",
        type=Path,
        default=PROJECT / "runs" / "experiments",
        help="where runs write",
    )
    parser.add_argument("--results", type=Path, default=CHECKPOINTS, help="where results stay")
    parser.add_argument("--list", action="store_true", help="say what is done, and run nothing")
    parser.add_argument(
        "--redo",
        action="store_true",
        help="train anew what is stored with other settings than the list's",
    )
    options = parser.parse_args(arguments)
    if options.workers < 1:
        parser.error(f"--workers is {options.workers}, and must be at least 1")
    runs = [
        Run(name, EXPERIMENTS[name], seed)
        for name in options.only
        for seed in range(EXPERIMENTS[name].seeds)
    ]
    stored = [run for run in runs if run.stored(options.results)]
    changed = {str(run): why for run in stored if (why := run.changed_settings(options.results))}
    if options.list:
        for run in runs:
            print(f"{run!s:44} {'to do' if run not in stored else changed.get(str(run), 'done')}")
        seconds = [
            read_scores(run.folder(options.results) / "scores.csv")["seconds"][-1] for run in stored
        ]
        print(
            f"{len(seconds)} of {len(runs)} runs done, {sum(seconds) / 3600:.1f} hours of "
            "training by their score files"
        )
        return 0
    if changed and not options.redo:
        parser.error(
            "\n".join([*changed.values(), "--redo trains these anew, and --only chooses others"])
        )
    runs = [run for run in runs if run not in stored or str(run) in changed]
    outcomes = train_here(runs, options.out, options.workers, options.results)
    return report_all(outcomes, len(runs), options.results)
