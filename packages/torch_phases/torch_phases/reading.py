"""What hangs on a learner: its tensors and optimizers by name, and the code of its classes."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
import torch

LEAVES = (type(None), bool, int, float, str, type, ModuleType, np.ndarray, np.generic)
OF_MODULES = "_parameters", "_buffers", "_modules"  # dicts, which names leave out


class Contents:
    """What a walk through attributes, containers and modules finds, in its order.

    Attributes:
        things: all that was found, each one once, with the names on the way to it.
        tensors, optimizers: those among them.
    """

    def __init__(self, learner: Any):
        self.things: list[tuple[Any, tuple]] = []
        self.walk(learner, (), set())
        self.tensors = [x for x, _ in self.things if isinstance(x, torch.Tensor)]
        self.optimizers = [x for x, _ in self.things if isinstance(x, torch.optim.Optimizer)]

    def walk(self, value: Any, names: tuple, known: set) -> None:
        self.things.append((value, names))
        known.add(id(value))
        for name, each in parts(value):
            if id(each) not in known and not isinstance(each, LEAVES):
                self.walk(each, names if name in OF_MODULES else (*names, name), known)

    def names(self) -> dict[str, torch.Tensor]:
        """Tensors by name, such as "critic.layers.0.weight"."""
        return {".".join(map(str, k)): x for x, k in self.things if isinstance(x, torch.Tensor)}

    def codes(self) -> dict[FunctionType, CodeType]:
        """Code that may be replaced in place (%autoreload), which Dynamo does not see.

        That of the classes, and of the functions beside them in a module that was imported.
        """
        kinds = {base for value, _ in self.things for base in type(value).__mro__}
        names = {kind.__module__ for kind in kinds}
        own = {x for x in names if x.partition(".")[0] not in ("builtins", "torch", "typing")}
        spaces: list[Any] = [vars(x) for x in kinds if x.__module__ in own]
        spaces += [vars(sys.modules[x]) for x in own if x in sys.modules and x != "__main__"]
        return {x: x.__code__ for each in spaces for x in each.values() if inspect.isfunction(x)}


def parts(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, dict):
        items = enumerate(value.items())
        return [(key if isinstance(key, (str, int)) else k, each) for k, (key, each) in items]
    if isinstance(value, (list, tuple)):
        return enumerate(value)
    return getattr(value, "__dict__", {}).items()
