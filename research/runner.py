"""Trainings side by side, in processes of this machine.

Results are stored by this process, as each training ends. So the same command goes on where it was
interrupted.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any, TypeVar

import filelock

from research import store
from research.training import Row, Training, check, train

Job = TypeVar("Job")


def end_with_parent() -> None:
    """End this process as soon as the one that started it has ended, however that was."""

    def watch() -> None:
        multiprocessing.parent_process().join()  # type: ignore[union-attr]
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def run(
    jobs: Sequence[Job],
    work: Callable[[Job], Any],
    keep: Callable[[Job, Any], None],
    workers: int | None = None,
    every: float = 60.0,
) -> int:
    """Do jobs, keep what each returns as it ends, and return how many failed.

    Args:
        jobs, work: what can be pickled; `keep` is called here.
        workers: processes; None: as many as cores.
        every: s of silence after which a line tells that something happens.
    """
    if not jobs:
        return 0
    failed, began = 0, time.monotonic()
    print(f"{len(jobs)} to do", flush=True)
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers or os.cpu_count(), spawn, end_with_parent) as pool:
        doing = {pool.submit(work, job): job for job in jobs}
        while doing:
            ended, _ = wait(doing, every, FIRST_COMPLETED)
            if not ended:
                print(f"training since {time.monotonic() - began:.0f} s", flush=True)
            for future in ended:
                job, told = doing.pop(future), "done"
                try:
                    keep(job, future.result())
                except Exception as error:  # of the training, or BrokenProcessPool
                    failed += 1
                    told = f"FAILED, {type(error).__name__}: {error}"
                print(f"{len(jobs) - len(doing)}/{len(jobs)} {job}: {told}", flush=True)
    return failed


def run_trainings(trainings: Sequence[Training], folder: Path, workers: int | None = None) -> int:
    """Train what a folder does not have yet; return how many failed.

    Raises:
        ValueError: a setting is not allowed; nothing is trained then.
        filelock.Timeout: another process trains into this folder.
    """
    missing = [one for one in trainings if not is_stored(one, folder)]
    for variant in {one.variant: one for one in missing}.values():
        check(variant)
    folder.mkdir(parents=True, exist_ok=True)

    def keep(one: Training, rows: list[Row]) -> None:
        store.store(path_of(one, folder), rows)

    with filelock.FileLock(folder / ".lock", timeout=0):
        return run(missing, train, keep, workers)


def path_of(training: Training, folder: Path) -> Path:
    return folder / training.plan / f"{training.variant}.csv"


def is_stored(training: Training, folder: Path) -> bool:
    return training.seed in store.stored_seeds(path_of(training, folder))
