"""Pictures of arms: in three dimensions where OpenGL works, flat by matplotlib where not."""

from __future__ import annotations

from reacher.drawing import backends
from reacher.drawing.flat import FlatArms
from reacher.drawing.scene import ArmScene


def arms_picture(
    arms: int, width: int, height: int, goal_size: float = 5.0, **options
) -> ArmScene | FlatArms:
    """What draws arms on their grid: in three dimensions, or flat with a warning.

    Args:
        arms: how many.
        width, height: pixels.
        goal_size: diameter of the goals, m.
        options: further ones of `ArmScene`.
    """
    if backend := backends.working_backend():
        try:
            return ArmScene(arms, width, height, goal_size, backend=backend, **options)
        except RuntimeError as error:
            backends.warn_of_flat(str(error))
    else:
        backends.warn_of_flat()
    return FlatArms(arms, width, height, goal_size, **options)
