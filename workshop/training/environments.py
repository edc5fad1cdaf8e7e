"""Opening an environment by its location."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from reacher import ReacherEnvironment

if TYPE_CHECKING:
    from unityagents import UnityEnvironment

    from reacher.gymnasium.shaped import UnityShaped

GYMNASIUM = "gymnasium:"  # begins the location of a Gymnasium environment


def open_environment(location: str | os.PathLike = "", num_agents: int = 20, seed: int = 0,
                     **unity_options: float | None
                     ) -> ReacherEnvironment | UnityShaped | UnityEnvironment:
    """The embedded environment, the Unity build whose path is given, or one of Gymnasium's.

    Args:
        location: empty for the embedded environment; or the path of the Unity build (the
            `.x86_64`, `.x86`, `.app` or `.exe`, or the unpacked folder); or `gymnasium:<id>`, such
            as `gymnasium:Pendulum-v1`, for an environment with continuous actions.
        num_agents: arms of the embedded environment, or copies of one of Gymnasium's; a Unity
            build has its own number.
        seed: seed of the environment.
        unity_options: `no_graphics` and `timeout` (s) of `reacher.unity.open_unity`; without a
            Unity build they have no effect.

    Returns:
        An object with the interface of `unityagents.UnityEnvironment`.

    Raises:
        TypeError, ValueError: a bad argument, or there is no such build or environment.
        ModuleNotFoundError: a package is missing.
        UnityError: the build does not start.
    """
    if not str(location):
        return ReacherEnvironment(num_agents=num_agents, seed=seed)
    if str(location).startswith(GYMNASIUM):
        from reacher.gymnasium.shaped import UnityShaped

        return UnityShaped(str(location).removeprefix(GYMNASIUM), num_agents, seed)
    from reacher.unity import open_unity  # needs unityagents, which the embedded one does not

    return open_unity(location, seed=seed, **unity_options)
