"""One arm, or many arms as a vector environment, for Gymnasium."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike

from reacher import drawing
from reacher.checks import MAX_SEED, actions_of_shape, integer
from reacher.display import has_display
from reacher.goals import goal_generators
from reacher.gymnasium.spaces import action_space, observation_space
from reacher.physics import MAX_AGENTS
from reacher.task import (
    ACTION_SIZE,
    DECISION_SECONDS,
    EPISODE_DECISIONS,
    RESET_PARAMETERS,
    SOLVED_SCORE,
    Task,
)

METADATA: dict[str, Any] = {
    "render_modes": ["human", "rgb_array"],
    "render_fps": 1 / DECISION_SECONDS,
}


class _Arms:
    """What both kinds share: a `Task`, its settings, and pictures of it.

    Args:
        num_arms: number of arms.
        render_mode: None, "rgb_array" or "human".
        parameters: `goal_size` and `goal_speed`.
    """

    metadata: dict[str, Any]
    render_mode: str | None
    _is_reset = _is_closed = False  # here, since close() may follow a constructor that failed
    _picture: Any = None
    _window: Any = None
    _drawn_size: float | None = None

    def __init__(self, num_arms: int, render_mode: str | None, **parameters: float) -> None:
        if render_mode not in (None, *METADATA["render_modes"]):
            raise ValueError(
                f"render_mode must be None, 'human' or 'rgb_array', not {render_mode!r}"
            )
        modes = METADATA["render_modes"] if has_display() else ["rgb_array"]
        if render_mode == "human" and "human" not in modes:
            raise RuntimeError(
                "render_mode 'human' needs a screen, and this machine has none "
                "(neither DISPLAY nor WAYLAND_DISPLAY is set): use 'rgb_array'"
            )
        self.metadata = {**self.metadata, "render_modes": list(modes)}  # those that work here
        self.render_mode = render_mode
        self._task = Task(num_arms, seed=0)  # reset() gives it other generators
        self._task.set_parameters(parameters)
        self._scores = np.zeros(num_arms)  # of the episode so far

    def __getstate__(self) -> dict:
        """All but the pictures, which a copy draws anew."""
        return {**self.__dict__, "_picture": None, "_window": None}

    @property
    def goal_size(self) -> float:
        """Diameter of the goals from the next reset on, m. It can be changed."""
        return self._task.parameters["goal_size"]

    @goal_size.setter
    def goal_size(self, value: float) -> None:
        self._task.set_parameters({"goal_size": value})

    @property
    def goal_speed(self) -> float:
        """Largest speed of the goals, degrees per physics step. It is a bound of observations."""
        return self._task.parameters["goal_speed"]

    def _require_open(self, call: str) -> None:
        if self._is_closed:
            raise ClosedEnvironmentError(f"{call}() on a closed environment: make a new one")

    def _require_reset(self, call: str) -> None:
        self._require_open(call)
        if not self._is_reset:
            raise ResetNeeded(
                f"{call}() before the first reset(): call reset() to begin an episode"
            )

    def _begin(self) -> np.ndarray:
        """Begin an episode; return the first observations."""
        observations = self._task.reset()
        self._scores[:] = 0.0
        self._is_reset = True
        if self._drawn_size != self.goal_size:
            self._drop_pictures()
        return observations

    def _infos(self) -> dict[str, np.ndarray]:
        """What `ReacherEnv.step` describes as its info, of all arms."""
        distance = self._task.distance
        return {
            "distance": distance,
            "touching": distance <= self._task.reach,
            "is_success": self._scores >= SOLVED_SCORE - 1e-6,  # sums of 0.01 are rounded
        }

    def _decide(self, actions, rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Hold the actions for one decision; return observations and rewards of the arms."""
        observations, rewards, _ = self._task.step(actions_of_shape(actions, (rows, ACTION_SIZE)))
        self._scores += rewards
        return observations, rewards.astype(np.float32).astype(np.float64)  # as Unity sends them

    def _frames(self) -> tuple[np.ndarray, ...]:
        """A picture of every arm as it is now."""
        if self._picture is None:
            size = drawing.style.PICTURE_SIZE
            self._picture = drawing.arms_picture(1, size, size, self.goal_size)
            self._drawn_size = self.goal_size
        return tuple(self._picture.frame(arm) for arm in self._task.observe())

    def _rendered(self) -> tuple[np.ndarray, ...] | None:
        """What `render` shows or returns, arm by arm."""
        self._require_reset("render")
        if self.render_mode is None:
            gymnasium.logger.warn(
                f"render() of {self} without a render_mode: give one to gymnasium.make, "
                "such as render_mode='rgb_array'"
            )
        self._show()
        return self._frames() if self.render_mode == "rgb_array" else None

    def _show(self) -> None:
        """Show the arms as they are now, if that was asked for."""
        if self.render_mode != "human":
            return
        if self._window is None:
            self._window = drawing.ArmWindow(self.goal_size, METADATA["render_fps"])
            self._drawn_size = self.goal_size
        self._window.show(self._task.observe())

    def _drop_pictures(self) -> None:
        for drawn in (self._picture, self._window):
            if drawn is not None:
                drawn.close()
        self._picture = self._window = None

    def _end(self) -> None:
        self._drop_pictures()
        self._is_closed = True


