"""Pictures of the arms: in three dimensions where OpenGL works, flat by matplotlib where not."""

from __future__ import annotations

import sys

from reacher.display import has_display
from reacher.drawing import backends, flat, style
from reacher.drawing.backends import working_backend
from reacher.drawing.flat import TOUCHED_GOAL, ArmPicture, ArmWindow, draw_arms
from reacher.drawing.points import arm_points, hand_to_goal, touching
from reacher.drawing.scene import ArmScene

__all__ = [
    "TOUCHED_GOAL",
    "ArmPicture",
    "ArmScene",
    "ArmWindow",
    "arm_picture",
    "arm_points",
    "arm_window",
    "draw_arms",
    "hand_to_goal",
    "has_display",
    "touching",
    "working_backend",
]


def arm_picture(goal_size: float) -> ArmScene | ArmPicture:
    """What draws one arm as pixels (480, 480, 3): in three dimensions, or flat with a warning.

    Args:
        goal_size: diameter of the goal, m.
    """
    if backend := working_backend():
        try:
            return ArmScene(1, style.PICTURE_SIZE, style.PICTURE_SIZE, goal_size, backend=backend)
        except RuntimeError as error:
            backends.warn_of_flat(str(error))
    else:
        backends.warn_of_flat()
    return flat.ArmPicture(goal_size)


def arm_window(goal_size: float, frames_per_second: float):
    """A window on arms: MuJoCo's viewer where it opens, else one of matplotlib.

    Args:
        goal_size: diameter of the goals, m.
        frames_per_second: the most.

    Raises:
        RuntimeError: neither can open a window here.
    """
    if viewer_opens():
        from reacher.drawing.window import ArmViewer

        return ArmViewer(goal_size, frames_per_second)
    return flat.ArmWindow(goal_size, frames_per_second)


def viewer_opens() -> bool:
    """Whether MuJoCo's viewer opens here. On macOS it does under `mjpython` only."""
    if not has_display() or not backends.works("glfw"):
        return False
    if sys.platform == "darwin":
        import mujoco.viewer

        return mujoco.viewer._MJPYTHON is not None
    return True
