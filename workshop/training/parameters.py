"""The notebook's parameters cell, checked."""

from __future__ import annotations

import os
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reacher.physics import MAX_AGENTS


class Parameters(BaseModel):
    """The notebook's parameters cell: what each may be."""

    model_config = ConfigDict(strict=True, extra="forbid")

    preset: Annotated[str, Field(min_length=1)]
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)]
    num_agents: Annotated[int, Field(ge=1, le=MAX_AGENTS)]
    max_episodes: Annotated[int, Field(ge=1, le=1_000_000)]
    stop_when_solved: bool
    env_location: str | os.PathLike
    out_dir: Annotated[str, Field(min_length=1)] | os.PathLike
    overrides: dict
    train: bool
    resume: bool
    save_every: Annotated[int, Field(ge=1, le=1_000_000)]
    keep_state: bool
    tensorboard: bool
    test_episodes: Annotated[int, Field(ge=1, le=100_000)]


def check_parameters(**parameters: Any) -> None:
    """Check the notebook's parameters before anything is built.

    Raises:
        ValueError: names each wrong parameter, its value and what is allowed.
    """
    try:
        Parameters(**parameters)
    except ValidationError as error:
        wrong = [f"{problem['loc'][0]} = {shown(problem['input'])}: {problem['msg']}"
                 for problem in error.errors()]
        raise ValueError("; ".join(dict.fromkeys(wrong))) from None
    if not parameters["train"]:
        for name in ("overrides", "resume"):
            if parameters[name]:
                raise ValueError(f"{name} = {shown(parameters[name])} has no effect with "
                                 "train = False, which shows a kept agent with its own settings")


def shown(value: object, longest: int = 100) -> str:
    """A value in an error message: cut where it is long; Python writes no huge integers at all."""
    try:
        text = repr(value)
    except ValueError:
        return "a number with thousands of digits"
    return text if len(text) <= longest else f"{text[:longest]} ..."
