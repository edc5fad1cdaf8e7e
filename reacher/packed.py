"""Networks of a run for the page: numbers in a row, what a script needs to evaluate them.

Scaling of inputs and batch normalization, which are affine after training, go into the linear
layers; what is left is linear layers, LayerNorm, (leaky) ReLU and a tanh.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from reacher.actor import EPSILON, MIRROR_SIGNS, actor_of, actor_path, read_settings, read_weights
from reacher.task import ACTION_SIZE, OBSERVATION_SIZE


def packed_actor(folder: Path, name: str = "best") -> dict:
    """The mean policy of a run's actor, as `network` of assets/networks.js takes it.

    Args:
        folder: of the run.
        name: "best", "last", or the number of an episode whose weights are kept.

    Raises: as `reacher.actor.load_actor`.
    """
    settings, path = read_settings(folder)["hyperparameters"], actor_path(folder, name)
    return pack_actor(read_weights(path), settings, path)


def pack_actor(weights: Mapping[str, np.ndarray], settings: Mapping, source: object) -> dict:
    """The same of weights in memory; arguments and errors as of `reacher.actor.actor_of`."""
    actor_of(weights, settings, source)  # checks them
    hidden = settings["actor_hidden"]
    names = [f"layers.{k}" for k in range(len(hidden) + 2)]
    return {"bounded": True} | _packed(
        weights,
        names[0],
        names[1:-1],
        names[-1],
        [OBSERVATION_SIZE, *hidden, ACTION_SIZE],
        settings,
        settings["actor_normalization"],
    )


def packed_critic(folder: Path) -> dict | None:
    """The critic of a run's best actor, likewise; None where the run keeps none.

    Raises:
        ValueError: a damaged file, or weights of another network.
    """
    path = folder / "critic_best.safetensors"
    if not path.is_file():
        return None
    settings, weights = read_settings(folder)["hyperparameters"], read_weights(path)
    try:
        hidden, joins = settings["critic_hidden"], settings["critic_action_layer"] - 1
        names = [f"blocks.{k}" for k in range(len(hidden))]
        return {"bounded": False, "joins": joins} | _packed(
            weights,
            "scaling",
            names,
            "output",
            [OBSERVATION_SIZE, *hidden, 1],
            settings,
            settings["critic_normalization"],
            joins,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} holds the weights of another network than its settings say: {error}"
        ) from None


def _packed(
    weights: Mapping[str, np.ndarray],
    scaling: str,
    blocks: Sequence[str],
    output: str,
    sizes: Sequence[int],
    settings: Mapping,
    normalization: str,
    joins: int | None = None,
) -> dict:
    """Sizes, slope and numbers (base64 of float32) of a network with these names of layers."""
    numbers = []
    for k, (name, inputs, outputs) in enumerate(
        zip([*blocks, output], sizes, sizes[1:], strict=False)
    ):
        linear = name if name == output else f"{name}.0"
        weight = weights[f"{linear}.weight"].astype(np.float64)
        bias = weights[f"{linear}.bias"].astype(np.float64)
        expected = outputs, inputs + ACTION_SIZE * (k == joins)
        if weight.shape != expected:
            raise ValueError(f"{linear}.weight is {weight.shape}, not {expected}")
        if k == 0:
            factor, shift = _affine(weights, scaling, settings["input_normalization"])
            # shift and factor: of all inputs of the first layer
            bias, weight = bias + weight @ (shift + np.zeros(expected[1])), weight * factor
        if name != output and normalization == "batch":
            factor, shift = _affine(weights, f"{name}.1", "batch")
            weight, bias = weight * factor[:, None], bias * factor + shift
        numbers += [weight, bias]
        if name != output and normalization == "layer":
            numbers += [weights[f"{name}.1.weight"], weights[f"{name}.1.bias"]]
    row = np.concatenate([np.ravel(each) for each in numbers]).astype("<f4")
    if not np.isfinite(row).all():
        raise ValueError("there are numbers that are not finite")
    mirrors = weights[MIRROR_SIGNS].tolist() if MIRROR_SIGNS in weights else None
    return {
        "sizes": list(sizes),
        "mirrors": mirrors,
        "normalized": normalization == "layer",
        "slope": settings["negative_slope"],
        "numbers": base64.b64encode(row.tobytes()).decode(),
    }


def _affine(weights: Mapping[str, np.ndarray], name: str, kind: str) -> tuple:
    """Factor and shift of a scaling of inputs, or of a batch normalization after training."""
    if kind == "none":
        return np.ones(1), np.zeros(1)
    if kind == "fixed":
        return weights[f"{name}.factor"].astype(np.float64), np.zeros(1)
    mean, variance, factor, shift = (
        weights[f"{name}.{part}"].astype(np.float64)
        for part in ("running_mean", "running_var", "weight", "bias")
    )
    factor = factor / np.sqrt(variance + EPSILON)
    return factor, shift - mean * factor
