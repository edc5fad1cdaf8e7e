"""Figures of scores, and moving pictures of the arms."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator

from reacher import ReacherEnvironment
from reacher.episode import rollout
from tutorial.moving import moving_arms
from tutorial.scores import SOLVED_SCORE, moving_average

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike
    from unityagents import UnityEnvironment

    from reacher.gymnasium.unity_wrapper import UnityWrapper
    from tutorial.results import Effect, Variant

# The color-blind can tell these apart (Okabe and Ito, 2008).
BLUE, ORANGE, GREEN, PURPLE = PALETTE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
EPISODES = 1, 2, 5, 10, 20, 50, 100  # of a logarithmic axis


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
    """
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    episode, score, average = scores["episode"], scores["score"], moving_average(scores["score"])
    low, high = scores["min"], scores["max"]
    axes.fill_between(episode, low, high, color=BLUE, alpha=0.2, label="worst to best arm")
    axes.plot(episode, score, color=BLUE, label="mean over the arms")
    axes.plot(episode, average, color=ORANGE, linewidth=2, label="average of the last 100 episodes")
    if reward_threshold is not None:
        threshold_line(axes, reward_threshold)
    axes.set(xlabel="episode", ylabel="training score (sum of rewards)", title=title)
    axes.set(xlim=(1, max(episode[-1], 2)), ylim=limits)
    axes.legend(loc="lower right", frameon=False)
    return figure


def band(axes: Axes, x: np.ndarray, curves: ArrayLike, color: str, label: str) -> None:
    """Mean over seeds of curves (seeds, len(x)), its 95 % bootstrap interval, and each curve."""
    runs = np.asarray(curves)
    picks = np.random.default_rng(0).integers(len(runs), size=(2_000, len(runs)))
    axes.plot(x, runs.T, color=color, linewidth=0.4, alpha=0.5)
    axes.fill_between(
        x,
        *np.percentile(runs[picks].mean(axis=1), [2.5, 97.5], axis=0),
        color=color,
        alpha=0.25,
        linewidth=0,
    )
    axes.plot(x, runs.mean(axis=0), color=color, linewidth=2, label=label)


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
    seconds = np.arange(0, 61)
    for (name, runs), color in zip(trainings.items(), itertools.cycle(PALETTE), strict=False):
        first = [run["score"][:100] for run in runs.values()]
        timed = [np.interp(seconds, run["seconds"], run["score"]) for run in runs.values()]
        evaluated = [run["score"] for run in evaluations[name].values()]
        evaluated_at = next(iter(evaluations[name].values()))["episode"]
        band(panels[0], np.arange(1, 101), first, color, name)
        band(panels[1], seconds, timed, color, name)
        band(panels[2], evaluated_at, evaluated, color, name)
    for axes in panels:
        threshold_line(axes)
        axes.set(xlabel="episode", xlim=(1, None), ylim=(0, 41), title="training scores")
    for axes in panels[::2]:
        axes.set_xscale("log")
        axes.set_xticks(EPISODES, EPISODES)
    panels[0].set_ylabel("score (sum of rewards)")
    panels[1].set_xlabel("seconds of training")
    panels[1].legend(loc="lower right", frameon=False)
    panels[2].set(ylim=(38.5, 40), title="without noise, from 38.5")
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
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def plot_growth(scores: Sequence[float], episodes: int) -> Figure:
    """The learning curve of a training that is going on, by episodes so far out of `episodes`."""
    figure, axes = plt.subplots(figsize=(6.5, 2.5), layout="constrained")
    axes.plot(range(1, len(scores) + 1), scores, "o-", color=BLUE)
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


