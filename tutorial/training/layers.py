"""What surrounds the linear layers of the notebook's networks: scaling, normalization, the like."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from torch import nn


class FixedScale(nn.Module):
    """Divide each input by a constant."""

    factor: torch.Tensor

    def __init__(self, scale: np.ndarray) -> None:
        super().__init__()
        self.register_buffer("factor", torch.from_numpy(1.0 / scale))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factor


def input_scaling(scale: np.ndarray, settings: Any) -> nn.Module:
    """The module that scales (batch, len(scale)) inputs as the settings say."""
    if settings.input_normalization == "batch":
        return nn.BatchNorm1d(len(scale))
    return FixedScale(scale) if settings.input_normalization == "fixed" else nn.Identity()


def normalization(kind: str, units: int) -> nn.Module:
    """Of a hidden layer's (batch, units): "layer", "batch" or "none"."""
    return {"layer": nn.LayerNorm, "batch": nn.BatchNorm1d, "none": nn.Identity}[kind](units)


def activation(settings: Any) -> nn.Module:
    """ReLU, or LeakyReLU where the settings name a slope."""
    return nn.LeakyReLU(settings.negative_slope) if settings.negative_slope else nn.ReLU()


def initialize(network: nn.Module, settings: Any) -> nn.Module:
    """Draw all linear layers anew where the settings want DDPG's way (section 7); return it."""
    if settings.initialization == "fan_in":
        linear = [module for module in network.modules() if isinstance(module, nn.Linear)]
        for layer in linear:
            bound = 3e-3 if layer is linear[-1] else layer.in_features**-0.5
            nn.init.uniform_(layer.weight, -bound, bound)
            nn.init.uniform_(layer.bias, -bound, bound)
    return network


def target_copy(network: nn.Module, zero: bool = False) -> nn.Module:
    """A copy of a network that no gradient reaches, or one whose weights are all 0."""
    target = copy.deepcopy(network).requires_grad_(False)
    if zero:
        for parameter in target.parameters():
            parameter.zero_()
    return target
