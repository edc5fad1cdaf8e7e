"""numba's compiler with a cache on disk, where there is room for one."""

from collections.abc import Callable

import numba


def njit(function: Callable) -> Callable:
    """`numba.njit(cache=True)`; without the cache where numba finds no folder that it may write.

    Then every start takes some seconds longer. NUMBA_CACHE_DIR names another folder.
    """
    try:
        return numba.njit(cache=True)(function)
    except RuntimeError:
        return numba.njit(function)
