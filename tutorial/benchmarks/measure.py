"""Timing, machine and results: what all rows of the benchmarks share."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import timeit
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import psutil
import torch

from reacher.files import write_whole
from tutorial.training.randomness import versions

REPETITIONS = 7  # of each short measurement
SEEDS = 5  # trainings of each kind
RESULTS = Path(__file__).with_name("results.json")
PACKAGES = ("torch", "numpy", "numba", "mujoco", "stable-baselines3", "gymnasium", "jax", "sbx-rl")


@dataclass(frozen=True)
class Options:
    """How much is measured.

    Attributes:
        quick: tiny sizes, which check the code and mean nothing as numbers.
    """

    quick: bool = False

    def size(self, full: int, quick: int) -> int:
        """`full`, or `quick` where only the code is checked."""
        return quick if self.quick else full


# ------------------------------------------------------------------------------------------ timing


def time_in_turn(
    calls: Mapping[str, Callable[[], object]], options: Options
) -> dict[str, list[float]]:
    """Mean seconds of a call, in each repetition of 0.2 s or more, of each candidate.

    Candidates take turns (A B C, C B A, ...), so that the machine's moods meet them all.
    """
    timers = {name: timeit.Timer(call) for name, call in calls.items()}
    numbers = {name: 1 if options.quick else timer.autorange()[0] for name, timer in timers.items()}
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for repetition in range(options.size(REPETITIONS, 3)):
        for name in list(calls)[:: 1 if repetition % 2 == 0 else -1]:
            seconds[name].append(timers[name].timeit(numbers[name]) / numbers[name])
    return seconds


@contextlib.contextmanager
def torch_threads(number: int) -> Iterator[None]:
    """Let PyTorch use so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


# ----------------------------------------------------------------------------------------- machine


def here() -> dict[str, dict[str, str]]:
    """What numbers depend on: the machine, and versions of Python and of the packages."""
    machine = {
        "processor": processor(),
        "cores": str(os.cpu_count()),
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
    }
    return {"machine": machine, "versions": versions(PACKAGES)}


def processor() -> str:
    """The processor's name."""
    if platform.system() == "Linux":
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


# ----------------------------------------------------------------------------------------- results


class Recorder:
    """One row of `results.json`: what it measured, with machine and versions.

    Args:
        path: the file; what it holds of other rows stays.
        row: the name of this one.
        where: machine and versions of this run.
        keep: go on with what the file holds of the row if it was measured there.
    """

    def __init__(self, path: Path, row: str, where: Mapping, keep: bool = False) -> None:
        self.path, self.row = path, row
        self.rows = json.loads(path.read_text()) if path.exists() else {}
        old = self.rows.get(row)
        if not (keep and old and old["here"] == where):
            self.rows[row] = {
                "here": where,
                "date": date.today().isoformat(),
                "measured": {},
            }

    def has(self, name: str) -> bool:
        return name in self.rows[self.row]["measured"]

    def put(self, name: str, value: object) -> None:
        """Write one measurement."""
        self.rows[self.row]["measured"][name] = value
        write_whole(self.path, (json.dumps(self.rows, indent=1) + "\n").encode())
        print(f"  {self.row}: {name}", flush=True)
