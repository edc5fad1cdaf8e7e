"""The version of the format of states, and what is written into files."""

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save

STATE_FORMAT = 3  # of the training states; 1 had flat optimizers, 2 learned without an end


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
