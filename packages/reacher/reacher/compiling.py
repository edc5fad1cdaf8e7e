"""numba's compiler with a cache on disk, where there is room for one."""

from collections.abc import Callable

import numba


def njit(function: Callable) -> Callable:
    """`numba.njit(cache=True)`; without the cache where numba finds no folder to write it to."""
    try:
        return numba.njit(cache=True)(function)
    except RuntimeError:
        return numba.njit(function)
