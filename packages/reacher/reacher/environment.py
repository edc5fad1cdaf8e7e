"""The arms for Gymnasium: many in one simulation, or one.

import gymnasium
import reacher

arms = gymnasium.make_vec("reacher/Reacher-v0", num_envs=20)
arm = gymnasium.make("reacher/Reacher-v0")  # without the import: "reacher:reacher/Reacher-v0"
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike

from reacher.checks import MAX_SEED, actions_of_shape, integer
from reacher.columns import CLOCK, EARNINGS
from reacher.goals import MAX_UNITY_SEED, goal_generators
from reacher.physics import MAX_AGENTS
from reacher.task import ACTION_SIZE, DECISION_SECONDS, OBSERVATION_SIZE, World

OBSERVATIONS = gymnasium.spaces.Box(-np.inf, np.inf, (OBSERVATION_SIZE,), np.float32)
ACTIONS = gymnasium.spaces.Box(-1.0, 1.0, (ACTION_SIZE,), np.float32)
DRAWING = {"render_modes": ["rgb_array"], "render_fps": 1 / DECISION_SECONDS}


class ReacherVectorEnv(VectorEnv):
    """Two-joint arms that follow moving goals, all in one simulation.

    The same seed and actions give the same numbers, bit for bit, on one machine. All episodes end
    together, by a time limit. As in the Unity build, the arms are reset before they answer the last
    decision: that answer has the last reward of the old episode and the first observation of the
    next one, and nobody tells the last observation.

    Args:
        num_envs: number of arms, 1 to 2000; the course's builds have 20 and 1.
        seed: of the goals, an integer >= 0, until `reset` gets another; None: by chance.
        goals: "own" or "unity", see `reacher.goals`.
        max_episode_steps: decisions of an episode, at least 1; None: 1001, as in the Unity build.
        render_mode: None; "rgb_array": `render` returns pictures.
        parameters: `goal_size`, diameter of the goals, 5.0 m, and `goal_speed`, their largest
            speed, 1.0 degrees per physics step.

    Raises:
        TypeError, ValueError: an argument is no number of its kind, unknown or out of range.
    """

    metadata: dict[str, Any] = {**DRAWING, "autoreset_mode": AutoresetMode.SAME_STEP}
    single_observation_space, single_action_space = OBSERVATIONS, ACTIONS

    def __init__(
        self,
        num_envs: int = 20,
        seed: int | None = None,
        goals: str = "own",
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
        **parameters: float,
    ) -> None:
        self.num_envs = integer("num_envs", num_envs, 1, MAX_AGENTS)
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"render_mode must be None or 'rgb_array', not {render_mode!r}")
        self.render_mode = render_mode
        self.observation_space = batch_space(OBSERVATIONS, self.num_envs)
        self.action_space = batch_space(ACTIONS, self.num_envs)
        self._goals, self._is_reset = goals, False
        self._renderer: Any = None
        seed = secrets.randbelow(MAX_UNITY_SEED) if seed is None else seed
        self._task = World(self.num_envs, seed, goals)
        self._task.set_parameters(parameters)
        if max_episode_steps is not None:
            self._task.limit = integer("max_episode_steps", max_episode_steps, 1, MAX_SEED)

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, float] | None = None
    ) -> tuple[np.ndarray, dict]:
        """Begin a new episode of all arms; return observations (arms, 33) float32, and {}.

        Args:
            seed: None: the goals go on as they are drawn.
            options: `goal_size` and `goal_speed`, which stay until they are changed again.

        Raises:
            TypeError, ValueError: a bad seed, name or value; nothing has changed then.
        """
        self._task.set_parameters(options or {})
        if seed is not None:
            self._task.generators = goal_generators(seed, self.num_envs, self._goals)
        self._is_reset = True
        return self._task.reset(), {}

    def step(
        self, actions: ArrayLike
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict]:
        """Hold the actions for one decision.

        Args:
            actions: (arms, 4) or flat, array, list or CPU tensor, cut to [-1, 1].

        Returns:
            observations (arms, 33) float32, rewards (arms,) float32, terminated (arms,), which is
            never, truncated (arms,), and {}.

        Raises:
            ValueError: wrong shape, NaN or infinity; nothing has moved then.
            gymnasium.error.ResetNeeded: before the first reset.
        """
        if not self._is_reset:
            raise ResetNeeded("step() before reset(): call reset() to begin an episode")
        actions = actions_of_shape(actions, (self.num_envs, ACTION_SIZE))
        observations, rewards, is_last = self._task.step(actions)
        if is_last:
            observations = self._task.reset()
        never, now = np.zeros(self.num_envs, bool), np.full(self.num_envs, is_last)
        return observations, rewards.astype(np.float32), never, now, {}  # as Unity sends rewards

    def render(self) -> tuple[np.ndarray, ...] | None:
        """The picture of every arm at this moment, (480, 480, 3) uint8, or None."""
        if self.render_mode is None:
            return None
        if self._renderer is None:
            from reacher.render import ArmRenderer  # needs OpenGL, which the arms do not

            self._renderer = ArmRenderer(1, self._task.parameters["goal_size"], 480, 480)
        return tuple(self._renderer.frame(seen[None]) for seen in self._task.observe())

    def close_extras(self, **options: Any) -> None:
        if self._renderer is not None:
            self._renderer.close()


class ReacherEnv(gymnasium.Env):
    """One arm, whose last observation is known.

    A decision holds the action for 0.08 s, cut to [-1, 1], and gives 0 to 0.04. Nothing terminates:
    an episode is truncated by Gymnasium's time limit after 1001 decisions, as many as in the Unity
    build. `reset(seed=s)` begins those of `ReacherVectorEnv(num_envs=1, seed=s)`.

    Args:
        render_mode: None; "rgb_array": `render` returns a picture (480, 480, 3) uint8.
        parameters: as of `ReacherVectorEnv`.

    Raises:
        ValueError: an unknown render_mode or name, or a number out of range.
    """

    metadata: dict[str, Any] = DRAWING
    observation_space, action_space = OBSERVATIONS, ACTIONS

    def __init__(self, render_mode: str | None = None, **parameters: float) -> None:
        self.render_mode = render_mode
        self._arms = ReacherVectorEnv(1, 0, "own", MAX_SEED, render_mode, **parameters)

    def reset(
        self, *, seed: int | None = None, options: dict | None = None
    ) -> tuple[np.ndarray, dict]:
        """Begin an episode; return the observation (33,) float32 and {}. Options do nothing."""
        super().reset(seed=seed)
        self._arms._task.generators = [self.np_random]
        return self._arms.reset()[0][0], {}

    def step(self, action: ArrayLike) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Hold the action (4,) for one decision; return observation, reward, False, False, {}.

        Raises:
            ValueError, gymnasium.error.ResetNeeded: as `ReacherVectorEnv.step`.
        """
        observations, rewards, *_ = self._arms.step(action)
        return observations[0], float(rewards[0]), False, False, {}

    def render(self) -> np.ndarray | None:
        """The picture of this moment, or None; RuntimeError: OpenGL does not work here."""
        return None if self.render_mode is None else self._arms.render()[0]  # type: ignore[index]

    def close(self) -> None:
        """End the environment. It may be called again."""
        self._arms.close()


