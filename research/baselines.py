"""Agents of other libraries on the same arms, each with the best settings of twenty trainings.

`checkpoints/baselines/tuning.csv` has what was tried, each trial with one seed and the best with
three: the mean of the evaluations after episodes 1 to 12. Trial 0 has the library's own settings,
trial 1 those of `default`, and others were drawn by chance (commit 6ee81e9). `chosen.json` has the
best; agents of Stable-Baselines3 have those of SBX, because they are the same and slower.
"""

from __future__ import annotations

import json
from typing import Any

from tutorial.paths import CHECKPOINTS

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


def chosen() -> dict[str, dict[str, Any]]:
    """The settings of the comparison, by agent."""
    return json.loads((CHECKPOINTS / "baselines" / "chosen.json").read_text())
