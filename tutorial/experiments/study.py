"""The study of doc/study.md: when do n-step returns, prioritized replay and NoisyNet help?

    python -m tutorial.experiments.study                train what is missing
    python -m tutorial.experiments.study --list         what is done
    python -m tutorial.experiments.study --report       print the results, from the stored tables,
                                                        and draw doc/study.png

A 2 x 2 x 2 factorial over four tasks. Each training is a process of its own. Its evaluations
become lines of `checkpoints/study/<task>.csv`, one for each evaluation without noise:

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
the settings were questioned. They are finished, and their `setting` says what each run changed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from reacher.gymnasium.delayed_rewards import UnityDelayedRewards
from reacher.task import EPISODE_DECISIONS
from tutorial import notebook
from tutorial.experiments import runner
from tutorial.experiments.training import TableRun, as_csv, print_tables, read_lines, train_agent
from tutorial.paths import CHECKPOINTS, DOC, PROJECT
from tutorial.report import study as report
from tutorial.report.study import LEVELS
from tutorial.training.environments import open_environment
from tutorial.training.evaluation import Evaluation

RESULTS = CHECKPOINTS / "study"
COLUMNS = (
    "setting",
    "n_step",
    "replay",
    "noisy_layers",
    "seed",
    "episode",
    "score",
    "training_score",
    "decisions",
    "num_updates",
    "seconds",
)
EVALUATION_SEED = 2**31 - 1  # of goals that no training sees
EVALUATION_ARMS = 20

# What all cells share: the default preset, and no switch that depends on the score.
SHARED: dict[str, Any] = {
    "mirrors": "none",
    "policy_delay": 2,
    "gaussian_sigma": 0.2,
    "noise_schedule": "constant",
    "gradient_steps": 20,
    "anneal_gradient_steps": 20,
    "anneal_episodes": None,
}


@dataclass(frozen=True)
class Task:
    """What a cell is trained on.

    Attributes:
        arms: that play and fill the memory.
        episodes: of a training.
        every: episodes from one evaluation to the next.
        goal_size: diameter of the goals, m.
        reward_every: decisions after which the rewards since the last time are paid, all at once.
    """

    arms: int = 20
    episodes: int = 30
    every: int = 2
    goal_size: float = 5.0
    reward_every: int = 1


TASKS = {
    "standard": Task(episodes=16),
    "small_goals": Task(episodes=24, goal_size=2.0),
    "delayed_rewards": Task(episodes=24, reward_every=15),
    "one_arm": Task(arms=1, episodes=40, every=4),
}
SEEDS = range(1_000, 1_012)


@dataclass(frozen=True)
class StudyRun(TableRun):
    """One training of the study."""

    module = "tutorial.experiments.study"
    task: str
    cell: tuple  # the levels, in the order of LEVELS
    seed: int

    def __str__(self) -> str:
        cell = ", ".join(f"{name} {level}" for name, level in zip(LEVELS, self.cell, strict=True))
        return f"{self.task}: {cell}, seed {self.seed}"

    @property
    def key(self) -> tuple[str, ...]:
        """How the lines of this run begin."""
        return ("", *map(str, self.cell), str(self.seed))

    @property
    def table_name(self) -> str:
        return f"{self.task}.csv"

    @property
    def file_name(self) -> str:
        return "_".join([self.task, *self.key[1:]])

    def columns(self, table: str) -> tuple[str, ...]:
        return COLUMNS

    def done(self, results: Path) -> bool:
        lines = read_lines(results / self.table_name, COLUMNS)
        return self.key in {tuple(line[:5]) for line in lines}


def train(run: StudyRun) -> dict[str, str]:
    """Train as the notebook does, with evaluations beside; return the lines of the table."""
    definitions, task = notebook.definitions(), TASKS[run.task]
    levels = dict(zip(LEVELS, run.cell, strict=True))
    decisions = task.episodes * EPISODE_DECISIONS
    scale = definitions.OBSERVATION_SCALE.copy()
    scale[np.isinf(scale)] = 1.0  # the study's agent sees the quaternions, which are left out today
    settings = definitions.make_hyperparameters("default", {})
    settings = definitions.Hyperparameters(
        **settings.model_dump() | SHARED | {"importance_anneal_steps": decisions} | levels
    )
    lines = []

    def goals(arms, seed):
        return open_environment("", arms, seed, {"goal_size": task.goal_size})

    with (
        goals(task.arms, run.seed) as environment,
        goals(EVALUATION_ARMS, EVALUATION_SEED) as other,
    ):
        evaluation = Evaluation(other, task.every)

        def evaluate_when_due(agent, scores, seconds):
            if not evaluation.due(len(scores)):
                return
            score = evaluation.scores(lambda seen: agent.act(seen, explore=False)).mean()
            lines.append(
                [
                    *run.key,
                    len(scores),
                    f"{score:.4f}",
                    f"{scores[-1]:.4f}",
                    agent.env_steps,
                    agent.num_updates,
                    f"{seconds:.2f}",
                ]
            )

        train_agent(
            UnityDelayedRewards(environment, task.reward_every),
            settings,
            task.arms,
            run.seed,
            task.episodes,
            evaluate_when_due,
            scale=scale,
            reward_threshold=None,
        )
    return {run.table_name: as_csv(lines)}


def runs_of_the_study() -> list[StudyRun]:
    """All of them, seed by seed, so that a part of the study has whole seeds."""
    return [
        StudyRun(task, cell, seed)
        for seed in SEEDS
        for task in TASKS
        for cell in itertools.product(*LEVELS.values())
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train", metavar="RUN", help="one run; this is how processes begin")
    parser.add_argument("--list", action="store_true", help="say what is done, and run nothing")
    parser.add_argument("--report", action="store_true", help="only print and draw the results")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="runs at a time")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the tables are")
    options = parser.parse_args(arguments)
    if options.train:
        order = json.loads(options.train)
        return print_tables(lambda: train(StudyRun(**order | {"cell": tuple(order["cell"])})))
    if options.report:
        print(report.results_text(options.results))
        if options.results == RESULTS:
            figure = report.draw_cells(RESULTS)
            figure.savefig(DOC / "study.png", dpi=110, metadata={"Software": None})
        return 0
    runs = runs_of_the_study()
    missing = [run for run in runs if not run.done(options.results)]
    print(f"{len(runs) - len(missing)} of {len(runs)} runs done")
    if options.list:
        return 0
    outcomes = runner.train_here(
        missing, PROJECT / "runs" / "study", options.workers, options.results
    )
    return runner.report_all(outcomes, len(missing), options.results)


if __name__ == "__main__":
    runner.interrupt_on_termination()
    sys.exit(main())
