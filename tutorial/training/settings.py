"""What stands behind the notebook's hyperparameters: checks, presets, and rarely turned settings.

The notebook's `Hyperparameters` adds those that its reader turns to `RareSettings`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from reacher.run_file import RENAMED
from reacher.task import OBSERVATION_SIZE
from tutorial.training.parameters import wrong_fields
from tutorial.training.presets import PRESETS

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


class RareSettings(BaseModel):
    """Settings that the default leaves alone: for the references' presets and the ablations.

    Sources: DDPG is Lillicrap et al. (2016), PER Schaul et al. (2016), NoisyNet Fortunato et al.
    (2018); A, B and C are the references of doc/differences.md.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    if TYPE_CHECKING:  # what the notebook's Hyperparameters adds, as far as this package reads it
        action_noise: str
        anneal_episodes: int | None
        batch_size: int
        critic_hidden: tuple[int, ...]
        discount: float
        importance_exponent_start: float
        learning_starts: int
        mirrors: str
        policy_delay: int
        replay_capacity: int
        train_freq: int

    # Networks
    critic_action_layer: int = setting(
        1, "critic layer that takes the action (DDPG: 2)", ge=1, le=8
    )
    input_normalization: Literal["fixed", "batch", "none"] = setting(
        "fixed", "of the observations; fixed: by constants (ours; DDPG: batch)"
    )
    actor_normalization: Literal["layer", "batch", "none"] = setting(
        "layer", "before the actor's activations (ours; DDPG: batch)"
    )
    critic_normalization: Literal["layer", "batch", "none"] = setting(
        "layer", "before the critic's activations (ours; DDPG: batch, before the action)"
    )
    negative_slope: float = setting(
        0.0, "slope of the activation below 0: 0 is ReLU (DDPG), else LeakyReLU", ge=0, lt=1
    )
    initialization: Literal["torch", "fan_in"] = setting(
        "torch", "PyTorch's, or uniform by fan-in and 3e-3 at the output (DDPG)"
    )
    zero_target_critic: bool = setting(False, "target critic starts at 0, not as a copy (A)")

    # Noise
    noisy_noise: Literal["white", "ou"] = setting(
        "white", "over time: independent (NoisyNet), or Ornstein-Uhlenbeck (A)"
    )
    ou_theta: float = setting(
        0.15, "pull of the Ornstein-Uhlenbeck process to 0, per decision (DDPG)", gt=0, lt=1
    )
    ou_sigma: float = setting(0.2, "size of its random steps, in actions (DDPG)", gt=0, le=2)
    noise_scale: float = setting(1.0, "factor on action noise at the start (A)", ge=0, le=10)
    noise_schedule: Literal["constant", "linear", "geometric", "episode", "score", "best_score"] = (
        setting(
            "best_score",
            "how it falls: less noise_decay a decision (linear), times noise_decay a "
            "decision (geometric) or an episode (A, C), to 0 when the average (B) or the best "
            "score "
            "is at the environment's reward threshold",
        )
    )
    noise_decay: float = setting(0.0, "rate of that fall (A, C)", ge=0, le=1)
    noise_floor: float = setting(0.0, "the factor never falls below (C)", ge=0, le=10)

    # Memory
    terminal_at_limit: bool = setting(
        False, "the time limit counts as a terminal state (C), which is wrong"
    )
    replay_lifetime: int | None = setting(
        None, "batches after which the memory is emptied (A); None: never", ge=1, le=10**12
    )
    priority_error: Literal["absolute", "squared"] = setting(
        "absolute", "priority from the absolute TD error (PER) or its square (A)"
    )
    priority_epsilon: float = setting(
        1e-4, "epsilon, keeps every priority above 0 (ours; PER: small)", gt=0, le=1
    )
    new_priority: Literal["td_error", "max"] = setting(
        "td_error", "of new transitions: own TD error (ours), or largest so far (PER)"
    )
    importance_exponent_end: float = setting(1.0, "beta at the end of its rise (PER)", ge=0, le=1)
    importance_anneal_steps: int = setting(
        100_000, "decisions of that rise, 100 episodes (PER: to the end)", ge=1, le=10**12
    )

    # Late learning
    anneal_gradient_steps: int | None = setting(
        15,
        "gradient steps a phase once it is late, at most (ours; version 1: 1); None: as before",
        ge=0,
        le=10**6,
    )
    anneal_lr_factor: float = setting(
        1.0, "factor on learning rates once it is late (version 1: 0.1)", gt=0, le=1
    )

    # Optimizers
    weight_decay: float = setting(0.0, "of Adam (DDPG: 1e-2, critic)", ge=0, le=1)
    actor_gradient_clip: float | None = setting(None, "largest norm (B); None: no limit", gt=0)
    critic_gradient_clip: float | None = setting(None, "largest norm (C); None: no limit", gt=0)

    @model_validator(mode="after")
    def check_together(self) -> RareSettings:
        """Raise ValueError where two settings contradict each other."""
        if self.critic_action_layer > len(self.critic_hidden):
            raise ValueError(
                f"critic_action_layer is {self.critic_action_layer}, but "
                f"critic_hidden has {len(self.critic_hidden)} layers"
            )
        if max(self.batch_size, self.learning_starts) > self.replay_capacity:
            raise ValueError("batch_size and learning_starts must not exceed replay_capacity")
        if self.importance_exponent_start > self.importance_exponent_end:
            raise ValueError("importance_exponent_start must not exceed importance_exponent_end")
        if self.noise_floor > self.noise_scale:
            raise ValueError("noise_floor must not exceed noise_scale")
        decays = self.noise_schedule in ("linear", "geometric", "episode")
        if self.action_noise != "none" and decays and not self.noise_decay:
            raise ValueError(f"noise_schedule {self.noise_schedule!r} needs a noise_decay above 0")
        return self


