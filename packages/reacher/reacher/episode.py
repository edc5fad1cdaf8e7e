"""Playing an episode with a policy, in any of Gymnasium's vector environments."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from gymnasium.vector import VectorEnv

from reacher.environment import ReacherVectorEnv
from reacher.task import ACTION_SIZE, EPISODE_DECISIONS

Policy = Callable[[np.ndarray], np.ndarray]  # observations (arms, n) to actions (arms, m)


def rollout(
    environment: VectorEnv, policy: Policy
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Play from a reset on until the first episode of every arm has ended.

    Yields:
        For each decision the observations (arms, n), the actions (arms, m) and the rewards (arms,),
        float64, which are 0 where an arm's first episode is over and others still play.
    """
    observations, _ = environment.reset()
    plays = np.ones(environment.num_envs, bool)
    while plays.any():
        actions = policy(observations)
        next_observations, rewards, terminated, truncated, _ = environment.step(actions)
        yield observations, actions, plays * np.asarray(rewards, np.float64)
        plays &= ~(terminated | truncated)
        observations = next_observations


def evaluate_policy(environment: VectorEnv, policy: Policy) -> np.ndarray:
    """Each arm's sum of rewards over one episode, (arms,), played as `rollout` does."""
    return sum((rewards for *_, rewards in rollout(environment, policy)), np.zeros(()))


class Episode(NamedTuple):
    """What was seen and earned: observations (decisions, arms, 33), rewards (decisions, arms)."""

    observations: np.ndarray
    rewards: np.ndarray

    @property
    def scores(self) -> np.ndarray:
        """Each arm's sum of rewards, (arms,)."""
        return self.rewards.sum(axis=0)


def play_episode(
    policy: Policy,
    arms: int = 20,
    seed: int = 0,
    decisions: int = EPISODE_DECISIONS,
    **parameters: Any,
) -> Episode:
    """Let a policy play the first decisions of `ReacherVectorEnv(arms, seed, **parameters)`."""
    environment = ReacherVectorEnv(arms, seed, **parameters)
    played = list(itertools.islice(rollout(environment, policy), decisions))
    observations, _, rewards = zip(*played, strict=True)
    return Episode(np.array(observations), np.array(rewards))


def random_torques(seed: int) -> Policy:
    """Clipped standard normal torques, as in the notebook's section 1."""
    draw = np.random.default_rng(seed).standard_normal
    return lambda observations: draw((len(observations), ACTION_SIZE)).clip(-1, 1)
