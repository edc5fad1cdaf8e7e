"""Record what a function does with PyTorch's tensors: the operations, in order, as pure functions.

PyTorch runs the function as always, its backward passes and optimizers included, while a
`TorchDispatchMode` notes every operation of ATen, PyTorch's library of operations. Operations in
place become new values, and views are taken anew from what was changed, as
`torch.func.functionalize` does it. What a recording cannot hold raises `CannotRecord`.
"""

from __future__ import annotations

import contextlib
import functools
import io
import sys
import sysconfig
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

READS = ("item", "tolist", "numpy", "__array__", "__bool__", "__float__", "__int__", "__index__")


class CannotRecord(Exception):
    """What ended a recording, in one line."""


class Node:
    """A value: an input, a constant, or the result of an operation.

    There is one node for each computation: what was computed alike is the same node, also in two
    recordings, which are equal if their outputs are.
    """

    __slots__ = ("args", "dtype", "kwargs", "number", "shape", "target", "where")
    known: ClassVar[dict[tuple, Node]] = {}

    def __new__(cls, target, args=(), tensor=None, where="", kwargs=None):
        shape, dtype = getattr(tensor, "shape", None), getattr(tensor, "dtype", None)
        told = args[0].numpy().tobytes() if target == "constant" else repr((args, kwargs))
        key = target, told, shape, dtype, where
        if key not in cls.known:
            node = cls.known[key] = super().__new__(cls)
            node.target, node.args, node.kwargs, node.where = target, args, kwargs or {}, where
            node.shape, node.dtype, node.number = shape, dtype, len(cls.known)
        return cls.known[key]

    def __repr__(self):
        return f"%{self.number}"


class Recorded(NamedTuple):
    """A recorded call: the nodes of its inputs and outputs, in lists as they were given."""

    inputs: tuple[tuple[Node, ...], ...]
    outputs: tuple[tuple[Node, ...], ...]

    def nodes(self) -> list[Node]:
        """All that the outputs need, each after those that it needs itself."""
        found, waiting = set(), [node for column in self.outputs for node in column]
        while waiting:
            if (node := waiting.pop()) not in found:
                found.add(node)
                leaves = tree_leaves((node.args, node.kwargs))
                waiting += [value for value in leaves if isinstance(value, Node)]
        return sorted(found, key=lambda node: node.number)


Lists = Sequence[Sequence[torch.Tensor]]


def record(
    function: Callable[[], Lists], inputs: Lists, shared: Container[int], allowed: Container[str]
) -> Recorded:
    """Run a function without arguments, and record what it does with tensors.

    Args:
        function: returns lists of tensors.
        inputs: lists of tensors whose values may be others at the next call. The function may
            change them.
        shared: numbers of the lists whose tensors are all equal, and stay so.
        allowed: names of operations that may be in a recording, such as "add.Tensor"; others are
            decomposed into these where PyTorch knows how.

    Raises:
        CannotRecord: the function does something that no recording can hold.
        Exception: what the function raised.
    """
    tape = Tape(allowed)
    nodes = tuple(
        tuple(
            tape.know(tensor, Node("input", (g, 0 if g in shared else k), tensor)).node
            for k, tensor in enumerate(tensors)
        )
        for g, tensors in enumerate(inputs)
    )
    compiling = torch.compiler._is_compiling_flag
    torch.compiler._is_compiling_flag = True  # an optimizer then takes its numbers from tensors
    try:
        with contextlib.redirect_stdout(NoPrinting()), NumbersStayTensors(), tape:
            found = function()
    finally:
        torch.compiler._is_compiling_flag = compiling
    return Recorded(nodes, tuple(tuple(map(tape.read, tensors)) for tensors in found))


class Known:
    """A tensor with its newest value, or a view: of what, and by which operation."""

    def __init__(self, node, base=None, how=None):
        self.node, self.base, self.how = node, base, how


