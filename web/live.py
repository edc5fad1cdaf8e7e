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

import numpy as np
import torch
from IPython import get_ipython
from IPython.display import HTML, Image, display

from reacher.episode import play_episode
from reacher.task import ACTION_SIZE, OBSERVATION_SIZE
from tutorial.moving import moving_arms
from tutorial.paths import DOC
from web.actor import EDITED, actor_of
from web.packed import pack_actor
from web.page import Choice, inline, page
from web.watch import watch_page

SEED = 1000  # of the goals
MOST_ARMS = 20
SHOWN = 35  # decisions, of which the last picture shows the last one


def show_arms(folder: Path, agent: Any, arms: int, **goals: float) -> None:
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
            picture = moving_arms(
                episode.observations[-1:], label=label, goal_size=goals.get("goal_size", 5.0)
            )
            shown.update(Image(picture, alt=label))


def in_notebook() -> bool:
    """Whether a kernel runs this, and a notebook shows what it displays."""
    return hasattr(get_ipython(), "kernel")


def why_not_shown(agent: Any) -> str:
    """Why pages cannot show an agent's actor, which its reader may have edited; "": they can."""
    if agent.ddpg.sizes != (OBSERVATION_SIZE, ACTION_SIZE):
        return ""  # no arms
    weights = actor_weights(agent)
    seen = np.random.default_rng(0).normal(size=(16, OBSERVATION_SIZE)).astype(np.float32)
    try:
        actions = actor_of(weights, agent.settings.model_dump(), "the actor")(seen)
    except ValueError as error:
        return str(error)
    with torch.random.fork_rng([]):  # an edited actor may draw numbers, which training needs
        own = agent.ddpg.act(torch.from_numpy(seen)).numpy()
    # Rounding changes actions by less than 1e-5.
    return "" if np.allclose(actions, own, atol=1e-3) else f"the actor was edited: {EDITED}"


def actor_weights(agent: Any) -> dict[str, np.ndarray]:
    """Copies of the weights of an agent's actor, by name, which further learning leaves alone."""
    weights = agent.ddpg.actor.state_dict()
    return {name: value.numpy().copy() for name, value in weights.items()}
