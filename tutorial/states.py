"""An agent as plain data, and back: all that the future of a training depends on.

`pack` follows an agent's attributes, whatever they are called: tensors, arrays, numbers, texts,
containers, modules, optimizers, schedulers, random generators, and objects of the user's own
classes. `unpack` gives them back to an agent that the same cells have built. The data are tensors,
texts, numbers and containers alone, so a file of them cannot carry code.
"""

from __future__ import annotations

import collections
import random
import sys
import sysconfig
import types
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel

import tapejit

PLAIN = (type(None), bool, int, float, str)
LIST = (list, collections.deque)
CONTAINERS: dict[str, Any] = {"dict": dict, "list": LIST, "tuple": tuple, "set": set}
GENERATORS = (np.random.Generator, np.random.RandomState, random.Random, torch.Generator)
# What the cells build again, and what does not change.
BUILT: tuple[Any, ...] = (types.FunctionType, types.MethodType, types.ModuleType, type, Path)
BUILT += (BaseModel, tapejit.Learner, torch.dtype, torch.device, np.dtype, range, slice)
BLOCK = 2**17  # numbers: where all are 0 at the end, as in a buffer that fills, they are left out


def kind_of(value: Any) -> str:
    """How a value is packed; empty: it cannot be."""
    if isinstance(value, BUILT):
        return "built"
    if isinstance(value, (torch.Tensor, np.ndarray, np.generic)):
        return "numbers" if getattr(value.dtype, "kind", "f") in "biuf" else ""
    for kind, members in CONTAINERS.items():
        if isinstance(value, members):
            return kind
    if isinstance(value, torch.nn.Module):
        return "object"
    if isinstance(value, GENERATORS) or hasattr(value, "load_state_dict"):
        return "state"
    file = getattr(sys.modules.get(type(value).__module__), "__file__", None) or ""
    library = "site-packages" in file or file.startswith(sysconfig.get_paths()["stdlib"])
    return "object" if hasattr(value, "__dict__") and not library else "built" * callable(value)


def parts_of(value: Any) -> dict[Any, Any]:
    """The parts of a container, or attributes of an object, by key; hooks of modules are code."""
    if kind_of(value) == "object":
        return {k: v for k, v in vars(value).items() if not (k.startswith("_") and "hook" in k)}
    return value if isinstance(value, dict) else dict(enumerate(value))


def state_of(value: Any, *new: Any) -> Any:
    """The state of a generator, an optimizer, a scheduler and the like; or set a new one."""
    if not isinstance(value, np.random.Generator):
        names = ("load_state_dict", "setstate", "set_state")  # PyTorch's, Python's, NumPy's
        names = names if new else ("state_dict", "getstate", "get_state")
        return next(getattr(value, name) for name in names if hasattr(value, name))(*new)
    if new:
        [value.bit_generator.state] = new
    return value.bit_generator.state


def pack(value: Any, name: str, known: dict, left_out: list[str]) -> Any:
    """A number or text as it is, anything else as a dict, each object once.

    `known` has what is packed already, by id; `left_out` takes the names of what cannot be.
    """
    if type(value) in PLAIN:
        return value
    if id(value) not in known:
        kind = kind_of(value)
        known[id(value)] = value, (packed := dict[str, Any](kind=kind))  # or ids come back
        if kind == "numbers":
            packed |= packed_numbers(value)
        elif kind == "state":
            packed["state"] = pack(state_of(value), name, known, left_out)
        elif kind in ("object", *CONTAINERS):
            parts = {k: pack(v, f"{name}.{k}", known, left_out) for k, v in parts_of(value).items()}
            packed["parts"] = {k: v for k, v in parts.items() if isinstance(k, (*PLAIN, tuple))}
            left_out += [f"{name}.{k}" for k in parts.keys() - packed["parts"].keys()]
        elif not kind:
            left_out.append(name)
    return known[id(value)][1]


def as_tensor(value: Any) -> torch.Tensor:
    """The numbers of a tensor or an array, in the same memory."""
    is_tensor = isinstance(value, torch.Tensor)
    return value.detach() if is_tensor else torch.from_numpy(np.require(value, requirements="W"))


def packed_numbers(value: Any) -> dict[str, Any]:
    """A tensor with its gradient, which some steps leave for the next one, or an array."""
    numbers = as_tensor(value).contiguous().view(-1)
    end = len(numbers)
    while end and not numbers[max(0, end - BLOCK) : end].view(torch.uint8).any():
        end = max(0, end - BLOCK)
    return {
        "numbers": numbers[:end].clone(),
        "shape": tuple(value.shape),
        "is_tensor": isinstance(value, torch.Tensor),
        "learns": getattr(value, "requires_grad", False),
        "gradient": value.grad if getattr(value, "is_leaf", False) else None,
    }


def unpack(packed: Any, built: Any, name: str, known: dict) -> Any:
    """What was packed: the object that the cells have built with its content, or a new container.

    Raises:
        ValueError: the built object is of another kind; says where.
    """
    if not isinstance(packed, dict):
        return packed
    if id(packed) not in known:
        known[id(packed)], kind = built, packed["kind"]  # at once: its parts may refer to it
        same = built if kind_of(built) == kind else None
        if kind in ("object", "state") and same is None:
            raise ValueError(f"{name} is {built!r} here, and no {kind}")
        if kind == "numbers":
            known[id(packed)] = unpacked_numbers(packed, same, name)
        elif kind == "state":
            state_of(built, unpack(packed["state"], None, name, known))
        elif kind not in ("built", ""):
            before = {} if same is None else parts_of(same)
            parts = packed["parts"].items()
            parts = {k: unpack(v, before.get(k), f"{name}.{k}", known) for k, v in parts}
            known[id(packed)] = assembled(kind, parts, same)
    return known[id(packed)]


def assembled(kind: str, parts: dict, built: Any) -> Any:
    """A container or object with these parts: the one that was built, or a new one."""
    if kind == "object":
        vars(built).update(parts)
        return built
    if kind == "tuple":
        return type(built)(*parts.values()) if hasattr(built, "_fields") else tuple(parts.values())
    built = {"dict": {}, "list": [], "set": set()}[kind] if built is None else built
    built.clear()
    (built.extend if kind == "list" else built.update)(parts if kind == "dict" else parts.values())
    return built


def unpacked_numbers(packed: dict, built: Any, name: str) -> Any:
    """In place where shapes agree, because an optimizer or a view may hold the same numbers."""
    numbers, shape, end = packed["numbers"], packed["shape"], len(packed["numbers"])
    tensor = as_tensor(built) if isinstance(built, (torch.Tensor, np.ndarray)) else None
    if new := tensor is None or (tuple(tensor.shape), tensor.dtype) != (shape, numbers.dtype):
        if isinstance(built, torch.nn.Parameter):
            raise ValueError(f"{name} has the shape {tuple(built.shape)}, not {shape}")
        tensor = torch.zeros(shape, dtype=numbers.dtype)  # takes no memory before it is filled
    row = tensor.contiguous().view(-1)
    row[:end] = numbers
    if row[end:].view(torch.uint8).any():
        row[end:] = 0
    if not tensor.is_contiguous():
        tensor.copy_(row.view(shape))
    if not packed["is_tensor"]:
        return tensor.numpy()[()] if new else built
    built = tensor if new else built
    if built.is_leaf:
        built.requires_grad_(packed["learns"]).grad = packed["gradient"]
    return built
