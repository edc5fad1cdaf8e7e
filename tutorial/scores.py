"""Score files, and what is read from scores."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from reacher.task import SOLVED_SCORE

AVERAGE_WINDOW = 100  # over so many episodes


def read_scores(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """Read `scores.csv` or `evaluation.csv` as one array per column.

    Raises:
        FileNotFoundError, ValueError: no such file; or it holds no table of finite numbers.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"no score file {path}: train first (train = True)")
    try:
        with warnings.catch_warnings(action="ignore"):  # of an empty file, which has no names
            table = np.atleast_1d(np.genfromtxt(path, delimiter=",", names=True))
        columns = {name: table[name] for name in table.dtype.names or ()}
        if not len(table) or "score" not in columns or not np.isfinite(table.tolist()).all():
            raise ValueError("it needs a column score, and finite numbers in at least one line")
    except (IndexError, ValueError) as error:  # the first: NumPy, of an empty file
        raise ValueError(f"{path} holds no scores: {error}") from None
    return columns


def read_runs(folder: Path, name: str = "scores.csv") -> dict[str, dict[str, np.ndarray]]:
    """Score files of all seeds of a preset: `<folder>/seed<N>/<name>`, in order of N.

    Raises:
        FileNotFoundError, ValueError: there is none; or one that cannot be read.
    """
    seeds = {}
    for path in Path(folder).glob(f"seed*/{name}"):
        if (seed := path.parent.name.removeprefix("seed")).isdecimal():  # else it moved aside
            seeds[int(seed)] = path
    if not seeds:
        raise FileNotFoundError(f"no {name} in {folder}/seed*/")
    return {f"seed{seed}": read_scores(seeds[seed]) for seed in sorted(seeds)}


def moving_average(
    scores: Sequence[float] | np.ndarray, window: int = AVERAGE_WINDOW
) -> np.ndarray:
    """Mean of the last `window` scores after each episode, or of all where there are fewer."""
    total = np.concatenate([[0.0], np.cumsum(scores)])
    end = np.arange(1, len(total))
    begin = np.maximum(end - window, 0)
    return (total[end] - total[begin]) / (end - begin)


def first_at(
    scores: Sequence[float] | np.ndarray, reward_threshold: float | None = SOLVED_SCORE
) -> int | None:
    """First episode, from 1 on, whose score reaches the reward threshold; None: there is none."""
    if reward_threshold is None:
        return None
    above = np.flatnonzero(np.asarray(scores) >= reward_threshold)
    return int(above[0]) + 1 if len(above) else None


def solved_at(
    scores: Sequence[float] | np.ndarray, reward_threshold: float | None = SOLVED_SCORE
) -> int | None:
    """First episode that ends a full window of 100 whose average reaches the threshold, or None.

    Args:
        reward_threshold: None for an environment that names none: never solved.
    """
    first = first_at(moving_average(scores)[AVERAGE_WINDOW - 1 :], reward_threshold)
    return None if first is None else first + AVERAGE_WINDOW - 1
