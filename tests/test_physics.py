"""The physics: against PhysX's rules in plain NumPy, and its likeness to the Unity build."""

from __future__ import annotations

import json

import numpy as np
import pytest

from reacher import ReacherEnvironment
from reacher.episode import evaluate_policy, random_torques
from reacher.physics import Physics, effective_wrenches
from reacher.task import Task
from research.fidelity import stored_policy

STEP = 0.02  # s
GRAVITY = 9.81  # m/s^2


def rotation(quaternion):
    """Rotation matrices (..., 3, 3), body to world, of quaternions (..., 4) in order w, x, y, z."""
    w, x, y, z = np.moveaxis(np.asarray(quaternion, dtype=float), -1, 0)
    return np.stack(
        [
            np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)], -1),
            np.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)], -1),
            np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], -1),
        ],
        -2,
    )


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


def test_masses_and_inertia_are_those_of_the_shapes():
    model = Physics(2).model
    for arm in range(2):
        bodies = [1 + 2 * arm, 2 + 2 * arm]
        np.testing.assert_array_equal(model.body_mass[bodies], [1, 1])
        # The file gives six decimals.
        center = [[0, 0, 0], [0, FOREARM_CENTER, 0]]
        np.testing.assert_allclose(model.body_ipos[bodies], center, atol=1e-6)
        turn = rotation(model.body_iquat[bodies])
        inertia = turn @ (model.body_inertia[bodies][..., None] * turn.swapaxes(1, 2))
        np.testing.assert_allclose(inertia, [np.diag(row) for row in INERTIA], atol=1.1e-6)
    np.testing.assert_allclose(INERTIA[0, :2], [2.7507, 0.12206], atol=5e-5)
    np.testing.assert_allclose(INERTIA[1, :2], [3.8589, 0.25682], atol=5e-5)


def test_effective_wrenches_against_their_formula():
    generator = np.random.default_rng(0)
    bodies = 200
    torques, joint, velocity = (
        generator.normal(scale=scale, size=(bodies, k)) for scale, k in ((100, 3), (5, 6), (5, 6))
    )
    turn = rotation(
        (lambda q: q / np.linalg.norm(q, axis=1, keepdims=True))(generator.normal(size=(bodies, 4)))
    )
    mass, inertia = generator.uniform(0.5, 2, bodies), generator.uniform(0.1, 4, (bodies, 3))
    wrench = np.empty((bodies, 6))
    effective_wrenches(torques, velocity, joint, turn, mass, inertia, wrench)

    tensor = turn @ (inertia[:, :, None] * turn.swapaxes(1, 2))  # (bodies, 3, 3), world axes
    pushed = velocity[:, :3] + STEP * np.linalg.solve(tensor, torques[..., None])[..., 0]
    free = pushed * (1 - 0.05 * STEP)
    speed = np.linalg.norm(free, axis=1, keepdims=True)
    assert 0.2 < (speed > 7).mean() < 0.9  # both branches of the cut are tested
    free *= np.minimum(1, 7 / speed)
    torque = (tensor @ ((free - joint[:, :3]) / STEP)[..., None])[..., 0]
    force = mass[:, None] * ((velocity[:, 3:] - joint[:, 3:]) / STEP + [0, -GRAVITY, 0])
    np.testing.assert_allclose(wrench, np.hstack([force, torque]), rtol=1e-9, atol=1e-9)


class Arms:
    """PhysX's rules in plain NumPy, on the observable state of a `Physics`, for comparison."""

    def __init__(self, physics):
        self.physics = physics

    def pose(self):
        """Rotation (arms, 2, 3, 3) and centre of mass (arms, 2, 3) of both bodies."""
        arms = self.physics.num_agents
        turn = rotation(self.physics.quaternion).reshape(arms, 2, 3, 3)
        center = self.physics.position.reshape(arms, 2, 3).copy()
        center[:, 1] += FOREARM_CENTER * turn[:, 1, :, 1]
        return turn, center

    def mass_matrix(self):
        """(arms, 12, 12) for velocities (w_A, v_A, w_B, v_B) in world axes."""
        turn, _ = self.pose()
        matrix = np.zeros((len(turn), 12, 12))
        for body in range(2):
            rows = slice(6 * body, 6 * body + 3)
            matrix[:, rows, rows] = (turn[:, body] * INERTIA[body]) @ turn[:, body].swapaxes(1, 2)
            for k in range(6 * body + 3, 6 * body + 6):
                matrix[:, k, k] = 1.0
        return matrix

    def jacobian(self):
        """(arms, 12, 4): body velocities that unit rates of the four joint turns mean.

        Universal joints: the first turn is about the parent's x, the second about the own z.
        """
        turn, center = self.pose()
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

    def free_velocity(self, torques):
        """(arms, 12): what drag, torque, gravity and the cut make of each body alone."""
        arms = self.physics.num_agents
        velocity = self.physics.velocity.copy()
        turn, _ = self.pose()
        turn = turn.reshape(-1, 3, 3)
        own = np.einsum("bik,bi->bk", turn, torques) / np.tile(INERTIA, (arms, 1))
        w = (velocity[:, :3] + STEP * np.einsum("bik,bk->bi", turn, own)) * (1 - 0.05 * STEP)
        speed = np.linalg.norm(w, axis=1, keepdims=True)
        velocity[:, :3] = w * np.minimum(1, 7 / np.maximum(speed, 1e-12))
        velocity[:, 4] -= STEP * GRAVITY
        return velocity.reshape(arms, 12), speed.reshape(arms, 2)


