"""Score files, and what is read from scores."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from reacher.files import write_whole
from reacher.task import SOLVED_SCORE

AVERAGE_WINDOW = 100  # over so many episodes
SCORE_COLUMNS = ("episode", "score", "min", "max", "seconds")
EVALUATION_COLUMNS = ("episode", "score", "min", "max", "decisions", "seconds")
COLUMNS = {"scores.csv": SCORE_COLUMNS, "evaluation.csv": EVALUATION_COLUMNS}


class ScoreFile:
    """`scores.csv` of one run: a line `episode,score,min,max,seconds` after every episode.

    Every line is on disk before the next episode begins, so an interrupt loses nothing. A run that
    goes on begins with the lines of its episodes so far. `evaluation.csv` is the same for
    evaluations without noise, and has the number of decisions of training so far before the
    seconds.
    """

    def __init__(self, folder: Path, lines: Sequence[str] = (), name: str = "scores.csv") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path, self.columns = folder / name, COLUMNS[name]
        self.lines = list(lines)
        write_whole(self.path, self.content())

    def content(self) -> bytes:
        return "\n".join([",".join(self.columns), *self.lines, ""]).encode()

    def append(self, episode: int, scores: np.ndarray, seconds: float, *decisions: int) -> None:
        """Add one episode.

        Args:
            episode: from 1 on.
            scores: (agents,) each arm's sum of rewards.
            seconds: wall clock since training began, evaluations left out.
            decisions: of an evaluation, one number: those of the training so far.

        Raises:
            OSError: the disk is full or gone.
        """
        found = (scores.mean(), scores.min(), scores.max())
        self.lines.append(
            ",".join(
                [
                    str(episode),
                    *(f"{value:.6f}" for value in found),
                    *map(str, decisions),
                    f"{seconds:.3f}",
                ]
            )
        )
        write_whole(self.path, self.content())


def read_scores(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """Read `scores.csv` or `evaluation.csv` as one array per column.

    Raises:
        FileNotFoundError, ValueError: no such file; empty, cut, or with other columns.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"no score file {path}: train first (train = True)")
    names = COLUMNS.get(path.name, SCORE_COLUMNS)
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    head, *lines = text.splitlines() or [""]
    if head != ",".join(names):
        raise ValueError(f"{path} does not begin with the columns {','.join(names)}")
    if not lines:
        raise ValueError(f"{path} holds no episode yet")
    try:
        table = np.array([line.split(",") for line in lines], dtype=float)
    except ValueError:
        table = np.empty((0, 0))
    if table.shape[1] != len(names) or not text.endswith("\n"):
        raise ValueError(f"{path} has a line that is cut or holds no numbers")
    if not np.isfinite(table).all():
        raise ValueError(f"{path} has a number that is not finite")
    columns = dict(zip(names, table.T, strict=True))
    episodes = columns["episode"]
    if names == SCORE_COLUMNS and not np.array_equal(episodes, np.arange(1, len(lines) + 1)):
        raise ValueError(f"{path} has episodes that do not count 1, 2, 3 and so on")
    return columns


def read_runs(folder: Path, name: str = "scores.csv") -> dict[str, dict[str, np.ndarray]]:
    """Score files of all seeds of a preset: `<folder>/seed<N>/<name>`, in order of N.

    A file that cannot be read is named in a warning and left out.

    Raises:
        FileNotFoundError: none can be read.
    """
    runs = {}
    paths = [
        path
        for path in Path(folder).glob(f"seed*/{name}")
        if path.parent.name.removeprefix("seed").isdecimal()
    ]  # no run that moved aside
    for path in sorted(paths, key=lambda path: int(path.parent.name.removeprefix("seed"))):
        try:
            runs[path.parent.name] = read_scores(path)
        except ValueError as error:
            warnings.warn(f"left out: {error}", stacklevel=2)
    if not runs:
        raise FileNotFoundError(f"no score file that can be read in {folder}/seed*/")
    return runs


def moving_average(
    scores: Sequence[float] | np.ndarray, window: int = AVERAGE_WINDOW
) -> np.ndarray:
    """Mean of the last `window` scores after each episode, or of all where there are fewer."""
    total = np.concatenate([[0.0], np.cumsum(scores)])
    end = np.arange(1, len(total))
    begin = np.maximum(end - window, 0)
    return (total[end] - total[begin]) / (end - begin)


def share_of_threshold(best: float | None, first: float | None, threshold: float | None) -> float:
    """How far a best score has come on the way to a threshold, of which 1 is the whole.

    The way begins at 0, or at a first score below 0. A score that has reached its threshold has a
    share of at least 1. Without a score or a threshold it is minus infinity.
    """
    if best is None or first is None or threshold is None:
        return -math.inf
    begin = min(0.0, first)
    share = (best - begin) / abs(threshold - begin) if threshold != begin else math.inf
    return max(1.0, share) if best >= threshold else share


def first_at(
    scores: Sequence[float] | np.ndarray, reward_threshold: float | None = SOLVED_SCORE
) -> int | None:
    """First episode, from 1 on, whose score reaches the reward threshold; None: there is none."""
    above = np.flatnonzero(
        np.asarray(scores) >= (np.inf if reward_threshold is None else reward_threshold)
    )
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
