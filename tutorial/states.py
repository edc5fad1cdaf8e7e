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

PLAIN = (type(None), bool, int, float, str)
CONTAINERS = {"dict": dict, "list": (list, collections.deque), "tuple": tuple, "set": set}
GENERATORS = (np.random.Generator, np.random.RandomState, random.Random, torch.Generator)
# What the cells build again, and what does not change.
CONSTANT = (types.FunctionType, types.MethodType, types.ModuleType, type, BaseModel, Path)
CONSTANT += (torch.dtype, torch.device, np.dtype, range, slice)
BLOCK = 2**17  # numbers, which are left out where all are 0, because a replay buffer fills slowly


def kind_of(value: Any) -> str:
    """How a value is packed; empty: it cannot be."""
    if isinstance(value, CONSTANT) or type(value).__module__.startswith("tapejit"):
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
    """The parts of a container, or the attributes of an object, by key; hooks are code."""
    if kind_of(value) == "object":
        return {key: part for key, part in vars(value).items() if "hook" not in key}
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

    Args:
        name: where the value is, such as "agent.replay".
        known: objects that are packed already, by id; empty at first.
        left_out: takes the names of what cannot be packed.
    """
    if type(value) in PLAIN:
        return value
    if id(value) not in known:
        kind = kind_of(value)
        known[id(value)] = value, (packed := {"kind": kind})  # the value, or ids would come back
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
    tensor = as_tensor(value)
    blocks = enumerate(tensor.contiguous().view(-1).split(BLOCK))
    return {
        "blocks": {k: part.clone() for k, part in blocks if part.view(torch.uint8).any()},
        "shape": tuple(tensor.shape),
        "type": tensor.dtype,
        "is_tensor": isinstance(value, torch.Tensor),
        "learns": getattr(value, "requires_grad", False),
        "gradient": value.grad if getattr(value, "is_leaf", False) else None,
    }


def unpack(packed: Any, built: Any, name: str, known: dict) -> Any:
    """What was packed: the built object with its content, or a new tensor or container.

    Args:
        built: what the cells have built in its place.
        known: what is unpacked already; empty at first.

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
    built = {"dict": dict, "list": list, "set": set}[kind]() if built is None else built
    built.clear()
    (built.extend if kind == "list" else built.update)(parts if kind == "dict" else parts.values())
    return built


def unpacked_numbers(packed: dict, built: Any, name: str) -> Any:
    """In place where shapes agree, because an optimizer or a view may hold the same numbers."""
    same = isinstance(built, (torch.Tensor, np.ndarray)) and tuple(built.shape) == packed["shape"]
    if isinstance(built, torch.nn.Parameter) and not same:
        raise ValueError(f"{name} has the shape {tuple(built.shape)}, not {packed['shape']}")
    new = torch.zeros(packed["shape"], dtype=packed["type"])  # takes no memory before it is filled
    tensor = as_tensor(built) if same else new
    whole = tensor if tensor.is_contiguous() else new
    for k, part in enumerate(whole.view(-1).split(BLOCK)):
        if k in packed["blocks"]:
            part.copy_(packed["blocks"][k])
        elif part.any():
            part.zero_()
    if whole is not tensor:
        tensor.copy_(whole)
    if not packed["is_tensor"]:
        return built if same else tensor.numpy()[()]
    tensor = built if same else tensor
    if tensor.is_leaf:
        tensor.requires_grad_(packed["learns"]).grad = packed["gradient"]
    return tensor
