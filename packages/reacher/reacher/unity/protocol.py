"""The protocol's messages, and `unityagents`, imported so that they work on today's Python."""

from __future__ import annotations

import ast
import importlib.util
import logging
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf import descriptor_database, descriptor_pb2, descriptor_pool, message_factory

EXCHANGE = "/communicator_objects.UnityToExternal/Exchange"  # the only call of this version
API_VERSION = "API-4"
OK, QUIT = 200, 400  # status in a message's header


def _install_messages() -> None:
    """Put working message classes where unityagents imports `communicator_objects.*_pb2` from.

    Each of those files holds its messages' description as bytes (`serialized_pb=_b('...')`),
    followed by code for protobuf 3.5. The bytes are read out of the source, the code is not run.
    The descriptors go to a pool of their own, so that they cannot clash with other packages.
    """
    package: Any = importlib.util.find_spec("communicator_objects")
    database = descriptor_database.DescriptorDatabase()
    modules = {}
    for path in Path(package.submodule_search_locations[0]).glob("*_pb2.py"):
        (text,) = [
            node.value.args[0].value  # type: ignore[attr-defined]  # a call with a text
            for node in ast.walk(ast.parse(path.read_bytes()))
            if isinstance(node, ast.keyword) and node.arg == "serialized_pb"
        ]
        description = descriptor_pb2.FileDescriptorProto.FromString(text.encode("latin1"))
        database.Add(description)
        modules[f"communicator_objects.{path.stem}"] = description.name
    pool = descriptor_pool.DescriptorPool(database)
    for name, file in modules.items():
        module = types.ModuleType(name, "Messages of ML-Agents v0.4, rebuilt by reacher.unity.")
        for message, descriptor in pool.FindFileByName(file).message_types_by_name.items():
            setattr(module, message, message_factory.GetMessageClass(descriptor))
        sys.modules[name] = module


if sys.modules.get("communicator_objects") is None:  # else an old protobuf has loaded it
    _install_messages()
_handler = logging.NullHandler()  # with one, logging.basicConfig in unityagents does nothing
logging.getLogger().addHandler(_handler)

import communicator_objects as messages  # noqa: E402, F401
import unityagents  # noqa: E402

logging.getLogger().removeHandler(_handler)
unityagents.environment.np = types.SimpleNamespace(**{**vars(np), "float_": np.float64})
