"""Flat pictures of the arms by matplotlib, which is imported when the first one is drawn."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from reacher.drawing.points import arm_points, touching
from reacher.drawing.style import BLUE, GREEN, PICTURE_SIZE, PURPLE
from reacher.task import HAND_RADIUS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ARM, HAND, GOAL, TOUCHED_GOAL = "0.35", BLUE, PURPLE, GREEN
RING = "#003D2C"  # around a touched goal: touch shows without colours, too
GOAL_OPACITY, TOUCHED_OPACITY = 0.32, 0.95
RING_WIDTH = 2.2  # points
REACH = 15.0  # m around the base, which a hand does not leave in any picture


def draw_arms(
    axes: Axes,
    observations: np.ndarray,
    columns: int = 10,
    spacing: float = 23.0,
    goal_size: float = 5.0,
) -> None:
    """Draw arms side by side, seen from the front and a little from above.

    Args:
        axes: matplotlib axes; what they hold is cleared.
        observations: (agents, 33).
        columns: arms in a row.
        spacing: of the arms' bases, m.
        goal_size: diameter of the goals, m. While the hand touches it, a goal is green, darker
            and has a ring; else it is a faint pink.
    """
    from matplotlib.collections import EllipseCollection, LineCollection
    from matplotlib.colors import to_rgba

    def flat(point):  # (agents, 3) to (agents, 2): x to the right, y up, z a little upwards
        return np.stack([point[:, 0], point[:, 1] + 0.35 * point[:, 2]], -1) + place

    agents = np.arange(len(observations))
    place = spacing * np.stack([agents % columns, -(agents // columns)], -1)
    point = {name: flat(value) for name, value in arm_points(observations).items()}
    axes.clear()
    axes.set_aspect("equal")
    axes.axis("off")
    touched = touching(observations, goal_size)
    ball = {"units": "x", "angles": 0, "transOffset": axes.transData}
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
                np.stack([point[start], point[end]], 1),
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
    axes.set_xlim(-spacing / 2, (min(columns, len(agents)) - 0.5) * spacing)
    axes.set_ylim(-(rows - 0.5) * spacing - 3, spacing / 2 - 2)


class ArmPicture:
    """Draws one arm as an array of pixels. It needs no screen.

    Args:
        goal_size: diameter of the goal, m.
    """

    def __init__(self, goal_size: float) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self._goal_size = goal_size
        figure = Figure(figsize=(PICTURE_SIZE / 100, PICTURE_SIZE / 100), dpi=100)
        self._canvas = FigureCanvasAgg(figure)
        self._axes = figure.add_axes((0, 0, 1, 1))

    def frame(self, observation: np.ndarray) -> np.ndarray:
        """The picture (480, 480, 3) uint8 of an observation (33,)."""
        draw_arms(self._axes, observation[None], goal_size=self._goal_size)
        self._axes.set(xlim=(-REACH, REACH), ylim=(-REACH, REACH))
        self._canvas.draw()
        return np.array(self._canvas.buffer_rgba())[..., :3].copy()

    def close(self) -> None:
        """Nothing is held; for the same interface as `reacher.drawing.scene.ArmScene`."""


class ArmWindow:
    """Shows arms side by side in a window of matplotlib, in real time.

    Args:
        goal_size: diameter of the goals, m.
        frames_per_second: the most; `show` waits accordingly.

    Raises:
        RuntimeError: matplotlib cannot open windows here.
    """

    def __init__(self, goal_size: float, frames_per_second: float) -> None:
        import matplotlib.pyplot as plt

        self._plt, self._goal_size = plt, goal_size
        self._interval, self._next = 1 / frames_per_second, 0.0
        self._figure = plt.figure("Reacher", figsize=(8, 8), layout="constrained")
        if not self._figure.canvas.required_interactive_framework:
            plt.close(self._figure)
            raise RuntimeError(
                f"render_mode 'human' needs a window, and matplotlib's backend {plt.get_backend()} "
                "has none. On a desktop, choose one such as TkAgg, QtAgg or MacOSX by "
                "matplotlib.use(...); elsewhere use render_mode 'rgb_array'"
            )
        self._axes = self._figure.add_subplot()
        self._figure.show()

    def show(self, observations: np.ndarray) -> None:
        """Draw observations (agents, 33), and wait until it is time for the next picture.

        Nothing happens once the user has closed the window.
        """
        if not self._plt.fignum_exists(self._figure.number):
            return
        columns = int(np.ceil(np.sqrt(len(observations))))
        draw_arms(self._axes, observations, columns, 2 * REACH, self._goal_size)
        self._figure.canvas.draw_idle()
        self._figure.canvas.start_event_loop(max(self._next - time.monotonic(), 0.001))
        self._next = time.monotonic() + self._interval

    def close(self) -> None:
        self._plt.close(self._figure)
