"""Interactive figures that work without a kernel: a page of their own over a still drawing.

Where scripts run, a reader sees the page; where they are stripped, as on GitHub, the drawing.
The pages need no network. Their markup, style and scripts are in `assets`.
"""

from __future__ import annotations

import html
import io
import json
import string
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import HTML
from matplotlib.figure import Figure
from PIL import Image

from reacher.task import MAX_SCORE
from tutorial import diagrams
from web.page import ASSETS as PAGE_ASSETS
from web.page import inline

ASSETS = Path(__file__).parent / "assets"
UNIT = 0.0005  # points of score: with 20 arms every score of an episode is a multiple of it


def value_chain() -> HTML:
    """How many sweeps value needs along a chain of 20 cells with a reward behind the last one.

    The reader chooses n from 1 to 10 and the discount factor, and steps through the sweeps.
    """
    still = diagrams.draw_value_chain(states=20, sweeps=(1, 2, 4, 8), n_steps=(1, 3, 10))
    title = "How far value travels along a chain, by sweeps and by n"
    return _figure("value_chain", title, 540, still, states=20)


def sum_tree(tree: np.ndarray, value: float) -> HTML:
    """The path of a number from the root of a sum tree to a leaf, as `diagrams.draw_tree`.

    The reader changes the number and the priorities, and draws 1,000 numbers.

    Args:
        tree: (2 * leaves,) as the notebook's, with 2 to 8 leaves; node 0 is not used.
        value: from 0 to below the root's.

    Raises:
        ValueError: another number of leaves, or a value outside of the sum.
    """
    leaves = len(tree) // 2
    if leaves not in (2, 4, 8) or len(tree) % 2:
        raise ValueError(f"a tree of 2, 4 or 8 leaves has 4, 8 or 16 numbers, not {len(tree)}")
    if not 0 <= value < tree[1]:
        raise ValueError(f"a number from 0 to below the sum, {tree[1]:g}, is found, not {value:g}")
    still = diagrams.draw_tree(tree, value)
    priorities = [float(priority) for priority in tree[leaves:]]
    title = "The path of a number from the root of a sum tree to a leaf"
    height = 444 + 62 * (leaves.bit_length() - 1)  # a GAP of sum_tree.js for each level
    return _figure("sum_tree", title, height, still, priorities=priorities, number=float(value))


def _figure(name: str, title: str, height: int, still: Figure, **data: object) -> HTML:
    """The page of a figure over its still drawing, which is closed.

    Args:
        name: of the assets.
        title: of the page, and the words for its picture.
        height: of the page, pixels.
        data: what its script reads.
    """
    asset = {
        file: (ASSETS / file).read_text(encoding="utf-8")
        for file in ("figure.html", "figure.css", "figure.js", f"{name}.html", f"{name}.js")
    }
    page = string.Template(asset["figure.html"]).substitute(
        title=html.escape(title),
        style=(PAGE_ASSETS / "page.css").read_text(encoding="utf-8") + asset["figure.css"],
        body=asset[f"{name}.html"],
        data=json.dumps(data, separators=(",", ":")),
        script=asset["figure.js"] + asset[f"{name}.js"],
    )
    drawn, picture = io.BytesIO(), io.BytesIO()
    still.savefig(drawn)
    plt.close(still)
    Image.open(drawn).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(
        picture, "PNG", optimize=True
    )
    return HTML(inline(page, picture.getvalue(), title, height))
