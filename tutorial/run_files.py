"""The files of a training run: settings, weights, and how they are written."""

from __future__ import annotations

import copy
import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path

import torch
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from safetensors import SafetensorError
from safetensors.torch import load_file, save

from reacher.files import write_whole
from tutorial.randomness import versions
from tutorial.run_file import RUN_FORMAT, read_run_file, without_removed
from tutorial.scores import read_scores, solved_at
from tutorial.states import TrainingState

# How files that are older than a setting are read: a hyperparameter itself says what it was before
# it existed, by `setting(..., before=...)` in the notebook; facts of a run say it here. A file of
# an earlier version is never edited.
DEFAULTS_OF_OLD_RUNS = {"engine": "torch", "evaluate_every": 0, "goal_size": 5.0, "goal_speed": 1.0}
REQUIRED = object()  # instead of a value: every version has written it
MAY_DIFFER = {"engine"}  # facts that a resumed run need not share with its beginning
WARNED: set[str] = set()  # names that were told to be younger than a file, once in a process


def run_folder(out_dir: str | os.PathLike, preset: str, seed: int) -> Path:
    """`<out_dir>/<preset>/seed<N>`, the folder of one training run; `~` is the user's own.

    Raises:
        ValueError: out_dir begins with the name of a user that there is not.
    """
    try:
        return Path(out_dir).expanduser() / preset / f"seed{seed}"
    except RuntimeError as error:
        raise ValueError(
            f"out_dir = {str(out_dir)!r} begins with no user's folder: {error}"
        ) from None


def require_pretrained(folder: Path) -> None:
    """Check that `checkpoints/<preset>/seed<N>` holds a trained agent.

    Raises:
        FileNotFoundError: it does not; names those that do.
    """
    weights = "actor_best.safetensors"
    if not (folder / weights).exists():
        trained = sorted(path.parent for path in folder.parents[1].glob(f"*/seed*/{weights}"))
        names = ", ".join(f"{path.parent.name} {path.name}" for path in trained)
        raise FileNotFoundError(
            f"no trained agent in {folder}: with train = False these can be "
            f"shown: {names or 'none'}; train others first (train = True)"
        )


def begin_run(folder: Path, hyperparameters: Mapping, **metadata: object) -> None:
    """Make the folder of a new run, with `hyperparameters.json`.

    What an earlier run left there moves aside to `<folder>.<k>`.

    Raises:
        ValueError: the folder cannot be made or written.
    """
    try:
        if folder.exists() and any(folder.iterdir()):
            aside = next(
                path
                for k in range(1, 1_000_000)
                if not (path := folder.with_name(f"{folder.name}.{k}")).exists()
            )
            folder.rename(aside)
            print(f"an earlier run moves to {aside.name}")
        folder.mkdir(parents=True, exist_ok=True)
        save_hyperparameters(folder, hyperparameters, **metadata)
    except (OSError, ValueError) as error:  # the last: a name that cannot be
        raise cannot_write(folder, error) from None


def cannot_write(folder: Path, error: Exception) -> ValueError:
    """The error for a folder that cannot be made or written, with names of a length to read."""
    reason = getattr(error, "strerror", None) or str(error)  # without the name of a file
    file = getattr(error, "filename", None)
    where = f" ({str(file)[:200]})" if file and str(file) != str(folder) else ""
    return ValueError(
        f"cannot write into {str(folder)[:200]}: {reason}{where}; make space there, or choose "
        "another out_dir"
    )


def require_state(folder: Path) -> None:
    """Raise ValueError where a folder holds nothing to go on from."""
    try:
        exists = TrainingState(folder).exists()
    except (OSError, ValueError):  # a name that cannot be
        exists = False
    if not exists:
        raise ValueError(
            f"resume = True, but {str(folder)[:200]} holds no training state of "
            "this version. A training that ended by itself keeps one only with keep_state = True; "
            "begin with resume = False"
        )


def has_ended(
    folder: Path, max_episodes: int, stop_when_solved: bool, reward_threshold: float | None
) -> bool:
    """Whether a folder holds a training that came to its end, so that nothing is left to resume.

    Args:
        max_episodes, stop_when_solved: when a training ends.
        reward_threshold: the score that counts as solved, or None.
    """
    folder = Path(folder)
    if not (folder / "actor_best.safetensors").exists() or TrainingState(folder).exists():
        return False
    try:
        scores = read_scores(folder / "scores.csv")["score"]
    except (OSError, ValueError):
        return False
    solved = stop_when_solved and solved_at(scores, reward_threshold)
    return len(scores) >= max_episodes or bool(solved)


def save_hyperparameters(folder: Path, hyperparameters: Mapping, **metadata: object) -> None:
    """Write `hyperparameters.json`: the settings of a run, with its seed and versions."""
    content = {
        "format": RUN_FORMAT,
        "hyperparameters": dict(hyperparameters),
        **metadata,
        "versions": versions(),
    }
    write_whole(folder / "hyperparameters.json", json.dumps(content, indent=2).encode() + b"\n")


def load_hyperparameters(folder: Path, fields: Mapping[str, FieldInfo] | None = None) -> dict:
    """Read the settings that `save_hyperparameters` wrote.

    Args:
        fields: `model_fields` of the settings that there must be, no less and no more. One that
            is younger than the file has the value that stands for the time before. None: any.

    Raises:
        FileNotFoundError, ValueError: no such file, or it does not hold what it should.
    """
    path = Path(folder) / "hyperparameters.json"
    settings = read_run_file(path.parent)["hyperparameters"]
    return settings if fields is None else completed(path, settings, before_of(fields))


