"""Opening an environment by its location."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from reacher import ReacherEnvironment
from reacher.task import RESET_PARAMETERS
from tutorial.scores import SOLVED_SCORE

if TYPE_CHECKING:
    from unityagents import UnityEnvironment

    from reacher.environment import UnityInterface
    from reacher.gymnasium.unity_wrapper import UnityWrapper

GYMNASIUM = "gymnasium:"  # begins the location of a Gymnasium environment


def open_environment(
    location: str | os.PathLike = "",
    num_agents: int = 20,
    seed: int = 0,
    goals: Mapping[str, float] = MappingProxyType({}),
    **unity_options: Any,
) -> ReacherEnvironment | UnityWrapper | UnityEnvironment:
    """The embedded environment, the Unity build whose path is given, or one of Gymnasium's.

    Args:
        location: empty for the embedded environment; or the path of the Unity build (the
            `.x86_64`, `.x86`, `.app` or `.exe`, or the unpacked folder); or `gymnasium:<id>`, such
            as `gymnasium:Pendulum-v1`, for an environment with continuous actions.
        num_agents: arms of the embedded environment, or copies of one of Gymnasium's; a Unity
            build has its own number.
        seed: seed of the environment.
        goals: what differs from the task's own goals: `goal_size` (diameter, m) and `goal_speed`
            (bound of their speeds, degrees per physics step).
        unity_options: `no_graphics` and `timeout` (s) of `reacher.unity.open_unity`; without a
            Unity build they have no effect.

    Returns:
        An object with the interface of `unityagents.UnityEnvironment`.

    Raises:
        TypeError, ValueError: a bad argument, or there is no such build or environment.
        ModuleNotFoundError: a package is missing.
        UnityError: the build does not start.
    """
    differing: dict[str, Any] = {
        name: value for name, value in goals.items() if value != RESET_PARAMETERS.get(name)
    }
    if not str(location):
        return ReacherEnvironment(num_agents, seed, **differing)
    if str(location).startswith(GYMNASIUM):
        from reacher.gymnasium.unity_wrapper import UnityWrapper

        if differing:
            raise ValueError(
                f"goal_size and goal_speed are the arms': {location} has no goals, so "
                f"they must stay {RESET_PARAMETERS}"
            )
        return UnityWrapper(str(location).removeprefix(GYMNASIUM), num_agents, seed)
    from reacher.unity import open_unity  # needs unityagents, which the embedded one does not

    environment = open_unity(location, seed=seed, **unity_options)
    if differing:
        environment.reset(train_mode=True, config=differing)  # they stay until changed again
    return environment


def reward_threshold_of(environment: UnityInterface | UnityEnvironment) -> float | None:
    """The score that counts as solved, as an average of 100 episodes.

    It is the course's 30 for arms, embedded or in Unity, and `spec.reward_threshold` for an
    environment of Gymnasium; None where that names none: then nothing is ever solved.
    """
    return getattr(environment, "reward_threshold", SOLVED_SCORE)
