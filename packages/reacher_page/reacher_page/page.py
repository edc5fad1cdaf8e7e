"""One HTML file in which trained arms live: physics, actors and critic, without network or server.

The physics, the networks and the drawing are JavaScript of our own in `assets`, without a library.
"""

from __future__ import annotations

import base64
import html
import json
import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reacher import columns, physics, task

SEED = 1000  # of the goals; trainings begin with seeds from 0 on
UNTRAINED: dict[str, Any] = {"label": "0", "network": None, "episode": 0}
ASSETS = Path(__file__).parent / "assets"
STILL = ASSETS / "still.png"  # where scripts do not run


def script(*names: str) -> str:
    """These files of `assets` as one script, after the constants of the arms.

    They are TASK, by the names in reacher.physics and reacher.task, and COLUMNS, the first
    number of each part of an observation, by the names in reacher.columns.
    """
    values = {**vars(physics), **vars(task)}
    known = {k: v for k, v in values.items() if k.isupper() and isinstance(v, int | float | dict)}
    starts = {k: getattr(v, "start", v) for k, v in vars(columns).items() if k.isupper()}
    head = f"const TASK = {json.dumps(known)}, COLUMNS = {json.dumps(starts)};\n"
    return head + "".join(map(asset, names))


def page(
    actors: Sequence[Mapping] = (),
    critic: Mapping | None = None,
    scores: Sequence[float] = (),
    arms: int = 20,
    what: str = "",
    tutorial: str = "",
    embedded: bool = False,
    live: bool = False,
    learning: Mapping | None = None,
) -> str:
    """The page of these actors; the one labeled "best" acts first, or else the last one.

    Args:
        actors: in the order of training; none: an untrained one. Of each "label", which the slider
            and links (#episode=...) call it by, "network" of `Network.packed`, None for random
            torques, "episode" after which it was kept, or None, and perhaps "score", its mean in
            Python.
        critic: likewise packed; None: the page shows no values.
        scores: of the training, episode by episode.
        arms: how many live in the page.
        what: a sentence or two on what one sees, for search engines.
        tutorial: address that explains it all; "": no link.
        embedded: without title and prompts, for within a notebook.
        live: takes further actors by messages, as `reacher_page.live` sends them.
        learning: of `reacher_page.learn`: a learner that learns in the page.
    """
    names, worker = ["physics.js", "networks.js", "scene.js", "beside.js", "page.js"], ""
    actors = actors or [UNTRAINED]
    labels, learning = [actor["label"] for actor in actors], dict(learning or {})
    if learning:
        machine = learning.pop("machine")
        names.insert(-1, "learn_page.js")
        worker = f'"use strict";\n{machine}{script("physics.js", "learn.js", "learn_worker.js")}'
    world = task.World(arms, SEED)
    data = {
        "actors": actors,
        "first": labels.index("best") if "best" in labels else len(labels) - 1,
        "critic": critic,
        "live": live,
        "learning": learning or None,
        "scores": [round(float(score), 3) for score in scores],
        "goals": [(int(each.integers(360)), each.uniform(-1, 1)) for each in world.generators],
        "world": {name: world.parameters[f"goal_{name}"] for name in ("size", "speed")},
    }
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    link = html.escape(tutorial)
    return string.Template(asset("page.html")).substitute(
        what=html.escape(what),
        tutorial=link and f'<a href="{link}">How? See the tutorial.</a>',
        still=base64.b64encode(STILL.read_bytes()).decode(),
        kind=("embedded" if critic else "embedded single") * embedded,
        style=asset("page.css"),
        # No name in it ends the script element or starts another.
        data=text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"),
        learns=" 'wasm-unsafe-eval' blob:; worker-src blob:" if learning else "",
        worker=worker,
        script=(machine if learning else "") + script(*names),
    )


def inline(
    page: str, picture: bytes, description: str = "Arms", height: int = 800, name: str = ""
) -> str:
    """HTML that shows a page within a notebook, over a picture for where scripts do not run.

    Args:
        page: of `page`, or another with "</body>".
        picture: PNG, moving or not.
        description: of the picture.
        height: pixels, until the page has told its own.
        name: of the frame, by which a script finds it.
    """
    text = string.Template(asset("frame.html")).substitute(
        page=html.escape(page.replace("</body>", f"{asset('fit.html')}</body>")),
        picture=base64.b64encode(picture).decode(),
        words=html.escape(description),
        height=height,
        name=name,
    )
    return text.encode("ascii", "xmlcharrefreplace").decode()  # any encoding around it does


def asset(name: str) -> str:
    """The text of a file of `assets`."""
    return (ASSETS / name).read_text(encoding="utf-8")
