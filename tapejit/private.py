"""All that tapejit uses of PyTorch without a promise that it stays; 2.6 and 2.13 were run."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from unittest import mock

import torch
from torch.utils._python_dispatch import TorchDispatchMode as DispatchMode
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_map_only, tree_unflatten
from torch.utils.hooks import RemovableHandle

__all__ = ["DispatchMode", "tree_flatten", "tree_leaves"]
__all__ += ["tree_map", "tree_map_only", "tree_unflatten"]


def numbers_stay_tensors() -> Any:
    """A context in which optimizers compute with tensors, such as their count of steps."""
    return mock.patch.object(torch.compiler, "_is_compiling_flag", True)


def schema_of(operation: Any) -> tuple[str, str, str, list[str]]:
    """Namespace, name and overload of an operation, and which of its arguments it writes."""
    namespace, _, name = operation._schema.name.partition("::")
    written = [each.name for each in operation._schema.arguments if each.is_write]
    return namespace, name, operation._overloadname, written


def decomposed(operation: Any, args: Sequence, kwargs: Mapping) -> Any:
    """The result by other operations, or NotImplemented."""
    return decompositions().get(operation, operation.decompose)(*args, **kwargs)


@functools.cache
def decompositions() -> Mapping[Any, Callable]:
    """How PyTorch makes rarer operations of others."""
    from torch._decomp import core_aten_decompositions, decomposition_table

    return {**decomposition_table, **core_aten_decompositions()}


def memory_of(tensor: torch.Tensor) -> int:
    """What is the same for all tensors that share memory."""
    return tensor.untyped_storage()._cdata


HOOKS = "_backward_hooks"  # the attribute of a tensor with those of its gradient


def hooks_so_far() -> int:
    """How often a hook of a module, tensor or optimizer was registered in this process."""
    return RemovableHandle.next_id
