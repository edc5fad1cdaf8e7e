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
from torch.utils._pytree import tree_flatten, tree_map_only, tree_unflatten

from torch_phases.reading import Contents
from torch_phases.words import Refused, in_a_line

LOCK = threading.RLock()  # recordings are shared, and Dynamo's settings are the process's


class Given:
    """Arguments of a call, or stacked ones of several: the leaves of a structure."""

    def __init__(self, arguments: tuple):
        leaves, self.structure = tree_flatten(arguments)
        self.leaves = [*map(as_tensor, leaves)]
        self.numbers = [k for k, x in enumerate(self.leaves) if isinstance(x, torch.Tensor)]

    def steps(self) -> int:
        given = [self.leaves[k] for k in self.numbers]
        lengths = {len(x) if x.ndim else 0 for x in given}
        if len(lengths) != 1 or 0 in lengths:
            shapes = [tuple(x.shape) for x in given]
            raise ValueError(
                f"scan needs arrays with one number of steps, at least 1, not {shapes}"
            )
        return lengths.pop()

    def row(self, step: int) -> list:
        return [x[step] if isinstance(x, torch.Tensor) else x for x in self.leaves]

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
        given = Given(arguments)
        leaves = tree_map_only(torch.Tensor, torch.clone, given.leaves)
        result = getattr(self.learner, method)(*tree_unflatten(leaves, given.structure))
        return tree_map_only(torch.Tensor, as_array, result)

    def scan(self, method: str, *arguments: Any) -> Any:
        """The method called once for each row of the arguments' arrays, and the results stacked.

        Numbers and None are the same in all calls.

        Raises:
            ValueError: the arrays differ in the length of their first axis, or it is 0; or the
                engine is "compiled" and cannot be.
        """
        given = Given(arguments)
        steps = given.steps()
        if self.engine == "torch":
            return self.by_torch(method, given, 0, steps)
        return self.compiled(method, given, steps)

    def by_torch(
        self, method: str, given: Given, begin: int, end: int, change: Callable = torch.clone
    ) -> Any:
        """The results of some steps by PyTorch."""
        found = []
        for k in range(begin, end):
            leaves = tree_map_only(torch.Tensor, lambda x: change(x).clone(), given.row(k))
            result = getattr(self.learner, method)(*tree_unflatten(leaves, given.structure))
            found.append(tree_flatten(tree_map_only(torch.Tensor, as_array, result)))
        rows = zip(*(leaves for leaves, _ in found), strict=True)
        return tree_unflatten([stacked(each) for each in rows], found[0][1])

    def compiled(self, method: str, given: Given, steps: int) -> Any:
        """The results of all steps; those that cannot be compiled are PyTorch's."""
        found, done, reason = [], 0, None
        try:
            need()
        except Exception as error:  # a broken or another installation fails in any way
            self.give_way(f"something is missing here ({type(error).__name__}: {error})")
            return self.by_torch(method, given, 0, steps)
        from torch_phases.step import Retry

        try:
            while done < steps:
                try:
                    with LOCK:
                        found.append(self.phase(method, given, done, steps))
                    done = steps
                except Retry:
                    break
                except Exception as error:
                    inner = getattr(error, "inner_exception", error)
                    if done or not getattr(inner, "again", False):
                        raise
                    found.append(self.by_torch(method, given, 0, 1))
                    done = 1
        except Exception as error:
            reason = f"{method} {in_a_line(error)}"
        if done < steps:  # if it is an error of the learner's own, PyTorch raises it
            found.append(self.by_torch(method, given, done, steps))
        if reason is not None:
            self.give_way(reason)
        return joined(found)

    def phase(self, method: str, given: Given, begin: int, end: int) -> Any:
        """Steps as one call, checked now and then."""
        from torch_phases import recording
        from torch_phases.step import Phase
        from torch_phases.to_jax import OPERATIONS

        row, steps = given.row(begin), end - begin
        arguments = tree_unflatten(row, given.structure)
        stacks = {id(row[k]): given.leaves[k][begin:] for k in given.numbers}
        contents = Contents(self.learner)
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
        after, found = phase.run(steps)
        phase.write(after)
        return tree_unflatten(phase.result(found, steps), tree_flatten(result)[1])

    def checked(self, method: str, given: Given, begin: int, phase: Any, steps: int) -> str | None:
        """The name of what is not PyTorch's, if this phase is checked and something is not."""
        from torch_phases import check

        schedule = self.schedules.setdefault(method, check.Schedule())
        if not (tried := schedule.due(id(phase.step), steps)):
            return None

        def by_torch(change: Callable) -> list:
            return tree_flatten(self.by_torch(method, given, begin, begin + tried, change))[0]

        return check.difference(phase, by_torch, Contents(self.learner).tensors, tried)

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


def as_array(x: torch.Tensor) -> np.ndarray:
    return x.numpy(force=True).copy()


def stacked(values: Any) -> Any:
    return None if all(value is None for value in values) else np.stack(values)


def joined(parts: list) -> Any:
    """Results of a phase of those of its parts."""
    if len(parts) == 1:
        return parts[0]
    flat = [tree_flatten(part) for part in parts]
    leaves = [
        None if each[0] is None else np.concatenate(each)
        for each in zip(*(leaves for leaves, _ in flat), strict=True)
    ]
    return tree_unflatten(leaves, flat[0][1])
