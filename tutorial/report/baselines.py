"""Tables of doc/baselines.md, from the files of `tutorial.experiments.baselines`.

python -m tutorial.report.baselines
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tutorial.paths import CHECKPOINTS
from tutorial.report.tables import as_markdown, mean_and_interval, median_and_range
from tutorial.training.scores import first_at

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
    """All trainings of a file, by trial and seed."""
    table = np.genfromtxt(path, delimiter=",", names=True)
    number = int((table["episode"] == 1).sum())
    return {name: table[name].reshape(number, -1) for name in table.dtype.names}


def best_trial(folder: Path, agent: str, trials: int) -> int | None:
    """The trial with the highest mean score; None while some are missing."""
    path = folder / f"{agent}.csv"
    found = read_trainings(path) if path.exists() else {"trial": np.empty((0, 1))}
    if len(found["trial"]) < trials:
        return None
    return int(found["trial"][found["score"].mean(axis=1).argmax(), 0])


def comparison_table() -> str:
    """What each agent reached on the seeds of the comparison."""
    head = [
        "agent",
        "first score of 30: episode, median (range)",
        "seconds until then",
        "scores of 1-40, mean (95 %)",
        "without noise after 40, mean (range)",
        "seconds of 40 episodes, median",
    ]
    lines = []
    for agent, title in TITLES.items():
        path = RESULTS / "comparison" / f"{agent}.csv"
        if not path.exists():
            continue
        found = read_trainings(path)
        firsts = [first_at(scores) for scores in found["score"]]
        seconds = [
            None if first is None else row[first - 1]
            for first, row in zip(firsts, found["seconds"], strict=True)
        ]
        last = found["evaluation"][:, -1]
        lines.append(
            [
                title,
                median_and_range(firsts),
                median_and_range(seconds),
                mean_and_interval(found["score"].mean(axis=1)),
                f"{last.mean():.2f} ({last.min():.2f} to {last.max():.2f})",
                f"{np.median(found['seconds'][:, -1]):.0f}",
            ]
        )
    return as_markdown(head, lines)


def tuning_table() -> str:
    """What twenty trials of each agent found."""
    with open(RESULTS / "tuning" / "settings.csv", newline="") as file:
        settings = {
            (line["agent"], line["trial"]): line["settings"] for line in csv.DictReader(file)
        }
    head = [
        "agent",
        "the library's own settings",
        "those of `default`",
        "median trial",
        "best trial",
        "its settings",
    ]
    lines = []
    for agent, title in TITLES.items():
        path = RESULTS / "tuning" / f"{agent}.csv"
        if not path.exists():
            continue
        found = read_trainings(path)
        means = found["score"].mean(axis=1)
        best = int(found["trial"][means.argmax(), 0])
        chosen = json.loads(settings[agent, str(best)])
        told = ", ".join(f"{name} {value}" for name, value in chosen.items())
        numbers = (f"{value:.1f}" for value in (means[0], means[1], np.median(means), means.max()))
        lines.append([title, *numbers, f"`{told}`" if told else "its own"])
    return as_markdown(head, lines)


if __name__ == "__main__":
    print(comparison_table(), tuning_table(), sep="\n\n")
