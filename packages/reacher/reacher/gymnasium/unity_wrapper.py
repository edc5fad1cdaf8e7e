"""Environments of Gymnasium with the interface of `unityagents.UnityEnvironment` 0.4.0."""

from __future__ import annotations

import re
import shlex
import sys
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from reacher.checks import MAX_SEED, integer
from reacher.environment import BrainParameters, UnityInterface
from reacher.physics import MAX_AGENTS


class UnityWrapper(UnityInterface):
    """Copies of a Gymnasium environment with continuous actions, as the agents of one brain.

    Observations and rewards are the numbers that Gymnasium's environment gives. Actions are cut to
    [-1, 1] and scaled: -1 is the lower bound of the environment's action, 1 the upper one.

    The seed of every `reset` follows from `seed`, the copy's place and the episode's number. So a
    training that goes on from a saved state sees what it would have seen, unless the environment
    remembers more from episode to episode, such as a curriculum: that begins anew.

    Args:
        env_id: what `gymnasium.make` takes, such as "Pendulum-v1". The action space must be a Box
            of real numbers with finite bounds, the observation space a Box of one axis.
        num_agents: number of copies, 1 to 2000. Several copies must end their episodes together,
            by a time limit; else only one works.
        seed: an integer >= 0.

    Attributes:
        observation_scale: (observations,) float32, the usual size of each observation: the larger
            of its two bounds without their signs, or 1 where that is 0 or no finite float32.
        reward_threshold, max_episode_steps: those of the environment's `spec`.

    Raises:
        TypeError, ValueError: a bad number; or the environment is unknown or has other spaces.
        ModuleNotFoundError: a package that the environment needs is not installed.
    """

    def __init__(self, env_id: str, num_agents: int = 1, seed: int = 0) -> None:
        num_agents = integer("num_agents", num_agents, 1, MAX_AGENTS)
        seed = integer("seed", seed, 0, MAX_SEED)
        try:
            self._envs = SyncVectorEnv(
                [lambda: gymnasium.make(env_id)] * num_agents, autoreset_mode=AutoresetMode.DISABLED
            )
        except (ModuleNotFoundError, gymnasium.error.DependencyNotInstalled) as error:
            raise ModuleNotFoundError(
                f"{env_id} needs a package that is not installed ({error}){remedy(env_id)}"
            ) from error
        except (AttributeError, ImportError, TypeError, gymnasium.error.Error) as error:
            raise ValueError(
                "env_id must name an environment that Gymnasium knows, such as 'Pendulum-v1', "
                f"not {env_id!r}: {error}"
            ) from error
        spec: Any = self._envs.envs[0].spec
        actions: Any = self._envs.single_action_space
        space: Any = self._envs.single_observation_space
        require_spaces(env_id, actions, space)
        bound = np.maximum(np.abs(space.low), np.abs(space.high)).astype(np.float64)
        usable = (bound > 0) & (bound < np.finfo(np.float32).max)  # some mean it by no bound
        self.observation_scale = np.where(usable, bound, 1.0).astype(np.float32)
        self.reward_threshold = spec.reward_threshold
        self.max_episode_steps = spec.max_episode_steps
        self._actions = actions
        brain = BrainParameters(f"{spec.name}Brain", len(bound), actions.low.size)
        super().__init__(env_id, num_agents, seed, brain)

    def _first_observations(self) -> np.ndarray:
        seeds: list[int | None] = [
            int(np.random.SeedSequence([self._seed, copy, self._episodes]).generate_state(1)[0])
            for copy in range(self.num_agents)
        ]
        return self._envs.reset(seed=seeds)[0]

    def _decide(self, actions: np.ndarray) -> tuple[np.ndarray, list, list, list]:
        low, high = (bound.astype(np.float64) for bound in (self._actions.low, self._actions.high))
        actions = actions.clip(-1, 1).reshape(-1, *low.shape)
        scaled = ((low + high) / 2 + (high - low) / 2 * actions).clip(low, high)
        answers = self._envs.step(scaled.astype(self._actions.dtype))
        observations, rewards, terminated, truncated, _ = answers
        done = terminated | truncated
        if done.any() and not done.all():
            self._is_reset = False
            raise RuntimeError(
                f"{done.sum()} of {self.num_agents} copies ended their episodes: this environment "
                "ends them one by one, so it needs num_agents = 1"
            )
        max_reached = truncated & ~terminated
        return observations, rewards.tolist(), done.tolist(), max_reached.tolist()

    def close(self) -> None:
        """End the environments. It may be called again."""
        self._envs.close()


def remedy(env_id: str) -> str:
    """How to install what one of Gymnasium's own environments needs, for an error message."""
    entry_point = str(getattr(gymnasium.registry.get(env_id), "entry_point", None))
    found = re.match(r"gymnasium\.envs\.(\w+)", entry_point)
    command = f"{shlex.quote(sys.executable)} -m pip install"
    return f'; run\n    {command} "gymnasium[{found[1]}]"' if found else ""


def require_spaces(env_id: str, actions: Any, observations: Any) -> None:
    """Raise ValueError for spaces that an agent with continuous actions cannot use."""
    box = gymnasium.spaces.Box
    real = isinstance(actions, box) and np.issubdtype(actions.dtype, np.floating)
    if not real or not actions.low.size or not actions.is_bounded():
        wanted, found = "continuous actions, a Box of real numbers with finite bounds,", actions
    elif not isinstance(observations, box) or len(observations.shape) != 1:
        wanted, found = "observations in a Box of one axis", observations
    else:
        return
    raise ValueError(f"{env_id} has {found}; only {wanted} work, such as Pendulum-v1's")
