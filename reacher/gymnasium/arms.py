"""One arm, or many arms as a vector environment, for Gymnasium."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike

from reacher.checks import MAX_SEED, actions_of_shape, integer
from reacher.goals import goal_generators
from reacher.physics import MAX_AGENTS
from reacher.render import ArmRenderer
from reacher.task import (
    ACTION_SIZE,
    DECISION_SECONDS,
    EPISODE_DECISIONS,
    OBSERVATION_SIZE,
    RESET_PARAMETERS,
    Task,
)

METADATA: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 1 / DECISION_SECONDS}
PICTURE_SIZE = 480  # pixels
GOAL_SIZE, GOAL_SPEED = RESET_PARAMETERS.values()
OBSERVATION_SPACE = gymnasium.spaces.Box(-np.inf, np.inf, (OBSERVATION_SIZE,), np.float32)
ACTION_SPACE = gymnasium.spaces.Box(-1.0, 1.0, (ACTION_SIZE,), np.float32)


class ReacherVectorEnv(gymnasium.vector.VectorEnv):
    """Many arms in one simulation, `gymnasium.make_vec("reacher/Reacher-v0", num_envs=20)`.

    Each arm is what `ReacherEnv` is. All of them are truncated together.

    Args:
        num_envs: number of arms, 1 to 2000.
        render_mode: None; "rgb_array": `render` returns a picture (480, 480, 3) uint8 of each arm.
        max_episode_steps: decisions of an episode; -1 for no limit.
        autoreset_mode: Gymnasium's "NextStep", "SameStep" (the truncated step returns the first
            observations of the next episode, and the last ones in `info["final_obs"]`) or
            "Disabled".
        goal_size: diameter of the goals, m.
        goal_speed: largest speed of the goals, degrees per physics step.

    Raises:
        TypeError, ValueError: an argument is of the wrong kind or out of range.
    """

    metadata = METADATA

    def __init__(
        self,
        num_envs: int = 1,
        render_mode: str | None = None,
        max_episode_steps: int = EPISODE_DECISIONS,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        goal_size: float = GOAL_SIZE,
        goal_speed: float = GOAL_SPEED,
    ) -> None:
        self.num_envs = integer("num_envs", num_envs, 1, MAX_AGENTS)
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"render_mode must be None or 'rgb_array', not {render_mode!r}")
        self.render_mode = render_mode
        self._max_episode_steps = integer("max_episode_steps", max_episode_steps, -1, MAX_SEED)
        self._autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**METADATA, "autoreset_mode": self._autoreset_mode}
        self.single_observation_space, self.single_action_space = OBSERVATION_SPACE, ACTION_SPACE
        self.observation_space = batch_space(OBSERVATION_SPACE, self.num_envs)
        self.action_space = batch_space(ACTION_SPACE, self.num_envs)
        self.task = Task(self.num_envs, seed=int(np.random.default_rng().integers(MAX_SEED)))
        self.task.set_parameters({"goal_size": goal_size, "goal_speed": goal_speed})
        self._state = "new"  # then "running", and "over" after a truncated step
        self._renderer: ArmRenderer | None = None

    def reset(
        self, *, seed: int | list[int] | None = None, options: dict | None = None
    ) -> tuple[np.ndarray, dict]:
        """Begin an episode in all arms; return observations (arms, 33) float32 and {}.

        Args:
            seed: an integer begins the episodes of `ReacherEnvironment(num_envs, seed)`; a list
                holds one seed for each arm; None goes on with the generators that there are, which
                begin with a random seed.
            options: without an effect.

        Raises:
            TypeError, ValueError: a bad seed.
        """
        if isinstance(seed, (list, tuple, np.ndarray)):
            if len(seed) != self.num_envs:
                raise ValueError(f"{len(seed)} seeds are given for {self.num_envs} arms")
            self.task.generators = [goal_generators(one, 1)[0] for one in seed]
        elif seed is not None:
            self.task.generators = goal_generators(seed, self.num_envs)
        self._state = "running"
        return self.task.reset(), {}

    def step(
        self, actions: ArrayLike
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict]:
        """Hold the actions (arms, 4) for one decision.

        Returns:
            observations (arms, 33) float32, rewards (arms,) float64, terminations (arms,) all
            false, truncations (arms,) bool, and infos: in the mode "SameStep" the truncated step's
            have the last observations, `final_obs`, and Gymnasium's mask of the arms that have one.

        Raises:
            ValueError: wrong shape, NaN or infinity; nothing has moved then.
            gymnasium.error.ResetNeeded: before the first reset, or after the end of an episode in
                the mode "Disabled".
        """
        never = np.zeros(self.num_envs, dtype=bool)
        if self._state == "over" and self._autoreset_mode == AutoresetMode.NEXT_STEP:
            return self.reset()[0], np.zeros(self.num_envs), never, never.copy(), {}
        if self._state != "running":
            raise ResetNeeded("step() before reset(): call reset() to begin an episode")
        actions = actions_of_shape(actions, (self.num_envs, ACTION_SIZE))
        observations, rewards, _ = self.task.step(actions)
        is_last = self.task.decisions == self._max_episode_steps
        truncated, infos = np.full(self.num_envs, is_last), {}
        if is_last and self._autoreset_mode == AutoresetMode.SAME_STEP:
            last = np.empty(self.num_envs, dtype=object)
            last[:] = list(observations)
            infos = {"final_obs": last, "_final_obs": truncated.copy()}
            observations = self.task.reset()
        elif is_last:
            self._state = "over"
        rewards = rewards.astype(np.float32).astype(np.float64)  # as Unity sends them
        return observations, rewards, never, truncated, infos

    def render(self) -> tuple[np.ndarray, ...] | None:
        """Pictures of this moment, (480, 480, 3) uint8 each, in the mode "rgb_array"; else None.

        Raises:
            RuntimeError: OpenGL does not work here.
        """
        if self.render_mode is None:
            gymnasium.logger.warn("render() without a render_mode: make it with 'rgb_array'")
            return None
        if self._renderer is None:
            goal_size = self.task.parameters["goal_size"]
            self._renderer = ArmRenderer(1, goal_size, PICTURE_SIZE, PICTURE_SIZE)
        return tuple(self._renderer.frame(arm[None]) for arm in self.task.observe())

    def close_extras(self, **ignored: object) -> None:
        """What `close` calls."""
        if self._renderer is not None:
            self._renderer.close()


class ReacherEnv(gymnasium.Env):
    """One arm, `gymnasium.make("reacher/Reacher-v0")`.

    A decision holds the action for 0.08 s, cut to [-1, 1], and gives 0 to 0.04. Nothing terminates:
    an episode is cut (truncated) by Gymnasium's time limit after 1001 decisions, as many as in the
    Unity build, unless `gymnasium.make` is given another `max_episode_steps`.

    `reset(seed=s)` begins the episodes of `ReacherEnvironment(num_agents=1, seed=s)`.

    Args:
        render_mode, goal_size, goal_speed: those of `ReacherVectorEnv`, with its errors.
    """

    metadata = METADATA
    observation_space, action_space = OBSERVATION_SPACE, ACTION_SPACE

    def __init__(
        self,
        render_mode: str | None = None,
        goal_size: float = GOAL_SIZE,
        goal_speed: float = GOAL_SPEED,
    ) -> None:
        self._arms = ReacherVectorEnv(
            1, render_mode, -1, goal_size=goal_size, goal_speed=goal_speed
        )
        self.render_mode = render_mode

    def reset(
        self, *, seed: int | None = None, options: dict | None = None
    ) -> tuple[np.ndarray, dict]:
        """Begin an episode; return the observation (33,) float32 and {}. Options do nothing."""
        super().reset(seed=seed)
        self._arms.task.generators = [self.np_random]
        return self._arms.reset()[0][0], {}

    def step(self, action: ArrayLike) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Hold the action (4,) for one decision.

        Returns:
            observation (33,) float32, reward, False (terminated), False (truncated; the time limit
            is Gymnasium's) and {}.

        Raises:
            ValueError, gymnasium.error.ResetNeeded: those of `ReacherVectorEnv.step`.
        """
        observations, rewards, _, _, _ = self._arms.step(action)
        return observations[0], float(rewards[0]), False, False, {}

    def render(self) -> np.ndarray | None:
        """The picture of this moment, (480, 480, 3) uint8, in the mode "rgb_array"; else None."""
        pictures = self._arms.render()
        return pictures[0] if pictures else None

    def close(self) -> None:
        """End the environment. It may be called again."""
        self._arms.close()
