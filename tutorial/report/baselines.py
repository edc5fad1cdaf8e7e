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
    for agent, title in TITLES.items():
        path = RESULTS / "comparison" / f"{agent}.csv"
        if not path.exists():
            continue
        found = read_trainings(path)
        firsts = [first_at(evaluations) for evaluations in found["evaluation"]]
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
                median_and_range([first_at(scores) for scores in found["score"]]),
                mean_and_interval(found["evaluation"].mean(axis=1)),
                f"{last.mean():.2f} ({last.min():.2f} to {last.max():.2f})",
                f"{np.median(found['seconds'][:, -1]):.0f}",
            ]
        )
    return as_markdown(head, lines)


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
