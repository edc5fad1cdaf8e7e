"""Networks of a run for the page: numbers in a row, what a script needs to evaluate them.

The scaling of inputs goes into the first linear layer. What is left is linear layers, LayerNorm,
ReLU and a tanh.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from reacher.task import ACTION_SIZE, OBSERVATION_SIZE
from web.actor import (
    MIRROR_SIGNS,
    actor_of,
    actor_path,
    read_settings,
    read_weights,
    require_known,
)


def packed_actor(folder: Path, name: str = "best") -> dict:
    """The mean policy of a run's actor, as `network` of assets/networks.js takes it.

    Args:
        folder: of the run.
        name: "best", "last", or the number of an episode whose weights are kept.

    Raises: as `web.actor.load_actor`.
    """
    settings, path = read_settings(folder)["hyperparameters"], actor_path(folder, name)
    return pack_actor(read_weights(path), settings, path)


def pack_actor(weights: Mapping[str, np.ndarray], settings: Mapping, source: object) -> dict:
    """The same of weights in memory; arguments and errors as of `web.actor.actor_of`."""
    actor_of(weights, settings, source)  # checks them
    hidden = settings["actor_hidden"]
    names = [f"layers.{k}" for k in range(len(hidden) + 2)]
    return {"bounded": True} | _packed(
        weights,
        names[0],
        names[1:-1],
        names[-1],
        [OBSERVATION_SIZE, *hidden, ACTION_SIZE],
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
        hidden = settings["critic_hidden"]
        names = [f"blocks.{k}" for k in range(len(hidden))]
        parts = [f"{name}.{part}" for name in names for part in (0, 1)]
        require_known(weights, ["frame", "scaling", *parts, "output"], path)
        sizes = [OBSERVATION_SIZE + ACTION_SIZE, *hidden, 1]
        return {"bounded": False} | _packed(weights, "scaling", names, "output", sizes)
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
) -> dict:
    """Sizes and numbers (base64 of float32) of a network with these names of layers."""
    numbers: list[np.ndarray] = []
    for name, inputs, outputs in zip([*blocks, output], sizes, sizes[1:], strict=False):
        linear = name if name == output else f"{name}.0"
        weight, bias = weights[f"{linear}.weight"], weights[f"{linear}.bias"]
        if weight.shape != (outputs, inputs):
            raise ValueError(f"{linear}.weight is {weight.shape}, not {(outputs, inputs)}")
        if not numbers:
            weight = weight.astype(np.float64) * weights[f"{scaling}.factor"]
        numbers += [weight, bias]
        if name != output:
            numbers += [weights[f"{name}.1.weight"], weights[f"{name}.1.bias"]]
    row = np.concatenate([np.ravel(each) for each in numbers]).astype("<f4")
    if not np.isfinite(row).all():
        raise ValueError("there are numbers that are not finite")
    mirrors = weights[MIRROR_SIGNS].tolist() if MIRROR_SIGNS in weights else None
    numbers_as_text = base64.b64encode(row.tobytes()).decode()
    return {"sizes": list(sizes), "mirrors": mirrors, "numbers": numbers_as_text}
