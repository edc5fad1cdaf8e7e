"""Schedules of the action noise that only the presets of three reports and the study use."""

from __future__ import annotations

from typing import Any


def other_noise_factor(schedules: Any) -> float:
    """The factor on the action noise by `noise_schedule`, where it is not "best_score".

    Args:
        schedules: the notebook's `Schedules`.
    """
    scale, decay = schedules.settings.noise_scale, schedules.settings.noise_decay
    match schedules.settings.noise_schedule:
        case "constant":
            return scale
        case "linear":
            return scale - decay * schedules.env_steps
        case "geometric":
            return scale * decay**schedules.env_steps
        case "episode":
            return scale * decay**schedules.episodes
        case "score":
            return scale * (1 - schedules.progress(schedules.average_score))
    raise ValueError(f"no noise_schedule {schedules.settings.noise_schedule!r}")
