"""One HTML file to look around in: arms in three dimensions, without network, server or kernel.

It is drawn by a script of our own, in the page's source, on WebGL 2 or else a plain canvas; no
library takes part. Positions are in it as whole centimetres.
"""

from __future__ import annotations

import base64
import html
import json
import string
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from reacher.drawing import style
from reacher.drawing.points import arm_points, arm_positions, columns_for, require_arms
from reacher.episode import Episode
from reacher.task import HAND_RADIUS, STEP_REWARD

ASSETS = Path(__file__).parent / "assets"
PARTS = "elbow", "hand", "goal"
FARTHEST = 327.0  # m, what 16 bits hold in centimetres


def page(
    episodes: Sequence[Episode],
    title: str = "Twenty arms and their goals",
    what: str = "",
    start: int = style.PAGE_START,
    autoplay: bool = True,
    webgl: bool = True,
) -> str:
    """The page of one episode, or of two or three side by side.

    Args:
        episodes: of the same number of arms and decisions, and the same goal size.
        title: of the page.
        what: a line below it.
        start: the decision that shows first.
        autoplay: whether it begins to play by itself, where the reader allows motion.
        webgl: False draws on a plain canvas, as where WebGL is missing.

    Raises:
        ValueError: no episode, more than three, or such that differ.
    """
    if not 1 <= len(episodes) <= 3:
        raise ValueError(f"a page shows one to three episodes, not {len(episodes)}")
    first = episodes[0]
    for other in episodes:
        require_arms(other.observations[0])
        if (other.rewards.shape, other.goal_size) != (first.rewards.shape, first.goal_size):
            raise ValueError(
                "episodes side by side need the same numbers of arms and decisions "
                "and the same goal size"
            )
    decisions, arms = first.rewards.shape
    data = {
        "what": what,
        "goalSize": first.goal_size,
        "decisions": decisions,
        "start": start,
        "autoplay": autoplay,
        "webgl": webgl,
        "look": _look(),
        "places": np.round(arm_positions(arms, columns_for(arms), first.goal_size), 3).tolist(),
        "framed": _framed(style.WORKPLACE, first.goal_size),
        "framedOne": _framed(style.ONE_ARM, first.goal_size),
        "actors": [
            {
                "title": episode.title,
                "facts": list(episode.facts),
                "positions": _base64(centimetres(episode.observations)),
                "rewards": _base64(np.round(episode.rewards / STEP_REWARD).astype(np.uint8)),
            }
            for episode in episodes
        ],
    }
    text = {
        name: (ASSETS / name).read_text(encoding="utf-8")
        for name in ("page.html", "page.css", "page.js")
    }
    return string.Template(text["page.html"]).substitute(
        title=html.escape(title), style=text["page.css"], script=text["page.js"], data=_json(data)
    )


def inline(
    page: str, picture: bytes, description: str = "Arms and their goals", height: int = 760
) -> str:
    """HTML that shows a page within a notebook, over a picture for where scripts do not run.

    Args:
        page: what `page` returns.
        picture: PNG, moving or not.
        description: of the picture.
        height: of the page, pixels.
    """
    words = html.escape(description)
    return _ascii(
        f'<div style="position:relative;min-height:{height}px">'
        f'<img alt="{words}" style="max-width:100%" '
        f'src="data:image/png;base64,{base64.b64encode(picture).decode()}">'
        f'<iframe title="{words}" sandbox="allow-scripts" loading="lazy" '
        'style="position:absolute;inset:0;width:100%;height:100%;border:0" '
        f'srcdoc="{html.escape(page)}"></iframe></div>'
    )


def centimetres(observations: np.ndarray) -> np.ndarray:
    """Elbow, hand and goal, (..., 3, 3) int16 cm, of observations (..., 33)."""
    point = arm_points(observations)
    metres = np.stack([point[part] for part in PARTS], -2)
    return np.round(metres.clip(-FARTHEST, FARTHEST) * 100).astype("<i2")


def _framed(framed, goal_size):
    from reacher.drawing.scene import outline

    points = outline(np.zeros(3), framed, goal_size)
    return [
        round(float(value), 3)
        for value in (points[:, 0].max(), points[:, 2].min(), points[:, 2].max())
    ]


def _look() -> dict:
    return {
        "armRadius": style.ARM_RADIUS,
        "baseRadius": style.BASE_RADIUS,
        "handRadius": HAND_RADIUS,
        "elbowRadius": style.ELBOW_RADIUS,
        "postRadius": style.POST_RADIUS,
        "floor": style.FLOOR,
        "square": style.SQUARE,
        "ringOutside": style.RING_OUTSIDE,
        "ringWidth": style.RING_WIDTH,
        "goalOpacity": style.GOAL_OPACITY,
        "touchedOpacity": style.TOUCHED_OPACITY,
        "sun": style.SUN_FROM,
        "fieldOfView": style.FIELD_OF_VIEW,
        "azimuth": style.AZIMUTH,
        "elevation": style.ELEVATION,
        "oneArmElevation": style.ONE_ARM_ELEVATION,
        "lowestElevation": style.LOWEST_ELEVATION,
        "margin": style.MARGIN,
        "nearest": style.NEAREST,
        "farthest": style.FARTHEST,
        "turnSpeed": style.TURN_SPEED,
        "wheelSpeed": style.WHEEL_SPEED,
        "decisionSeconds": style.DECISION_SECONDS,
        "dark": style.PAGE_DARK,
        "light": style.PAGE_LIGHT,
    }


def _base64(array: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()


def _ascii(text: str) -> str:
    """Text whose other letters are references: any encoding of the page around it does."""
    return text.encode("ascii", "xmlcharrefreplace").decode()


def _json(data: object) -> str:
    """JSON that ends no script element and starts none, whatever names are in it."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
