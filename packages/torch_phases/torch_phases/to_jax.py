"""PyTorch's operations in JAX, by their names (`private.name_of`)."""

from __future__ import annotations

import operator
import os
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import torch
from platformdirs import user_cache_dir

from torch_phases.words import Refused

COMPILER_OPTIONS: dict[str, Any] = {
    "xla_cpu_experimental_ynn_fusion_type": "",  # other products of matrices: 7 % faster
    # One operation after the other, in the thread that calls: up to a quarter faster in a training.
    "xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED",
}

config: Any = jax.config
if not config.jax_platforms:  # networks this small learn faster here than on a GPU
    config.update("jax_platforms", "cpu")
config.update("jax_cpu_enable_async_dispatch", False)  # a call ends when its work is done
if not config.jax_compilation_cache_dir:  # where compiled phases outlive the process
    config.update("jax_compilation_cache_dir", user_cache_dir("torch_phases"))
    config.update("jax_persistent_cache_min_compile_time_secs", 0)
    config.update("jax_persistent_cache_min_entry_size_bytes", 0)
with mock.patch.dict(os.environ, NPROC=os.environ.get("NPROC", "1")):  # XLA's threads
    jax.devices()


def number_type(dtype: torch.dtype | None) -> Any:
    name = str(dtype or torch.float32).removeprefix("torch.")
    if name not in "float32 float64 int8 int16 int32 int64 uint8 bool".split():
        raise Refused(f"has numbers of the type {dtype}, which are not compiled")
    return np.dtype(name)


def sign(x):
    """By a division, which XLA does once. What is cheap it does again for each row of a product."""
    y = jnp.where(abs(x) > 0, jnp.clip(x, -1, 1), 0)
    return y / jnp.where(y == 0, 1, abs(y))


def times(a, b):
    """A product. XLA makes a choice of one with what is true or false, and loses 0 * infinity."""
    a, b = sorted((a, b), key=lambda x: jnp.result_type(x).kind == "b")
    is_choice = jnp.result_type(a).kind != jnp.result_type(b).kind == "b"
    return jnp.where(b, a, a * 0) if is_choice else a * b


def smooth_l1_loss_backward(g, x, y, reduction, beta):
    """Of Huber's loss: PyTorch's own decomposition has a slope of 1 where nothing is a number."""
    share, away = 1 / x.size if reduction == 1 else 1.0, x - y
    return g * share * jnp.clip(away / beta if beta else jnp.sign(away), -1, 1)


def product(a, b):
    """Of matrices. XLA takes up to half as long again where it turns the second one within it."""
    if b.shape[1] > 16 and b.shape[1] % 16 and not a.shape[0] % 16:  # twice as long as with 37 rows
        return jax.lax.optimization_barrier(b.T @ a.T).T
    return a @ jax.lax.optimization_barrier(b)


def over(function):
    """A function of all elements, or of those along some axes, which stay."""
    return lambda x, dims=None, *_, **__: function(
        x, axis=dims if isinstance(dims, int) else tuple(dims or ()) or None, keepdims=True
    )


def total(x, dims=None, *_, **__):
    """A sum; along rows as a product, as one in a fixed order is one addition at a time."""
    if x.ndim > 1 and jnp.issubdtype(x.dtype, jnp.floating) and dims in ([-1], [x.ndim - 1]):
        return x @ jnp.ones((x.shape[-1], 1), x.dtype)
    return over(jnp.sum)(x, dims)


def mean(x, dims=None, *_, correction=0, **__):
    found = total(x, dims)
    return found / (x.size / max(found.size, 1) - correction)


def var_mean(x, dims=None, *_, correction=1, **__):
    center = mean(x, dims)
    return mean((x - center) ** 2, dims, correction=correction), center


def part(x, dim, start=None, end=None, step=1):
    return (slice(None),) * (dim % x.ndim) + (slice(start, end, step),)


def put(x, y, dim=0, start=0, end=None, step=1):
    """y in the place of a part of x."""
    if step > 1:
        return x.at[part(x, dim, start, end, step)].set(y)
    first, last, _ = slice(start, end).indices(x.shape[dim])
    return jnp.concatenate([x[part(x, dim, 0, first)], y, x[part(x, dim, max(first, last))]], dim)


def power(x, p):
    if isinstance(p, float) and abs(p) == 0.5:  # as PyTorch does, and no number of minus infinity
        return jnp.sqrt(x) if p > 0 else jax.lax.rsqrt(x)
    return x ** (int(p) if isinstance(p, float) and p.is_integer() else p)


def typed(x, dtype=None, **_):
    new = number_type(dtype) if dtype else x.dtype
    if x.dtype.kind == "f" and new.kind in "iu":  # JAX makes 0 of what is no number
        raise Refused("makes whole numbers of others, which is not compiled")
    return x.astype(new)


OPERATIONS = {
    name.partition("=")[0]: getattr(jnp, name.rpartition("=")[2])
    for name in (
        "abs exp expm1 log log1p sqrt sin cos tanh atan2 floor ceil round reciprocal isnan where "
        "maximum minimum logical_and logical_or logical_not bitwise_and bitwise_or remainder flip "
        "max min div=divide clamp=clip bmm=matmul permute=transpose cat=concatenate"
    ).split()
}
OPERATIONS |= {name: getattr(operator, name) for name in "gt ge lt le eq ne neg".split()}
OPERATIONS |= {
    "add": lambda a, b, alpha=1: a + (b if alpha == 1 else alpha * b),
    "sub": lambda a, b, alpha=1: a - (b if alpha == 1 else alpha * b),
    "mul": times,
    "pow": power,
    "lerp": lambda a, b, weight: a + weight * (b - a),
    "smooth_l1_loss_backward": smooth_l1_loss_backward,
    "hardtanh_backward": lambda g, x, low, high: jnp.where((x > low) & (x < high), g, 0),
    "rsqrt": jax.lax.rsqrt,
    "erf": jax.lax.erf,
    "sigmoid": jax.nn.sigmoid,
    "sign": sign,
    "relu": lambda x: jnp.maximum(x, 0),
    "_to_copy": typed,
    "mm": product,
    "sum": total,
    "mean": mean,
    "var": lambda *args, **options: var_mean(*args, **options)[0],
    "var_mean": var_mean,
    "amax": over(jnp.max),
    "amin": over(jnp.min),
    "max.dim": lambda *args: (over(jnp.max)(*args), over(jnp.argmax)(*args)),
    "min.dim": lambda *args: (over(jnp.min)(*args), over(jnp.argmin)(*args)),
    "slice": lambda x, dim=0, *how: x[part(x, dim, *how)],
    "select": lambda x, dim, k: jax.lax.index_in_dim(x, k, dim, False),
    "slice_scatter": put,
    "split_with_sizes": lambda x, sizes, dim=0: jnp.split(x, np.cumsum(sizes)[:-1], dim),
    "arange": lambda *ends, **_: jnp.arange(*ends),
}
OPERATIONS |= {  # the shape is in the graph: each value gets it, and numbers are repeated
    name: function
    for names, function in {
        "view expand squeeze unsqueeze clone detach alias lift_fresh_copy _local_scalar_dense "
        "scalar_tensor": lambda x, *_, **__: x,
        "copy copy_": lambda old, new, *_: new,
        "full": lambda *args, **_: args[-1],
        "empty empty_strided _efficientzerotensor": lambda *_, **__: 0.0,
    }.items()
    for name in names.split()
}
