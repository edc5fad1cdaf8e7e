"""Stable-Baselines3, and SBX, the same agents on JAX, on the twenty arms."""

from __future__ import annotations

import contextlib
import importlib
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.noise import NormalActionNoise, VectorizedActionNoise
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from reacher.checks import actions_of_shape
from reacher.episode import Policy
from reacher.task import ACTION_SIZE, OBSERVATION_SIZE, SOLVED_SCORE, Task


class ArmVecEnv(VecEnv):
    """Arms in the form that Stable-Baselines3 takes, with a record of all scores.

    The time limit is a truncation: `infos` say so and hold the true last observation.

    Args:
        num_agents: arms.
        seed: of the goals.
        scale: by which the observations (33,) are divided; None: as they are.
        reward_scale: by which rewards are multiplied. Scores are not.

    Attributes:
        scores: mean over the arms of each whole episode.
        seconds: when it ended, s since `start`, without those in which the clock was stopped.
    """

    def __init__(
        self,
        num_agents: int = 20,
        seed: int = 0,
        scale: np.ndarray | None = None,
        reward_scale: float = 1,
    ) -> None:
        self.arms = Task(num_agents, seed)
        self.scale = np.float32(1) if scale is None else scale
        self.reward_scale = reward_scale
        self.actions = np.zeros((num_agents, ACTION_SIZE), np.float32)
        self.scores: list[float] = []
        self.seconds: list[float] = []
        self.start()
        super().__init__(
            num_agents,
            spaces.Box(-np.inf, np.inf, (OBSERVATION_SIZE,), np.float32),
            spaces.Box(-1.0, 1.0, (ACTION_SIZE,), np.float32),
        )

    def start(self) -> None:
        """Start the clock."""
        self.started, self.score = time.perf_counter(), 0.0

    @contextlib.contextmanager
    def stopped_clock(self) -> Iterator[None]:
        """What happens meanwhile takes no time."""
        began = time.perf_counter()
        yield
        self.started += time.perf_counter() - began

    def scaled(self, observations: np.ndarray) -> np.ndarray:
        """Observations as an agent sees them, float32."""
        return (observations / self.scale).astype(np.float32)

    def reset(self) -> np.ndarray:
        self.score = 0.0
        return self.scaled(self.arms.reset())

    def step_async(self, actions: np.ndarray) -> None:
        self.actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict]]:
        actions = actions_of_shape(self.actions, (self.num_envs, ACTION_SIZE))
        observations, rewards, done = self.arms.step(actions)
        rewards = rewards.astype(np.float32).astype(np.float64)  # as Unity sends them
        truncated = np.full(self.num_envs, done)
        self.score += rewards.mean()
        infos: list[dict] = [{} for _ in range(self.num_envs)]
        if done:
            self.scores.append(float(self.score))
            self.seconds.append(time.perf_counter() - self.started)
            self.score = 0.0
            infos = [
                {"terminal_observation": self.scaled(last), "TimeLimit.truncated": True}
                for last in observations
            ]
            observations = self.arms.reset()
        paid = (self.reward_scale * rewards).astype(np.float32)
        return self.scaled(observations), paid, truncated, infos

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


class FadingNoise(VectorizedActionNoise):
    """Gaussian noise on the actions, for each arm its own, whose size can change."""

    def __init__(self, arms: int, sigma: float) -> None:
        super().__init__(
            NormalActionNoise(np.zeros(ACTION_SIZE), np.full(ACTION_SIZE, sigma)), arms
        )
        self.factor = 1.0

    def __call__(self) -> np.ndarray:
        return self.factor * super().__call__()


class Episodes(BaseCallback):
    """Calls a function after each episode, and ends a training after so many."""

    def __init__(self, arms: ArmVecEnv, number: int, after_episode: Callable[[], None]) -> None:
        super().__init__()
        self.arms, self.number, self.after_episode = arms, number, after_episode
        self.seen = 0

    def _on_step(self) -> bool:
        if len(self.arms.scores) > self.seen:
            self.seen += 1
            with self.arms.stopped_clock():
                self.after_episode()
        return self.seen < self.number


def train(
    agent: tuple[str, str, str],
    settings: Mapping[str, Any],
    arms: ArmVecEnv,
    seed: int,
    episodes: int,
    after_episode: Callable[[Policy], None],
) -> None:
    """Train for so many episodes.

    Args:
        agent: a module, its class, and a policy of that class by name.
        settings: of the class; and `observations`, which is "running" if `VecNormalize` scales
            them, `noise`, the sigma of Gaussian noise on the actions, and `fading`, whether it
            fades as the best score rises to 30.
        after_episode: called with the policy without noise.

    Raises:
        FloatingPointError: numbers are no longer finite.
    """
    library, algorithm, policy = agent
    kind = getattr(importlib.import_module(library), algorithm)
    options = dict(settings)
    arms.start()
    env: VecEnv = arms
    if options.pop("observations", "raw") == "running":
        env = VecNormalize(arms, norm_reward=False)
    noise, fading = None, options.pop("fading", False)
    if sigma := options.pop("noise", 0):
        options["action_noise"] = noise = FadingNoise(arms.num_envs, sigma)
    model = kind(policy, env, seed=seed, device="cpu", **options)

    def act(observations: np.ndarray) -> np.ndarray:
        seen = arms.scaled(observations)
        if isinstance(env, VecNormalize):
            seen = env.normalize_obs(seen)
        return model.predict(seen, deterministic=True)[0]

    def ended() -> None:
        if noise and fading:
            noise.factor = 1 - min(1.0, max(arms.scores) / SOLVED_SCORE)
        after_episode(act)

    try:
        model.learn(total_timesteps=10**9, callback=Episodes(arms, episodes, ended))
    except ValueError as error:  # of the arms, or of PyTorch's distributions
        if not re.search("finite|nan", str(error)):
            raise
        raise FloatingPointError(str(error)) from None