class DelayedRewards(VectorWrapper):
    """Rewards that come only every so many decisions; an episode's last one gives the rest.

    Args:
        env: of any kind, whose ends come within the same step (`AutoresetMode.SAME_STEP`).
        every: decisions from one sum to the next, at least 1; else TypeError or ValueError.
        clock, earnings: whether the arms observe the share of the wait that has passed, and what is
            held back for each, in the numbers CLOCK and EARNINGS of an observation, which would
            always be 0.
        memory: whether an observation of n numbers is followed by `every` more, those since the
            last sum with this one, and zeros: (1 + every) * n.
    """

    def __init__(
        self,
        env: VectorEnv,
        every: int,
        clock: bool = False,
        earnings: bool = False,
        memory: bool = False,
    ) -> None:
        super().__init__(env)
        self.every = integer("every", every, 1, MAX_SEED)
        self.clock, self.earnings, self.memory = clock, earnings, memory
        if memory:
            space: Any = env.single_observation_space
            low, high = (np.tile(bound, 1 + self.every) for bound in (space.low, space.high))
            self.single_observation_space = gymnasium.spaces.Box(low, high, dtype=space.dtype)
            self.observation_space = batch_space(self.single_observation_space, self.num_envs)

    def reset(self, **options: Any) -> tuple[np.ndarray, dict]:
        self._held, self._decisions = np.zeros(self.num_envs), np.zeros(self.num_envs, int)
        observations, infos = self.env.reset(**options)
        return self._seen(observations), infos

    def step(self, actions: ArrayLike) -> tuple[np.ndarray, np.ndarray, Any, Any, dict]:
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        self._held, self._decisions = self._held + rewards, self._decisions + 1
        is_last = terminated | truncated
        due = is_last | (self._decisions % self.every == 0)
        paid = np.where(due, self._held, 0.0)
        self._held = np.where(due, 0.0, self._held)
        self._decisions[is_last] = 0  # the next episode has begun
        return self._seen(observations), paid, terminated, truncated, infos

    def _seen(self, observations: np.ndarray) -> np.ndarray:
        if self.clock:
            observations[:, CLOCK] = self._decisions % self.every / self.every
        if self.earnings:
            observations[:, EARNINGS] = self._held
        if not self.memory:
            return observations
        place, arms = self._decisions % self.every, np.arange(len(observations))
        if not self._decisions.any():
            self._since = np.zeros((len(arms), self.every, observations.shape[1]), np.float32)
        self._since[place == 0] = 0
        self._since[arms, place] = observations
        return np.hstack([observations, self._since.reshape(len(arms), -1)])
