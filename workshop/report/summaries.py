"""What a run's numbers say, in lines of text."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from workshop.report.figures import mean_draws
from workshop.training.scores import first_at, solved_at

FULL_PAY = 0.04  # of a decision in which the hand touches the goal all the time


def of_training(scores: Mapping[str, np.ndarray], mark: float | None) -> str:
    """When a training first reached the mark and was solved, and its means.

    Args:
        scores: as `read_scores` returns them.
        mark: the score that counts as solved, or None where there is none.
    """
    lines = []
    if mark is not None:
        for name, episode in (
            (f"first episode at {mark:g}", first_at(scores["score"], mark)),
            ("solved at episode", solved_at(scores["score"], mark)),
        ):
            when = f", after {scores['seconds'][episode - 1]:.0f} s of training" if episode else ""
            lines.append(f"{name}: {episode or 'not yet'}{when}")
    lines.append(
        f"mean of all {len(scores['score'])} episodes: {scores['score'].mean():.2f}, "
        f"of the last ten: {scores['score'][-10:].mean():.2f}"
    )
    return "\n".join(lines)


def of_pay(rewards: np.ndarray) -> str:
    """How soon an episode of rewards (decisions, arms) earns, and how much of what can be had."""
    pay, lines = rewards / FULL_PAY, []
    for name, reached in (
        ("first touch of any arm", pay.max(axis=1) > 0),
        ("90 % of the full pay, all arms together", pay.mean(axis=1) >= 0.9),
    ):
        when = f"decision {1 + np.argmax(reached)}" if reached.any() else "not reached"
        lines.append(f"{name}: {when}")
    if len(pay) > 100:
        lines.append(f"share of the full pay from decision 101 on: {100 * pay[100:].mean():.1f} %")
    return "\n".join(lines)


def of_values(values: np.ndarray, returns: np.ndarray) -> str:
    """How a critic's values (decisions, arms) compare with the returns that followed."""
    error = values - returns
    return (
        f"mean value {values.mean():.2f}, mean return {returns.mean():.2f}, correlation "
        f"{np.corrcoef(values.ravel(), returns.ravel())[0, 1]:.2f}\n"
        f"value minus return: {error[:25].mean():+.2f} in the first 25 decisions, "
        f"{error[25:].mean():+.2f} after"
    )


def of_draws(inside: Mapping[str, np.ndarray]) -> str:
    """How often transitions of some episodes were drawn; inside as experiments/inside.py has it."""
    mean, lines = mean_draws(inside), []
    draws = inside["draws"][: len(mean)]
    for k in (0, 4, 9):
        lines.append(
            f"transitions of episode {k + 1:2}: drawn {mean[k]:5.1f} times on average, "
            f"{100 * draws[k, 0] / draws[k].sum():2.0f} % never"
        )
    total = mean * draws.sum(axis=1)
    lines.append(
        f"of all draws, {100 * total[:5].sum() / total.sum():.0f} % were of the first five episodes"
    )
    return "\n".join(lines)
