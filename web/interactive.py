"""Two figures that a reader plays with, without a kernel: a page of its own over a still picture.

Where scripts run, a reader sees the page; where they are stripped, as on GitHub, the picture. The
pages need no network. Markup, style, scripts and stills are in `assets`.
"""

from __future__ import annotations

import html
import json
import string

from IPython.display import HTML

from web.page import ASSETS, asset, inline


def value_chain() -> HTML:
    """How many sweeps value needs along a chain of 20 cells with a reward behind the last one.

    The reader chooses n from 1 to 10 and the discount factor, and steps through the sweeps.
    """
    title = "How far value travels along a chain, by sweeps and by n"
    return _figure("value_chain", title, 540, states=20)


def sum_tree() -> HTML:
    """The path of the number 4.5 from the root of a sum tree over 1, 2, 3 and 4 to a leaf.

    The reader changes the number and the priorities, and draws 1,000 numbers.
    """
    title = "The path of a number from the root of a sum tree to a leaf"
    return _figure("sum_tree", title, 568, priorities=[1.0, 2.0, 3.0, 4.0], number=4.5)


def _figure(name: str, title: str, height: int, **data: object) -> HTML:
    """The page of a figure, `height` pixels high, over its still; its script reads `data`."""
    page = string.Template(asset("figure.html")).substitute(
        title=html.escape(title),
        style=asset("page.css") + asset("figure.css"),
        body=asset(f"{name}.html"),
        data=json.dumps(data, separators=(",", ":")),
        script=asset("figure.js") + asset(f"{name}.js"),
    )
    return HTML(inline(page, (ASSETS / f"{name}.png").read_bytes(), title, height))
