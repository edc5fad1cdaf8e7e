"""Scores of an actor without noise, measured beside its training."""

from __future__ import annotations

import os

import numpy as np
from gymnasium.vector import VectorEnv

from reacher.episode import Policy, evaluate_policy
from tutorial.environments import GYMNASIUM, open_environment, restore_state, state_of

SEED = 2**31 - 1  # of the goals, which are the same in every training


def open_evaluation(location: str | os.PathLike = "", num_agents: int = 20) -> Evaluation | None:
    """An evaluation on what `open_environment` opens, after every fifth episode.

    None where the environment cannot go back to its beginning, as a Unity build cannot; a line says
    so.
    """
    if str(location) and not str(location).startswith(GYMNASIUM):
        print("no evaluation beside the training: a Unity build cannot go back to the same goals")
        return None
    return Evaluation(open_environment(location, num_agents, SEED))


class Evaluation:
    """Plays an actor's mean weights on goals that no training sees, the same in every training.

    Its environment is its own and has a state to go back to, so a training's numbers do not depend
    on it, and nothing of it has to be saved to go on with a training. `every` are the episodes of
    training from one to the next.
    """

    def __init__(self, environment: VectorEnv, every: int = 5) -> None:
        self.environment, self.every = environment, every
        self._start = state_of(environment)

    def scores(self, policy: Policy, earlier: int = 0) -> np.ndarray:
        """Each agent's sum of rewards over one episode, (agents,).

        Args:
            earlier: evaluations before this one, whose goals are passed over.
        """
        restore_state(self.environment, self._start)
        for _ in range(earlier):
            self.environment.reset()
        return evaluate_policy(self.environment, policy)
