"""Timing and machine: what all rows of the benchmarks share."""

from __future__ import annotations

import contextlib
import os
import platform
import timeit
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psutil
import torch

from tutorial.randomness import versions

REPETITIONS = 7  # of each short measurement
SEEDS = 5  # trainings of each kind
RESULTS = Path(__file__).with_name("results.json")
PACKAGES = ("torch", "numpy", "numba", "mujoco", "stable-baselines3", "gymnasium", "jax", "sbx-rl")


# ------------------------------------------------------------------------------------------ timing


def time_in_turn(
    calls: Mapping[str, Callable[[], object]], repetitions: int = REPETITIONS
) -> dict[str, list[float]]:
    """Mean seconds of a call, in each repetition of 0.2 s or more, of each candidate.

    Candidates take turns (A B C, C B A, ...), so that the machine's moods meet them all.
    """
    timers = {name: timeit.Timer(call) for name, call in calls.items()}
    numbers = {name: timer.autorange()[0] for name, timer in timers.items()}
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for repetition in range(repetitions):
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
