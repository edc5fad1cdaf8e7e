"""Seeds, and what else numbers depend on: versions, and the processor."""

from __future__ import annotations

import contextlib
import platform
import random
import re
from importlib import metadata
from pathlib import Path

import numpy as np
import torch


def seed_everything(seed: int) -> np.random.Generator:
    """Seed Python, NumPy and PyTorch, and return a NumPy generator for the agent's own use."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
    return np.random.default_rng(seed)


PACKAGES = ("torch", "jax", "numpy", "mujoco", "numba", "pydantic", "matplotlib")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that numbers depend on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):  # JAX may be missing
            found[name] = metadata.version(name)
    return found


def processor() -> str:
    """The processor's name, as far as the system tells it."""
    cpuinfo = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.+)", cpuinfo.read_text() if cpuinfo.exists() else "")
    return found[1] if found else platform.processor() or platform.machine()
