"""Agents of other libraries on the same arms, each tuned by twenty trainings: doc/baselines.md.

    python -m research.baselines tuning
    python -m research.baselines comparison

Each training is a process of its own. Its episodes become lines of
`checkpoints/baselines/<part>/<agent>.csv`: trial, seed, episode, score (with the agent's own noise;
mean over the arms), evaluation (one more episode after it, without noise) and seconds of training,
without those of evaluations. What a trial draws is in `settings.csv` there.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from reacher.episode import Policy
from research import runner
from research.report import baselines as report
from research.training import TableRun, as_csv, print_tables, read_lines, train_agent
from tapejit import compiled
from tutorial import notebook
from tutorial.environments import open_environment
from tutorial.evaluation import open_evaluation
from tutorial.paths import PROJECT

SETTINGS_COLUMNS = ("agent", "trial", "settings")

ARMS = 20
TRIALS = 14  # of each agent, on the first seed; the best three have two more seeds
FINALISTS = 3
EPISODES = {"tuning": 12, "comparison": 40}
SEEDS = {"tuning": [3300, 3301, 3302], "comparison": list(range(3400, 3405))}

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
TUNED_AS = {  # they are the same algorithms, and slower, so they have the settings of these
    "sb3_ddpg": "sbx_ddpg",
    "sb3_td3": "sbx_td3",
    "sb3_sac": "sbx_sac",
}
OURS: dict[str, dict[str, Any]] = {
    "default": {},
    "no_mirrors": runner.NO_MIRRORS,
}

SPACE: dict[str, list] = {  # a trial has one of each; each value is in as many trials as the others
    "observations": ["raw", "running", "fixed"],  # scaled by VecNormalize, or as the notebook's
    "reward_scale": [1, 10, 100],
    "learning_rate": [3e-4, 1e-3, 3e-3],
    "gamma": [0.95, 0.97, 0.98, 0.99],
    "n_steps": [1, 3, 5],
    "batch_size": [64, 128],
    "gradient_steps": [10, 20, 40],  # after every tenth decision
    "networks": ["narrow", "wide"],
    "tau": [0.005, 0.01, 0.02],  # not of CrossQ, which has no targets
    "noise": [0.1, 0.2, 0.4],  # this and `fading` only where the policy is no distribution
    "fading": [False, True],
    "layer_norm": [False, True],  # of the critic, where SBX has it
    "ent_coef": ["auto", "auto_0.1"],  # of SAC, TQC and CrossQ
}
LIKE_OURS = {
    "observations": "fixed",
    "reward_scale": 10,
    "learning_rate": 1e-3,
    "gamma": 0.97,
    "n_steps": 3,
    "batch_size": 64,
    "gradient_steps": 40,
    "networks": "narrow",
    "tau": 0.01,
    "noise": 0.4,
    "fading": True,
    "layer_norm": True,
    "ent_coef": "auto",
}
NETWORKS: dict[str, dict[str, Any]] = {  # hidden layers; with SimBa residual blocks
    "sbx_crossq": {"narrow": [256, 256], "wide": {"pi": [256, 256], "qf": [512, 512]}},
    "sbx_sac_simba": {"narrow": [64], "wide": [128]},
}
USUAL_NETWORKS = {"narrow": [128, 128], "wide": [256, 256]}


def drawn(trial: int) -> dict[str, Any]:
    """What trial 2 and those after it have, the same for all agents."""
    generator, number = np.random.default_rng(0), TRIALS - 2
    return {
        name: values[generator.permutation(np.arange(number) % len(values))[trial - 2]]
        for name, values in SPACE.items()
    }


def settings_of(agent: str, trial: int) -> dict[str, Any]:
    """Those of a trial: 0 has the library's own, 1 those of `default`, others are drawn."""
    if trial == 0:  # without noise the actor of DDPG or TD3 would not explore at all
        own: dict[str, Any] = {"noise": 0.1} if is_deterministic(agent) else {}
        if agent in NETWORKS:  # whose own take up to a minute and a half an episode
            own["policy_kwargs"] = {"net_arch": NETWORKS[agent]["wide"]}
        return own
    return as_settings(agent, LIKE_OURS if trial == 1 else drawn(trial))


def is_deterministic(agent: str) -> bool:
    """Whether its policy needs noise to explore."""
    return AGENTS[agent][1] in ("DDPG", "TD3")


