"""Timing, statistics, machine and results: what all rows of the benchmarks share."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from reacher.files import write_whole

RESULTS = Path(__file__).with_name("results.json")
PACKAGES = (
    "torch",
    "numpy",
    "numba",
    "mujoco",
    "stable-baselines3",
    "gymnasium",
    "cpprb",
    "tianshou",
    "jax",
    "sbx-rl",
)


# ----------------------------------------------------------------------------------------- options


@dataclass(frozen=True)
class Options:
    """How much is measured.

    Attributes:
        quick: tiny sizes, which check the code and mean nothing as numbers.
        repetitions: of each short measurement.
        seeds: trainings of each kind.
        time_limit: of one training of a baseline, s.
    """

    quick: bool = False
    repetitions: int = 7
    seeds: int = 5
    time_limit: float = 300.0

    def size(self, full: int, quick: int) -> int:
        """`full`, or `quick` where only the code is checked."""
        return quick if self.quick else full

    @property
    def call_seconds(self) -> float:
        """Seconds that one repetition of a short measurement takes, about."""
        return 0.002 if self.quick else 0.3


class Target(NamedTuple):
    """A number that was set beforehand.

    Attributes:
        what: the quantity and its bound.
        measured: what came out, in words.
        reached: None where it could not be measured.
    """

    what: str
    measured: str
    reached: bool | None


# ------------------------------------------------------------------------------------------ timing


def calls_within(call: Callable[[], object], seconds: float) -> int:
    """How many calls take about so many seconds, at least 1. Calls a few times, which warms up."""
    call()
    calls, spent = 1, 0.0
    while True:
        start = time.perf_counter()
        for _ in range(calls):
            call()
        spent = time.perf_counter() - start
        if spent >= seconds / 4:
            return max(1, round(calls * seconds / spent))
        calls *= 2


@contextlib.contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Keep the garbage collector, which would stop on millions of nodes, out of the times."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def time_in_turn(
    calls: Mapping[str, Callable[[], object]], options: Options
) -> dict[str, list[float]]:
    """Mean seconds of a call, in each repetition, of each candidate.

    Candidates take turns (A B C, C B A, ...), so that the machine's moods meet them all.
    """
    seconds = {name: [] for name in calls}
    with no_garbage_collection():
        number = {name: calls_within(call, options.call_seconds) for name, call in calls.items()}
        for repetition in range(options.repetitions):
            for name in list(calls)[:: 1 if repetition % 2 == 0 else -1]:
                start = time.perf_counter()
                for _ in range(number[name]):
                    calls[name]()
                seconds[name].append((time.perf_counter() - start) / number[name])
    return seconds


def median(values) -> float:
    """The middle of the values."""
    return float(np.median(values))


def quartiles(values) -> tuple[float, float]:
    """Where the middle half of the values begins and ends."""
    low, high = np.percentile(values, [25, 75])
    return float(low), float(high)


@contextlib.contextmanager
def torch_threads(number: int) -> Iterator[None]:
    """Let PyTorch use so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


# ---------------------------------------------------------------------------------- baselines


def build_baselines(builders: Mapping[str, Callable[[], Callable[[], object]]]):
    """Build what can be built of other people's code.

    Args:
        builders: name to a function that makes the call to be timed.

    Returns:
        calls by name, and the reasons why others are missing by name.
    """
    calls, missing = {}, {}
    for name, build in builders.items():
        try:
            calls[name] = build()
        except Exception as error:  # whatever a baseline fails with is a finding, not our error
            missing[name] = reason(error)
    return calls, missing


def reason(error: BaseException) -> str:
    """An exception in one line."""
    if isinstance(error, ModuleNotFoundError):
        return f"{error.name} is not installed"
    text = str(error).splitlines() or [""]
    return f"does not load: {type(error).__name__}: {text[0]}"[:160]


# ----------------------------------------------------------------------------------------- machine


