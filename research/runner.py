"""Trainings on this machine or on a cluster, by Dask.

Results are stored by this process, as each training ends. So the same command goes on where it was
interrupted.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import filelock
from distributed import Client, LocalCluster, WorkerPlugin, as_completed
from tqdm import tqdm

from research import store
from research.training import Row, Training, check, train


class OwnProcess(WorkerPlugin):
    """Does a worker's jobs in a process of their own.

    Beside jobs, Dask's threads draw from `random`, and a learner may draw from it, too.
    """

    def setup(self, worker: Any) -> None:
        spawn = multiprocessing.get_context("spawn")
        worker.executors["default"] = ProcessPoolExecutor(1, spawn, end_with_parent)


def end_with_parent() -> None:
    """End this process as soon as the one that started it has ended, however that was."""

    def wait() -> None:
        multiprocessing.parent_process().join()  # type: ignore[union-attr]
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


@contextlib.contextmanager
def connect(address: str = "", workers: int | None = None) -> Iterator[Client]:
    """A client of the scheduler at an address, or of new processes on this machine.

    Args:
        workers: processes, of which each trains one at a time; None: as many as cores.
    """
    with contextlib.ExitStack() as stack:
        if not address:
            local = {"threads_per_worker": 1, "dashboard_address": None}
            count = workers or os.cpu_count()
            cluster = LocalCluster(n_workers=count, processes=False, **local)
            address = stack.enter_context(cluster)
        client = stack.enter_context(Client(address))
        client.get_versions(check=True)  # warns of workers with other packages
        client.register_plugin(OwnProcess())
        yield client


def run(
    jobs: Sequence[Training],
    keep: Callable[[Training, list[Row]], None],
    address: str = "",
    workers: int | None = None,
) -> int:
    """Train, keep the rows of each training as it ends, and return how many failed.

    Dask gives a job to another worker if its own dies, up to three times, and once more if it
    raises an error.
    """
    if not jobs:
        return 0
    failed = 0
    with connect(address, workers) as client:
        told = f"; dashboard: {client.dashboard_link}" if address else ""
        print(f"{len(jobs)} to do{told}", flush=True)
        doing = {client.submit(train, job, pure=False, retries=1): job for job in jobs}
        bar = tqdm(as_completed([*doing]), total=len(jobs), disable=None)  # in a terminal
        for number, future in enumerate(bar, 1):
            job, told = doing.pop(future), "done"
            try:
                keep(job, future.result())
            except Exception as error:  # of the training, or KilledWorker
                failed += 1
                told = f"FAILED, {type(error).__name__}: {error}"
            tqdm.write(f"{number}/{len(jobs)} {job}: {told}")
    return failed


def run_trainings(
    trainings: Sequence[Training], folder: Path, address: str = "", workers: int | None = None
) -> int:
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
        return run(missing, keep, address, workers)


def path_of(training: Training, folder: Path) -> Path:
    return folder / training.plan / f"{training.variant}.csv"


def is_stored(training: Training, folder: Path) -> bool:
    return training.seed in store.stored_seeds(path_of(training, folder))
