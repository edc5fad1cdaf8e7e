"""Agents of other libraries on the same arms, each with the best settings of twenty trainings.

`checkpoints/baselines/tuning.csv` has what was tried: agent, trial, seed, the mean of the
evaluations after episodes 1 to 12, and the settings. Trial 0 has the library's own settings,
trial 1 those of `default`, and others were drawn by chance (commit 6ee81e9).
"""

from __future__ import annotations

import collections
import csv
import functools
import json
from typing import Any

import numpy as np

from tutorial.paths import CHECKPOINTS

TUNING = CHECKPOINTS / "baselines" / "tuning.csv"
SEEDS = 3300, 3301, 3302  # all trials have the first

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
