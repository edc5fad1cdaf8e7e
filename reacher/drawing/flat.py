"""Flat pictures of the arms by matplotlib, which is imported when the first one is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reacher.drawing.points import arm_points, columns_for, require_arms, touching
from reacher.drawing.style import BLUE, GREEN, PURPLE
from reacher.task import HAND_RADIUS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ARM, HAND, GOAL, TOUCHED_GOAL = "0.35", BLUE, PURPLE, GREEN
RING = "#003D2C"  # around a touched goal: touch shows without colors, too
GOAL_OPACITY, TOUCHED_OPACITY = 0.32, 0.95
RING_WIDTH = 2.2  # points
SPACING = 23.0  # m, of the arms' bases
REACH = 15.0  # m around the base, which a hand does not leave in any picture


def draw_arms(
    axes: Axes,
    observations: np.ndarray,
    columns: int = 10,
    goal_size: float = 5.0,
) -> None:
    """Draw arms side by side, seen from the front and a little from above.

    Args:
        axes: matplotlib axes; what they hold is cleared.
        observations: (agents, 33).
        columns: arms in a row.
        goal_size: diameter of the goals, m. While the hand touches it, a goal is green, darker
            and has a ring; else it is a faint pink.
    """
    from matplotlib.collections import EllipseCollection, LineCollection
    from matplotlib.colors import to_rgba

    def flat(point):  # (agents, 3) to (agents, 2): x to the right, y up, z a little upwards
        return np.stack([point[:, 0], point[:, 1] + 0.35 * point[:, 2]], -1) + place

    agents = np.arange(len(observations))
    place = SPACING * np.stack([agents % columns, -(agents // columns)], -1)
    point = {name: flat(value) for name, value in arm_points(observations).items()}
    axes.clear()
    axes.set_aspect("equal")
    axes.axis("off")
    touched = touching(observations, goal_size)
    ball: dict[str, Any] = {"units": "x", "angles": 0, "transOffset": axes.transData}
    axes.add_collection(
        EllipseCollection(
            np.full(len(agents), goal_size),
            np.full(len(agents), goal_size),
            offsets=point["goal"],
            facecolors=[
                to_rgba(TOUCHED_GOAL, TOUCHED_OPACITY) if touch else to_rgba(GOAL, GOAL_OPACITY)
                for touch in touched
            ],
            edgecolors=[to_rgba(RING, float(touch)) for touch in touched],
            linewidths=RING_WIDTH * touched,
            **ball,
        )
    )
    for start, end in (("base", "elbow"), ("elbow", "hand")):
        axes.add_collection(
            LineCollection(
                list(np.stack([point[start], point[end]], 1)),
                colors=ARM,
                linewidths=2.2,
                capstyle="round",
            )
        )
    axes.plot(*point["base"].T, "o", color=ARM, markersize=4)
    axes.add_collection(
        EllipseCollection(
            np.full(len(agents), 2 * HAND_RADIUS),
            np.full(len(agents), 2 * HAND_RADIUS),
            offsets=point["hand"],
            facecolors=HAND,
            edgecolors="white",
            linewidths=0.6,
            **ball,
        )
    )
    rows = -(-len(agents) // columns)
    axes.set_xlim(-SPACING / 2, (min(columns, len(agents)) - 0.5) * SPACING)
    axes.set_ylim(-(rows - 0.5) * SPACING - 3, SPACING / 2 - 2)


class FlatArms:
    """Draws arms on their grid flat, with the interface of `ArmScene`, where OpenGL is missing.

    Args:
        arms: how many.
        width, height: of the picture, pixels.
        goal_size: diameter of the goals, m.
        columns: arms in a row; None: by `columns_for`.
        bottom: pixels at the lower edge that the arms leave free.
        ignored: what only three dimensions have.
    """

    def __init__(
        self,
        arms: int,
        width: int,
        height: int,
        goal_size: float = 5.0,
        columns: int | None = None,
        bottom: int = 0,
        **ignored: object,
    ) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self._columns, self._goal_size = columns or columns_for(arms), goal_size
        figure = Figure(figsize=(width / 100, height / 100), dpi=100)
        self._canvas = FigureCanvasAgg(figure)
        self._axes = figure.add_axes((0, bottom / height, 1, 1 - bottom / height))

    def frame(self, observations: np.ndarray) -> np.ndarray:
        """The picture (height, width, 3) uint8 of observations (arms, 33), or (33,) of one arm."""
        observations = require_arms(np.atleast_2d(observations))
        draw_arms(self._axes, observations, self._columns, goal_size=self._goal_size)
        if len(observations) == 1:
            self._axes.set(xlim=(-REACH, REACH), ylim=(-REACH, REACH))
        self._canvas.draw()
        return np.array(self._canvas.buffer_rgba())[..., :3].copy()

    def close(self) -> None:
        """Nothing is held."""
