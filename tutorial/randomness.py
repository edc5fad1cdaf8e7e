"""Seeds, random states, and the versions that numbers depend on."""

from __future__ import annotations

import contextlib
import functools
import math
import platform
import random
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from typing import Any

import numpy as np
import torch


def seed_everything(seed: int) -> np.random.Generator:
    """Seed Python, NumPy and PyTorch, and return a NumPy generator for the agent's own use."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
    return np.random.default_rng(seed)


def random_states() -> dict[str, Any]:
    """States of the generators that `seed_everything` seeds, as `torch.save` can hold them."""
    numpy: Any = np.random.get_state(legacy=False)
    numpy["state"]["key"] = numpy["state"]["key"].tolist()
    return {"python": random.getstate(), "numpy": numpy, "torch": torch.get_rng_state()}


def restore_random_states(states: Mapping[str, Any]) -> None:
    """Set the generators back to what `random_states` returned."""
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])


@contextlib.contextmanager
def own_randomness(seed: int) -> Iterator[None]:
    """A context in which `seed_everything`'s generators begin at a seed; after it, where they were.

    So what runs in it draws the same numbers each time, and takes none from anybody.
    """
    states = random_states()
    seed_everything(seed)
    try:
        yield
    finally:
        restore_random_states(states)


PACKAGES = ("torch", "jax", "numpy", "mujoco", "numba", "pydantic", "matplotlib")


def versions(packages: Sequence[str] = PACKAGES) -> dict[str, str]:
    """Versions of Python and of packages, by default those that the numbers depend on."""
    found = {"python": platform.python_version()}
    for name in packages:
        with contextlib.suppress(metadata.PackageNotFoundError):  # JAX may be missing
            found[name] = metadata.version(name)
    return found


@functools.cache
def normal_quantiles() -> np.ndarray:
    """Middles of 2**16 parts of the standard normal distribution, equally likely, float32."""
    return torch.special.ndtri((torch.arange(2**16) + 0.5) / 2**16).float().numpy()


def normal_numbers(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Standard normal numbers, float32, by inversion of 16 random bits each.

    A generator's exact ones would take about as long as the physics of the arms. None of these is
    beyond 4.4; mean and variance are right to four digits.
    """
    size = math.prod(shape)
    bits = generator.bit_generator.random_raw(-(-size // 4)).view(np.uint16)
    return normal_quantiles().take(bits[:size]).reshape(shape)
