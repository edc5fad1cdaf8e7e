"""Stable-Baselines3, and SBX, the same agents on JAX, on the arms or on a task of Gymnasium."""

from __future__ import annotations

import importlib
import os
import time
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import VecEnv

from reacher.checks import actions_of_shape
from reacher.task import ACTION_SIZE, OBSERVATION_SIZE, SOLVED_SCORE, Task
from research.baselines import AGENTS
from research.training import Row, Training, make_evaluation, row
from tutorial import notebook
from tutorial.environments import GYMNASIUM


class OneEnvironment:
    """An environment of Gymnasium with the methods of `Task`, and actions in [-1, 1].

    Attributes:
        terminated: whether the last step ended its episode otherwise than by the time limit.
    """

    def __init__(self, location: str, seed: int) -> None:
        environment = gymnasium.make(location.removeprefix(GYMNASIUM))
        low, high = np.float32(-1), np.float32(1)
        self.environment = gymnasium.wrappers.RescaleAction(environment, low, high)
        self.seed: int | None = seed  # of the first episode, from which all others follow
        self.terminated = False

    def reset(self) -> np.ndarray:
        observation, _ = self.environment.reset(seed=self.seed)
        self.seed = None
        return observation[None]

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        observation, reward, self.terminated, truncated, _ = self.environment.step(actions[0])
        return observation[None], np.array([reward]), self.terminated or truncated


class ArmVecEnv(VecEnv):
    """Arms in the form that Stable-Baselines3 takes, with a record of all scores.

    A time limit is a truncation: `infos` say so. They hold the true last observation.

    Args:
        scale: by which the observations (33,) are divided.
        reward_scale: by which rewards are multiplied. Scores are not.
        frame: the notebook's canonical frame, through which an agent sees and acts; or None.
        location: of an environment of Gymnasium instead of the arms.
        decisions: of each row of the table, as of `Training`.

    Attributes:
        scores: of each row, mean over arms and whole episodes; `seconds`: when it ended.
        action_signs: of the frame of what was seen last.
    """

    def __init__(
        self,
        num_agents: int,
        seed: int,
        scale: np.ndarray | float = 1.0,
        reward_scale: float = 1.0,
        frame: Any = None,
        location: str = "",
        decisions: int = 0,
    ) -> None:
        self.scale, self.reward_scale = np.float32(scale), reward_scale
        self.frame, self.action_signs = frame, np.float32(1)
        self.arms: Any = Task(num_agents, seed)
        seen, acted = OBSERVATION_SIZE, ACTION_SIZE
        if location:
            self.arms = OneEnvironment(location, seed)
            environment = self.arms.environment
            [seen], [acted] = environment.observation_space.shape, environment.action_space.shape
        self.actions = np.zeros((num_agents, acted), np.float32)
        self.least, self.decisions = decisions, 0
        self.episodes: list[float] = []  # scores since the last row
        self.scores: list[float] = []
        self.seconds: list[float] = []
        self.started, self.score = time.perf_counter(), 0.0
        box = spaces.Box(-np.inf, np.inf, (seen,), np.float32)
        super().__init__(num_agents, box, spaces.Box(-1.0, 1.0, (acted,), np.float32))

    def seen(self, observations: np.ndarray) -> np.ndarray:
        """Observations as an agent sees them, float32."""
        if self.frame is not None:
            found = self.frame(torch.from_numpy(np.asarray(observations, np.float32)))
            signs, self.action_signs = (part.numpy() for part in found)
            observations = signs * observations
        return (observations / self.scale).astype(np.float32)

    def reset(self) -> np.ndarray:
        self.score = 0.0
        return self.seen(self.arms.reset())

    def step_async(self, actions: np.ndarray) -> None:
        self.actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict]]:
        torques = actions_of_shape(self.action_signs * self.actions, self.actions.shape)
        observations, rewards, done = self.arms.step(torques)
        rewards = rewards.astype(np.float32).astype(np.float64)  # as Unity sends them
        self.score += rewards.mean()
        self.decisions += 1
        infos: list[dict] = [{} for _ in range(self.num_envs)]
        if done:
            self.episodes.append(float(self.score))
            self.score = 0.0
            if self.decisions >= (len(self.scores) + 1) * self.least:
                self.scores.append(float(np.mean(self.episodes)))
                self.seconds.append(time.perf_counter() - self.started)
                self.episodes.clear()
            truncated = not getattr(self.arms, "terminated", False)  # nothing terminates arms
            infos = [
                {"terminal_observation": last, "TimeLimit.truncated": truncated}
                for last in self.seen(observations)
            ]
            observations = self.arms.reset()
        paid = (self.reward_scale * rewards).astype(np.float32)
        return self.seen(observations), paid, np.full(self.num_envs, done), infos

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


def train(training: Training) -> list[Row]:
    """Train an agent of `research.baselines`; return a row for each episode.

    The overrides are those of the library's class, and

    - `observations`: "fixed" if the notebook's scale divides them, "raw" if nothing does,
    - `reward_scale`; `noise`, the sigma of Gaussian noise on the actions; `fading`, whether it
      fades as the best score rises to 30,
    - `mirrors`: whether the agent sees each arm in its canonical mirror, as the notebook's does.
    """
    os.environ.setdefault("NPROC", "1")  # of which JAX makes its threads
    library, algorithm, networks = AGENTS[training.library]
    kind = getattr(importlib.import_module(library), algorithm)
    options = dict(training.overrides)
    if "train_freq" in options:
        options["train_freq"] = tuple(options["train_freq"])  # which JSON does not know
    cells, evaluate = notebook.definitions(), make_evaluation(training)
    is_scaled = options.pop("observations", "raw") == "fixed"
    fading = options.pop("fading", False)
    arms = ArmVecEnv(
        training.arms,
        training.seed,
        cells.OBSERVATION_SCALE if is_scaled else 1.0,
        options.pop("reward_scale", 1),
        cells.CanonicalFrame() if options.pop("mirrors", False) else None,
        training.location,
        training.decisions,
    )
    sigma = options.pop("noise", 0)
    if sigma:
        zeros = np.zeros_like(arms.actions[0], dtype=float)
        options["action_noise"] = NormalActionNoise(zeros, sigma + zeros)
    model = kind(networks, arms, seed=training.seed, device="cpu", **options)
    rows: list[Row] = []

    def policy(observations: np.ndarray) -> np.ndarray:
        seen = arms.seen(observations)
        return arms.action_signs * model.predict(seen, deterministic=True)[0]

    def after_step(*variables: Any) -> bool:
        """Evaluate after a row; return whether to go on."""
        episode = len(arms.scores)
        if episode > len(rows):
            began, signs = time.perf_counter(), arms.action_signs
            found = evaluate(episode, SimpleNamespace(policy=policy))
            arms.action_signs = signs  # of the arms that go on
            rows.append(row(training, episode, arms.scores[-1], found, "", arms.seconds[-1]))
            if sigma and fading:
                for noise in model.action_noise.noises:
                    noise._sigma = sigma * (1 - min(1.0, max(arms.scores) / SOLVED_SCORE)) + zeros
            arms.started += time.perf_counter() - began
        return episode < training.episodes

    model.learn(total_timesteps=10**9, callback=after_step)
    return rows
