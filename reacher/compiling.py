"""numba's compiler with a cache on disk that may be missing, full or damaged."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

import numba
from numba.core.caching import FunctionCache


class OptionalCache(FunctionCache):
    """numba's cache of a function, without which everything works as well, but starts later.

    Damaged files are written anew; a folder where nothing can be written is named once.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function for a signature, or None where there is none that can be read."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # of an emptied or cut file, unpickling raises anything
            with contextlib.suppress(OSError):
                self.flush()  # an empty index, so that the file's name is used again
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write the compiled function for a signature, if that is possible."""
        try:
            super().save_overload(sig, data)
        except Exception as error:  # OSError, or a damaged index that cannot be replaced
            warn_without_cache(getattr(error, "strerror", None) or repr(error))


def njit(function: Callable) -> Callable:
    """`numba.njit(cache=True)`, of which a cache that cannot be used makes no error.

    As with numba's own, the files are in `__pycache__` beside the module, or in the user's cache
    folder, or where NUMBA_CACHE_DIR says.
    """
    compiled: Any = numba.njit(function)
    try:
        compiled._cache = OptionalCache(function)  # what numba's enable_caching() does, with ours
    except RuntimeError:
        warn_without_cache("no folder for it can be written")
    return compiled


def warn_without_cache(reason: str) -> None:
    """Say that compiled functions are not kept; Python shows the same warning only once."""
    warnings.warn(
        f"numba cannot keep what it compiles ({reason}), so every start takes some seconds "
        "longer: set NUMBA_CACHE_DIR to a folder that can be written",
        stacklevel=1,
    )
