"""PyTorch's operations as instructions of a small machine (machine/machine.c).

A value is a place in the machine's memory and strides, so views cost nothing: PyTorch takes them of
tensors without numbers. Matrices of networks and optimizers lie transposed, since most products
then read them in order. What is needed no longer gives its memory away. All numbers are float32.
"""

from __future__ import annotations

import math
import struct
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from tapejit.private import tree_map
from tapejit.recording import Node, Recorded

HEAP = 1 << 17  # floats of the machine's own at the beginning of its memory, at most
LONGEST, WIDEST = 2048, 8192  # as in machine.c
VECTORIZED = (  # by their numbers in machine.c
    "copy add sub mul div sqrt lerp addcmul addcdiv relu where threshold_backward neg "
    "rsub tanh_backward sign abs minimum maximum lt le gt ge eq ne reciprocal rsqrt"
).split()
MATH = (  # number by number, by JavaScript's Math or machine.js
    "tanh pow exp exp2 expm1 log log1p log2 log10 sin cos tan asin acos atan sinh cosh asinh acosh "
    "atanh atan2 hypot floor ceil trunc round fmod remainder erf sigmoid logical_and logical_or "
    "logical_not normal uniform"
).split()
NUMBERS = {name: k for k, name in enumerate(VECTORIZED)} | {n: 64 + k for k, n in enumerate(MATH)}
NUMBERS |= {"bitwise_and": NUMBERS["logical_and"], "bitwise_or": NUMBERS["logical_or"]}
VIEWS = "t permute transpose expand slice select split_with_sizes squeeze unsqueeze".split()
DECOMPOSED = frozenset(  # by PyTorch, into operations that are here
    "native_layer_norm.default native_layer_norm_backward.default clamp.default "
    "clamp.Tensor".split()
)
FILLED = dict.fromkeys("zeros zero empty empty_strided".split(), 0.0) | {"ones": 1.0}


class Missing(ValueError):
    """What the machine cannot do, in one line."""


@dataclass(eq=False)
class Buffer:
    """Memory of some floats; its place is -1 until there is one."""

    size: int
    place: int = -1


@dataclass(eq=False)
class Value:
    """Numbers in a buffer, which lie there as those of `lies`, a tensor without numbers, would."""

    buffer: Buffer
    lies: torch.Tensor

    def seen(self, view: Callable[[torch.Tensor], torch.Tensor]) -> Value:
        return Value(self.buffer, view(self.lies))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.lies.shape)

    @property
    def strides(self) -> tuple[int, ...]:
        return self.lies.stride()

    @property
    def place(self) -> int:
        return self.buffer.place + int(self.lies.storage_offset())


def empty(*shape: int) -> torch.Tensor:
    return torch.empty(shape, device="meta")


