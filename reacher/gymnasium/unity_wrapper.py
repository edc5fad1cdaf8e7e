"""Environments of Gymnasium with the interface of `unityagents.UnityEnvironment` 0.4.0."""

from __future__ import annotations

import copy
import functools
import random
import warnings
from collections.abc import Iterator, Mapping
from numbers import Real
from typing import Any

import gymnasium
import numpy as np

from reacher.checks import MAX_SEED, integer, shown
from reacher.interface import BrainInfo, BrainParameters, UnityInterface
from reacher.physics import MAX_AGENTS

PROBED = 10  # steps that are played to see whether an environment can be restored
LONG_EPISODE = 10_000  # steps, after which an environment without a time limit is named
CHECKER = "gymnasium.utils.env_checker.check_env says what else differs from Gymnasium's interface"


class UnityWrapper(UnityInterface):
    """Copies of a Gymnasium environment with continuous actions, as the agents of one brain.

    Observations and rewards are the numbers that Gymnasium's environment gives. Actions are cut to
    [-1, 1] and scaled: -1 is the lower bound of the environment's action, 1 the upper one.

    Args:
        env_id: what `gymnasium.make` takes, such as "Pendulum-v1". The action space must be a Box
            of real numbers with finite bounds, the observation space a Box of one axis.
        num_agents: number of copies, 1 to 2000. Several copies must end their episodes together,
            by a time limit; else only one works.
        seed: an integer >= 0. A copy's numbers depend on the seed and on its place, not on how
            many others there are.

    Attributes:
        observation_scale: (observations,) float32, the usual size of each observation: the larger
            of its two bounds without their signs, or 1 where that is 0 or no finite float32.
        reward_threshold: the environment's `spec.reward_threshold`, the score that counts as
            solved, on average over 100 episodes; or None.

    Raises:
        TypeError, ValueError: an argument is of the wrong kind or out of range, or the
            environment is unknown or has other spaces.
        ModuleNotFoundError: a package that the environment needs is not installed.

    Example:
        with UnityWrapper("Pendulum-v1", num_agents=10, seed=0) as env:
            brain_name = env.brain_names[0]
            states = env.reset(train_mode=True)[brain_name].vector_observations
            answer = env.step(np.zeros((10, 1)))[brain_name]
    """

    AGENT = "copy"

    def __init__(self, env_id: str, num_agents: int = 1, seed: int = 0) -> None:
        num_agents = integer("num_agents", num_agents, 1, MAX_AGENTS)
        seed = integer("seed", seed, 0, MAX_SEED)
        first, actions, observations = _make(env_id)
        spec: Any = first.spec  # of one that gymnasium.make made, never None
        self._envs = [first, *(_new(env_id) for _ in range(num_agents - 1))]
        self._env_id, self._actions, self._observations = env_id, actions, observations
        self._steps = 0
        low, high = actions.low.astype(np.float64), actions.high.astype(np.float64)
        self._middle, self._half_range = (low + high) / 2, (high - low) / 2
        self.observation_scale = _scale(observations)
        self.reward_threshold = spec.reward_threshold
        self.max_episode_steps = spec.max_episode_steps
        super().__init__(
            env_id,
            env_id,
            num_agents,
            BrainParameters(
                brain_name=f"{spec.name}Brain",
                vector_observation_space_size=observations.low.size,
                vector_action_space_size=actions.low.size,
                vector_action_descriptions=("",) * actions.low.size,
            ),
        )
        for number, env in enumerate(self._envs):  # from here on, reset() without a seed
            (copy_seed,) = np.random.SeedSequence([seed, number]).generate_state(1)
            self._first_observation(env, seed=int(copy_seed))

    def _begin(self) -> dict[str, BrainInfo]:
        self._steps = 0
        return self._answer(
            self._first_observations(), [0.0] * self.num_agents, False, [False] * self.num_agents
        )

    def _decide(self, actions: np.ndarray) -> dict[str, BrainInfo]:
        answers = [
            self._checked_step(env, self._scaled(action))
            for env, action in zip(self._envs, actions, strict=True)
        ]
        observations, rewards, terminated, truncated = zip(*answers, strict=True)
        self._warn_without_limit()
        ended = np.logical_or(terminated, truncated)
        done = bool(ended.all())
        if ended.any() and not done:
            self._is_reset = False
            raise RuntimeError(
                f"{ended.sum()} of {self.num_agents} copies of {self._name} ended "
                "their episodes: this environment ends them one by one, so it "
                "needs num_agents = 1"
            )
        self._steps = 0 if done else self._steps
        observations = self._first_observations() if done else np.stack(observations)
        max_reached = [
            bool(truncation and not terminal)
            for terminal, truncation in zip(terminated, truncated, strict=True)
        ]
        return self._answer(observations, list(rewards), done, max_reached, actions)

    def close(self) -> None:
        """End the environments; as in unityagents, closing them twice is an error."""
        super().close()
        for env in self._envs:
            env.close()

    def _first_observations(self) -> np.ndarray:
        return np.stack([self._first_observation(env) for env in self._envs])

    def _first_observation(self, env: gymnasium.Env, **options: Any) -> np.ndarray:
        """What a copy's reset returns, checked."""
        answer = env.reset(**options)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise TypeError(
                f"reset() of {self._env_id} must return a tuple of an observation and a "
                f"dictionary, not {shown(answer)}; {CHECKER}"
            )
        return self._checked_observation("reset", answer[0])

    def _checked_step(
        self, env: gymnasium.Env, action: np.ndarray
    ) -> tuple[np.ndarray, float, bool, bool]:
        """Observation, reward, terminated and truncated of one step of a copy."""
        try:
            observation, reward, terminated, truncated, _ = env.step(action)
        except (TypeError, ValueError) as error:  # the time limit around it unpacks five, too
            raise ValueError(
                f"step() of {self._env_id} failed ({error}); it must return five values "
                "(observation, reward, terminated, truncated, info), unlike in Gym before "
                f"version 0.26; {CHECKER}"
            ) from error
        real = isinstance(reward, Real) or (
            isinstance(reward, np.ndarray) and reward.size == 1 and reward.dtype.kind in "fiu"
        )
        if not real:
            raise TypeError(
                f"the reward of {self._env_id} must be a number, not {shown(reward)}; {CHECKER}"
            )
        for name, flag in (("terminated", terminated), ("truncated", truncated)):
            if not isinstance(flag, (bool, np.bool_)):
                raise TypeError(
                    f"{name} of {self._env_id} must be True or False, not {shown(flag)}; {CHECKER}"
                )
        return (
            self._checked_observation("step", observation),
            float(np.asarray(reward).item()),
            bool(terminated),
            bool(truncated),
        )

    def _checked_observation(self, call: str, observation: object) -> np.ndarray:
        """An observation (observations,) as it is, if it is one of the space's shape."""
        space = self._observations
        try:
            array = np.asarray(observation)
        except ValueError:  # rows of several lengths
            array = np.empty(0, object)
        if array.dtype.kind not in "biuf" or array.shape != space.shape:
            raise ValueError(
                f"{call}() of {self._env_id} must return an observation of {space}, "
                f"not {shown(observation)}; {CHECKER}"
            )
        return array

    def _warn_without_limit(self) -> None:
        """Name an environment that has no time limit, once, in an episode that goes on and on."""
        self._steps += 1
        if self._steps == LONG_EPISODE and self.max_episode_steps is None:
            warnings.warn(
                f"this episode of {self._env_id} has lasted {LONG_EPISODE:,} steps, and it has no "
                "time limit: if it never ends, neither does the training. Register it with "
                "max_episode_steps = ... (gymnasium.register), which puts "
                "gymnasium.wrappers.TimeLimit around it",
                stacklevel=4,
            )

    def _scaled(self, action: np.ndarray) -> np.ndarray:
        """An action (actions,) from [-1, 1] in the environment's own units, shape and type."""
        space = self._actions
        action = self._middle + self._half_range * action.clip(-1, 1).reshape(space.shape)
        return action.clip(space.low, space.high).astype(space.dtype)

    def _set_parameters(self, parameters: Mapping[str, float]) -> None:
        if parameters:
            raise ValueError(
                f"{self._name} has no reset parameters: config must be None or {{}}, not "
                f"{parameters!r}"
            )

    def _parameters(self) -> Mapping[str, float]:
        return {}

    def _generators(self) -> list[np.random.Generator]:
        generators = [env.unwrapped.np_random for env in self._envs]
        for generator in generators:
            bits = getattr(generator, "bit_generator", generator)
            if not isinstance(bits, np.random.PCG64):
                raise RuntimeError(
                    f"{self._name} does not draw from the generator that Gymnasium "
                    f"gives (PCG64), but from {bits!r}: no state to save"
                )
        if not self._is_reproducible:
            raise RuntimeError(
                f"{self._name} remembers more between episodes than the generator that Gymnasium "
                "gives, such as a counter or a generator of its own: no state to save"
            )
        return generators

    @functools.cached_property
    def _is_reproducible(self) -> bool:
        """Whether a new copy with the generator of an old one plays as the old one does.

        Two new environments tell: one has begun two episodes, the other takes over its generator
        only. What shows later than in a few steps is not seen. Python's and NumPy's global
        generators are left as they were, since a training saves them itself.
        """
        global_states = random.getstate(), np.random.get_state()
        actions = np.random.default_rng(0).uniform(-1, 1, (PROBED, *self._middle.shape))
        old, new = _new(self._env_id), _new(self._env_id)
        try:
            for env in (old, new):
                self._first_observation(env, seed=0)
            list(self._played(old, actions))
            new.unwrapped.np_random = copy.deepcopy(old.unwrapped.np_random)
            between = random.getstate(), np.random.get_state()
            played = list(self._played(old, actions))
            random.setstate(between[0]), np.random.set_state(between[1])
            again = list(self._played(new, actions))
        finally:
            random.setstate(global_states[0]), np.random.set_state(global_states[1])
            for env in (old, new):
                env.close()
        return len(played) == len(again) and all(map(np.array_equal, played, again))

    def _played(self, env: gymnasium.Env, actions: np.ndarray) -> Iterator[np.ndarray]:
        """Numbers of the beginning of an episode."""
        yield self._first_observation(env)
        for action in actions:
            observation, *others = self._checked_step(env, self._scaled(action))
            yield np.append(observation, others)
            if any(others[1:]):
                return

    def _restore(self, generators: list[np.random.Generator], parameters: Mapping) -> None:
        for env, generator in zip(self._envs, generators, strict=True):
            env.unwrapped.np_random = generator


