"""Embedded port of the Unity ML-Agents Reacher environment (v0.4), in MuJoCo."""

from reacher import gymnasium as _registers  # noqa: F401  reacher/Reacher-v0
from reacher.environment import ReacherEnvironment
from reacher.interface import BrainInfo, BrainParameters

__version__ = "2.0.0"

__all__ = ["BrainInfo", "BrainParameters", "ReacherEnvironment", "__version__", "unity_launcher"]


def __getattr__(name: str) -> object:
    if name == "unity_launcher":  # needs the packages of the Unity client, which the rest does not
        from reacher.unity.launcher import unity_launcher

        return unity_launcher
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
