"""The results of doc/study.md and its appendix, from the tables: measures, effects, figures.

    python -m research.report.study

prints them, and draws doc/study.png. When do n-step returns, prioritized replay and NoisyNet help?
A 2 x 2 x 2 factorial over four tasks asks that. `checkpoints/study/<task>.csv` has a line for each
evaluation without noise:

| column | meaning |
|---|---|
| setting | what differs from the cell's settings; empty in the study |
| n_step, replay, noisy_layers | the cell |
| seed | of the environment, the networks and the noise |
| episode | of training, after which the actor's mean weights were evaluated |
| score | of the evaluation: mean over the arms of an episode's sum of rewards |
| training_score | of that episode of training, with noise |
| decisions, num_updates | so far |
| seconds | of training so far, evaluations left out |

The tables `pilot.csv` and `sweep.csv` hold the runs by which the tasks' difficulty was chosen and
the settings were questioned. All runs are finished: their program is in the history, because the
agent has changed since.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from scipy import stats

from reacher.task import MAX_SCORE
from research.report import statistics
from research.report.statistics import FACTORS
from tutorial.figures import BLUE, GREEN, ORANGE, PALETTE
from tutorial.paths import CHECKPOINTS, DOC
from tutorial.tables import as_markdown

RESULTS = CHECKPOINTS / "study"
MARGIN = 0.05  # share of the largest area under the curve: smaller effects are called small
LEVELS = {"n_step": (1, 3), "replay": ("uniform", "prioritized"), "noisy_layers": (False, True)}
NAMES = {"n_step": "n-step returns", "replay": "prioritized replay", "noisy_layers": "NoisyNet"}
MEASURES = ("area", "end", "half")
CELLS = list(itertools.product(*(map(str, LEVELS[factor]) for factor in FACTORS)))
COLORS = dict(zip(FACTORS, PALETTE, strict=False))
COLORS_OF_PAIRS = {(0, 0): "0.45", (0, 1): BLUE, (1, 0): ORANGE, (1, 1): GREEN}  # replay, NoisyNet
SHADED = (0, 0, 0), (0, 1, 1), (1, 1, 1)  # cells whose curves have a band
STAGES = 5, 7, 9, 10, 12  # seeds a cell after which we looked at the tables
ALSO_OVER_SEEDS = (  # effects of which the page also gives p with seeds as the unit
    ("small_goals", "replay"),
    ("delayed_rewards", "replay"),
    ("delayed_rewards", "n_step"),
    ("standard", "replay"),
    ("one_arm", "noisy_layers"),
)


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
    folder: Path, task: str, n_step: int | str, replay: str, noisy_layers: bool | str
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


def tables(folder: Path) -> dict[str, dict[str, np.ndarray]]:
    """`table` of every task that has one."""
    paths = {task: folder / f"{task}.csv" for task in TASKS}
    return {task: table(path) for task, path in paths.items() if path.exists()}


def results(
    folder: Path, resampled: bool = False, seeds: int | None = None
) -> dict[str, dict[str, dict]]:
    """Effects on the area of every task, with Holm's correction over all of them.

    Args:
        resampled: with 95 % intervals of the improvements, which takes seconds.
        seeds: only the first ones, as many as this says; None: all.

    Returns:
        By task and effect, what `statistics.factorial_table` gives, with `p_holm` and
        `p_seeds_holm`, `verdict` (shown, suggested, shown to be small, not shown) and, of a main
        effect, `improvement`: how often a run with the factor is above one without it, within the
        cells of the other factors.
    """
    tasks = {task: values["area"][..., :seeds] for task, values in tables(folder).items()}
    effects_by_task = {
        task: statistics.factorial_table(area, MARGIN) for task, area in tasks.items()
    }
    effects = [effect for task in effects_by_task.values() for effect in task.values()]
    corrected = statistics.holm([effect["p"] for effect in effects])
    over_seeds = statistics.holm([effect["p_seeds"] for effect in effects])
    for effect, p, p_seeds in zip(effects, corrected, over_seeds, strict=True):
        effect["p_holm"], effect["p_seeds_holm"] = float(p), float(p_seeds)
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


def effects_table(effects_by_task: Mapping) -> str:
    """The results as a Markdown table."""
    head = [
        "task",
        "effect",
        "share of the area (95%)",
        "p",
        "p, Holm",
        f"p, within ±{MARGIN}",
        "better with it",
        "verdict",
    ]
    lines = []
    for task, effects in effects_by_task.items():
        for name, effect in effects.items():
            better = "-"
            if "improvement" in effect:
                better = f"{100 * effect['improvement']:.0f}%"
            if "improvement_interval" in effect:
                low, high = (100 * end for end in effect["improvement_interval"])
                better += f" ({low:.0f} to {high:.0f})"
            lines.append(
                [
                    TASKS[task],
                    " x ".join(NAMES[factor] for factor in name.split(" x ")),
                    with_interval(effect),
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


def with_interval(effect: Mapping[str, float]) -> str:
    """An effect and its interval as text."""
    return f"{effect['effect']:+.3f} ({effect['low']:+.3f} to {effect['high']:+.3f})"


def main_effects_table(effects_by_task: Mapping) -> str:
    """The main effects: tasks down, ingredients across; bold if shown, with * if suggested."""
    marks = {"shown": "**{}**", "suggested": "{} *"}
    lines = [
        [
            TASKS[task],
            *(
                marks.get(effects[factor]["verdict"], "{}").format(with_interval(effects[factor]))
                for factor in FACTORS
            ),
        ]
        for task, effects in effects_by_task.items()
    ]
    return as_markdown(["task", *NAMES.values()], lines)


def simple_effects(area: np.ndarray) -> dict[str, dict[tuple[str, ...], dict[str, float]]]:
    """The effect of each factor within each combination of the other two.

    Args:
        area: (2, 2, 2, seeds), an axis for each factor, off and on.

    Returns:
        By factor and those of the other two that are on: what `statistics.effect_of_seeds` gives.
    """
    found: dict = {}
    for axis, factor in enumerate(FACTORS):
        others = [other for other in FACTORS if other != factor]
        differences = np.diff(area, axis=axis).squeeze(axis)  # (2, 2, seeds)
        found[factor] = {
            tuple(other for other, level in zip(others, place, strict=True) if level): (
                statistics.effect_of_seeds(differences[place])
            )
            for place in np.ndindex(2, 2)
        }
    return found


def simple_effects_table(folder: Path) -> str:
    """The simple effects of every task."""
    lines = []
    for task, values in tables(folder).items():
        for factor, effects in simple_effects(values["area"]).items():
            others = [other for other in FACTORS if other != factor]
            cells = [(), *((other,) for other in FACTORS), tuple(others)]
            lines.append(
                [
                    TASKS[task],
                    NAMES[factor],
                    *(with_interval(effects[on]) if on in effects else "-" for on in cells),
                ]
            )
    head = ["task", "effect of", "alone", *(f"with {NAMES[factor]}" for factor in FACTORS)]
    return as_markdown([*head, "with both others"], lines)


def interaction(area: np.ndarray) -> dict[str, float]:
    """By how much the third factor changes the interaction of the other two, as one effect.

    Args:
        area: (2, 2, 2, seeds), an axis for each factor, off and on.
    """
    return statistics.effect_of_seeds(
        np.diff(np.diff(np.diff(area, axis=0), axis=1), axis=2)[0, 0, 0]
    )


def three_way_table(folder: Path) -> str:
    """The interaction of all three: by how much the third changes the interaction of a pair."""
    found = {task: interaction(values["area"]) for task, values in tables(folder).items()}
    corrected = statistics.holm([effect["p_seeds"] for effect in found.values()])
    lines = [
        [TASKS[task], with_interval(effect), f"{effect['p_seeds']:.4f}", f"{p:.3f}"]
        for (task, effect), p in zip(found.items(), corrected, strict=True)
    ]
    return as_markdown(["task", "three-way interaction (95%)", "p", "p, Holm over tasks"], lines)


def names_of(cell: Sequence) -> str:
    """The ingredients that a cell, of levels as text, has."""
    on = [
        NAMES[factor]
        for factor, level in zip(FACTORS, cell, strict=True)
        if level != str(LEVELS[factor][0])
    ]
    return "all three" if len(on) == len(FACTORS) else " + ".join(on) or "none"


def cells_table(folder: Path) -> str:
    """The measures of each cell: mean area with its 95 % t-interval, and interquartile means."""
    lines = []
    for task, values in tables(folder).items():
        for place in np.ndindex(2, 2, 2):
            cell = [LEVELS[factor][k] for factor, k in zip(FACTORS, place, strict=True)]
            mean = statistics.effect_of_seeds(values["area"][place])
            area, end, half = (
                statistics.interquartile_mean(values[name][place]) for name in MEASURES
            )
            lines.append(
                [
                    TASKS[task],
                    *levels_as_text(cell),
                    f"{mean['effect']:.3f} ({mean['low']:.3f} to {mean['high']:.3f})",
                    f"{area:.3f}",
                    f"{end:.3f}",
                    f"{half:.1f}",
                ]
            )
    head = ["task", "n-step", "replay", "NoisyNet", "area: mean (95%)", *MEASURES[:2]]
    return as_markdown([*head, "episodes to half"], lines)


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


def other_numbers(folder: Path, effects_by_task: Mapping) -> str:
    """What else doc/study.md says of a study that has all four tasks."""
    areas = {task: values["area"] for task, values in tables(folder).items()}
    ends = {task: values["end"] for task, values in tables(folder).items()}
    pooled = np.mean([*areas.values()], axis=0)  # (2, 2, 2, seeds)
    lines = []
    for task, area in areas.items():
        both = statistics.effect_of_seeds(area[1, 1, 1] - area[0, 0, 0])
        lines.append([f"{TASKS[task]}: all three minus none", with_interval(both)])
    for axis, factor in enumerate(FACTORS):
        effect = statistics.effect_of_seeds(np.diff(pooled, axis=axis).reshape(4, -1).mean(axis=0))
        lines.append([f"mean over the tasks: {NAMES[factor]}", with_interval(effect)])
    for name, chosen in {"with both others on": (1, 1), "alone": (0, 0)}.items():
        effect = statistics.effect_of_seeds(pooled[1, *chosen] - pooled[0, *chosen])
        lines.append([f"mean over the tasks: n-step returns {name}", with_interval(effect)])
    number = pooled.shape[-1]  # of seeds
    for task, factor in ALSO_OVER_SEEDS:
        effect, name = effects_by_task[task][factor], f"{TASKS[task]}: {NAMES[factor]}"
        spread = areas[task].var(axis=-1, ddof=1).mean()  # within a cell, of 8 (number - 1) degrees
        reach = stats.t.ppf(0.975, 8 * (number - 1)) * np.sqrt(spread / (2 * number))
        ends_of_it = {"low": effect["effect"] - reach, "high": effect["effect"] + reach}
        lines += [
            [f"{name}, corrected p with seeds as the unit", f"{effect['p_seeds_holm']:.3f}"],
            [f"{name}, interval from the spread within cells", with_interval(effect | ends_of_it)],
        ]
    planned = [effect["p"] for effects in effects_by_task.values() for effect in effects.values()]
    three_way = [interaction(area)["p_seeds"] for area in areas.values()]
    p = statistics.holm(three_way + planned)[[*areas].index("delayed_rewards")]
    lines.append(
        ["delayed rewards: three-way interaction, p corrected for it and all others", f"{p:.3f}"]
    )
    stages = [
        results(folder, seeds=seeds)["delayed_rewards"]["n_step"]["p_holm"] for seeds in STAGES
    ]
    lines.append(
        [
            "delayed rewards: n-step returns, corrected p after "
            f"{', '.join(map(str, STAGES))} seeds",
            ", ".join(f"{p:.3f}" for p in stages),
        ]
    )
    for name, of_pairs in {"main effects": False, "interactions of pairs": True}.items():
        errors = [
            (effect["high"] - effect["low"]) / 2 / stats.t.ppf(0.975, number - 1)
            for effects in effects_by_task.values()
            for key, effect in effects.items()
            if (" x " in key) == of_pairs
        ]
        lines.append([f"standard errors of {name}", f"{min(errors):.3f} to {max(errors):.3f}"])
    for task, end in ends.items():
        lines.append([f"{TASKS[task]}: mean end with none", f"{100 * end[0, 0, 0].mean():.0f}%"])
    one_arm = tables(folder)["one_arm"]
    runs, floor = one_arm["area"].size, (one_arm["area"] < 0.1).sum()
    never = (one_arm["half"] == one_arm["half"].max()).sum()  # 44, an evaluation after the last
    lines += [
        ["one arm: runs with an area below 0.10", f"{floor} of {runs}"],
        ["one arm: runs that never reach half of the maximum", f"{never} of {runs}"],
    ]
    return as_markdown(["number", "value"], lines)


def rates_table(path: Path) -> str:
    """By how much all three are above none in the sweep, at each learning rate."""
    lines = []
    for rate in ("0.0003", "0.001", "0.003"):
        setting = f"actor_learning_rate={rate};critic_learning_rate={rate}"
        cells = curves(path, "" if rate == "0.001" else setting)
        on, off = cells["3", "prioritized", "True"], cells["1", "uniform", "False"]
        differences = [
            measures(*on[seed])["area"] - measures(*off[seed])["area"] for seed in sorted(on)
        ]
        effect = statistics.effect_of_seeds(np.array(differences))
        lines.append([rate, str(len(differences)), with_interval(effect)])
    return as_markdown(["both learning rates", "seeds", "all three minus none (95%)"], lines)


def costs_table(folder: Path) -> str:
    """Runs and hours of training of each table."""
    lines = []
    for name in (*TASKS, "sweep", "pilot"):
        seconds = {}
        with open(folder / f"{name}.csv") as file:
            for line in csv.DictReader(file):
                run = (line["setting"], *(line[factor] for factor in FACTORS), line["seed"])
                seconds[run] = float(line["seconds"])
        lines.append([f"`{name}.csv`", str(len(seconds)), f"{sum(seconds.values()) / 3600:.2f}"])
    return as_markdown(["table", "runs", "hours of training"], lines)


def diagnostics_table(path: Path) -> str:
    """Means over two seeds and the training, of which the last two only over its first half."""
    cells: dict = {}
    with open(path) as file:
        for line in csv.DictReader(file):
            cells.setdefault(tuple(line[factor] for factor in FACTORS), []).append(line)
    lines = []
    for cell, rows in cells.items():
        early = [row for row in rows if int(row["episode"]) <= int(rows[-1]["episode"]) / 2]
        held, drawn = (np.mean([float(row[name]) for row in rows]) for name in ("held", "drawn"))
        correlation, noise = (
            np.mean([float(row[name]) for row in early]) for name in ("correlation", "noise")
        )
        lines.append(
            [
                names_of(cell),
                f"{100 * held:.1f}%",
                f"{100 * drawn:.1f}%",
                f"{drawn / held:.2f}",
                f"{correlation:.2f}",
                f"{noise:.2f}",
            ]
        )
    head = ["agent with", "held", "sampled", "sampled / held", "correlation", "noise"]
    return as_markdown(head, lines)


def results_text(folder: Path) -> str:
    """All numbers of doc/study.md's results, from the tables in a folder."""
    effects_by_task = results(folder, resampled=True)
    tables_of_results = [
        main_effects_table(effects_by_task),
        three_way_table(folder),
        simple_effects_table(folder),
        effects_table(effects_by_task),
        cells_table(folder),
        other_numbers(folder, effects_by_task),
        sweep_table(folder / "sweep.csv"),
        rates_table(folder / "sweep.csv"),
        diagnostics_table(folder / "diagnostics.csv"),
        costs_table(folder),
    ]
    return "\n\n".join(tables_of_results)


