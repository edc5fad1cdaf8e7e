"""`torch.compile` for whole phases of a PyTorch learner: many gradient steps become one call."""

from __future__ import annotations

from typing import Any

from torch_phases.phases import Phases
from torch_phases.program import export

__all__ = ["Phases", "compile", "export"]


def compile(learner: Any, engine: str = "auto") -> Phases:
    """What calls the methods of a learner with arrays; phases of steps are compiled.

    Args:
        learner: any object with methods that use PyTorch's networks and optimizers.
        engine: "auto": what cannot be compiled is left to PyTorch, and a line says why;
            "compiled": it is a ValueError; "torch": PyTorch computes everything.

    Raises:
        ValueError: an engine that is none of these.
    """
    return Phases(learner, engine)
