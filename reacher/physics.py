"""Physics of the Reacher arms: MuJoCo's rigid bodies, stepped in the order of Unity's engine.

The Unity build runs on PhysX 3.3, which keeps a velocity v and an angular velocity w for every
body. In each physics step of dt = 0.02 s it first moves every body's velocity alone,

    v* = v + dt g
    w* = cut((w + dt I^-1 torque) (1 - drag dt))        cut: |w*| to 7 rad/s at most

then lets the joints turn (v*, w*) into the nearest velocities that they allow, nearest in the
sense of kinetic energy, and last moves the bodies. Two habits of that scheme decide the scores:
without the cut, arms spin up until nothing learned in Unity works; and because the velocities
are brought to the joints' *new* directions in every step, motion loses energy, about as much as
air would take. MuJoCo has neither. Both enter it as the force and torque on each body that have
the same effect,

    force_eff  = m (v* - v_joints) / dt
    torque_eff = I (w* - w_joints) / dt

where v_joints and w_joints are the body velocities that the joint rates mean at the new
position. MuJoCo's own velocity-dependent forces (Coriolis, centrifugal, gyroscopic), which
stand for the same change of direction, are taken away. One MuJoCo step then solves for the joint
rates nearest to (v*, w*). A projection never adds kinetic energy and |w*| is bounded, so the
arms cannot diverge, whatever the torques.

Axes are Unity's: y points up, x and z lie in the plane of the floor.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import mujoco
import numba
import numpy as np

MODEL_FILE = Path(__file__).with_name("reacher.xml")
MAX_AGENTS = 2_000  # arms in one MuJoCo model; 10,000 fail to allocate

PHYSICS_STEP = 0.02  # s; the model's time step, and the Unity build's
GRAVITY = 9.81  # m/s^2
ANGULAR_DRAG = 0.05  # 1/s
MAX_ANGULAR_VELOCITY = 7.0  # rad/s
HAND_OFFSET = 3.0  # m, from the forearm's centre along its own +y


class Physics:
    """All arms in one MuJoCo model, stepped together.

    After `reset` and after every `step` these arrays describe the present moment. Rows stand for
    bodies: 2 i is the upper arm of arm i, 2 i + 1 its forearm. All are in world axes.

    Attributes:
        num_agents: number of arms.
        position: (2 * num_agents, 3) centre of each capsule, m.
        quaternion: (2 * num_agents, 4) orientation in MuJoCo's order w, x, y, z.
        velocity: (2 * num_agents, 6) angular velocity, rad/s, then velocity of the centre of
            mass, m/s, as PhysX holds them: after the joints acted, before the bodies moved.
        hand: (num_agents, 3) centre of the hand, m.
    """

    def __init__(self, num_agents: int):
        self.num_agents = num_agents
        root = ElementTree.parse(MODEL_FILE).getroot()
        root.find(".//replicate").set("count", str(num_agents))
        self.model = mujoco.MjModel.from_xml_string(ElementTree.tostring(root, encoding="unicode"))
        self.data = mujoco.MjData(self.model)

        # Views into MuJoCo's own memory, without the world body in row 0.
        bodies = slice(1, None)
        self.position = self.data.xpos[bodies]
        self.quaternion = self.data.xquat[bodies]
        self._rotation = self.data.xmat[bodies]  # (bodies, 9), body to world, row by row
        self._center_of_mass = self.data.xipos[bodies]
        self._arm_center = self.data.subtree_com[bodies]  # row 2 i: whole arm's centre of mass
        self._com_velocity = self.data.cvel[bodies]  # (bodies, 6): angular, linear at _arm_center
        self._wrench = self.data.xfrc_applied[bodies]  # (bodies, 6): force, torque
        self._mass = self.model.body_mass[bodies].copy()
        self._inertia = self.model.body_inertia[bodies].copy()  # (bodies, 3), own axes

        self.velocity = np.zeros((2 * num_agents, 6))
        self._joint_velocity = np.zeros((2 * num_agents, 6))  # velocities at the new position
        self.hand = np.empty((num_agents, 3))
        self.reset()

    def reset(self) -> None:
        """Hang every arm straight down, at rest."""
        mujoco.mj_resetData(self.model, self.data)
        mujoco.mj_step1(self.model, self.data)
        self.velocity[:] = 0.0
        self._joint_velocity[:] = 0.0
        place_hands(self.position, self._rotation, self.hand)

    def step(self, torques: np.ndarray) -> None:
        """Advance all arms by one physics step of 0.02 s.

        Args:
            torques: (2 * num_agents, 3) torque on each body about the world's axes, N m.
        """
        effective_wrenches(torques, self.velocity, self._joint_velocity, self._rotation,
                           self._mass, self._inertia, self._wrench)
        self.data.qfrc_applied[:] = self.data.qfrc_bias  # takes MuJoCo's Coriolis forces away
        mujoco.mj_step2(self.model, self.data)  # new joint rates, new joint angles
        mujoco.mj_comVel(self.model, self.data)  # body velocities, still at the old position
        self._measure_velocities(self.velocity)
        mujoco.mj_step1(self.model, self.data)  # new positions, and what follows from them
        self._measure_velocities(self._joint_velocity)
        place_hands(self.position, self._rotation, self.hand)

    def _measure_velocities(self, velocity: np.ndarray) -> None:
        body_velocities(self._com_velocity, self._center_of_mass, self._arm_center, velocity)


@numba.njit(cache=True)
def effective_wrenches(torques, velocity, joint_velocity, rotation, mass, inertia, wrench):
    """Write force_eff and torque_eff of the module's docstring into `wrench`.

    Args:
        torques: (bodies, 3) wanted torque, world axes, N m.
        velocity: (bodies, 6) w and v of each body after the last step.
        joint_velocity: (bodies, 6) w and v that the joint rates mean at the present position.
        rotation: (bodies, 9) matrix from body to world axes, row by row.
        mass: (bodies,) kg.
        inertia: (bodies, 3) principal moments of inertia, kg m^2.
        wrench: (bodies, 6) written: force, N, and torque, N m, world axes.
    """
    free = np.empty(3)  # w* and torque_eff in the body's own axes, where the inertia is diagonal
    own_torque = np.empty(3)
    for b in range(len(torques)):
        r = rotation[b].reshape(3, 3)
        squared = 0.0
        for k in range(3):
            w = torque = 0.0
            for i in range(3):
                w += r[i, k] * velocity[b, i]
                torque += r[i, k] * torques[b, i]
            w += PHYSICS_STEP * torque / inertia[b, k]
            free[k] = w * (1.0 - ANGULAR_DRAG * PHYSICS_STEP)
            squared += free[k] ** 2
        cut = MAX_ANGULAR_VELOCITY / max(np.sqrt(squared), MAX_ANGULAR_VELOCITY)
        for k in range(3):
            w_joints = 0.0
            for i in range(3):
                w_joints += r[i, k] * joint_velocity[b, i]
            own_torque[k] = inertia[b, k] * (cut * free[k] - w_joints) / PHYSICS_STEP
        for i in range(3):
            change = velocity[b, 3 + i] - joint_velocity[b, 3 + i]
            wrench[b, i] = mass[b] * change / PHYSICS_STEP
            wrench[b, 3 + i] = 0.0
            for k in range(3):
                wrench[b, 3 + i] += r[i, k] * own_torque[k]
        wrench[b, 1] -= mass[b] * GRAVITY


@numba.njit(cache=True)
def body_velocities(com_velocity, center_of_mass, arm_center, velocity):
    """Write each body's angular velocity and the velocity of its own centre of mass.

    MuJoCo states velocities at the centre of mass of the whole arm; v + w x r moves them.
    """
    for b in range(len(velocity)):
        w, v = com_velocity[b, :3], com_velocity[b, 3:]
        r = center_of_mass[b] - arm_center[b - b % 2]
        velocity[b, :3] = w
        velocity[b, 3] = v[0] + w[1] * r[2] - w[2] * r[1]
        velocity[b, 4] = v[1] + w[2] * r[0] - w[0] * r[2]
        velocity[b, 5] = v[2] + w[0] * r[1] - w[1] * r[0]


@numba.njit(cache=True)
def place_hands(position, rotation, hand):
    """Write the hands' centres: the forearm's centre and 3 m along its own +y."""
    for arm in range(len(hand)):
        for k in range(3):  # the second column of the rotation matrix is the body's y axis
            hand[arm, k] = position[2 * arm + 1, k] + HAND_OFFSET * rotation[2 * arm + 1, 3 * k + 1]