def draw_cells(folder: Path) -> Figure:
    """All eight cells of every task: mean curves, and the area of every run.

    Under the points, n, p and N stand for n-step returns, prioritized replay and NoisyNet.
    """
    tasks = tables(folder)
    figure, panels = plt.subplots(
        2,
        len(tasks),
        figsize=(11, 5.6),
        layout="constrained",
        squeeze=False,
        gridspec_kw={"height_ratios": [1, 1.15]},
    )
    places = [*np.ndindex(2, 2, 2)]  # n-step returns, prioritized replay, NoisyNet
    for column, (task, values) in enumerate(tasks.items()):
        above, below = panels[:, column]
        for k, (place, cell) in enumerate(zip(places, CELLS, strict=True)):
            color = COLORS_OF_PAIRS[place[1:]]
            episodes, scores = cell_curves(folder, task, *cell)
            low, high = stats.ttest_1samp(scores, 0).confidence_interval(0.95)
            above.plot(
                episodes,
                scores.mean(axis=0),
                "-" if place[0] else "--",
                color=color,
                linewidth=1.6,
                label=names_of(cell),
            )
            if place in SHADED:
                above.fill_between(episodes, low, high, color=color, alpha=0.15, linewidth=0)
            area = values["area"][place]
            mean = statistics.effect_of_seeds(area)
            below.plot(
                k + np.linspace(-0.25, 0.25, len(area)),
                area,
                "o",
                color=color,
                markersize=3,
                alpha=0.6,
                markeredgewidth=0,
            )
            below.plot([k, k], [mean["low"], mean["high"]], color=color, linewidth=2)
            below.plot([k - 0.35, k + 0.35], [mean["effect"]] * 2, color=color, linewidth=2)
        above.set(title=TASKS[task], xlabel="episode", ylim=(0, MAX_SCORE), xlim=(0, episodes[-1]))
        below.set(
            ylim=(0, 0.85),
            xticks=range(len(places)),
            xticklabels=[
                "\n".join(letter if on else "·" for letter, on in zip("npN", place, strict=True))
                for place in places
            ],
        )
    for axes in panels[:, 1:].ravel():
        axes.set_yticklabels([])
    panels[0, 0].set_ylabel("score without noise")
    panels[1, 0].set_ylabel("area, share of the maximum")
    figure.legend(
        *panels[0, 0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=4,
        frameon=False,
        fontsize=9,
    )
    return figure


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
        "what it adds to the mean evaluation score (share of the maximum)",
        fontsize=10,
    )
    return figure


def main() -> None:
    print(results_text(RESULTS))
    draw_cells(RESULTS).savefig(DOC / "study.png", dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
