"""Scores and results of plans: reading their files, averages and intervals, and tables.

A plan of trainings has a folder in `checkpoints/` or `research/results/`, and in it a table for
each variant of the agent, with a line for each seed and episode. `research` writes them.
"""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from IPython.display import Markdown
from scipy import stats

from reacher.task import SOLVED_SCORE
from tutorial.paths import plan_folder

AVERAGE_WINDOW = 100  # over so many episodes
Scores = Sequence[float] | np.ndarray
Variant = dict[str, np.ndarray]  # column to (seeds, episodes), NaN where there is no number
HEAD = "seed,episode,"  # begins tables of variants; others may lie beside them


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
    except (IndexError, ValueError):  # NumPy's, of a file without a table
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


def read_plan(plan: str, folder: Path | None = None) -> dict[str, Variant]:
    """All variants of a plan by name; of each the columns, (seeds, episodes), seeds in order.

    Args:
        folder: of plans; None: where this one is stored.

    Raises:
        FileNotFoundError: there is no such plan.
        ValueError: seeds of a variant have different numbers of episodes.
    """
    place = folder / plan if folder else plan_folder(plan)
    paths = [path for path in sorted(place.glob("*.csv")) if path.read_text().startswith(HEAD)]
    if not paths:
        raise FileNotFoundError(f"no tables of a plan {plan!r} in {place.parent}")
    return {path.stem: read_variant(path) for path in paths}


def read_variant(path: Path) -> Variant:
    """One table, as `read_plan` reads it."""
    table = np.genfromtxt(path, delimiter=",", names=True, ndmin=1)
    _, episodes = np.unique(table["seed"], return_counts=True)
    if len(set(episodes)) != 1:
        raise ValueError(f"{path} has seeds with {min(episodes)} to {max(episodes)} episodes")
    return {name: table[name].reshape(len(episodes), -1) for name in table.dtype.names or ()}


def gain(
    one: np.ndarray, other: np.ndarray, confidence: float = 0.95
) -> tuple[float, float, float]:
    """The difference of the means of two groups (seeds,), and its interval by Welch's t."""
    interval = stats.ttest_ind(one, other, equal_var=False).confidence_interval(confidence)
    return float(np.mean(one) - np.mean(other)), float(interval.low), float(interval.high)


def gain_line(name: str, one: np.ndarray, other: np.ndarray, level: float = 0.95) -> str:
    """A `gain`, its interval and the seeds of the first group, as a line of a table."""
    middle, low, high = gain(one, other, level)
    return f"{name:32} {middle:+5.1f} points, {low:5.1f} to {high:4.1f}, {len(one)} seeds"


def as_markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the cells of its head and of its lines are text."""
    first, *others = (f"| {' | '.join(cells)} |" for cells in (head, *lines))
    return "\n".join([first, "|" + "---|" * len(head), *others])


def mean_interval(values: Sequence[float] | np.ndarray) -> tuple[float, float, float]:
    """Mean over seeds and its 95 % t-interval, which is empty where all values are equal."""
    mean = float(np.mean(values))
    if np.ptp(values) == 0:
        return mean, mean, mean
    low, high = stats.ttest_1samp(values, 0).confidence_interval()
    return mean, float(low), float(high)


def mean_and_interval(values: Sequence[float] | np.ndarray) -> str:
    """`mean_interval` as text; without the interval for fewer than three, which would be huge."""
    if len(values) < 3:
        return f"{np.mean(values):.2f} (no interval of {len(values)})"
    mean, low, high = (f"{end:.2f}" for end in mean_interval(values))
    return f"{mean} ({low} to {high})"


def training_summary(scores: Mapping[str, np.ndarray]) -> str:
    """When a training first reached 30 and was solved, and its means.

    Args:
        scores: as `read_scores` returns them.
    """
    lines = []
    for name, episode in (
        (f"first episode at {SOLVED_SCORE:g}", first_at(scores["score"])),
        ("solved at episode", solved_at(scores["score"])),
    ):
        when = f", after {scores['seconds'][episode - 1]:.0f} s of training" if episode else ""
        lines.append(f"{name}: {episode or 'not yet'}{when}")
    lines.append(
        f"mean of all {len(scores['score'])} episodes: {scores['score'].mean():.2f}, "
        f"of the last ten: {scores['score'][-10:].mean():.2f}"
    )
    return "\n".join(lines)


def value_summary(values: np.ndarray, returns: np.ndarray) -> str:
    """How a critic's values (decisions, arms) compare with the returns that followed."""
    value, followed = values.mean(), returns.mean()
    return f"mean value {value:.2f}, mean return {followed:.2f}, gap {value - followed:+.2f}"


def settings_table(model: Any) -> Markdown:
    """All hyperparameters of a class of settings, in the groups of the classes that add them."""
    last = {name: group for group in reversed(model.__mro__) for name in own_fields(group)}
    lines = []
    for group in dict.fromkeys(last.values()):
        lines.append([f"**{(group.__doc__ or group.__name__).rstrip('.')}**", "", "", "", ""])
        for name in own_fields(group):
            if last[name] is group:
                field = model.model_fields[name]
                others = field.json_schema_extra.values()
                lines.append([f"`{name}`", f"{field.default}", *others, field.description])
    head = ["setting", "here", "papers", "write-up", "meaning"]
    return Markdown(as_markdown(head, lines))


def own_fields(model: Any) -> list[str]:
    """The settings that a class adds, or gives another default, in their order."""
    fields = getattr(model, "model_fields", {})
    return [name for name in inspect.get_annotations(model) if name in fields]


def network_table(**networks: torch.nn.Module) -> Markdown:
    """The layers of networks by name, with the shapes and the numbers of their weights."""
    lines = []
    for title, network in networks.items():
        for layer in network.modules():
            weights = [*layer.parameters(recurse=False)]
            if weights:
                shapes = ", ".join(" x ".join(map(str, one.shape)) for one in weights)
                count = sum(one.numel() for one in weights)
                lines.append([title, type(layer).__name__, shapes, f"{count:,}"])
        whole = sum(one.numel() for one in network.parameters())
        lines.append([f"**{title}**", "", "", f"**{whole:,}**"])
    return Markdown(as_markdown(["network", "layer", "shapes", "weights"], lines))
