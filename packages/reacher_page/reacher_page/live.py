"""Arms in a cell's output, with the actor that the notebook has, or beside its training.

After each episode the actor's weights (114 KB) go to a page in the cell's output, which simulates
the arms in the browser, so Python loses next to no time. It takes display handles only, no
widgets: JupyterLab runs the scripts of outputs while a cell is running.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from IPython import get_ipython
from IPython.display import HTML, display

from reacher.task import OBSERVATION_SIZE
from reacher_page.actor import Network, network_of
from reacher_page.learn import learning_of
from reacher_page.page import STILL, UNTRAINED, inline, page

MOST_ARMS = 20  # that are shown
AfterEpisode = Callable[[Any, Sequence[float]], None]  # of an agent and its scores so far


def shown_network(agent: Any) -> Network:
    """The actor of an agent for a page; PyTorch's random numbers stay as they were.

    Raises:
        ValueError: the reader edited it, so that a page would show another one.
    """
    network = network_of(agent.learner.actor.state_dict(), "the actor")
    seen = np.random.default_rng(0).normal(0, 10, (16, OBSERVATION_SIZE)).astype(np.float32)
    with torch.random.fork_rng([]):  # an edited actor may draw numbers, which training needs
        own = agent.learner.act(torch.from_numpy(seen)).numpy()
    if not np.allclose(network.act(seen), own, atol=1e-3):  # rounding changes less than 1e-5
        raise ValueError("the actor was edited: it plays in the notebook, but pages cannot show it")
    return network


def show_agent(agent: Any, scores: Sequence[float], arms: int) -> None:
    """Show arms to play with, by an agent's actor, beside its scores, or print why not.

    In the page the agent can learn once more from nothing.
    """
    options: dict[str, Any] = {}
    try:
        network = shown_network(agent).packed()
    except ValueError as error:
        print(error)
        return
    with contextlib.suppress(ValueError, ImportError):  # some edits; or Dynamo is missing
        options["learning"] = learning_of(agent)
    told = newest_page(network, scores, arms, embedded=True, **options)
    display(HTML(inline(told, STILL.read_bytes(), "Arms to play with")))


def newest_page(network: dict, scores: Sequence[float], arms: int, **options: Any) -> str:
    """The page of random torques and of an actor after these scores; without one of torques."""
    newest = {"label": str(len(scores)), "network": network, "episode": len(scores)}
    actors = [UNTRAINED, newest] if len(scores) else [UNTRAINED]
    return page(actors, None, list(scores), min(arms, MOST_ARMS), **options)


@contextlib.contextmanager
def live_arms(arms: int) -> Iterator[AfterEpisode | None]:
    """A context with what shows an agent's newest actor after an episode.

    What stays in the notebook is a page with the last of these actors. Outside of a notebook, it is
    None.
    """
    if not hasattr(get_ipython(), "kernel"):
        yield None
        return
    name = f"live-{uuid.uuid4().hex}"
    newest: dict[str, Any] = {"network": {}, "scores": []}

    def output(live: bool) -> HTML:
        content = newest_page(**newest, arms=arms, embedded=True, live=live)
        return HTML(inline(content, STILL.read_bytes(), "The arms learn", name=name))

    shown, channel = display(output(True), display_id=True), display(HTML(""), display_id=True)

    def after_episode(agent: Any, scores: Sequence[float]) -> None:
        try:
            newest.update(network=shown_network(agent).packed(), scores=list(scores))
        except ValueError as error:
            if len(scores) == 1:
                print(error)
            return
        frame = f"document.querySelector('iframe[name=\"{name}\"]')?.contentWindow"
        channel.update(HTML(f"<script>{frame}?.postMessage({json.dumps(newest)}, '*')</script>"))

    try:
        yield after_episode
    finally:
        channel.update(HTML(""))
        shown.update(output(False) if newest["scores"] else HTML(""))