def load_about(folder: Path) -> dict:
    """The facts that `save_hyperparameters` wrote beside the settings, such as the seed.

    Raises:
        FileNotFoundError, ValueError: no such file, or it does not hold what it should.
    """
    path = Path(folder) / "hyperparameters.json"
    facts = facts_in(read_run_file(path.parent))
    return completed(path, facts, dict.fromkeys(facts, REQUIRED) | DEFAULTS_OF_OLD_RUNS)


def before_of(fields: Mapping[str, FieldInfo]) -> dict[str, object]:
    """What each field of a model says of files that are older than it, or REQUIRED."""
    return {
        name: extra.get("before", REQUIRED)
        if isinstance(extra := field.json_schema_extra, dict)
        else REQUIRED
        for name, field in fields.items()
    }


def completed(path: Path, recorded: Mapping, before: Mapping[str, object]) -> dict:
    """What a file of this or an earlier version says, in the names of this version.

    Args:
        before: the names that there are now, each with the value that it had, unnamed, before it
            existed, or REQUIRED.

    Raises:
        ValueError: a name that is unknown or missing, or a setting that is no more.
    """
    recorded = without_removed(path, recorded)
    if unknown := recorded.keys() - before.keys():
        raise ValueError(
            f"{path} is of a newer version of this project, which knows "
            f"{', '.join(sorted(unknown))}: get that version"
        )
    added = {name: value for name, value in before.items() if name not in recorded}
    missing = [name for name, value in added.items() if value is REQUIRED]
    if missing:
        raise ValueError(f"{path} lacks {', '.join(missing)}")
    if added.keys() - WARNED:
        WARNED.update(added)
        print(
            f"{path} and others are older than "
            + ", ".join(added)
            + ": read with "
            + ", ".join(f"{name} = {value!r}" for name, value in added.items())
        )
    return {name: added.get(name, recorded.get(name)) for name in before}


def facts_in(content: Mapping) -> dict:
    """What a run file holds beside the settings."""
    return {
        name: value
        for name, value in content.items()
        if name not in ("format", "hyperparameters", "versions")
    }


def require_same_run(folder: Path, settings: BaseModel, **metadata: object) -> None:
    """Check that a run to resume has the settings that it began with.

    Other versions of packages are a warning.

    Raises:
        FileNotFoundError: the run has no hyperparameters.json.
        ValueError: it is damaged, or a setting differs; names each that does.
    """
    path = Path(folder) / "hyperparameters.json"
    content = read_run_file(path.parent)
    fields = before_of(type(settings).model_fields)
    facts = {name: DEFAULTS_OF_OLD_RUNS.get(name, REQUIRED) for name in metadata}
    earlier = completed(path, content["hyperparameters"], fields) | completed(
        path, facts_in(content), facts
    )
    earlier, now = json.loads(json.dumps([earlier, {**settings.model_dump(), **metadata}]))
    differing = [
        f"{name} is {value!r} and was {earlier[name]!r}"
        for name, value in now.items()
        if earlier[name] != value and name not in MAY_DIFFER
    ]
    if differing:
        raise ValueError(f"the run in {folder} began with other settings: {'; '.join(differing)}")
    if content.get("versions") != versions():
        warnings.warn(
            f"the run in {folder} began with {content.get('versions')}; with other "
            "versions it goes on, but may not give the same numbers",
            stacklevel=2,
        )


def keep_engine(folder: Path, engine: str) -> None:
    """Write which engine a run goes on with, and warn where it is another one."""
    path = Path(folder) / "hyperparameters.json"
    content = read_run_file(path.parent)
    earlier = content.get("engine", DEFAULTS_OF_OLD_RUNS["engine"])
    if earlier != engine:
        warnings.warn(
            f"the run in {folder} was computed by engine {earlier!r} and goes on with {engine!r}: "
            "the same steps with other rounding, so not the same numbers",
            stacklevel=2,
        )
        content["engine"] = engine
        write_whole(path, json.dumps(content, indent=2).encode() + b"\n")


def to_bytes(tensors: Mapping[str, torch.Tensor]) -> bytes:
    """Tensors as the content of a safetensors file."""
    return save({name: tensor.detach().clone() for name, tensor in tensors.items()})


def save_networks(folder: Path, suffix: str = "", **networks: torch.nn.Module) -> None:
    """Write each network's weights as `<name><suffix>.safetensors`."""
    for name, network in networks.items():
        write_whole(folder / f"{name}{suffix}.safetensors", to_bytes(network.state_dict()))


def load_network(path: Path, network: torch.nn.Module) -> None:
    """Load weights into a network of the same shape. The file format cannot carry code.

    Raises:
        FileNotFoundError: no such file.
        ValueError: a damaged file, weights of another network, or numbers that are no weights;
            the network is as it was.
    """
    if not Path(path).exists():
        raise FileNotFoundError(f"no {path}: train first (train = True)")
    try:
        weights = load_file(path)
        copy.deepcopy(network).load_state_dict(weights)  # what does not fit changes only a copy
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged or no safetensors file: {error}") from None
    except RuntimeError as error:
        raise ValueError(f"{path} holds the weights of another network: {error}") from None
    for name, tensor in weights.items():
        if not tensor.isfinite().all():
            raise ValueError(f"{path} holds no weights: {name} is not finite")
    network.load_state_dict(weights)
