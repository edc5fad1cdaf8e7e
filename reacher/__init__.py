"""Embedded port of the Unity ML-Agents Reacher environment (v0.4), in MuJoCo."""

from reacher.environment import BrainInfo, BrainParameters, ReacherEnvironment
from reacher.launcher import unity_launcher

__all__ = ["BrainInfo", "BrainParameters", "ReacherEnvironment", "unity_launcher"]
