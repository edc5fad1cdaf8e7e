"""Spaces of the Reacher for Gymnasium, with derived bounds."""

from __future__ import annotations

import gymnasium
import numpy as np

from reacher.task import ACTION_SIZE, GOAL_ORBIT, RESET_PARAMETERS

# Largest speeds of the bodies, in world axes x, y, z: rad/s, and m/s of the center of mass.
UPPER_ARM_SPEEDS = (160.0, 21.0, 21.0), 82.0
FOREARM_SPEEDS = (115.0, 115.0, 115.0), 99.0


def observation_space(goal_speed: float = RESET_PARAMETERS["goal_speed"]) -> gymnasium.spaces.Box:
    """Bounds of one arm's 33 observations (those of `Task.observe`), float32.

    - Positions: a capsule's center is 4.02 m from the shoulder, which is 0.02 m above the base,
      or up to 7.02 + 3 m.
    - Angular velocities: the cut to 7 rad/s comes before the joints act, and these may turn it
      into more, above all about an arm's own axis, where its inertia is smallest. What bounds
      them is energy. Let R be the rotational part of the kinetic energy and L that of the centers
      of mass. The joints never add energy, the cut leaves R <= 7^2 / 2 (I_A + I_B) = 162 J, and
      gravity adds at most 0.196 to sqrt(L) in a step. Arms that hold together have L <= 27.85 R,
      so the energy E obeys E' <= 162 + (sqrt(0.9653 E) + 0.196)^2 and stays below 5,498 J. Of
      that, an upper arm can turn by 20.3 rad/s across its own axis, and a forearm by 34.3. About
      its own axis, with inertia I, a body goes from at most 7 rad/s before the joints act to at
      most 3.5 + sqrt(7^2 + 2 E / I) / 2, which is 154 and 107 rad/s. The shoulder turns about x
      and about an axis across both x and the arm, so the upper arm's y and z have the first limit.
    - Velocities: the same energy allows 81.3 and 98.7 m/s.
    - Quaternions, and the hand as the forearm sees it, are of length 1.
    - The goal circles at 8 m, 1 m below the base. Gymnasium asks for bounds that differ, so
      numbers that never change have wider ones.

    A search for the worst torques found 43 and 31 rad/s, and 31 and 65 m/s.

    Args:
        goal_speed: largest speed of the goals, degrees per physics step.
    """

    def body(reach, speeds):  # position, quaternion, angular velocity, velocity
        (x, y, z), v = speeds
        return [reach, reach + 0.02, reach, *[1.0] * 4, x, y, z, v, v, v]

    high = np.array(
        [
            *body(4.02, UPPER_ARM_SPEEDS),
            *body(10.02, FOREARM_SPEEDS),
            GOAL_ORBIT,
            1.0,
            GOAL_ORBIT,
            1.0,
            1.0,
            1.0,
            goal_speed or 1.0,
        ]
    )
    low = -high
    low[[1, 14]] += 0.04  # heights, of which the shoulder's own is the middle
    return gymnasium.spaces.Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)


def action_space() -> gymnasium.spaces.Box:
    """Torques as a share of 150 N m: upper arm about x and z, forearm about x and z."""
    return gymnasium.spaces.Box(-1.0, 1.0, (ACTION_SIZE,), np.float32)