def as_settings(agent: str, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """What `train_library` takes, of a choice for each name of SPACE."""
    library, algorithm, policy = AGENTS[agent]
    settings = dict(chosen)
    networks = {"net_arch": NETWORKS.get(agent, USUAL_NETWORKS)[settings.pop("networks")]}
    layer_norm = settings.pop("layer_norm")
    if library == "sbx" and algorithm != "CrossQ" and policy != "SimbaPolicy":
        networks["layer_norm"] = layer_norm
    if policy == "SimbaPolicy" and settings["observations"] == "raw":
        settings["observations"] = "running"  # a part of SimBa
    for name in ("ent_coef",) if is_deterministic(agent) else ("noise", "fading"):
        del settings[name]
    if algorithm == "CrossQ":
        del settings["tau"]
    if agent == "sbx_ddpg":  # whose critic has a rate of its own
        settings["qf_learning_rate"] = settings["learning_rate"]
    return settings | {
        "train_freq": (10, "step"),
        "learning_starts": 1_000,
        "policy_kwargs": networks,
    }


@dataclass(frozen=True)
class Baseline(TableRun):
    """One training of an agent."""

    module = "research.baselines"
    part: str
    agent: str
    trial: int  # -1 for ours, which has none
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
        [run.trial, run.seed, episode, f"{score:.3f}", f"{evaluation:.3f}", f"{seconds:.2f}"]
        for episode, (score, evaluation, seconds) in enumerate(rows, 1)
    ]
    tables = {f"{run.agent}.csv": as_csv(lines)}  # which means done, so it is stored last
    if run.part == "tuning" and run.seed == SEEDS["tuning"][0]:
        order = [run.agent, run.trial, json.dumps(settings_of(run.agent, run.trial))]
        tables = {"settings.csv": as_csv([order])} | tables
    return tables


Rows = list[tuple[float, float, float]]  # score, evaluation, seconds


def make_evaluation() -> Callable[[Policy], float]:
    """The mean score of an episode without noise, on goals that no training sees."""
    evaluation = open_evaluation(num_agents=ARMS)
    assert evaluation is not None  # which it is for a Unity build only
    return lambda policy: float(evaluation.scores(policy).mean())


def train_library(run: Baseline) -> Rows:
    """One row for each episode.

    What ends by numbers that are not finite gets 0 points from there on.
    """
    from research import libraries  # whose packages may be missing

    torch.set_num_threads(1)
    compiled.translation()  # JAX as ours has it, for SBX: one thread, and a cache on disk
    settings = settings_of(run.agent, run.trial)
    fixed = settings.get("observations") == "fixed"
    scale = notebook.definitions().OBSERVATION_SCALE if fixed else None
    arms = libraries.ArmVecEnv(ARMS, run.seed, scale, settings.pop("reward_scale", 1))
    evaluations: list[float] = []
    evaluate = make_evaluation()

    def after_episode(policy: Policy) -> None:
        evaluations.append(evaluate(policy))

    options = AGENTS[run.agent], settings, arms, run.seed, run.episodes, after_episode
    try:
        libraries.train(*options)
    except FloatingPointError as error:
        print(f"{run} ended: {error}", file=sys.stderr)
    number = len(evaluations)
    last = arms.seconds[number - 1] if number else 0.0
    rows = list(zip(arms.scores[:number], evaluations, arms.seconds[:number], strict=True))
    return rows + [(0.0, 0.0, last)] * (run.episodes - number)


def train_ours(run: Baseline) -> Rows:
    """The same of this notebook's agent."""
    rows: Rows = []
    evaluate = make_evaluation()
    settings = notebook.definitions().make_hyperparameters("default", OURS[run.agent])
    began = time.perf_counter()
    building = 0.0  # seconds, which count as those of a library's agent do

    def after_episode(agent, scores, seconds):
        nonlocal building
        if not rows:
            building = time.perf_counter() - began - seconds
        evaluation = evaluate(lambda seen: agent.act(seen, explore=False))
        rows.append((scores[-1], evaluation, building + seconds))

    with open_environment("", ARMS, run.seed) as environment:
        train_agent(environment, settings, ARMS, run.seed, run.episodes, after_episode)
    return rows


def runs_of(part: str, agent: str) -> list[Baseline]:
    """All of an agent, as far as they are known: the trials, then the best three on more seeds."""
    first, *others = SEEDS[part]
    if part == "comparison":
        best = -1 if agent in OURS else report.best_trial(TUNED_AS.get(agent, agent))
        wanted = [(best, seed) for seed in SEEDS[part] if best is not None]
    else:
        wanted = [(trial, first) for trial in range(TRIALS)]
        finalists = report.best_on(agent, first, TRIALS)[:FINALISTS]
        wanted += [(trial, seed) for trial in finalists for seed in others]
    return [Baseline(part, agent, trial, seed, EPISODES[part]) for trial, seed in wanted]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=SEEDS)
    parser.add_argument("--train", metavar="RUN", help="one run; this is how processes begin")
    parser.add_argument("--only", nargs="*", choices=[*AGENTS, *OURS], help="agents; all if none")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="runs at a time")
    options = parser.parse_args(arguments)
    if options.train:
        return print_tables(lambda: train(Baseline(**json.loads(options.train))))
    results, out = report.RESULTS / options.part, PROJECT / "runs" / "baselines" / options.part
    agents = [agent for agent in AGENTS if agent not in TUNED_AS]
    if options.part == "comparison":
        agents = [*OURS, *AGENTS]
    for agent in options.only or agents:
        if not runs_of(options.part, agent):
            print(f"{agent}: some of its trials are missing, which `tuning` trains")
            return 1
        while missing := [run for run in runs_of(options.part, agent) if not run.done(results)]:
            print(f"{agent}: {len(missing)} runs are missing")
            outcomes = runner.train_here(missing, out, options.workers, results)
            if failed := runner.report_all(outcomes, len(missing), results):
                return failed
    return 0


if __name__ == "__main__":
    runner.interrupt_on_termination()
    sys.exit(main())
