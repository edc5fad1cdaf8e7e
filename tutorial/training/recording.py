"""Record what a function does with PyTorch's tensors: the operations, in order, as pure functions.

PyTorch runs the function as always, its backward passes and optimisers included, while a
`TorchDispatchMode` notes every operation of ATen, PyTorch's library of operations. Operations in
place become new values, and views of what they changed are taken anew, as
`torch.func.functionalize` does it. What a recording cannot hold raises `CannotRecord`.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import sys
import sysconfig
from collections.abc import Callable, Container, Mapping, Sequence
from typing import NamedTuple

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

# How a view's new value gets back into the tensor that it is a view of: operation and arguments.
INVERSE = {
    "detach.default": lambda whole, part: part,
    "alias.default": lambda whole, part: part,
    "t.default": lambda whole, part: ("t.default", part),
    "transpose.int": lambda whole, part, a, b: ("transpose.int", part, a, b),
    "view.default": lambda whole, part, *_: ("view.default", part, list(whole.shape)),
    "_unsafe_view.default": lambda whole, part, *_: ("view.default", part, list(whole.shape)),
    "unsqueeze.default": lambda whole, part, dim: ("squeeze.dim", part, dim),
    "squeeze.dim": lambda whole, part, *_: ("view.default", part, list(whole.shape)),
    "select.int": lambda whole, part, *how: ("select_scatter.default", whole, part, *how),
    "slice.Tensor": lambda whole, part, *how: ("slice_scatter.default", whole, part, *how),
}
SAME = ("detach.default", "alias.default", "lift_fresh.default", "lift.default")  # another tensor
READS = ("item", "tolist", "numpy", "__array__", "__bool__", "__float__", "__int__", "__index__")


class CannotRecord(Exception):
    """What ended a recording, in one line."""


class Node:
    """A value: an input, a constant, or the result of an operation."""

    __slots__ = ("args", "dtype", "kwargs", "shape", "target", "where")

    def __init__(self, target, args, kwargs, tensor, where=""):
        self.target, self.args, self.kwargs, self.where = target, args, kwargs, where
        self.shape, self.dtype = getattr(tensor, "shape", None), getattr(tensor, "dtype", None)


class Known:
    """A tensor, its newest value, and where it is a view: of what, and by which operation."""

    __slots__ = ("base", "how", "node", "tensor", "version")

    def __init__(self, tensor, node, version, base=None, how=None):
        self.tensor, self.node, self.version, self.base, self.how = tensor, node, version, base, how


class Recorded(NamedTuple):
    """A recorded call: nodes of its inputs and of its results, in their order."""

    inputs: list[Node]
    outputs: list[Node]
    key: str  # equal for recordings that compute the same

    def nodes(self) -> list[Node]:
        return in_order(self.outputs)


def record(function: Callable, inputs: Sequence[torch.Tensor], allowed: Container[str]) -> Recorded:
    """Run a function without arguments, and record what it does with tensors.

    Args:
        function: returns tensors.
        inputs: tensors whose values may be others at the next call. The function changes them.
        allowed: names of operations that may be in a recording, such as "add.Tensor"; others are
            decomposed into these where PyTorch knows how.

    Raises:
        CannotRecord: the function does something that no recording can hold.
        Exception: what the function raised.
    """
    tape = Tape(inputs, allowed)
    compiling = torch.compiler._is_compiling_flag
    torch.compiler._is_compiling_flag = True  # an optimiser then takes its numbers from tensors
    try:
        with contextlib.redirect_stdout(NoPrinting()), NumbersStayTensors(), tape:
            found = function()
    finally:
        torch.compiler._is_compiling_flag = compiling
    outputs = [tape.read(tensor) for tensor in found]
    return Recorded(tape.inputs, outputs, key_of(tape.inputs, outputs))


class Tape(TorchDispatchMode):
    """Notes the operations of a context."""

    def __init__(self, inputs, allowed):
        super().__init__()
        self.allowed, self.known, self.versions = allowed, {}, {}
        self.inputs = [Node("input", (), {}, tensor) for tensor in inputs]
        for tensor, node in zip(inputs, self.inputs, strict=True):
            self.know(tensor, node)
        self.constants = set()

    def know(self, tensor, node, base=None, how=None):
        version = self.versions.setdefault(storage(tensor), 0)
        self.known[id(tensor)] = Known(tensor, node, version, base, how)

    def entry(self, tensor):
        if id(tensor) not in self.known:  # from outside
            self.know(tensor, Node("constant", (tensor.detach().clone(),), {}, tensor))
            self.constants.add(id(tensor))
        return self.known[id(tensor)]

    def read(self, tensor):
        """The node of a tensor's value now."""
        return self.newest(self.entry(tensor))

    def newest(self, entry):
        version = self.versions[storage(entry.tensor)]
        if entry.version != version:
            if entry.base is None:
                raise CannotRecord(f"two tensors that share memory are changed in {where()}")
            make, args, kwargs = entry.how
            entry.node = make(self.newest(entry.base), args, kwargs)
            entry.version = version
        return entry.node

    def write(self, tensor, node):
        """Give a tensor a new value, and with it all that it is a view of."""
        chain = [self.entry(tensor)]
        while chain[-1].base is not None:
            chain.append(chain[-1].base)
        if id(chain[-1].tensor) in self.constants:
            raise CannotRecord(
                "a tensor outside of the networks and optimisers is changed in " + where()
            )
        wholes = [self.newest(entry) for entry in chain[1:]]
        self.versions[storage(tensor)] += 1
        for k, entry in enumerate(chain):
            entry.node, entry.version = node, self.versions[storage(tensor)]
            if k < len(wholes):
                node = self.inverted(entry, wholes[k], node)

    def inverted(self, entry, whole, part):
        name, args = entry.how[0].name, entry.how[1]
        if name not in INVERSE:
            raise CannotRecord(f"a part of a tensor is changed ({name}) in {where()}")
        found = INVERSE[name](whole, part, *args)
        return (
            found
            if isinstance(found, Node)
            else Node(found[0], found[1:], {}, entry.base.tensor, where())
        )

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
        changed = [
            argument.name
            for argument in func._schema.arguments
            if argument.alias_info and argument.alias_info.is_write
        ]
        target = f"{name.removesuffix('_') if changed else name}.{func._overloadname}"
        if changed == ["out"]:
            target = f"{name}.default"
        if target in SAME:
            return self.another(func, target, args, kwargs)
        if target not in self.allowed or changed not in ([], ["self"], ["out"]):
            with self:
                found = decompositions().get(func, func.decompose)(*args, **kwargs)
            if found is NotImplemented:
                raise CannotRecord(f"the operation {name} has no translation, in {where()}")
            return found
        given = {name: value for name, value in kwargs.items() if name != "out"}
        nodes, options = tree_map(self.argument, (args, given))
        result = func(*args, **kwargs)
        if changed:
            tensor = kwargs.get("out", args[0] if args else None)
            self.write(tensor, Node(target, tuple(nodes), options, tensor, where()))
            return result
        self.note(result, target, nodes, options, args)
        return result

    def argument(self, value):
        return self.read(value) if isinstance(value, torch.Tensor) else value

    def another(self, func, target, args, kwargs):
        """A second tensor with the memory of the first, or with that of a number's tensor."""
        result = func(*args, **kwargs)
        if target.startswith("lift"):
            if result is not args[0] or id(result) not in self.known:
                self.know(result, Node("constant", (result.detach().clone(),), {}, result))
        else:
            make = Make(target, None)
            self.know(result, self.read(args[0]), self.entry(args[0]), (make, (), {}))
        return result

    def note(self, result, target, nodes, options, args):
        """Note the result of an operation, one tensor or several."""
        several = not isinstance(result, torch.Tensor)
        whole = Node(target, tuple(nodes), options, None if several else result, where())
        for k, tensor in enumerate(result if several else [result]):
            if tensor is None:
                continue
            make = Make(target, k if several else None, tensor)
            node = Node("getitem", (whole, k), {}, tensor, whole.where) if several else whole
            base = args[0] if args and isinstance(args[0], torch.Tensor) else None
            if base is not None and storage(base) == storage(tensor):
                self.know(tensor, node, self.entry(base), (make, tuple(nodes[1:]), options))
            else:
                self.know(tensor, node)


