"""Embedded port of the Unity ML-Agents Reacher environment (v0.4), in MuJoCo."""

from reacher.environment import BrainInfo, BrainParameters, ReacherEnvironment
from reacher.launcher import unity_launcher

try:
    from reacher import gymnasium_env  # noqa: F401  registers reacher/Reacher-v0
except ModuleNotFoundError as error:
    if error.name != "gymnasium":  # without Gymnasium the rest works
        raise

__all__ = ["BrainInfo", "BrainParameters", "ReacherEnvironment", "unity_launcher"]
