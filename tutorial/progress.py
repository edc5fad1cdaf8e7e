"""What is seen of a training while it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tutorial.scores import moving_average


def show_progress(
    log: Mapping[str, float], scores: Sequence[float], seconds: float, ended: bool
) -> None:
    """Print a line for each of the first ten episodes, every tenth, and the last one to learn.

    Args:
        log: the agent's, such as its mean TD error; shown after the score and the average.
        ended: whether learning has ended with this episode.
    """
    number = len(scores)
    if number < 10 or number % 10 == 0:
        shown = {"score": scores[-1], "average": moving_average(scores)[-1], **log}
        facts = ", ".join(f"{name} {value:.3g}" for name, value in shown.items())
        print(f"episode {number:3}: {facts}, {seconds:.0f} s")
    if ended:
        print(f"episode {number:3}: learning has ended; from now on without noise")
