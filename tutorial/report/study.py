"""The results of the study of doc/study.md, from its tables: measures, effects, the figure."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from reacher.drawing.style import BLUE, ORANGE, PALETTE
from reacher.task import MAX_SCORE
from tutorial.report import statistics
from tutorial.report.statistics import FACTORS
from tutorial.report.tables import as_markdown

MARGIN = 0.05  # share of the largest area under the curve: smaller effects are called small
LEVELS = {"n_step": (1, 3), "replay": ("uniform", "prioritized"), "noisy_layers": (False, True)}
NAMES = {"n_step": "n-step returns", "replay": "prioritized replay", "noisy_layers": "NoisyNet"}
MEASURES = ("area", "end", "half")
CELLS = list(itertools.product(*(map(str, LEVELS[factor]) for factor in FACTORS)))
COLORS = dict(zip(FACTORS, PALETTE, strict=False))


def curves(path: Path, setting: str = "") -> dict[tuple, dict[int, tuple[np.ndarray, np.ndarray]]]:
    """Evaluations of a task's table: by cell and seed, episodes and scores.

    Args:
        setting: of the sweep; empty: the study itself.
    """
    points_by_cell: dict = {}
    with open(path) as file:
        for line in csv.DictReader(file):
            if line["setting"] == setting:
                runs = points_by_cell.setdefault(tuple(line[factor] for factor in FACTORS), {})
                runs.setdefault(int(line["seed"]), []).append(
                    (int(line["episode"]), float(line["score"]))
                )
    return {
        cell: {seed: tuple(np.array(sorted(points)).T) for seed, points in runs.items()}
        for cell, runs in points_by_cell.items()
    }


def cell_curves(
    folder: Path, task: str, n_step: int, replay: str, noisy_layers: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Evaluations of one cell of a task: episodes (k,) and scores (seeds, k)."""
    runs = curves(folder / f"{task}.csv")[str(n_step), replay, str(noisy_layers)].values()
    return next(iter(runs))[0], np.array([scores for _, scores in runs])


