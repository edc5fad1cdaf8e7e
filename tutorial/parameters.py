"""The notebook's parameters cell, checked."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reacher.checks import shown
from reacher.physics import MAX_AGENTS
from tutorial.presets import PRESETS


class Parameters(BaseModel):
    """The notebook's parameters cell: what each may be."""

    model_config = ConfigDict(strict=True, extra="forbid")

    preset: Literal[tuple(PRESETS)]  # type: ignore[valid-type]  # pydantic reads it at run time
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)]
    num_agents: Annotated[int, Field(ge=1, le=MAX_AGENTS)]
    max_episodes: Annotated[int, Field(ge=1, le=1_000_000)]
    stop_when_solved: bool
    env_location: str | os.PathLike
    goal_size: Annotated[float, Field(gt=0, le=1_000, allow_inf_nan=False)]
    goal_speed: Annotated[float, Field(ge=0, le=1_000, allow_inf_nan=False)]
    engine: Literal["auto", "compiled", "torch"]
    out_dir: Annotated[str, Field(min_length=1)] | os.PathLike
    overrides: dict
    train: bool
    resume: bool
    save_every: Annotated[int, Field(ge=1, le=1_000_000)]
    evaluate_every: Annotated[int, Field(ge=0, le=1_000_000)]
    keep_state: bool
    tensorboard: bool
    live: bool
    test_episodes: Annotated[int, Field(ge=1, le=100_000)]


def check_parameters(names: Mapping[str, Any]) -> None:
    """Check the notebook's parameters before anything is built.

    Args:
        names: all that a notebook has defined, such as `globals()`.

    Raises:
        ValueError: names each wrong parameter, its value and what is allowed.
    """
    parameters = {name: names[name] for name in Parameters.model_fields if name in names}
    try:
        Parameters(**parameters)
    except ValidationError as error:
        raise ValueError(wrong_fields(error)) from None
    if not parameters["train"]:
        for name in ("overrides", "resume"):
            if parameters[name]:
                raise ValueError(
                    f"{name} = {shown(parameters[name])} has no effect with "
                    "train = False, which shows a trained agent with its own settings"
                )


def wrong_fields(error: ValidationError) -> str:
    """Each wrong field of a pydantic error with its value and what is allowed, in one line."""
    wrong = []
    for problem in error.errors():
        value, message = problem["input"], problem["msg"].removeprefix("Value error, ")
        if not problem["loc"]:  # of several fields together
            wrong.append(message)
            continue
        if isinstance(value, str) and is_number(value):
            message += f"; it is text here: write it as a number (in YAML {float(value)!r})"
        if problem["loc"][0] == "overrides" and isinstance(value, str):
            message += "; papermill takes a dictionary by -y '{overrides: {n_step: 5}}', not by -p"
        wrong.append(f"{problem['loc'][0]} = {shown(value)}: {message}")
    return "; ".join(dict.fromkeys(wrong))


def is_number(text: str) -> bool:
    """Whether Python reads this text as a finite number."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
