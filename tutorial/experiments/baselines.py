"""Agents of other libraries on the same arms, each tuned by twenty trials: doc/baselines.md.

    python -m tutorial.experiments.baselines tuning
    python -m tutorial.experiments.baselines comparison

Each training is a process of its own. Its episodes become lines of
`checkpoints/baselines/<part>/<agent>.csv`: trial, seed, episode, score (with the agent's own noise;
mean over the arms), evaluation (one more episode after the last one, without noise) and seconds of
training. What a trial draws is in `settings.csv` there.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from reacher.episode import Policy
from tutorial import notebook
from tutorial.experiments import runner
from tutorial.experiments.training import TableRun, as_csv, print_tables, read_lines, train_agent
from tutorial.paths import PROJECT
from tutorial.report import baselines as report
from tutorial.training import compiled
from tutorial.training.environments import open_environment
from tutorial.training.evaluation import open_evaluation

SETTINGS_COLUMNS = ("agent", "trial", "settings")

ARMS = 20
TRIALS = 20  # of each agent
PARTS = {"tuning": (15, [3300]), "comparison": (40, list(range(3400, 3405)))}  # episodes, seeds

AGENTS = {  # library, its algorithm, its networks
    "sbx_ddpg": ("sbx", "DDPG", "MlpPolicy"),
    "sbx_td3": ("sbx", "TD3", "MlpPolicy"),
    "sbx_sac": ("sbx", "SAC", "MlpPolicy"),
    "sbx_tqc": ("sbx", "TQC", "MlpPolicy"),
    "sbx_crossq": ("sbx", "CrossQ", "MlpPolicy"),
    "sbx_sac_simba": ("sbx", "SAC", "SimbaPolicy"),
    "sb3_ddpg": ("stable_baselines3", "DDPG", "MlpPolicy"),
    "sb3_td3": ("stable_baselines3", "TD3", "MlpPolicy"),
    "sb3_sac": ("stable_baselines3", "SAC", "MlpPolicy"),
}
OURS: dict[str, dict[str, Any]] = {
    "default": {},
    "no_mirrors": runner.NO_MIRRORS,
}

SPACE: dict[str, list] = {  # each trial draws one of each
    "normalize": [False, True],
    "learning_rate": [3e-4, 1e-3, 3e-3],
    "gamma": [0.95, 0.97, 0.98, 0.99],
    "n_steps": [1, 3, 5],
    "batch_size": [64, 128, 256],
    "updates": [(1, 1), (10, 20), (10, 40)],  # decisions between phases, and steps of a phase
    "net_arch": [[128, 128], [256, 256]],
    "tau": [0.005, 0.01, 0.02],  # not of CrossQ, which has no targets
    "noise": [0.1, 0.2, 0.4],  # not of those whose policy is a distribution
    "layer_norm": [False, True],  # of the critic, where SBX has it
}
LIKE_OURS = {
    "normalize": True,
    "learning_rate": 1e-3,
    "gamma": 0.97,
    "n_steps": 3,
    "batch_size": 64,
    "updates": (10, 40),
    "net_arch": [128, 128],
    "tau": 0.01,
    "noise": 0.2,
    "layer_norm": True,
}


def settings_of(agent: str, trial: int) -> dict[str, Any]:
    """Those of a trial: 0 has the library's own, 1 those of `default`, others are drawn."""
    generator = np.random.default_rng(zlib.crc32(agent.encode()))
    found = [{}, as_settings(agent, LIKE_OURS)]
    while len(found) <= trial:
        drawn = {name: values[generator.integers(len(values))] for name, values in SPACE.items()}
        settings = as_settings(agent, drawn)
        found += [settings] if settings not in found else []
    return found[trial]


