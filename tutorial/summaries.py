"""What a run's numbers say, in lines of text."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tutorial.scores import first_at, solved_at


def training_summary(scores: Mapping[str, np.ndarray], reward_threshold: float | None) -> str:
    """When a training first reached the reward threshold and was solved, and its means.

    Args:
        scores: as `read_scores` returns them.
        reward_threshold: the score that counts as solved, or None where there is none.
    """
    lines = []
    if reward_threshold is not None:
        for name, episode in (
            (f"first episode at {reward_threshold:g}", first_at(scores["score"], reward_threshold)),
            ("solved at episode", solved_at(scores["score"], reward_threshold)),
        ):
            when = f", after {scores['seconds'][episode - 1]:.0f} s of training" if episode else ""
            lines.append(f"{name}: {episode or 'not yet'}{when}")
    lines.append(
        f"mean of all {len(scores['score'])} episodes: {scores['score'].mean():.2f}, "
        f"of the last ten: {scores['score'][-10:].mean():.2f}"
    )
    return "\n".join(lines)


def value_summary(values: np.ndarray, returns: np.ndarray) -> str:
    """How a critic's values (decisions, arms) compare with the returns that followed."""
    value, followed = values.mean(), returns.mean()
    return f"mean value {value:.2f}, mean return {followed:.2f}, gap {value - followed:+.2f}"
