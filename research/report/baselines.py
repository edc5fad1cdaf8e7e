"""Tables and figure of doc/baselines.md, from the files of `research.baselines`.

`python -m research.report.baselines` prints the tables and draws doc/baselines.png.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from tutorial.figures import BLUE, GREEN, ORANGE
from tutorial.paths import CHECKPOINTS, DOC
from tutorial.scores import first_at
from tutorial.tables import as_markdown, mean_and_interval, median_and_range

COLUMNS = ("trial", "seed", "episode", "score", "evaluation", "seconds")
RESULTS = CHECKPOINTS / "baselines"
TITLES = {
    "default": "**this notebook, `default`**",
    "no_mirrors": "**this notebook, without mirrors**",
    "sbx_ddpg": "SBX, DDPG",
    "sbx_td3": "SBX, TD3",
    "sbx_sac": "SBX, SAC",
    "sbx_tqc": "SBX, TQC",
    "sbx_crossq": "SBX, CrossQ",
    "sbx_sac_simba": "SBX, SAC with SimBa's networks",
    "sb3_ddpg": "Stable-Baselines3, DDPG",
    "sb3_td3": "Stable-Baselines3, TD3",
    "sb3_sac": "Stable-Baselines3, SAC",
}

Trainings = Mapping[str, np.ndarray]  # column to (trainings, episodes), NaN where nothing stands


def read_trainings(path: Path) -> Trainings:
    """All trainings of a file, in the order in which they were stored."""
    table = np.genfromtxt(path, delimiter=",", names=True)
    number = int((table["episode"] == 1).sum())
    return {name: table[name].reshape(number, -1) for name in table.dtype.names}


def means_of(agent: str) -> dict[int, dict[int, float]]:
    """The mean evaluation of each training of the tuning, by trial and seed."""
    path = RESULTS / "tuning" / f"{agent}.csv"
    found: dict[int, dict[int, float]] = {}
    if path.exists():
        table = read_trainings(path)
        for trial, seed, evaluations in zip(
            table["trial"][:, 0], table["seed"][:, 0], table["evaluation"], strict=True
        ):
            found.setdefault(int(trial), {})[int(seed)] = float(evaluations.mean())
    return found


def best_on(agent: str, seed: int, trials: int) -> list[int]:
    """Trials by their mean evaluation on a seed, best first; none while some are missing."""
    means = {trial: of[seed] for trial, of in means_of(agent).items() if seed in of}
    return sorted(means, key=lambda trial: -means[trial]) if len(means) == trials else []


def best_trial(agent: str) -> int | None:
    """Of the three trials with three seeds, that with the highest mean; None while some miss."""
    finals = {trial: of for trial, of in means_of(agent).items() if len(of) == 3}
    if len(finals) < 3:
        return None
    return max(finals, key=lambda trial: np.mean([*finals[trial].values()]))


def read_comparison() -> dict[str, Trainings]:
    """The trainings of all agents of the comparison that are stored, by agent."""
    paths = {agent: RESULTS / "comparison" / f"{agent}.csv" for agent in TITLES}
    return {agent: read_trainings(path) for agent, path in paths.items() if path.exists()}


def until_solved(found: Trainings) -> tuple[list[int | None], list[float | None]]:
    """The episode after which an evaluation is first 30, and the seconds until then, by seed."""
    firsts = [first_at(evaluations) for evaluations in found["evaluation"]]
    seconds = [
        None if first is None else float(row[first - 1])
        for first, row in zip(firsts, found["seconds"], strict=True)
    ]
    return firsts, seconds


def comparison_table() -> str:
    """What each agent reached on the seeds of the comparison."""
    head = [
        "agent",
        "first evaluation of 30: episode, median (range)",
        "seconds until then",
        "first training score of 30: episode",
        "evaluations of 1-40, mean (95 %)",
        "evaluation after 40, mean (range)",
        "seconds of 40 episodes, median",
    ]
    lines = []
    for agent, found in read_comparison().items():
        firsts, seconds = until_solved(found)
        last = found["evaluation"][:, -1]
        lines.append(
            [
                TITLES[agent],
                median_and_range(firsts),
                median_and_range(seconds),
                median_and_range([first_at(scores) for scores in found["score"]]),
                mean_and_interval(found["evaluation"].mean(axis=1)),
                f"{last.mean():.2f} ({last.min():.2f} to {last.max():.2f})",
                f"{np.median(found['seconds'][:, -1]):.0f}",
            ]
        )
    return as_markdown(head, lines)


def draw() -> Figure:
    """Episodes and seconds until an evaluation is first 30, a point for each seed."""
    agents = read_comparison()
    colors = {"sbx": BLUE, "sb3": GREEN}
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    for row, (agent, found) in enumerate(agents.items()):
        color, episodes = colors.get(agent[:3], ORANGE), found["episode"].shape[1]
        near = row + np.linspace(-0.25, 0.25, len(found["episode"]))
        for panel, values in zip(panels, until_solved(found), strict=True):
            numbers = np.array([np.inf if value is None else value for value in values])
            panel.plot(numbers, near, "o", color=color, alpha=0.6, markersize=4)
            panel.plot(np.median(numbers), row, "|", color=color, markersize=14, mew=2.5)
        if never := int(np.isinf(numbers).sum()):
            panels[1].annotate(
                f"{never} not in {episodes} episodes",
                (1.02, row),
                xycoords=("axes fraction", "data"),
                verticalalignment="center",
            )
    titles = [re.sub(r"[*`]", "", TITLES[agent]) for agent in agents]
    panels[0].set_yticks(range(len(agents)), titles)
    panels[0].set_ylim(len(agents) - 0.5, -0.5)
    panels[0].set_xlabel("first evaluation of 30: episode")
    panels[1].set_xlabel("the same, seconds of training")
    ticks = [1, 2, 3, 5, 10, 20, 40], [5, 10, 20, 50, 100, 200, 500]
    for panel, marks in zip(panels, ticks, strict=True):
        panel.set_xscale("log")
        panel.set_xticks(marks, [str(mark) for mark in marks])
        panel.minorticks_off()
        panel.grid(axis="x", alpha=0.3)
    return figure


def tuning_table() -> str:
    """What the twenty trainings of each agent found: mean evaluations of 1-12."""
    with open(RESULTS / "tuning" / "settings.csv", newline="") as file:
        settings = {
            (line["agent"], line["trial"]): line["settings"] for line in csv.DictReader(file)
        }
    head = [
        "agent",
        "the library's own settings",
        "those of `default`",
        "median of 14 trials",
        "best trial, three seeds",
        "its settings",
    ]
    lines = []
    for agent, title in TITLES.items():
        best = best_trial(agent)
        if best is None:
            continue
        means = means_of(agent)
        first = min(means[0])  # the seed that all trials have
        chosen = json.loads(settings[agent, str(best)])
        told = ", ".join(f"{name} {value}" for name, value in chosen.items())
        numbers = [
            means[0][first],
            means[1][first],
            np.median([of[first] for of in means.values()]),
        ]
        final = np.mean([*means[best].values()])
        lines.append([title, *(f"{value:.1f}" for value in (*numbers, final)), f"`{told}`"])
    return as_markdown(head, lines)


if __name__ == "__main__":
    print(comparison_table(), tuning_table(), sep="\n\n")
    draw().savefig(DOC / "baselines.png", dpi=110, metadata={"Software": None})
