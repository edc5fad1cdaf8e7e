"""Recordings as programs of a small machine (machine/machine.c), which runs as WebAssembly.

So a learner goes on learning where there is no Python, such as in a browser. A value is a place in
the machine's memory with strides, so views cost nothing. Matrices of networks and optimizers lie
transposed, since most products then read them in order. What is needed no longer gives its memory
away, and the new value of a parameter is written over the old one. All numbers are float32.
"""

from __future__ import annotations

import base64
import contextlib
import inspect
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from tapejit.compiled import Learner, NotNow, given
from tapejit.private import tree_leaves
from tapejit.reading import Reading, Saved
from tapejit.recording import CannotRecord, Node, Recorded

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
FROM_ZERO = ("Adam", "AdamW", "Adamax", "Adadelta", "RAdam", "RMSprop", "SGD")  # optimizers


class Missing(ValueError):
    """What the machine cannot do, in one line."""


@dataclass(eq=False)
class Buffer:
    """Memory of some floats; its place is None until there is one."""

    size: int
    place: int | None = None


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
        self.memory, self.code = memory, []
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
                copied = self.dense(x.permuted(order)).permuted([order.index(k) for k in dims + kept])
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

    def pick(self, kind: int, x: Value, dim: int, index: Value, other: Value) -> None:
        """Other becomes x at an index along an axis; kind 1, 2: it is set or added there."""
        if len(index.shape) > 2:
            raise Missing("an index of three axes")
        dim, far = dim % len(x.shape), 2 - len(index.shape)
        rest = [0 if k == dim else step for k, step in enumerate(x.strides)]

        def write(place):
            words = [5, kind, *[1] * far, *index.shape]
            for value, steps in ((other, other.strides), (index, index.strides), (x, rest)):
                words += [place(value), *[0] * far, *steps]
            return [*words, x.strides[dim], x.shape[dim]]

        self.emit([x if kind else other], [x, index, other], write)

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
        if node.target == "constant":
            return self.memory.constant(node.args[0])
        if node.target == "draw":
            return self.draw(node)
        name = node.target.partition(".")[0]
        args = self.argument(node.args)
        options = {key: self.argument(value) for key, value in node.kwargs.items()}
        if hasattr(self, f"do_{name}"):
            return getattr(self, f"do_{name}")(node, *args, **options)
        if (value := FILLED.get(name.removesuffix("_like").removeprefix("new_"))) is not None:
            return self.memory.number(value).expanded(node.shape)
        if name not in NUMBERS or options:
            raise Missing(f"the operation {node.target}")
        return self.elementwise(name, args, node.shape)

    def draw(self, node: Node) -> Value:
        _, func, args, options = node.args
        name = func._schema.name.removeprefix("aten::").removesuffix("_like").removesuffix("_")
        if options.get("generator") or name not in ("randn", "rand", "normal", "uniform", "bernoulli"):
            raise Missing(f"random numbers of the kind {name}")
        numbers = [one for one in args[1:] if isinstance(one, (int, float))]
        drawn = self.elementwise("normal" if name in ("randn", "normal") else "uniform", [], node.shape)
        if name == "bernoulli":
            return self.elementwise("lt", [drawn, numbers[0] if numbers else 0.5], node.shape)
        if name in ("randn", "rand"):
            return drawn
        first, second = [*numbers, *(0.0, 1.0)[len(numbers) :]]
        second = second if name == "normal" else second - first
        return self.elementwise("scaled_add", [first, drawn, second], node.shape)

    def do_getitem(self, node, values, k):
        return values[k] if isinstance(values, list) else self.new(node.shape)  # that is missing

    def do_view(self, node, x, *_, **__):
        return self.reshape(x, node.shape)

    do__unsafe_view = do_unsqueeze = do_squeeze = do_view

    def do_t(self, node, x):
        return x.permuted(range(len(x.shape))[::-1])

    def do_permute(self, node, x, axes):
        return x.permuted(axes)

    def do_transpose(self, node, x, a, b):
        axes = list(range(len(x.shape)))
        axes[a], axes[b] = axes[b], axes[a]
        return x.permuted(axes)

    def do_expand(self, node, x, *_, **__):
        return x.expanded(node.shape)

    def do_repeat(self, node, x, repeats):
        x = x.expanded([1] * (len(repeats) - len(x.shape)) + list(x.shape))
        shape = [n for pair in zip(repeats, x.shape, strict=True) for n in pair]
        x = x.view(shape, [step for stride in x.strides for step in (0, stride)])
        return self.reshape(x, node.shape)

    def part(self, x, dim, start=None, end=None, step=1):
        size = x.shape[dim]
        start, end, step = slice(start, end, step).indices(size)
        shape, strides = list(x.shape), list(x.strides)
        shape[dim], strides[dim] = len(range(start, end, step)), step * strides[dim]
        return x.view(shape, strides, start * x.strides[dim])

    def do_slice(self, node, x, dim=0, *how):
        return self.part(x, dim, *how)

    def do_select(self, node, x, dim, k):
        axes = [axis for axis in range(len(x.shape)) if axis != dim % len(x.shape)]
        return self.part(x, dim, k, k + 1 or None).permuted(axes)

    def do_split_with_sizes(self, node, x, sizes, dim=0):
        ends = [sum(sizes[: k + 1]) for k in range(len(sizes))]
        return [self.part(x, dim, e - n, e) for n, e in zip(sizes, ends, strict=True)]

    def do_cat(self, node, values, dim=0):
        out, start = self.new(node.shape), 0
        for x in values:
            if x.shape != (0,):
                end = start + x.shape[dim]
                self.elementwise("copy", [x], x.shape, self.part(out, dim, start, end))
                start = end
        return out

    def copied(self, x, shape=None):
        return self.elementwise("copy", [x], shape or x.shape, self.new(shape or x.shape))

    def do_slice_scatter(self, node, x, y, dim=0, *how):
        out = self.copied(x)
        part = self.part(out, dim, *how)
        self.elementwise("copy", [y], part.shape, part)
        return out

    def do_select_scatter(self, node, x, y, dim, k):
        y = self.reshape(y, [1 if a == dim % len(x.shape) else n for a, n in enumerate(x.shape)])
        return self.do_slice_scatter(node, x, y, dim, k, k + 1 or None)

    def do_constant_pad_nd(self, node, x, pad, value=0):
        part = out = self.copied(self.memory.number(value), node.shape)
        for k in range(len(pad) // 2):
            part = self.part(part, -1 - k, pad[2 * k], part.shape[-1 - k] - pad[2 * k + 1])
        self.elementwise("copy", [x], x.shape, part)
        return out

    def do_arange(self, node, start, end, step=1, **_):
        return self.memory.constant(torch.arange(start, end, step))

    def do_full(self, node, shape, value, **_):
        return self.memory.number(value).expanded(node.shape)

    do_full_like = do_new_full = do_fill = do_full

    def do_scalar_tensor(self, node, value, **_):
        return self.memory.number(value)

    def do_copy(self, node, old, new, *_):
        return new.expanded(node.shape)

    def do_clone(self, node, x, **_):
        return x

    def do__to_copy(self, node, x, **_):
        if node.dtype is torch.bool:
            return self.elementwise("ne", [x, 0.0], x.shape)
        return x if node.dtype.is_floating_point else self.elementwise("trunc", [x], x.shape)

    def do_isnan(self, node, x):
        return self.elementwise("ne", [x, x], x.shape)

    def do_add(self, node, a, b, alpha=1):
        if alpha == 1:
            return self.elementwise("add", [a, b], node.shape)
        return self.elementwise("scaled_add", [a, b, alpha], node.shape)

    def do_sub(self, node, a, b, alpha=1):
        if alpha == 1:
            return self.elementwise("sub", [a, b], node.shape)
        return self.elementwise("scaled_add", [a, b, -alpha], node.shape)

    def do_addcmul(self, node, *values, value=1):
        return self.elementwise(node.target.partition(".")[0], [*values, value], node.shape)

    do_addcdiv = do_addcmul

    def do_pow(self, node, x, y):
        if isinstance(y, (int, float)) and y in (2, 0.5):
            values = [x, x] if y == 2 else [x]
            return self.elementwise("mul" if y == 2 else "sqrt", values, node.shape)
        return self.elementwise("pow", [x, y], node.shape)

    def do_clamp(self, node, x, least=None, most=None):
        x = x if least is None else self.elementwise("maximum", [x, least], node.shape)
        return x if most is None else self.elementwise("minimum", [x, most], node.shape)

    def do_mm(self, node, a, b):
        if a.strides[0] == 1 != a.strides[1]:  # a gradient of weights: as these lie
            return self.do_t(node, self.product(self.do_t(node, b), self.do_t(node, a)))
        return self.product(a, b)

    def do_addmm(self, node, c, a, b, beta=1, alpha=1):
        if (beta, alpha) != (1, 1) or c.shape != b.shape[1:]:
            raise Missing("addmm with factors, or with a matrix added")
        return self.product(a, b, self.dense(c))

    def do_bmm(self, node, a, b):
        if node.shape[0] > 64:
            raise Missing("more than 64 products in one")
        out = self.new(node.shape)
        for k in range(node.shape[0]):
            one, other, both = (self.do_select(node, x, 0, k) for x in (a, b, out))
            self.product(one, other, None, both)
        return out

    def do_sum(self, node, x, dims=None, keepdim=False, **_):
        return self.reduce(x, dims, keepdim)

    def do_mean(self, node, x, dims=None, keepdim=False, **_):
        return self.reduce(x, dims, keepdim, mean=True)

    def do_amax(self, node, x, dims=None, keepdim=False):
        return self.reduce(x, dims, keepdim, kind=1)

    def do_amin(self, node, x, dims=None, keepdim=False):
        return self.reduce(x, dims, keepdim, kind=2)

    def do_argmax(self, node, x, dims=None, keepdim=False):
        return self.reduce(x, dims, keepdim, kind=3)

    def do_max(self, node, x, dim=None, keepdim=False, kind=1):
        if node.target.endswith("default"):
            return self.reduce(x, None, kind=kind)
        return [self.reduce(x, dim, keepdim, kind=each) for each in (kind, kind + 2)]

    def do_min(self, node, *args):
        return self.do_max(node, *args, kind=2)

    def do_var(self, node, x, dims=None, correction=1, keepdim=False):
        away = self.elementwise("sub", [x, self.reduce(x, dims, True, mean=True)], x.shape)
        squares = self.elementwise("mul", [away, away], x.shape)
        found = self.reduce(squares, dims, keepdim)
        count = math.prod(x.shape) // math.prod(found.shape)
        return self.elementwise("mul", [found, 1 / (count - correction)], found.shape)

    def do_var_mean(self, node, x, dims=None, correction=1, keepdim=False):
        mean = self.reduce(x, dims, keepdim, mean=True)
        return [self.do_var(node, x, dims, correction, keepdim), mean]

    def do_linalg_vector_norm(self, node, x, order=2, dims=None, keepdim=False, **_):
        if order == 2:
            squares = self.elementwise("mul", [x, x], x.shape)
            return self.elementwise("sqrt", [self.reduce(squares, dims, keepdim)], node.shape)
        if order not in (1, math.inf):
            raise Missing(f"a norm of the order {order}")
        sizes = self.elementwise("abs", [x], x.shape)
        return self.reduce(sizes, dims, keepdim, kind=int(order != 1))

    def do_cumsum(self, node, x, dim, **_):
        last = len(x.shape) - 1
        if dim % len(x.shape) != last or last > 1:
            raise Missing("a running sum along another axis than the last one")
        ones = self.memory.constant(torch.ones(2 * [x.shape[-1]]).triu())
        rows = x if last else x.view((1, *x.shape), (0, *x.strides))
        return self.reshape(self.product(rows, ones), node.shape)

    def do_gather(self, node, x, dim, index, **_):
        out = self.new(index.shape)
        self.pick(0, x, dim, index, out)
        return out

    def do_index_select(self, node, x, dim, index):
        if len(index.shape) != 1:
            raise Missing("an index of several axes")
        shape = [1] * len(x.shape)
        shape[dim] = index.shape[0]
        return self.do_gather(node, x, dim, self.reshape(index, shape).expanded(node.shape))

    def do_embedding(self, node, x, index, *_):
        return self.do_index_select(node, x, 0, index)

    def do_index(self, node, x, indices):
        if indices[:-1] != [None] * (len(indices) - 1):
            raise Missing("several indices at once")
        return self.do_index_select(node, x, len(indices) - 1, indices[-1])

    def do_scatter(self, node, x, dim, index, y, kind=1):
        out = self.copied(x)
        y = y if isinstance(y, Value) else self.memory.number(y).expanded(index.shape)
        self.pick(kind, out, dim, index, y)
        return out

    def do_scatter_add(self, node, x, dim, index, y):
        return self.do_scatter(node, x, dim, index, y, kind=2)

    def do_native_layer_norm(self, node, x, shape, factor, shift, epsilon):
        x, n = self.dense(x), x.shape[-1]
        if len(shape) > 1:
            raise Missing("layer normalization over several axes")
        rows, one = x.shape[:-1], self.memory.constant
        out, mean, scale = self.new(x.shape), self.new([*rows, 1]), self.new([*rows, 1])
        reads = [x, factor or one(torch.ones(n)), shift or one(torch.zeros(n))]

        def write(place):
            places = map(place, (out, mean, scale, *reads))
            return [3, *places, math.prod(rows), n, bits(epsilon)]

        self.emit([out, mean, scale], reads, write)
        return [out, mean, scale]

    def do_native_layer_norm_backward(self, node, g, x, shape, mean, scale, factor, shift, wanted):
        n = x.shape[-1]
        outs = [self.new(x.shape), *(self.new([n]) if each else None for each in wanted[1:])]
        factor = factor or self.memory.constant(torch.ones(n))
        reads = [self.dense(g), self.dense(x), mean, scale, factor]

        def write(place):
            places = [-1 if value is None else place(value) for value in (*outs, *reads)]
            return [4, *places, math.prod(x.shape[:-1]), n]

        self.emit([value for value in outs if value], reads, write)
        return outs

    # ---------------------------------------------------------------------------------- memory

    def words(self, top: int) -> tuple[list[int], int]:
        """The instructions, with temporary buffers from `top` on, and where these end."""
        last = {value.buffer: k for k, (_, reads, _, _) in enumerate(self.code) for value in reads}
        wanted: dict[Buffer, Buffer] = {}  # a buffer, and that of a parameter whose new value it is
        moves = []
        for value, home in self.homes:
            ready = [k for k, (outs, *_) in enumerate(self.code) if value in outs]
            if value is home:
                continue
            if len(ready) == 1 and value.buffer not in wanted and self.fits(*ready, value, home, last):
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
            for buffer in [value.buffer for value in outs if value.buffer.place is None]:
                if buffer in wanted:
                    buffer.place = wanted[buffer].place
                    continue
                for old in [value.buffer for value in same]:  # it may be written over
                    others = [value for value in reads if value.buffer is old]
                    if old in taken and last[old] == number and old.size == buffer.size and all(
                        value in same for value in others
                    ):
                        taken[buffer] = taken.pop(old)
                        break
                else:
                    size = -(-buffer.size // 4) * 4
                    fit = min((f for f in free if size <= f[1] <= 2 * size), key=lambda f: f[1], default=None)
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


# ------------------------------------------------------------------------------------- a learner


def export(learner: Any, calls: Mapping[str, tuple], exact: bool = False) -> dict:
    """Methods of a learner as programs for machine/machine.js: a dictionary for JSON.

    Args:
        learner: any object with methods that use PyTorch's networks and optimizers. It stays as it
            was.
        calls: example arguments by the name of a method, as `tapejit.Learner.call` takes them:
            arrays of the shapes that the program will be given. A bool among them makes two
            programs, such as "learn true" and "learn false".
        exact: with the numbers that the learner has now; False: weights that look uniformly
            distributed are drawn anew on the other side, which makes a small file.

    Raises:
        ValueError: something cannot be recorded, or the machine does not have it; all that is
            missing is named.
    """
    recorder, memory, programs, read = Learner(learner, "compiled"), Memory(), {}, []
    with contextlib.ExitStack() as undone:
        for method in calls:
            read.append(Reading(learner, method))
            undone.enter_context(Saved(read[-1]).undone())
        before = {id(each.tensor): each for reading in read for each in reading.tensors.values()}
        for method, arguments in calls.items():
            for name, variant in variants(method, arguments):
                programs[name] = program(recorder, name, method, variant, memory)
    if memory.missing:
        raise Missing("the machine does not have " + ", ".join(dict.fromkeys(memory.missing)))
    for path, tensor, value in memory.state.values():
        if id(tensor) in before:
            numbers = tensor.detach().T if tensor.ndim == 2 else tensor.detach()
            memory.first[value.buffer.place] = numbers.to(torch.float32).numpy().ravel().copy()
    if any(id(tensor) not in before for _, tensor, _ in memory.state.values()):
        for _, each in (one for reading in read for one in reading.seen.values()):
            if isinstance(each, torch.optim.Optimizer) and type(each).__name__ not in FROM_ZERO:
                raise Missing(f"a fresh {type(each).__name__}: let the learner learn once before")
    found, end = {}, memory.top
    for name, (made, told) in programs.items():
        words, top = made.words(memory.top)
        told["words"] = base64.b64encode(np.array(words, np.int32).tobytes()).decode()
        found[name], end = told, max(end, top)
    return {
        "programs": found,
        "math": MATH,
        "top": end,
        "rates": [[value.buffer.place, float(group["lr"])] for group, value in memory.rates.values()],
        "state": {path: lies(value) for path, _, value in memory.state.values()},
        "first": first_numbers(memory, read, exact),
    }


def variants(method: str, arguments: tuple) -> list[tuple[str, tuple]]:
    """Names of a method's programs and the arguments of each: a bool makes two of one."""
    flags = [k for k, one in enumerate(arguments) if isinstance(one, bool)]
    if not flags:
        return [(method, arguments)]
    if len(flags) > 1:
        raise Missing(f"{method} with more than one bool argument")
    before, after = arguments[: flags[0]], arguments[flags[0] + 1 :]
    return [(f"{method} {str(one).lower()}", (*before, one, *after)) for one in (True, False)]


def program(recorder: Learner, name: str, method: str, arguments: tuple, memory: Memory) -> tuple:
    """A method's program, and where its arguments and results lie."""
    call = given(arguments, scan=False)
    try:
        while True:
            try:
                entry = recorder.entry((name,), method, call, ())
                break
            except NotNow as reason:  # such as an optimizer before its first step
                if reason.__cause__:
                    raise reason.__cause__ from None
                recorder.by_torch(method, call)
    except CannotRecord as reason:
        raise Missing(f"{method} cannot be recorded: {reason}") from None
    reading = entry.trial.reading
    state = [each for each in entry.trial.recorded.state if each[0] not in entry.free]
    recorded = entry.trial.recorded._replace(state=tuple(state))
    parameters = inspect.signature(getattr(recorder.learner, method)).parameters
    names = [
        name
        for name, argument in zip(parameters, arguments, strict=False)
        for _ in tree_leaves(argument)
    ]
    data = {k: memory.kept(tuple(call.leaves[k].shape)) for k in call.numbers}
    inputs: dict[tuple, Value] = {("argument", k): value for k, value in data.items()}
    for path in {*recorded.used("state"), *(path for path, _ in state)}:
        inputs["state", path] = memory.tensor(path, reading.tensors[path].tensor)
    for k in recorded.used("rate"):
        inputs["rate", k] = memory.rate(reading.rates[k])
    homes = {path: inputs["state", path] for path, _ in state}
    made = Program(recorded, inputs, homes, memory)
    return made, {
        "inputs": [{"name": names[k], **lies(value)} for k, value in data.items()],
        "outputs": [lies(value) for value in made.outputs],
        "reads": [lies(inputs["state", path]) for path in sorted(recorded.used("state"))],
    }


def lies(value: Value) -> dict:
    """Where a value lies; of a matrix of the learner, by columns."""
    return {"place": value.buffer.place, "shape": list(value.shape)}


def first_numbers(memory: Memory, read: Sequence[Reading], exact: bool) -> list[list]:
    """What is in the memory at first: places, sizes, kinds and numbers."""
    layers = [
        x for each in read for _, x in each.seen.values() if isinstance(x, torch.nn.Linear)
    ]
    bounds = {id(x): layer.in_features**-0.5 for layer in layers for x in (layer.weight, layer.bias)}
    places = {value.buffer.place: key for key, (_, _, value) in memory.state.items()}
    found, known = [], {}
    for place, numbers in sorted(memory.first.items()):
        numbers = np.float32(numbers)
        key, bound, size = numbers.tobytes(), bounds.get(places.get(place)), len(numbers)
        if (numbers == numbers[0]).all() and np.isfinite(numbers[0]):
            if numbers[0]:
                found.append([place, size, "constant", float(numbers[0])])
        elif key in known:
            found.append([place, size, "copy", known[key]])
        elif bound and not exact and is_uniform(numbers, bound):
            found.append([place, size, "uniform", bound])
        else:
            found.append([place, size, "numbers", base64.b64encode(key).decode()])
        known.setdefault(key, place)
    return found


def is_uniform(numbers: np.ndarray, bound: float) -> bool:
    """Whether they may be uniform in +- bound: five standard errors of their mean square."""
    far = abs((numbers**2).mean() / bound**2 - 1 / 3) / (4 / 45 / len(numbers)) ** 0.5
    return bool(abs(numbers).max() <= bound * (1 + 1e-6) and far < 5)