class ReacherEnv(_Arms, gymnasium.Env):
    """One arm, `gymnasium.make("reacher/Reacher-v0")`.

    A decision holds the action for 0.08 s, cut to [-1, 1], and pays 0 to 0.04. Nothing terminates:
    an episode is cut (truncated) by Gymnasium's time limit after 1001 decisions, as many as in the
    Unity build, unless `gymnasium.make` is given another `max_episode_steps`.

    `reset(seed=s)` begins the episodes of `ReacherEnvironment(num_agents=1, seed=s)`. A copy by
    pickle or deepcopy goes on where the original is.

    Args:
        render_mode: None; "rgb_array": `render` returns a picture (480, 480, 3) uint8; "human":
            every step is shown in a window of matplotlib, in real time.
        goal_size: diameter of the goal, m.
        goal_speed: largest speed of the goal, degrees per physics step.

    Raises:
        ValueError: an unknown render_mode, or a number out of range.
        RuntimeError: no window can be opened for "human".
    """

    metadata = METADATA

    def __init__(
        self,
        render_mode: str | None = None,
        goal_size: float = RESET_PARAMETERS["goal_size"],
        goal_speed: float = RESET_PARAMETERS["goal_speed"],
    ) -> None:
        _Arms.__init__(self, 1, render_mode, goal_size=goal_size, goal_speed=goal_speed)
        self.observation_space, self.action_space = observation_space(goal_speed), action_space()

    def reset(
        self, *, seed: int | None = None, options: dict | None = None
    ) -> tuple[np.ndarray, dict]:
        """Begin an episode; return the observation (33,) float32 and the info of `step`.

        Args:
            seed: of the goals; None goes on with the generator that there is.
            options: None or empty.

        Raises:
            ValueError: there is something in `options`.
            gymnasium.error.ClosedEnvironmentError: after close.
        """
        self._require_open("reset")
        _require_no_options(options)
        super().reset(seed=seed)
        self._task.generators[0] = self.np_random
        observations = self._begin()
        self._show()
        return observations[0], self._info()

    def _info(self) -> dict[str, float | bool]:
        return {name: values[0].item() for name, values in self._infos().items()}

    def step(self, action: ArrayLike) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Hold the action (4,) for one decision.

        Returns:
            observation (33,) float32, reward, False (terminated), False (truncated; the time limit
            is Gymnasium's), and an info of three numbers: `distance` between the centers of hand
            and goal, m; `touching`, whether they overlap at this moment; `is_success`, whether the
            rewards of this episode so far amount to 30, the score that counts as solved.

        Raises:
            ValueError: wrong shape, NaN or infinity; nothing has moved then.
            gymnasium.error.ResetNeeded, gymnasium.error.ClosedEnvironmentError: before the first
                reset, or after close.
        """
        self._require_reset("step")
        observations, rewards = self._decide(action, 1)
        self._show()
        return observations[0], float(rewards[0]), False, False, self._info()

    def render(self) -> np.ndarray | None:
        """The picture of this moment, (480, 480, 3) uint8, in the mode "rgb_array"; else None."""
        pictures = self._rendered()
        return pictures[0] if pictures else None

    def close(self) -> None:
        """End the environment and its window. It may be called again."""
        self._end()


class ReacherVectorEnv(_Arms, gymnasium.vector.VectorEnv):
    """Many arms in one simulation, `gymnasium.make_vec("reacher/Reacher-v0", num_envs=20)`.

    Each arm is what `ReacherEnv` is. All of them are truncated together. The infos hold an array of
    each of its numbers and, as Gymnasium's own, a mask of the same name with an underscore.

    Args:
        num_envs: number of arms, 1 to 2000.
        render_mode: None; "rgb_array": `render` returns a picture (480, 480, 3) uint8 of each arm;
            "human": every step is shown in a window of matplotlib, all arms side by side.
        max_episode_steps: decisions of an episode; -1 for no limit.
        autoreset_mode: of `gymnasium.vector.AutoresetMode` or its value. "NextStep": the truncated
            step returns the true last observations, and the next step ignores its actions, resets
            all arms and returns first observations and rewards of 0. "SameStep": the truncated step
            returns the first observations of the next episode, and the last ones in
            `info["final_obs"]`. "Disabled": reset() has to be called.
        goal_size: diameter of the goals, m.
        goal_speed: largest speed of the goals, degrees per physics step.

    Raises:
        TypeError, ValueError: an argument is of the wrong kind or out of range.
        RuntimeError: no window can be opened for "human".
    """

    metadata = METADATA

    def __init__(
        self,
        num_envs: int = 1,
        render_mode: str | None = None,
        max_episode_steps: int = EPISODE_DECISIONS,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        goal_size: float = RESET_PARAMETERS["goal_size"],
        goal_speed: float = RESET_PARAMETERS["goal_speed"],
    ) -> None:
        self.num_envs = integer("num_envs", num_envs, 1, MAX_AGENTS)
        if max_episode_steps != -1:
            integer("max_episode_steps", max_episode_steps, 1, MAX_SEED)
        self._max_episode_steps = max_episode_steps
        _Arms.__init__(self, self.num_envs, render_mode, goal_size=goal_size, goal_speed=goal_speed)
        self._autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata["autoreset_mode"] = self._autoreset_mode
        self.single_observation_space = observation_space(goal_speed)
        self.single_action_space = action_space()
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._is_over = False

    @property  # type: ignore[misc]  # as Gymnasium's vector environments have it
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """The arms' generators."""
        return tuple(self._task.generators)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict | None = None
    ) -> tuple[np.ndarray, dict]:
        """Begin an episode in all arms; return observations (arms, 33) float32 and infos.

        Args:
            seed: an integer begins the episodes of `ReacherEnvironment(num_envs, seed)`; a list
                holds for each arm what `ReacherEnv.reset` takes; None goes on with the generators
                that there are.
            options: None or empty, or {"reset_mask": array (arms,) of true}: arms are reset
                together only.

        Raises:
            TypeError, ValueError: a bad seed, or something else in `options`.
            gymnasium.error.ClosedEnvironmentError: after close.
        """
        self._require_open("reset")
        options = dict(options or {})
        if not np.all(options.pop("reset_mask", True)):
            raise ValueError(
                "all arms are reset together: options['reset_mask'] must be true for each of them"
            )
        _require_no_options(options)
        self._seed(seed)
        observations, self._is_over = self._begin(), False
        self._show()
        return observations, self._masked_infos()

    def step(
        self, actions: ArrayLike
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict]:
        """Hold the actions (arms, 4) for one decision.

        Returns:
            observations (arms, 33) float32, rewards (arms,) float64, terminations (arms,) all
            false, truncations (arms,) bool, and infos; in the mode "SameStep" the truncated step's
            have the last observations and infos too, as `final_obs` and `final_info`.

        Raises:
            ValueError: wrong shape, NaN or infinity; nothing has moved then.
            gymnasium.error.ResetNeeded, gymnasium.error.ClosedEnvironmentError: before the first
                reset, or after the end of an episode in the mode "Disabled", or after close.
        """
        self._require_reset("step")
        never = np.zeros(self.num_envs, dtype=bool)
        if self._is_over:
            if self._autoreset_mode == AutoresetMode.DISABLED:
                raise ResetNeeded(
                    "step() after the end of an episode: call reset(), or choose "
                    "another autoreset_mode"
                )
            observations, infos = self.reset()
            return observations, np.zeros(self.num_envs), never, never.copy(), infos
        observations, rewards = self._decide(actions, self.num_envs)
        is_last = self._task.decisions == self._max_episode_steps
        final = {}
        if is_last and self._autoreset_mode == AutoresetMode.SAME_STEP:
            last = np.empty(self.num_envs, dtype=object)
            last[:] = list(observations)
            final = self._masked({"final_obs": last, "final_info": self._masked_infos()})
            observations = self._begin()
        else:
            self._is_over = is_last
        self._show()
        infos = final | self._masked_infos()
        return observations, rewards, never, np.full(self.num_envs, is_last), infos

    def render(self) -> tuple[np.ndarray, ...] | None:
        """Pictures of this moment, (480, 480, 3) uint8 each, in the mode "rgb_array"; else None."""
        return self._rendered()

    def call(self, name: str, *arguments: Any, **options: Any) -> tuple:
        """A method's result, or an attribute, once for each arm, as Gymnasium's own have it.

        Args:
            name: "render", or an attribute. Arms are not reset, stepped or closed one by one.
            arguments, options: of the method.

        Raises:
            AttributeError: there is no such name.
            ValueError: the name of something that all arms do together.
        """
        if name in ("reset", "step", "close"):
            raise ValueError(f"all arms {name} together: call {name}() of the vector environment")
        if name in ("observation_space", "action_space"):
            name = f"single_{name}"
        found = getattr(self, name)
        if callable(found):
            found = found(*arguments, **options)
        return found if name in ("render", "np_random") and found else (found,) * self.num_envs

    def get_attr(self, name: str) -> tuple:
        """An attribute, once for each arm; see `call`."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Change `goal_size` of all arms, from the next reset on.

        Args:
            name: "goal_size".
            values: a number, or a list of the same number for each arm.

        Raises:
            AttributeError: another name.
            ValueError: no number from 0 to 1e6, not one for each arm, or different ones.
        """
        if name != "goal_size":
            raise AttributeError(f"only goal_size can be set, not {name!r}")
        if isinstance(values, (list, tuple, np.ndarray)):
            if len(values) != self.num_envs or len(set(values)) != 1:
                raise ValueError(
                    f"goal_size is the same for all {self.num_envs} arms: give one number, or a "
                    f"list of the same number for each, not {values!r}"
                )
            values = values[0]
        self.goal_size = values

    def _masked_infos(self) -> dict[str, Any]:
        return self._masked(self._infos())

    def _masked(self, infos: dict[str, Any]) -> dict[str, Any]:
        """These infos, each with a mask of the arms that have it: all of them."""
        masks = {f"_{name}": np.ones(self.num_envs, dtype=bool) for name in infos}
        return infos | masks

    def close_extras(self, **ignored: object) -> None:
        """What `close` calls, once."""
        self._end()

    def _seed(self, seed: int | list[int | None] | None) -> None:
        """Give the arms new generators: all of them or, by a list, those with a seed.

        The first time, seeds that are missing are drawn from the system's randomness.
        """
        if seed is None:
            if self._np_random_seed is not None:
                return
            seed = int(np.random.default_rng().integers(MAX_SEED))
        if isinstance(seed, (list, tuple, np.ndarray)):
            if len(seed) != self.num_envs:
                raise ValueError(
                    f"seed must be one for each of the {self.num_envs} arms, "
                    f"not {len(seed)} of them"
                )
            keep = self._np_random_seed is not None
            self._task.generators = [
                old
                if new is None and keep
                else np.random.default_rng(
                    new if new is None else integer(f"seed of arm {arm}", new, 0, MAX_SEED)
                )
                for arm, (new, old) in enumerate(zip(seed, self._task.generators, strict=True))
            ]
        else:
            self._task.generators = goal_generators(seed, self.num_envs)
        self._np_random_seed = seed  # type: ignore[assignment]  # or a list


def _require_no_options(options) -> None:
    if options:
        raise ValueError(
            f"reset() has no such options: {options!r}; goal_size and goal_speed are "
            "arguments of gymnasium.make"
        )