class Tape(TorchDispatchMode):
    """Notes the operations of a context."""

    def __init__(self, allowed: Container[str]):
        super().__init__()
        self.allowed, self.draws, self.constants = allowed, 0, set()
        self.known, self.kept = {}, []

    def know(self, tensor: torch.Tensor, *what: Any) -> Known:
        self.known[id(tensor)] = entry = Known(*what)
        self.kept.append(tensor)  # or its id might be that of another one
        return entry

    def entry(self, tensor: torch.Tensor) -> Known:
        if id(tensor) not in self.known:  # from outside
            self.know(tensor, Node("constant", (tensor.detach().clone(),), tensor))
            self.constants.add(id(tensor))
        return self.known[id(tensor)]

    def read(self, tensor: torch.Tensor) -> Node:
        """The node of a tensor's value now."""
        entry = self.entry(tensor)
        if entry.base is None:
            return entry.node
        whole = self.read(entry.base)
        return entry.how(whole) if entry.how else whole

    def write(self, tensor: torch.Tensor, node: Node) -> None:
        """Give a tensor a new value, and with it all that it is a view of."""
        entry = self.entry(tensor)
        if entry.base is not None:
            whole = self.read(entry.base)
            self.write(entry.base, with_part(whole, node, self.read(tensor)))
        elif id(tensor) in self.constants:
            raise CannotRecord(
                f"a tensor outside of the networks and optimizers is changed in {where()}"
            )
        else:
            entry.node = node

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        namespace, _, name = func._schema.name.partition("::")
        if namespace == "profiler":
            return func(*args, **kwargs)
        if name in ("_local_scalar_dense", "equal", "nonzero", "masked_select"):
            raise CannotRecord(f"a tensor's numbers are looked at ({name}) in {where()}")
        if name.startswith("_foreach_"):
            with self:
                return one_by_one(name.removeprefix("_foreach_"), args, kwargs)
        if name in ("detach", "alias", "lift", "lift_fresh"):  # another tensor with this memory
            result = func(*args, **kwargs)
            if not name.startswith("lift"):
                self.know(result, None, args[0])
            elif id(result) not in self.known:  # that of a number
                self.know(result, Node("constant", (result.detach().clone(),), result))
            return result
        written = [each.name for each in func._schema.arguments if each.is_write]
        target = f"{name.removesuffix('_') if written else name}.{func._overloadname}"
        if written == ["out"]:
            target = f"{name}.default"
        if target not in self.allowed or written not in ([], ["self"], ["out"]):
            with self:
                found = decompositions().get(func, func.decompose)(*args, **kwargs)
            if found is NotImplemented:
                raise CannotRecord(f"the operation {name} has no translation, in {where()}")
            return found
        given = {key: value for key, value in kwargs.items() if key != "out"}
        nodes, options = tree_map(self.argument, (tuple(args), given))
        if torch.Tag.nondeterministic_seeded in func.tags:  # another one each time
            options["draw"] = self.draws = self.draws + 1
        result, place = func(*args, **kwargs), where()
        if written:
            changed = kwargs.get("out", args[0] if args else None)
            self.write(changed, Node(target, nodes, changed, place, options))
            return result
        for k, tensor in enumerate([result] if isinstance(result, torch.Tensor) else result):
            if tensor is None:
                continue

            def taken(*first, tensor=tensor, k=k):
                arguments = (*first, *nodes[len(first) :])
                if isinstance(result, torch.Tensor):
                    return Node(target, arguments, tensor, place, options)
                return Node("getitem", (Node(target, arguments, None, place, options), k), tensor)

            base = args[0] if args and isinstance(args[0], torch.Tensor) else None
            if base is not None and storage(base) == storage(tensor):
                self.know(tensor, None, base, taken)
            else:
                self.know(tensor, taken())
        return result

    def argument(self, value: Any) -> Any:
        return self.read(value) if isinstance(value, torch.Tensor) else value


def with_part(whole: Node, part: Node, view: Node) -> Node:
    """The value of a tensor after a view of it has got a new one."""
    name, place = view.target.partition(".")[0], where()
    if view is whole:  # detached
        return part
    if name in ("t", "transpose"):
        return Node(view.target, (part, *view.args[1:]), whole, place)
    if name in ("view", "_unsafe_view", "unsqueeze", "squeeze"):
        return Node("view.default", (part, list(whole.shape)), whole, place)
    if name in ("select", "slice"):
        return Node(f"{name}_scatter.default", (whole, part, *view.args[1:]), whole, place)
    raise CannotRecord(f"a part of a tensor is changed ({name}) in {place}")


class NumbersStayTensors(TorchFunctionMode):
    """Lets an optimizer use tensors where PyTorch wants numbers, and nobody read a tensor."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs, name = kwargs or {}, getattr(func, "__name__", "")
        if name in READS:
            raise CannotRecord(f"a tensor's numbers are looked at ({name}) in {where()}")
        factor = kwargs.get("alpha", kwargs.get("value"))
        if isinstance(factor, torch.Tensor):
            first, *others = args
            if name == "add_":
                return first.add_(others[0] * factor)
            if name == "addcmul_":
                return first.add_(others[0] * others[1] * factor)
            if name == "addcdiv_":
                return first.add_(others[0] / others[1] * factor)
        return func(*args, **kwargs)


class NoPrinting(io.StringIO):
    def write(self, text):
        raise CannotRecord(f"something is printed in {where()}")


def one_by_one(name: str, args: Sequence, kwargs: Mapping) -> list | None:
    """An operation on lists of tensors (torch._foreach_...), tensor by tensor."""

    def at(k):
        return [value[k] if isinstance(value, (list, tuple)) else value for value in args]

    found = [getattr(torch.Tensor, name)(*at(k), **kwargs) for k in range(len(args[0]))]
    return None if name.endswith("_") else found


def storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


LIBRARIES = (sysconfig.get_paths()["purelib"], sysconfig.get_paths()["stdlib"], __file__)


def where() -> str:
    """The name of the function, outside of libraries, that is running."""
    frame = sys._getframe(1)
    while frame and frame.f_code.co_filename.startswith((*LIBRARIES, "<frozen")):
        frame = frame.f_back
    return frame.f_code.co_qualname if frame else "the learner"


@functools.cache
def decompositions() -> Mapping:
    """How PyTorch makes rarer operations of others."""
    from torch._decomp import core_aten_decompositions, decomposition_table

    return {**decomposition_table, **core_aten_decompositions()}
