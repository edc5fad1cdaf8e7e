"""Rewards that come only every so many decisions, all at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from reacher.checks import MAX_SEED, integer
from reacher.columns import CLOCK, EARNINGS


class DelayedRewards:
    """An environment whose rewards are held back; the last decision gives what is left of the sum.

    Args:
        environment: with the interface of `unityagents`. All else is passed on to it.
        every: decisions from one sum to the next, at least 1; else TypeError or ValueError.
        clock, earnings: whether the arms observe the share of the wait that has passed, and what is
            held back for each, in the numbers CLOCK and EARNINGS of an observation, which would
            always be 0.
        memory: whether an observation of n numbers is followed by `every` more, those since the
            last sum with this one, and zeros: (1 + every) * n.
    """

    def __init__(
        self,
        environment: Any,
        every: int,
        clock: bool = False,
        earnings: bool = False,
        memory: bool = False,
    ) -> None:
        self._environment = environment
        self.every = integer("every", every, 1, MAX_SEED)
        self.clock, self.earnings, self.memory = clock, earnings, memory
        self._held: Any = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._environment, name)

    def reset(self, *arguments: Any, **options: Any) -> dict[str, Any]:
        self._held, self._decisions = 0.0, 0
        return self._seen(self._environment.reset(*arguments, **options))

    def step(self, *arguments: Any, **options: Any) -> dict[str, Any]:
        answers = self._environment.step(*arguments, **options)
        (answer,) = answers.values()
        self._held = self._held + np.array(answer.rewards)
        self._decisions += 1
        is_last = any(answer.local_done)
        due = is_last or self._decisions % self.every == 0
        answer.rewards = self._held.tolist() if due else [0.0] * len(answer.rewards)
        self._held = 0.0 if due else self._held
        self._decisions = 0 if is_last else self._decisions  # the next episode follows by itself
        return self._seen(answers)

    def _seen(self, answers: dict[str, Any]) -> dict[str, Any]:
        (answer,) = answers.values()
        if self.clock:
            answer.vector_observations[:, CLOCK] = self._decisions % self.every / self.every
        if self.earnings:
            answer.vector_observations[:, EARNINGS] = self._held
        if self.memory:
            now, place = answer.vector_observations, self._decisions % self.every
            if place == 0:
                self._seen_since = np.zeros((len(now), self.every, now.shape[1]), now.dtype)
            self._seen_since[:, place] = now
            answer.vector_observations = np.hstack([now, self._seen_since.reshape(len(now), -1)])
        return answers