def new(lies: torch.Tensor) -> Value:
    return Value(Buffer(-(-max(1, lies.numel()) // 4) * 4), lies)


@dataclass
class Memory:
    """What the programs of a learner share: its tensors, constants, and what they are at first."""

    top: int = HEAP
    first: dict[int, np.ndarray] = field(default_factory=dict)  # by place
    constants: dict = field(default_factory=dict)
    state: dict[int, tuple[str, torch.Tensor, Value]] = field(default_factory=dict)  # by id
    rates: dict[int, tuple[dict, Value]] = field(default_factory=dict)  # by id
    missing: list[str] = field(default_factory=list)

    def kept(self, lies: torch.Tensor) -> Value:
        value = new(lies)
        value.buffer.place, self.top = self.top, self.top + value.buffer.size
        return value

    def number(self, value: Any) -> Value:
        """A value, or the constant of a number or of a tensor."""
        if isinstance(value, Value):
            return value
        numbers = torch.as_tensor(value).detach().to(torch.float32).numpy()
        key = numbers.shape, numbers.tobytes()
        if key not in self.constants:
            self.constants[key] = self.kept(empty(*numbers.shape))
            self.first[self.constants[key].place] = np.ravel(numbers)
        return self.constants[key]

    def tensor(self, path: str, tensor: torch.Tensor) -> Value:
        """The place of one of the learner's tensors."""
        if id(tensor) not in self.state:
            shape = tuple(tensor.shape)
            lies = empty(*shape[::-1]).t() if len(shape) == 2 else empty(*shape)
            self.state[id(tensor)] = path, tensor, self.kept(lies)
        return self.state[id(tensor)][2]

    def rate(self, group: dict) -> Value:
        """The place of the learning rate of an optimizer's group."""
        return self.rates.setdefault(id(group), (group, self.kept(empty())))[1]


class Program:
    """Instructions of one recording: lists of numbers and values, the first of which is written.

    Args:
        inputs: values by the arguments of input nodes.
    """

    def __init__(self, recorded: Recorded, inputs: Mapping, memory: Memory):
        self.memory = memory
        self.code: list[list] = []
        self.values: dict[Node, Any] = {}
        self.known: dict[tuple, Value] = {}
        for node in recorded.nodes():
            try:
                self.values[node] = inputs[node.args] if node.target == "input" else self.do(node)
            except Missing as reason:  # go on, to tell all of them
                memory.missing.append(f"{reason} in {node.where}")
                self.values[node] = new(empty(*node.shape or ()))
        self.outputs = [memory.kept(empty(*node.shape)) for node in recorded.results]
        for out, node in zip(self.outputs, recorded.results, strict=True):
            self.each("copy", self.values[node], out=out)
        homes = {inputs["state", path]: self.values[node] for path, node in recorded.state}
        old = {home.buffer for home in homes}  # which other homes may need
        moved = {k: self.each("copy", v) if v.buffer in old else v for k, v in homes.items()}
        for home, value in moved.items():
            self.each("copy", value, out=home)

    def each(self, name: str, *operands: Any, out: Value | None = None) -> Value:
        """Number by number, once for each combination. Shapes are broadcast."""
        values = [self.memory.number(operand) for operand in operands]
        key = name, *((x.buffer, x.lies.storage_offset(), x.shape, x.strides) for x in values)
        if not out and key in self.known:
            return self.known[key]
        shape = out.shape if out else torch.broadcast_shapes(*(value.shape for value in values))
        values = [value.seen(lambda x: x.expand(shape)) for value in values]
        if not out:  # in the order of axes of an operand, if that is without gaps
            dense = [x.lies for x in values if x.strides == torch.empty_like(x.lies).stride()]
            out = self.known[key] = new(torch.empty_like(dense[0]) if dense else empty(*shape))
        order = sorted(range(len(shape)), key=lambda k: -out.strides[k])
        axes: list[list[int]] = []  # sizes, and strides of out and of values
        for k in order:
            steps = [value.strides[k] for value in (out, *values)]
            if axes and axes[-1][1:] == [step * shape[k] for step in steps]:
                axes[-1] = [axes[-1][0] * shape[k], *steps]  # they lie in order in all of them
            elif shape[k] != 1:
                axes.append([shape[k], *steps])
        if not axes or axes[-1][1] != 1:
            axes.append([1, 1, *(0 for _ in values)])
        if len(axes) > 2:  # the machine does two axes at a time
            axis = next(k for k in order if shape[k] > 1)
            for k in range(shape[axis]):
                parts = [Value(x.buffer, x.lies.select(axis, k)) for x in (out, *values)]
                self.each(name, *parts[1:], out=parts[0])
            return out
        rows, row = axes if len(axes) == 2 else ([1, 0, *(0 for _ in values)], *axes)
        if row[0] > WIDEST and max(row[2:], default=0) > 1:
            raise Missing(f"{name} of numbers that lie so far apart")
        words: list = [0, NUMBERS[name], rows[0], row[0], out, rows[1], len(values)]
        for value, *steps in zip(values, rows[2:], row[2:], strict=True):
            words += [value, *steps]
        self.code.append(words)
        return out

    def product(self, a: Value, b: Value, bias: Any = -1) -> Value:
        (m, k), n = a.shape, b.shape[1]
        if k > LONGEST:
            raise Missing(f"a product over more than {LONGEST} numbers")
        out = new(empty(m, n))
        self.code.append([1, out, m, n, k, a, *a.strides, b, *b.strides, bias])
        return out

    def sum(self, x: Value, dims: Sequence[int], mean: bool) -> Value:
        """The sum along axes or its mean; the axes stay."""
        kept = [k for k in range(len(x.shape)) if k not in dims]
        n = math.prod(x.shape[k] for k in dims)
        rows = self.reshape(x.seen(lambda x: x.permute(*kept, *dims)), [-1, n])
        out = new(empty(*(1 if k in dims else size for k, size in enumerate(x.shape))))
        factor = struct.unpack("i", struct.pack("f", 1 / n if mean else 1))
        self.code.append([2, out, *rows.shape, rows, *rows.strides, *factor])
        return out

    def extreme(self, name: str, x: Value, dims: Sequence[int]) -> Value:
        """The maximum or minimum along axes; the axes stay."""
        for dim in dims:
            while (n := x.shape[dim]) > 1:  # half of them beside the other half
                parts = [x.lies.narrow(dim, first, n - n // 2) for first in (0, n // 2)]
                x = self.each(name, *(Value(x.buffer, part) for part in parts))
        return x

    def dense(self, x: Value) -> Value:
        return x if x.lies.is_contiguous() else self.each("copy", x, out=new(empty(*x.shape)))

    def reshape(self, x: Value, shape: Sequence) -> Value:
        try:
            return x.seen(lambda x: x.view(tuple(shape)))
        except RuntimeError:  # its numbers lie in another order
            return self.dense(x).seen(lambda x: x.view(tuple(shape)))

    def do(self, node: Node) -> Any:
        """The value of a node: views of others, or instructions."""
        if node.target == "constant":
            return self.memory.number(node.args[0])
        if node.target == "draw":
            return draw(self, node)
        name, overload = (*node.target.split("."), "")[:2]
        args, options = tree_map(
            lambda x: self.values[x] if isinstance(x, Node) else x, (node.args, node.kwargs)
        )
        if name in VIEWS:
            found = getattr(getattr(torch.ops.aten, name), overload)(args[0].lies, *args[1:])
            return tree_map(lambda lies: Value(args[0].buffer, lies), found)
        if name in OPERATIONS:
            return OPERATIONS[name](self, node, *args, **options)
        if (value := FILLED.get(name.removesuffix("_like").removeprefix("new_"))) is not None:
            return filled(self, node, value)
        if name not in NUMBERS or options:
            raise Missing(f"the operation {node.target}")
        return self.each(name, *args)

    def words(self, top: int) -> tuple[list[int], int]:
        """The instructions, with temporary buffers from `top` on, and where these end."""
        used = [[x.buffer for x in words if isinstance(x, Value)] for words in self.code]
        last = {buffer: k for k, buffers in enumerate(used) for buffer in buffers}
        free: dict[int, list[int]] = defaultdict(list)  # places by size
        found, first = [], top
        for k, (words, buffers) in enumerate(zip(self.code, used, strict=True)):
            for buffer in buffers:
                if buffer.place < 0:
                    if not free[buffer.size]:
                        free[buffer.size].append(top)
                        top += buffer.size
                    buffer.place = free[buffer.size].pop()
            found += [x.place if isinstance(x, Value) else x for x in words]
            for buffer in dict.fromkeys(buffers):
                if last[buffer] == k and buffer.place >= first:
                    free[buffer.size].append(buffer.place)
        return found, top


def axes_of(x: Value, dims: Any) -> list[int]:
    dims = [dims] if isinstance(dims, int) else dims or range(len(x.shape))
    return sorted(dim % len(x.shape) for dim in dims)


# ------------------------------------------------------------------------------ operations by name


def draw(p, node):
    """New random numbers in each call."""
    _, func, args, options = node.args
    name = func._schema.name.removeprefix("aten::").removesuffix("_like").removesuffix("_")
    kind = {"randn": "normal", "rand": "uniform", "bernoulli": "uniform"}.get(name)
    if options.get("generator") or not kind:
        raise Missing(f"random numbers of the kind {name}")
    drawn = p.each(kind, out=new(empty(*node.shape)))
    if name != "bernoulli":
        return drawn
    return p.each("lt", drawn, *(one for one in args if isinstance(one, float)))


def filled(p, node, *values, **_):
    return p.memory.number(values[-1]).seen(lambda x: x.expand(node.shape))


def getitem(p, node, values, k):
    return p.reshape(values[k], node.shape) if isinstance(values, list) else new(empty(*node.shape))


def cat(p, node, values, dim=0):
    values = [x for x in values if x.shape != (0,)]
    out = new(empty(*node.shape))
    parts = out.lies.split([x.shape[dim] for x in values], dim)
    for x, part in zip(values, parts, strict=True):
        p.each("copy", x, out=Value(out.buffer, part))
    return out


def converted(p, node, x, **_):
    if node.dtype is torch.bool:
        return p.each("ne", x, 0.0)
    return x if node.dtype.is_floating_point else p.each("trunc", x)


def plus(p, node, a, b, alpha=1):
    name = node.target.partition(".")[0]
    return p.each(name, a, b if alpha == 1 else p.each("mul", b, alpha))


def power(p, node, x, y):
    if y in (2, 0.5):
        return p.each("mul", x, x) if y == 2 else p.each("sqrt", x)
    return p.each("pow", x, y)


def mm(p, node, a, b):
    if a.strides[0] == 1 != a.strides[1]:  # a gradient of weights: as these lie
        return p.product(b.seen(torch.t), a.seen(torch.t)).seen(torch.t)
    return p.product(a, b)


def addmm(p, node, c, a, b, beta=1, alpha=1):
    if (beta, alpha) != (1, 1) or c.shape != b.shape[1:]:
        raise Missing("addmm with factors, or with a matrix added")
    return p.product(a, b, p.dense(c))


def reduced(p, node, x, dims=None, *_, **options):
    name = REDUCED.get(node.target.partition(".")[0])
    if node.shape is None:  # where the largest one is, too
        raise Missing(f"the operation {node.target}")
    dims = axes_of(x, dims)
    found = p.extreme(name, x, dims) if name in NUMBERS else p.sum(x, dims, name == "mean")
    return p.reshape(found, node.shape)


def var_mean(p, node, x, dims=None, correction=1, keepdim=False):
    mean = p.sum(x, dims := axes_of(x, dims), mean=True)
    away = p.each("sub", x, mean)
    found = p.sum(p.each("mul", away, away), dims, mean=False)
    count = math.prod(x.shape) // math.prod(found.shape)
    return [p.each("mul", found, 1 / (count - correction)), mean]


REDUCED = {"sum": "sum", "mean": "mean", "amax": "maximum", "max": "maximum"}
REDUCED |= {"amin": "minimum", "min": "minimum"}
OPERATIONS: dict[str, Callable] = {  # by names without overloads, if they are more than NUMBERS
    "getitem": getitem,
    "cat": cat,
    "arange": lambda p, node, *ends, **_: p.memory.number(torch.arange(*ends)),
    "scalar_tensor": filled,
    "copy": lambda p, node, old, new, *_: new.seen(lambda x: x.expand(node.shape)),
    "clone": lambda p, node, x, **_: x,
    "_to_copy": converted,
    "isnan": lambda p, node, x: p.each("ne", x, x),
    "add": plus,
    "sub": plus,
    "addcmul": lambda p, node, *x, value=1: p.each("addcmul", *x, value),
    "addcdiv": lambda p, node, *x, value=1: p.each("addcdiv", *x, value),
    "pow": power,
    "mm": mm,
    "addmm": addmm,
    "var": lambda p, node, *x, **how: p.reshape(var_mean(p, node, *x, **how)[0], node.shape),
    "var_mean": var_mean,
}
OPERATIONS |= dict.fromkeys(
    ("view", "_unsafe_view"), lambda p, node, x, *_: p.reshape(x, node.shape)
)
OPERATIONS |= dict.fromkeys(REDUCED, reduced)
OPERATIONS |= dict.fromkeys(("full", "full_like", "new_full", "fill"), filled)
