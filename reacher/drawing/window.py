"""MuJoCo's own viewer as a window on arms that somebody else simulates."""

from __future__ import annotations

import time

import mujoco
import numpy as np

from reacher.drawing import style
from reacher.drawing.points import arm_positions, columns_for, require_arms
from reacher.drawing.scene import Camera, add_arms, outline, surroundings

SHAPE = 1200, 800  # pixels, for which the camera frames the arms


class ArmViewer:
    """Shows arms in MuJoCo's viewer, in real time; the mouse turns, shifts and zooms.

    Args:
        goal_size: diameter of the goals, m.
        frames_per_second: the most; `show` waits accordingly.

    Raises:
        RuntimeError: the viewer does not open here; on macOS it needs `mjpython`.
    """

    def __init__(self, goal_size: float, frames_per_second: float) -> None:
        import mujoco.viewer  # where there is a display only

        self._launch = mujoco.viewer.launch_passive
        self._goal_size, self._arms, self._handle = goal_size, 0, None
        self._interval, self._next = 1 / frames_per_second, 0.0

    def _open(self, arms: int) -> None:
        self._arms = arms
        self._arm_positions = arm_positions(arms, columns_for(arms), self._goal_size)
        camera = Camera(*SHAPE, elevation=style.ELEVATION if arms > 1 else style.ONE_ARM_ELEVATION)
        framed = style.WORKPLACE if arms > 1 else style.REACH
        camera.frame(
            np.concatenate(
                [outline(place, framed, self._goal_size) for place in self._arm_positions]
            )
        )
        self._model = mujoco.MjModel.from_xml_string(
            surroundings(self._arm_positions, self._goal_size, camera)
        )
        data = mujoco.MjData(self._model)
        self._handle = self._launch(self._model, data, show_left_ui=False, show_right_ui=False)
        with self._handle.lock():
            eye = self._handle.cam
            eye.azimuth, eye.elevation = camera.azimuth, -camera.elevation
            eye.lookat[:], eye.distance = camera.target, camera.distance

    def show(self, observations: np.ndarray) -> None:
        """Draw observations (agents, 33), and wait until it is time for the next picture.

        Nothing happens once the user has closed the window.
        """
        observations = require_arms(observations)
        if self._handle is None:
            self._open(len(observations))
        if not self._handle.is_running():
            return
        scene = self._handle.user_scn
        most = (scene.maxgeom - 16) // 8
        with self._handle.lock():
            scene.ngeom = 0
            add_arms(
                scene, self._model, observations[:most], self._arm_positions[:most], self._goal_size
            )
        self._handle.sync()
        time.sleep(max(self._next - time.monotonic(), 0))
        self._next = time.monotonic() + self._interval

    def close(self) -> None:
        """Close the window. It may be called again."""
        if self._handle is not None:
            self._handle.close()