def _new(env_id: str) -> gymnasium.Env:
    """A new environment, whose answers are checked here and not by Gymnasium."""
    return gymnasium.make(env_id, disable_env_checker=True)


def _make(env_id: str) -> tuple[gymnasium.Env, gymnasium.spaces.Box, gymnasium.spaces.Box]:
    """The environment, if it is one that fits, with its spaces of actions and observations.

    Raises:
        TypeError, ValueError, ModuleNotFoundError: it does not fit; says what would.
    """
    if not isinstance(env_id, str):
        raise TypeError(
            "env_id must be the name of a Gymnasium environment such as "
            f"'Pendulum-v1', not {env_id!r}"
        )
    try:
        env = _new(env_id)
    except (ModuleNotFoundError, gymnasium.error.DependencyNotInstalled) as error:
        raise ModuleNotFoundError(
            f"{env_id} needs a package that is not installed: {error}"
        ) from error
    except (ImportError, gymnasium.error.Error) as error:  # the first: an old version of MuJoCo's
        raise ValueError(
            f"env_id must name an environment that Gymnasium knows, such as "
            f"'Pendulum-v1', not {env_id!r}: {error}"
        ) from None
    actions, observations = env.action_space, env.observation_space
    box = gymnasium.spaces.Box
    if not isinstance(actions, box) or not np.issubdtype(actions.dtype, np.floating):
        raise ValueError(
            f"{env_id} has the action space {actions}; only continuous actions work: "
            "a Box of real numbers, such as Pendulum-v1's"
        )
    if not actions.low.size:
        raise ValueError(f"{env_id} has the action space {actions}: there is nothing to choose")
    if not actions.is_bounded():
        raise ValueError(
            f"{env_id} has the action space {actions}, whose bounds are not all "
            "finite: there is nothing to scale [-1, 1] to"
        )
    if not isinstance(observations, box) or len(observations.shape) != 1:
        raise ValueError(
            f"{env_id} has the observation space {observations}; only a Box of one "
            "axis works, such as Pendulum-v1's"
        )
    return env, actions, observations


def _scale(space: gymnasium.spaces.Box) -> np.ndarray:
    """Usual sizes of observations, (observations,) float32.

    The largest float32 counts as no bound: that is what some environments mean by it.
    """
    bound = np.maximum(np.abs(space.low), np.abs(space.high)).astype(np.float64)
    usable = (bound > 0) & (bound < np.finfo(np.float32).max)
    return np.where(usable, bound, 1.0).astype(np.float32)
