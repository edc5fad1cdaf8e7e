"""Writing files whole or not at all, and the version of their format."""

import os
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save

RUN_FORMAT = 1  # of hyperparameters.json and of the training states


class NewerFormat(ValueError):
    """A file that a newer version of this project wrote."""


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: into a temporary file first, which then takes its name."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:  # a full disk, or the stop button
        temporary.unlink(missing_ok=True)
        raise


def to_bytes(tensors: Mapping[str, torch.Tensor]) -> bytes:
    """Tensors as the content of a safetensors file."""
    return save({name: tensor.detach().clone() for name, tensor in tensors.items()})
