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
    from matplotlib.figure import Figure
    from unityagents import UnityEnvironment

    from reacher.gymnasium.shaped import UnityShaped

COLORS = {"score": "#0072B2", "average": "#D55E00"}  # Okabe and Ito


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
