"""Rewards that are held back and paid every so many decisions, all at once.

The sum of an episode stays the same: its last decision pays what is left. So a task has the same
best policy, but it is harder to find out which action earned a reward.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import gymnasium
import numpy as np

from reacher.checks import MAX_SEED, integer
from reacher.interface import BrainInfo


class _Delay:
    """What both wrappers share: the rewards that are held back.

    Args:
        every: decisions from one payment to the next.
    """

    def __init__(self, every: int) -> None:
        self.every = integer("every", every, 1, MAX_SEED)
        self.begin()

    def begin(self) -> None:
        """An episode begins, and nothing is held back."""
        self._held, self._decisions = 0.0, 0

    def paid(self, rewards: Any, is_last: bool) -> Any:
        """What a decision pays.

        Args:
            rewards: what it has earned, a number or an array.
            is_last: whether the episode ends with it.
        """
        self._held = self._held + rewards
        self._decisions += 1
        if self._decisions % self.every and not is_last:
            return np.zeros_like(self._held)
        paid, self._held = self._held, 0.0
        if is_last:
            self._decisions = 0
        return paid


class DelayedRewards(gymnasium.Wrapper, gymnasium.utils.RecordConstructorArgs):
    """A Gymnasium environment whose rewards are paid every so many steps.

    It must see the end of an episode, so it has to be outside of the time limit, as in
    `DelayedRewards(gymnasium.make(...))`.

    Args:
        env: the environment.
        every: steps from one payment to the next, at least 1.

    Raises:
        TypeError, ValueError: `every` is no integer, or below 1.
    """

    def __init__(self, env: gymnasium.Env, every: int) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self, every=every)
        gymnasium.Wrapper.__init__(self, env)
        self._delay = _Delay(every)

    def reset(self, **options: Any) -> tuple[Any, dict]:
        """As the environment's."""
        self._delay.begin()
        return self.env.reset(**options)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        """As the environment's, but for the reward."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        reward = float(self._delay.paid(reward, terminated or truncated))
        return observation, reward, terminated, truncated, info


class UnityDelayedRewards:
    """The same for an environment with the interface of `unityagents`.

    Args:
        environment: whose agents end their episodes together.
        every: decisions from one payment to the next, at least 1.

    Raises:
        TypeError, ValueError: `every` is no integer, or below 1.
    """

    def __init__(self, environment: Any, every: int) -> None:
        self._environment, self._delay = environment, _Delay(every)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._environment, name)

    def reset(self, *arguments: Any, **options: Any) -> dict[str, BrainInfo]:
        self._delay.begin()
        return self._environment.reset(*arguments, **options)

    def step(self, *arguments: Any, **options: Any) -> dict[str, BrainInfo]:
        [(name, answer)] = self._environment.step(*arguments, **options).items()
        paid = self._delay.paid(np.array(answer.rewards), any(answer.local_done))
        return {name: dataclasses.replace(answer, rewards=paid.tolist())}
