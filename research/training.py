"""Trainings without a kernel, in processes of their own, whose lines become tables (CSV)."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import filelock
import numpy as np

from reacher.files import write_whole
from tutorial import notebook
from tutorial.paths import PROJECT
from tutorial.randomness import seed_everything
from tutorial.scores import SOLVED_SCORE


def call_apart(command: list[str], **options: Any) -> int:
    """`subprocess.call`, out of reach of the terminal's Ctrl-C, which is for the runner."""
    if sys.platform == "win32":
        return subprocess.call(
            command, **options, creationflags=subprocess.CREATE_NEW_PROCESS_GROUP
        )
    return subprocess.call(command, **options, start_new_session=True)


@dataclasses.dataclass(frozen=True)
class TableRun:
    """One training, with fields that JSON can hold. Its lines go into tables.

    Attributes:
        module: that trains it, by `--train` with the run as JSON.
        arguments: of the module, before that.
        file_name: of its log.
    """

    module: ClassVar[str]

    @property
    def arguments(self) -> tuple[str, ...]:
        return ()

    @property
    def file_name(self) -> str:
        raise NotImplementedError

    def columns(self, table: str) -> tuple[str, ...]:
        """Those of a table by its name."""
        raise NotImplementedError

    def train(self, out: Path) -> dict[str, bytes]:
        """Train in a process of its own; return its lines as the content of tables, by name.

        Args:
            out: folder of logs.

        Raises:
            RuntimeError: it failed; with the end of what it said.
        """
        out.mkdir(parents=True, exist_ok=True)
        log, order = out / f"{self.file_name}.log", json.dumps(dataclasses.asdict(self))
        with tempfile.TemporaryFile() as lines, open(log, "wb") as told:
            failed = call_apart(
                [sys.executable, "-m", self.module, *self.arguments, "--train", order],
                cwd=PROJECT,
                stdout=lines,
                stderr=told,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
            )
            lines.seek(0)
            content = lines.read()
        if failed:
            raise RuntimeError(f"{self}: {log.read_text()[-2000:]}")
        return {name: text.encode() for name, text in json.loads(content).items()}

    def store(self, files: dict[str, bytes], results: Path) -> None:
        """Add the lines to the tables, in order, one process or thread at a time."""
        results.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(results / ".lock"):
            for name, content in files.items():
                lines = read_lines(results / name, self.columns(name))
                lines += csv.reader(content.decode().splitlines())
                lines.sort(key=lambda line: [(int(x) if x.isdigit() else -1, x) for x in line])
                write_whole(results / name, as_csv([self.columns(name), *lines]).encode())


def print_tables(train: Callable[[], Mapping[str, str]]) -> int:
    """What a run's process does: train, and print nothing but the lines, table by table."""
    with contextlib.redirect_stdout(sys.stderr):
        tables = train()
    json.dump(tables, sys.stdout)
    return 0


def read_lines(path: Path, columns: tuple[str, ...]) -> list[list[str]]:
    """Lines of a table, without its head; none where there is no table yet."""
    if not path.exists():
        return []
    head, *lines = csv.reader(path.read_text().splitlines())
    if tuple(head) != columns:
        raise ValueError(f"{path} does not begin with the columns {','.join(columns)}")
    return lines


def as_csv(lines: Iterable[Iterable]) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(lines)
    return file.getvalue()


def train_agent(
    environment: Any,
    settings: Any,
    arms: int,
    seed: int,
    episodes: int,
    after_episode: Callable[[Any, list[float], float], None],
    scale: np.ndarray | None = None,
    reward_threshold: float | None = SOLVED_SCORE,
    engine: str = "compiled",
    definitions: Any = None,
    action_size: int = 4,
    learner: Any = None,
) -> Any:
    """Train an agent as section 6 of the notebook does, all episodes, and keep none of its files.

    Args:
        environment: open, and seeded.
        settings: the notebook's `Hyperparameters`.
        arms: of the environment.
        seed: of networks and noise.
        after_episode: called with the agent, the scores so far, and the seconds of training, those
            of these calls left out.
        scale: usual sizes of the observations; None: the notebook's.
        reward_threshold: the score that counts as solved, or None.
        engine: as the notebook's parameter.
        definitions: of an edited notebook; None: those of the notebook.
        action_size: numbers of an action.
        learner: class of the learner; None: the notebook's `DDPG`.

    Raises:
        KeyboardInterrupt: by Ctrl-C, which the notebook takes for the end of a training.
    """
    definitions = definitions or notebook.definitions()
    generator = seed_everything(seed)
    agent = definitions.Agent(
        definitions.OBSERVATION_SCALE if scale is None else scale,
        action_size,
        settings,
        generator,
        reward_threshold,
        learner=learner or definitions.DDPG,
        engine=engine,
    )
    start, spent = time.perf_counter(), 0.0

    def timed(agent: Any, scores: list[float]) -> None:
        nonlocal spent
        began = time.perf_counter()
        after_episode(agent, scores, began - start - spent)
        spent += time.perf_counter() - began

    with tempfile.TemporaryDirectory() as folder:
        scores = definitions.train_agent(
            environment,
            agent,
            Path(folder) / "run",
            episodes,
            stop_when_solved=False,
            save_every=10**6,
            after_episode=timed,
        )
    if len(scores) < episodes:
        raise KeyboardInterrupt(f"after {len(scores)} of {episodes} episodes")
    return agent
