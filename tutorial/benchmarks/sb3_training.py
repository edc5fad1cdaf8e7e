"""Stable-Baselines3, and SBX, the same on JAX, on the twenty arms."""

from __future__ import annotations

import importlib
import time

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from reacher.gymnasium import ReacherVectorEnv
from reacher.task import ACTION_SIZE, OBSERVATION_SIZE, SOLVED_SCORE

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
    """Arms in the form that Stable-Baselines3 takes, with a record of all scores.

    The time limit is a truncation: `infos` say so and hold the true last observation.

    Args:
        num_agents: arms.
        seed: of the goals.
        max_episodes: after so many `finished` is true.
        max_seconds: after so many seconds, too, or with the first episode that solves the task.

    Attributes:
        scores: mean over the arms of each whole episode.
        seconds: when it ended, s since `start`.
    """

    def __init__(
        self,
        num_agents: int = 20,
        seed: int = 0,
        max_episodes: float = np.inf,
        max_seconds: float = np.inf,
    ) -> None:
        self.arms = ReacherVectorEnv(num_agents, autoreset_mode="SameStep")
        self.goal_seed: int | None = seed  # of the first reset
        self.max_episodes, self.max_seconds = max_episodes, max_seconds
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

    @property
    def finished(self) -> bool:
        """Whether the training may end."""
        return (
            len(self.scores) >= self.max_episodes
            or max(self.scores, default=-np.inf) >= SOLVED_SCORE
            or time.perf_counter() - self.started >= self.max_seconds
        )

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


class UntilFinished(BaseCallback):
    """Ends the training when the arms' record says so."""

    def __init__(self, arms: ArmVecEnv):
        super().__init__()
        self.arms = arms

    def _on_step(self) -> bool:
        return not self.arms.finished


def train(library: str, algorithm: str, normalize: bool, arms: ArmVecEnv, seed: int) -> None:
    """Train until `arms.finished`.

    Args:
        library: a key of LIBRARIES.
        algorithm: DDPG, TD3 or SAC.
        normalize: with VecNormalize and the notebook's settings; else with all defaults.
    """
    env, settings = arms, {}
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