def measures(episodes: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    """The three measures of one run.

    Returns:
        `area`: mean of all evaluations, as a share of MAX_SCORE; `end`: the last one, likewise;
        `half`: episodes until an evaluation is at half of MAX_SCORE, or the last one and a step
        more.
    """
    above = np.flatnonzero(scores >= MAX_SCORE / 2)
    step = episodes[1] - episodes[0] if len(episodes) > 1 else 1
    return {
        "area": float(scores.mean()) / MAX_SCORE,
        "end": float(scores[-1]) / MAX_SCORE,
        "half": float(episodes[above[0]] if len(above) else episodes[-1] + step),
    }


def table(path: Path) -> dict[str, np.ndarray]:
    """Each measure of a task as (2, 2, 2, seeds), an axis for each factor, off and on.

    Only seeds that every cell has are in it.
    """
    cells = curves(path)
    seeds = sorted(set.intersection(*(set(runs) for runs in cells.values())))
    values = {name: np.zeros((2, 2, 2, len(seeds))) for name in MEASURES}
    for cell, runs in cells.items():
        place = np.unravel_index(CELLS.index(cell), (2, 2, 2))
        for k, seed in enumerate(seeds):
            for name, value in measures(*runs[seed]).items():
                values[name][(*place, k)] = value
    return values


def results(folder: Path, resampled: bool = False) -> dict[str, dict[str, dict]]:
    """Effects on the area of every task, with Holm's correction over all of them.

    Args:
        resampled: with 95 % intervals of the improvements, which takes seconds.

    Returns:
        By task and effect, what `statistics.factorial_table` gives, with `p_holm`, `verdict`
        (shown, suggested, shown to be small, not shown) and, of a main effect, `improvement`: how
        often a run with the factor is above one without it, within the cells of the other factors.
    """
    tasks = {
        task: table(folder / f"{task}.csv")["area"]
        for task in TASKS
        if (folder / f"{task}.csv").exists()
    }
    effects_by_task = {
        task: statistics.factorial_table(area, MARGIN) for task, area in tasks.items()
    }
    effects = [effect for task in effects_by_task.values() for effect in task.values()]
    corrected = statistics.holm([effect["p"] for effect in effects])
    for effect, p in zip(effects, corrected, strict=True):
        effect["p_holm"] = float(p)
        effect["verdict"] = (
            "shown"
            if p < 0.05
            else "shown to be small"
            if effect["p_equivalent"] < 0.05
            else "suggested"
            if effect["p"] < 0.05
            else "not shown"
        )
    for task, area in tasks.items():
        for axis, factor in enumerate(FACTORS):
            off, on = (np.take(area, level, axis).reshape(4, -1) for level in (0, 1))
            effects_by_task[task][factor]["improvement"] = improvement(*on, *off)
            if resampled:
                effects_by_task[task][factor]["improvement_interval"] = (
                    statistics.stratified_interval([*on, *off], improvement)
                )
    return effects_by_task


def improvement(*groups: np.ndarray) -> float:
    """How often a run with a factor is above one without it: cells with it, then those without."""
    half = len(groups) // 2
    pairs = zip(groups[:half], groups[half:], strict=True)
    return float(np.mean([statistics.probability_of_improvement(*pair) for pair in pairs]))


TASKS = {
    "standard": "standard task",
    "small_goals": "small goals",
    "delayed_rewards": "delayed rewards",
    "one_arm": "one arm",
}


def effects_table(effects_by_task: Mapping, main_only: bool = False) -> str:
    """The results as a Markdown table.

    Args:
        main_only: without the interactions.
    """
    head = [
        "task",
        "effect",
        "share of the area (95 %)",
        "p",
        "p, Holm",
        f"p, within ±{MARGIN}",
        "better with it",
        "verdict",
    ]
    lines = []
    for task, effects in effects_by_task.items():
        for name, effect in effects.items():
            if main_only and " x " in name:
                continue
            better = "-"
            if "improvement" in effect:
                better = f"{100 * effect['improvement']:.0f} %"
            if "improvement_interval" in effect:
                low, high = (100 * end for end in effect["improvement_interval"])
                better += f" ({low:.0f} to {high:.0f})"
            lines.append(
                [
                    TASKS[task],
                    " x ".join(NAMES[factor] for factor in name.split(" x ")),
                    f"{effect['effect']:+.3f} ({effect['low']:+.3f} to {effect['high']:+.3f})",
                    f"{effect['p']:.4f}",
                    f"{effect['p_holm']:.3f}",
                    f"{effect['p_equivalent']:.3f}",
                    better,
                    effect["verdict"],
                ]
            )
    return as_markdown(head, lines)


def levels_as_text(cell: Sequence) -> list[str]:
    """The levels of a cell as the tables name them."""
    return [str(cell[0]), str(cell[1]), "on" if str(cell[2]) == "True" else "off"]


def cells_table(folder: Path) -> str:
    """Interquartile means of the measures of each cell."""
    lines = []
    for task, title in TASKS.items():
        if not (folder / f"{task}.csv").exists():
            continue
        values_by_measure = table(folder / f"{task}.csv")
        for place in np.ndindex(2, 2, 2):
            cell = [LEVELS[factor][k] for factor, k in zip(FACTORS, place, strict=True)]
            area, end, half = (
                statistics.interquartile_mean(values_by_measure[name][place]) for name in MEASURES
            )
            seeds = values_by_measure["area"].shape[-1]
            lines.append(
                [
                    title,
                    *levels_as_text(cell),
                    str(seeds),
                    f"{area:.3f}",
                    f"{end:.3f}",
                    f"{half:.1f}",
                ]
            )
    head = ["task", "n-step", "replay", "NoisyNet", "seeds", *MEASURES[:2], "episodes to half"]
    return as_markdown(head, lines)


def sweep_table(path: Path) -> str:
    """Area and end of some cells under other settings."""
    with open(path) as file:
        settings = sorted({line["setting"] for line in csv.DictReader(file)})
    cells = [
        (cell, setting, runs)
        for setting in settings
        for cell, runs in curves(path, setting).items()
    ]
    lines = []
    for cell, setting, runs in sorted(cells, key=lambda one: one[:2]):
        measured = [measures(*run) for run in runs.values()]
        areas = [run["area"] for run in measured]
        lines.append(
            [
                *levels_as_text(cell),
                setting.replace(";", ", ") or "as in the study",
                str(len(measured)),
                f"{np.mean(areas):.3f} ({min(areas):.3f} to {max(areas):.3f})",
                f"{np.mean([run['end'] for run in measured]):.3f}",
            ]
        )
    head = ["n-step", "replay", "NoisyNet", "setting", "seeds", "area: mean (range)", "end: mean"]
    return as_markdown(head, lines)


def results_text(folder: Path) -> str:
    """All numbers of doc/study.md's results, from the tables in a folder."""
    tables = [effects_table(results(folder, resampled=True)), cells_table(folder)]
    if (folder / "sweep.csv").exists():
        tables.append(sweep_table(folder / "sweep.csv"))
    return "\n\n".join(tables)


def draw(effects_by_task: Mapping) -> Figure:
    """The main effects: tasks across, an ingredient each with its 95 % interval."""
    figure, panels = plt.subplots(
        1,
        len(effects_by_task),
        figsize=(9, 2.6),
        sharey=True,
        sharex=True,
        layout="constrained",
        squeeze=False,
    )
    for axes, (task, effects) in zip(panels[0], effects_by_task.items(), strict=True):
        axes.axvspan(-MARGIN, MARGIN, color="0.92", linewidth=0)
        axes.axvline(0, color="0.4", linewidth=1)
        for row, factor in enumerate(FACTORS):
            effect = effects[factor]
            shown = effect["verdict"] == "shown"
            axes.plot(
                [effect["low"], effect["high"]],
                [row, row],
                color=COLORS[factor],
                linewidth=3 if shown else 1.5,
            )
            axes.plot(
                effect["effect"],
                row,
                "o",
                color=COLORS[factor],
                markersize=8,
                markerfacecolor=COLORS[factor] if shown else "white",
            )
        axes.set_title(TASKS[task], fontsize=10)
    panels[0, 0].set(
        yticks=range(len(FACTORS)),
        yticklabels=[NAMES[name] for name in FACTORS],
        ylim=(len(FACTORS) - 0.5, -0.5),
    )
    figure.supxlabel(
        "what it adds to the area under the evaluation curve (share of the most possible)",
        fontsize=10,
    )
    return figure


def draw_curves(folder: Path) -> Figure:
    """Interquartile means of the evaluations: tasks across, a line for each of the eight cells."""
    figure, panels = plt.subplots(
        1, len(TASKS), figsize=(9, 3.2), sharey=True, layout="constrained"
    )
    for axes, (task, title) in zip(panels, TASKS.items(), strict=True):
        cells = curves(folder / f"{task}.csv")
        for cell in CELLS:
            n, replay, noisy = levels_as_text(cell)
            episodes, scores = zip(*cells[cell].values(), strict=True)
            axes.plot(
                episodes[0],
                statistics.interquartile_mean(scores, axis=0),
                color=BLUE if replay == "uniform" else ORANGE,
                linestyle="-" if n == "1" else "--",
                linewidth=2.5 if noisy == "on" else 1.2,
                label=f"n = {n}, {replay}, NoisyNet {noisy}",
            )
        axes.set_title(title, fontsize=10)
    panels[0].set(ylim=(0, 41), ylabel="score without noise")
    figure.supxlabel("episode of training", fontsize=10)
    figure.legend(
        *panels[0].get_legend_handles_labels(), ncols=4, fontsize=8, loc="outside upper center"
    )
    return figure
