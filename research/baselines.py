"""Agents of other libraries on the same arms, and how their settings were chosen.

    python -m research tune sbx_td3            Optuna tries settings, the best has three seeds
    python -m research plan baselines          the comparison

`checkpoints/baselines/tuning.csv` has what was tried: agent, trial, seed, the mean of the
evaluations after episodes 1 to 12, and the settings. Trial 0 has the library's own settings, trial
1 those of `default`. Trials 2 to 13 of the stored tuning were drawn by chance (commit 6ee81e9).
"""

from __future__ import annotations

import collections
import csv
import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from distributed import as_completed

from research import runner
from research.results import as_csv, read_variant
from research.training import COLUMNS as TRAINING_COLUMNS
from research.training import Row, Training, train
from tutorial.paths import CHECKPOINTS, RUNS

TUNING = CHECKPOINTS / "baselines" / "tuning.csv"
FIRST, OTHERS = 3300, (3301, 3302)  # seeds of all trials, and of the best three
FINALISTS, EPISODES = 3, 12

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


def is_deterministic(agent: str) -> bool:
    """Whether its policy needs noise to explore."""
    return AGENTS[agent][1] in ("DDPG", "TD3")


def own_settings(agent: str) -> dict[str, Any]:
    """Those of the library, with noise where the actor would not explore at all."""
    own: dict[str, Any] = {"noise": 0.1} if is_deterministic(agent) else {}
    if agent in NETWORKS:  # whose own take up to a minute and a half an episode
        own["policy_kwargs"] = {"net_arch": NETWORKS[agent]["wide"]}
    return own


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


# ------------------------------------------------------------------------------------- the tuning

Tried = dict[int, tuple[dict[int, float], dict[str, Any]]]  # trial to means by seed, and settings


def read_tuning(path: Path = TUNING) -> dict[str, Tried]:
    """What was tried, by agent and trial; nothing where there is no file."""
    tried: dict[str, Tried] = collections.defaultdict(dict)
    if path.exists():
        with open(path, newline="") as file:
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
        if len(means) == 1 + len(OTHERS)
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


def tune(agent: str, trials: int, address: str = "", workers: int | None = None) -> None:
    """Try settings by Optuna on one seed, the best on two more, and store what they scored.

    An interrupted tuning goes on from the files in `runs/tuning/`.
    """
    import optuna
    from optuna.storages import journal

    (RUNS / "tuning").mkdir(parents=True, exist_ok=True)
    backend = journal.JournalFileBackend(str(RUNS / "tuning" / f"{agent}.log"))
    study = optuna.create_study(
        storage=optuna.storages.JournalStorage(backend),
        sampler=optuna.samplers.TPESampler(constant_liar=True),  # several are tried at a time
        study_name=agent,
        direction="maximize",
        load_if_exists=True,
    )
    if not study.trials:
        study.enqueue_trial(LIKE_OURS)

    def training_of(number: int, settings: Mapping[str, Any], seed: int) -> Training:
        options = {"library": agent, "episodes": EPISODES, "evaluate_every": 1}
        return Training("tuning", f"{agent}_{number}", seed, overrides=settings, **options)

    with runner.connect(address, workers) as client:
        asked, ended = {}, as_completed()
        left = trials - len(study.get_trials(states=[optuna.trial.TrialState.COMPLETE]))
        while left > 0 or asked:
            while left > 0 and len(asked) < len(client.scheduler_info()["workers"]):
                trial = study.ask()
                values = {name: trial.suggest_categorical(name, SPACE[name]) for name in SPACE}
                settings = as_settings(agent, values)
                future = client.submit(train, training_of(trial.number + 1, settings, FIRST))
                trial.set_user_attr("settings", settings)
                asked[future], left = trial, left - 1
                ended.add(future)
            future = next(ended)
            study.tell(asked.pop(future), mean_evaluation(future.result()))
    tried = {0: own_settings(agent)}
    tried |= {one.number + 1: one.user_attrs["settings"] for one in study.trials if one.values}
    means = {(one.number + 1, FIRST): one.value for one in study.trials if one.values}
    best_ones = sorted(means, key=means.__getitem__)[-FINALISTS:]
    finals = [training_of(0, tried[0], FIRST)]
    finals += [
        training_of(number, tried[number], seed) for number, _ in best_ones for seed in OTHERS
    ]
    runner.run_trainings(finals, RUNS, address, workers)
    for one in finals:
        number = int(one.variant.rsplit("_", 1)[1])
        table = read_variant(RUNS / "tuning" / f"{one.variant}.csv")
        means[number, one.seed] = table["evaluation"][table["seed"][:, 0] == one.seed].mean()
    lines = [line for line in TUNING.read_text().splitlines() if not line.startswith(f"{agent},")]
    new = [
        [agent, number, seed, f"{mean:.3f}", json.dumps(tried[number])]
        for (number, seed), mean in sorted(means.items())
    ]
    TUNING.write_text("\n".join([*lines, as_csv(new)]))


def mean_evaluation(rows: list[Row]) -> float:
    return float(np.mean([float(row[TRAINING_COLUMNS.index("evaluation")]) for row in rows]))
