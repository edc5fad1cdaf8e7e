"""Playing an episode with a policy, in anything that has the interface of `unityagents`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from unityagents import UnityEnvironment

    from reacher.interface import UnityInterface

Policy = Callable[[np.ndarray], np.ndarray]


def decisions(environment: UnityInterface | UnityEnvironment, policy: Policy
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


def scores(environment: UnityInterface | UnityEnvironment, policy: Policy) -> np.ndarray:
    """Each agent's sum of rewards over one episode, (agents,), played as `decisions` does."""
    return sum(rewards for _, _, rewards in decisions(environment, policy))
