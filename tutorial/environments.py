"""Opening an environment by its location, and what an agent has to know of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from reacher import ReacherEnvironment
from reacher.gymnasium.unity_wrapper import UnityWrapper

GYMNASIUM = "gymnasium:"  # begins the location of a Gymnasium environment


def open_environment(
    location: str | os.PathLike = "",
    num_agents: int = 20,
    seed: int = 0,
    goals: Mapping[str, Any] | None = None,
) -> Any:
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
        An object with the interface of `unityagents.UnityEnvironment`.

    Raises:
        TypeError, ValueError: a bad argument, or there is no such build or environment.
        ModuleNotFoundError: a package is missing; says how to install it.
        UnityError: the build does not start.
    """
    location = str(location)
    if goals and location:
        raise ValueError(f"only the embedded arms have goals to choose, not {location}")
    if not location:
        return ReacherEnvironment(num_agents, seed, **(goals or {}))
    if location.startswith(GYMNASIUM):
        return UnityWrapper(location.removeprefix(GYMNASIUM), num_agents, seed)
    from reacher.unity import open_unity  # needs unityagents, which the embedded one does not

    return open_unity(require_environment(location), seed=seed)


def require_environment(location: str | os.PathLike) -> str | os.PathLike:
    """The location, or what `open_environment` raises; a Unity build is only looked for."""
    name = str(location)
    if name.startswith(GYMNASIUM):
        open_environment(name, 1).close()
    elif name and not Path(name).exists() and name in gymnasium.registry:
        raise ValueError(f"no Unity build {name!r}: did you mean {GYMNASIUM + name!r}?")
    elif name:
        from reacher.unity.player import find_player

        find_player(name)
    return location


class Task(NamedTuple):
    """What an agent has to know of an environment.

    Attributes:
        scale: (observations,) float32, by which observations are divided; infinity leaves one out.
        reward_threshold: the score that counts as solved, as an average of 100 episodes; None:
            nothing is ever solved.
    """

    scale: np.ndarray
    action_size: int
    reward_threshold: float | None
    name: str = "arms"

    @property
    def is_arms(self) -> bool:
        return self.name == "arms"


def task_of(environment: Any, arms: Task) -> Task:
    """That of an environment of Gymnasium's, by its own spaces and `spec`; otherwise `arms`."""
    if not hasattr(environment, "observation_scale"):
        return arms
    [name] = environment.brain_names
    size = environment.brains[name].vector_action_space_size
    told = environment.observation_scale, size, environment.reward_threshold
    return Task(*told, name.removesuffix("Brain"))
