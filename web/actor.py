"""A trained actor from its files, without PyTorch: weights (safetensors) and settings (JSON).

Both are data: nothing in them is executed. What is evaluated is the mean policy, without noise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

import numpy as np

from reacher.checks import shown
from reacher.task import ACTION_SIZE, OBSERVATION_SIZE
from web.run_file import read_run_file, without_removed

MIRROR_SIGNS = "frame.signs"  # of the weights
GOAL_X, GOAL_Z = 26, 28  # of an observation
EPSILON = 1e-5  # of layer normalization, as in PyTorch
NAMED = ("best", "last")
PARTS = {"factor", "signs", "weight", "bias", "sigma_weight", "sigma_bias"}
EDITED = (
    "pages show only networks of linear layers, layer normalization and ReLU; others play in the "
    "notebook alone"
)

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
            f"no actor {shown(name)} in {folder}: it holds {available}; 'random' needs none"
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
        if not settings["actor_hidden"]:
            raise ValueError("actor_hidden must name layers")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged or of another version: {shown(error)}") from None
    if content.get("edited_actor"):
        raise ValueError(f"the actor of {folder} was edited: {EDITED}")
    location = content.get("env_location", "")
    if str(location).startswith("gymnasium:"):
        raise ValueError(
            f"{folder} is a run of {shown(location)}, not of arms: only arms can be "
            "watched here; Gymnasium's environments draw themselves"
        )
    without_removed(path, settings)
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
        ValueError: the file is damaged.
        ModuleNotFoundError: the package safetensors is missing.
    """
    try:
        from safetensors.numpy import load
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "weights are read by the package safetensors: pip install safetensors"
        ) from None
    try:
        return load(path.read_bytes())
    except Exception as error:  # safetensors has types of its own for damage
        raise ValueError(f"{path} is damaged or no safetensors file: {shown(error)}") from None


def actor_of(weights: Mapping[str, np.ndarray], settings: Mapping, source: object) -> Actor:
    """The mean policy of these weights.

    Args:
        weights: as the notebook's Actor names them.
        settings: checked hyperparameters.
        source: what an error message calls the weights.

    Raises:
        ValueError: weights of another network, or numbers that are not finite.
    """
    numbers = {}
    for name, array in weights.items():
        if not (np.issubdtype(array.dtype, np.number) and np.isfinite(array).all()):
            raise ValueError(f"{source}: {shown(name)} is not of finite numbers")
        numbers[name] = array.astype(np.float32)
    layers = len(settings["actor_hidden"])
    is_canonical = settings.get("mirrors") == "canonical"  # older runs have no such setting

    def act(observations):
        x, signs = np.asarray(observations, np.float32), np.float32(1)
        if is_canonical:
            signs = canonical_signs(x, numbers[MIRROR_SIGNS])
            x, signs = x * signs[:, :OBSERVATION_SIZE], signs[:, OBSERVATION_SIZE:]
        x = x * numbers["layers.0.factor"]
        for k in range(1, layers + 1):
            x = x @ numbers[f"layers.{k}.0.weight"].T + numbers[f"layers.{k}.0.bias"]
            mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
            x = (x - mean) / np.sqrt(variance + np.float32(EPSILON))
            x = x * numbers[f"layers.{k}.1.weight"] + numbers[f"layers.{k}.1.bias"]
            x = np.maximum(x, 0)
        last = f"layers.{layers + 1}"
        return signs * np.tanh(x @ numbers[f"{last}.weight"].T + numbers[f"{last}.bias"])

    try:
        shape = act(np.zeros((1, OBSERVATION_SIZE), np.float32)).shape
        if shape != (1, ACTION_SIZE):
            raise ValueError(f"its actions have shape {shape}, not {(1, ACTION_SIZE)}")
    except (KeyError, ValueError) as error:
        raise ValueError(
            f"{source} holds the weights of another network than its settings say, for "
            f"{OBSERVATION_SIZE} observations and {ACTION_SIZE} actions: {error!r}"
        ) from None
    hidden = [f"layers.{k}.{part}" for k in range(1, layers + 1) for part in (0, 1)]
    require_known(numbers, ["frame", "layers.0", *hidden, f"layers.{layers + 1}"], source)
    return act


def require_known(weights: Iterable[str], places: Collection[str], source: object) -> None:
    """Raise ValueError for names of weights of other layers than these, or of other kinds."""
    for name in weights:
        place, _, part = name.rpartition(".")
        if place not in places or part not in PARTS:
            raise ValueError(f"{source}: {shown(name)} is of an edited network: {EDITED}")


def canonical_signs(observations: np.ndarray, mirrors: np.ndarray) -> np.ndarray:
    """Signs (arms, 37) of observations and actions, as the notebook's `CanonicalFrame` has them.

    Args:
        observations: (arms, 33).
        mirrors: (2, 37) signs in the mirrors of x and of z, which the weights hold.
    """
    x, z = observations[:, [GOAL_X]] < 0, observations[:, [GOAL_Z]] < 0
    return np.where(x, mirrors[0], np.float32(1)) * np.where(z, mirrors[1], np.float32(1))
