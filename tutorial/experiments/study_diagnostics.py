"""A look inside one task of the study: why an ingredient pays there, or does not.

    python -m tutorial.experiments.study_diagnostics            train what is missing
    python -m tutorial.experiments.study_diagnostics --report   print what was found

The agents with none, with each one and with all of the three ingredients, two seeds each, train as
in the study. Beside each evaluation a line goes into `checkpoints/study/diagnostics.csv`:

| column | meaning |
|---|---|
| task, n_step, replay, noisy_layers, seed, episode | as in the study's tables |
| score | of the evaluation without noise |
| held | share of the transitions in the memory whose window holds a reward |
| drawn | the same share of what was drawn since the evaluation before |
| correlation | of the critic's values with the returns that followed, in an episode without noise |
| noise | mean distance of the actions from those of the mean weights, in actions |
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

import helpers
from tutorial.experiments import study
from tutorial.training import compiled

TABLE = study.KEPT / "inside.csv"
COLUMNS = (
    "task",
    *study.LEVELS,
    "seed",
    "episode",
    "score",
    "held",
    "drawn",
    "correlation",
    "noise",
)
CELLS = {
    "none": (1, "uniform", False),
    "n-step returns": (3, "uniform", False),
    "prioritized replay": (1, "prioritized", False),
    "NoisyNet": (1, "uniform", True),
    "all three": (3, "prioritized", True),
}
TASK, SEEDS = "small_goals", range(2_000, 2_002)


class Watcher:
    """Counts what is drawn, and asks the critic, beside the evaluations of a training."""

    def begin(self, agent: Any) -> None:
        """Watch this agent's memory."""
        self.paid = self.drawn = 0
        self.column = sum(agent.sizes)  # of the return
        sample = agent.replay.sample

        def counted(shape, beta):
            indices, rows, weights = sample(shape, beta)
            self.paid += np.count_nonzero(rows[..., self.column])
            self.drawn += indices.size
            return indices, rows, weights

        agent.replay.sample = counted

    def look(self, agent: Any, environment: Any) -> dict[str, float]:
        """The columns of this evaluation; begins to count anew."""
        played = helpers.rollout(environment, lambda seen: agent.act(seen, explore=False))
        observations, actions, rewards = (np.array(part) for part in zip(*played, strict=True))
        returns = helpers.returns_that_followed(rewards, agent.settings.discount)
        critic = compiled.synced(agent).critic
        with torch.no_grad():
            values = critic(
                *(
                    torch.from_numpy(part[: len(returns)]).flatten(0, 1)
                    for part in (observations, actions)
                )
            ).numpy()
        constant = returns.std() == 0 or values.std() == 0
        found = {
            "held": np.count_nonzero(agent.replay.rows[: len(agent.replay), self.column])
            / len(agent.replay),
            "drawn": self.paid / max(self.drawn, 1),
            "correlation": 0.0 if constant else np.corrcoef(values, returns.ravel())[0, 1],
            "noise": agent.log["noise"],
        }
        self.paid = self.drawn = 0
        return found


def read(table: Path = TABLE) -> list[dict[str, str]]:
    """The lines of the table; none where there is none yet."""
    if not table.exists():
        return []
    with open(table) as file:
        return list(csv.DictReader(file))


def curves(lines: list[Mapping[str, str]], column: str) -> dict[str, tuple]:
    """Episodes, and values (seeds, episodes), by the name of a cell."""
    found = {}
    for name, cell in CELLS.items():
        of = [
            line
            for line in lines
            if tuple(line[level] for level in study.LEVELS) == tuple(map(str, cell))
        ]
        episodes = sorted({int(line["episode"]) for line in of})
        values = {(line["seed"], int(line["episode"])): float(line[column]) for line in of}
        seeds = sorted({line["seed"] for line in of})
        if seeds:
            found[name] = (
                np.array(episodes),
                np.array([[values[seed, episode] for episode in episodes] for seed in seeds]),
            )
    return found


def report(lines: list[Mapping[str, str]]) -> list[str]:
    """Means over seeds and episodes of each cell, as lines of a Markdown table."""
    rows = [
        "| agent with | seeds | score at the end | rewarded: held | drawn | drawn / held | "
        "critic's correlation, first half | noise, first half |",
        "|---|" + "---|" * 7,
    ]
    for name in CELLS:
        of = {column: curves(lines, column).get(name) for column in COLUMNS[5:]}
        if of["score"] is None:
            continue
        half = len(of["score"][0]) // 2
        held, drawn = of["held"][1].mean(), of["drawn"][1].mean()
        rows.append(
            f"| {name} | {len(of['score'][1])} | {of['score'][1][:, -1].mean():.1f} | "
            f"{100 * held:.1f} % | {100 * drawn:.1f} % | {drawn / held:.2f} | "
            f"{of['correlation'][1][:, :half].mean():.2f} | "
            f"{of['noise'][1][:, :half].mean():.2f} |"
        )
    return rows


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--report", action="store_true", help="only print what was found")
    options = parser.parse_args(arguments)
    lines = read()
    if options.report:
        print("\n".join(report(lines)))
        return 0
    done = {(*(line[level] for level in study.LEVELS), line["seed"]) for line in lines}
    for seed in SEEDS:
        for cell in CELLS.values():
            if (*map(str, cell), str(seed)) in done:
                continue
            run, watcher = study.Run(TASK, cell, seed), Watcher()
            with contextlib.redirect_stdout(sys.stderr):
                for line, more in study.train(run, watcher):
                    lines.append(
                        dict(
                            zip(
                                COLUMNS,
                                (TASK, *line[1:7], *(f"{more[name]:.4f}" for name in COLUMNS[7:])),
                                strict=True,
                            )
                        )
                    )
            helpers.write_whole(
                TABLE,
                study.as_csv([COLUMNS, *([line[name] for name in COLUMNS] for line in lines)]),
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
