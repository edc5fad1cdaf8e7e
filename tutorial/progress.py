"""What is seen of a training while it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tutorial.scores import moving_average


def show_progress(agent: Any, scores: Sequence[float], seconds: float) -> None:
    """Print a line for each of the first ten episodes, and then for every tenth."""
    number = len(scores)
    if number < 10 or number % 10 == 0:
        shown = {"score": scores[-1], "average": moving_average(scores)[-1], **agent.log}
        facts = ", ".join(f"{name} {value:.3g}" for name, value in shown.items())
        end = "" if agent.learns else "; learning has ended, and noise"
        print(f"episode {number:3}: {facts}, {seconds:.0f} s{end}")