def as_settings(agent: str, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """What `libraries.train` takes, of a choice for each name of SPACE."""
    library, algorithm, policy = AGENTS[agent]
    settings = dict(chosen)
    networks = {name: settings.pop(name) for name in ("net_arch", "layer_norm")}
    if library != "sbx" or algorithm == "CrossQ" or policy == "SimbaPolicy":
        del networks["layer_norm"]
    if algorithm == "CrossQ":
        del settings["tau"]
    if algorithm not in ("DDPG", "TD3"):
        del settings["noise"]
    if agent == "sbx_ddpg":  # whose critic has a rate of its own
        settings["qf_learning_rate"] = settings["learning_rate"]
    decisions, steps = settings.pop("updates")
    return settings | {
        "train_freq": (decisions, "step"),
        "gradient_steps": steps,
        "learning_starts": 1_000,
        "policy_kwargs": networks,
    }


@dataclass(frozen=True)
class Baseline(TableRun):
    """One training of an agent."""

    module = "tutorial.experiments.baselines"
    part: str
    agent: str
    trial: int  # -1 for ours
    seed: int
    episodes: int

    def __str__(self) -> str:
        return f"{self.part}: {self.agent}, trial {self.trial}, seed {self.seed}"

    def done(self, results: Path) -> bool:
        lines = read_lines(results / f"{self.agent}.csv", report.COLUMNS)
        return [str(self.trial), str(self.seed)] in [line[:2] for line in lines]

    @property
    def arguments(self) -> tuple[str, ...]:
        return (self.part,)

    @property
    def file_name(self) -> str:
        return f"{self.agent}_{self.trial}_{self.seed}"

    def columns(self, table: str) -> tuple[str, ...]:
        return SETTINGS_COLUMNS if table == "settings.csv" else report.COLUMNS


def train(run: Baseline) -> dict[str, str]:
    """Train, and return the lines of the tables."""
    rows = (train_ours if run.agent in OURS else train_library)(run)
    lines = [
        [
            run.trial,
            run.seed,
            episode,
            f"{score:.3f}",
            f"{evaluation:.3f}" if evaluation is not None else "",
            f"{seconds:.2f}",
        ]
        for episode, (score, evaluation, seconds) in enumerate(rows, 1)
    ]
    tables = {f"{run.agent}.csv": as_csv(lines)}  # which means done, so it is stored last
    if run.part == "tuning":
        order = [run.agent, run.trial, json.dumps(settings_of(run.agent, run.trial))]
        tables = {"settings.csv": as_csv([order])} | tables
    return tables


Rows = list[tuple[float, float | None, float]]


def evaluate(policy: Policy) -> float:
    """The mean score of an episode on goals that no training sees."""
    evaluation = open_evaluation(num_agents=ARMS)
    assert evaluation is not None  # which it is for a Unity build only
    return float(evaluation.scores(policy).mean())


def train_library(run: Baseline) -> Rows:
    """One row for each episode: score, evaluation (after the last one), seconds.

    What ends by numbers that are not finite gets 0 points from there on.
    """
    from tutorial.experiments import libraries  # whose packages may be missing

    torch.set_num_threads(1)
    compiled.translation()  # JAX as ours has it, for SBX: one thread, and a cache on disk
    arms = libraries.ArmVecEnv(ARMS, run.seed)
    settings = settings_of(run.agent, run.trial)
    try:
        policy = libraries.train(*AGENTS[run.agent], settings, arms, run.seed, run.episodes)
        evaluation = evaluate(policy)
    except FloatingPointError as error:
        print(f"{run} ended: {error}", file=sys.stderr)
        evaluation = 0.0
    missing = run.episodes - len(arms.scores)
    scores = arms.scores + [0.0] * missing
    seconds = arms.seconds + [(arms.seconds or [0.0])[-1]] * missing
    evaluations = [None] * (run.episodes - 1) + [evaluation]
    return list(zip(scores, evaluations, seconds, strict=True))


def train_ours(run: Baseline) -> Rows:
    """The same of this notebook's agent."""
    rows: Rows = []

    def after_episode(agent, scores, seconds):
        last = len(scores) == run.episodes
        score = evaluate(lambda seen: agent.act(seen, explore=False)) if last else None
        rows.append((scores[-1], score, seconds))

    settings = notebook.definitions().make_hyperparameters("default", OURS[run.agent])
    with open_environment("", ARMS, run.seed) as environment:
        train_agent(environment, settings, ARMS, run.seed, run.episodes, after_episode)
    return rows


def runs_of(part: str) -> list[Baseline]:
    """All of a part; the comparison has the best trial of each agent whose tuning is complete."""
    episodes, seeds = PARTS[part]
    if part == "tuning":
        trials = [(agent, trial) for agent in AGENTS for trial in range(TRIALS)]
    else:
        trials = [(agent, -1) for agent in OURS]
        trials += [
            (agent, best)
            for agent in AGENTS
            if (best := report.best_trial(report.RESULTS / "tuning", agent, TRIALS)) is not None
        ]
    return [
        Baseline(part, agent, trial, seed, episodes) for seed in seeds for agent, trial in trials
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--train", metavar="RUN", help="one run; this is how processes begin")
    parser.add_argument("--only", nargs="*", help="agents; all where none is named")
    parser.add_argument("--workers", type=int, help="runs at a time; 1 for the comparison")
    options = parser.parse_args(arguments)
    if options.train:
        return print_tables(lambda: train(Baseline(**json.loads(options.train))))
    results = report.RESULTS / options.part
    runs = [run for run in runs_of(options.part) if not options.only or run.agent in options.only]
    missing = [run for run in runs if not run.done(results)]
    print(f"{len(runs) - len(missing)} of {len(runs)} runs done")
    out = PROJECT / "runs" / "baselines" / options.part
    workers = options.workers or (1 if options.part == "comparison" else os.cpu_count() or 1)
    outcomes = runner.train_here(missing, out, workers, results)
    return runner.report_all(outcomes, len(missing), results)


if __name__ == "__main__":
    runner.interrupt_on_termination()
    sys.exit(main())
