"""Physics of the Reacher arms: MuJoCo's rigid bodies, stepped in the order of Unity's engine.

The Unity build runs on PhysX 3.3, which keeps a velocity v and an angular velocity w for every
body. In each physics step of dt = 0.02 s it first moves every body's velocity alone,

    v* = v + dt g
    w* = cut((w + dt I^-1 torque) (1 - drag dt))        cut: |w*| to 7 rad/s at most

then lets the joints turn (v*, w*) into the velocities that they allow, nearest in the sense of
kinetic energy, and last moves the bodies. Two habits of that scheme decide the scores: the cut, and
that velocities are brought to the joints' *new* directions, which loses energy, about as much as
air would take. MuJoCo has neither. Both enter it as a force and a torque on each body,

    force_eff  = m (v* - v_joints) / dt
    torque_eff = I (w* - w_joints) / dt

where v_joints and w_joints are the body velocities that the joint rates mean at the new position.
MuJoCo's own velocity-dependent forces (Coriolis, centrifugal, gyroscopic), which stand for the same
change of direction, are left out: a step here is MuJoCo's own without that stage. A projection
never adds kinetic energy and |w*| is bounded, so the arms cannot diverge, whatever the torques.

Axes are Unity's: y points up, x and z lie in the plane of the floor.
"""

from __future__ import annotations

import os
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np

from reacher.compiling import njit

try:
    import mujoco
except (AttributeError, OSError, RuntimeError):  # MUJOCO_GL names a library that is not there
    # Physics needs no OpenGL, and `render` tells what is missing to whoever draws.
    _asked, os.environ["MUJOCO_GL"] = os.environ["MUJOCO_GL"], "disable"
    import mujoco

    os.environ["MUJOCO_GL"] = _asked

MODEL_FILE = Path(__file__).with_name("reacher.xml")
MAX_AGENTS = 2_000  # arms in one MuJoCo model; 10,000 fail to allocate

PHYSICS_STEP = 0.02  # s; the model's time step, and the Unity build's
GRAVITY = 9.81  # m/s^2
ANGULAR_DRAG = 0.05  # 1/s
MAX_ANGULAR_VELOCITY = 7.0  # rad/s
HAND_OFFSET = 3.0  # m, from the forearm's center along its own +y


class Physics:
    """All arms in one MuJoCo model, stepped together.

    These arrays describe the present moment. Row 2 i is the upper arm of arm i, 2 i + 1 its
    forearm. All are in world axes.

    Attributes:
        num_agents: number of arms.
        position: (2 * num_agents, 3) center of each capsule, m.
        quaternion: (2 * num_agents, 4) orientation in MuJoCo's order w, x, y, z.
        rotation: (2 * num_agents, 3, 3) the same as matrices from body to world axes.
        velocity: (2 * num_agents, 6) angular velocity, rad/s, then velocity of the center of
            mass, m/s, as PhysX holds them: after the joints acted, before the bodies moved.
    """

    def __init__(self, num_agents: int) -> None:
        self.num_agents = num_agents
        root = ElementTree.parse(MODEL_FILE).getroot()
        next(root.iter("replicate")).set("count", str(num_agents))
        self.model = mujoco.MjModel.from_xml_string(ElementTree.tostring(root, encoding="unicode"))
        self.data = mujoco.MjData(self.model)

        # Views into MuJoCo's own memory, without the world body in row 0.
        bodies = slice(1, None)
        self.position = self.data.xpos[bodies]
        self.quaternion = self.data.xquat[bodies]
        self.rotation = self.data.xmat[bodies].reshape(-1, 3, 3)
        self.velocity = np.zeros((2 * num_agents, 6))
        self._bodies = self.model.body_mass[bodies], self.model.body_inertia[bodies]
        data = self.data  # rates, axis, anchor, center_of_mass and joint_torque below
        self._joints = data.qvel, data.xaxis, data.xanchor, data.xipos[bodies], data.qfrc_applied
        self.reset()

    def reset(self) -> None:
        """Hang every arm straight down, at rest."""
        mujoco.mj_resetData(self.model, self.data)
        mujoco.mj_fwdPosition(self.model, self.data)
        self.velocity[:] = 0.0

    def step(self, torques: np.ndarray) -> None:
        """Advance 0.02 s, with torques (2 * num_agents, 3), N m, on each body, world axes."""
        model, data = self.model, self.data
        drive_joints(torques, self.velocity, self.rotation, *self._bodies, *self._joints)
        mujoco.mj_fwdAcceleration(model, data)
        mujoco.mj_fwdConstraint(model, data)  # there are none: qacc is what was just computed
        mujoco.mj_Euler(model, data)  # new joint rates, new joint angles
        body_velocities(*self._joints[:4], self.velocity)  # of the bodies, at the old position
        mujoco.mj_fwdPosition(model, data)


