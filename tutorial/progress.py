"""What is seen of a training while it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tutorial.scores import moving_average


def show_progress(agent: Any, scores: Sequence[float], seconds: float) -> None:
    """Print a line for each of the first ten episodes, every tenth, and the last one to learn.

    No value can exceed the largest reward, paid for ever; a critic far above that is diverging,
    and the line says so.
    """
    number, last = len(scores), agent.settings.anneal_episodes
    if number < 10 or number % 10 == 0:
        shown = {"score": scores[-1], "average": moving_average(scores)[-1], **agent.log}
        facts = [f"{name} {value:.3g}" for name, value in shown.items()]
        possible = agent.largest_reward / (1 - agent.settings.discount)
        if abs(agent.log["Q"]) > 2 * possible > 0:
            facts.append(f"the critic diverges: the largest possible Q is {possible:.3g}")
        print(f"episode {number:3}: {', '.join(facts)}, {seconds:.0f} s")
    if agent.schedules.annealed_episodes == last and agent.learns:
        print(f"episode {number:3}: learning has ended; from now on without noise")
