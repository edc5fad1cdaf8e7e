"""Record what a function does with PyTorch's tensors: the operations, in order, as pure functions.

PyTorch runs the function as always, its backward passes and optimizers included, while a
`TorchDispatchMode` notes every operation of ATen, PyTorch's library of operations. Operations in
place become new values, and views are taken anew from what was changed, as
`torch.func.functionalize` does it. What a recording cannot hold raises `CannotRecord`.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Callable, Container, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch.overrides import TorchFunctionMode

from tapejit.private import (
    DispatchMode,
    decomposed,
    memory_of,
    numbers_stay_tensors,
    schema_of,
    tree_leaves,
    tree_map_only,
)

READS = set(  # functions of tensors whose result a recording cannot hold
    "item tolist numpy __array__ __bool__ __float__ __int__ __index__ __complex__ __dlpack__ "
    "data_ptr storage untyped_storage __reduce_ex__".split()
)


class CannotRecord(Exception):
    """What ended a recording, in one line."""


class NotNow(Exception):
    """PyTorch computes this call: the next one begins otherwise, or this one fails."""


class Node:
    """A value: an input, a constant, or the result of an operation.

    There is one node for each computation: what was computed alike is the same node, also in two
    recordings, which are equal if their outputs are.
    """

    known: ClassVar[dict[tuple, Node]] = {}
    target: str  # the operation, such as "add.Tensor"
    args: tuple
    kwargs: dict[str, Any]
    where: str  # the function, outside of libraries, that called it
    shape: torch.Size
    dtype: torch.dtype
    needs: list[Node]  # among its arguments

    def __new__(cls, target: str, args: Any = (), tensor: Any = None, where="", kwargs=None):
        shape: Any = getattr(tensor, "shape", None)
        dtype: Any = getattr(tensor, "dtype", None)
        # Of another node among the arguments it tells the address.
        told = args[0].numpy().tobytes() if target == "constant" else repr((args, kwargs))
        key = target, told, shape, dtype, where
        if key not in cls.known:
            node = cls.known[key] = super().__new__(cls)
            node.target, node.args, node.kwargs, node.where = target, args, kwargs or {}, where
            node.shape, node.dtype = shape, dtype
            node.needs = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Node)]
        return cls.known[key]


class Recorded(NamedTuple):
    """A recorded call: the nodes of what it changes, of what it returns, and of its random numbers.

    An input is a node with the target "input" and the argument ("state", place), ("rate", number)
    or ("argument", number).
    """

    state: tuple[tuple[str, Node], ...]  # by the place of the tensor, such as "self.critic.weight"
    results: tuple[Node, ...]
    draws: tuple[Node, ...]  # all, in their order, used or not

    def nodes(self) -> list[Node]:
        """All that is needed for state and results, each after those that it needs itself."""
        found: dict[Node, None] = {}
        waiting = [*self.results[::-1], *(node for _, node in self.state[::-1])]
        while waiting:
            if missing := [node for node in waiting[-1].needs if node not in found]:
                waiting += missing[::-1]
            else:
                found[waiting.pop()] = None
        return [*found]

    def used(self, kind: str) -> dict[Any, Node]:
        """The inputs of a kind that it needs, by their places or numbers."""
        inputs = [node for node in self.nodes() if node.target == "input"]
        return {node.args[1]: node for node in inputs if node.args[0] == kind}


def record(
    function: Callable[[], Any],
    inputs: Sequence[tuple[Node, torch.Tensor]],
    allowed: Container[str],
) -> tuple[Any, Tape]:
    """Run a function without arguments, and record what it does with tensors.

    Args:
        inputs: tensors whose values may be others at the next call, and their nodes. The function
            may change them.
        allowed: names of operations that may be in a recording, such as "add.Tensor"; others are
            decomposed into these where PyTorch knows how.

    Returns:
        What the function returns, and the tape, which has the node of each tensor.

    Raises:
        CannotRecord: the function does something that no recording can hold.
        Exception: what the function raised.
    """
    tape = Tape(allowed, {x.grad for _, x in inputs if x.is_leaf and x.grad is not None})
    tape.nodes |= {tensor: node for node, tensor in inputs}
    with numbers_stay_tensors(), NumbersStayTensors(), tape:
        return function(), tape


class Tape(DispatchMode):
    """Notes the operations of a context."""

    def __init__(self, allowed: Container[str], gradients: Container[torch.Tensor]):
        super().__init__()
        self.allowed, self.gradients = allowed, gradients
        self.draws: list[Node] = []
        self.constants: set[torch.Tensor] = set()
        self.nodes: dict[torch.Tensor, Node] = {}  # the newest values
        self.views: dict[torch.Tensor, tuple[torch.Tensor, Callable]] = {}  # of what, taken how

    def read(self, tensor: torch.Tensor) -> Node:
        """The node of a tensor's value now."""
        if tensor in self.views:
            base, taken = self.views[tensor]
            return taken(self.read(base))
        if tensor not in self.nodes:  # from outside
            if tensor in self.gradients:
                raise CannotRecord(f"a gradient of the call before is used in {where()}")
            self.nodes[tensor] = Node("constant", (tensor.detach().clone(),), tensor)
            self.constants.add(tensor)
        return self.nodes[tensor]

    def write(self, tensor: torch.Tensor, node: Node) -> None:
        """Give a tensor a new value, and with it all that it is a view of."""
        before = self.read(tensor)
        if tensor in self.views:
            base, _ = self.views[tensor]
            self.write(base, with_part(self.read(base), node, before))
        elif tensor in self.constants:
            raise CannotRecord(
                f"a tensor outside of the networks and optimizers is changed in {where()}"
            )
        else:
            self.nodes[tensor] = node

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        namespace, name, overload, written = schema_of(func)
        if namespace == "profiler":
            return func(*args, **kwargs)
        if name in ("_local_scalar_dense", "equal", "nonzero", "masked_select"):
            raise CannotRecord(f"a tensor's numbers are looked at ({name}) in {where()}")
        if name.startswith("_foreach_"):  # tensor by tensor
            one, each = getattr(torch.Tensor, name.removeprefix("_foreach_")), range(len(args[0]))
            at = [[x[k] if isinstance(x, (list, tuple)) else x for x in args] for k in each]
            with self:
                found = [one(*values, **kwargs) for values in at]
            return None if written else found
        if name in ("detach", "alias", "lift", "lift_fresh"):  # another tensor with this memory
            result = func(*args, **kwargs)
            if not name.startswith("lift"):
                self.views[result] = args[0], lambda whole: whole
            elif result not in self.nodes:  # that of a number
                self.nodes[result] = Node("constant", (result.detach().clone(),), result)
            return result
        if torch.Tag.nondeterministic_seeded in func.tags:
            return self.draw(func, args, kwargs, f"{name}.{overload}", written)
        target = f"{name.removesuffix('_')}.{'default' if written == ['out'] else overload}"
        if target not in self.allowed or written not in ([], ["self"], ["out"]):
            with self:
                found = decomposed(func, args, kwargs)
            if found is NotImplemented:
                raise CannotRecord(f"the operation {name} has no translation, in {where()}")
            return found
        given = {key: value for key, value in kwargs.items() if key != "out"}
        nodes, options = tree_map_only(torch.Tensor, self.read, (tuple(args), given))
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
            if base is not None and memory_of(base) == memory_of(tensor):
                self.views[tensor] = base, taken
            else:
                self.nodes[tensor] = taken()
        return result

    def draw(self, func, args, kwargs, name, written) -> torch.Tensor:
        """Random numbers: an input of the recording, which PyTorch draws again for each call."""
        if name not in DRAWS or kwargs.get("generator") is not None:
            raise CannotRecord(f"random numbers are drawn in a way of their own in {where()}")
        result = func(*args, **kwargs)
        shapes = tree_map_only(torch.Tensor, lambda x: x.to("meta"), (tuple(args), kwargs))
        node = Node("draw", (len(self.draws), func, *shapes), result)
        self.draws.append(node)
        if written:
            self.write(args[0], node)
        else:
            self.nodes[result] = node
        return result


