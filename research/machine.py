"""What a machine computes, part by part, so that two of them can be compared.

python -m research.machine FOLDER...    how this machine differs from those that trained the tables

The same seed gives the same numbers where all parts agree. Random numbers and physics have agreed
on all machines so far; matrix products differ between kinds of processors.
"""

from __future__ import annotations

import functools
import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tutorial.environments import open_environment
from tutorial.randomness import processor, versions


def hash_of(*arrays: Any) -> str:
    """Eight digits that change with any bit of arrays, or of a text."""
    return hashlib.sha256(b"".join(np.asarray(one).tobytes() for one in arrays)).hexdigest()[:8]


@functools.cache
def this_machine() -> dict[str, Any]:
    """Processor, versions, and a hash of what each part computes from the same exact inputs."""
    generator = np.random.default_rng(0)
    exact = generator.integers(-256, 257, (2, 64, 128)).astype(np.float32) / 256  # no rounding yet
    environment, seen = open_environment(seed=0), list[np.ndarray]()
    environment.reset()
    for torques in generator.integers(-64, 65, (100, 20, 4)) / 64:
        seen += environment.step(torques)[:2]
    environment.close()
    parts = {
        "random numbers": hash_of(generator.standard_normal(1_000, np.float32)),
        "physics": hash_of(*seen),
        "PyTorch": hash_of(torch.tanh(torch.from_numpy(exact[0]) @ torch.from_numpy(exact[1]).T)),
    }
    try:
        import jax

        parts["JAX"] = hash_of(jax.jit(lambda x: jax.numpy.tanh(x[0] @ x[1].T))(exact))
    except ImportError:  # then PyTorch computes all
        parts["JAX"] = "not installed"
    return {"processor": processor(), "versions": versions(), "parts": parts}


def differences(there: Mapping[str, Any]) -> list[str]:
    """What differs here from what `this_machine` returned elsewhere, in lines."""
    here = this_machine()
    pairs = [("processor", there["processor"], here["processor"])]
    for group in "versions", "parts":
        pairs += [(name, old, here[group].get(name)) for name, old in there[group].items()]
    return [f"{name}: {old} there, {new} here" for name, old, new in pairs if old != new]


def main(folders: Sequence[str]) -> None:
    for folder in folders or [""]:
        if not (paths := sorted(Path(folder).glob("machine-*.json"))):
            sys.exit(f"{folder!r} has no machine-*.json; checkpoints/default has one, for example")
        for path in paths:
            found = differences(json.loads(path.read_text()))
            told = found or ["all parts agree, so the same seed should give the same numbers"]
            print(f"{path}:", *told, sep="\n  ")


if __name__ == "__main__":
    main(sys.argv[1:])
