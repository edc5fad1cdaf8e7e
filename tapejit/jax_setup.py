"""JAX as the compiled calls want it: on the processor, in one thread, imported when needed."""

from __future__ import annotations

import contextlib
import functools
import os
from types import ModuleType
from typing import Any

import numpy as np
import torch
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

    config: Any = jax.config
    if not config.jax_platforms:  # networks this small learn faster here than on a GPU
        config.update("jax_platforms", "cpu")
    config.update("jax_cpu_enable_async_dispatch", False)  # a call ends when its work is done
    if not config.jax_compilation_cache_dir:  # where compiled calls outlive the process
        config.update("jax_compilation_cache_dir", user_cache_dir("tapejit"))
        config.update("jax_persistent_cache_min_compile_time_secs", 0)
        config.update("jax_persistent_cache_min_entry_size_bytes", 0)
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

    known = {}
    for name, value in COMPILER_OPTIONS.items():
        if learns or "ynn" not in name:
            with contextlib.suppress(Exception):
                jax.jit(abs, compiler_options={name: value}).lower(0.0).compile()
                known[name] = value
    return known


def aligned(array: np.ndarray, length: int | None = None) -> np.ndarray:
    """A copy in memory of PyTorch's, which begins at a multiple of 64 bytes, with room for rows.

    JAX takes such an array as it is. Another one, if it is large, is copied in a second thread, in
    which the computation then goes on, on a core that has none of its numbers in its cache.
    """
    kind = torch.from_numpy(np.empty(0, array.dtype)).dtype
    copied = torch.empty((length or len(array), *array.shape[1:]), dtype=kind).numpy()
    copied[: len(array)] = array
    return copied
