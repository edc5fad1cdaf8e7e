"""One HTML file in which trained arms live: physics, actors and critic, without network or server.

The physics, the networks and the drawing are JavaScript of our own in `assets`, without a library.
"""

from __future__ import annotations

import base64
import html
import json
import string
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reacher.task import Task

ASSETS = Path(__file__).parent / "assets"
SCRIPTS = "physics.js", "networks.js", "scene.js", "page.js"


@dataclass(frozen=True)
class Choice:
    """An actor among which the reader of a page chooses.

    Attributes:
        label: a word or a number, which the slider and links (#episode=...) call it by.
        title: in a few words, within a sentence.
        score: its mean score in Python, for the goals of the page.
        network: of `web.actor.packed_actor`; None: random torques.
        episode: of training, after which it was kept; None: not known.
    """

    label: str
    title: str
    score: float
    network: dict | None
    episode: int | None = None


def page(
    actors: Sequence[Choice],
    critic: dict | None = None,
    scores: Sequence[float] = (),
    arms: int = 20,
    seed: int = 0,
    title: str = "Grab the goal",
    what: str = "",
    still: bytes = b"",
    embedded: bool = False,
    live: bool = False,
    **parameters: float,
) -> str:
    """The page of these actors; the one labeled "best" acts first, or else the last one.

    Args:
        actors: in the order in which they were trained.
        critic: of `web.actor.packed_critic`; None: the page shows no values.
        scores: of the training, episode by episode.
        arms: how many live in the page.
        seed: of their goals.
        title: of the page.
        what: a line below it.
        still: PNG for where scripts do not run.
        embedded: without title and prompts, for within a notebook.
        live: takes further actors by messages, as `web.live` sends them.
        parameters: `goal_size` and `goal_speed`.

    Raises:
        ValueError: no actor, two with the same label, or a wrong parameter.
    """
    labels = [actor.label for actor in actors]
    if not labels or len(set(labels)) < len(labels):
        raise ValueError(f"a page needs actors with different labels, not {labels}")
    task = Task(arms, seed)
    task.set_parameters(parameters)
    data = {
        "actors": [vars(actor) for actor in actors],
        "first": labels.index("best") if "best" in labels else len(labels) - 1,
        "critic": critic,
        "live": live,
        "scores": [round(float(score), 3) for score in scores],
        "goals": [
            (int(generator.integers(360)), generator.uniform(-1, 1))
            for generator in task.generators
        ],
        "world": {"size": task.parameters["goal_size"], "speed": task.parameters["goal_speed"]},
    }
    text = {
        name: (ASSETS / name).read_text(encoding="utf-8")
        for name in ("page.html", "page.css", *SCRIPTS)
    }
    return string.Template(text["page.html"]).substitute(
        title=html.escape(title),
        what=html.escape(what),
        still=_image(still, title),
        kind="embedded" * embedded + " live" * live,
        style=text["page.css"],
        data=_json(data),
        script="".join(text[name] for name in SCRIPTS),
    )


def inline(
    page: str,
    picture: bytes,
    description: str = "Arms and their goals",
    height: int = 800,
    name: str = "",
) -> str:
    """HTML that shows a page within a notebook, over a picture for where scripts do not run.

    Args:
        page: what `page` returns.
        picture: PNG, moving or not.
        description: of the picture.
        height: of the page, pixels.
        name: of the frame, by which a script finds it.
    """
    words = html.escape(description)
    return _ascii(
        f'<div style="position:relative;min-height:{height}px">{_image(picture, description)}'
        f'<iframe title="{words}" name="{name}" sandbox="allow-scripts" loading="lazy" '
        'style="position:absolute;inset:0;width:100%;height:100%;border:0" '
        f'srcdoc="{html.escape(page)}"></iframe></div>'
    )


def _image(picture: bytes, description: str) -> str:
    """An element with this PNG in it; nothing of none."""
    content = base64.b64encode(picture).decode()
    return (
        f'<img alt="{html.escape(description)}" style="max-width:100%" src="data:image/png;'
        f'base64,{content}">'
        if picture
        else ""
    )


def _ascii(text: str) -> str:
    """Text whose other letters are references: any encoding of the page around it does."""
    return text.encode("ascii", "xmlcharrefreplace").decode()


def _json(data: object) -> str:
    """JSON that ends no script element and starts none, whatever names are in it."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
