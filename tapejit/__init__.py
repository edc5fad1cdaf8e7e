"""Methods of PyTorch learners, recorded and compiled: many small operations become one call."""

from __future__ import annotations

from typing import Any

from tapejit.compiled import Learner
from tapejit.program import export

__all__ = ["Learner", "compile", "export"]


def compile(learner: Any, engine: str = "auto") -> Learner:
    """What calls the methods of a learner with arrays, compiled where that can be.

    Args:
        learner: any object with methods that use PyTorch's networks and optimizers.
        engine: "auto": what cannot be compiled is left to PyTorch, and a line says why;
            "compiled": it is a ValueError; "torch": PyTorch computes everything.
    """
    return Learner(learner, engine)
