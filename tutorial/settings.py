"""What stands behind the notebook's hyperparameters: their checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from reacher.task import OBSERVATION_SIZE
from tutorial.parameters import wrong_fields
from tutorial.presets import PRESETS
from tutorial.run_file import REMOVED, RENAMED

NO_MIRRORS = "only the arms, with 33 observations, have mirrors that we know"
Units = Annotated[int, Field(ge=1, le=4096)]
Sizes = Annotated[
    tuple[Units, ...],
    Field(min_length=1, max_length=8),
    BeforeValidator(lambda sizes: tuple(sizes) if isinstance(sizes, list) else sizes),
]


def setting(default: Any, meaning: str, before: Any = ..., **limits: Any) -> Any:
    """A field of the hyperparameters with its meaning, unit and source in one line.

    A new one names the value that it had, so to speak, before it existed: files that are older
    than the field are read with that.
    """
    older = None if before is ... else {"before": before}
    return Field(default, description=meaning, json_schema_extra=older, **limits)


class Settings(BaseModel):
    """What the notebook's `Hyperparameters` adds its fields to: immutable, checked, strict."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    if TYPE_CHECKING:  # what the notebook's Hyperparameters adds, as far as this package reads it
        anneal_episodes: int | None
        batch_size: int
        discount: float
        gaussian_sigma: float
        learning_starts: int
        mirrors: str
        noise_schedule: str
        replay_capacity: int
        train_freq: int

    @model_validator(mode="after")
    def check_together(self) -> Settings:
        """Raise ValueError where two settings contradict each other."""
        if max(self.batch_size, self.learning_starts) > self.replay_capacity:
            raise ValueError("batch_size and learning_starts must not exceed replay_capacity")
        return self


# A setting that nothing reads beside these values of others: whoever changes the alpha of a uniform
# replay expects an effect that cannot come.
WITHOUT_EFFECT: dict[str, tuple[str, object]] = {
    "noisy_sigma": ("noisy_layers", False),
    "noise_schedule": ("gaussian_sigma", 0.0),
    "priority_exponent": ("replay", "uniform"),
    "importance_exponent_start": ("replay", "uniform"),
    "importance_anneal_steps": ("replay", "uniform"),
}


def require_mirrors(observation_size: int) -> None:
    """Raise ValueError for an environment that is not the arms'."""
    if observation_size != OBSERVATION_SIZE:
        raise ValueError(f"{NO_MIRRORS}; this has {observation_size}: set mirrors to 'none'")


def make_settings(
    model: type[Settings],
    preset: str,
    overrides: Mapping[str, Any],
    reward_threshold: float | None,
    has_mirrors: bool = True,
) -> Any:
    """A preset's settings with overrides by name.

    Args:
        model: the notebook's `Hyperparameters`.
        reward_threshold: the environment's score that counts as solved, or None.
        has_mirrors: whether the environment has the arms' mirror symmetries.

    Raises:
        ValueError: unknown preset or name, a value that is not allowed, an override in vain, a
            schedule that follows a reward threshold that is not there, or mirrors of an
            environment that has none.
    """
    if not isinstance(preset, str) or preset not in PRESETS:
        raise ValueError(f"unknown preset {preset!r}; known are {', '.join(PRESETS)}")
    if not isinstance(overrides, dict):
        raise ValueError(f"overrides must be a dict such as {{'n_step': 5}}, not {overrides!r}")
    for name in overrides:
        if name not in model.model_fields and RENAMED.get(name, name) in REMOVED:
            raise ValueError(
                f"hyperparameter {name!r} is gone: edit the notebook's cells instead, because they "
                "are what trains"
            )
        if name in RENAMED and name not in model.model_fields:
            raise ValueError(f"hyperparameter {name!r} is now called {RENAMED[name]!r}")
        if name not in model.model_fields:
            raise ValueError(
                f"unknown hyperparameter {name!r}; known are {', '.join(model.model_fields)}"
            )
    try:
        settings = model(**PRESETS[preset] | overrides)
    except ValidationError as error:
        raise ValueError(wrong_fields(error)) from None
    for name in overrides:
        other, value = WITHOUT_EFFECT.get(name, (name, ...))
        if getattr(settings, other) == value:
            raise ValueError(f"override {name!r} has no effect with {other} = {value!r}")
    if reward_threshold is None and settings.noise_schedule == "best_score":
        told = "noise_schedule 'best_score' follows the score up to the reward threshold of the "
        told += "environment, which names none: "
        if "noise_schedule" in overrides:
            raise ValueError(f"{told}choose 'constant' in overrides")
        if settings.gaussian_sigma:
            print(f"{told}'constant' instead")
        settings = settings.model_copy(update={"noise_schedule": "constant"})
    if not has_mirrors and settings.mirrors != "none":
        if "mirrors" in overrides:
            raise ValueError(f"mirrors {settings.mirrors!r}: {NO_MIRRORS}, so choose 'none'")
        settings = settings.model_copy(update={"mirrors": "none"})
    return settings
