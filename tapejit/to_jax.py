"""PyTorch's operations in JAX, and recordings as functions of JAX's arrays.

Between two calls the parameters of a network lie in one vector, and so does each average of its
optimizer: a call that takes a few vectors starts sooner than one that takes a hundred arrays. What
a recording does with each tensor of a vector, one after the other, such as a soft update or Adam's
step, is then done once with the vector (`Translation.join`).
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import torch

from tapejit.recording import CannotRecord, Node, Recorded

NUMBERS = {
    getattr(torch, name): np.dtype(name)
    for name in "float32 float64 int8 int16 int32 int64 uint8 bool".split()
}


def number_type(dtype: torch.dtype | None) -> Any:
    if dtype is not None and dtype not in NUMBERS:
        raise CannotRecord(f"numbers of the type {dtype} are not compiled")
    return NUMBERS[dtype or torch.float32]


# ----------------------------------------------------------------------------- operations by name


FAULTS: list[Any] = []  # where PyTorch would have raised an error: of the evaluation under way


def index_of(index: Any, size: int, least: int = 0) -> Any:
    """An index that must be from `least` up to a size."""
    FAULTS.append(jnp.any((index < least) | (index >= size)))
    return index


def remainder(a, b):
    FAULTS.append(jnp.any(jnp.equal(b, 0)))  # an error for whole numbers
    return jnp.remainder(a, b)


def sign(x):
    """By a division, which XLA does once. What is cheap it does again for each row of a product."""
    y = jnp.where(abs(x) > 0, jnp.clip(x, -1, 1), 0)
    return y / jnp.where(y == 0, 1, abs(y))


ELEMENTWISE = {
    f"{name}.default": getattr(jnp, name)
    for name in (
        "abs exp exp2 expm1 log log1p log2 log10 sqrt sin cos tan asin acos atan sinh cosh tanh "
        "asinh acosh atanh floor ceil trunc round reciprocal isnan maximum minimum atan2 hypot "
        "logical_and logical_or logical_not"
    ).split()
}
for name, function in {
    "add": lambda a, b, alpha=1: a + alpha * b,
    "sub": lambda a, b, alpha=1: a - alpha * b,
    "div": jnp.divide,
    "remainder": remainder,
    "bitwise_and": jnp.bitwise_and,
    "bitwise_or": jnp.bitwise_or,
    **{name: getattr(operator, name) for name in "mul gt ge lt le eq ne".split()},
}.items():
    ELEMENTWISE |= {f"{name}.Tensor": function, f"{name}.Scalar": function}
ELEMENTWISE |= {
    "neg.default": lambda x: -x,
    "rsqrt.default": jax.lax.rsqrt,
    "erf.default": jax.lax.erf,
    "sigmoid.default": jax.nn.sigmoid,
    "sign.default": sign,
    "pow.Tensor_Scalar": lambda x, p: x ** (int(p) if p == int(p) else p),
    "pow.Tensor_Tensor": jnp.power,
    "pow.Scalar": lambda base, x: jnp.exp(x * math.log(base)) if base > 0 else base**x,
    "clamp.default": jnp.clip,
    "clamp.Tensor": jnp.clip,
    "where.self": jnp.where,
    "copy.default": lambda old, new, *_: jnp.broadcast_to(new, old.shape).astype(old.dtype),
    "fill.Scalar": jnp.full_like,
    # PyTorch would make several operations of each of these, which are not joined to vectors
    "rsub.Scalar": lambda a, b: b - a,
    "relu.default": lambda x: jnp.where(x <= 0, 0, x),  # what is not a number stays so
    "lerp.Scalar": lambda a, b, weight: a + weight * (b - a),
    "addcmul.default": lambda a, b, c, value=1: a + value * (b * c),
    "addcdiv.default": lambda a, b, c, value=1: a + value * (b / c),
    "threshold_backward.default": lambda g, x, least: jnp.where(x <= least, 0, g),
    "tanh_backward.default": lambda g, y: g * (1 - y * y),
    "full_like.default": lambda x, value, **_: jnp.full_like(x, value),
    "empty_like.default": lambda x, **_: jnp.zeros_like(x),
    "clone.default": lambda x, **_: x,
}


def mean_column(x):
    """With it a mean over rows is a product: a sum in a fixed order is one addition at a time."""
    return jnp.full((x.shape[-1], 1), 1 / x.shape[-1], x.dtype)


def layer_norm(x, shape, weight, bias, epsilon):
    """Normalized x, its means and 1 / its standard deviations (Ba et al., 2016)."""
    if len(shape) > 1:
        raise CannotRecord("layer normalization over several axes is not compiled")
    mean = x @ mean_column(x)
    centered = x - mean
    scale = jax.lax.rsqrt(centered**2 @ mean_column(x) + epsilon)
    y = centered * scale
    y = y if weight is None else y * weight
    return (y if bias is None else y + bias), mean, scale


def layer_norm_backward(g, x, shape, mean, scale, weight, bias, wanted):
    normal = (x - mean) * scale
    inner = g if weight is None else g * weight
    column = mean_column(x)
    grad = scale * (inner - inner @ column - normal * ((inner * normal) @ column))
    rows = tuple(range(g.ndim - 1))
    return (
        grad,
        jnp.sum(g * normal, rows) if wanted[1] else None,
        jnp.sum(g, rows) if wanted[2] else None,
    )


def over(function, **options):
    """A function of all elements, or of those along some axes."""

    def reduced(x, dims=None, keepdim=False, **_):
        axes = dims if isinstance(dims, int) else tuple(dims or ()) or None
        return function(x, axis=axes, keepdims=keepdim, **options)

    return reduced


def variance(x, dims=None, correction=1, keepdim=False):
    return over(jnp.var, ddof=correction)(x, dims, keepdim)


def both(one, other):
    return lambda *args, **options: (one(*args, **options), other(*args, **options))


def part(x, dim, start=None, end=None, step=1):
    return (slice(None),) * (dim % x.ndim) + (slice(start, end, step),)


def expand(x, shape, **_):
    """Broadcast; -1 stands for a size of x."""
    return jnp.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(map(abs, shape))))


def places(x, indices):
    return tuple(
        slice(None) if index is None else index_of(index, size, -size)
        for size, index in zip(x.shape, indices, strict=False)
    )


def index_put(x, indices, values, accumulate=False):
    at = x.at[places(x, indices)]
    return at.add(values) if accumulate else at.set(values)


def along(x, index, dim):
    """Places for an index along one axis (gather, scatter): the others as far as it reaches."""
    at = list(jnp.indices(index.shape))
    at[dim] = index_of(index, x.shape[dim])
    return tuple(at)


def typed(x, dtype=None, **_):
    new = x.dtype if dtype is None else number_type(dtype)
    if jnp.issubdtype(x.dtype, jnp.inexact) and jnp.issubdtype(new, jnp.integer):
        FAULTS.append(jnp.any(~(jnp.abs(x) < float(jnp.iinfo(new).max))))
    return x.astype(new)


OPERATIONS = ELEMENTWISE | {
    "_to_copy.default": typed,
    "getitem": lambda values, k: values[k],
    "mm.default": jnp.matmul,
    "bmm.default": jnp.matmul,
    "addmm.default": lambda c, a, b, beta=1, alpha=1: beta * c + alpha * (a @ b),
    "native_layer_norm.default": layer_norm,
    "native_layer_norm_backward.default": layer_norm_backward,
    "sum.default": over(jnp.sum),
    "sum.dim_IntList": over(jnp.sum),
    "mean.default": over(jnp.mean),
    "mean.dim": over(jnp.mean),
    "var.correction": variance,
    "var_mean.correction": both(variance, over(jnp.mean)),
    "amax.default": over(jnp.max),
    "amin.default": over(jnp.min),
    "max.default": jnp.max,
    "min.default": jnp.min,
    "max.dim": both(over(jnp.max), over(jnp.argmax)),
    "min.dim": both(over(jnp.min), over(jnp.argmin)),
    "argmax.default": over(jnp.argmax),
    "cumsum.default": lambda x, dim, **_: jnp.cumsum(x, dim),
    "sort.default": lambda x, dim=-1, descending=False: (
        jnp.sort(x, dim, descending=descending),
        jnp.argsort(x, dim, descending=descending),
    ),
    "t.default": jnp.transpose,
    "permute.default": jnp.transpose,
    "transpose.int": jnp.swapaxes,
    "view.default": jnp.reshape,
    "_unsafe_view.default": jnp.reshape,
    "expand.default": expand,
    "unsqueeze.default": jnp.expand_dims,
    "squeeze.dim": lambda x, dim: jnp.squeeze(x, dim) if x.shape[dim] == 1 else x,
    "squeeze.default": jnp.squeeze,
    "slice.Tensor": lambda x, dim=0, *how: x[part(x, dim, *how)],
    "select.int": lambda x, dim, k: jnp.take(x, k, axis=dim),
    "select_scatter.default": lambda x, y, dim, k: x.at[part(x, dim)[:-1] + (k,)].set(y),
    "slice_scatter.default": lambda x, y, dim=0, *how: x.at[part(x, dim, *how)].set(y),
    "split_with_sizes.default": lambda x, sizes, dim=0: jnp.split(x, np.cumsum(sizes)[:-1], dim),
    "cat.default": jnp.concatenate,
    "index.Tensor": lambda x, indices: x[places(x, indices)],
    "index_put.default": index_put,
    "gather.default": lambda x, dim, index, **_: x[along(x, index, dim)],
    "scatter.value": lambda x, dim, index, value: x.at[along(x, index, dim)].set(value),
    "scatter_add.default": lambda x, dim, index, y: x.at[along(x, index, dim)].add(
        y[tuple(map(slice, index.shape))]
    ),
    "arange.start_step": lambda *ends, **_: jnp.arange(*ends),
    "full.default": lambda shape, value, **_: jnp.full(shape, value),
    "scalar_tensor.default": lambda value, **_: jnp.asarray(value),
    "empty.memory_format": lambda shape, **_: jnp.zeros(shape),
    "empty_strided.default": lambda shape, *_, **__: jnp.zeros(shape),
}

ALLOWED = OPERATIONS.keys()

# --------------------------------------------------------------------------- tensors in a vector


class Group(NamedTuple):
    """Tensors of one kind, such as the parameters of a network, that lie in one vector.

    Matrices of PyTorch have the shape (outputs, inputs), and lie there as (inputs, outputs), since
    most products of a step are then faster.
    """

    shapes: tuple[tuple[int, ...], ...]
    dtype: torch.dtype

    def pieces(self, vector) -> list:
        """The tensors in a vector, of JAX or of PyTorch."""
        found, start = [], 0
        for shape in self.shapes:
            end = start + math.prod(shape)
            piece = vector[start:end].reshape(shape[::-1] if len(shape) == 2 else shape)
            found.append(piece.T if len(shape) == 2 else piece)
            start = end
        return found

    def vector(self, pieces: Sequence):
        """The opposite."""
        return jnp.concatenate(
            [(piece.T if piece.ndim == 2 else piece).reshape(-1) for piece in pieces]
        )


def shapes_of(column: Sequence) -> tuple:
    return tuple(getattr(value, "shape", None) for value in column)


Column = tuple[tuple[Node, ...], Group]  # one node for each tensor of a group


FEW = 64  # outputs of a layer


class Translation:
    """One evaluation of a recording, with JAX.

    Args:
        values: of the inputs and random numbers, by node.
        vectors: of the tensors that lie in vectors.
    """

    def __init__(self, values: dict[Node, Any], vectors: Sequence[tuple[Column, Any]] = ()):
        self.values = dict(values)
        self.vectors: dict[tuple[Node, ...], Any] = {}
        self.plans: dict[tuple[Node, ...], Callable] = {}
        self.members: dict[Node, Column] = {}
        for (nodes, group), vector in vectors:
            self.plan(nodes, group, lambda vector=vector: vector)

    def outputs(self, recorded: Recorded, columns: Sequence[Column] = ()) -> tuple[list, list, Any]:
        """A vector for each column, an array for each result, and whether PyTorch had failed."""
        FAULTS.clear()
        for column in columns:
            self.join(*column)
        for node in recorded.nodes():  # each after those that it needs
            if node not in self.members:
                self.value(node)
        vectors = [self.vector(*column) for column in columns]
        arrays = [self.value(node) for node in recorded.results]
        return vectors, arrays, functools.reduce(jnp.logical_or, FAULTS, jnp.bool_(False))

    def plan(self, nodes: tuple[Node, ...], group: Group, compute: Callable) -> None:
        self.plans[nodes] = compute
        self.members |= dict.fromkeys(nodes, (nodes, group))

    def join(self, nodes: tuple[Node, ...], group: Group) -> None:
        """Plan to compute nodes, one for each tensor of a group, as one vector if possible."""
        first = nodes[0]
        kinds = {(node.target, len(node.args), repr(node.kwargs)) for node in nodes}
        if (
            len(nodes) == 1
            or len(kinds) > 1
            or first.target not in ELEMENTWISE
            or shapes_of(nodes) != group.shapes
            or not self.members.keys().isdisjoint(nodes)
        ):
            return
        columns = list(zip(*(node.args for node in nodes), strict=True))
        whole = [column for column in columns if shapes_of(column) == group.shapes]
        if any(
            column not in whole and (len(set(column)) > 1 or getattr(column[0], "shape", None))
            for column in columns
        ):
            return

        def compute():
            args = [
                self.vector(column, group) if column in whole else self.argument(column[0])
                for column in columns
            ]
            return self.apply(first, args)

        self.plan(nodes, group, compute)
        for column in whole:
            self.join(column, group)

    def vector(self, nodes: tuple[Node, ...], group: Group):
        """The vector that holds the values of nodes, one for each tensor of a group."""
        if nodes not in self.vectors:
            compute = self.plans.get(nodes, lambda: group.vector([*map(self.value, nodes)]))
            self.vectors[nodes] = compute()
        return self.vectors[nodes]

    def value(self, node: Node):
        """The value of one node."""
        if node not in self.values:
            if node in self.members:
                nodes, group = self.members[node]
                self.values |= zip(nodes, group.pieces(self.vector(nodes, group)), strict=True)
            elif node.target == "constant":
                self.values[node] = jnp.asarray(node.args[0].numpy(), number_type(node.dtype))
            elif (product := self.product(node)) is not None:
                self.values[node] = product
            else:
                self.values[node] = self.apply(node, self.argument(node.args))
        return self.values[node]

    def product(self, node: Node):
        """The value of a node that is a product of matrices, or a part of one; else None.

        XLA takes up to half as long again where it turns the second matrix within the product, and
        four times as long for few columns as for few rows.
        """
        source = node.args[0] if node.args and isinstance(node.args[0], Node) else node
        product = node if node.target == "mm.default" else source
        if product.target != "mm.default":
            return None
        one, other = self.argument(product.args)
        if product is node:  # turned before: else XLA makes one operation of both
            return one @ jax.lax.optimization_barrier(other)
        if node.target == "t.default":  # a gradient, as it lies in a vector
            return (one @ other).T if len(one) <= FEW else other.T @ one.T
        if node.target == "slice.Tensor" and [*node.args, 0][1] % 2:  # columns: such as of actions
            return one @ other[part(other, *node.args[1:])]
        return None

    def argument(self, value: Any) -> Any:
        return jax.tree.map(lambda x: self.value(x) if isinstance(x, Node) else x, value)

    def apply(self, node: Node, args: list):
        """The operation of a node."""
        try:
            found = OPERATIONS[node.target](*args, **self.argument(node.kwargs))
            if node.dtype is not None and hasattr(found, "dtype"):
                found = found.astype(number_type(node.dtype))
            return found
        except Exception as error:
            reason = str(error).strip().partition("\n")[0]
            raise CannotRecord(
                f"the operation {node.target} in {node.where} has no translation "
                f"for its arguments ({reason})"
            ) from None
