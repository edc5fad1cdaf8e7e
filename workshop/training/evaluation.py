"""Scores of an actor without noise, measured beside its training."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reacher.interface import UnityInterface
from workshop.training import episodes


class Evaluation:
    """Plays an actor's mean weights on goals that no training sees, the same ones every time.

    It has an environment of its own, so a training's numbers do not depend on it, and nothing of it
    has to be saved to go on with a training.

    Args:
        environment: with the interface of `unityagents` and a state to go back to; this one's own.
        every: episodes of training from one evaluation to the next.
    """

    def __init__(self, environment: UnityInterface, every: int) -> None:
        self.environment, self.every = environment, every
        self._start = environment.state()

    def due(self, episode: int) -> bool:
        """Whether there is one after this episode, counted from 1 on."""
        return episode % self.every == 0

    def scores(self, policy: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Each agent's score over one episode, (agents,), of observations to actions."""
        self.environment.restore(self._start)
        return episodes.scores(self.environment, policy)
