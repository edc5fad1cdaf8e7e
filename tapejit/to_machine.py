"""PyTorch's operations as instructions of a small machine (machine/machine.c).

A value is a place in the machine's memory with strides, so views cost nothing. Matrices of networks
and optimizers lie transposed, since most products then read them in order. What is needed no longer
gives its memory away, and the new value of a parameter is written over the old one. All numbers are
float32.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

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
    """Numbers in a buffer."""

    buffer: Buffer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    def view(self, shape: Sequence, strides: Sequence, offset: int = 0) -> Value:
        return Value(self.buffer, tuple(shape), tuple(strides), self.offset + offset)

    def expanded(self, shape: Sequence) -> Value:
        new, steps = len(shape) - len(self.shape), []
        for k, size in enumerate(shape):
            is_same = k >= new and (self.shape[k - new] != 1 or size == 1)
            steps.append(self.strides[k - new] if is_same else 0)
        return self.view(shape, steps)

    def permuted(self, axes: Sequence) -> Value:
        return self.view([self.shape[k] for k in axes], [self.strides[k] for k in axes])

    @property
    def is_dense(self) -> bool:
        axes = sorted((s, n) for s, n in zip(self.strides, self.shape, strict=True) if n > 1)
        return all(s == math.prod(n for _, n in axes[:k]) for k, (s, _) in enumerate(axes))


def in_order(shape: Sequence) -> tuple[int, ...]:
    return tuple(math.prod(shape[k + 1 :]) for k in range(len(shape)))


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

    def kept(self, shape: Sequence, strides: Sequence | None = None) -> Value:
        size = max(1, math.prod(shape))
        buffer, self.top = Buffer(size, self.top), self.top + -(-size // 4) * 4
        return Value(buffer, tuple(shape), tuple(strides or in_order(shape)))

    def constant(self, tensor: torch.Tensor) -> Value:
        numbers = tensor.detach().to(torch.float32).numpy()
        key = numbers.shape, numbers.tobytes()
        if key not in self.constants:
            self.constants[key] = self.kept(numbers.shape)
            self.first[self.constants[key].buffer.place] = np.ravel(numbers)
        return self.constants[key]

    def number(self, value: Any) -> Value:
        return value if isinstance(value, Value) else self.constant(torch.tensor(float(value)))

    def tensor(self, path: str, tensor: torch.Tensor) -> Value:
        """The place of one of the learner's tensors."""
        if id(tensor) not in self.state:
            shape = tuple(tensor.shape)
            value = self.kept(shape, (1, shape[0]) if len(shape) == 2 else None)
            self.state[id(tensor)] = path, tensor, value
        return self.state[id(tensor)][2]

    def rate(self, group: dict) -> Value:
        """The place of the learning rate of an optimizer's group."""
        return self.rates.setdefault(id(group), (group, self.kept(())))[1]


