"""Pictures of the arms: in three dimensions where OpenGL works, flat by matplotlib where not."""

from reacher.drawing.flat import TOUCHED_GOAL, draw_arms
from reacher.drawing.picture import arms_picture
from reacher.drawing.points import arm_points, hand_to_goal, touching
from reacher.drawing.scene import ArmScene
from reacher.drawing.window import ArmWindow

__all__ = [
    "TOUCHED_GOAL",
    "ArmScene",
    "ArmWindow",
    "arm_points",
    "arms_picture",
    "draw_arms",
    "hand_to_goal",
    "touching",
]
