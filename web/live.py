"""Arms that move beside the training, with the newest actor.

After each episode the actor's weights (117 KB) go to a page in the cell's output, which simulates
the arms in the browser, so Python loses next to no time. It takes display handles only, no widgets:
JupyterLab runs the scripts of outputs while a cell is running.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from IPython.display import HTML, Image, display

from reacher.episode import play_episode
from tutorial.moving import moving_arms
from tutorial.paths import DOC
from tutorial.progress import in_notebook
from tutorial.protocols import Agent
from tutorial.run import actor_weights, why_not_shown
from web.actor import actor_of
from web.packed import pack_actor
from web.page import Choice, inline, page
from web.watch import watch_page

SEED = 1000  # of the goals
MOST_ARMS = 20
SHOWN = 35  # decisions, of which the last picture shows the last one


def show_arms(folder: Path, agent: Agent, arms: int, **goals: float) -> None:
    """Show the arms of a run, with its trained agent, in a page to play with.

    Args:
        folder: of the run.
        agent: the same, as the notebook has it: an edited actor is told in a line instead.
        arms: of which at most 20 are shown.
        goals: `goal_size` and `goal_speed`.
    """
    if reason := why_not_shown(agent):
        print(reason)
        return
    content = watch_page(folder, arms=min(arms, MOST_ARMS), embedded=True, **goals)
    still = (DOC / "trained_arms_still.png").read_bytes()
    display(HTML(inline(content, still, "The arms of this run, simulated in the page")))


@contextlib.contextmanager
def live_arms(
    wanted: bool,
    arms: int,
    other: Callable[[Any, Sequence[float]], None] | None = None,
    **goals: float,
) -> Iterator[Callable[[Any, Sequence[float]], None] | None]:
    """A context with what shows an agent's newest actor after an episode.

    At its end a picture of the arms replaces the page, for GitHub and for whoever opens the saved
    notebook.

    Args:
        wanted: False: the context is `other`, and so it is outside of a notebook.
        arms: of which at most 20 are shown.
        other: called after each episode, too.
        goals: `goal_size` and `goal_speed`.
    """
    if not (wanted and in_notebook()):
        yield other
        return
    arms, name, newest = min(arms, MOST_ARMS), f"live-{uuid.uuid4().hex}", None
    untrained = Choice("0", "not at all, random torques", 0.0, None, 0)
    content = page([untrained], arms=arms, seed=SEED, embedded=True, live=True, **goals)
    still = (DOC / "trained_arms_still.png").read_bytes()
    shown = display(HTML(inline(content, still, "The arms learn", name=name)), display_id=True)
    channel = display(HTML(""), display_id=True)

    def after_episode(agent: Any, scores: Sequence[float]) -> None:
        nonlocal newest
        if other:
            other(agent, scores)
        if reason := why_not_shown(agent):
            if len(scores) == 1:
                print(reason)
            return
        newest = actor_weights(agent), agent.settings.model_dump(), len(scores)
        message = {
            "scores": [round(score, 3) for score in scores],
            "network": pack_actor(*newest[:2], "the actor"),
        }
        channel.update(
            HTML(
                f"<script>document.querySelector('iframe[name=\"{name}\"]')?.contentWindow"
                f".postMessage({json.dumps(message)}, '*')</script>"
            )
        )

    try:
        yield after_episode
    finally:
        channel.update(HTML(""))
        if newest is None:
            shown.update(HTML(""))
        else:
            episode = play_episode(actor_of(*newest[:2], "the actor"), arms, SEED, SHOWN, **goals)
            label = f"The arms after {newest[2]} episodes. To play with them: section 8."
            goal_size = goals.get("goal_size", 5.0)
            picture = moving_arms(episode.observations[-1:], goal_size=goal_size)
            shown.update(Image(picture, alt=label))
