"""A figure that a reader plays with, without a kernel: a page of its own over a still picture.

Where scripts run, a reader sees the page; where they are stripped, as on GitHub, the picture. It
needs no network. Markup, style, script and still are in `assets`.
"""

from __future__ import annotations

import html
import json
import string

from IPython.display import HTML

from reacher_page.page import ASSETS, asset, inline


def sum_tree() -> HTML:
    """The path of the number 4.5 from the root of a sum tree over 1, 2, 3 and 4 to a leaf.

    The reader changes the number and the priorities, and draws 1,000 numbers.
    """
    title = "The path of a number from the root of a sum tree to a leaf"
    page = string.Template(asset("figure.html")).substitute(
        title=html.escape(title),
        style=asset("page.css") + asset("figure.css"),
        body=asset("sum_tree.html"),
        data=json.dumps({"priorities": [1.0, 2.0, 3.0, 4.0], "number": 4.5}),
        script=asset("figure.js") + asset("sum_tree.js"),
    )
    return HTML(inline(page, (ASSETS / "sum_tree.png").read_bytes(), title, 568))