def plot_values(values: np.ndarray, returns: np.ndarray) -> Figure:
    """Values and the returns that followed, (decisions, arms): over time, one by the other."""
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    panels[0].plot(values[:100].mean(axis=1), color=ORANGE, label="value Q")
    panels[0].plot(returns[:100].mean(axis=1), color=BLUE, label="return that followed")
    panels[0].set(xlabel="decision", ylabel="mean over the arms (scaled)", xlim=(0, None))
    panels[0].legend(loc="lower right", frameon=False)
    some = returns[::5].ravel(), values[::5].ravel()
    panels[1].plot(*some, ".", color=BLUE, markersize=2, alpha=0.3)
    ends = [returns.min(), returns.max()]
    panels[1].plot(ends, ends, color="0.4", linestyle="--", linewidth=1, label="equal")
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
    size = (3.5 * len(moments), 3.1)
    figure, panels = plt.subplots(
        1, len(moments), figsize=size, sharex=True, sharey=True, layout="constrained"
    )
    dot = {"markeredgecolor": "black", "markersize": 9, "clip_on": False}
    for axes, (title, (values, chosen)) in zip(panels, moments.items(), strict=True):
        drawn = axes.contourf(torques, torques, values, levels=12, cmap="cividis")
        second, first = np.unravel_index(values.argmax(), values.shape)
        top = torques[first], torques[second]
        axes.plot(*top, "^", color="white", label="largest Q", **dot)
        axes.plot(*chosen, "o", color=ORANGE, label="actor's choice", **dot)
        axes.set(title=title, xlabel=names[0], aspect="equal")
        figure.colorbar(drawn, ax=axes, shrink=0.8)
    panels[0].set_ylabel(names[1])
    panels[0].legend(loc="lower left", fontsize=8)
    return figure


def plot_effects(effects: Mapping[str, Mapping[str, Effect]], margin: float = 0.0) -> Figure:
    """Effects by group and name: mean, 95 % interval, and single seeds; filled where one is shown.

    Args:
        effects: as `tutorial.results` finds them; a panel for each group, with the same names.
        margin: points to either side of 0 that count as small; 0: none.
    """
    figure, panels = plt.subplots(
        1, len(effects), figsize=(9, 2.6), sharex=True, sharey=True, layout="constrained"
    )
    for axes, (title, by_name) in zip(np.atleast_1d(panels), effects.items(), strict=True):
        axes.axvspan(-margin, margin, color="0.92", linewidth=0)
        axes.axvline(0, color="0.4", linewidth=1)
        for row, effect in enumerate(by_name.values()):
            near = row + np.random.default_rng(0).uniform(-0.25, 0.25, len(effect.runs))
            axes.plot(effect.runs, near, ".", color="0.75", markersize=4)
            axes.plot([effect.low, effect.high], [row, row], color=BLUE, linewidth=3)
            face = BLUE if effect.verdict.startswith("shown") else "white"
            axes.plot(effect.mean, row, "o", color=BLUE, markersize=7, markerfacecolor=face)
        axes.set_yticks(range(len(by_name)), by_name)
        axes.set_title(title, fontsize=10)
    axes.invert_yaxis()
    figure.supxlabel("points gained or lost, of 40", fontsize=10)
    return figure


def plot_bugs(variants: Mapping[str, Variant], titles: Mapping[str, str]) -> Figure:
    """Training scores of variants, one panel each, over the range of the runs of `default`.

    Args:
        variants: of the plan `bugs`, as `read_plan` returns them.
        titles: of the panels by variant, in their order.
    """
    rows = -(-len(titles) // 4)
    figure, panels = plt.subplots(
        rows, 4, figsize=(10.4, 2.2 * rows), sharex=True, sharey=True, layout="constrained"
    )
    episodes, base = variants["default"]["episode"][0], variants["default"]["score"]
    for axes in panels.flat:
        axes.axis("off")
    for axes, (name, title) in zip(panels.flat, titles.items(), strict=False):
        axes.axis("on")
        axes.fill_between(
            episodes, base.min(axis=0), base.max(axis=0), color="0.85", label="range of `default`"
        )
        axes.plot(episodes, variants[name]["score"].T, color=BLUE, linewidth=0.8)
        threshold_line(axes)
        axes.set_title(title, fontsize=9)
        axes.set(xscale="log", xlim=(1, episodes[-1]), ylim=(0, 41))
        axes.set_xticks([1, 2, 5, 10, 20, 50], [1, 2, 5, 10, 20, 50])
        axes.minorticks_off()
        axes.tick_params(labelbottom=True)
    handles = panels.flat[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper right", ncols=2, frameon=False, fontsize=8)
    figure.supxlabel("episode", fontsize=10)
    figure.supylabel("training score (sum of rewards)", fontsize=10)
    return figure
