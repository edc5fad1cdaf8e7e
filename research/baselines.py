"""Agents of other libraries on the same arms, and how their settings were chosen.

    python -m research tune sbx_td3            tries settings by Optuna
    python -m research plan baselines          the comparison, each agent with its best settings

`checkpoints/baselines/tuning.csv` has what was tried: agent, trial, seed, the mean of the
evaluations after episodes 1 to 12, and the settings. Of the stored ones trial 0 has the library's
own settings, trial 1 those of `default`, and others were drawn by chance (commit 6ee81e9).
"""

from __future__ import annotations

import collections
import csv
import functools
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from research.training import COLUMNS, Training, train
from tutorial.paths import CHECKPOINTS, RUNS

TUNING = CHECKPOINTS / "baselines" / "tuning.csv"
SEEDS, FINALISTS, EPISODES = (3300, 3301, 3302), 3, 12  # all trials have the first seed

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
TUNED_AS = {  # the same algorithms, and slower, so they have the settings of these
    "sb3_ddpg": "sbx_ddpg",
    "sb3_td3": "sbx_td3",
    "sb3_sac": "sbx_sac",
}
SPACE: dict[str, list] = {
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
NETWORKS: dict[str, dict[str, Any]] = {  # hidden layers; with SimBa residual blocks
    "sbx_crossq": {"narrow": [256, 256], "wide": {"pi": [256, 256], "qf": [512, 512]}},
    "sbx_sac_simba": {"narrow": [64], "wide": [128]},
}
USUAL_NETWORKS = {"narrow": [128, 128], "wide": [256, 256]}


def is_deterministic(agent: str) -> bool:
    """Whether its policy needs noise to explore."""
    return AGENTS[agent][1] in ("DDPG", "TD3")


def as_settings(agent: str, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """What `research.libraries` takes, of a choice for each name of SPACE."""
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
        "train_freq": [10, "step"],
        "learning_starts": 1_000,
        "policy_kwargs": networks,
    }


Tried = dict[int, tuple[dict[int, float], dict[str, Any]]]  # trial to means by seed, and settings


def read_tuning() -> dict[str, Tried]:
    """What was tried, by agent and trial; nothing where there is no file."""
    tried: dict[str, Tried] = collections.defaultdict(dict)
    if TUNING.exists():
        with open(TUNING, newline="") as file:
            for line in csv.DictReader(file):
                settings = json.loads(line["settings"])
                means, _ = tried[line["agent"]].setdefault(int(line["trial"]), ({}, settings))
                means[int(line["seed"])] = float(line["evaluations_1_12"])
    return tried


def best(tried: Tried) -> int:
    """The trial with three seeds that has the highest mean."""
    finals = {
        trial: np.mean([*means.values()])
        for trial, (means, _) in tried.items()
        if len(means) == len(SEEDS)
    }
    return max(finals, key=finals.__getitem__)


@functools.cache
def chosen() -> dict[str, dict[str, Any]]:
    """The settings of the comparison, by agent, as far as agents are tuned."""
    tried = read_tuning()
    found = {agent: tried.get(TUNED_AS.get(agent, agent)) for agent in AGENTS}
    settings = {agent: trials[best(trials)][1] for agent, trials in found.items() if trials}
    for agent in TUNED_AS.keys() & settings.keys():  # Stable-Baselines3 has neither of these
        networks = {"net_arch": settings[agent]["policy_kwargs"]["net_arch"]}
        settings[agent] = {**settings[agent], "policy_kwargs": networks}
        settings[agent].pop("qf_learning_rate", None)
    return settings


def tune(agent: str, trials: int) -> None:
    """Try settings on the first seed; with no trials, take the best to the others and store all.

    Several of these may try at once, also on machines that share `runs/tuning/`: Optuna hands out
    the trials, which are numbered from 100 on.
    """
    import optuna
    from optuna.storages import JournalStorage, journal

    def objective(trial: optuna.Trial) -> float:
        values = {name: trial.suggest_categorical(name, SPACE[name]) for name in SPACE}
        trial.set_user_attr("settings", as_settings(agent, values))
        return mean_evaluation(agent, trial.user_attrs["settings"], SEEDS[0])

    (RUNS / "tuning").mkdir(parents=True, exist_ok=True)
    backend = journal.JournalFileBackend(str(RUNS / "tuning" / f"{agent}.log"))
    study = optuna.create_study(
        storage=JournalStorage(backend),
        sampler=optuna.samplers.TPESampler(constant_liar=True),  # for trials at the same time
        study_name=agent,
        direction="maximize",
        load_if_exists=True,
    )
    if trials:
        study.optimize(objective, trials)
        return
    found = [
        (one.value, one.number, one.user_attrs["settings"]) for one in study.trials if one.value
    ]
    for place, (value, number, settings) in enumerate(sorted(found, key=lambda one: -one[0])):
        more = SEEDS[1:] if place < FINALISTS else ()
        means = [value, *(mean_evaluation(agent, settings, seed) for seed in more)]
        with open(TUNING, "a", newline="") as file:
            for seed, mean in zip(SEEDS, means, strict=False):
                line = [agent, 100 + number, seed, f"{mean:.4f}", json.dumps(settings)]
                csv.writer(file, lineterminator="\n").writerow(line)


def mean_evaluation(agent: str, settings: Mapping[str, Any], seed: int) -> float:
    """The mean of the evaluations after each episode of a training."""
    options: dict[str, Any] = {"library": agent, "episodes": EPISODES, "evaluate_every": 1}
    rows = train(Training("tuning", agent, seed, overrides=settings, **options))
    return float(np.mean([float(row[COLUMNS.index("evaluation")]) for row in rows]))
