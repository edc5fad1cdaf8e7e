"""`torch.compile` for whole phases of a PyTorch learner: many gradient steps become one call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch_phases.phases import Phases

__all__ = ["Phases", "compile", "export"]
compile = Phases


def export(learner: Any, calls: Mapping[str, tuple]) -> dict:
    """Methods of a learner as programs for machine/machine.js: a dictionary for JSON.

    Args:
        learner: any object with methods that use PyTorch's networks and optimizers. It stays as it
            was.
        calls: example arguments by the name of a method, as `Phases.call` takes them: arrays of the
            shapes that the program will be given.

    Weights of linear layers that look uniformly distributed are drawn anew on the other side, which
    makes a small file.

    Raises:
        ValueError: something cannot be recorded, or the machine does not have it; all operations
            that a method misses are named.
    """
    from torch_phases.program import exported  # which needs Dynamo and JAX

    return exported(learner, calls)
