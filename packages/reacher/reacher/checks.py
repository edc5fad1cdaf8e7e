"""Checks of what callers give: each returns the value in its proper type, or says what is off."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

MAX_SEED = 2**63 - 1


def integer(name: str, value: Any, low: int, high: int) -> int:
    """`value` as an int within [low, high]; else TypeError or ValueError."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, not {shown(value)}")
    if not low <= int(value) <= high:
        raise ValueError(f"{name} must be from {low} to {high}, not {shown(value)}")
    return int(value)


def number(name: str, value: Any, low: float, high: float) -> float:
    """`value` as a float within [low, high]; else ValueError, also for NaN."""
    is_real = isinstance(value, Real) and not isinstance(value, bool)
    if not (is_real and low <= value <= high):
        raise ValueError(f"{name} must be a number from {low:g} to {high:g}, not {shown(value)}")
    return float(value)


def actions_of_shape(actions: ArrayLike, shape: tuple[int, int]) -> np.ndarray:
    """An array, list or CPU tensor of this shape (agents, actions), or flat, as float64.

    The numbers pass through single precision, because that is what reaches the Unity build.

    Raises:
        ValueError: no real numbers, a wrong shape, NaN or infinity.
    """
    wanted = f"actions must be real numbers of shape {shape} or ({shape[0] * shape[1]},)"
    try:
        array = np.asarray(actions)
    except (TypeError, ValueError, RuntimeError) as error:  # the last: a tensor with a gradient
        raise ValueError(f"{wanted}: {error}") from None
    if array.dtype.kind not in "biuf" or array.shape not in (shape, (shape[0] * shape[1],)):
        raise ValueError(f"{wanted}, not {array.dtype} of shape {array.shape}")
    with np.errstate(over="ignore"):  # a number beyond single precision becomes infinite
        array = array.reshape(shape).astype(np.float32).astype(np.float64)
    if not np.isfinite(array).all():
        row, index = np.argwhere(~np.isfinite(array))[0]
        raise ValueError(f"actions must be finite, but action {index} of agent {row} is not")
    return array


def shown(value: Any) -> str:
    """A value for an error message, cut where it is long."""
    return f"{value!r:.200}"
