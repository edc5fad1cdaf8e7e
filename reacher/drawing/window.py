"""A window on arms that somebody else simulates."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from reacher.drawing.flat import FlatArms
from reacher.drawing.picture import arms_picture
from reacher.drawing.scene import ArmScene
from reacher.drawing.style import PICTURE_SIZE

MANY_ARMS = 900, 600  # pixels


class ArmWindow:
    """Shows pictures of arms in a window of matplotlib, in real time where they are drawn so fast.

    Args:
        goal_size: diameter of the goals, m.
        frames_per_second: the most; `show` waits accordingly.

    Raises:
        ModuleNotFoundError: matplotlib is missing.
        RuntimeError: matplotlib cannot open windows here.
    """

    def __init__(self, goal_size: float, frames_per_second: float) -> None:
        import matplotlib.pyplot as plt

        self._plt, self._goal_size = plt, goal_size
        self._picture: ArmScene | FlatArms | None = None
        self._image: Any = None
        self._interval, self._next = 1 / frames_per_second, 0.0
        self._figure = plt.figure("Reacher", figsize=(9, 6))
        if not self._figure.canvas.required_interactive_framework:
            plt.close(self._figure)
            raise RuntimeError(
                f"render_mode 'human' needs a window, and matplotlib's backend {plt.get_backend()} "
                "has none. On a desktop, choose one such as TkAgg, QtAgg or MacOSX by "
                "matplotlib.use(...); elsewhere use render_mode 'rgb_array'"
            )
        self._axes = self._figure.add_axes((0, 0, 1, 1))
        self._axes.axis("off")
        self._figure.show()

    def show(self, observations: np.ndarray) -> None:
        """Draw observations (agents, 33), and wait until it is time for the next picture.

        Nothing happens once the user has closed the window.
        """
        if not self._plt.fignum_exists(self._figure.number):
            return
        if self._picture is None:
            size = MANY_ARMS if len(observations) > 1 else (PICTURE_SIZE, PICTURE_SIZE)
            self._picture = arms_picture(len(observations), *size, self._goal_size)
        pixels = self._picture.frame(observations)
        if self._image is None:
            self._image = self._axes.imshow(pixels)
        self._image.set_data(pixels)
        self._figure.canvas.draw_idle()
        self._figure.canvas.start_event_loop(max(self._next - time.monotonic(), 0.001))
        self._next = time.monotonic() + self._interval

    def close(self) -> None:
        """Close the window. It may be called again."""
        self._plt.close(self._figure)
        if self._picture is not None:
            self._picture.close()
