"""Scores of an actor without noise, measured beside its training."""

from __future__ import annotations

import os

import numpy as np
from gymnasium.vector import VectorEnv

from reacher.episode import Policy, evaluate_policy
from tutorial.environments import open_environment

SEED = 2**31 - 1  # of the goals, which are the same in every training


def open_evaluation(location: str | os.PathLike = "", num_agents: int = 20) -> Evaluation | None:
    """An evaluation on the embedded arms after every fifth episode.

    None for a Unity build, which cannot go back to its beginning; a line says so.
    """
    if str(location):
        print("no evaluation beside the training: a Unity build cannot go back to the same goals")
        return None
    return Evaluation(open_environment("", num_agents, SEED))


class Evaluation:
    """Plays an actor's mean weights on goals that no training sees, the same in every training.

    Its environment is its own, so a training's numbers do not depend on it. `every` are the
    episodes of training from one to the next.
    """

    def __init__(self, environment: VectorEnv, every: int = 5) -> None:
        self.environment, self.every = environment, every

    def scores(self, policy: Policy, earlier: int = 0) -> np.ndarray:
        """Each agent's sum of rewards over one episode, (agents,).

        Args:
            earlier: evaluations before this one, whose goals are passed over.
        """
        self.environment.reset(seed=SEED - earlier * self.environment.num_envs)  # a seed a copy
        return evaluate_policy(self.environment, policy)
