"""JAX as the compiled calls want it: on the processor, in one thread, imported when needed."""

from __future__ import annotations

import functools
import os
from types import ModuleType
from typing import Any

import numpy as np
from platformdirs import user_cache_dir

COMPILER_OPTIONS: dict[str, Any] = {
    "xla_cpu_experimental_ynn_fusion_type": "",  # other products of matrices: 7 % faster
    # One operation after the other, in the thread that calls: up to a quarter faster in a training.
    "xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED",
}


@functools.cache
def why_no_jax() -> str | None:
    """Why JAX cannot be used here, in one line, or None. The first call imports it: a second."""
    try:
        phases()
    except ModuleNotFoundError as error:
        return f"JAX is not installed (no module named {error.name!r}): pip install jax"
    except Exception as error:  # a broken installation fails in any way
        first = str(error).strip().partition("\n")[0]
        return f"JAX is installed but does not work: {type(error).__name__}: {first}"
    return None


@functools.cache
def phases() -> ModuleType:
    """The module `phases`, with JAX set up."""
    import jax

    if not jax.config.jax_platforms:  # networks this small learn faster here than on a GPU
        jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_cpu_enable_async_dispatch", False)  # a call ends when its work is done
    if not jax.config.jax_compilation_cache_dir:  # where compiled calls outlive the process
        jax.config.update("jax_compilation_cache_dir", user_cache_dir("tapejit"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
    present = "NPROC" in os.environ
    os.environ.setdefault("NPROC", "1")  # of which XLA makes the number of its threads
    try:
        jax.devices()
    finally:
        if not present:
            del os.environ["NPROC"]
    from tapejit import phases

    return phases


@functools.cache
def options(learns: bool = True) -> dict[str, Any]:
    """Those of COMPILER_OPTIONS that this version of JAX's compiler knows.

    Args: learns, whether matrices lie as JAX likes it; else YNNPACK's products are faster.
    """
    import jax

    def known(option):
        try:
            jax.jit(lambda x: x, compiler_options=option).lower(0.0).compile()
        except Exception:
            return False
        return True

    wanted = {x: y for x, y in COMPILER_OPTIONS.items() if learns or "ynn" not in x}
    return {name: value for name, value in wanted.items() if known({name: value})}


def aligned(array: np.ndarray, length: int | None = None, boundary: int = 64) -> np.ndarray:
    """A copy that begins at a multiple of so many bytes, with room for `length` rows.

    JAX takes such an array as it is. Another one, if it is large, is copied in a second thread, in
    which the computation then goes on, on a core that has none of its numbers in its cache.
    """
    shape = array.shape if length is None else (length, *array.shape[1:])
    size = int(np.prod(shape)) * array.itemsize
    memory = np.empty(size + boundary, np.uint8)
    start = -memory.ctypes.data % boundary
    copied = memory[start : start + size].view(array.dtype).reshape(shape)
    if length is None:
        copied[...] = array
    else:
        copied[: len(array)] = array
    return copied
