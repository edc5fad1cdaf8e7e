"""Settings: the notebook's parameters and hyperparameters, and their checks."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from reacher.physics import MAX_AGENTS
from tutorial.environments import require_environment

# Named sets of hyperparameters: what differs from the notebook's defaults. `gymnasium` suits tasks
# with other rewards.
PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    "gymnasium": {
        "noise_schedule": "constant",
        "gaussian_sigma": 0.2,
        "anneal_episodes": None,
        "reward_scale": 1.0,
    },
}


def require_known(kind: str, name: Any, known: Iterable[str]) -> Any:
    """The name, if it is one of those known.

    Raises:
        ValueError: it is not; says which was probably meant.
    """
    known = list(known)
    if name in known:
        return name
    close = difflib.get_close_matches(str(name), known, n=1)
    meant = f"did you mean {close[0]!r}? " if close else ""
    raise ValueError(f"unknown {kind} {name!r}: {meant}known are {', '.join(known)}")


def require_folder(location: str | os.PathLike) -> str | os.PathLike:
    """The location, if it is a folder or one can be made there; otherwise ValueError."""
    try:
        Path(location).expanduser().mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:  # the latter: ~ of an unknown user
        told = getattr(error, "strerror", None) or error
        raise ValueError(f"no folder can be made there: {told}") from None
    return location


def told_instead(value: Any) -> Any:
    """The value, unless it is a text in which a command line meant something else."""
    if isinstance(value, str) and value.lower() in ("true", "false"):
        raise ValueError(f"a text: write {value.capitalize()}, as in -p train {value.capitalize()}")
    if isinstance(value, str) and value.lstrip().startswith("{"):
        raise ValueError("a text, because -p takes one value: write -y '{overrides: {n_step: 5}}'")
    return value


class Settings(BaseModel):
    """What the notebook's `Hyperparameters` adds its fields to: immutable, checked, strict."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def setting(default: Any, meaning: str, paper: str = "", report: str = "", **limits: Any) -> Any:
    """A field of the hyperparameters in one line.

    Args:
        meaning: with its unit.
        paper, report: the values of the paper and of the write-up, where they differ; "-": none.
        limits: those of pydantic's `Field`.
    """
    others: dict[str, Any] = {"paper": paper, "report": report}
    return Field(default, description=meaning, json_schema_extra=others, **limits)


class Parameters(Settings):
    """The notebook's parameters cell: what each may be."""

    preset: Annotated[str, AfterValidator(lambda name: require_known("preset", name, PRESETS))]
    overrides: Annotated[dict, BeforeValidator(told_instead)]
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)]
    num_agents: Annotated[int, Field(ge=1, le=MAX_AGENTS)]
    max_episodes: Annotated[int, Field(ge=1, le=1_000_000)]
    env_location: Annotated[str | os.PathLike, AfterValidator(require_environment)]
    out_dir: Annotated[
        Annotated[str, Field(min_length=1)] | os.PathLike, AfterValidator(require_folder)
    ]
    train: Annotated[bool, BeforeValidator(told_instead)]


def check_parameters(names: Mapping[str, Any]) -> None:
    """Check the notebook's parameters before anything is built.

    Args:
        names: all that a notebook has defined, such as `globals()`.

    Raises:
        ValueError: names each wrong parameter, its value and what is allowed.
    """
    Parameters(**{name: names[name] for name in Parameters.model_fields if name in names})


def make_settings(model: type[Settings], preset: str, overrides: Mapping[str, Any]) -> Any:
    """A preset's settings with overrides by name.

    Args:
        model: the notebook's `Hyperparameters`.

    Raises:
        ValueError: unknown preset or name, or a value that is not allowed.
    """
    require_known("preset", preset, PRESETS)
    if not isinstance(overrides, dict):
        raise ValueError(f"overrides must be a dict such as {{'n_step': 5}}, not {overrides!r}")
    for name in overrides:
        require_known("setting", name, model.model_fields)
    settings: Any = model(**PRESETS[preset] | overrides)
    if max(settings.batch_size, settings.learning_starts) > settings.replay_capacity:
        raise ValueError("batch_size and learning_starts must not exceed replay_capacity")
    return settings
