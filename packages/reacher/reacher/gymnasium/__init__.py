"""The Reacher for Gymnasium.

    import gymnasium
    import reacher

    env = gymnasium.make("reacher/Reacher-v0")  # without the import: "reacher:reacher/Reacher-v0"
    envs = gymnasium.make_vec("reacher/Reacher-v0", num_envs=20)

`import reacher` registers that name and two harder variants, `reacher/ReacherSmallGoals-v0` and
`reacher/ReacherQuickGoals-v0`. `unity_wrapper` goes the other way.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import ArrayLike

from reacher.checks import actions_of_shape
from reacher.render import ArmRenderer
from reacher.task import (
    ACTION_SIZE,
    DECISION_SECONDS,
    EPISODE_DECISIONS,
    OBSERVATION_SIZE,
    SOLVED_SCORE,
    Task,
)


class ReacherEnv(gymnasium.Env):
    """One arm.

    A decision holds the action for 0.08 s, cut to [-1, 1], and gives 0 to 0.04. Nothing terminates:
    an episode is truncated by Gymnasium's time limit after 1001 decisions, as many as in the Unity
    build. `reset(seed=s)` begins those of `reacher.ReacherEnvironment(num_agents=1, seed=s)`.

    Args:
        render_mode: None; "rgb_array": `render` returns a picture (480, 480, 3) uint8.
        goals: `goal_size` (diameter, m) and `goal_speed` (largest, degrees per physics step).

    Raises:
        ValueError: an unknown render_mode or name, or a number out of range.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 1 / DECISION_SECONDS}
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (OBSERVATION_SIZE,), np.float32)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (ACTION_SIZE,), np.float32)

    def __init__(self, render_mode: str | None = None, **goals: float) -> None:
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"render_mode must be None or 'rgb_array', not {render_mode!r}")
        self.render_mode = render_mode
        self._task = Task(1, seed=0)  # reset() gives it another generator
        self._task.set_parameters(goals)
        self._is_reset = False
        self._renderer: ArmRenderer | None = None

    def reset(
        self, *, seed: int | None = None, options: dict | None = None
    ) -> tuple[np.ndarray, dict]:
        """Begin an episode; return the observation (33,) float32 and {}. Options do nothing."""
        super().reset(seed=seed)
        self._task.generators, self._is_reset = [self.np_random], True
        return self._task.reset()[0], {}

    def step(self, action: ArrayLike) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Hold the action (4,) for one decision; return observation, reward, False, False, {}.

        Raises:
            ValueError: wrong shape, NaN or infinity; nothing has moved then.
            gymnasium.error.ResetNeeded: before the first reset.
        """
        if not self._is_reset:
            raise ResetNeeded("step() before reset(): call reset() to begin an episode")
        observations, rewards, _ = self._task.step(actions_of_shape(action, (1, ACTION_SIZE)))
        return observations[0], float(np.float32(rewards[0])), False, False, {}  # as Unity sends it

    def render(self) -> np.ndarray | None:
        """The picture of this moment, or None; RuntimeError: OpenGL does not work here."""
        if self.render_mode is None:
            return None
        if self._renderer is None:
            self._renderer = ArmRenderer(1, self._task.parameters["goal_size"], 480, 480)
        return self._renderer.frame(self._task.observe())

    def close(self) -> None:
        """End the environment. It may be called again."""
        if self._renderer is not None:
            self._renderer.close()


for name, goals in (
    ("Reacher", {}),
    ("ReacherSmallGoals", {"goal_size": 2.0}),
    ("ReacherQuickGoals", {"goal_speed": 2.0}),
):
    gymnasium.register(
        f"reacher/{name}-v0",
        entry_point="reacher.gymnasium:ReacherEnv",
        max_episode_steps=EPISODE_DECISIONS,
        reward_threshold=SOLVED_SCORE,
        kwargs=goals,
    )
