"""An agent as plain data, and back: all that the future of a training depends on.

`pack` follows an agent's attributes, whatever they are called. `unpack` gives them back to an agent
that the same cells have built. The data are tensors, texts, numbers and containers alone, so a file
of them cannot carry code. An object that is met again stays one object: `known` has them by id.
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

import torch_phases

PLAIN = (type(None), bool, int, float, str)
LIST = (list, collections.deque)
CONTAINERS: dict[str, Any] = {"dict": dict, "tuple": tuple, "set": set, "list": LIST}
# What the cells build again, and what does not change.
BUILT: tuple[Any, ...] = (types.FunctionType, types.MethodType, types.ModuleType, type, Path)
BUILT += (BaseModel, torch_phases.Phases, torch.dtype, torch.device, np.dtype, range, slice)


def kind_of(value: Any) -> str:
    """How a value is packed; empty: it cannot be."""
    if isinstance(value, BUILT):
        return "built"
    if isinstance(value, (torch.Tensor, np.ndarray, np.generic)):
        return "numbers" if getattr(value.dtype, "kind", "f") in "biuf" else ""
    if isinstance(value, dict) and not all(type(key) in (*PLAIN, tuple) for key in value):
        return ""
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


def pack(value: Any, name: str, known: dict[int, dict], left_out: list[str]) -> Any:
    """A number or text, or a dict with the kind; `left_out` takes the names of what cannot be."""
    if type(value) in PLAIN or id(value) in known:
        return known.get(id(value), value)
    kind = kind_of(value)
    packed: dict[str, Any] = {"kind": kind}
    if kind in ("state", "object"):
        known[id(value)] = packed
    if kind == "":
        left_out.append(name)
    elif kind == "numbers":
        packed |= packed_numbers(value)
    elif kind == "state":
        random = isinstance(value, np.random.Generator)
        state = value.bit_generator.state if random else value.state_dict()
        packed["state"] = pack(state, name, known, left_out)
    elif kind != "built":
        parts = parts_of(value).items()
        packed["parts"] = {k: pack(part, f"{name}.{k}", known, left_out) for k, part in parts}
    return packed


def unpack(packed: Any, built: Any, known: dict[int, Any], name: str = "") -> Any:
    """What was packed: what the cells have built, with its content, or a new container.

    Raises:
        ValueError: an object of the cells, or a part of one, is missing; says which.
    """
    if not isinstance(packed, dict) or id(packed) in known:
        return known.get(id(packed), packed)
    kind, same = packed["kind"], kind_of(built) == packed["kind"]
    if not same and {kind, kind_of(built)} & {"object", "state"} and built is not None:
        raise ValueError(f"{name} is {kind_of(built)!r} in the cells, and was {kind!r}")
    if kind == "numbers":
        return unpacked_numbers(packed, built)
    if kind in ("state", "object"):
        known[id(packed)] = built
    if kind == "state":
        state = unpack(packed["state"], None, known)
        if isinstance(built, np.random.Generator):
            built.bit_generator.state = state
        else:
            built.load_state_dict(state)
    if kind in ("", "built", "state"):
        return built
    before = parts_of(built) if same else {}
    for key in before.keys() - packed["parts"].keys():
        if kind == "object" or kind_of(before[key]) == "object":
            raise ValueError(f"{name}.{key} is missing")
    parts = {
        k: unpack(part, before.get(k), known, f"{name}.{k}") for k, part in packed["parts"].items()
    }
    if kind == "object":
        vars(built).update((k, v) for k, v in parts.items() if k.isidentifier())
        return built
    if kind == "tuple":
        return type(built)(*parts.values()) if hasattr(built, "_fields") else tuple(parts.values())
    container: Any = built if same else {"dict": {}, "list": [], "set": set()}[kind]
    container.clear()
    add = container.extend if kind == "list" else container.update
    add(parts if kind == "dict" else parts.values())
    return container


def require_sound(agent: Any, episodes: int) -> None:
    """Raise ValueError if an agent after so many episodes holds what none can, and say what."""
    memory, schedules = agent.memory, getattr(agent, "schedules", None)
    ring, tree = getattr(memory, "ring", memory), getattr(memory, "tree", None)
    sums = getattr(tree, "sums", np.zeros(2))
    counts = {  # and their largest
        "ring.size": (getattr(ring, "size", 0), getattr(ring, "capacity", 0)),
        "ring.position": (getattr(ring, "position", 0), getattr(ring, "capacity", 1) - 1),
        "annealed_episodes": (getattr(schedules, "annealed_episodes", 0), episodes),
        "episodes": (len(getattr(schedules, "episodes", ())), episodes),
    }
    for name, (count, most) in counts.items():
        if type(count) is not int or not 0 <= count <= most:
            raise ValueError(f"{name} is {count}, and must be from 0 to {most}")
    if not (sums >= 0).all() or not np.allclose(sums[1 : len(sums) // 2], sums[2::2] + sums[3::2]):
        raise ValueError("priorities must be at least 0, and nodes of the tree their sums")


def packed_numbers(value: Any) -> dict[str, Any]:
    """A tensor with its gradient, which some steps leave for the next one, or an array."""
    is_tensor = isinstance(value, torch.Tensor)
    numbers = value.detach() if is_tensor else torch.from_numpy(np.require(value, None, "W"))
    rows = len(value) if value.ndim else 0
    while rows > 10_000 and not numbers[rows // 2 : rows].any():
        rows //= 2  # of a replay buffer that is not yet full
        numbers = numbers[:rows]
    return {
        "numbers": numbers.clone(),
        "shape": tuple(value.shape),
        "is_tensor": is_tensor,
        "learns": getattr(value, "requires_grad", False),
        "gradient": value.grad if getattr(value, "is_leaf", False) else None,
    }


def unpacked_numbers(packed: dict, built: Any) -> Any:
    """In place where shapes agree, because an optimizer or a view may hold the same numbers."""
    numbers, is_tensor = packed["numbers"].reshape(-1), packed["is_tensor"]
    new: Any = torch.zeros(packed["shape"], dtype=numbers.dtype)
    new.view(-1)[: len(numbers)] = numbers
    new = new if is_tensor else new.numpy()[()]
    same = isinstance(built, torch.Tensor if is_tensor else np.ndarray)
    if same and (built.shape, built.dtype) == (new.shape, new.dtype):
        (built.detach() if is_tensor else built)[...] = new
        new = built
    elif isinstance(built, torch.nn.Parameter):
        raise ValueError(f"weights have the shape {tuple(built.shape)}, and had {new.shape}")
    if is_tensor and new.is_leaf:
        new.requires_grad_(packed["learns"]).grad = packed["gradient"]
    return new
