"""The files of a training run: settings, weights, and how they are written."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file

from workshop.training.files import RUN_FORMAT, cannot_write, to_bytes, write_whole
from workshop.training.randomness import versions
from workshop.training.states import TrainingState


def run_folder(out_dir: str | os.PathLike, preset: str, seed: int) -> Path:
    """`<out_dir>/<preset>/seed<N>`, the folder of one training run."""
    return Path(out_dir) / preset / f"seed{seed}"


def require_kept_agent(folder: Path) -> None:
    """Check that `checkpoints/<preset>/seed<N>` holds a trained agent.

    Raises:
        FileNotFoundError: it does not; names those that do.
    """
    weights = "actor_best.safetensors"
    if not (folder / weights).exists():
        kept = sorted(path.parent for path in folder.parents[1].glob(f"*/seed*/{weights}"))
        names = ", ".join(f"{path.parent.name} {path.name}" for path in kept)
        raise FileNotFoundError(f"no trained agent in {folder}: with train = False these can be "
                                f"shown: {names or 'none'}; train others first (train = True)")


def begin_run(folder: Path, hyperparameters: Mapping, **about: object) -> None:
    """Make the folder of a new run, with `hyperparameters.json`.

    What an earlier run left there moves aside to `<folder>.<k>`.

    Raises:
        ValueError: the folder cannot be made or written.
    """
    try:
        if folder.exists() and any(folder.iterdir()):
            aside = next(path for k in range(1, 1_000_000)
                         if not (path := folder.with_name(f"{folder.name}.{k}")).exists())
            folder.rename(aside)
            print(f"an earlier run moves to {aside.name}")
        folder.mkdir(parents=True, exist_ok=True)
        save_hyperparameters(folder, hyperparameters, **about)
    except (OSError, ValueError) as error:  # the last: a name that cannot be
        raise cannot_write(folder, error) from None


def require_state(folder: Path) -> None:
    """Raise ValueError where a folder holds nothing to go on from."""
    try:
        exists = TrainingState(folder).exists()
    except (OSError, ValueError):  # a name that cannot be
        exists = False
    if not exists:
        raise ValueError(f"resume = True, but {folder} holds no training state: it saves the "
                         "first after an episode; begin with resume = False")


def save_hyperparameters(folder: Path, hyperparameters: Mapping, **more: object) -> None:
    """Write `hyperparameters.json`: the settings of a run, with its seed and versions."""
    content = {"format": RUN_FORMAT, "hyperparameters": dict(hyperparameters), **more,
               "versions": versions()}
    write_whole(folder / "hyperparameters.json", json.dumps(content, indent=2).encode() + b"\n")


def load_hyperparameters(folder: Path, names: Iterable[str] | None = None) -> dict:
    """Read the settings that `save_hyperparameters` wrote.

    Args:
        names: of the settings that there must be, no less and no more; None: any.

    Raises:
        FileNotFoundError, ValueError: no such file, or it does not hold what it should.
    """
    path = Path(folder) / "hyperparameters.json"
    if not path.exists():
        raise FileNotFoundError(f"no {path}: nothing is kept of this preset and seed; "
                                "train first (train = True)")
    settings = read_run_file(path)["hyperparameters"]
    if names is not None:
        require_names(path, settings, names)
    return settings


def require_names(path: Path, settings: Mapping, names: Iterable[str]) -> None:
    """Raise ValueError where settings are missing or unknown: another version wrote them."""
    missing, unknown = set(names) - set(settings), set(settings) - set(names)
    if missing or unknown:
        raise ValueError(f"{path} is of another version of this project: "
                         f"missing {sorted(missing)}, unknown {sorted(unknown)}")


def read_run_file(path: Path) -> dict:
    """Contents of `hyperparameters.json`.

    Raises:
        ValueError: it is damaged, or of a newer format.
    """
    try:
        content = json.loads(path.read_text())
        newer = content.get("format", 1) > RUN_FORMAT
        content["hyperparameters"].items()
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error!r}") from None
    if newer:
        raise ValueError(f"{path} has format {content['format']}, and this version reads up to "
                         f"{RUN_FORMAT}: get a newer version of this project")
    return content


def require_same_run(folder: Path, hyperparameters: Mapping, **more: object) -> None:
    """Check that a run to resume has the settings that it began with.

    Other versions of packages are a warning.

    Raises:
        FileNotFoundError: the run has no hyperparameters.json.
        ValueError: it is damaged, or a setting differs; names each that does.
    """
    path = Path(folder) / "hyperparameters.json"
    if not path.exists():
        raise FileNotFoundError(f"no {path}: with what settings did this run begin?")
    before = read_run_file(path)
    require_names(path, before["hyperparameters"], hyperparameters)
    earlier = before | before["hyperparameters"]
    now = json.loads(json.dumps({**hyperparameters, **more}))
    differing = [f"{name} is {value!r} and was {earlier.get(name)!r}"
                 for name, value in now.items() if earlier.get(name) != value]
    if differing:
        raise ValueError(f"the run in {folder} began with other settings: {'; '.join(differing)}")
    if before.get("versions") != versions():
        warnings.warn(f"the run in {folder} began with {before.get('versions')}; with other "
                      "versions it goes on, but may not give the same numbers", stacklevel=2)


def save_networks(folder: Path, suffix: str = "", **networks: torch.nn.Module) -> None:
    """Write each network's weights as `<name><suffix>.safetensors`."""
    for name, network in networks.items():
        write_whole(folder / f"{name}{suffix}.safetensors", to_bytes(network.state_dict()))


def load_network(path: Path, network: torch.nn.Module) -> None:
    """Load weights into a network of the same shape. The file format cannot carry code.

    Raises:
        FileNotFoundError: no such file.
        ValueError: a damaged file, or weights of another network.
    """
    if not Path(path).exists():
        raise FileNotFoundError(f"no {path}: train first (train = True)")
    try:
        weights = load_file(path)
    except Exception as error:  # safetensors has one exception type for all damage
        raise ValueError(f"{path} is damaged or no safetensors file: {error}") from None
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(f"{path} holds the weights of another network: {error}") from None
