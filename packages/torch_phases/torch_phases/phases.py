"""What `torch_phases.compile` returns: it calls the methods of a learner with arrays.

There is one truth, the tensors that the learner holds. A compiled phase reads their memory and
writes what has changed back into them; it keeps no numbers of its own between two calls.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from torch_phases.reading import Contents
from torch_phases.words import Refused, in_a_line

LOCK = threading.RLock()  # recordings are shared, and Dynamo's settings are the process's


class Given:
    """Stacked arguments of several calls: the leaves of a structure."""

    def __init__(self, arguments: tuple):
        leaves, self.structure = tree_flatten(arguments)
        self.leaves = [*map(as_tensor, leaves)]
        shapes = [tuple(x.shape) for x in self.leaves if isinstance(x, torch.Tensor)]
        lengths = {shape[0] if shape else 0 for shape in shapes}
        if len(lengths) != 1 or 0 in lengths:
            raise ValueError(
                f"scan needs arrays with one number of steps, at least 1, not {shapes}"
            )
        self.steps = lengths.pop()

    def row(self, step: int, change: Callable = lambda x: x) -> tuple:
        """The arguments of a step."""
        row = [change(x[step]) if isinstance(x, torch.Tensor) else x for x in self.leaves]
        return tree_unflatten(row, self.structure)

    def kind(self) -> tuple:
        """What a recording depends on, and Dynamo would not keep apart."""
        return str(self.structure), *(
            (x.dtype, x.shape[1:]) if isinstance(x, torch.Tensor) else type(x) for x in self.leaves
        )


class Phases:
    """Calls methods of a learner with arrays.

    Attributes:
        learner: the object whose methods are called. Its tensors always have the newest numbers.
        engine: "compiled", or "torch" from the first phase on that cannot be compiled.
        reason: why PyTorch computes, or None.
    """

    def __init__(self, learner: Any, engine: str = "auto"):
        if engine not in ("auto", "compiled", "torch"):
            raise ValueError(f"engine must be 'auto', 'compiled' or 'torch', not {engine!r}")
        self.learner, self.strict = learner, engine == "compiled"
        self.engine = "torch" if engine == "torch" else "compiled"
        self.reason: str | None = None
        self.schedules: dict[str, Any] = {}

    def call(self, method: str, *arguments: Any) -> Any:
        """What a method returns for arrays (NumPy's or tensors), numbers and None, by PyTorch.

        Tuples, lists, dicts and named tuples of these are fine, too. Tensors in the result become
        arrays. The method may change the learner, but not the arguments, of which it gets copies.
        """
        given = (each_of(lambda x: copied(as_tensor(x)), x) for x in arguments)
        return each_of(as_array, getattr(self.learner, method)(*given))

    def scan(self, method: str, *arguments: Any) -> Any:
        """The method called once for each row of the arguments' arrays, and the results stacked.

        Numbers and None are the same in all calls.

        Raises:
            ValueError: the arrays differ in the length of their first axis, or it is 0; or the
                engine is "compiled" and cannot be.
        """
        given = Given(arguments)
        if self.engine == "torch":
            parts = [self.by_torch(method, given, 0, given.steps)]
        else:
            parts = self.compiled(method, given)
        leaves = zip(*(leaves for leaves, _ in parts), strict=True)
        return tree_unflatten([*map(joined, leaves)], parts[0][1])

    def by_torch(
        self, method: str, given: Given, begin: int, end: int, change: Callable = torch.clone
    ) -> tuple[list, Any]:
        """The results of some steps by PyTorch: stacked leaves, and their structure."""
        found = []
        for k in range(begin, end):
            result = getattr(self.learner, method)(*given.row(k, lambda x: change(x).clone()))
            found.append(tree_flatten(each_of(as_array, result)))
        rows = zip(*(leaves for leaves, _ in found), strict=True)
        return [*map(stacked, rows)], found[0][1]

    def compiled(self, method: str, given: Given) -> list:
        """The results of all steps, in parts; those that cannot be compiled are PyTorch's."""
        found: list[tuple] = []
        done, reason = 0, ""
        try:
            need()
        except Exception as error:  # a broken or another installation fails in any way
            self.give_way(f"something is missing here ({type(error).__name__}: {error})")
            return [self.by_torch(method, given, 0, given.steps)]
        from torch_phases.step import Retry

        for _ in range(2):
            try:
                with LOCK:
                    return [*found, self.phase(method, given, done)]
            except Retry:
                break
            except Exception as error:
                if found or not getattr(getattr(error, "inner_exception", error), "again", False):
                    reason = f"{method} {in_a_line(error)}"
                    break
            found.append(self.by_torch(method, given, 0, 1))  # another one than those that follow
            done = 1
            if done == given.steps:
                return found
        # If it is an error of the learner's own, PyTorch raises it.
        found.append(self.by_torch(method, given, done, given.steps))
        if reason:
            self.give_way(reason)
        return found

    def phase(self, method: str, given: Given, begin: int) -> tuple[list, Any]:
        """Steps from one on as one call, checked now and then."""
        from torch_phases import recording
        from torch_phases.step import Phase
        from torch_phases.to_jax import OPERATIONS

        steps, rows, stacks = given.steps - begin, list[Any](), dict[int, torch.Tensor]()
        for x in given.leaves:
            rows.append(x[begin] if isinstance(x, torch.Tensor) else x)
            if isinstance(x, torch.Tensor):
                stacks[id(rows[-1])] = x[begin:]
        arguments, contents = tree_unflatten(rows, given.structure), Contents(self.learner)
        for attempt in range(2):
            key = method, *given.kind()
            recorder = recording.recorder_of(self.learner, contents, key, OPERATIONS.__contains__)
            function = getattr(self.learner, method)
            step, inputs, result, leaves = recorder.note(function, contents, arguments)
            phase = Phase(step, inputs, stacks, leaves, steps)
            wrong = self.checked(method, given, begin, phase, steps)
            if wrong is None:
                break
            if attempt or recorder.is_new:
                raise Refused(f"depends on something that was not seen: {wrong} is not PyTorch's")
            recording.forget(recorder)
            print(f"{method} is recorded anew, because a check found that {wrong} is not PyTorch's")
        found = phase.run(steps)
        phase.write()
        return phase.result(found, steps), tree_flatten(result)[1]

    def checked(self, method: str, given: Given, begin: int, phase: Any, steps: int) -> str | None:
        """The name of what is not PyTorch's, if this phase is checked and something is not."""
        from torch_phases import check

        schedule = self.schedules.setdefault(method, check.Schedule())
        if not (tried := schedule.due(id(phase.step), steps)):
            return None

        def by_torch(change: Callable) -> list:
            return self.by_torch(method, given, begin, begin + tried, change)[0]

        return check.difference(phase, by_torch, Contents(self.learner).names(), tried)

    def give_way(self, reason: str) -> None:
        """Leave all to PyTorch from here on, and say why."""
        self.engine, self.reason = "torch", reason
        if self.strict:
            raise ValueError(f"engine = 'compiled' cannot be: {reason}; choose 'torch' or 'auto'")
        print(f"engine: torch, because {reason}. A compiled step is several times as fast")


@functools.cache
def need() -> None:
    """Import what needs Dynamo and JAX, or say what is missing."""
    from torch_phases import private

    if not private.supported():
        raise ImportError("torch.compile does not run on this platform or Python")
    import torch_phases.check
    import torch_phases.recording  # noqa: F401


def as_tensor(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return torch.from_numpy(x if x.flags.writeable else x.copy())
    return x.detach() if isinstance(x, torch.Tensor) else x


def copied(x: Any) -> Any:
    return x.clone() if isinstance(x, torch.Tensor) else x


def as_array(x: Any) -> Any:
    return x.numpy(force=True).copy() if isinstance(x, torch.Tensor) else x


def each_of(function: Callable, value: Any) -> Any:
    """The function of each leaf of a structure. PyTorch's walk takes 20 us, even for one array."""
    is_one = isinstance(value, (torch.Tensor, np.ndarray))
    return function(value) if is_one else tree_map(function, value)


def stacked(values: Any) -> Any:
    return None if all(value is None for value in values) else np.stack(values)


def joined(parts: tuple) -> Any:
    """Results of a phase of those of its parts."""
    return parts[0] if len(parts) == 1 or parts[0] is None else np.concatenate(parts)
