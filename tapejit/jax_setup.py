"""JAX as the compiled calls want it: on the processor, in one thread, imported when needed."""

from __future__ import annotations

import functools
import os
from types import ModuleType
from typing import Any
from unittest import mock

from platformdirs import user_cache_dir

COMPILER_OPTIONS: dict[str, Any] = {
    "xla_cpu_experimental_ynn_fusion_type": "",  # other products of matrices: 7 % faster
    # One operation after the other, in the thread that calls: up to a quarter faster in a training.
    "xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED",
}


@functools.cache
def phases() -> ModuleType:
    """The module `phases`, with JAX set up. The first call imports it: a second."""
    import jax

    config: Any = jax.config
    if not config.jax_platforms:  # networks this small learn faster here than on a GPU
        config.update("jax_platforms", "cpu")
    config.update("jax_cpu_enable_async_dispatch", False)  # a call ends when its work is done
    if not config.jax_compilation_cache_dir:  # where compiled calls outlive the process
        config.update("jax_compilation_cache_dir", user_cache_dir("tapejit"))
        config.update("jax_persistent_cache_min_compile_time_secs", 0)
        config.update("jax_persistent_cache_min_entry_size_bytes", 0)
    with mock.patch.dict(os.environ, NPROC=os.environ.get("NPROC", "1")):  # XLA's threads
        jax.devices()
    from tapejit import phases

    return phases