# Below, an arm has two bodies, and four joints: two of the shoulder, two of the elbow. `inertia`
# (bodies, 3) is about a body's own axes, `rates` (joints,) are rad/s, `axis` and `anchor` (joints,
# 3) a direction and a point on it. The rest is in world axes: `torques` (bodies, 3), N m, and
# `wrench` (bodies, 6), force, N, and torque at the center of mass.


@njit
def drive_joints(
    torques, velocity, rotation, mass, inertia, rates, axis, anchor, center_of_mass, joint_torque
):
    """Write the torques about the joints that have the effect of force_eff and torque_eff."""
    joint_velocity, wrench = np.empty_like(velocity), np.empty_like(velocity)
    body_velocities(rates, axis, anchor, center_of_mass, joint_velocity)  # at the new position
    effective_wrenches(torques, velocity, joint_velocity, rotation, mass, inertia, wrench)
    joint_torques(wrench, axis, anchor, center_of_mass, joint_torque)


@njit
def effective_wrenches(torques, velocity, joint_velocity, rotation, mass, inertia, wrench):
    """Write force_eff and torque_eff of the module's docstring into `wrench`.

    `joint_velocity` (bodies, 6) is what the joint rates mean at the present position.
    """
    free = np.empty(3)  # w* and torque_eff in the body's own axes, where the inertia is diagonal
    own_torque = np.empty(3)
    for b in range(len(torques)):
        squared = 0.0
        for k in range(3):
            w = torque = 0.0
            for i in range(3):
                w += rotation[b, i, k] * velocity[b, i]
                torque += rotation[b, i, k] * torques[b, i]
            w += PHYSICS_STEP * torque / inertia[b, k]
            free[k] = w * (1.0 - ANGULAR_DRAG * PHYSICS_STEP)
            squared += free[k] ** 2
        cut = MAX_ANGULAR_VELOCITY / max(np.sqrt(squared), MAX_ANGULAR_VELOCITY)
        for k in range(3):
            w_joints = 0.0
            for i in range(3):
                w_joints += rotation[b, i, k] * joint_velocity[b, i]
            own_torque[k] = inertia[b, k] * (cut * free[k] - w_joints) / PHYSICS_STEP
        for i in range(3):
            change = velocity[b, 3 + i] - joint_velocity[b, 3 + i]
            wrench[b, i] = mass[b] * change / PHYSICS_STEP
            torque = 0.0
            for k in range(3):
                torque += rotation[b, i, k] * own_torque[k]
            wrench[b, 3 + i] = torque
        wrench[b, 1] -= mass[b] * GRAVITY


@njit
def joint_torques(wrench, axis, anchor, center_of_mass, torques):
    """Write the torque about each joint's axis, (joints,), N m, that the wrenches amount to."""
    for arm in range(len(wrench) // 2):
        upper_arm, forearm = 2 * arm, 2 * arm + 1
        for k in range(4):  # two joints of the shoulder, two of the elbow
            j = 4 * arm + k
            first = upper_arm if k < 2 else forearm  # the shoulder moves both, the elbow the second
            torque = 0.0
            for b in range(first, forearm + 1):
                fx, fy, fz = wrench[b, 0], wrench[b, 1], wrench[b, 2]
                rx = center_of_mass[b, 0] - anchor[j, 0]
                ry = center_of_mass[b, 1] - anchor[j, 1]
                rz = center_of_mass[b, 2] - anchor[j, 2]
                torque += (
                    axis[j, 0] * (wrench[b, 3] + ry * fz - rz * fy)
                    + axis[j, 1] * (wrench[b, 4] + rz * fx - rx * fz)
                    + axis[j, 2] * (wrench[b, 5] + rx * fy - ry * fx)
                )
            torques[j] = torque


@njit
def body_velocities(rates, axis, anchor, center_of_mass, velocity):
    """Write the velocity of each body that the joint rates mean: v = sum of w_joint x r."""
    for arm in range(len(velocity) // 2):
        for part in range(2):  # upper arm, forearm
            b = 2 * arm + part
            wx = wy = wz = vx = vy = vz = 0.0
            joints = 2 if part == 0 else 4  # the shoulder's two turn the forearm too
            for j in range(4 * arm, 4 * arm + joints):
                x, y, z = rates[j] * axis[j, 0], rates[j] * axis[j, 1], rates[j] * axis[j, 2]
                rx = center_of_mass[b, 0] - anchor[j, 0]
                ry = center_of_mass[b, 1] - anchor[j, 1]
                rz = center_of_mass[b, 2] - anchor[j, 2]
                wx, wy, wz = wx + x, wy + y, wz + z
                vx, vy, vz = vx + (y * rz - z * ry), vy + (z * rx - x * rz), vz + (x * ry - y * rx)
            velocity[b, 0], velocity[b, 1], velocity[b, 2] = wx, wy, wz
            velocity[b, 3], velocity[b, 4], velocity[b, 5] = vx, vy, vz