DRAWS = set(  # random operations that need no numbers of a tensor, but at most its shape
    "randn.default rand.default randint.default randint.low randperm.default randn_like.default "
    "rand_like.default randint_like.default randint_like.low_dtype normal_.default bernoulli.p "
    "uniform_.default exponential_.default random_.to bernoulli_.float normal.float_float".split()
)


def drawn(node: Node) -> torch.Tensor:
    """New random numbers of a recording, from PyTorch's generator."""
    _, func, (first, *others), kwargs = node.args
    if isinstance(first, torch.Tensor):
        first = torch.empty_like(first, device="cpu")
    return func(first, *others, **kwargs)


def with_part(whole: Node, part: Node, view: Node) -> Node:
    """The value of a tensor after a view of it has got a new one."""
    name, place = view.target.partition(".")[0], where()
    if view is whole:  # detached
        return part
    if name in ("view", "_unsafe_view", "unsqueeze", "squeeze"):
        return Node("view.default", (part, list(whole.shape)), whole, place)
    if name in ("select", "slice"):
        return Node(f"{name}_scatter.default", (whole, part, *view.args[1:]), whole, place)
    raise CannotRecord(f"a part of a tensor is changed ({name}) in {place}")


ADDED: dict[str, Callable] = {"add_": lambda x: x, "addcmul_": torch.mul, "addcdiv_": torch.div}


class NumbersStayTensors(TorchFunctionMode):
    """Lets an optimizer use tensors where PyTorch wants numbers, and nobody read a tensor."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs, name = kwargs or {}, getattr(func, "__name__", "")
        if name in READS:
            raise CannotRecord(f"a tensor's numbers are looked at ({name}) in {where()}")
        if name == "__set__" and getattr(func, "__self__", None) is torch.Tensor.data:
            raise CannotRecord(f"a tensor's data are replaced in {where()}")
        factor = kwargs.get("alpha", kwargs.get("value"))
        if name in ADDED and isinstance(factor, torch.Tensor):
            return args[0].add_(ADDED[name](*args[1:]) * factor)
        return func(*args, **kwargs)


PATHS = sysconfig.get_paths()
LIBRARIES = (  # the code of which is nobody's own
    *(PATHS[name] for name in ("purelib", "platlib", "stdlib", "platstdlib")),
    *(os.path.dirname(module.__file__) for module in (os, torch) if module.__file__),
    os.path.dirname(__file__),
    "<frozen",
)


def is_library(file: str) -> bool:
    """Whether code of this file belongs to Python, to an installed package, or to tapejit."""
    return file.startswith(LIBRARIES)


def where() -> str:
    """The name of the function, outside of libraries, that is running."""
    frame: Any = sys._getframe(1)
    while frame and is_library(frame.f_code.co_filename):
        frame = frame.f_back
    return frame.f_code.co_qualname if frame else "the learner"
