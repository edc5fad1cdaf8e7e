"""Figures of scores, and moving pictures of the arms."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from IPython import get_ipython
from IPython.display import Image, Markdown, display
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from reacher.episode import Policy, rollout
from reacher.moving import moving_arms
from tutorial.results import SOLVED_SCORE, gain, mean_interval, moving_average

# The color-blind can tell these apart (Okabe and Ito, 2008).
PALETTE = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
BLUE, ORANGE = PALETTE[:2]
SCORE = "score (sum of rewards)"


def plot_scores(scores: Mapping[str, np.ndarray], title: str = "") -> Figure:
    """Score of every episode, spread over the arms, 100-episode average and the reward threshold.

    Args:
        scores: what `read_scores` returns.
    """
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    episode, score, average = scores["episode"], scores["score"], moving_average(scores["score"])
    low, high = scores["min"], scores["max"]
    axes.fill_between(episode, low, high, color=BLUE, alpha=0.2, label="worst to best")
    axes.plot(episode, score, color=BLUE, label="mean")
    axes.plot(episode, average, color=ORANGE, linewidth=2, label="average of the last 100 episodes")
    threshold_line(axes)
    axes.set(xlabel="episode", ylabel=SCORE, title=title)
    axes.set(xlim=(1, max(episode[-1], 2)), ylim=(0, 41))
    axes.legend(loc="lower right", frameon=False)
    return figure


def band(axes: Axes, x: np.ndarray, curves: ArrayLike, color: str, label: str) -> None:
    """Mean of curves (seeds, len(x)) and its 95 % t-interval below 40.04; fewer than 12, each."""
    runs = np.asarray(curves)
    means, low, high = np.transpose([mean_interval(scores) for scores in runs.T])
    if len(runs) < 12:
        axes.plot(x, runs.T, color=color, linewidth=0.4, alpha=0.5)
    axes.fill_between(x, low, np.minimum(high, 40.04), color=color, alpha=0.25, linewidth=0)
    axes.plot(x, means, color=color, linewidth=2, label=label)


def threshold_line(axes: Axes) -> None:
    """The dashed line of the score that counts as solved, with a name for a legend."""
    label = f"solved: an average of {SOLVED_SCORE:g}"
    axes.axhline(SOLVED_SCORE, color="0.4", linestyle="--", linewidth=1, label=label)


def name_curves(axes: Axes) -> None:
    """A legend beside the plot, where it hides nothing; and whole numbers of episodes."""
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def plot_with_and_without(curves: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Figure:
    """Training scores of agents with and without something, with 95 % intervals.

    Args:
        curves: by name the episodes (k,) and the scores (seeds, k).
    """
    figure, axes = plt.subplots(figsize=(6.5, 2.9), layout="constrained")
    colors = itertools.cycle(PALETTE)
    for (name, (episodes, scores)), color in zip(curves.items(), colors, strict=False):
        band(axes, episodes, scores, color, name)
    threshold_line(axes)
    axes.set(xlabel="episode", ylabel="training score", ylim=(0, 41))
    name_curves(axes)
    return figure


class GrowingCurve:
    """The learning curve of a training that is going on, in a cell's output.

    Args:
        episodes: of the whole training.
        name: of this training.
        earlier: scores of earlier trainings by name.
    """

    def __init__(self, episodes: int, name: str, earlier: Mapping[str, Sequence[float]]) -> None:
        self.episodes, self.scores, self.name = episodes, list[float](), name
        self.curves = {**earlier, name: self.scores}  # an agent keeps its color
        in_notebook = hasattr(get_ipython(), "kernel")
        self.output = display(Markdown("..."), display_id=True) if in_notebook else None

    def add(self, score: float) -> None:
        """Draw the curve with the score of one more episode."""
        self.scores.append(score)
        figure = plot_curves(self.curves, "episode", SCORE)
        longest = max(self.episodes, *map(len, self.curves.values()))
        figure.axes[0].set(xlim=(0, longest + 1), ylim=(0, 41))
        if self.output:
            self.output.update(figure)
        plt.close(figure)


def show_swing(environment: Any, policy: Policy) -> None:
    """Show the first three seconds of an episode, of five arms at most, in real time.

    The picture moves without any script, and begins late, because at first all arms hang. Where
    OpenGL is missing, a line says so instead.
    """
    episode = itertools.islice(rollout(environment, policy), 0, 38, 2)  # every second decision
    frames = [observations[:5] for observations, _, _ in episode]
    try:
        picture = moving_arms(frames, width=600, first=len(frames) * 4 // 5)
    except RuntimeError as error:
        print(f"no moving picture: {error}")
    else:
        display(Image(picture, format="png"))


def plot_gains(
    panels: Mapping[str, Mapping[str, tuple[np.ndarray, np.ndarray]]], level: float = 0.95
) -> Figure:
    """How much larger one group of seeds is than another: means, intervals, and single seeds.

    Args:
        panels: by title the two groups (seeds,) of each row by its name, from top to bottom.
    """
    names = [*dict.fromkeys(name for rows in panels.values() for name in rows)][::-1]
    options: Any = {"sharex": True, "sharey": True, "squeeze": False, "layout": "constrained"}
    figure, [row] = plt.subplots(1, len(panels), figsize=(9, 1.2 + 0.22 * len(names)), **options)
    for axes, (title, rows) in zip(row, panels.items(), strict=True):
        axes.axvline(0, color="0.4", linestyle="--", linewidth=1)
        for name, (one, other) in rows.items():
            height, (middle, *ends) = names.index(name), gain(one, other, level)
            spread = height + np.linspace(-0.25, 0.25, len(one))  # so that no dot hides another
            axes.plot(one - other.mean(), spread, ".", color=BLUE, markersize=4, alpha=0.4)
            axes.plot(ends, [height, height], color=BLUE, linewidth=2)
            axes.plot(middle, height, "o", color=BLUE)
        axes.set(title=title, xlabel="gain in points", yticks=range(len(names)), yticklabels=names)
    return figure


def plot_curves(
    curves: Mapping[str, Sequence[float]],
    xlabel: str,
    ylabel: str,
    best: float | None = None,
    yscale: str = "linear",
) -> Figure:
    """Curves by name, a point an episode, and a dashed line at the best."""
    figure, axes = plt.subplots(figsize=(6.5, 2.2), layout="constrained")
    for (name, values), color in zip(curves.items(), PALETTE, strict=False):
        axes.plot(range(1, len(values) + 1), values, "o-", color=color, markersize=4, label=name)
    if best is not None:
        axes.axhline(best, color="0.4", linestyle="--", linewidth=1)
    name_curves(axes)
    axes.set(xlabel=xlabel, ylabel=ylabel, yscale=yscale)
    return figure


def plot_values(values: np.ndarray, returns: np.ndarray, best: float) -> Figure:
    """Values and returns that followed, (decisions, arms), by time and each other; best: a line."""
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    panels[0].plot(values[:100].mean(axis=1), color=ORANGE, label="value Q")
    panels[0].plot(returns[:100].mean(axis=1), color=BLUE, label="return that followed")
    panels[0].set(xlabel="decision", ylabel="mean over the arms (scaled)", xlim=(0, None))
    panels[0].legend(loc="lower right", frameon=False)
    dots = returns[::5].ravel(), values[::5].ravel()
    panels[1].plot(*dots, ".", color=BLUE, markersize=3, alpha=0.4, label="every fifth decision")
    ends = [returns.min(), returns.max()]
    panels[1].plot(ends, ends, color="0.4", linestyle="--", linewidth=1, label="equal")
    for panel in panels:
        panel.axhline(best, color="0.4", linestyle=":", linewidth=1)
    panels[1].set(xlabel="return that followed (scaled)", ylabel="value Q")
    panels[1].legend(loc="lower right", frameon=False)
    return figure


def plot_one_decision(
    torques: np.ndarray,
    moments: Mapping[str, tuple[np.ndarray, float]],
    reward: Callable[[np.ndarray], np.ndarray],
) -> Figure:
    """A critic and an actor that learn a problem of one decision.

    Args:
        torques: (k,).
        moments: by title the critic's values (k,) and the actor's choice.
        reward: of torques.
    """
    figure, panels = plt.subplots(
        1, len(moments), figsize=(9, 2.6), sharey=True, layout="constrained"
    )
    true = reward(torques)
    for axes, (title, (values, chosen)) in zip(panels, moments.items(), strict=True):
        height = np.interp(chosen, torques, values)
        axes.plot(torques, true, color="0.4", linestyle="--", linewidth=1, label="reward")
        axes.plot(torques, values, color=BLUE, label="critic")
        axes.plot(chosen, height, "o", color=ORANGE, markersize=8, label="actor's choice")
        axes.set(title=title, xlabel="torque")
    panels[0].set_ylabel("value")
    panels[-1].legend(frameon=False, fontsize=8, loc="lower center")
    return figure
