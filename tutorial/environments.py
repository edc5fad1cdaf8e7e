"""Opening an environment by its location, and what an agent has to know of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import wrappers
from gymnasium.vector import AutoresetMode, VectorEnv

from reacher import ReacherVectorEnv
from reacher.checks import MAX_SEED, integer, number
from reacher.physics import MAX_AGENTS

GYMNASIUM = "gymnasium:"  # begins the location of a Gymnasium environment
MOST = float(np.finfo(np.float32).max)


def open_environment(
    location: str | os.PathLike = "",
    num_agents: int = 20,
    seed: int = 0,
    goals: Mapping[str, Any] | None = None,
) -> VectorEnv:
    """The embedded environment, the Unity build whose path is given, or one of Gymnasium's.

    Args:
        location: empty for the embedded environment; or the path of the Unity build (the
            `.x86_64`, `.x86`, `.app` or `.exe`, or the unpacked folder); or `gymnasium:<id>`, such
            as `gymnasium:Pendulum-v1`, for an environment with continuous actions.
        num_agents: arms of the embedded environment, or copies of one of Gymnasium's; a Unity
            build has its own number.
        seed: seed of the environment.
        goals: of the embedded arms, where they differ from the task's own: `goal_size` (diameter,
            m) and `goal_speed` (bound of their speeds, degrees per physics step).

    Returns:
        An environment with float32 observations and with actions from -1 to 1, in which the next
        episode begins in the step that ends one (`AutoresetMode.SAME_STEP`).

    Raises:
        TypeError, ValueError: a bad argument, or there is no such build or environment.
        ModuleNotFoundError: a package is missing.
        UnityError: the build does not start.
    """
    location = str(location)
    if goals and location:
        raise ValueError(f"only the embedded arms have goals to choose, not {location}")
    if not location:
        return ReacherVectorEnv(num_agents, integer("seed", seed, 0, MAX_SEED), **(goals or {}))
    if location.startswith(GYMNASIUM):
        return open_gymnasium(location.removeprefix(GYMNASIUM), num_agents, seed)
    from reacher.unity import UnityVectorEnv, open_unity  # need unityagents, which the arms do not

    return UnityVectorEnv(open_unity(require_environment(location), seed=seed))


def open_gymnasium(env_id: str, num_envs: int = 1, seed: int = 0) -> VectorEnv:
    """Copies of an environment; `env_id` is what `gymnasium.make` takes, such as "Pendulum-v1"."""
    num_envs = integer("num_agents", num_envs, 1, MAX_AGENTS)
    seed = integer("seed", seed, 0, MAX_SEED)

    class Ending(gymnasium.Wrapper):
        def step(self, action: Any) -> Any:
            answer = super().step(action)
            for name, value in zip(("terminated", "truncated"), answer[2:4], strict=True):
                if not isinstance(value, (bool, np.bool_)):
                    raise TypeError(f"{env_id}: {name} is {value!r}, neither True nor False")
            return answer

    def fitting(env: Any) -> Any:
        require_spaces(env_id, env.action_space, env.observation_space)
        seen, earned = (
            partial(require_finite, f"{env_id}: the {part}") for part in ("observation", "reward")
        )
        env = wrappers.DtypeObservation(Ending(env), np.float32)
        env = wrappers.TransformReward(wrappers.TransformObservation(env, seen, None), earned)
        return wrappers.RescaleAction(env, np.float32(-1), np.float32(1))

    try:
        copies = gymnasium.make_vec(
            env_id,
            num_envs,
            vectorization_mode="sync",
            vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP},
            wrappers=[fitting],
        )
    except ModuleNotFoundError as error:  # Gymnasium tells no remedy for imageio
        error.add_note('its own tasks of MuJoCo need: pip install "gymnasium[mujoco]"')
        raise
    except gymnasium.error.Error as error:
        raise ValueError(f"Gymnasium cannot make {env_id}: {error}") from error
    if copies.spec and copies.spec.max_episode_steps is None:
        print(f"{env_id} has no time limit, so nothing is told before it ends an episode by itself")
    # Gymnasium's own, seed + k, would overlap with those of the next seed.
    seeds = np.random.SeedSequence(seed).generate_state(num_envs)
    copies.reset(seed=seeds.tolist())
    return copies


def require_finite(what: str, values: Any) -> Any:
    """The values, or FloatingPointError if one of them is NaN or infinite."""
    if not np.isfinite(values).all():
        raise FloatingPointError(f"{what} is not finite: {values}")
    return values


def require_spaces(env_id: str, actions: Any, observations: Any) -> None:
    """Raise ValueError for spaces that an agent with continuous actions cannot use."""
    for space in actions, observations:
        is_box = isinstance(space, gymnasium.spaces.Box) and len(space.shape) == 1
        if not is_box or (
            space is actions and not (space.is_bounded() and (space.low < space.high).all())
        ):
            raise ValueError(
                f"{env_id} has {space}; only continuous actions with finite bounds that differ "
                "work, and observations in a Box of one axis, such as Pendulum-v1's"
            )


def require_environment(location: str | os.PathLike) -> str | os.PathLike:
    """The location, or what `open_environment` raises; a Unity build is only looked for."""
    name = str(location)
    if name.removeprefix(GYMNASIUM) in gymnasium.registry and not Path(name).exists():
        raise ValueError(f"{name} is no Unity build: a cell opens it, as in the appendix")
    if name:
        from reacher.unity.player import find_player

        find_player(name)
    return location


def what_followed(
    next_observations: np.ndarray, truncated: np.ndarray, infos: Mapping[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    """What each arm saw after a decision, in the same episode.

    Args:
        next_observations, truncated, infos: of an environment's `step`; where an episode has ended,
            the observation is the first one of the next.

    Returns:
        (arms, n), with the last observation in the place of the next episode's first one where the
        environment tells it; and (arms,), False where time was up and it does not.
    """
    told = infos.get("_final_obs", np.zeros(len(truncated), bool))
    if told.any():
        next_observations = next_observations.copy()
        next_observations[told] = np.stack(infos["final_obs"][told])
    return next_observations, ~truncated | told


class Task(NamedTuple):
    """What an agent has to know of an environment."""

    scale: np.ndarray  # (observations,) float32, which divide them; infinity leaves one out
    action_size: int
    reward_threshold: float | None  # solved as an average of 100 episodes; None: never


def task_of(environment: VectorEnv, arms: Task) -> Task:
    """That of an environment of Gymnasium's, by its own spaces and `spec`; otherwise `arms`.

    The scale is the larger of an observation's two bounds without their signs, or 1 where that is 0
    or no finite float32.
    """
    if environment.spec is None:
        return arms
    space: Any = environment.single_observation_space
    actions: Any = environment.single_action_space
    bound = np.maximum(np.abs(space.low), np.abs(space.high)).astype(np.float64)
    usable = (bound > 0) & (bound < np.finfo(np.float32).max)  # some mean it by no bound
    scale = np.where(usable, bound, 1.0).astype(np.float32)
    spec = environment.spec
    threshold = spec.reward_threshold
    if threshold is not None:
        threshold = number(f"reward_threshold of {spec.id}", threshold, -MOST, MOST)
    return Task(scale, actions.low.size, threshold)
