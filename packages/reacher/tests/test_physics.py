"""The physics: against PhysX's rules in plain NumPy, and its likeness to the Unity build."""

import numpy as np
from scipy.spatial.transform import Rotation

from reacher import ReacherVectorEnv
from reacher.episode import evaluate_policy, random_torques
from reacher.physics import Physics

STEP = 0.02  # s
GRAVITY = 9.81  # m/s^2


def capsule(radius, length, density):
    """Mass and moments of inertia about x, y, z of a capsule along y; length includes the caps."""
    straight = length - 2 * radius
    cylinder = density * np.pi * radius**2 * straight
    caps = density * 4 / 3 * np.pi * radius**3
    along = cylinder * radius**2 / 2 + caps * 2 / 5 * radius**2
    # Each half ball: 2/5 m r^2 about the ball's centre; its centre of mass lies 3/8 r further out.
    across = cylinder * (3 * radius**2 + straight**2) / 12 + caps * (
        2 / 5 * radius**2 + straight**2 / 4 + 3 / 8 * straight * radius
    )
    return cylinder + caps, np.array([across, along, across])


def bodies_from_geometry():
    """Inertia of upper arm and forearm, (2, 3), about x, y, z; the forearm's centre of mass on y.

    Both have mass 1. The forearm's is spread by volume over a capsule and a hand of radius 1 at 3.
    """
    mass, upper = capsule(0.5, 6, density=1.0)
    upper /= mass
    hand = 4 / 3 * np.pi
    density = 1 / (mass + hand)
    center = 3 * hand * density
    capsule_mass, forearm = capsule(0.5, 6, density)
    hand *= density
    forearm += hand * 2 / 5
    steiner = capsule_mass * center**2 + hand * (3 - center) ** 2
    return np.array([upper, forearm + [steiner, 0, steiner]]), center


INERTIA, FOREARM_CENTER = bodies_from_geometry()


def pose(physics):
    """Rotations (arms, 2, 3, 3), body to world, and centres of mass (arms, 2, 3) of both bodies."""
    arms = physics.num_agents
    turn = Rotation.from_quat(physics.quaternion, scalar_first=True).as_matrix()
    turn, center = turn.reshape(arms, 2, 3, 3), physics.position.reshape(arms, 2, 3).copy()
    center[:, 1] += FOREARM_CENTER * turn[:, 1, :, 1]
    return turn, center


def mass_matrix(turn):
    """(arms, 12, 12) for velocities (w_A, v_A, w_B, v_B) in world axes."""
    matrix = np.tile(np.eye(12), (len(turn), 1, 1))
    for body in range(2):
        rows = slice(6 * body, 6 * body + 3)
        matrix[:, rows, rows] = (turn[:, body] * INERTIA[body]) @ turn[:, body].swapaxes(1, 2)
    return matrix


def jacobian_of(turn, center):
    """(arms, 12, 4): body velocities that unit rates of the four joint turns mean.

    Universal joints: the first turn is about the parent's x, the second about the own z.
    """
    arms = len(turn)
    shoulder = np.tile([0, 0.02, 0], (arms, 1))
    elbow = center[:, 0] + 3 * turn[:, 0, :, 1]
    axes = [
        (np.tile([1.0, 0, 0], (arms, 1)), shoulder, 0),
        (turn[:, 0, :, 2], shoulder, 0),
        (turn[:, 0, :, 0], elbow, 1),
        (turn[:, 1, :, 2], elbow, 1),
    ]
    matrix = np.zeros((arms, 12, 4))
    for k, (axis, anchor, first_body) in enumerate(axes):
        for body in range(first_body, 2):
            matrix[:, 6 * body : 6 * body + 3, k] = axis
            matrix[:, 6 * body + 3 : 6 * body + 6, k] = np.cross(axis, center[:, body] - anchor)
    return matrix


def free_velocity(velocity, turn, torques):
    """(arms, 12): what drag, torque, gravity and the cut make of each body alone; and speeds."""
    arms, velocity, turn = len(turn), velocity.copy(), turn.reshape(-1, 3, 3)
    own = np.einsum("bik,bi->bk", turn, torques) / np.tile(INERTIA, (arms, 1))
    w = (velocity[:, :3] + STEP * np.einsum("bik,bk->bi", turn, own)) * (1 - 0.05 * STEP)
    speed = np.linalg.norm(w, axis=1, keepdims=True)
    velocity[:, :3] = w * np.minimum(1, 7 / np.maximum(speed, 1e-12))
    velocity[:, 4] -= STEP * GRAVITY
    return velocity.reshape(arms, 12), speed


def test_a_step_is_the_nearest_velocity_that_the_joints_allow():
    """The whole step against a maximal-coordinate solution in plain NumPy.

    Nearest in kinetic energy: with joint rates u and body velocities J u, minimise
    (J u - V*)' M (J u - V*), so u = (J'MJ)^-1 J'M V*.
    """
    drawn = np.random.default_rng(1).uniform(-1.3, 1.3, (15, 20, 3)).clip(-1, 1) * 150
    drawn[..., 1] = 0.0  # about x and z only
    physics, cut = Physics(10), 0
    for torques in np.repeat(drawn, 20, axis=0):
        turn, center = pose(physics)
        free, speed = free_velocity(physics.velocity, turn, torques)
        jacobian = jacobian_of(turn, center)
        pulled = jacobian.swapaxes(1, 2) @ mass_matrix(turn)
        rates = np.linalg.solve(pulled @ jacobian, pulled @ free[..., None])
        physics.step(torques)
        velocity = physics.velocity.reshape(-1, 12)
        # The model's inertia is rounded to 1e-6, which an inverse may enlarge a little.
        np.testing.assert_allclose(velocity, (jacobian @ rates)[..., 0], atol=2e-3, rtol=1e-4)
        cut += (speed > 7).sum()
        # They then move along an arc, at its ends' mean velocity but for the share (w h)^2 / 12,
        # 0.013 with 20 rad/s between the bodies; no speed is above 20 m/s.
        turn, later = pose(physics)
        mean = ((jacobian + jacobian_of(turn, later)) / 2 @ rates).reshape(-1, 2, 6)[..., 3:]
        np.testing.assert_allclose((later - center) / STEP, mean, atol=0.26)
    assert cut > 100  # the 7 rad/s were reached


def test_random_torques_score_here_what_they_score_in_unity():
    """Unity: 0.127 on average (36 episodes of 20 arms), and 26 of 41 single arms at exactly 0."""
    scores = evaluate_policy(ReacherVectorEnv(400, seed=0), random_torques(0))
    assert abs(scores.mean() - 0.127) <= 0.02
    assert 0.52 <= (scores == 0).mean() <= 0.72
