"""PyTorch's operations as instructions of a small machine (machine/machine.c).

A value is a place in the machine's memory and strides, so views cost nothing: PyTorch takes them of
tensors without numbers. Matrices of networks and optimizers lie transposed, since most products
then read them in order. What is needed no longer gives its memory away, and the new value of a
parameter is written over the old one. All numbers are float32.
"""

from __future__ import annotations

import itertools
import math
import struct
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
    "copy add sub mul div sqrt lerp addcmul addcdiv scaled_add relu where threshold_backward neg "
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

    def expanded(self, shape: Sequence) -> Value:
        return self.seen(lambda x: x.expand(tuple(shape)))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.lies.shape)

    @property
    def strides(self) -> tuple[int, ...]:
        return self.lies.stride()


def empty(*shape: int) -> torch.Tensor:
    return torch.empty(shape, device="meta")


def is_dense(x: torch.Tensor) -> bool:
    return x.stride() == torch.empty_like(x).stride()  # in which PyTorch keeps the order of axes


def bits(number: float) -> int:
    return struct.unpack("i", struct.pack("f", number))[0]


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
        size = max(1, lies.numel())
        buffer, self.top = Buffer(size, self.top), self.top + -(-size // 4) * 4
        return Value(buffer, lies)

    def number(self, value: Any) -> Value:
        """A value, or the constant of a number or of a tensor."""
        if isinstance(value, Value):
            return value
        numbers = torch.as_tensor(value).detach().to(torch.float32).numpy()
        key = numbers.shape, numbers.tobytes()
        if key not in self.constants:
            self.constants[key] = self.kept(empty(*numbers.shape))
            self.first[self.constants[key].buffer.place] = np.ravel(numbers)
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
    """Instructions of one recording.

    Args:
        inputs: values by the arguments of input nodes.
        homes: where the new values of the learner's tensors belong, by their paths.
    """

    def __init__(self, recorded: Recorded, inputs: Mapping, homes: Mapping, memory: Memory):
        self.memory = memory
        self.code: list[tuple[list[Value], list[Value], Callable, bool]] = []
        self.values: dict[Node, Any] = {}
        for node in recorded.nodes():
            try:
                self.values[node] = inputs[node.args] if node.target == "input" else self.do(node)
            except Missing as reason:  # go on, to tell all of them
                memory.missing.append(f"{reason} in {node.where}")
                self.values[node] = self.new(*node.shape or ())
        self.homes = [(self.values[node], homes[path]) for path, node in recorded.state]
        self.outputs = [memory.kept(empty(*node.shape)) for node in recorded.results]
        for out, node in zip(self.outputs, recorded.results, strict=True):
            self.elementwise("copy", [self.values[node]], out.shape, out)

    # ---------------------------------------------------------------------------- instructions

    def emit(self, out: list[Value], reads: list[Value], write: Any, each: bool = False) -> None:
        """write(place) gives the words. each: number by number, so out may lie over an operand."""
        self.code.append((out, reads, write, each))

    def new(self, *shape: int, like: torch.Tensor | None = None) -> Value:
        lies = empty(*shape) if like is None else torch.empty_like(like)
        return Value(Buffer(max(1, lies.numel())), lies)

    def elementwise(self, name: str, values: list, shape: Sequence, out: Value | None = None):
        values = [self.memory.number(value).expanded(shape) for value in values]
        dense = [value.lies for value in values if is_dense(value.lies)]
        out = out or self.new(*shape, like=dense[0] if dense else None)
        axes: list[list[int]] = []  # sizes, and strides of out and of values
        for k in sorted(range(len(shape)), key=lambda k: -out.strides[k]):
            steps = [value.strides[k] for value in (out, *values)]
            if axes and axes[-1][1:] == [step * shape[k] for step in steps]:
                axes[-1] = [axes[-1][0] * shape[k], *steps]  # they lie in order in all of them
            elif shape[k] != 1:
                axes.append([shape[k], *steps])
        if not axes or axes[-1][1] != 1:
            axes.append([1, 1, *(0 for _ in values)])
        axes = [[1, 0, *(0 for _ in values)], *axes] if len(axes) == 1 else axes
        *outer, rows, row = axes  # the machine does two axes at a time
        if math.prod(n for n, *_ in outer) > 256 or (
            row[0] > WIDEST and max(row[2:], default=0) > 1
        ):
            raise Missing(f"{name} of numbers that lie so far apart")

        def write(place):
            words = []
            for at in itertools.product(*(range(n) for n, *_ in outer)):
                starts = [place(value) for value in (out, *values)]
                for k, (_, *steps) in zip(at, outer, strict=True):
                    starts = [start + k * step for start, step in zip(starts, steps, strict=True)]
                words += [0, NUMBERS[name], rows[0], row[0], starts[0], rows[1], len(values)]
                for k in range(len(values)):
                    words += [starts[k + 1], rows[k + 2], row[k + 2]]
            return words

        self.emit([out], values, write, True)
        return out

    def product(self, a: Value, b: Value, bias: Value | None = None, out: Value | None = None):
        (m, k), n = a.shape, b.shape[1]
        out = out or self.new(m, n)
        if k > LONGEST:
            raise Missing(f"a product over more than {LONGEST} numbers")

        def write(place):
            sides = place(a), *a.strides, place(b), *b.strides
            return [1, place(out), m, n, k, *sides, -1 if bias is None else place(bias)]

        self.emit([out], [a, b] if bias is None else [a, b, bias], write)
        return out

    def reduce(self, x: Value, dims: Any, keepdim=False, kind=0, mean=False):
        """The sum along axes or its mean; kind 1 the largest, 2 the smallest; 3, 4 where."""
        dims = [dims] if isinstance(dims, int) else dims or range(len(x.shape))
        dims = sorted(dim % len(x.shape) for dim in dims)
        kept = [k for k in range(len(x.shape)) if k not in dims]
        n = math.prod(x.shape[k] for k in dims)
        rows = self.reshape(x.seen(lambda x: x.permute(*kept, *dims)), [-1, n])
        out, factor = self.new(*(x.shape[k] for k in kept)), bits(1 / n if mean else 1)
        sizes = rows.lies.shape[0], n
        self.emit(
            [out],
            [rows],
            lambda place: [2, kind, place(out), *sizes, place(rows), *rows.strides, factor],
        )
        shape = [1 if k in dims else size for k, size in enumerate(x.shape)]
        return self.reshape(out, shape) if keepdim else out

    def dense(self, x: Value) -> Value:
        is_so = x.lies.is_contiguous()
        return x if is_so else self.elementwise("copy", [x], x.shape, self.new(*x.shape))

    def reshape(self, x: Value, shape: Sequence) -> Value:
        try:
            return x.seen(lambda x: x.view(tuple(shape)))
        except RuntimeError:  # its numbers lie in another order
            return self.dense(x).seen(lambda x: x.view(tuple(shape)))

    # ------------------------------------------------------------------------------ operations

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
            return self.memory.number(value).expanded(node.shape)
        if name not in NUMBERS or options:
            raise Missing(f"the operation {node.target}")
        return self.elementwise(name, args, node.shape)

    # ---------------------------------------------------------------------------------- memory

    def words(self, top: int) -> tuple[list[int], int]:
        """The instructions, with temporary buffers from `top` on, and where these end."""
        last = {value.buffer: k for k, (_, reads, _, _) in enumerate(self.code) for value in reads}
        moved = []  # to their homes at the end
        for value, home in self.homes:
            if value is not home and value.buffer.place < 0 and self.fits(value, home, last):
                value.buffer.place = home.buffer.place
            elif value is not home:
                moved.append((value, home))
                last[value.buffer] = len(self.code)
        if {value.buffer for value, _ in moved} & {home.buffer for _, home in moved}:
            raise Missing("tensors that change places")
        for value, home in moved:
            self.elementwise("copy", [value], home.shape, home)
        lent: dict[Buffer, int] = {}
        free: dict[int, list[int]] = {}  # places by size
        words: list[int] = []
        for number, (outs, reads, write, _) in enumerate(self.code):
            for buffer in (value.buffer for value in outs):
                if buffer.place < 0:
                    lent[buffer] = size = -(-buffer.size // 4) * 4
                    if free.get(size):
                        buffer.place = free[size].pop()
                    else:
                        buffer.place, top = top, top + size
            words += write(lambda value: value.buffer.place + value.lies.storage_offset())
            for buffer in dict.fromkeys(value.buffer for value in (*reads, *outs)):
                if last.get(buffer, -1) <= number and buffer in lent:
                    free.setdefault(lent.pop(buffer), []).append(buffer.place)
        return words, top

    def fits(self, value: Value, home: Value, last: Mapping) -> bool:
        """Whether the instruction that makes a value may write it over its home."""
        writers = [k for k, (outs, *_) in enumerate(self.code) if value in outs]
        if len(writers) != 1 or (value.shape, value.strides) != (home.shape, home.strides):
            return False
        _, reads, _, each = self.code[writers[0]]
        mine = [read.lies for read in reads if read.buffer is home.buffer]
        is_alike = each and all(x.stride() == home.strides and not x.storage_offset() for x in mine)
        return last.get(home.buffer, -1) < writers[0] + is_alike


# ------------------------------------------------------------------------------ operations by name


def draw(p: Program, node: Node) -> Value:
    """New random numbers in each call."""
    _, func, args, options = node.args
    name = func._schema.name.removeprefix("aten::").removesuffix("_like").removesuffix("_")
    if options.get("generator") or name not in ("randn", "rand", "normal", "uniform", "bernoulli"):
        raise Missing(f"random numbers of the kind {name}")
    drawn = p.elementwise("normal" if name in ("randn", "normal") else "uniform", [], node.shape)
    if name in ("randn", "rand"):
        return drawn
    given = [one for one in args if isinstance(one, (int, float))]
    if name == "bernoulli":
        return p.elementwise("lt", [drawn, *given[:1]], node.shape)
    first, second = (given + [0.0, 1.0][len(given) :])[:2]
    return p.elementwise(
        "scaled_add", [first, drawn, second - first * (name == "uniform")], node.shape
    )


def cat(p, node, values, dim=0):
    values = [x for x in values if x.shape != (0,)]
    out = p.new(*node.shape)
    parts = out.lies.split([x.shape[dim] for x in values], dim)
    for x, part in zip(values, parts, strict=True):
        p.elementwise("copy", [x], x.shape, Value(out.buffer, part))
    return out


def scatter(p, node, x, y, *where):
    """A value of which a part, by `slice` or `select`, is another one."""
    view = getattr(torch.ops.aten, node.target.partition("_")[0])
    out = p.elementwise("copy", [x], x.shape, p.new(*x.shape))
    p.elementwise("copy", [y], y.shape, out.seen(lambda x: view(x, *where)))
    return out


def converted(p, node, x, **_):
    if node.dtype is torch.bool:
        return p.elementwise("ne", [x, 0.0], x.shape)
    return x if node.dtype.is_floating_point else p.elementwise("trunc", [x], x.shape)


def plus(p, node, a, b, alpha=1):
    values = [a, b] if alpha == 1 else [a, b, alpha]
    return p.elementwise("add" if alpha == 1 else "scaled_add", values, node.shape)


def power(p, node, x, y):
    known = {2: ("mul", [x, x]), 0.5: ("sqrt", [x])} if isinstance(y, (int, float)) else {}
    return p.elementwise(*known.get(y, ("pow", [x, y])), node.shape)


def clamp(p, node, x, least=None, most=None):
    x = x if least is None else p.elementwise("maximum", [x, least], node.shape)
    return x if most is None else p.elementwise("minimum", [x, most], node.shape)


def turned(x):
    return x.seen(torch.t)


def mm(p, node, a, b):
    if a.strides[0] == 1 != a.strides[1]:  # a gradient of weights: as these lie
        return turned(p.product(turned(b), turned(a)))
    return p.product(a, b)


def addmm(p, node, c, a, b, beta=1, alpha=1):
    if (beta, alpha) != (1, 1) or c.shape != b.shape[1:]:
        raise Missing("addmm with factors, or with a matrix added")
    return p.product(a, b, p.dense(c))


def bmm(p, node, a, b):
    if node.shape[0] > 64:
        raise Missing("more than 64 products in one")
    out = p.new(*node.shape)
    for k in range(node.shape[0]):
        a_, b_, out_ = (x.seen(lambda x, k=k: x[k]) for x in (a, b, out))
        p.product(a_, b_, None, out_)
    return out


def extreme(kind):
    def found(p, node, x, dim=None, keepdim=False):
        if node.target.endswith("default"):
            return p.reduce(x, None, kind=kind)
        return [p.reduce(x, dim, keepdim, kind=each) for each in (kind, kind + 2)]

    return found


def variance(p, node, x, dims=None, correction=1, keepdim=False):
    away = p.elementwise("sub", [x, p.reduce(x, dims, True, mean=True)], x.shape)
    found = p.reduce(p.elementwise("mul", [away, away], x.shape), dims, keepdim)
    count = math.prod(x.shape) // math.prod(found.shape)
    return p.elementwise("mul", [found, 1 / (count - correction)], found.shape)


def layer_norm(p, node, x, shape, factor, shift, epsilon):
    if len(shape) > 1:
        raise Missing("layer normalization over several axes")
    x, n, rows = p.dense(x), x.shape[-1], x.shape[:-1]
    outs = [p.new(*x.shape), p.new(*rows, 1), p.new(*rows, 1)]
    reads = [x, factor or p.memory.number(torch.ones(n)), shift or p.memory.number(torch.zeros(n))]
    sizes = [math.prod(rows), n, bits(epsilon)]
    p.emit(outs, reads, lambda place: [3, *map(place, [*outs, *reads]), *sizes])
    return outs


def layer_norm_backward(p, node, g, x, shape, mean, scale, factor, shift, wanted):
    n, rows = x.shape[-1], math.prod(x.shape[:-1])
    outs = [p.new(*x.shape), *(p.new(n) if each else None for each in wanted[1:])]
    reads = [p.dense(g), p.dense(x), mean, scale, factor or p.memory.number(torch.ones(n))]

    def write(place):
        return [4, *(-1 if x is None else place(x) for x in [*outs, *reads]), rows, n]

    p.emit([value for value in outs if value], reads, write)
    return outs


OPERATIONS: dict[str, Callable] = {  # by names without overloads, if they are more than NUMBERS
    "getitem": lambda p, node, x, k: x[k] if isinstance(x, list) else p.new(*node.shape),
    "cat": cat,
    "slice_scatter": scatter,
    "select_scatter": scatter,
    "arange": lambda p, node, *ends, **_: p.memory.number(torch.arange(*ends)),
    "scalar_tensor": lambda p, node, value, **_: p.memory.number(value),
    "copy": lambda p, node, old, new, *_: new.expanded(node.shape),
    "clone": lambda p, node, x, **_: x,
    "_to_copy": converted,
    "isnan": lambda p, node, x: p.elementwise("ne", [x, x], x.shape),
    "add": plus,
    "sub": lambda p, node, a, b, alpha=1: plus(p, node, a, b, -alpha),
    "addcmul": lambda p, node, *x, value=1: p.elementwise("addcmul", [*x, value], node.shape),
    "addcdiv": lambda p, node, *x, value=1: p.elementwise("addcdiv", [*x, value], node.shape),
    "pow": power,
    "clamp": clamp,
    "mm": mm,
    "addmm": addmm,
    "bmm": bmm,
    "sum": lambda p, node, x, dims=None, keepdim=False, **_: p.reduce(x, dims, keepdim),
    "mean": lambda p, node, x, dims=None, keepdim=False, **_: p.reduce(x, dims, keepdim, mean=True),
    "amax": lambda p, node, x, dims=None, keepdim=False: p.reduce(x, dims, keepdim, kind=1),
    "amin": lambda p, node, x, dims=None, keepdim=False: p.reduce(x, dims, keepdim, kind=2),
    "argmax": lambda p, node, x, dims=None, keepdim=False: p.reduce(x, dims, keepdim, kind=3),
    "max": extreme(1),
    "min": extreme(2),
    "var": variance,
    "var_mean": lambda p, node, x, dims=None, correction=1, keepdim=False: [
        variance(p, node, x, dims, correction, keepdim),
        p.reduce(x, dims, keepdim, mean=True),
    ],
    "native_layer_norm": layer_norm,
    "native_layer_norm_backward": layer_norm_backward,
}
for name in ("view", "_unsafe_view"):
    OPERATIONS[name] = lambda p, node, x, *_: p.reshape(x, node.shape)
for name in ("full", "full_like", "new_full", "fill"):
    OPERATIONS[name] = lambda p, node, *x, **_: p.memory.number(x[-1]).expanded(node.shape)
