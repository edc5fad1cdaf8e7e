"""`hyperparameters.json` of a run's folder: its settings, and facts such as its seed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

RUN_FORMAT = 1
LARGEST = 1_000_000  # bytes
# What hyperparameters were called before version 2: files with these names are read as they are,
# and whoever types one is told the new name.
RENAMED = {
    "act_steps": "train_freq",
    "learn_steps": "gradient_steps",
    "late_score": "anneal_score",
    "late_episodes": "anneal_episodes",
    "late_learn_steps": "anneal_gradient_steps",
    "late_learning_rate": "anneal_lr_factor",
    "replay_ratio": "max_samples_per_insert",
    "importance_start": "importance_exponent_start",
    "importance_end": "importance_exponent_end",
    "importance_decisions": "importance_anneal_steps",
}

# Hyperparameters of earlier versions, each with the value that stands for what the notebook does.
# Whoever wants another one edits a cell.
REMOVED = {
    "action_noise": "gaussian",
    "actor_gradient_clip": None,
    "actor_normalization": "layer",
    "anneal_lr_factor": 1.0,
    "critic_action_layer": 1,
    "critic_gradient_clip": None,
    "critic_normalization": "layer",
    "importance_exponent_end": 1.0,
    "initialization": "torch",
    "input_normalization": "fixed",
    "negative_slope": 0.0,
    "new_priority": "td_error",
    "noise_decay": 0.0,
    "noise_floor": 0.0,
    "noise_scale": 1.0,
    "noisy_noise": "white",
    "ou_sigma": 0.2,
    "ou_theta": 0.15,
    "priority_epsilon": 1e-4,
    "priority_error": "absolute",
    "replay_lifetime": None,
    "terminal_at_limit": False,
    "weight_decay": 0.0,
    "zero_target_critic": False,
}


def read_run_file(folder: Path) -> dict:
    """The content of a folder's `hyperparameters.json`, in the names of this version.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it is damaged, or of a newer format.
    """
    path = folder / "hyperparameters.json"
    if not path.is_file():
        raise FileNotFoundError(
            f"no {path}: nothing is known of this run; train first (train = True, resume = False)"
        )
    try:
        if path.stat().st_size > LARGEST:
            raise ValueError(f"more than {LARGEST} bytes")
        content = json.loads(path.read_text(encoding="utf-8"))
        newer = content.get("format", 1) > RUN_FORMAT
        content["hyperparameters"] = {
            RENAMED.get(name, name): value for name, value in content["hyperparameters"].items()
        }
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged or of another version: {error!r}"[:500]) from None
    if newer:
        raise ValueError(
            f"{path} has format {content['format']}, and this version reads up to "
            f"{RUN_FORMAT}: get a newer version of this project"
        )
    return content


def without_removed(path: Path, settings: Mapping) -> dict:
    """The settings of a run file that this version has, or that it does not know.

    Raises:
        ValueError: one that is gone had another value than what stands for it now.
    """
    others = [
        f"{name} = {settings[name]!r}"
        for name, value in REMOVED.items()
        if settings.get(name, value) != value
    ]
    if others:
        raise ValueError(
            f"{path} is of an earlier version of this project, which had the settings "
            f"{', '.join(others)}: get that version, or edit the notebook's cells"
        )
    return {name: value for name, value in settings.items() if name not in REMOVED}
