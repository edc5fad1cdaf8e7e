"""Playing an episode with a policy, in anything that has the interface of `unityagents`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from reacher.environment import ReacherEnvironment
from reacher.task import ACTION_SIZE, EPISODE_DECISIONS

Policy = Callable[[np.ndarray], np.ndarray]  # observations (agents, n) to actions (agents, m)


def reset(environment: Any) -> Any:
    """Begin an episode; return the environment's only `BrainInfo`: what its agents see."""
    (name,) = environment.brain_names
    return environment.reset(train_mode=True)[name]


def step(environment: Any, actions: np.ndarray) -> Any:
    """Make a decision, actions (agents, n); return what its agents see and earn."""
    (name,) = environment.brain_names
    return environment.step(actions)[name]


def time_is_up(answer: Any) -> bool:
    """Whether the episode has ended, by its time limit; another end is a ValueError."""
    if any(answer.local_done) and not all(answer.max_reached):
        raise ValueError("an arm ended before time was up, which this agent cannot learn from")
    return any(answer.local_done)


def rollout(
    environment: Any, policy: Policy
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Play one episode of an environment with the interface of `unityagents`, from its reset on.

    Yields:
        For each decision the observations (agents, observations), float32, the actions (agents,
        actions) and the rewards (agents,), float64.
    """
    answer = reset(environment)
    while True:
        observations = answer.vector_observations.astype(np.float32)
        actions = policy(observations)
        answer = step(environment, actions)
        yield observations, actions, np.array(answer.rewards)
        if any(answer.local_done):
            return


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
