"""Stable-Baselines3, and SBX, the same agents on JAX, on the twenty arms."""

from __future__ import annotations

import importlib
import re
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from reacher.episode import Policy
from reacher.gymnasium import ReacherVectorEnv
from reacher.task import ACTION_SIZE, OBSERVATION_SIZE


class ArmVecEnv(VecEnv):
    """Arms in the form that Stable-Baselines3 takes, with a record of all scores.

    The time limit is a truncation: `infos` say so and hold the true last observation.

    Args:
        num_agents: arms.
        seed: of the goals.

    Attributes:
        scores: mean over the arms of each whole episode.
        seconds: when it ended, s since `start`.
    """

    def __init__(self, num_agents: int = 20, seed: int = 0) -> None:
        self.arms = ReacherVectorEnv(num_agents, autoreset_mode="SameStep")
        self.goal_seed: int | None = seed  # of the first reset
        self.actions = np.zeros((num_agents, ACTION_SIZE), np.float32)
        self.scores: list[float] = []
        self.seconds: list[float] = []
        self.start()
        super().__init__(
            num_agents,
            spaces.Box(-np.inf, np.inf, (OBSERVATION_SIZE,), np.float32),
            self.arms.single_action_space,
        )

    def start(self) -> None:
        """Start the clock."""
        self.started, self.score = time.perf_counter(), 0.0

    def reset(self) -> np.ndarray:
        observations, _ = self.arms.reset(seed=self.goal_seed)
        self.goal_seed, self.score = None, 0.0
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        self.actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict]]:
        observations, rewards, _, truncated, answer = self.arms.step(self.actions)
        self.score += rewards.mean()
        infos: list[dict] = [{} for _ in range(self.num_envs)]
        if truncated.all():
            self.scores.append(float(self.score))
            self.seconds.append(time.perf_counter() - self.started)
            self.score = 0.0
            infos = [
                {"terminal_observation": last, "TimeLimit.truncated": True}
                for last in answer["final_obs"]
            ]
        return observations, rewards.astype(np.float32), truncated, infos

    def close(self) -> None:
        """Nothing is open."""

    def get_attr(self, attr_name, indices=None):
        if attr_name == "render_mode":
            return [None] * self.num_envs
        return [getattr(self.arms, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name, value, indices=None):
        raise NotImplementedError("the arms share one simulation")

    def env_method(self, method_name, *method_args, indices=None, **method_kwargs):
        raise NotImplementedError("the arms share one simulation")

    def env_is_wrapped(self, wrapper_class, indices=None):
        return [False] * len(list(self._get_indices(indices)))


class Episodes(BaseCallback):
    """Ends a training after so many episodes."""

    def __init__(self, arms: ArmVecEnv, number: int):
        super().__init__()
        self.arms, self.number = arms, number

    def _on_step(self) -> bool:
        return len(self.arms.scores) < self.number


def train(
    library: str,
    algorithm: str,
    policy: str,
    settings: Mapping[str, Any],
    arms: ArmVecEnv,
    seed: int,
    episodes: int,
) -> Policy:
    """Train for so many episodes; return the policy without noise.

    Args:
        library, algorithm: a module and its class.
        policy: of that class, by name.
        settings: of the class; and `normalize`, whether `VecNormalize` scales observations and
            rewards, and `noise`, the sigma of Gaussian noise on the actions.

    Raises:
        FloatingPointError: numbers are no longer finite.
    """
    options = dict(settings)
    env = VecNormalize(arms, gamma=options["gamma"]) if options.pop("normalize", False) else None
    if sigma := options.pop("noise", 0):
        options["action_noise"] = NormalActionNoise(
            np.zeros(ACTION_SIZE), np.full(ACTION_SIZE, sigma)
        )
    kind = getattr(importlib.import_module(library), algorithm)
    model = kind(policy, env or arms, seed=seed, device="cpu", **options)
    arms.start()
    try:
        model.learn(total_timesteps=10**9, callback=Episodes(arms, episodes))
    except ValueError as error:  # of the arms, or of PyTorch's distributions
        if not re.search("finite|nan", str(error)):
            raise
        raise FloatingPointError(str(error)) from None

    def act(observations: np.ndarray) -> np.ndarray:
        seen = observations.astype(np.float32)
        return model.predict(env.normalize_obs(seen) if env else seen, deterministic=True)[0]

    return act
