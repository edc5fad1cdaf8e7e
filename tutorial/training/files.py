"""Writing files whole or not at all, and the versions of their formats."""

import os
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save

RUN_FORMAT = 1  # of hyperparameters.json
STATE_FORMAT = 3  # of the training states; 1 had flat optimisers, 2 learned without an end


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: into a temporary file first, which then takes its name.

    Raises:
        OSError: the disk is full or gone, or a folder is in the way; with the name of the file.
    """
    temporary = path.with_name(path.name + ".tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:  # a full disk, or the stop button
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and not error.filename:
            error.filename = str(path)
        raise


def to_bytes(tensors: Mapping[str, torch.Tensor]) -> bytes:
    """Tensors as the content of a safetensors file."""
    return save({name: tensor.detach().clone() for name, tensor in tensors.items()})


def cannot_write(folder: Path, error: Exception) -> ValueError:
    """The error for a folder that cannot be made or written, with names of a length to read."""
    reason = getattr(error, "strerror", None) or str(error)  # without the name of a file
    file = getattr(error, "filename", None)
    metadata = f" ({shortened(file)})" if file and str(file) != str(folder) else ""
    return ValueError(
        f"cannot write into {shortened(folder)}: {reason}{metadata}; make space there, "
        "or choose another out_dir"
    )


def shortened(name: object, longest: int = 200) -> str:
    """A name as text, without its middle where it is long."""
    text = str(name)
    half = longest // 2
    return text if len(text) <= longest else f"{text[:half]} ... {text[-half:]}"
