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
    Task,
)

OBSERVATION_SPACE = gymnasium.spaces.Box(-np.inf, np.inf, (OBSERVATION_SIZE,), np.float32)
ACTION_SPACE = gymnasium.spaces.Box(-1.0, 1.0, (ACTION_SIZE,), np.float32)


class ReacherVectorEnv(gymnasium.vector.VectorEnv):
    """Many arms in one simulation, `gymnasium.make_vec("reacher/Reacher-v0", num_envs=20)`.

    Each arm is what `ReacherEnv` is. All of them are truncated together.

    Args:
        num_envs: number of arms, 1 to 2000.
        max_episode_steps: decisions of an episode; -1 for no limit.
        autoreset_mode: Gymnasium's "NextStep", "SameStep" or "Disabled".
        goals: `goal_size` (diameter, m) and `goal_speed` (largest, degrees per physics step).

    Raises:
        TypeError, ValueError: an argument is of the wrong kind or out of range.
    """

    def __init__(
        self,
        num_envs: int = 1,
        max_episode_steps: int = EPISODE_DECISIONS,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        **goals: float,
    ) -> None:
        self.num_envs = integer("num_envs", num_envs, 1, MAX_AGENTS)
        self._max_episode_steps = integer("max_episode_steps", max_episode_steps, -1, MAX_SEED)
        self._autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {"autoreset_mode": self._autoreset_mode}
        self.single_observation_space, self.single_action_space = OBSERVATION_SPACE, ACTION_SPACE
        self.observation_space = batch_space(OBSERVATION_SPACE, self.num_envs)
        self.action_space = batch_space(ACTION_SPACE, self.num_envs)
        self.task = Task(self.num_envs, seed=int(np.random.default_rng().integers(MAX_SEED)))
        self.task.set_parameters(goals)
        self._is_running = self._is_over = False

    def reset(
        self, *, seed: int | list[int] | None = None, options: dict | None = None
    ) -> tuple[np.ndarray, dict]:
        """Begin an episode in all arms; return observations (arms, 33) float32 and {}.

        Args:
            seed: an integer begins the episodes of `ReacherEnvironment(num_envs, seed)`; a list
                holds one seed for each arm; None goes on with the generators that there are.
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
        self._is_running, self._is_over = True, False
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
            gymnasium.error.ResetNeeded: before the first reset, or where the mode wants another.
        """
        never = np.zeros(self.num_envs, dtype=bool)
        if self._is_over and self._autoreset_mode == AutoresetMode.NEXT_STEP:
            return self.reset()[0], np.zeros(self.num_envs), never, never.copy(), {}
        if not self._is_running or self._is_over:
            raise ResetNeeded("step() before reset(): call reset() to begin an episode")
        actions = actions_of_shape(actions, (self.num_envs, ACTION_SIZE))
        observations, rewards, _ = self.task.step(actions)
        self._is_over = self.task.decisions == self._max_episode_steps
        truncated, infos = np.full(self.num_envs, self._is_over), {}
        if self._is_over and self._autoreset_mode == AutoresetMode.SAME_STEP:
            last = np.empty(self.num_envs, dtype=object)
            last[:] = list(observations)
            infos = {"final_obs": last, "_final_obs": truncated.copy()}
            observations, _ = self.reset()
        rewards = rewards.astype(np.float32).astype(np.float64)  # as Unity sends them
        return observations, rewards, never, truncated, infos


class ReacherEnv(gymnasium.Env):
    """One arm, `gymnasium.make("reacher/Reacher-v0")`.

    A decision holds the action for 0.08 s, cut to [-1, 1], and gives 0 to 0.04. Nothing terminates:
    an episode is cut (truncated) by Gymnasium's time limit after 1001 decisions, as many as in the
    Unity build, unless `gymnasium.make` is given another `max_episode_steps`.

    `reset(seed=s)` begins the episodes of `ReacherEnvironment(num_agents=1, seed=s)`.

    Args:
        render_mode: None; "rgb_array": `render` returns a picture (480, 480, 3) uint8.
        goals: those of `ReacherVectorEnv`, with its errors.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 1 / DECISION_SECONDS}
    observation_space, action_space = OBSERVATION_SPACE, ACTION_SPACE

    def __init__(self, render_mode: str | None = None, **goals: float) -> None:
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"render_mode must be None or 'rgb_array', not {render_mode!r}")
        self.render_mode = render_mode
        self._arms = ReacherVectorEnv(1, -1, **goals)
        self._renderer: ArmRenderer | None = None

    def reset(
        self, *, seed: int | None = None, options: dict | None = None
    ) -> tuple[np.ndarray, dict]:
        """Begin an episode; return the observation (33,) float32 and {}. Options do nothing."""
        super().reset(seed=seed)
        self._arms.task.generators = [self.np_random]
        return self._arms.reset()[0][0], {}

    def step(self, action: ArrayLike) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Hold the action (4,) for one decision; return observation, reward, False, False, {}."""
        observations, rewards, _, _, _ = self._arms.step(action)
        return observations[0], float(rewards[0]), False, False, {}

    def render(self) -> np.ndarray | None:
        """The picture of this moment, or None; RuntimeError: OpenGL does not work here."""
        if self.render_mode is None:
            return None
        if self._renderer is None:
            self._renderer = ArmRenderer(1, self._arms.task.parameters["goal_size"], 480, 480)
        return self._renderer.frame(self._arms.task.observe())

    def close(self) -> None:
        """End the environment. It may be called again."""
        if self._renderer is not None:
            self._renderer.close()
