"""Gymnasium's Reacher with a sparse reward: `gymnasium.make` with the name of this module.

gymnasium.make("research.environments:SparseReacher-v0")
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

RADIUS = 0.02  # m


class SparseReward(gymnasium.Wrapper, gymnasium.utils.RecordConstructorArgs):
    """A reward of 1 where the fingertip is within RADIUS of the target, and else of 0.

    The last two observations of Reacher-v5 are the vector from the target to the fingertip, m.
    """

    def __init__(self, env: gymnasium.Env) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self)
        gymnasium.Wrapper.__init__(self, env)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        """As the environment's, but for the reward."""
        observation, _, terminated, truncated, info = self.env.step(action)
        reward = float(np.hypot(*observation[-2:]) < RADIUS)
        return observation, reward, terminated, truncated, info


gymnasium.register(
    "SparseReacher-v0",
    entry_point="gymnasium.envs.mujoco.reacher_v5:ReacherEnv",
    max_episode_steps=50,
    additional_wrappers=(SparseReward.wrapper_spec(),),
)
