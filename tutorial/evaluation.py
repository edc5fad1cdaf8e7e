"""Scores of an actor without noise, measured beside its training."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from reacher.episode import Policy, evaluate_policy
from tutorial.environments import GYMNASIUM, open_environment

SEED = 2**31 - 1  # of the goals, which are the same in every training


def open_evaluation(
    location: str | os.PathLike = "",
    num_agents: int = 20,
    goals: Mapping[str, float] | None = None,
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
        return Evaluation(open_environment(location, num_agents, SEED, goals), every)
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

    def __init__(self, environment: Any, every: int) -> None:
        self.environment, self.every = environment, every
        self._start = environment.state()

    def scores(self, policy: Policy, earlier: int = 0) -> np.ndarray:
        """Each agent's sum of rewards over one episode, (agents,).

        Args:
            earlier: evaluations before this one, whose goals are passed over.
        """
        self.environment.restore(self._start)
        for _ in range(earlier):
            self.environment.reset(train_mode=True)
        return evaluate_policy(self.environment, policy)
