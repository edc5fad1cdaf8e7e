"""Figures of the evidence pages, from the stored results: `python -m research figures`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from reacher.task import MAX_SCORE
from research.bugs import BUGS
from research.plans import FACTORS, PLANS, STUDY
from research.statistics import difference
from research.tables import read
from tutorial.figures import BLUE, GREEN, ORANGE, plot_bugs
from tutorial.paths import DOC
from tutorial.results import mean_interval
from tutorial.scores import first_at

COLORS = ["0.45", BLUE, ORANGE, GREEN]
SHADED = (0, 0, 0), (0, 1, 1), (1, 1, 1)  # cells whose curves have a band
MUSEUM = [name for name, bug in BUGS.items() if bug.number or name == "crossq"]


def study() -> Figure:
    """All eight cells of every task of the study: mean curves, and the mean of every run.

    Under the points, n, p and N stand for n-step returns, prioritized replay and NoisyNet.
    """
    variants = read("study")
    options: dict[str, Any] = {"figsize": (11, 5.6), "layout": "constrained"}
    figure, panels = plt.subplots(2, 4, gridspec_kw={"height_ratios": [1, 1.15]}, **options)
    places = [*np.ndindex(2, 2, 2)]
    for (above, below), task in zip(panels.T, STUDY, strict=True):
        for k, place in enumerate(places):
            levels = [pair[on] for pair, on in zip(FACTORS, place, strict=True)]
            variant = variants["{}_n_{}_{}_{}".format(task, *levels)]
            color, episodes = COLORS[2 * place[1] + place[2]], variant["episode"][0]
            scores, style = variant["evaluation"], "-" if place[0] else "--"
            label = " + ".join(np.array(["n = 3", "prioritized", "NoisyNet"])[np.array(place) > 0])
            above.plot(episodes, scores.mean(axis=0), style, color=color, label=label or "none")
            if place in SHADED:
                _, *ends = np.array([mean_interval(column) for column in scores.T]).T
                above.fill_between(episodes, *ends, color=color, alpha=0.15, linewidth=0)
            means = scores.mean(axis=1) / MAX_SCORE
            near = k + np.linspace(-0.25, 0.25, len(means))
            below.plot(near, means, "o", color=color, markersize=3, alpha=0.6)
            middle, low, high = mean_interval(means)
            below.plot([k, k], [low, high], color=color, linewidth=2)
            below.plot([k - 0.35, k + 0.35], [middle, middle], color=color, linewidth=2)
        title = task.replace("_", " ")
        above.set(title=title, xlabel="episode", ylim=(0, MAX_SCORE), xlim=(0, episodes[-1]))
        names = ["\n".join(np.where(place, [*"npN"], "·")) for place in places]
        below.set(ylim=(0, 0.85), xticks=range(8), xticklabels=names)
    for axes in panels[:, 1:].ravel():
        axes.set_yticklabels([])
    panels[0, 0].set_ylabel("score without noise")
    panels[1, 0].set_ylabel("mean evaluation, share of the maximum")
    handles = panels[0, 0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return figure


def baselines() -> Figure:
    """Episodes until an evaluation is first 30, a point for each seed."""
    agents, colors = read("baselines"), {"sbx": BLUE, "sb3": GREEN}
    del agents["default"]  # an earlier one
    figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    for row, (agent, found) in enumerate(agents.items()):
        firsts = [first_at(scores) or np.inf for scores in found["evaluation"]]
        near = row + np.linspace(-0.25, 0.25, len(firsts))
        color = colors.get(agent[:3], ORANGE)
        axes.plot(firsts, near, "o", color=color, alpha=0.6, markersize=4)
        axes.plot(np.median(firsts), row, "|", color=color, markersize=14, mew=2.5)
    axes.set_yticks(range(len(agents)), [agent.replace("_", " ") for agent in agents])
    axes.invert_yaxis()
    axes.set(xlabel="first evaluation of 30: episode", xscale="log")
    marks = [1, 2, 3, 5, 10, 20, 40]
    axes.set_xticks(marks, [*map(str, marks)])
    axes.minorticks_off()
    axes.grid(axis="x", alpha=0.3)
    return figure


def sensitivity() -> Figure:
    """What each value of a setting changes in the mean of the first evaluations."""
    plan, variants = PLANS["sensitivity"], read("sensitivity")
    names: dict[float, str] = {}  # by row
    figure, axes = plt.subplots(figsize=(7, 4.8), layout="constrained")
    base, settings = plan.values("default", variants["default"]), plan.one_at_a_time
    for k, (setting, values) in enumerate(settings.items()):
        for value in values:
            row, name = len(names) + 0.6 * k, f"{setting}_{value}"
            found = difference(plan.values(name, variants[name]), base)
            color = COLORS[1 + k % 2]
            axes.plot([found["low"], found["high"]], [row, row], color=color, linewidth=2)
            axes.plot(found["effect"], row, "o", color=color, markersize=5)
            names[row] = f"{setting.replace('_', ' ')} = {value:g}"
    axes.axvline(0, color="0.6", linewidth=1)
    axes.set_yticks([*names], [*names.values()], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("points more than default in episodes 1 to 5, without noise")
    axes.grid(axis="x", alpha=0.3)
    return figure


FIGURES = {
    "study": study,
    "baselines": baselines,
    "sensitivity": sensitivity,
    "bugs": lambda: plot_bugs(read("bugs"), {name: BUGS[name].title for name in MUSEUM}),
}


def draw(name: str, folder: Path = DOC) -> Path:
    """Draw a figure of FIGURES into a folder."""
    path = folder / f"{name}.png"
    figure = FIGURES[name]()
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)
    return path