def machine() -> dict[str, str]:
    """Processor, cores, memory and operating system."""
    return {
        "processor": processor(),
        "cores": str(os.cpu_count()),
        "memory": memory(),
        "system": f"{platform.system()} {platform.release()}",
    }


def processor() -> str:
    """The processor's name."""
    if platform.system() == "Linux":
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    if platform.system() == "Darwin":
        return subprocess.run(
            ["sysctl", "-n", "machdep.cpu.brand_string"], text=True, capture_output=True, check=True
        ).stdout.strip()
    return platform.processor() or platform.machine()


def memory() -> str:
    """Size of the main memory."""
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        return "unknown"
    return f"{size / 2**30:.0f} GiB"


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that are installed."""
    by_package = {"python": platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            by_package[name] = metadata.version(name)
    return by_package


# ----------------------------------------------------------------------------------------- results


class Results:
    """`results.json`: what each row measured, with machine and versions. Written at every `put`.

    Args:
        path: the file; what it holds of other rows stays.
        here: machine and versions of this run.
        keep: go on with what the file holds of a row if it was measured here.
    """

    def __init__(self, path: Path, here: Mapping, keep: bool = False):
        self.path, self.here, self.keep = Path(path), dict(here), keep
        self.rows = json.loads(self.path.read_text()) if self.path.exists() else {}

    def begin(self, row: str) -> bool:
        """Begin or go on with a row; return whether it still has something to measure."""
        old = self.rows.get(row)
        if not (self.keep and old and old["here"] == self.here):
            self.rows[row] = {
                "here": self.here,
                "date": date.today().isoformat(),
                "finished": False,
                "measured": {},
            }
        return not self.rows[row]["finished"]

    def measured(self, row: str) -> dict:
        """What a row has so far, by name."""
        return self.rows[row]["measured"]

    def put(self, row: str, name: str, value) -> None:
        """Keep one measurement."""
        self.rows[row]["measured"][name] = value
        self.write()

    def finish(self, row: str) -> None:
        """Say that a row is complete."""
        self.rows[row]["finished"] = True
        self.write()

    def write(self) -> None:
        content = json.dumps(self.rows, indent=1) + "\n"
        write_whole(self.path, content.encode())


class Recorder(NamedTuple):
    """Where the measurements of one row go."""

    results: Results
    row: str

    def has(self, name: str) -> bool:
        return name in self.results.measured(self.row)

    def put(self, name: str, value) -> None:
        self.results.put(self.row, name, value)
        print(f"  {self.row}: {name}", flush=True)

    def put_seconds(
        self, seconds: Mapping[str, list[float]], missing: Mapping[str, str] = {}, prefix: str = ""
    ) -> None:
        """Keep the repetitions of several candidates, and why others are missing."""
        for name, values in seconds.items():
            self.put(prefix + name, {"seconds": values})
        for name, why in missing.items():
            self.put(prefix + name, {"missing": why})


def ratio(measured: Mapping, slower: str, faster: str) -> float | None:
    """Median of one candidate over the median of another; None where one of them is missing."""
    values = [measured.get(name, {}).get("seconds") for name in (slower, faster)]
    return median(values[0]) / median(values[1]) if all(values) else None


def at_least(what: str, value: float | None, bound: float, unit: str = " times") -> Target:
    """A target for a number that should be large."""
    return _target(what, value, unit, value is not None and value >= bound)


def at_most(what: str, value: float | None, bound: float, unit: str = " times") -> Target:
    """A target for a number that should be small."""
    return _target(what, value, unit, value is not None and value <= bound)


def _target(what: str, value: float | None, unit: str, reached: bool) -> Target:
    if value is None:
        return Target(what, "not measured", None)
    return Target(what, f"{value:.2f}{unit}", bool(reached))


def fastest(measured: Mapping, names) -> str | None:
    """The name with the smallest median among those that were measured."""
    there = [name for name in names if "seconds" in measured.get(name, {})]
    return min(there, key=lambda name: median(measured[name]["seconds"]), default=None)
