"""PyTorch's operations in JAX, and recordings as functions of JAX's arrays.

Between two calls the parameters of a network lie in one vector, and so does each average of its
optimiser: a call that takes a few vectors starts sooner than one that takes a hundred arrays. What
a recording does with each tensor of a vector, one after the other, such as a soft update or Adam's
step, is then done once with the vector (`Translation.join`).
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import torch

from tutorial.training.recording import CannotRecord, Node, Recorded, in_order

NUMBERS = {
    torch.float32: jnp.float32,
    torch.int64: jnp.int32,
    torch.int32: jnp.int32,
    torch.bool: jnp.bool_,
}


def number_type(dtype: torch.dtype | None) -> Any:
    if dtype is not None and dtype not in NUMBERS:
        raise CannotRecord(f"numbers of the type {dtype} are not compiled")
    return NUMBERS[dtype or torch.float32]


# ----------------------------------------------------------------------------- operations by name

ELEMENTWISE = {
    f"{name}.default": getattr(jnp, name)
    for name in (
        "abs exp expm1 log log1p log2 sqrt square sin cos tan tanh sinh cosh atan floor ceil round "
        "reciprocal isnan isinf maximum minimum atan2 logical_and logical_or logical_not"
    ).split()
}
for name, function in {
    "gt": jnp.greater,
    "ge": jnp.greater_equal,
    "lt": jnp.less,
    "le": jnp.less_equal,
    "eq": jnp.equal,
    "ne": jnp.not_equal,
    "mul": jnp.multiply,
    "div": jnp.divide,
    "bitwise_and": jnp.bitwise_and,
    "remainder": jnp.remainder,
    "bitwise_or": jnp.bitwise_or,
}.items():
    ELEMENTWISE |= {f"{name}.Tensor": function, f"{name}.Scalar": function}


def power_of_number(base, exponent):
    return jnp.exp(exponent * math.log(base)) if base > 0 else base**exponent


def clamp(x, least=None, most=None):
    x = x if least is None else jnp.maximum(x, least)
    return x if most is None else jnp.minimum(x, most)


def plus(a, b, alpha=1):
    return a + b if alpha == 1 else a + alpha * b


def lerp(a, b, weight):
    return a + weight * (b - a)


def sign(x):
    return jnp.where(x > 0, 1.0, jnp.where(x < 0, -1.0, 0.0))


def gelu(x, approximate="none"):
    return jax.nn.gelu(x, approximate=approximate == "tanh")


ELEMENTWISE |= {
    "add.Tensor": plus,
    "add.Scalar": plus,
    "sub.Tensor": lambda a, b, alpha=1: a - alpha * b,
    "sub.Scalar": lambda a, b, alpha=1: a - alpha * b,
    "rsub.Scalar": lambda a, b: b - a,
    "neg.default": lambda x: -x,
    "rsqrt.default": jax.lax.rsqrt,
    "erf.default": jax.lax.erf,
    "sigmoid.default": jax.nn.sigmoid,
    "silu.default": jax.nn.silu,
    "gelu.default": gelu,
    "relu.default": lambda x: jnp.where(x > 0, x, 0),
    "sign.default": sign,
    "sgn.default": sign,
    "pow.Tensor_Scalar": lambda x, p: x ** (int(p) if p == int(p) else p),
    "pow.Tensor_Tensor": jnp.power,
    "pow.Scalar": power_of_number,
    "clamp.default": clamp,
    "clamp.Tensor": clamp,
    "clamp_min.default": jnp.maximum,
    "clamp_max.default": jnp.minimum,
    "where.self": jnp.where,
    "lerp.Scalar": lerp,
    "lerp.Tensor": lerp,
    "addcmul.default": lambda a, b, c, value=1: a + value * (b * c),
    "addcdiv.default": lambda a, b, c, value=1: a + value * (b / c),
    "threshold_backward.default": lambda g, x, least: jnp.where(x > least, g, 0),
    "tanh_backward.default": lambda g, y: g * (1 - y * y),
    "sigmoid_backward.default": lambda g, y: g * y * (1 - y),
    "gelu_backward.default": lambda g, x, approximate="none": jax.vjp(
        lambda x: gelu(x, approximate), x
    )[1](g)[0],
    "silu_backward.default": lambda g, x: jax.vjp(jax.nn.silu, x)[1](g)[0],
    "copy.default": lambda old, new, *_: jnp.broadcast_to(new, old.shape).astype(old.dtype),
    "fill.Scalar": jnp.full_like,
    "zero.default": jnp.zeros_like,
    "zeros_like.default": lambda x, **_: jnp.zeros_like(x),
    "ones_like.default": lambda x, **_: jnp.ones_like(x),
    "empty_like.default": lambda x, **_: jnp.zeros_like(x),
    "full_like.default": lambda x, value, **_: jnp.full_like(x, value),
    "clone.default": lambda x, **_: x,
}


def mean_column(x):
    """With it a mean over rows is a product: a sum in a fixed order is one addition at a time."""
    return jnp.full((x.shape[-1], 1), 1 / x.shape[-1], x.dtype)


def layer_norm(x, shape, weight, bias, epsilon):
    """Normalised x, its means and 1 / its standard deviations (Ba et al., 2016)."""
    if len(shape) > 1:
        raise CannotRecord("layer normalisation over several axes is not compiled")
    mean = x @ mean_column(x)
    centred = x - mean
    scale = jax.lax.rsqrt(centred**2 @ mean_column(x) + epsilon)
    y = centred * scale
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
        add_up(g * normal, rows) if wanted[1] else None,
        add_up(g, rows) if wanted[2] else None,
    )


def add_up(x, dims=None, keepdim=False, dtype=None):
    return jnp.sum(x, axis=axes(dims), keepdims=keepdim)


def axes(dims):
    return None if dims is None or dims == [] else dims if isinstance(dims, int) else tuple(dims)


def norm(x, order=2, dims=None, keepdim=False, dtype=None):
    if order == 2:
        return jnp.sqrt(jnp.sum(x * x, axis=axes(dims), keepdims=keepdim))
    return jnp.linalg.norm(
        x.reshape(-1) if dims is None else x, ord=order, axis=axes(dims), keepdims=keepdim
    )


def sliced(x, dim=0, start=None, end=None, step=1):
    return x[(slice(None),) * (dim % x.ndim) + (slice(start, end, step),)]


def split(x, size, dim=0):
    if isinstance(size, int):
        size = [min(size, x.shape[dim] - k) for k in range(0, x.shape[dim], size)]
    ends = [sum(size[: k + 1]) for k in range(len(size))]
    return [sliced(x, dim, end - length, end) for end, length in zip(ends, size, strict=True)]


def squeeze(x, dims):
    dims = [dims] if isinstance(dims, int) else dims
    return jnp.squeeze(x, tuple(dim for dim in dims if x.shape[dim] == 1))


def expand(x, shape, **_):
    new = len(shape) - x.ndim
    return jnp.broadcast_to(
        x, [x.shape[k - new] if size == -1 else size for k, size in enumerate(shape)]
    )


def indexed(x, indices):
    return x[tuple(slice(None) if index is None else index for index in indices)]


def index_put(x, indices, values, accumulate=False):
    if len(indices) == 1 and indices[0].dtype == bool and not values.ndim and not accumulate:
        mask = indices[0].reshape(indices[0].shape + (1,) * (x.ndim - indices[0].ndim))
        return jnp.where(mask, values, x)
    place = x.at[tuple(slice(None) if index is None else index for index in indices)]
    return place.add(values) if accumulate else place.set(values)


def scattered(x, dim, index, source):
    return jnp.put_along_axis(x, index, source, axis=dim, inplace=False)


def scatter_add(x, dim, index, source):
    places = list(jnp.indices(index.shape))
    places[dim] = index
    return x.at[tuple(places)].add(source[tuple(slice(size) for size in index.shape)])


def part(x, dim, start=None, end=None, step=1):
    return (slice(None),) * (dim % x.ndim) + (slice(start, end, step),)


def extreme(function, place):
    return lambda x, dim, keepdim=False: (
        function(x, axis=dim, keepdims=keepdim),
        place(x, axis=dim, keepdims=keepdim),
    )


def typed(x, dtype=None, **_):
    return x if dtype is None else x.astype(number_type(dtype))


OPERATIONS = ELEMENTWISE | {
    "_to_copy.default": typed,
    "getitem": lambda values, k: values[k],
    "mm.default": jnp.matmul,
    "bmm.default": jnp.matmul,
    "mv.default": jnp.matmul,
    "dot.default": jnp.dot,
    "addmm.default": lambda c, a, b, beta=1, alpha=1: (
        beta * c + alpha * (a @ b) if (beta, alpha) != (1, 1) else a @ b + c
    ),
    "native_layer_norm.default": layer_norm,
    "native_layer_norm_backward.default": layer_norm_backward,
    "sum.default": lambda x, **_: jnp.sum(x),
    "sum.dim_IntList": add_up,
    "mean.default": lambda x, **_: jnp.mean(x),
    "mean.dim": lambda x, dims=None, keepdim=False, dtype=None: jnp.mean(
        x, axis=axes(dims), keepdims=keepdim
    ),
    "var.correction": lambda x, dims=None, correction=1, keepdim=False: jnp.var(
        x, axis=axes(dims), ddof=correction, keepdims=keepdim
    ),
    "amax.default": lambda x, dims=None, keepdim=False: jnp.max(
        x, axis=axes(dims), keepdims=keepdim
    ),
    "amin.default": lambda x, dims=None, keepdim=False: jnp.min(
        x, axis=axes(dims), keepdims=keepdim
    ),
    "max.default": jnp.max,
    "min.default": jnp.min,
    "max.dim": extreme(jnp.max, jnp.argmax),
    "min.dim": extreme(jnp.min, jnp.argmin),
    "argmax.default": lambda x, dim=None, keepdim=False: jnp.argmax(x, dim, keepdims=keepdim),
    "linalg_vector_norm.default": norm,
    "norm.Scalar": norm,
    "cumsum.default": lambda x, dim, dtype=None: jnp.cumsum(x, dim),
    "sort.default": lambda x, dim=-1, descending=False: (
        jnp.sort(x, dim, descending=descending),
        jnp.argsort(x, dim, descending=descending),
    ),
    "_softmax.default": lambda x, dim, _: jax.nn.softmax(x, dim),
    "_log_softmax.default": lambda x, dim, _: jax.nn.log_softmax(x, dim),
    "t.default": jnp.transpose,
    "permute.default": jnp.transpose,
    "transpose.int": jnp.swapaxes,
    "view.default": jnp.reshape,
    "_unsafe_view.default": jnp.reshape,
    "expand.default": expand,
    "unsqueeze.default": jnp.expand_dims,
    "squeeze.dim": squeeze,
    "squeeze.dims": squeeze,
    "squeeze.default": jnp.squeeze,
    "slice.Tensor": sliced,
    "select.int": lambda x, dim, k: jnp.take(x, k, axis=dim),
    "select_scatter.default": lambda x, y, dim, k: x.at[part(x, dim)[:-1] + (k,)].set(y),
    "slice_scatter.default": lambda x, y, dim=0, *how: x.at[part(x, dim, *how)].set(y),
    "split.Tensor": split,
    "split_with_sizes.default": split,
    "unbind.int": lambda x, dim=0: list(jnp.moveaxis(x, dim, 0)),
    "cat.default": jnp.concatenate,
    "stack.default": jnp.stack,
    "repeat.default": jnp.tile,
    "index.Tensor": indexed,
    "index_put.default": index_put,
    "gather.default": lambda x, dim, index, **_: jnp.take_along_axis(x, index, dim),
    "scatter.src": scattered,
    "scatter.value": scattered,
    "scatter_add.default": scatter_add,
    "index_select.default": lambda x, dim, index: jnp.take(x, index, axis=dim),
    "constant_pad_nd.default": lambda x, pad, value=0: jnp.pad(
        x,
        [(0, 0)] * (x.ndim - len(pad) // 2) + list(zip(pad[::2], pad[1::2], strict=True))[::-1],
        constant_values=value,
    ),
    "arange.start_step": lambda start, end, step=1, dtype=None, **_: jnp.arange(
        start, end, step, None if dtype is None else number_type(dtype)
    ),
}
OPERATIONS["arange.default"] = lambda end, **how: OPERATIONS["arange.start_step"](0, end, **how)
OPERATIONS["arange.start"] = OPERATIONS["arange.start_step"]
for name, value in {"zeros": 0, "ones": 1, "empty": 0}.items():
    OPERATIONS[f"{name}.default"] = OPERATIONS[f"{name}.memory_format"] = (
        lambda shape, dtype=None, value=value, **_: jnp.full(shape, value, number_type(dtype))
    )
    OPERATIONS[f"new_{name}.default"] = OPERATIONS[f"new_{name}_strided.default"] = (
        lambda x, shape, *_, value=value, **__: jnp.full(shape, value, x.dtype)
    )
OPERATIONS["full.default"] = lambda shape, value, dtype=None, **_: jnp.full(
    shape, value, number_type(dtype) if dtype else None
)
OPERATIONS["scalar_tensor.default"] = lambda value, dtype=None, **_: jnp.asarray(
    value, number_type(dtype)
)
OPERATIONS["new_full.default"] = lambda x, shape, value, **_: jnp.full(shape, value, x.dtype)

RANDOM = {  # with a key first
    "randn_like.default": lambda key, x, **_: jax.random.normal(key, x.shape),
    "rand_like.default": lambda key, x, **_: jax.random.uniform(key, x.shape),
    "randn.default": lambda key, shape, **_: jax.random.normal(key, shape),
    "rand.default": lambda key, shape, **_: jax.random.uniform(key, shape),
    "normal.default": lambda key, x, mean=0, std=1, **_: (
        mean + std * jax.random.normal(key, x.shape)
    ),
    "uniform.default": lambda key, x, low=0, high=1, **_: jax.random.uniform(
        key, x.shape, minval=low, maxval=high
    ),
    "bernoulli.float": lambda key, x, p=0.5, **_: jax.random.bernoulli(key, p, x.shape).astype(
        x.dtype
    ),
    "bernoulli.p": lambda key, x, p=0.5, **_: jax.random.bernoulli(key, p, x.shape).astype(x.dtype),
}
ALLOWED = OPERATIONS.keys() | RANDOM.keys()


# --------------------------------------------------------------------------- tensors in a vector


class Group(NamedTuple):
    """Tensors of one kind, such as the parameters of a network, that lie in one vector.

    Matrices of PyTorch have the shape (outputs, inputs), and lie there as (inputs, outputs), since
    most products of a step are then faster. A shared group is one number, equal for all.
    """

    shapes: tuple[tuple[int, ...], ...]
    dtype: torch.dtype
    shared: bool = False

    def pieces(self, vector) -> list:
        """The tensors, of an array of NumPy or of JAX."""
        if self.shared:
            return [vector] * len(self.shapes)
        found, start = [], 0
        for shape in self.shapes:
            end = start + math.prod(shape)
            piece = vector[start:end].reshape(shape[::-1] if len(shape) == 2 else shape)
            found.append(piece.T if len(shape) == 2 else piece)
            start = end
        return found

    def vector(self, pieces: Sequence, library=jnp):
        """The opposite."""
        if self.shared:
            return library.asarray(pieces[0])
        return library.concatenate(
            [(piece.T if piece.ndim == 2 else piece).reshape(-1) for piece in pieces]
        )


class Translation:
    """A recording as a function: `outputs` of one evaluation of it.

    Args:
        recorded: inputs are first the tensors of the groups, then others; outputs likewise.
        vectors: arrays, one for each group.
        others: arrays, the other inputs.
        seed: of its random operations, or None where there are none.
    """

    def __init__(
        self,
        recorded: Recorded,
        groups: Sequence[Group],
        vectors: Sequence,
        others: Sequence,
        seed: Any = None,
    ) -> None:
        self.recorded, self.groups, self.vectors, self.seed = recorded, groups, vectors, seed
        self.values, self.joins, self.members, self.place = {}, {}, {}, {}
        parts, given = in_groups(recorded.inputs, groups)
        for g, (group, nodes) in enumerate(zip(groups, parts, strict=True)):
            self.place |= {node: (g, 0 if group.shared else k) for k, node in enumerate(nodes)}
            self.joins[nodes] = ("state", g)
            self.members |= {node: (nodes, k) for k, node in enumerate(nodes)}
        self.values |= dict(zip(given, others, strict=True))
        self.equal, self.pieces, self.joined = {}, {}, {}
        self.random = {
            node: k
            for k, node in enumerate(
                node for node in in_order(recorded.outputs) if node.target in RANDOM
            )
        }

    def outputs(self) -> tuple[list, list]:
        """Vectors of the groups, and the other outputs."""
        parts, others = in_groups(self.recorded.outputs, self.groups)
        with deep_recursion():
            for group, nodes in zip(self.groups, parts, strict=True):
                if not group.shared:
                    self.join(nodes, group)
            vectors = [
                self.value(nodes[0]) if group.shared else self.vector(nodes, group)
                for group, nodes in zip(self.groups, parts, strict=True)
            ]
            return vectors, [self.value(node) for node in others]

    def results(self) -> list:
        """The other outputs alone."""
        with deep_recursion():
            return [self.value(node) for node in in_groups(self.recorded.outputs, self.groups)[1]]

    def same(self, a: Any, b: Any) -> bool:
        """Whether two nodes, or arguments, are one computation with the same numbers."""
        if a is b:
            return True
        if not (isinstance(a, Node) and isinstance(b, Node)):
            return type(a) is type(b) and not isinstance(a, (list, tuple)) and a == b
        if (a, b) not in self.equal:
            if a in self.place or b in self.place:
                found = a in self.place and self.place[a] == self.place.get(b)
            else:
                found = (
                    a.target == b.target
                    and a.target in ELEMENTWISE
                    and a.shape == b.shape
                    and len(a.args) == len(b.args)
                    and a.kwargs == b.kwargs
                    and all(map(self.same, a.args, b.args))
                )
            self.equal[a, b] = found
        return self.equal[a, b]

    def join(self, nodes: tuple[Node, ...], group: Group) -> bool:
        """Plan to compute nodes, one for each tensor of a group, as one vector."""
        if nodes in self.joins:
            return True
        first = nodes[0]
        if (
            len(nodes) == 1
            or first.target not in ELEMENTWISE
            or any(
                node in self.members
                or node.target != first.target
                or node.shape != shape
                or len(node.args) != len(first.args)
                or node.kwargs != first.kwargs
                for node, shape in zip(nodes, group.shapes, strict=True)
            )
        ):
            return False
        arguments = []
        for column in zip(*(node.args for node in nodes), strict=True):
            if all(
                isinstance(value, Node) and value.shape == shape
                for value, shape in zip(column, group.shapes, strict=True)
            ):
                arguments.append(column)
            elif (not isinstance(column[0], Node) or not column[0].shape) and all(
                self.same(column[0], value) for value in column
            ):
                arguments.append(column[0])
            else:
                return False
        self.joins[nodes] = ("apply", arguments)
        self.members |= {node: (nodes, k) for k, node in enumerate(nodes)}
        for column in arguments:
            if isinstance(column, tuple):
                self.join(column, group)
        return True

    def vector(self, nodes: tuple[Node, ...], group: Group):
        """The vector that holds the values of nodes."""
        if nodes not in self.joined:
            plan, what = self.joins.get(nodes, ("pieces", None))
            if plan == "state":
                found = self.vectors[what]
            elif plan == "apply":
                found = self.apply(
                    nodes[0],
                    [
                        self.vector(column, group)
                        if isinstance(column, tuple)
                        else self.value(column)
                        if isinstance(column, Node)
                        else column
                        for column in what
                    ],
                )
            else:
                found = group.vector([self.value(node) for node in nodes])
            self.joined[nodes] = found
            self.pieces[nodes] = None if plan == "pieces" else group.pieces(found)
        return self.joined[nodes]

    def value(self, node: Node):
        """The value of one node."""
        if node not in self.values:
            if node in self.members:
                nodes, k = self.members[node]
                if self.pieces.get(nodes) is None:
                    self.vector(nodes, self.group_of(nodes))
                self.values[node] = self.pieces[nodes][k]
            elif node.target == "constant":
                number_type(node.dtype)
                self.values[node] = jnp.asarray(node.args[0].numpy())
            elif node.target == "t.default" and node.args[0].target == "mm.default":
                one, other = self.argument(list(node.args[0].args))  # a gradient: as it lies there
                self.values[node] = other.T @ one.T
            else:
                self.values[node] = self.apply(node, self.argument(list(node.args)))
        return self.values[node]

    def group_of(self, nodes):
        plan, what = self.joins[nodes]
        if plan == "state":
            return self.groups[what]
        return Group(tuple(tuple(node.shape) for node in nodes), nodes[0].dtype)

    def argument(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [self.argument(inner) for inner in value]
        return self.value(value) if isinstance(value, Node) else value

    def apply(self, node: Node, args: list):
        """The operation of a node."""
        options = {name: self.argument(value) for name, value in node.kwargs.items()}
        try:
            if node in self.random:
                key = jax.random.fold_in(jax.random.key(self.seed), self.random[node])
                return RANDOM[node.target](key, *args, **options)
            return OPERATIONS[node.target](*args, **options)
        except CannotRecord:
            raise
        except Exception as error:
            reason = str(error).strip().partition("\n")[0]
            raise CannotRecord(
                f"the operation {node.target} in {node.where} has no translation "
                f"for its arguments ({reason})"
            ) from None


def in_groups(nodes: Sequence[Node], groups: Sequence[Group]) -> tuple[list[tuple], list]:
    """Those nodes that are tensors of groups, by group, and the others."""
    parts, start = [], 0
    for group in groups:
        parts.append(tuple(nodes[start : start + len(group.shapes)]))
        start += len(group.shapes)
    return parts, list(nodes[start:])


def changed_groups(recorded: Recorded, groups: Sequence[Group]) -> list[int]:
    """Numbers of the groups that a recording changes."""
    before, after = (in_groups(nodes, groups)[0] for nodes in (recorded.inputs, recorded.outputs))
    return [k for k in range(len(groups)) if before[k] != after[k]]


def used_groups(recorded: Recorded, groups: Sequence[Group]) -> list[int]:
    """Numbers of the groups that its results need."""
    needed = set(in_order(in_groups(recorded.outputs, groups)[1]))
    return [
        k
        for k, nodes in enumerate(in_groups(recorded.inputs, groups)[0])
        if needed.intersection(nodes)
    ]


def differing(recorded: Recorded, groups: Sequence[Group]) -> set[int]:
    """Numbers of the shared groups whose tensors a recording treats differently."""
    others = in_groups(recorded.inputs, groups)[1]
    check = Translation(recorded, groups, [None] * len(groups), [None] * len(others))
    return {
        k
        for k, nodes in enumerate(in_groups(recorded.outputs, groups)[0])
        if groups[k].shared and not all(check.same(nodes[0], node) for node in nodes)
    }


def check(recorded: Recorded, groups: Sequence[Group]) -> None:
    """Raise CannotRecord where an operation cannot be compiled with its arguments."""

    def shape(node):
        return jax.ShapeDtypeStruct(tuple(node.shape), number_type(node.dtype))

    others = in_groups(recorded.inputs, groups)[1]
    vectors = [
        jax.ShapeDtypeStruct(
            () if group.shared else (sum(map(math.prod, group.shapes)),), number_type(group.dtype)
        )
        for group in groups
    ]
    jax.eval_shape(
        lambda vectors, others: Translation(recorded, groups, vectors, others, 0).outputs(),
        vectors,
        [shape(node) for node in others],
    )


def is_random(recorded: Recorded) -> bool:
    return any(node.target in RANDOM for node in recorded.nodes())


@contextlib.contextmanager
def deep_recursion():
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 100_000))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
