"""Figures of scores, and moving pictures of the arms."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np

from reacher import ReacherEnvironment
from reacher.episode import rollout
from reacher.task import DECISION_SECONDS, HAND_RADIUS
from tutorial.moving import moving_arms
from tutorial.scores import SOLVED_SCORE, moving_average

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from unityagents import UnityEnvironment

    from reacher.gymnasium.unity_wrapper import UnityWrapper

# The color-blind can tell them apart (Okabe and Ito, 2008).
BLUE, ORANGE, GREEN, PURPLE, *_ = PALETTE = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#E69F00",
)
COLORS = {"score": BLUE, "average": ORANGE}


def plot_scores(
    scores: Mapping[str, np.ndarray],
    title: str = "",
    reward_threshold: float | None = SOLVED_SCORE,
    limits: tuple[float, float] | None = (0, 41),
) -> Figure:
    """Score of every episode, spread over the arms, 100-episode average and the reward threshold.

    Args:
        scores: what `read_scores` returns.
        reward_threshold: the score that counts as solved; None: the environment names none.
        limits: of the axis of scores; None: those of the data.

    Returns:
        The matplotlib figure.
    """
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    episode = scores["episode"]
    axes.fill_between(
        episode,
        scores["min"],
        scores["max"],
        alpha=0.2,
        color=COLORS["score"],
        linewidth=0,
        label="worst to best arm",
    )
    axes.plot(episode, scores["score"], color=COLORS["score"], label="mean over the arms")
    axes.plot(
        episode,
        moving_average(scores["score"]),
        color=COLORS["average"],
        linewidth=2,
        label="average of the last 100 episodes",
    )
    if reward_threshold is not None:
        axes.axhline(reward_threshold, color="0.4", linestyle="--", linewidth=1)
        axes.annotate(
            f"solved: average of {reward_threshold:g}",
            (0.99, reward_threshold),
            xytext=(0, -4),
            va="top",
            ha="right",
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            color="0.3",
        )
    axes.set(
        xlabel="episode",
        ylabel="training score (sum of rewards)",
        ylim=limits,
        xlim=(1, max(episode[-1], 2)),
        title=title,
    )
    axes.legend(loc="lower right", frameon=False)
    return figure


def band(axes: Axes, x: np.ndarray, curves: Sequence[np.ndarray], color: str, label: str) -> None:
    """Mean over seeds of curves (seeds, len(x)), its 95 % bootstrap interval, and each curve."""
    curves = np.asarray(curves)
    picks = np.random.default_rng(0).integers(len(curves), size=(2_000, len(curves)))
    axes.plot(x, curves.T, color=color, linewidth=0.4, alpha=0.5)
    axes.fill_between(
        x,
        *np.percentile(curves[picks].mean(axis=1), [2.5, 97.5], axis=0),
        color=color,
        alpha=0.25,
        linewidth=0,
    )
    axes.plot(x, curves.mean(axis=0), color=color, linewidth=2, label=label)


def threshold_line(axes: Axes, reward_threshold: float = SOLVED_SCORE) -> None:
    """The dashed line of the score that counts as solved, with a name for a legend."""
    axes.axhline(
        reward_threshold,
        color="0.4",
        linestyle="--",
        linewidth=1,
        label=f"{reward_threshold:g}, solved",
    )


def plot_presets(trainings: Mapping, evaluations: Mapping) -> Figure:
    """Training scores of presets against episode and seconds, and evaluations without noise.

    Args:
        trainings, evaluations: runs by preset and seed, as `read_runs` returns them.
    """
    figure, panels = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
    for (name, runs), color in zip(trainings.items(), itertools.cycle(PALETTE), strict=False):
        trained, seconds = list(runs.values()), np.arange(0, 61)
        band(panels[0], np.arange(1, 101), [run["score"][:100] for run in trained], color, name)
        band(
            panels[1],
            seconds,
            [np.interp(seconds, run["seconds"], run["score"]) for run in trained],
            color,
            name,
        )
        evaluated = list(evaluations[name].values())
        band(panels[2], evaluated[0]["episode"], [run["score"] for run in evaluated], color, name)
    for axes, label, title, ends in zip(
        panels,
        ("episode", "seconds of training", "episode"),
        ("training scores", "training scores", "without noise, from 38.5"),
        ((0, 41), (0, 41), (38.5, 40)),
        strict=True,
    ):
        threshold_line(axes)
        axes.set(xlabel=label, xlim=(1, None), ylim=ends, title=title)
    for axes in panels[::2]:
        axes.set(
            xscale="log", xticks=[1, 2, 5, 10, 20, 50, 100], xticklabels=[1, 2, 5, 10, 20, 50, 100]
        )
    panels[0].set_ylabel("score (sum of rewards)")
    panels[1].legend(loc="lower right", frameon=False)
    return figure


def plot_with_and_without(
    curves: Mapping[str, tuple[np.ndarray, np.ndarray]],
    label: str,
    title: str = "",
    reward_threshold: float | None = None,
) -> Figure:
    """Learning curves of agents with and without something, with 95 % intervals.

    Args:
        curves: by name the episodes (k,) and the scores (seeds, k).
        label: of the axis of scores.
        title: of the task.
        reward_threshold: the score that counts as solved; None: no line.
    """
    figure, axes = plt.subplots(figsize=(6.5, 2.9), layout="constrained")
    for (name, (episodes, scores)), color in zip(curves.items(), PALETTE, strict=False):
        band(axes, episodes, scores, color, name)
    if reward_threshold is not None:
        threshold_line(axes, reward_threshold)
    axes.set(xlabel="episode", ylabel=label, ylim=(0, 41), title=title)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def plot_growth(scores: Sequence[float], episodes: int) -> Figure:
    """The learning curve of a training that is going on, by episodes so far out of `episodes`."""
    figure, axes = plt.subplots(figsize=(6.5, 2.5), layout="constrained")
    axes.plot(range(1, len(scores) + 1), scores, "o-", color=COLORS["score"])
    axes.set(
        xlabel="episode", ylabel="score (sum of rewards)", xlim=(0, episodes + 1), ylim=(0, 41)
    )
    return figure


def record_frames(
    environment: ReacherEnvironment | UnityWrapper | UnityEnvironment,
    policy: Callable[[np.ndarray], np.ndarray],
    decisions: int,
) -> list[np.ndarray]:
    """Observations of every second decision while `policy` acts from a reset on.

    Args:
        environment: of arms; it is reset.
        policy: observations (agents, 33) to actions (agents, 4).
        decisions: how many to play.

    Returns:
        Observations (agents, 33), one array for each frame.
    """
    episode = itertools.islice(rollout(environment, policy), 0, decisions, 2)
    return [observations for observations, _, _ in episode]


def animated_png(frames: Sequence[np.ndarray], most: int = 20, goal_size: float = 5.0) -> bytes:
    """The recorded arms, the first `most` of them, in real time as an animated PNG.

    It moves without any script. It begins a third into the recording, because at first all arms
    hang.

    Args:
        frames: observations (agents, 33) of every second decision.
        goal_size: diameter of the goals, m.
    """
    shown = [observations[:most] for observations in frames]
    first = len(frames) // 3
    return moving_arms(shown, width=720, goal_size=goal_size, first=first)  # a notebook's width


def plot_distances(distances: np.ndarray, goal_size: float = 5.0) -> Figure:
    """Distances of hand and goal: median over the arms, and 5 % to 95 % of them.

    Args:
        distances: (decisions, arms), m.
        goal_size: diameter of the goals, m.
    """
    figure, panels = plt.subplots(1, 2, figsize=(9, 2.8), sharey=True, layout="constrained")
    for axes, end in zip(panels, (76, len(distances)), strict=True):
        seconds = DECISION_SECONDS * np.arange(len(distances[:end]))
        low, middle, high = np.percentile(distances[:end], [5, 50, 95], axis=1)
        axes.fill_between(
            seconds,
            low,
            high,
            color=COLORS["score"],
            alpha=0.25,
            linewidth=0,
            label="5 % to 95 % of the arms",
        )
        axes.plot(seconds, middle, color=COLORS["score"], linewidth=1, label="median")
        axes.axhline(
            HAND_RADIUS + goal_size / 2, color="0.4", linestyle="--", linewidth=1, label="touch"
        )
        axes.set(xlabel="time (s)", xlim=(0, seconds[-1]), ylim=(0, None))
    panels[0].set_ylabel("hand to goal (m)")
    panels[1].legend(frameon=False, fontsize=8)
    return figure


def plot_values(values: np.ndarray, returns: np.ndarray) -> Figure:
    """Values and the returns that followed, (decisions, arms): over time, one by the other."""
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for name, numbers, color in (
        ("value Q", values, COLORS["average"]),
        ("return that followed", returns, COLORS["score"]),
    ):
        panels[0].plot(numbers[:100].mean(axis=1), color=color, label=name)
    panels[0].set(xlabel="decision", ylabel="mean over the arms (scaled)", xlim=(0, None))
    panels[0].legend(loc="lower right", frameon=False)
    panels[1].plot(
        returns[::5].ravel(),
        values[::5].ravel(),
        ".",
        color=COLORS["score"],
        markersize=2,
        alpha=0.3,
    )
    panels[1].plot(
        *[[returns.min(), returns.max()]] * 2,
        color="0.4",
        linestyle="--",
        linewidth=1,
        label="equal",
    )
    panels[1].set(xlabel="return that followed (scaled)", ylabel="value Q")
    panels[1].legend(loc="upper left", frameon=False)
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
    for axes, (title, (values, chosen)) in zip(panels, moments.items(), strict=True):
        axes.plot(
            torques, reward(torques), color="0.4", linestyle="--", linewidth=1, label="reward"
        )
        axes.plot(torques, values, color=COLORS["score"], label="critic")
        axes.plot(
            chosen,
            np.interp(chosen, torques, values),
            "o",
            color=COLORS["average"],
            markersize=8,
            label="actor's choice",
        )
        axes.set(title=title, xlabel="torque")
    panels[0].set_ylabel("value")
    panels[-1].legend(frameon=False, fontsize=8, loc="lower center")
    return figure


def plot_schedules(schedules: Any, scores: Sequence[float]) -> Figure:
    """What changes during a training with these scores.

    Args:
        schedules: the notebook's `Schedules`, new.
        scores: (episodes,) means over twenty arms.
    """
    settings, noise_factors, rate_factors = schedules.settings, [], []
    for number in range(len(scores)):
        schedules.annealed_episodes += schedules.is_annealing()
        if number:
            schedules.update_scores(scores[:number], 20)
        noise_factors.append(schedules.noise_factor())
        rate_factors.append(schedules.anneal_factor())
    episode = np.arange(1, len(scores) + 1)
    rise = np.minimum(1, 1001 * (episode - 1) / settings.importance_anneal_steps)
    beta = settings.importance_exponent_start + rise * (1 - settings.importance_exponent_start)
    figure, panels = plt.subplots(1, 3, figsize=(9, 2.3), layout="constrained")
    lines = {
        "factor on action noise": noise_factors,
        "beta": beta,
        "factor on learning rates": rate_factors,
    }
    for axes, (title, line), color in zip(panels, lines.items(), PALETTE[:3], strict=True):
        axes.plot(episode, line, color=color)
        axes.set(
            title=title,
            xlabel="episode",
            xscale="log",
            xticks=[1, 2, 5, 10, 20, 50, 100],
            xticklabels=[1, 2, 5, 10, 20, 50, 100],
            ylim=(0, None),
        )
    return figure


def plot_action_values(
    moments: Mapping[str, tuple[np.ndarray, np.ndarray]],
    torques: np.ndarray,
    names: tuple[str, str],
) -> Figure:
    """What a critic says of two torques, and what the actor chose.

    Args:
        moments: by title the values Q (len(torques), len(torques)) of second by first torque, and
            the actor's choice of both, (2,).
        torques: of both axes.
        names: of both torques.
    """
    figure, panels = plt.subplots(
        1,
        len(moments),
        figsize=(3.5 * len(moments), 3.1),
        sharex=True,
        sharey=True,
        layout="constrained",
    )
    for axes, (title, (values, chosen)) in zip(panels, moments.items(), strict=True):
        drawn = axes.contourf(torques, torques, values, levels=12, cmap="cividis")
        second, first = np.unravel_index(values.argmax(), values.shape)
        axes.plot(
            torques[first],
            torques[second],
            "^",
            color="white",
            markeredgecolor="black",
            markersize=10,
            label="largest Q",
            clip_on=False,
        )
        axes.plot(
            *chosen,
            "o",
            color=COLORS["average"],
            markeredgecolor="white",
            markersize=8,
            label="actor's choice",
            clip_on=False,
        )
        axes.set(title=title, xlabel=names[0], aspect="equal")
        figure.colorbar(drawn, ax=axes, shrink=0.8)
    panels[0].set_ylabel(names[1])
    panels[0].legend(loc="lower left", fontsize=8)
    return figure


def plot_fidelity(fidelity: Mapping) -> Figure:
    """One policy's arms in Unity and here, on the same goals; from `checkpoints/fidelity.json`."""
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    [found] = fidelity["per_arm"]
    scores = found["unity"] + found["here"]
    ends = [min(scores) - 1, max(scores) + 1]
    panels[0].plot(ends, ends, color="0.4", linestyle="--", linewidth=1, label="equal")
    panels[0].plot(found["unity"], found["here"], "o", markersize=5, color=COLORS["score"])
    panels[0].set(xlabel="score of an arm in Unity", ylabel="its score here", xlim=ends, ylim=ends)
    panels[0].legend(loc="upper left", frameon=False)
    correlations, reset = found["correlations"], found["reset"]
    colors = [COLORS["average" if k == reset else "score"] for k in range(len(correlations))]
    panels[1].bar(range(len(correlations)), correlations, color=colors)
    panels[1].axhline(0, color="0.4", linewidth=1)
    panels[1].set(xlabel="reset of Unity whose goals are played here", ylabel="correlation")
    panels[1].set_ylim(-1, 1)
    panels[1].xaxis.get_major_locator().set_params(integer=True)
    return figure
