"""What hangs on a learner: its tensors and optimizers by name, and the code of its classes."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from types import CodeType
from typing import Any

import numpy as np
import torch

LEAVES = (type(None), bool, int, float, str, type, np.ndarray, np.generic, torch.Tensor)
OF_MODULES = frozenset(vars(torch.nn.Module()))  # what each has, such as dicts of hooks


class Contents:
    """What a walk through attributes, containers and modules finds.

    Attributes:
        tensors: by name, such as "critic.layers.0.weight".
        optimizers: each one once.
        kinds: classes of objects.
    """

    def __init__(self, learner: Any):
        self.tensors: dict[str, torch.Tensor] = {}
        self.optimizers: list[torch.optim.Optimizer] = []
        self.kinds: set[type] = set()
        self.seen: dict[int, Any] = {}  # which it keeps, or another object could get an id
        self.walk(learner, "")

    def walk(self, value: Any, name: str) -> None:
        if isinstance(value, torch.Tensor) and id(value) not in self.seen:
            self.tensors[name] = value
        elif isinstance(value, LEAVES) or id(value) in self.seen:
            return
        self.seen[id(value)] = value
        if isinstance(value, torch.optim.Optimizer):
            self.optimizers.append(value)
        elif not isinstance(value, (dict, list, tuple)):
            self.kinds.add(type(value))
        for key, each in parts(value):
            if not isinstance(each, LEAVES) or isinstance(each, torch.Tensor):
                self.walk(each, f"{name}.{key}" if name else str(key))

    def codes(self) -> tuple[CodeType, ...]:
        """Code that may be replaced in place (%autoreload), which Dynamo does not see.

        That of the classes, and of the functions beside them in a module that was imported.
        """
        kinds = {base for kind in self.kinds for base in kind.__mro__}
        names = {kind.__module__ for kind in kinds}
        own = [x for x in names if x.partition(".")[0] not in ("builtins", "torch", "typing")]
        spaces: list[Any] = [vars(x) for x in kinds if x.__module__ in own]
        spaces += [vars(sys.modules[x]) for x in own if x in sys.modules and x != "__main__"]
        return tuple(x.__code__ for each in spaces for x in each.values() if inspect.isfunction(x))


def parts(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, torch.nn.Module):
        for name in ("_parameters", "_buffers", "_modules"):
            yield from vars(value)[name].items()
        yield from ((name, x) for name, x in vars(value).items() if name not in OF_MODULES)
    elif isinstance(value, dict):
        for k, (key, each) in enumerate(value.items()):
            yield (key if isinstance(key, (str, int)) else k), each
    elif isinstance(value, (list, tuple)):
        yield from enumerate(value)
    else:
        yield from getattr(value, "__dict__", {}).items()
