"""Stable-Baselines3, and SBX, the same on JAX, on the twenty arms."""

from __future__ import annotations

import importlib

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from reacher.task import ACTION_SIZE, OBSERVATION_SIZE
from tutorial.benchmarks.baseline_environment import ArmsEnv

LIBRARIES = {"Stable-Baselines3": "stable_baselines3", "SBX": "sbx"}
DISCOUNT = 0.97
LIKE_OURS = {  # the notebook's defaults, as far as these algorithms have them
    "learning_rate": 1e-3,
    "gamma": DISCOUNT,
    "n_steps": 3,
    "batch_size": 64,
    "tau": 1e-2,
    "train_freq": (10, "step"),
    "gradient_steps": 30,
    "learning_starts": 1_000,
    "policy_kwargs": {"net_arch": [128, 128]},
}


class ArmVecEnv(VecEnv):
    """Twenty arms as twenty environments in the form that Stable-Baselines3 takes.

    The time limit is a truncation: `infos` say so and hold the true last observation.
    """

    def __init__(self, arms: ArmsEnv):
        self.arms = arms
        self.actions = np.zeros((arms.num_agents, ACTION_SIZE), np.float32)
        super().__init__(
            arms.num_agents,
            spaces.Box(-np.inf, np.inf, (OBSERVATION_SIZE,), np.float32),
            spaces.Box(-1.0, 1.0, (ACTION_SIZE,), np.float32),
        )

    def reset(self) -> np.ndarray:
        return self.arms.reset()

    def step_async(self, actions: np.ndarray) -> None:
        self.actions = actions

    def step_wait(self):
        observations, rewards, done, final = self.arms.step(self.actions)
        infos = [{} for _ in range(self.num_envs)]
        if done:
            infos = [
                {"terminal_observation": final[arm], "TimeLimit.truncated": True}
                for arm in range(self.num_envs)
            ]
        return observations, rewards, np.full(self.num_envs, done), infos

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


class UntilFinished(BaseCallback):
    """Ends the training when the arms' record says so."""

    def __init__(self, arms: ArmsEnv):
        super().__init__()
        self.arms = arms

    def _on_step(self) -> bool:
        return not self.arms.finished


def train(library: str, algorithm: str, normalize: bool, arms: ArmsEnv, seed: int) -> None:
    """Train until `arms.finished`.

    Args:
        library: a key of LIBRARIES.
        algorithm: DDPG, TD3 or SAC.
        normalize: with VecNormalize and the notebook's settings; else with all defaults.
    """
    env, settings = ArmVecEnv(arms), {}
    if normalize:
        env = VecNormalize(env, gamma=DISCOUNT)
        settings = dict(LIKE_OURS)
        if algorithm != "SAC":  # which explores by itself
            settings["action_noise"] = NormalActionNoise(
                np.zeros(ACTION_SIZE), np.full(ACTION_SIZE, 0.2)
            )
    kind = getattr(importlib.import_module(LIBRARIES[library]), algorithm)
    model = kind("MlpPolicy", env, seed=seed, device="cpu", **settings)
    arms.start()
    model.learn(total_timesteps=10**9, callback=UntilFinished(arms))
