"""Scores of an actor without noise, measured beside its training."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import torch

from reacher.episode import Policy, rollout
from tutorial.environments import GYMNASIUM, open_environment
from tutorial.protocols import SavedEnvironment
from tutorial.randomness import own_randomness

SEED = 2**31 - 1  # of the goals, which are the same in every training


def open_evaluation(
    location: str | os.PathLike = "",
    num_agents: int = 20,
    goals: Mapping[str, float] = MappingProxyType({}),
    every: int = 5,
) -> Evaluation | None:
    """An evaluation on what `open_environment` opens.

    Args:
        every: episodes of training from one to the next; 0 for none.

    Returns:
        None where none is wanted, or where the environment cannot go back to its beginning, as a
        Unity build cannot; a line says so.
    """
    if not every:
        return None
    if str(location) and not str(location).startswith(GYMNASIUM):
        print("no evaluation beside the training: a Unity build cannot go back to the same goals")
        return None
    try:
        with own_randomness(SEED):
            environment = open_environment(location, num_agents, SEED, goals)
            return Evaluation(environment, every)
    except RuntimeError as error:  # an environment of Gymnasium with a memory of its own
        print(f"no evaluation beside the training: {error}")
        return None


class Evaluation:
    """Plays an actor's mean weights on goals that no training sees, the same in every training.

    It has an environment of its own, so a training's numbers do not depend on it, and nothing of it
    has to be saved to go on with a training.

    Args:
        environment: with the interface of `unityagents` and a state to go back to; this one's own.
        every: episodes of training from one evaluation to the next.
    """

    def __init__(self, environment: SavedEnvironment, every: int) -> None:
        self.environment, self.every = environment, every
        self._start = environment.state()

    def due(self, episode: int) -> bool:
        """Whether there is one after this episode, counted from 1 on."""
        return episode % self.every == 0

    def rollout(
        self, policy: Policy, earlier: int = 0
    ) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """One episode of a policy, as `reacher.episode.rollout` yields it.

        Args:
            earlier: evaluations before this one, whose goals are passed over.
        """
        with own_randomness(SEED):  # an environment may draw from what the training draws from
            self.environment.restore(self._start)
            for _ in range(earlier):
                self.environment.reset(train_mode=True)
            return list(rollout(self.environment, policy))

    def scores(self, policy: Policy, earlier: int = 0) -> np.ndarray:
        """Each agent's sum of rewards over such an episode, (agents,)."""
        return functools.reduce(np.add, (rewards for *_, rewards in self.rollout(policy, earlier)))


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


def values_over_torques(
    critic: torch.nn.Module, observation: np.ndarray, action: np.ndarray, torques: np.ndarray
) -> np.ndarray:
    """What a critic says of one observation, with the first two torques of an action varied.

    Args:
        observation, action: (observations,) and (actions,), float32.
        torques: (k,), float32.

    Returns:
        Values Q (k, k): second torque, first torque.
    """
    varied = np.tile(action, (len(torques), len(torques), 1))
    varied[..., 0], varied[..., 1] = np.meshgrid(torques, torques)
    seen = np.tile(observation, (len(torques) ** 2, 1))
    with torch.no_grad():
        values = critic(*map(torch.from_numpy, (seen, varied.reshape(len(seen), -1))))
    return values.numpy().reshape(len(torques), len(torques))