class Make:
    """Takes a view once more."""

    def __init__(self, name, index, tensor=None):
        self.name, self.index, self.tensor = name, index, tensor

    def __call__(self, base, args, kwargs):
        if self.tensor is None:  # detach
            return base
        node = Node(self.name, (base, *args), kwargs, self.tensor, "")
        return node if self.index is None else Node("getitem", (node, self.index), {}, self.tensor)


class NumbersStayTensors(TorchFunctionMode):
    """Lets an optimiser use tensors where PyTorch wants numbers, and nobody read a tensor."""

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


def one_by_one(name, args, kwargs):
    """An operation on lists of tensors (torch._foreach_...), tensor by tensor."""

    def at(k):
        return [value[k] if isinstance(value, (list, tuple)) else value for value in args]

    found = [getattr(torch.Tensor, name)(*at(k), **kwargs) for k in range(len(args[0]))]
    return None if name.endswith("_") else found


def storage(tensor):
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


# -------------------------------------------------------------------------------- sets of nodes


def in_order(outputs: Sequence[Node]) -> list[Node]:
    """All nodes that outputs need, each after those that it needs."""
    found, waiting = {}, [(node, False) for node in reversed(outputs)]
    while waiting:
        node, ready = waiting.pop()
        if ready:
            found[node] = None
        elif node not in found:
            waiting.append((node, True))
            waiting += [
                (value, False)
                for value in tree_leaves((node.args, node.kwargs))
                if isinstance(value, Node) and value not in found
            ]
    return list(found)


def key_of(inputs: Sequence[Node], outputs: Sequence[Node]) -> str:
    """A digest, equal for two recordings if they compute the same in the same order."""
    number = {node: ("input", k) for k, node in enumerate(inputs)}
    lines = []
    for k, node in enumerate(in_order(outputs)):
        if node not in number:
            args = node.args
            if node.target == "constant":
                args = args[0].numpy().tobytes()
            number[node] = k
            lines.append(
                (
                    node.target,
                    repr(
                        tree_map(
                            lambda value: number[value] if isinstance(value, Node) else value,
                            (args, node.kwargs),
                        )
                    ),
                    tuple(node.shape or ()),
                    str(node.dtype),
                )
            )
    told = [tuple(node.shape) for node in inputs], lines, [number[node] for node in outputs]
    return hashlib.sha256(repr(told).encode()).hexdigest()
