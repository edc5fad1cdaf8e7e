"""What hangs on a learner: its tensors and optimizers by name, and the code of its classes."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable
from itertools import chain
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
import torch

LEAVES = (type(None), bool, int, float, str, type, ModuleType, np.ndarray, np.generic)
OF_MODULES = frozenset(vars(torch.nn.Module()))  # what each has, such as dicts of hooks


class Contents:
    """What a walk through attributes, containers and modules finds, in its order.

    Attributes:
        tensors, optimizers: each one once.
        things: all that was found, with the names on the way to it, by id.
    """

    def __init__(self, learner: Any):
        self.tensors: list[torch.Tensor] = []
        self.optimizers: list[torch.optim.Optimizer] = []
        self.things: dict[int, tuple] = {}  # which it keeps, or another one could get an id
        self.walk(learner)

    def walk(self, value: Any, names: tuple = ()) -> None:
        self.things[id(value)] = value, names
        if isinstance(value, torch.Tensor):
            self.tensors.append(value)
            return  # most things are tensors, and each phase walks
        if isinstance(value, torch.optim.Optimizer):
            self.optimizers.append(value)
        for name, each in parts(value):
            if id(each) not in self.things and not isinstance(each, LEAVES):
                self.walk(each, (*names, name))

    def names(self) -> dict[str, torch.Tensor]:
        """Tensors by name, such as "critic.layers.0.weight"."""
        return {".".join(map(str, self.things[id(x)][1])): x for x in self.tensors}

    def codes(self) -> dict[FunctionType, CodeType]:
        """Code that may be replaced in place (%autoreload), which Dynamo does not see.

        That of the classes, and of the functions beside them in a module that was imported.
        """
        kinds = {base for value, _ in self.things.values() for base in type(value).__mro__}
        names = {kind.__module__ for kind in kinds}
        own = {x for x in names if x.partition(".")[0] not in ("builtins", "torch", "typing")}
        spaces: list[Any] = [vars(x) for x in kinds if x.__module__ in own]
        spaces += [vars(sys.modules[x]) for x in own if x in sys.modules and x != "__main__"]
        return {x: x.__code__ for each in spaces for x in each.values() if inspect.isfunction(x)}


def parts(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, torch.nn.Module):
        own = vars(value)
        first = (own[name].items() for name in ("_parameters", "_buffers", "_modules"))
        return chain(*first, [(name, x) for name, x in own.items() if name not in OF_MODULES])
    if isinstance(value, dict):
        items = enumerate(value.items())
        return [(key if isinstance(key, (str, int)) else k, each) for k, (key, each) in items]
    if isinstance(value, (list, tuple)):
        return enumerate(value)
    return getattr(value, "__dict__", {}).items()
