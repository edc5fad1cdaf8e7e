"""The arms of a Unity build as one of Gymnasium's vector environments."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike

from reacher.checks import actions_of_shape
from reacher.environment import ACTIONS, OBSERVATIONS
from reacher.task import ACTION_SIZE
from reacher.unity.protocol import unityagents


class UnityVectorEnv(VectorEnv):
    """What `reacher.ReacherVectorEnv` gives, by the original client of a Unity build.

    A build tells how many arms it has at a reset only, so the first one happens here, and the first
    call of `reset` returns its answer. A build cannot go back to an earlier seed.

    Args:
        unity: such as `open_unity` returns; closed with this environment.
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.SAME_STEP}
    single_observation_space, single_action_space = OBSERVATIONS, ACTIONS

    def __init__(self, unity: unityagents.UnityEnvironment) -> None:
        self.unity, [self._brain] = unity, unity.brain_names
        self._first = unity.reset(train_mode=True)
        self.num_envs = len(self._first[self._brain].agents)
        self.observation_space = batch_space(OBSERVATIONS, self.num_envs)
        self.action_space = batch_space(ACTIONS, self.num_envs)

    def reset(
        self, *, seed: int | None = None, options: dict[str, float] | None = None
    ) -> tuple[np.ndarray, dict]:
        """As that of `ReacherVectorEnv`; ValueError: a seed, which goes to `open_unity` instead."""
        if seed is not None:
            raise ValueError("a Unity build takes its seed when it is opened, and no other later")
        answer = None if options else self._first
        self._first = None
        if answer is None:
            answer = self.unity.reset(train_mode=True, config=options)
        return answer[self._brain].vector_observations.astype(np.float32), {}

    def step(
        self, actions: ArrayLike
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict]:
        """As that of `ReacherVectorEnv`; UnityError: the build has gone."""
        self._first = None
        actions = actions_of_shape(actions, (self.num_envs, ACTION_SIZE))
        answer = self.unity.step(actions)[self._brain]
        done, by_time = (np.array(x, dtype=bool) for x in (answer.local_done, answer.max_reached))
        observations = answer.vector_observations.astype(np.float32)
        rewards = np.array(answer.rewards, np.float32)
        return observations, rewards, done & ~by_time, done & by_time, {}

    def close_extras(self, **options: Any) -> None:
        self.unity.close()
