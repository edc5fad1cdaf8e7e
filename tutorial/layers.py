"""The layer that scales the inputs of the notebook's networks."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn


class FixedScale(nn.Module):
    """Divide each input by a constant.

    Args: scale (inputs,), in which infinity leaves an input out.
    """

    factor: torch.Tensor

    def __init__(self, scale: np.ndarray) -> None:
        super().__init__()
        self.register_buffer("factor", torch.from_numpy(1.0 / scale))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factor
