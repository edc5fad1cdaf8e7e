"""Seeds, random states, and the versions that numbers depend on."""

from __future__ import annotations

import platform
import random
from collections.abc import Mapping, Sequence
from importlib import metadata

import numpy as np
import torch


def seed_everything(seed: int) -> np.random.Generator:
    """Seed Python, NumPy and PyTorch, and return a NumPy generator for the agent's own use."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
    return np.random.default_rng(seed)


def random_states() -> tuple[dict, dict[str, torch.Tensor]]:
    """States of the generators that `seed_everything` seeds: of Python and NumPy, and PyTorch's."""
    version, words, gauss = random.getstate()
    numpy = np.random.get_state(legacy=False)
    numpy["state"]["key"] = numpy["state"]["key"].tolist()
    return ({"python": [version, list(words), gauss], "numpy": numpy},
            {"torch_generator": torch.get_rng_state()})


def restore_random_states(python: Sequence, numpy: Mapping, torch_generator: torch.Tensor) -> None:
    """Set the generators back to what `random_states` returned."""
    random.setstate(python_state(python))
    np.random.set_state(numpy_state(numpy))
    torch.set_rng_state(torch_generator)


def require_random_states(python: Sequence, numpy: Mapping, torch_generator: torch.Tensor) -> None:
    """Raise an exception where restore_random_states would, and change nothing."""
    random.Random().setstate(python_state(python))
    np.random.RandomState().set_state(numpy_state(numpy))
    torch.Generator().set_state(torch_generator)


def python_state(saved: Sequence) -> tuple:
    version, words, gauss = saved
    return version, tuple(words), gauss


def numpy_state(saved: Mapping) -> dict:
    return {**saved, "state": {**saved["state"], "key": np.array(saved["state"]["key"],
                                                                  dtype=np.uint32)}}


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that the numbers depend on."""
    packages = ("torch", "numpy", "mujoco", "numba", "pydantic", "matplotlib")
    return {"python": platform.python_version()} | {name: metadata.version(name)
                                                    for name in packages}
