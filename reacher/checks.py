"""Checks of what callers give: each returns the value in its proper type, or says what is off."""

from __future__ import annotations

import math
import operator

import numpy as np
from numpy.typing import ArrayLike

MAX_SEED = 2**63 - 1
MAX_TIMEOUT = 86_400  # s, a day; threads cannot wait for ever
SHOWN = 200  # characters of a wrong value in an error message


def integer(name: str, value, low: int, high: int) -> int:
    """`value` as an int within [low, high].

    Raises:
        TypeError: no integer.
        ValueError: out of range.
    """
    try:
        result = operator.index(value)
    except TypeError:
        result = None
    if result is None or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, not {shown(value)}")
    if not low <= result <= high:
        raise ValueError(f"{name} must be from {low} to {high}, not {shown(result)}")
    return result


def number(name: str, value, low: float, high: float) -> float:
    """`value` as a float within [low, high].

    Raises:
        ValueError: no number, NaN, or out of range.
    """
    real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    try:
        # As a float first: beside a bound, NumPy would round the bound to a float16.
        result = float(value) if real else math.nan
    except OverflowError:  # an integer of more than 308 digits
        result = math.inf
    if not low <= result <= high:
        raise ValueError(f"{name} must be a number from {low:g} to {high:g}, not {shown(value)}")
    return result


def actions_of_shape(actions: ArrayLike, shape: tuple[int, int], agent: str = "arm") -> np.ndarray:
    """Any form of actions as float64 of this shape.

    They pass through single precision first, since that is what reaches the Unity build.

    Args:
        actions: array, list or CPU tensor of this shape, or flat.
        shape: (agents, actions).
        agent: what an error message calls an agent.

    Raises:
        ValueError: no real numbers, a wrong shape, NaN or infinity.
    """
    try:
        array = np.asarray(actions)
    except (TypeError, ValueError, RuntimeError) as error:  # the last: a tensor with a gradient
        raise ValueError(f"actions must be real numbers of shape {shape}: {error}") from None
    if array.dtype.kind not in "biuf":
        raise ValueError(f"actions must be real numbers of shape {shape}, not {array.dtype}")
    if array.shape not in (shape, (shape[0] * shape[1],)):
        raise ValueError(
            f"actions must have shape {shape} or ({shape[0] * shape[1]},), not {array.shape}"
        )
    with np.errstate(over="ignore"):  # a number beyond single precision becomes infinite
        array = array.reshape(shape).astype(np.float32).astype(np.float64)
    if not np.isfinite(array).all():
        row, index = np.argwhere(~np.isfinite(array))[0]
        raise ValueError(
            f"actions must be finite, but action {index} of {agent} {row} is {array[row, index]}"
        )
    return array


def shown(value) -> str:
    """A value for an error message, cut where it is long."""
    try:
        text = repr(value)
    except ValueError:  # Python writes integers of up to 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
