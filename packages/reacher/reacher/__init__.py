"""Two-joint arms that follow moving goals: a MuJoCo port of Unity ML-Agents' Reacher (v0.4)."""

import gymnasium

from reacher.environment import DelayedRewards, ReacherEnv, ReacherVectorEnv
from reacher.task import EPISODE_DECISIONS, SOLVED_SCORE

__version__ = "4.0.0"

__all__ = ["DelayedRewards", "ReacherEnv", "ReacherVectorEnv", "__version__"]

gymnasium.register(
    "reacher/Reacher-v0",
    entry_point="reacher:ReacherEnv",
    vector_entry_point="reacher:ReacherVectorEnv",
    max_episode_steps=EPISODE_DECISIONS,
    reward_threshold=SOLVED_SCORE,
)
