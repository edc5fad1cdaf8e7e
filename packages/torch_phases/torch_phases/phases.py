"""What `torch_phases.compile` returns: it calls the methods of a learner with arrays.

There is one truth, the tensors that the learner holds. A compiled phase reads their memory and
writes what has changed back into them; it keeps no numbers of its own between two calls.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_flatten, tree_map, tree_map_only, tree_unflatten

from torch_phases.reading import Contents
from torch_phases.words import Refused, in_a_line

ARRAYS = np.ndarray, torch.Tensor
LOCK = threading.RLock()  # recordings are shared, and Dynamo's settings are the process's


class Phases:
    """Calls methods of a learner with arrays; phases of steps are compiled.

    Args:
        learner: any object with methods that use PyTorch's networks and optimizers.
        engine: "auto": what cannot be compiled is left to PyTorch, and a line says why;
            "compiled": it is a ValueError; "torch": PyTorch computes everything.

    Attributes:
        learner: the object whose methods are called. Its tensors always have the newest numbers.
        engine: "compiled", or "torch" from the first phase on that cannot be compiled.
        reason: why PyTorch computes, or None.

    Raises:
        ValueError: an engine that is none of these.
    """

    def __init__(self, learner: Any, engine: str = "auto"):
        if engine not in ("auto", "compiled", "torch"):
            raise ValueError(f"engine must be 'auto', 'compiled' or 'torch', not {engine!r}")
        self.learner, self.strict = learner, engine == "compiled"
        self.engine = "torch" if engine == "torch" else "compiled"
        self.reason: str | None = None
        self.schedules: dict[str, Any] = {}  # of checks, by method
        self.contents: tuple = ()  # the learner's tensors and optimizers in the phase before

    def call(self, method: str, *arguments: Any) -> Any:
        """What a method returns for arrays (NumPy's or tensors), numbers and None, by PyTorch.

        Tuples, lists, dicts and named tuples of these are fine, too. Tensors in the result become
        arrays. The method may change the learner, but not the arguments, of which it gets copies.
        """
        return arrays(getattr(self.learner, method)(*map(copied, arguments)))

    def scan(self, method: str, *arguments: Any) -> Any:
        """The method called once for each row of the arguments' arrays, and the results stacked.

        Numbers and None are the same in all calls.

        Raises:
            ValueError: the arrays differ in the length of their first axis, or it is 0; or the
                engine is "compiled" and cannot be.
        """
        leaves, kind = tree_flatten(arguments)
        given, reason = [*map(as_tensor, leaves)], ""
        shapes = [tuple(x.shape) for x in given if isinstance(x, torch.Tensor)]
        steps, *others = {shape[0] if shape else 0 for shape in shapes} or {0}
        if others or not steps:
            raise ValueError(f"scan needs arrays of one number of steps, at least 1, not {shapes}")
        if self.engine == "compiled":
            try:
                with LOCK, contextlib.ExitStack() as ended:
                    ended.callback(gc.enable if gc.isenabled() else gc.disable)
                    gc.disable()  # garbage collections take a tenth of a recording
                    return self.phase(method, given, kind, steps)
            except Exception as error:  # a broken or another installation fails in any way
                reason = f"{method} {in_a_line(error)}"
        # If it is an error of the learner's own, PyTorch raises it.
        found = self.by_torch(method, tree_unflatten(given, kind), steps)
        if reason:
            self.engine, self.reason = "torch", reason
            if self.strict:
                raise ValueError(f"engine = 'compiled' cannot be: {reason}; use 'torch' or 'auto'")
            print(f"engine: torch, because {reason}. A compiled step is several times as fast")
        return found

    def by_torch(self, method: str, given: tuple, steps: int) -> Any:
        """The stacked results of the first steps by PyTorch."""
        rows = (tree_map_only(torch.Tensor, itemgetter(k), given) for k in range(steps))
        return tree_map(stacked, *(self.call(method, *row) for row in rows))

    def phase(self, method: str, given: list, kind: Any, steps: int, anew: bool = False) -> Any:
        """All steps as one call, checked now and then."""
        from torch_phases import check, recording  # which need Dynamo and JAX
        from torch_phases.step import Phase

        first = [x[0] if isinstance(x, torch.Tensor) else x for x in given]
        stacks = {id(x): stack for x, stack in zip(first, given, strict=True) if x is not stack}
        recorder = recording.recorder_of(type(self.learner), method, anew)
        called = self.learner, method, tree_unflatten(first, kind)
        step, inputs, result, self.contents = recorder.note(*called, self.contents)
        leaves, results = tree_flatten(result)
        phase = Phase(step, inputs, stacks, leaves, steps)
        wrong: str | None = None
        schedule = self.schedules.get(method) or self.schedules.setdefault(method, check.Schedule())
        if tried := schedule.due(id(step), steps):
            right = partial(self.by_torch, method, tree_unflatten(given, kind), tried)
            wrong = check.difference(phase, right, Contents(self.learner).names(), tried)
        if wrong is None:
            return tree_unflatten(phase.run(steps), results)
        if recorder.is_new:
            raise Refused(f"depends on something that was not seen: {wrong} is not PyTorch's")
        print(f"{method} is recorded anew, because a check found that {wrong} is not PyTorch's")
        return self.phase(method, given, kind, steps, anew=True)


def as_tensor(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return torch.from_numpy(x if x.flags.writeable and x.flags.forc else x.copy())
    return x.detach() if isinstance(x, torch.Tensor) else x


def copied(given: Any) -> Any:
    """A copy, with tensors for arrays; for one alone without `tree_map`, which takes a while."""
    if isinstance(given, ARRAYS):
        return as_tensor(given).clone()
    return tree_map_only(ARRAYS, copied, given)


def arrays(found: Any) -> Any:
    if isinstance(found, torch.Tensor):
        return found.numpy(force=True).copy()
    return tree_map_only(torch.Tensor, arrays, found)


def stacked(*values: Any) -> Any:
    return None if all(value is None for value in values) else np.stack(values)
