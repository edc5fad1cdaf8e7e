"""Trained networks from their files, without PyTorch, as assets/networks.js computes them too.

Weights are data: nothing is executed. They act with their mean weights, without noise.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors.numpy import load

from reacher.checks import shown
from reacher.columns import GOAL
from reacher.task import ACTION_SIZE, OBSERVATION_SIZE

EPSILON = np.float32(1e-5)  # of layer normalization, as in PyTorch


class Network(NamedTuple):
    """An actor, which ends in a tanh, or a critic. The scale of inputs is in the first layer."""

    # Weight (outputs, inputs) and bias (outputs,) of each layer, and of normalized ones the factor
    # and the shift (outputs,) of layer normalization. A ReLU lies between any two.
    layers: list[list[np.ndarray]]
    mirrors: np.ndarray | None  # signs (2, 37) of observations and actions, of x and of z

    def act(self, observations: np.ndarray) -> np.ndarray:
        """An actor's actions (arms, 4), float32, for observations (arms, 33)."""
        x, signs = np.asarray(observations, np.float32), np.ones(1, np.float32)
        if self.mirrors is not None:  # it sees its goal at x >= 0 and z >= 0
            is_mirrored = x[:, GOAL] < 0
            signs = np.where(is_mirrored[:, [0]], self.mirrors[0], np.float32(1))
            signs = signs * np.where(is_mirrored[:, [2]], self.mirrors[1], np.float32(1))
            x, signs = x * signs[:, :OBSERVATION_SIZE], signs[:, OBSERVATION_SIZE:]
        for k, (weight, bias, *normalization) in enumerate(self.layers):
            x = (np.maximum(x, 0) if k else x) @ weight.T + bias
            if normalization:
                factor, shift = normalization
                x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + EPSILON)
                x = x * factor + shift
        return signs * np.tanh(x)

    def packed(self) -> dict:
        """The same for the function `network` of assets/networks.js: numbers in a row (base64)."""
        row = np.concatenate([np.ravel(part) for layer in self.layers for part in layer])
        numbers = base64.b64encode(row.astype("<f4").tobytes()).decode()
        sizes = [self.layers[0][0].shape[1], *(len(layer[0]) for layer in self.layers)]
        mirrors = None if self.mirrors is None else self.mirrors.tolist()
        normalized = [len(layer) > 2 for layer in self.layers]
        return {"sizes": sizes, "normalized": normalized, "mirrors": mirrors, "numbers": numbers}


def network_of(weights: Mapping[str, np.ndarray], source: object) -> Network:
    """The network of weights that are named as in the notebook's actors, or as in its critics.

    Raises ValueError for those of another network and for infinite numbers; `source` names them.
    """
    left = {k: np.asarray(v, np.float32) for k, v in weights.items() if ".sigma_" not in k}
    inputs = left.get("layers.0.weight", np.zeros(0)).shape[1:]  # of a critic: actions come in, too
    is_critic, layers, mirrors, k = inputs > (OBSERVATION_SIZE,), [], None, 0

    def take(name, *shape):
        if (array := left.pop(name)).shape != shape or not np.isfinite(array).all():
            raise ValueError(f"{name} must have shape {shape} and finite numbers")
        return array

    try:
        if "frame.signs" in left:
            mirrors = take("frame.signs", 2, OBSERVATION_SIZE + ACTION_SIZE)
        size = OBSERVATION_SIZE + is_critic * ACTION_SIZE
        scale = np.append(take("factor", OBSERVATION_SIZE), np.ones(is_critic * ACTION_SIZE))
        while (weight := f"layers.{k}.weight") in left:
            before, size = size, len(left[weight])
            layers.append([take(weight, size, before), take(f"layers.{k}.bias", size)])
            if f"layers.{k + 1}.weight" in left:  # layer normalization
                k += 1
                layers[-1] += [take(f"layers.{k}.{part}", size) for part in ("weight", "bias")]
            k += 2  # behind the ReLU
        if left or len(layers[-1]) > 2 or size != (1 if is_critic else ACTION_SIZE):
            raise ValueError(f"it has {size} outputs, and besides its layers {shown([*left])}")
    except (LookupError, TypeError, ValueError) as error:
        raise ValueError(
            f"{source} is no network of the notebook for arms (linear layers, perhaps layer "
            f"normalization, ReLU), and pages compute no other: {error}"
        ) from None
    layers[0][0] = layers[0][0] * np.float32(scale)
    return Network(layers, mirrors)


def read_network(path: Path) -> Network:
    """The network of a safetensors file; ValueError: it is damaged, or of another network."""
    content = path.read_bytes()
    try:
        weights = load(content)
    except Exception as error:  # safetensors has types of its own for damage
        raise ValueError(f"{path} is damaged or no safetensors file: {shown(error)}") from None
    return network_of(weights, path)


def actor_files(folder: Path | str) -> dict[str, Path]:
    """A run's actors by name: "best", "last", and episodes after which they were kept ("3")."""
    files = sorted(Path(folder).glob("actor_*.safetensors"))
    return {file.stem.removeprefix("actor_").removeprefix("episode"): file for file in files}
