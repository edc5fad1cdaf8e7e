"""Playing an episode with a policy, in anything that has the interface of `unityagents`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from reacher.environment import ReacherEnvironment
from reacher.task import ACTION_SIZE, EPISODE_DECISIONS

Policy = Callable[[np.ndarray], np.ndarray]  # observations (agents, n) to actions (agents, m)


class Outcome(NamedTuple):
    """What a decision leads to, for each agent.

    Attributes:
        observations: (agents, n) float32; where the episode has ended, the next one's first.
        rewards: (agents,) float64.
        terminated: (agents,), whether nothing can follow, as Gymnasium means it.
        truncated: (agents,), whether the episode has ended for another reason: time is up.
    """

    observations: np.ndarray
    rewards: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray

    @property
    def is_last(self) -> bool:
        """Whether the episode has ended, which it does for all agents together."""
        return bool((self.terminated | self.truncated).any())


def reset(environment: Any) -> np.ndarray:
    """Begin an episode of an environment with one brain; return its observations, float32."""
    (name,) = environment.brain_names
    return environment.reset(train_mode=True)[name].vector_observations.astype(np.float32)


def step(environment: Any, actions: np.ndarray) -> Outcome:
    """Make a decision, actions (agents, m)."""
    (name,) = environment.brain_names
    answer = environment.step(actions)[name]
    done = np.array(answer.local_done, dtype=bool)
    terminated = done & ~np.array(answer.max_reached, dtype=bool)
    observations = answer.vector_observations.astype(np.float32)
    return Outcome(observations, np.array(answer.rewards), terminated, done.any() & ~terminated)


def rollout(
    environment: Any, policy: Policy
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Play one episode of an environment with the interface of `unityagents`, from its reset on.

    Yields:
        For each decision the observations (agents, observations), float32, the actions (agents,
        actions) and the rewards (agents,), float64.
    """
    observations, is_last = reset(environment), False
    while not is_last:
        actions = policy(observations)
        outcome = step(environment, actions)
        yield observations, actions, outcome.rewards
        observations, is_last = outcome.observations, outcome.is_last


def evaluate_policy(environment: Any, policy: Policy) -> np.ndarray:
    """Each agent's sum of rewards over one episode, (agents,), played as `rollout` does."""
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
    """Let a policy play the first decisions of `ReacherEnvironment(arms, seed, **parameters)`."""
    with ReacherEnvironment(arms, seed, **parameters) as environment:
        played = list(itertools.islice(rollout(environment, policy), decisions))
    observations, _, rewards = zip(*played, strict=True)
    return Episode(np.array(observations), np.array(rewards))


def random_torques(seed: int) -> Policy:
    """Clipped standard normal torques, as in the notebook's section 1."""
    draw = np.random.default_rng(seed).standard_normal
    return lambda observations: draw((len(observations), ACTION_SIZE)).clip(-1, 1)
