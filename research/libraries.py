"""Stable-Baselines3, and SBX, the same agents on JAX, on the twenty arms."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.noise import NormalActionNoise, VectorizedActionNoise
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from reacher.gymnasium import ReacherVectorEnv
from reacher.task import ACTION_SIZE, OBSERVATION_SIZE, SOLVED_SCORE
from research.baselines import AGENTS
from research.training import Row, Training, make_evaluation, row
from tutorial import notebook


class ArmVecEnv(VecEnv):
    """Arms in the form that Stable-Baselines3 takes, with a record of all scores.

    The time limit is a truncation: `infos` say so and hold the true last observation.

    Args:
        num_agents: arms.
        seed: of the goals.
        scale: by which the observations (33,) are divided; None: as they are.
        reward_scale: by which rewards are multiplied. Scores are not.
        frame: the notebook's canonical frame, through which an agent sees and acts; or None.
        clock: of the seconds.

    Attributes:
        scores: mean over the arms of each whole episode.
        seconds: when it ended, s since it began, without those in which the clock was stopped.
        action_signs: of the frame of what was seen last.
    """

    def __init__(
        self,
        num_agents: int = 20,
        seed: int = 0,
        scale: np.ndarray | None = None,
        reward_scale: float = 1,
        frame: Any = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.clock = clock
        self.frame, self.action_signs = frame, np.ones((num_agents, ACTION_SIZE), np.float32)
        self.arms = ReacherVectorEnv(num_agents, autoreset_mode="SameStep")
        self.scale = np.float32(1) if scale is None else scale
        self.reward_scale = reward_scale
        self.goal_seed: int | None = seed  # of the first reset
        self.actions = np.zeros((num_agents, ACTION_SIZE), np.float32)
        self.scores: list[float] = []
        self.seconds: list[float] = []
        self.started, self.score = self.clock(), 0.0
        super().__init__(
            num_agents,
            spaces.Box(-np.inf, np.inf, (OBSERVATION_SIZE,), np.float32),
            self.arms.single_action_space,
        )

    @contextlib.contextmanager
    def stopped_clock(self) -> Iterator[None]:
        """What happens meanwhile takes no time."""
        began = self.clock()
        yield
        self.started += self.clock() - began

    def seen(self, observations: np.ndarray) -> np.ndarray:
        """Observations as an agent sees them, float32."""
        if self.frame is not None:
            found = self.frame(torch.from_numpy(np.asarray(observations, np.float32)))
            signs, self.action_signs = (part.numpy() for part in found)
            observations = signs * observations
        return (observations / self.scale).astype(np.float32)

    def reset(self) -> np.ndarray:
        observations, _ = self.arms.reset(seed=self.goal_seed)
        self.goal_seed, self.score = None, 0.0
        return self.seen(observations)

    def step_async(self, actions: np.ndarray) -> None:
        self.actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict]]:
        torques = self.action_signs * self.actions
        observations, rewards, _, truncated, answer = self.arms.step(torques)
        self.score += rewards.mean()
        infos: list[dict] = [{} for _ in range(self.num_envs)]
        if truncated.all():
            self.scores.append(float(self.score))
            self.seconds.append(self.clock() - self.started)
            self.score = 0.0
            infos = [
                {"terminal_observation": last, "TimeLimit.truncated": True}
                for last in self.seen(np.stack(answer["final_obs"]))
            ]
        paid = (self.reward_scale * rewards).astype(np.float32)
        return self.seen(observations), paid, truncated, infos

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


def train(training: Training, clock: Callable[[], float] = time.perf_counter) -> list[Row]:
    """Train an agent of `research.baselines`; return a row for each episode.

    What ends by numbers that are not finite gets 0 points from there on. The overrides are those of
    the library's class, and

    - `observations`: "running" if `VecNormalize` scales them, "fixed" if the notebook's scale does,
    - `reward_scale`; `noise`, the sigma of Gaussian noise on the actions; `fading`, whether it
      fades as the best score rises to 30,
    - `mirrors`: whether the agent sees each arm in its canonical mirror, as the notebook's does.
    """
    os.environ.setdefault("NPROC", "1")  # of which JAX makes its threads
    library, algorithm, policy = AGENTS[training.library]
    kind = getattr(importlib.import_module(library), algorithm)
    options = dict(training.overrides)
    if "train_freq" in options:
        options["train_freq"] = tuple(options["train_freq"])  # which JSON does not know
    observations, fading = options.pop("observations", "raw"), options.pop("fading", False)
    cells, evaluate = notebook.definitions(), make_evaluation(training)
    arms = ArmVecEnv(
        training.arms,
        training.seed,
        cells.OBSERVATION_SCALE if observations == "fixed" else None,
        options.pop("reward_scale", 1),
        cells.CanonicalFrame(OBSERVATION_SIZE) if options.pop("mirrors", False) else None,
        clock,
    )
    env: VecEnv = arms
    if observations == "running":
        env = VecNormalize(arms, norm_reward=False)
    noise = None
    if sigma := options.pop("noise", 0):
        options["action_noise"] = noise = FadingNoise(arms.num_envs, sigma)
    model = kind(policy, env, seed=training.seed, device="cpu", **options)
    rows: list[Row] = []

    def act(observations: np.ndarray, explore: bool) -> np.ndarray:
        seen = arms.seen(observations)
        signs = arms.action_signs
        if isinstance(env, VecNormalize):
            seen = env.normalize_obs(seen)
        return signs * model.predict(seen, deterministic=not explore)[0]

    def ended() -> None:
        if noise and fading:
            noise.factor = 1 - min(1.0, max(arms.scores) / SOLVED_SCORE)
        episode = len(arms.scores)
        signs = arms.action_signs
        found = evaluate(episode, SimpleNamespace(act=act))
        arms.action_signs = signs  # of the arms that go on
        rows.append(row(training, episode, arms.scores[-1], found, "", arms.seconds[-1]))

    try:
        model.learn(total_timesteps=10**9, callback=Episodes(arms, training.episodes, ended))
    except ValueError as error:  # of the arms, or of PyTorch's distributions
        if not re.search("finite|nan", str(error)):
            raise
    for episode in range(len(rows) + 1, training.episodes + 1):
        seconds = arms.seconds[-1] if arms.seconds else 0.0
        rows.append(row(training, episode, 0.0, np.zeros(1), "", seconds))
    return rows
