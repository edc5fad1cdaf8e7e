"""Playing an episode with a policy, in anything that has the interface of `unityagents`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import numpy as np

from tutorial.training.protocols import Environment

Policy = Callable[[np.ndarray], np.ndarray]


def rollout(
    environment: Environment, policy: Policy
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Play one episode from its reset on.

    Args:
        environment: it is reset.
        policy: observations (agents, observations), float32, to actions (agents, actions).

    Yields:
        For each decision the observations (agents, observations), float32, the actions (agents,
        actions) and the rewards (agents,), float64.
    """
    [name] = environment.brain_names
    answer = environment.reset(train_mode=True)[name]
    while True:
        observations = answer.vector_observations.astype(np.float32)
        actions = policy(observations)
        answer = environment.step(actions)[name]
        yield observations, actions, np.array(answer.rewards)
        if any(answer.local_done):
            return


def evaluate_policy(environment: Environment, policy: Policy) -> np.ndarray:
    """Each agent's sum of rewards over one episode, (agents,), played as `rollout` does."""
    return functools.reduce(np.add, (rewards for *_, rewards in rollout(environment, policy)))


def returns_that_followed(rewards: np.ndarray, discount: float) -> np.ndarray:
    """Discounted sums of the rewards to come, without the end, whose future is cut off.

    Args:
        rewards: (decisions, agents) of one episode.

    Returns:
        (decisions - k, agents), with the smallest k after which less than 1 % of a reward counts.
    """
    returns, future = np.zeros_like(rewards), 0.0
    for t in reversed(range(len(rewards))):
        returns[t] = future = rewards[t] + discount * future
    unknown = 1
    while discount**unknown > 0.01:
        unknown += 1
    return returns[:-unknown]
