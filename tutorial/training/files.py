"""What is written into files, and what is said where that fails."""

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save


def to_bytes(tensors: Mapping[str, torch.Tensor]) -> bytes:
    """Tensors as the content of a safetensors file."""
    return save({name: tensor.detach().clone() for name, tensor in tensors.items()})


def cannot_write(folder: Path, error: Exception) -> ValueError:
    """The error for a folder that cannot be made or written, with names of a length to read."""
    reason = getattr(error, "strerror", None) or str(error)  # without the name of a file
    file = getattr(error, "filename", None)
    where = f" ({str(file)[:200]})" if file and str(file) != str(folder) else ""
    return ValueError(
        f"cannot write into {str(folder)[:200]}: {reason}{where}; make space there, or choose "
        "another out_dir"
    )