def play(physics, steps, torque_of):
    """Step physics with torques (arms, 2, 3); yield free and joined velocities of each step."""
    arms = Arms(physics)
    for step in range(steps):
        torques = torque_of(step).reshape(-1, 3)
        free, speed = arms.free_velocity(torques)
        mass, jacobian = arms.mass_matrix(), arms.jacobian()
        physics.step(torques)
        yield free, speed, mass, jacobian, physics.velocity.reshape(-1, 12)


def energy(mass, velocity):
    """Kinetic energy (arms,), J."""
    return 0.5 * np.einsum("ai,aij,aj->a", velocity, mass, velocity)


def held_torques(arms, seed):
    """Random full torques that change every 20 steps, by step."""
    drawn = np.random.default_rng(seed).uniform(-1.3, 1.3, (1000, arms, 2, 3)).clip(-1, 1) * 150
    drawn[..., 1] = 0.0  # about x and z only
    return lambda step: drawn[step // 20]


def test_a_step_is_the_nearest_velocity_that_the_joints_allow():
    """The whole step against a maximal-coordinate solution in plain NumPy.

    Nearest in kinetic energy: with joint rates u and body velocities J u, minimise
    (J u - V*)' M (J u - V*), so u = (J'MJ)^-1 J'M V*.
    """
    cut = 0
    for free, speed, mass, jacobian, velocity in play(Physics(10), 300, held_torques(10, seed=1)):
        pulled = jacobian.swapaxes(1, 2) @ mass
        rates = np.linalg.solve(pulled @ jacobian, pulled @ free[..., None])
        # The model's inertia is rounded to 1e-6, which an inverse may enlarge a little.
        np.testing.assert_allclose(velocity, (jacobian @ rates)[..., 0], atol=2e-3, rtol=1e-4)
        cut += (speed > 7).sum()
    assert cut > 100  # the 7 rad/s were reached


def test_the_joints_never_add_kinetic_energy():
    """A projection shortens: the energy after the joints is at most that of V* before them."""
    physics = Physics(20)
    for free, _, mass, _, velocity in play(physics, 400, held_torques(20, seed=2)):
        before = energy(mass, free)
        assert (energy(mass, velocity) <= before * (1 + 1e-5) + 1e-9).all()


def test_a_free_swing_loses_energy():
    """Kinetic plus potential, every ten seconds, always falls."""
    agents = 10
    physics = Physics(agents)
    arms = Arms(physics)
    for _ in play(physics, 100, held_torques(agents, seed=3)):
        pass
    lowest = -GRAVITY * (4 + 10 + FOREARM_CENTER)
    above = []  # J above the arm at rest
    for _ in range(6):
        for _ in range(500):
            before = arms.mass_matrix(), arms.pose()[1]  # velocities are those before a move
            physics.step(np.zeros((2 * agents, 3)))
        mass, center = before
        velocity = physics.velocity.reshape(-1, 12)
        above.append(energy(mass, velocity) + GRAVITY * center[:, :, 1].sum(axis=1) - lowest)
    above = np.array(above)  # (6, arms)
    assert (above[0] > 10).all()  # they begin high: 20 J lift an arm by a metre
    assert (np.diff(above, axis=0) < 0).all() and (above[-1] > 0).all()


def test_the_arms_stay_joined_and_untwisted():
    physics = Physics(10)
    arms = Arms(physics)
    for _ in play(physics, 500, held_torques(10, seed=4)):
        turn, center = arms.pose()
        shoulder = center[:, 0] - 4.02 * turn[:, 0, :, 1]
        np.testing.assert_allclose(shoulder, np.tile([0, 0.02, 0], (10, 1)), atol=1e-5)
        elbow = center[:, 0] + 3 * turn[:, 0, :, 1]
        forearm_end = center[:, 1] - (3 + FOREARM_CENTER) * turn[:, 1, :, 1]
        np.testing.assert_allclose(elbow, forearm_end, atol=1e-5)
        np.testing.assert_allclose(turn[:, 0, 0, 2], 0, atol=1e-9)  # z of A across the world's x
        twist = np.einsum("ai,ai->a", turn[:, 1, :, 2], turn[:, 0, :, 0])
        np.testing.assert_allclose(twist, 0, atol=1e-9)  # z of B across x of A


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("axis", [0, 2])
def test_small_swings_have_the_periods_of_a_double_pendulum(axis, mode):
    """In both planes, against the eigenvalues of the linearised equations of motion.

    With the bodies' own angles a and b, L = 7.02 from joint to joint and c = 4.02, d = 3 + 16/11
    from a joint to a centre of mass: M = [[I_A + c^2 + L^2, L d], [L d, I_B + d^2]] and
    K = g diag(c + L, d). Steps of h shift a frequency by a share of (w h)^2 / 24 < 1e-3, and the
    drag by less.
    """
    to_center, to_joint, d = 4.02, 7.02, 3 + FOREARM_CENTER
    mass = np.array(
        [
            [INERTIA[0, 0] + to_center**2 + to_joint**2, to_joint * d],
            [to_joint * d, INERTIA[1, 0] + d**2],
        ]
    )
    stiffness = GRAVITY * np.diag([to_center + to_joint, d])
    squared, shapes = np.linalg.eig(np.linalg.solve(mass, stiffness))
    order = np.argsort(squared)
    frequency, shape = np.sqrt(squared[order[mode]]), shapes[:, order[mode]]

    physics = Physics(1)
    torques = np.zeros((2, 3))
    torques[:, axis] = 0.05 * mass @ shape  # pushes this mode alone
    modal = []
    for step in range(3000):
        physics.step(torques if step < 10 else np.zeros((2, 3)))
        turn = rotation(physics.quaternion)
        angles = -turn[:, 2 - axis, 1]  # how far each body leans, rad, up to its sign
        modal.append(shape @ mass @ angles)
    modal = np.array(modal[10:])
    assert np.abs(modal).max() > 0
    rising = np.flatnonzero((modal[:-1] < 0) & (modal[1:] >= 0))
    crossings = rising + modal[rising] / (modal[rising] - modal[rising + 1])
    period = np.diff(crossings).mean() * STEP
    assert len(crossings) > 5
    assert abs(period * frequency / (2 * np.pi) - 1) < 2e-3


def test_full_torques_that_turn_at_random_stay_finite():
    """100 arms, 400 decisions of four steps, and MuJoCo warns of nothing."""
    task, generator = Task(100, seed=0), np.random.default_rng(0)
    task.reset()
    signs = generator.choice([-1.0, 1.0], (100, 4))
    for _ in range(400):
        signs = np.where(generator.random((100, 4)) < 0.05, -signs, signs)
        observations, rewards, _ = task.step(signs)
        assert np.isfinite(observations).all() and np.isfinite(rewards).all()
    assert sum(warning.number for warning in task.physics.data.warning) == 0


def test_policies_trained_in_unity_score_here_what_they_scored_there(unity_policies):
    policies = json.loads((unity_policies / "policies.json").read_text())
    assert len(policies) == 7
    differences = {}
    for policy in policies:
        act = stored_policy(unity_policies / policy["file"], policy["layers"])
        with ReacherEnvironment(20, seed=0) as env:
            score = np.mean([evaluate_policy(env, act) for _ in range(3)])
        differences[policy["file"]] = score - policy["unity_score"]
    off = np.abs(list(differences.values()))
    assert off.max() <= 2.5, differences
    assert off.mean() <= 0.9, differences


def test_random_torques_score_here_what_they_score_in_unity():
    """Unity: 0.127 on average (36 episodes of 20 arms), and 26 of 41 single arms at exactly 0."""
    with ReacherEnvironment(400, seed=0) as env:
        scores = evaluate_policy(env, random_torques(0))
    assert abs(scores.mean() - 0.127) <= 0.02
    assert 0.52 <= (scores == 0).mean() <= 0.72
