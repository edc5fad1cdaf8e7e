"""Figures of scores, and moving pictures of the arms."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np

from reacher import ReacherEnvironment
from reacher.drawing.moving import moving_arms
from workshop.training import episodes
from workshop.training.scores import SOLVED_SCORE, moving_average

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from unityagents import UnityEnvironment

    from reacher.gymnasium.shaped import UnityShaped

COLORS = {"score": "#0072B2", "average": "#D55E00"}  # Okabe and Ito
PRESET_COLORS = ("#0072B2", "#D55E00", "#009E73")


def plot_scores(scores: Mapping[str, np.ndarray], title: str = "",
                mark: float | None = SOLVED_SCORE,
                limits: tuple[float, float] | None = (0, 41)) -> Figure:
    """Score of every episode, spread over the arms, 100-episode average and the mark.

    Args:
        scores: what `read_scores` returns.
        mark: the score that counts as solved; None: the environment names none.
        limits: of the axis of scores; None: those of the data.

    Returns:
        The matplotlib figure.
    """
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    episode = scores["episode"]
    axes.fill_between(episode, scores["min"], scores["max"], alpha=0.2, color=COLORS["score"],
                      linewidth=0, label="worst to best arm")
    axes.plot(episode, scores["score"], color=COLORS["score"], label="mean over the arms")
    axes.plot(episode, moving_average(scores["score"]), color=COLORS["average"], linewidth=2,
              label="average of the last 100 episodes")
    if mark is not None:
        axes.axhline(mark, color="0.4", linestyle="--", linewidth=1)
        axes.annotate(f"solved: average of {mark:g}", (0.99, mark), xytext=(0, -4), va="top",
                      ha="right", xycoords=("axes fraction", "data"), textcoords="offset points",
                      color="0.3")
    axes.set(xlabel="episode", ylabel="training score (sum of rewards)", ylim=limits,
             xlim=(1, max(episode[-1], 2)), title=title)
    axes.legend(loc="lower right", frameon=False)
    return figure


def band(axes: Axes, x: np.ndarray, curves: Sequence[np.ndarray], color: str, label: str) -> None:
    """Mean over seeds of curves (seeds, len(x)), its 95 % bootstrap interval, and each curve."""
    curves = np.asarray(curves)
    picks = np.random.default_rng(0).integers(len(curves), size=(2_000, len(curves)))
    axes.plot(x, curves.T, color=color, linewidth=0.4, alpha=0.5)
    axes.fill_between(x, *np.percentile(curves[picks].mean(axis=1), [2.5, 97.5], axis=0),
                      color=color, alpha=0.25, linewidth=0)
    axes.plot(x, curves.mean(axis=0), color=color, linewidth=2, label=label)


def mark_line(axes: Axes, mark: float = SOLVED_SCORE) -> None:
    """The dashed line of the score that counts as solved, with a name for a legend."""
    axes.axhline(mark, color="0.4", linestyle="--", linewidth=1, label=f"{mark:g}, solved")


def plot_presets(kept: Mapping, evaluations: Mapping) -> Figure:
    """Training scores of presets against episode and seconds, and evaluations without noise.

    Args:
        kept, evaluations: runs by preset and seed, as `read_runs` returns them.
    """
    figure, panels = plt.subplots(1, 3, figsize=(11, 3.6), sharey=True, layout="constrained")
    for (name, runs), color in zip(kept.items(), PRESET_COLORS, strict=False):
        trained, seconds = list(runs.values()), np.arange(0, 61)
        band(panels[0], np.arange(1, 101), [run["score"][:100] for run in trained], color, name)
        band(panels[1], seconds, [np.interp(seconds, run["seconds"], run["score"])
                                  for run in trained], color, name)
        evaluated = list(evaluations[name].values())
        band(panels[2], evaluated[0]["episode"], [run["score"] for run in evaluated], color, name)
    for axes, label, title in zip(panels, ("episode", "seconds of training", "episode"), (
            "training scores", "training scores", "without noise"), strict=True):
        mark_line(axes)
        axes.set(xlabel=label, xlim=(1, None), ylim=(0, 41), title=title)
    for axes in panels[::2]:
        axes.set(xscale="log", xticks=[1, 2, 5, 10, 20, 50, 100],
                 xticklabels=[1, 2, 5, 10, 20, 50, 100])
    panels[0].set_ylabel("score (sum of rewards)")
    panels[2].legend(loc="lower right", frameon=False)
    return figure


def plot_groups(groups: Mapping[str, Mapping], columns: int, limits: tuple[float, float],
                color: str = COLORS["score"]) -> Figure:
    """A panel for each group of runs, a line for each of its seeds, and the mark.

    Args:
        groups: runs by title of the panel and seed.
        limits: of the axis of episodes.
    """
    rows = -(-len(groups) // columns)
    figure, panels = plt.subplots(rows, columns, figsize=(2.9 * columns, 2.6 * rows), sharex=True,
                                  sharey=True, layout="constrained", squeeze=False)
    for axes, (name, runs) in zip(panels.flat, groups.items(), strict=False):
        for run in runs.values():
            axes.plot(run["episode"], run["score"], color=color, linewidth=1)
        mark_line(axes)
        axes.set(title=name, xlim=limits, ylim=(0, 41))
    panels[0, 0].legend(loc="center right", frameon=False, fontsize=8)
    figure.supxlabel("episode", fontsize=10)
    figure.supylabel("training score (sum of rewards)", fontsize=10)
    return figure


def record_frames(environment: ReacherEnvironment | UnityShaped | UnityEnvironment,
                  policy: Callable[[np.ndarray], np.ndarray], decisions: int,
                  every: int = 2) -> list[np.ndarray]:
    """Observations while `policy` acts from a reset on.

    Args:
        environment: of arms; it is reset.
        policy: observations (agents, 33) to actions (agents, 4).
        decisions: how many to play.
        every: decisions from one frame to the next.

    Returns:
        Observations (agents, 33), one array for each frame.
    """
    episode = itertools.islice(episodes.decisions(environment, policy), 0, decisions, every)
    return [observations for observations, _, _ in episode]


def animated_png(frames: Sequence[np.ndarray], milliseconds: int = 160, most: int = 20,
                 first: int | None = None, label: str = "", goal_size: float = 5.0) -> bytes:
    """The recorded arms, the first `most` of them, as an animated PNG.

    It is an ordinary picture to Jupyter, VS Code and browsers: it moves without any script.

    Args:
        frames: observations (agents, 33), one per frame.
        milliseconds: how long a frame shows; 160 is real time for every second decision.
        most: arms that are shown.
        first: the frame that shows first, before which the picture ends; None: one a third into
            the recording, since at the beginning all arms hang.
        label: a line of text at the lower edge.
        goal_size: diameter of the goals, m.
    """
    first = len(frames) // 3 if first is None else first
    return moving_arms([observations[:most] for observations in frames], milliseconds,
                       first=first, label=label, goal_size=goal_size)
