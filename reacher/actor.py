"""A trained actor from its files, without PyTorch: weights (safetensors) and settings (JSON).

Both are data: nothing in them is executed. What is evaluated is the mean policy, without noise.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from reacher.run_file import read_run_file
from reacher.task import ACTION_SIZE, OBSERVATION_SIZE

LARGEST_FILE = 64_000_000  # bytes of weights; the default actor has 157,020
MOST_LAYERS, MOST_UNITS = 32, 16_384
NORMALIZATIONS = {
    "input_normalization": ("fixed", "batch", "none"),
    "actor_normalization": ("layer", "batch", "none"),
}
MIRROR_SIGNS = "frame.signs"  # of the weights
GOAL_X, GOAL_Z = 26, 28  # of an observation
EPSILON = 1e-5  # of the normalizations, as in PyTorch
NAMED = ("best", "last")

Actor = Callable[[np.ndarray], np.ndarray]


def pretrained_actors(folder: Path) -> list[str]:
    """Names of the actors that a run folder holds: "best", "last", and numbers of episodes."""
    names = [name for name in NAMED if (folder / f"actor_{name}.safetensors").is_file()]
    episodes = [
        int(found[1])
        for path in folder.glob("actor_episode*.safetensors")
        if (found := re.fullmatch(r"actor_episode(\d{1,9})", path.stem))
    ]
    return names + [str(episode) for episode in sorted(episodes)]


def actor_path(folder: Path, name: str) -> Path:
    """Where a run folder has its actor "best", "last", or after an episode ("3").

    Raises:
        FileNotFoundError: there is no such folder or actor; names what there is.
    """
    if not folder.is_dir():
        raise FileNotFoundError(
            f"no run in {folder}: train one first (make run), or give the folder of another, such "
            "as checkpoints/default/seed0"
        )
    file = name if name in NAMED else f"episode{name}"
    if name not in pretrained_actors(folder):
        available = ", ".join(pretrained_actors(folder)) or "no actor's weights"
        raise FileNotFoundError(
            f"no actor {_short(name)!r} in {folder}: it holds {available}; 'random' needs none"
        )
    return folder / f"actor_{file}.safetensors"


def read_settings(folder: Path) -> dict:
    """The content of a run's `hyperparameters.json`, checked as far as the actor needs it.

    Raises:
        FileNotFoundError, ValueError: no such file, a damaged one, or a run of something else than
            arms.
    """
    path, content = folder / "hyperparameters.json", read_run_file(folder)
    try:
        settings = content["hyperparameters"]
        for name, allowed in NORMALIZATIONS.items():
            if settings[name] not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}")
        hidden, slope = settings["actor_hidden"], settings["negative_slope"]
        if not (
            isinstance(hidden, list)
            and 1 <= len(hidden) <= MOST_LAYERS
            and all(type(units) is int and 1 <= units <= MOST_UNITS for units in hidden)
        ):
            raise ValueError(
                f"actor_hidden must be 1 to {MOST_LAYERS} sizes of layers, "
                f"each from 1 to {MOST_UNITS}"
            )
        if type(slope) not in (int, float) or not math.isfinite(slope):
            raise ValueError("negative_slope must be a number")
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged or of another version: {_short(error)}") from None
    location = content.get("env_location", "")
    if str(location).startswith("gymnasium:"):
        raise ValueError(
            f"{folder} is a run of {_short(location)}, not of arms: only arms can be "
            "watched here; Gymnasium's environments draw themselves"
        )
    return content


def load_actor(folder: Path, name: str = "best") -> Actor:
    """The mean policy of a run's actor: observations (arms, 33) to actions (arms, 4), float32.

    Args:
        folder: of the run.
        name: "best", "last", or the number of an episode whose weights were saved.

    Raises:
        FileNotFoundError: there is no such run or actor.
        ValueError: a damaged file, or weights of another network.
        ModuleNotFoundError: the package safetensors is missing.
    """
    folder = Path(folder)
    if folder.is_dir() and (folder / "hyperparameters.json").is_file():
        read_settings(folder)  # a run of something else says so, whatever it keeps
    path = actor_path(folder, name)
    return actor_of(read_weights(path), read_settings(folder)["hyperparameters"], path)


def read_weights(path: Path) -> dict[str, np.ndarray]:
    """Tensors of a safetensors file by name. The format cannot carry code.

    Raises:
        ValueError: the file is damaged or too large.
        ModuleNotFoundError: the package safetensors is missing.
    """
    try:
        from safetensors.numpy import load
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "weights are read by the package safetensors: pip install safetensors"
        ) from None
    size = path.stat().st_size
    if size > LARGEST_FILE:
        raise ValueError(f"{path} has {size} bytes, and an actor's weights at most {LARGEST_FILE}")
    try:
        return load(path.read_bytes())
    except Exception as error:  # safetensors has types of its own for damage
        raise ValueError(f"{path} is damaged or no safetensors file: {_short(error)}") from None


def actor_of(weights: Mapping[str, np.ndarray], settings: Mapping, source: object) -> Actor:
    """The mean policy of these weights.

    Args:
        weights: as the notebook's Actor names them.
        settings: checked hyperparameters.
        source: what an error message calls the weights.

    Raises:
        ValueError: weights of another network, or numbers that are not finite.
    """
    expected = expected_shapes(settings)
    found = {name: array.shape for name, array in weights.items()}
    wrong = [
        f"{_short(name)} is {found.get(name, 'missing')}, not {expected.get(name, 'there')}"
        for name in sorted(expected.keys() | found.keys())
        if expected.get(name) != found.get(name)
    ]
    if wrong:
        raise ValueError(
            f"{source} holds the weights of another network than its settings say, "
            f"for {OBSERVATION_SIZE} observations and {ACTION_SIZE} actions: "
            f"{'; '.join(wrong[:3])}"
        )
    numbers = {}
    for name, array in weights.items():
        if not (np.issubdtype(array.dtype, np.number) and np.isfinite(array).all()):
            raise ValueError(f"{source}: {_short(name)} is not of finite numbers")
        numbers[name] = array.astype(np.float32)
    layers, slope = len(settings["actor_hidden"]), np.float32(settings["negative_slope"])

    mirrors = numbers.get(MIRROR_SIGNS)

    def act(observations):
        x, signs = np.asarray(observations, np.float32), np.float32(1)
        if mirrors is not None:
            signs = canonical_signs(x, mirrors)
            x, signs = x * signs[:, :OBSERVATION_SIZE], signs[:, OBSERVATION_SIZE:]
        x = _scaled(x, numbers, settings["input_normalization"])
        for k in range(1, layers + 1):
            x = x @ numbers[f"layers.{k}.0.weight"].T + numbers[f"layers.{k}.0.bias"]
            x = _normalized(x, numbers, f"layers.{k}.1", settings["actor_normalization"])
            x = np.where(x > 0, x, slope * x)
        last = f"layers.{layers + 1}"
        return signs * np.tanh(x @ numbers[f"{last}.weight"].T + numbers[f"{last}.bias"])

    return act


def canonical_signs(observations: np.ndarray, mirrors: np.ndarray) -> np.ndarray:
    """Signs (arms, 37) of observations and actions, as the notebook's `CanonicalFrame` has them.

    Args:
        observations: (arms, 33).
        mirrors: (2, 37) signs in the mirrors of x and of z, which the weights hold.
    """
    x, z = observations[:, [GOAL_X]] < 0, observations[:, [GOAL_Z]] < 0
    return np.where(x, mirrors[0], np.float32(1)) * np.where(z, mirrors[1], np.float32(1))


def expected_shapes(settings: Mapping) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the tensors that the notebook's Actor has with these settings."""

    def batch(name, size):
        return {
            f"{name}.{part}": (size,) for part in ("weight", "bias", "running_mean", "running_var")
        } | {f"{name}.num_batches_tracked": ()}

    def linear(name, inputs, outputs, noisy):
        shapes = {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}
        return shapes | (
            {f"{name}.sigma_weight": (outputs, inputs), f"{name}.sigma_bias": (outputs,)}
            if noisy
            else {}
        )

    sizes, noisy = [OBSERVATION_SIZE, *settings["actor_hidden"]], bool(settings["noisy_layers"])
    shapes = {
        "fixed": {"layers.0.factor": (OBSERVATION_SIZE,)},
        "none": {},
        "batch": batch("layers.0", OBSERVATION_SIZE),
    }[settings["input_normalization"]].copy()
    if settings.get("mirrors") == "canonical":  # files of older runs have no such setting
        shapes[MIRROR_SIGNS] = (2, OBSERVATION_SIZE + ACTION_SIZE)
    for k, (inputs, outputs) in enumerate(itertools.pairwise(sizes), start=1):
        shapes |= linear(f"layers.{k}.0", inputs, outputs, noisy and k > 1)
        shapes |= {
            "layer": {f"layers.{k}.1.weight": (outputs,), f"layers.{k}.1.bias": (outputs,)},
            "none": {},
            "batch": batch(f"layers.{k}.1", outputs),
        }[settings["actor_normalization"]]
    return shapes | linear(f"layers.{len(sizes)}", sizes[-1], ACTION_SIZE, noisy)


def _scaled(x, numbers, kind):
    if kind == "fixed":
        return x * numbers["layers.0.factor"]
    return _normalized(x, numbers, "layers.0", kind)


def _normalized(x, numbers, name, kind):
    """LayerNorm, or BatchNorm as it is after training, or nothing."""
    if kind == "none":
        return x
    if kind == "layer":
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    else:
        mean, variance = numbers[f"{name}.running_mean"], numbers[f"{name}.running_var"]
    scaled = (x - mean) / np.sqrt(variance + np.float32(EPSILON))
    return scaled * numbers[f"{name}.weight"] + numbers[f"{name}.bias"]


def _short(value: object, longest: int = 120) -> str:
    """A value of a file in a message: one short line without control characters."""
    text = "".join(letter if letter.isprintable() else " " for letter in str(value)[: 2 * longest])
    return text if len(text) <= longest else f"{text[:longest]} ..."
