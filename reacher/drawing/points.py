"""Where the parts of arms are, from observations alone: embedded, of a Unity build or recorded."""

from __future__ import annotations

import math

import numpy as np

from reacher.drawing import style
from reacher.physics import HAND_OFFSET
from reacher.task import GOAL_ORBIT, HAND_RADIUS, OBSERVATION_SIZE


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
    return {
        "base": np.zeros_like(elbow),
        "elbow": elbow,
        "hand": hand,
        "goal": observations[..., 26:29],
    }


def hand_to_goal(observations: np.ndarray) -> np.ndarray:
    """Distance of the hand's center from the goal's, m: (..., 33) to (...,)."""
    point = arm_points(observations)
    return np.linalg.norm(point["hand"] - point["goal"], axis=-1)


def touching(observations: np.ndarray, goal_size: float) -> np.ndarray:
    """Whether hand and goal overlap, as the reward sees it: (..., 33) to (...,) bool."""
    return hand_to_goal(observations) <= HAND_RADIUS + goal_size / 2


def require_arms(observations: np.ndarray) -> np.ndarray:
    """Observations (agents, 33) as an array.

    Raises:
        ValueError: another shape: no arms.
    """
    observations = np.asarray(observations)
    if observations.ndim != 2 or observations.shape[1] != OBSERVATION_SIZE:
        raise ValueError(
            "only arms can be drawn, with observations of shape "
            f"(arms, {OBSERVATION_SIZE}), not {observations.shape}: Gymnasium's own "
            "environments draw themselves, by their render_mode"
        )
    return observations


def columns_for(arms: int) -> int:
    """How many arms stand in a row where nobody says: 1 of 1, 5 of 20."""
    return math.ceil(math.sqrt(arms * 1.25)) if arms > 1 else 1


def spacing_for(goal_size: float) -> tuple[float, float]:
    """Distance of the bases within a row and from row to row, m, so that goals stay apart."""
    radius = GOAL_ORBIT + style.RING_OUTSIDE * min(goal_size, style.LARGEST_FRAMED_GOAL) / 2
    apart = max(style.SPACING, 2 * radius + 1)
    return apart, max(style.ROW_SPACING, apart * style.ROW_SPACING / style.SPACING)


def arm_positions(arms: int, columns: int, goal_size: float) -> np.ndarray:
    """Where the bases stand, (arms, 3), m, x to the right, z up: first row farthest back."""
    across, along = spacing_for(goal_size)
    arm = np.arange(arms)
    rows = -(-arms // columns)
    return np.stack(
        [
            (arm % columns - (min(columns, arms) - 1) / 2) * across,
            ((rows - 1) / 2 - arm // columns) * along,
            0.0 * arm,
        ],
        -1,
    )


def upright(points: np.ndarray) -> np.ndarray:
    """From Unity's axes (left-handed, y up) to the pictures' (right-handed, z up): (..., 3)."""
    return points[..., [0, 2, 1]]
