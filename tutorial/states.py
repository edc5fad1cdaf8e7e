"""An agent as plain data, and back: all that the future of a training depends on.

`pack` follows an agent's attributes, whatever they are called. `unpack` gives them back to an agent
that the same cells have built. The data are tensors, texts, numbers and containers alone, so a file
of them cannot carry code.
"""

from __future__ import annotations

import collections
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
CONTAINERS: dict[str, Any] = {"dict": dict, "tuple": tuple, "set": set}
CONTAINERS |= {"list": (list, collections.deque)}
# What the cells build again, and what does not change.
BUILT: tuple[Any, ...] = (types.FunctionType, types.MethodType, types.ModuleType, type, Path)
BUILT += (BaseModel, tapejit.Learner, torch.dtype, torch.device, np.dtype, range, slice)


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
    if isinstance(value, np.random.Generator) or hasattr(value, "load_state_dict"):
        return "state"
    file = getattr(sys.modules.get(type(value).__module__), "__file__", None) or ""
    library = "-packages" in file or file.startswith(sysconfig.get_paths()["stdlib"])
    return "object" if hasattr(value, "__dict__") and not library else "built" * callable(value)


def parts_of(value: Any) -> dict[Any, Any]:
    """The parts of a container, or attributes of an object, by key; hooks of modules are code."""
    if kind_of(value) == "object":
        return {k: v for k, v in vars(value).items() if not (k.startswith("_") and "hook" in k)}
    return value if isinstance(value, dict) else dict(enumerate(value))


def pack(value: Any, name: str, known: set[int], left_out: list[str]) -> Any:
    """A number or text as it is, and anything else as a dict with its kind.

    `known` has the ids of objects that are packed already, and `left_out` takes the names of what
    cannot be.
    """
    if type(value) in PLAIN:
        return value
    kind = kind_of(value)
    if kind == "numbers":
        return {"kind": kind} | packed_numbers(value)
    if not kind:
        left_out.append(name)
    if kind in ("", "built") or id(value) in known:
        return {"kind": "built"}
    if kind in ("state", "object"):
        known.add(id(value))
    if kind == "state":
        random = isinstance(value, np.random.Generator)
        state = value.bit_generator.state if random else value.state_dict()
        return {"kind": kind, "state": pack(state, name, known, left_out)}
    parts = {k: pack(part, f"{name}.{k}", known, left_out) for k, part in parts_of(value).items()}
    return {"kind": kind, "parts": parts}


def unpack(packed: Any, built: Any) -> Any:
    """What was packed: the object that the cells have built with its content, or a new container.

    Where the built object is of another kind, some error follows.
    """
    if not isinstance(packed, dict):
        return packed
    kind = packed["kind"]
    if kind == "numbers":
        return unpacked_numbers(packed, built)
    if kind == "state":
        state = unpack(packed["state"], None)
        if isinstance(built, np.random.Generator):
            built.bit_generator.state = state
        else:
            built.load_state_dict(state)
    if kind in ("state", "built"):
        return built
    same = kind_of(built) == kind
    before = parts_of(built) if same else {}
    parts = {key: unpack(part, before.get(key)) for key, part in packed["parts"].items()}
    if kind == "object":
        vars(built).update(parts)
        return built
    if kind == "tuple":
        return type(built)(*parts.values()) if hasattr(built, "_fields") else tuple(parts.values())
    container = built if same else {"dict": {}, "list": [], "set": set()}[kind]
    container.clear()
    if kind == "list":
        container.extend(parts.values())
    else:
        container.update(parts if kind == "dict" else parts.values())
    return container


def as_tensor(value: Any) -> torch.Tensor:
    """The numbers of a tensor or an array, in the same memory."""
    is_tensor = isinstance(value, torch.Tensor)
    return value.detach() if is_tensor else torch.from_numpy(np.require(value, requirements="W"))


def packed_numbers(value: Any) -> dict[str, Any]:
    """A tensor with its gradient, which some steps leave for the next one, or an array."""
    tensor, rows = as_tensor(value), len(value) if value.ndim else 0
    while rows > 10_000 and not tensor[rows // 2 : rows].any():
        rows //= 2  # of a replay buffer that is not yet full
    return {
        "numbers": tensor if value.ndim == 0 or rows == len(value) else tensor[:rows].clone(),
        "shape": tuple(value.shape),
        "is_tensor": isinstance(value, torch.Tensor),
        "learns": getattr(value, "requires_grad", False),
        "gradient": value.grad if getattr(value, "is_leaf", False) else None,
    }


def unpacked_numbers(packed: dict, built: Any) -> Any:
    """In place where shapes agree, because an optimizer or a view may hold the same numbers."""
    numbers, shape = packed["numbers"], packed["shape"]
    same = kind_of(built) == "numbers" and getattr(built, "flags", np.zeros(0).flags).writeable
    same = same and (tuple(built.shape), as_tensor(built).dtype) == (shape, numbers.dtype)
    if isinstance(built, torch.nn.Parameter) and not same:
        raise ValueError(f"weights have the shape {tuple(built.shape)} here, and {shape} there")
    tensor = as_tensor(built) if same else torch.zeros(shape, dtype=numbers.dtype)
    if numbers.shape == tensor.shape:
        tensor.copy_(numbers)
    else:
        tensor[: len(numbers)] = numbers
        if tensor[len(numbers) :].any():  # else it stays memory that nobody has touched
            tensor[len(numbers) :] = 0
    if not packed["is_tensor"]:
        return built if same else tensor.numpy()[()]
    tensor = built if same else tensor
    if tensor.is_leaf:
        tensor.requires_grad_(packed["learns"]).grad = packed["gradient"]
    return tensor
