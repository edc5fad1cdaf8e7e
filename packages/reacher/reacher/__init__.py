"""Embedded port of the Unity ML-Agents Reacher environment (v0.4), in MuJoCo."""

from reacher import gymnasium as _registers  # noqa: F401  reacher/Reacher-v0
from reacher.delayed_rewards import DelayedRewards
from reacher.environment import ReacherEnvironment

__version__ = "4.0.0"

__all__ = ["DelayedRewards", "ReacherEnvironment", "__version__"]