class Program:
    """Instructions of one recording.

    Args:
        inputs: values by the arguments of input nodes.
        homes: where the new values of the learner's tensors belong, by their paths.
    """

    def __init__(self, recorded: Recorded, inputs: Mapping, homes: Mapping, memory: Memory):
        self.memory = memory
        self.code: list[tuple[list[Value], list[Value], Callable, Sequence]] = []
        self.values: dict[Node, Any] = {}
        for node in recorded.nodes():
            try:
                self.values[node] = inputs[node.args] if node.target == "input" else self.do(node)
            except Missing as reason:  # go on, to tell all of them
                memory.missing.append(f"{reason} in {node.where}")
                self.values[node] = self.new(node.shape or ())
        self.homes = [(self.values[node], homes[path]) for path, node in recorded.state]
        self.outputs = [memory.kept(node.shape) for node in recorded.results]
        for out, node in zip(self.outputs, recorded.results, strict=True):
            self.elementwise("copy", [self.values[node]], out.shape, out)

    # ---------------------------------------------------------------------------- instructions

    def emit(self, out: list[Value], reads: list[Value], write: Any, same: Sequence = ()) -> None:
        """write(place) gives the words; out may lie over a value of `same`, number by number."""
        self.code.append((out, reads, write, same))

    def new(self, shape: Sequence, strides: Sequence | None = None) -> Value:
        return Value(
            Buffer(max(1, math.prod(shape))), tuple(shape), tuple(strides or in_order(shape))
        )

    def elementwise(self, name: str, values: list, shape: Sequence, out: Value | None = None):
        values = [self.memory.number(value).expanded(shape) for value in values]
        if out is None:
            like = [v.strides for v in values if v.is_dense and 0 not in v.strides]
            out = self.new(shape, like[0] if like else None)
        order = [k for k in range(len(shape)) if shape[k] > 1]
        sizes: list[int] = []
        columns: list[list[int]] = []
        for k in sorted(order, key=lambda k: -out.strides[k]):
            steps = [v.strides[k] for v in (out, *values)]  # join what lies in order in all of them
            if sizes and columns[-1] == [step * shape[k] for step in steps]:
                sizes[-1], columns[-1] = sizes[-1] * shape[k], steps
            else:
                sizes.append(shape[k])
                columns.append(steps)
        if not sizes or columns[-1][0] != 1:
            sizes, columns = [*sizes, 1], [*columns, [1] + [0] * len(values)]
        if len(sizes) == 1:
            sizes, columns = [1, *sizes], [[0] * (1 + len(values)), *columns]
        starts = [[0] * (1 + len(values))]  # the machine does two axes at a time
        for size, steps in zip(sizes[:-2], columns[:-2], strict=True):
            starts = [
                [a + k * b for a, b in zip(start, steps, strict=True)]
                for start in starts
                for k in range(size)
            ]
        rows, width = columns[-2:]
        if len(starts) > 256 or (sizes[-1] > WIDEST and any(step > 1 for step in width)):
            raise Missing(f"{name} of numbers that lie so far apart")

        def write(place):
            words = []
            for start in starts:
                words += [0, NUMBERS[name], *sizes[-2:], place(out) + start[0], rows[0]]
                words.append(len(values))
                for k, value in enumerate(values, 1):
                    words += [place(value) + start[k], rows[k], width[k]]
            return words

        alike = [v for v in values if (v.strides, v.offset) == (out.strides, 0) and v.is_dense]
        self.emit([out], values, write, alike)
        return out

    def product(self, a: Value, b: Value, bias: Value | None = None, out: Value | None = None):
        (m, k), n = a.shape, b.shape[1]
        out = out or self.new((m, n))
        if k > LONGEST:
            raise Missing(f"a product over more than {LONGEST} numbers")

        def write(place):
            sides = place(a), *a.strides, place(b), *b.strides
            return [1, place(out), m, n, k, *sides, -1 if bias is None else place(bias)]

        self.emit([out], [a, b] if bias is None else [a, b, bias], write)
        return out

    def reduce(self, x: Value, dims: Any, keepdim=False, kind=0, factor=1.0, mean=False):
        """The sum along axes times a factor; kind 1 the largest, 2 the smallest; 3, 4 where."""
        dims = [dims] if isinstance(dims, int) else dims
        dims = [d % len(x.shape) for d in dims] if dims else list(range(len(x.shape)))
        kept = [k for k in range(len(x.shape)) if k not in dims]
        groups = []
        for group in (kept, dims):
            axes = [k for k in group if x.shape[k] > 1]
            axes = axes if kind > 2 else sorted(axes, key=lambda k: -x.strides[k])
            pairs = zip(axes[:-1], axes[1:], strict=True)
            if any(x.strides[a] != x.strides[b] * x.shape[b] for a, b in pairs):  # lie apart
                order = [*kept, *dims]
                copied = self.dense(x.permuted(order)).permuted(
                    [order.index(k) for k in dims + kept]
                )
                back = sorted(range(len(order)), key=lambda k: (dims + kept)[k])
                return self.reduce(copied.permuted(back), dims, keepdim, kind, factor, mean)
            count = math.prod(x.shape[k] for k in axes)
            groups.append((count, x.strides[axes[-1]] if axes else 0, axes))
        (m, ks, axes), (n, ss, _) = groups
        strides = [0] * len(x.shape)
        for k, axis in enumerate(axes):
            strides[axis] = math.prod(x.shape[j] for j in axes[k + 1 :])
        out = self.new([1 if k in dims else size for k, size in enumerate(x.shape)], strides)
        scale = bits(factor / n if mean else factor)
        self.emit([out], [x], lambda place: [2, kind, place(out), m, n, place(x), ks, ss, scale])
        return out if keepdim else out.permuted(kept)

    def dense(self, x: Value) -> Value:
        if x.strides == in_order(x.shape):
            return x
        return self.elementwise("copy", [x], x.shape, self.new(x.shape))

    def reshape(self, x: Value, shape: Sequence) -> Value:
        old = [(n, s) for n, s in zip(x.shape, x.strides, strict=True) if n != 1]
        if [n for n in shape if n != 1] == [n for n, _ in old]:
            rest = iter(old)
            return x.view(shape, [0 if n == 1 else next(rest)[1] for n in shape])
        return self.dense(x).view(shape, in_order(shape))

    # ------------------------------------------------------------------------------ operations

    def argument(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [self.argument(one) for one in value]
        return self.values[value] if isinstance(value, Node) else value

    def do(self, node: Node) -> Any:
        """The value of a node: views of others, or instructions."""
        if node.target == "constant":
            return self.memory.constant(node.args[0])
        if node.target == "draw":
            return draw(self, node)
        name, args = node.target.partition(".")[0], self.argument(node.args)
        options = {key: self.argument(value) for key, value in node.kwargs.items()}
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
        wanted: dict[Buffer, Buffer] = {}  # a buffer, and that of a parameter whose new value it is
        moves = []
        for value, home in self.homes:
            if value is home:
                continue
            ready = [k for k, (outs, *_) in enumerate(self.code) if value in outs]
            is_free = len(ready) == 1 and value.buffer not in wanted
            if is_free and self.fits(ready[0], value, home, last):
                wanted[value.buffer] = home.buffer
            else:
                moves.append((value, home))
                last[value.buffer] = len(self.code)
        if {value.buffer for value, _ in moves} & {home.buffer for _, home in moves}:
            raise Missing("tensors that change places")
        taken: dict[Buffer, tuple[int, int]] = {}
        free: list[tuple[int, int]] = []
        words: list[int] = []

        def place(value):
            return value.buffer.place + value.offset

        for number, (outs, reads, write, same) in enumerate(self.code):
            for buffer in [value.buffer for value in outs if value.buffer.place < 0]:
                if buffer in wanted:
                    buffer.place = wanted[buffer].place
                    continue
                for old in [value.buffer for value in same]:  # it may be written over
                    others = [value for value in reads if value.buffer is old]
                    if (
                        old in taken
                        and last[old] == number
                        and old.size == buffer.size
                        and all(value in same for value in others)
                    ):
                        taken[buffer] = taken.pop(old)
                        break
                else:
                    size = -(-buffer.size // 4) * 4
                    fit = min(
                        (f for f in free if size <= f[1] <= 2 * size),
                        key=lambda f: f[1],
                        default=None,
                    )
                    if fit is None:
                        fit, top = (top, size), top + size
                    else:
                        free.remove(fit)
                    taken[buffer] = fit
                buffer.place = taken[buffer][0]
            words += write(place)
            for buffer in {value.buffer for value in [*reads, *outs]}:
                if last.get(buffer, -1) <= number and buffer in taken:
                    free.append(taken.pop(buffer))
        for value, home in moves:
            self.elementwise("copy", [value], home.shape, home)
            words += self.code.pop()[2](place)
        return words, top

    def fits(self, number: int, value: Value, home: Value, last: Mapping) -> bool:
        """Whether an instruction may write its result over `home`, which nothing needs after it."""
        _, reads, _, same = self.code[number]
        if (value.strides, value.offset, value.shape) != (home.strides, 0, home.shape):
            return False
        end = last.get(home.buffer, -1)
        mine = [v for v in reads if v.buffer is home.buffer]
        return value.is_dense and (end < number or (end == number and all(v in same for v in mine)))


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


def part(x: Value, dim: int, start=None, end=None, step=1) -> Value:
    start, end, step = slice(start, end, step).indices(x.shape[dim])
    shape, strides = list(x.shape), list(x.strides)
    shape[dim], strides[dim] = len(range(start, end, step)), step * strides[dim]
    return x.view(shape, strides, start * x.strides[dim])


def select(x: Value, dim: int, k: int) -> Value:
    axes = [axis for axis in range(len(x.shape)) if axis != dim % len(x.shape)]
    return part(x, dim, k, k + 1 or None).permuted(axes)


def split(p, node, x, sizes, dim=0):
    ends = [sum(sizes[: k + 1]) for k in range(len(sizes))]
    return [part(x, dim, end - n, end) for n, end in zip(sizes, ends, strict=True)]


def transpose(p, node, x, a, b):
    axes = list(range(len(x.shape)))
    axes[a], axes[b] = axes[b], axes[a]
    return x.permuted(axes)


def repeat(p, node, x, repeats):
    x = x.expanded([1] * (len(repeats) - len(x.shape)) + list(x.shape))
    shape = [n for pair in zip(repeats, x.shape, strict=True) for n in pair]
    return p.reshape(x.view(shape, [s for step in x.strides for s in (0, step)]), node.shape)


def cat(p, node, values, dim=0):
    out, end = p.new(node.shape), 0
    for x in values:
        if x.shape != (0,):
            start, end = end, end + x.shape[dim]
            p.elementwise("copy", [x], x.shape, part(out, dim, start, end))
    return out


def slice_scatter(p, node, x, y, dim=0, *how):
    out = p.elementwise("copy", [x], x.shape, p.new(x.shape))
    p.elementwise("copy", [y], y.shape, part(out, dim, *how))
    return out


def select_scatter(p, node, x, y, dim, k):
    shape = [1 if axis == dim % len(x.shape) else n for axis, n in enumerate(x.shape)]
    return slice_scatter(p, node, x, p.reshape(y, shape), dim, k, k + 1 or None)


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


def mm(p, node, a, b):
    if a.strides[0] == 1 != a.strides[1]:  # a gradient of weights: as these lie
        return p.product(b.permuted([1, 0]), a.permuted([1, 0])).permuted([1, 0])
    return p.product(a, b)


def addmm(p, node, c, a, b, beta=1, alpha=1):
    if (beta, alpha) != (1, 1) or c.shape != b.shape[1:]:
        raise Missing("addmm with factors, or with a matrix added")
    return p.product(a, b, p.dense(c))


def bmm(p, node, a, b):
    if node.shape[0] > 64:
        raise Missing("more than 64 products in one")
    out = p.new(node.shape)
    for k in range(node.shape[0]):
        p.product(select(a, 0, k), select(b, 0, k), None, select(out, 0, k))
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


def norm(p, node, x, order=2, dims=None, keepdim=False, **_):
    if order == 2:
        squares = p.elementwise("mul", [x, x], x.shape)
        return p.elementwise("sqrt", [p.reduce(squares, dims, keepdim)], node.shape)
    if order not in (1, math.inf):
        raise Missing(f"a norm of the order {order}")
    return p.reduce(p.elementwise("abs", [x], x.shape), dims, keepdim, kind=int(order != 1))


def layer_norm(p, node, x, shape, factor, shift, epsilon):
    if len(shape) > 1:
        raise Missing("layer normalization over several axes")
    x, n, rows = p.dense(x), x.shape[-1], x.shape[:-1]
    ones, zeros = (p.memory.constant(value) for value in (torch.ones(n), torch.zeros(n)))
    outs = [p.new(x.shape), p.new([*rows, 1]), p.new([*rows, 1])]
    reads, sizes = [x, factor or ones, shift or zeros], [math.prod(rows), n, bits(epsilon)]
    p.emit(outs, reads, lambda place: [3, *map(place, [*outs, *reads]), *sizes])
    return outs


def layer_norm_backward(p, node, g, x, shape, mean, scale, factor, shift, wanted):
    n, rows = x.shape[-1], math.prod(x.shape[:-1])
    outs = [p.new(x.shape), *(p.new([n]) if each else None for each in wanted[1:])]
    reads = [p.dense(g), p.dense(x), mean, scale, factor or p.memory.constant(torch.ones(n))]

    def write(place):
        return [4, *(-1 if x is None else place(x) for x in [*outs, *reads]), rows, n]

    p.emit([value for value in outs if value], reads, write)
    return outs


OPERATIONS: dict[str, Callable] = {  # by names without overloads, if they are more than NUMBERS
    "getitem": lambda p, node, x, k: x[k] if isinstance(x, list) else p.new(node.shape),
    "t": lambda p, node, x: x.permuted(range(len(x.shape))[::-1]),
    "permute": lambda p, node, x, axes: x.permuted(axes),
    "transpose": transpose,
    "expand": lambda p, node, x, *_, **__: x.expanded(node.shape),
    "repeat": repeat,
    "slice": lambda p, node, x, dim=0, *how: part(x, dim, *how),
    "select": lambda p, node, *args: select(*args),
    "split_with_sizes": split,
    "cat": cat,
    "slice_scatter": slice_scatter,
    "select_scatter": select_scatter,
    "arange": lambda p, node, *ends, **_: p.memory.constant(torch.arange(*ends)),
    "scalar_tensor": lambda p, node, value, **_: p.memory.number(value),
    "copy": lambda p, node, old, new, *_: new.expanded(node.shape),
    "clone": lambda p, node, x, **_: x,
    "_to_copy": converted,
    "isnan": lambda p, node, x: p.elementwise("ne", [x, x], x.shape),
    "add": plus,
    "sub": lambda p, node, a, b, alpha=1: (
        plus(p, node, a, b, -alpha) if alpha != 1 else p.elementwise("sub", [a, b], node.shape)
    ),
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
    "linalg_vector_norm": norm,
    "native_layer_norm": layer_norm,
    "native_layer_norm_backward": layer_norm_backward,
}
for name in ("view", "_unsafe_view", "unsqueeze", "squeeze"):
    OPERATIONS[name] = lambda p, node, x, *_, **__: p.reshape(x, node.shape)
for name in ("full", "full_like", "new_full", "fill"):
    OPERATIONS[name] = lambda p, node, _, value, **__: p.memory.number(value).expanded(node.shape)
