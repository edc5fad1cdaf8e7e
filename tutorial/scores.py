"""Score files, and what is read from scores."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from reacher.task import SOLVED_SCORE

AVERAGE_WINDOW = 100  # over so many episodes
Scores = Sequence[float] | np.ndarray


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
        names = table.dtype.names or ()
        if len(table) and "score" in names and np.isfinite(table.tolist()).all():
            return {name: table[name] for name in names}
    except (IndexError, TypeError, ValueError):  # NumPy's, of a file without a table
        pass
    raise ValueError(f"{path} holds no scores: a column score, and finite numbers in each line")


def moving_average(scores: Scores, window: int = AVERAGE_WINDOW) -> np.ndarray:
    """Mean of the last `window` scores after each episode, or of all where there are fewer."""
    total = np.concatenate([[0.0], np.cumsum(scores)])
    end = np.arange(1, len(total))
    begin = np.maximum(end - window, 0)
    return (total[end] - total[begin]) / (end - begin)


def first_at(scores: Scores, reward_threshold: float | None = SOLVED_SCORE) -> int | None:
    """First episode, from 1 on, whose score reaches the reward threshold, or None."""
    needed = np.inf if reward_threshold is None else reward_threshold
    above = np.flatnonzero(np.asarray(scores) >= needed)
    return int(above[0]) + 1 if len(above) else None


def solved_at(scores: Scores, reward_threshold: float | None = SOLVED_SCORE) -> int | None:
    """First episode that ends a full window of 100 whose average reaches the threshold."""
    first = first_at(moving_average(scores)[AVERAGE_WINDOW - 1 :], reward_threshold)
    return None if first is None else first + AVERAGE_WINDOW - 1
