"""Where the parts of arms are, from observations alone: embedded, of a Unity build or recorded."""

from __future__ import annotations

import numpy as np

from reacher import columns
from reacher.physics import HAND_OFFSET
from reacher.task import HAND_RADIUS


def arm_points(observations: np.ndarray) -> dict[str, np.ndarray]:
    """`base`, `elbow`, `hand` and `goal` of arms, each (..., 3), m, of observations (..., 33)."""

    def end_of(part: slice) -> np.ndarray:
        """The end of a capsule, along its own y: second column of the rotation matrix."""
        body = observations[..., part]
        x, y, z, w = np.moveaxis(body[..., columns.ORIENTATION], -1, 0)
        own_y = [2 * (x * y - z * w), 1 - 2 * (x * x + z * z), 2 * (y * z + x * w)]
        return body[..., columns.POSITION] + HAND_OFFSET * np.stack(own_y, -1)

    elbow, hand = end_of(columns.UPPER_ARM), end_of(columns.FOREARM)
    goal = observations[..., columns.GOAL]
    return {"base": np.zeros_like(elbow), "elbow": elbow, "hand": hand, "goal": goal}


def touching(observations: np.ndarray, goal_size: float) -> np.ndarray:
    """Whether hand and goal overlap, as the reward sees it: (..., 33) to (...,) bool."""
    point = arm_points(observations)
    distance = np.linalg.norm(point["hand"] - point["goal"], axis=-1)
    return distance <= HAND_RADIUS + goal_size / 2
