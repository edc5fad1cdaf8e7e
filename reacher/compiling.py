"""numba's compiler with a cache on disk, where there is a place for one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numba


def njit(function: Callable) -> Any:
    """`numba.njit(cache=True)`, or without the cache where no folder for it can be written.

    The files are in `__pycache__` beside the module, or in the user's cache folder, or where
    NUMBA_CACHE_DIR says.
    """
    try:
        return numba.njit(function, cache=True)
    except RuntimeError:
        warnings.warn(
            "numba cannot keep what it compiles (no folder for it can be written), so every start "
            "takes some seconds longer: set NUMBA_CACHE_DIR to a folder that can be written",
            stacklevel=1,
        )
        return numba.njit(function)
