"""Pictures of the arms by matplotlib, which is imported when the first one is drawn."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from reacher.display import has_display as has_display
from reacher.physics import HAND_OFFSET
from reacher.task import HAND_RADIUS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ARM, HAND, GOAL, TOUCHED_GOAL = "0.35", "#0072B2", "#CC79A7", "#009E73"  # Okabe and Ito, and grey
PICTURE_SIZE = 480  # pixels, of one arm's picture
REACH = 15.0  # m around the base, which a hand does not leave in any picture


def arm_points(observations: np.ndarray) -> dict[str, np.ndarray]:
    """Where an arm's parts are, from observations alone, so for a Unity build as well.

    Args:
        observations: (..., 33).

    Returns:
        `base`, `elbow`, `hand` and `goal`, each (..., 3), m.
    """
    def along_own_y(quaternion):  # second column of the rotation matrix; order x, y, z, w
        x, y, z, w = np.moveaxis(quaternion, -1, 0)
        return np.stack([2 * (x * y - z * w), 1 - 2 * (x * x + z * z), 2 * (y * z + x * w)], -1)

    upper, forearm = observations[..., 0:13], observations[..., 13:26]
    elbow = upper[..., 0:3] + HAND_OFFSET * along_own_y(upper[..., 3:7])
    hand = forearm[..., 0:3] + HAND_OFFSET * along_own_y(forearm[..., 3:7])
    return {"base": np.zeros_like(elbow), "elbow": elbow, "hand": hand,
            "goal": observations[..., 26:29]}


def hand_to_goal(observations: np.ndarray) -> np.ndarray:
    """Distance of the hand's centre from the goal's, m: (..., 33) to (...,)."""
    point = arm_points(observations)
    return np.linalg.norm(point["hand"] - point["goal"], axis=-1)


def draw_arms(axes: Axes, observations: np.ndarray, columns: int = 10, spacing: float = 23.0,
              goal_size: float = 5.0) -> None:
    """Draw arms side by side, seen from the front and a little from above.

    Args:
        axes: matplotlib axes; what they hold is cleared.
        observations: (agents, 33).
        columns: arms in a row.
        spacing: of the arms' bases, m.
        goal_size: diameter of the goals, m; a goal is green while the hand touches it.
    """
    from matplotlib.collections import EllipseCollection, LineCollection

    def flat(point):  # (agents, 3) to (agents, 2): x to the right, y up, z a little upwards
        return np.stack([point[:, 0], point[:, 1] + 0.35 * point[:, 2]], -1) + place

    agents = np.arange(len(observations))
    place = spacing * np.stack([agents % columns, -(agents // columns)], -1)
    point = {name: flat(value) for name, value in arm_points(observations).items()}
    axes.clear()
    axes.set_aspect("equal")
    axes.axis("off")
    touching = hand_to_goal(observations) <= HAND_RADIUS + goal_size / 2
    ball = {"units": "x", "angles": 0, "transOffset": axes.transData}
    axes.add_collection(EllipseCollection(
        np.full(len(agents), goal_size), np.full(len(agents), goal_size), offsets=point["goal"],
        facecolors=np.where(touching, TOUCHED_GOAL, GOAL), alpha=0.55, **ball))
    for start, end in (("base", "elbow"), ("elbow", "hand")):
        axes.add_collection(LineCollection(np.stack([point[start], point[end]], 1),
                                           colors=ARM, linewidths=2.2, capstyle="round"))
    axes.plot(*point["base"].T, "o", color=ARM, markersize=4)
    axes.add_collection(EllipseCollection(
        np.full(len(agents), 2 * HAND_RADIUS), np.full(len(agents), 2 * HAND_RADIUS),
        offsets=point["hand"], facecolors=HAND, **ball))
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
                "matplotlib.use(...); elsewhere use render_mode 'rgb_array'")
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