# Some settings mean nothing beside others: whoever changes the alpha of a uniform replay expects an
# effect that cannot come. A setting counts if all conditions of a dictionary hold, or of any of
# several.
ADDED_NOISE: dict[str, set] = {"action_noise": {"gaussian", "ou"}}
PRIORITIZED: dict[str, set] = {"replay": {"prioritized"}}
COUNTS_ONLY_IF: dict[str, list[dict[str, set]]] = {
    "noisy_sigma": [{"noisy_layers": {True}}],
    "noisy_noise": [{"noisy_layers": {True}}],
    "gaussian_sigma": [{"action_noise": {"gaussian"}}],
    "ou_sigma": [{"action_noise": {"ou"}}],
    "ou_theta": [{"action_noise": {"ou"}}, {"noisy_layers": {True}, "noisy_noise": {"ou"}}],
    "noise_scale": [ADDED_NOISE],
    "noise_schedule": [ADDED_NOISE],
    "noise_decay": [ADDED_NOISE | {"noise_schedule": {"linear", "geometric", "episode"}}],
    "noise_floor": [
        ADDED_NOISE | {"noise_schedule": {"linear", "geometric", "episode", "score", "best_score"}}
    ],
    **{
        name: [PRIORITIZED]
        for name in (
            "priority_exponent",
            "priority_error",
            "priority_epsilon",
            "new_priority",
            "importance_exponent_start",
            "importance_exponent_end",
            "importance_anneal_steps",
        )
    },
}


def require_mirrors(observation_size: int) -> None:
    """Raise ValueError for an environment that is not the arms'."""
    if observation_size != OBSERVATION_SIZE:
        raise ValueError(f"{NO_MIRRORS}; this has {observation_size}: set mirrors to 'none'")


def make_settings(
    model: type[RareSettings],
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
        ways = COUNTS_ONLY_IF.get(name, [{}])
        if not any(
            all(getattr(settings, other) in values for other, values in way.items()) for way in ways
        ):
            others = {other: getattr(settings, other) for way in ways for other in way}
            raise ValueError(f"override {name!r} has no effect with {others}")
    if (
        reward_threshold is None
        and settings.action_noise != "none"
        and "score" in settings.noise_schedule
    ):
        told = f"noise_schedule {settings.noise_schedule!r} follows the score up to the reward "
        told += "threshold of the environment, which names none: "
        if "noise_schedule" in overrides:
            raise ValueError(
                f"{told}choose 'constant', 'linear', 'geometric' or 'episode' in overrides"
            )
        print(f"{told}'constant' instead")
        settings = settings.model_copy(update={"noise_schedule": "constant"})
    if not has_mirrors and settings.mirrors != "none":
        if "mirrors" in overrides:
            raise ValueError(f"mirrors {settings.mirrors!r}: {NO_MIRRORS}, so choose 'none'")
        settings = settings.model_copy(update={"mirrors": "none"})
    return settings
