"""The embedded environment: interface, task, physics, and its likeness to the Unity build."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys

import numpy as np
import pytest
import torch

from reacher import ReacherEnvironment
from reacher.episode import evaluate_policy
from reacher.physics import Physics, effective_wrenches
from reacher.task import Task
from research.fidelity import stored_policy
from tutorial.paths import PROJECT

BRAIN = "ReacherBrain"
DECISIONS = 1001  # of an episode
STEP = 0.02  # s
GRAVITY = 9.81  # m/s^2

# Unity's half turn about x in single precision, as every public notebook prints it.
HALF_TURN_W = float(np.float32(-4.37113883e-08))
HANGING = [0, -4, 0, 1, 0, 0, HALF_TURN_W, *[0] * 6, 0, -10, 0, 1, 0, 0, HALF_TURN_W, *[0] * 6]


def random_actions(decisions, agents, seed=0):
    """Clipped standard normal torques, (decisions, agents, 4)."""
    return np.random.default_rng(seed).standard_normal((decisions, agents, 4)).clip(-1, 1)


def assert_same(answer, expected):
    """Two answers agree in every number, bit for bit."""
    answer, expected = vars(answer[BRAIN]), vars(expected[BRAIN])
    assert answer.keys() == expected.keys()
    for name in answer:
        np.testing.assert_array_equal(answer[name], expected[name], err_msg=name)


# ------------------------------------------------------------------------------------ observations


def test_the_first_observation_is_the_published_one():
    with ReacherEnvironment(num_agents=20, seed=3) as env:
        observations = env.reset()[BRAIN].vector_observations
    assert observations.shape == (20, 33)
    np.testing.assert_array_equal(observations[:, :26], np.tile(HANGING, (20, 1)))
    np.testing.assert_array_equal(observations[:, 29:32], np.tile([0, 1, 0], (20, 1)))


def test_goals_start_on_whole_degrees_of_a_circle_and_have_speeds_within_one():
    with ReacherEnvironment(num_agents=1000, seed=0) as env:
        observations = env.reset()[BRAIN].vector_observations
    goal, speed = observations[:, 26:29], observations[:, 32]
    degrees = np.degrees(np.arctan2(goal[:, 0], goal[:, 2]))
    # float32 holds a coordinate of 8 m to 5e-7 m, so an angle to 5e-6 degrees.
    np.testing.assert_allclose(degrees, degrees.round(), atol=1e-5)
    np.testing.assert_allclose(np.hypot(goal[:, 0], goal[:, 2]), 8, atol=1e-5)
    assert (goal[:, 1] == -1).all()
    # 1000 uniform draws: each quarter holds 250 +- 13.7 of them; five standard deviations.
    quarters = np.histogram(degrees % 360, bins=4, range=(0, 360))[0]
    assert np.abs(quarters - 250).max() < 69
    assert np.abs(np.histogram(speed, bins=4, range=(-1, 1))[0] - 250).max() < 69
    assert np.abs(speed).max() <= 1


def test_the_goal_circles_at_the_observed_speed():
    """Degrees per physics step, four physics steps a decision."""
    with ReacherEnvironment(num_agents=5, seed=1) as env:
        before = env.reset()[BRAIN].vector_observations
        for _ in range(10):
            after = env.step(np.zeros((5, 4)))[BRAIN].vector_observations
    start, end = (np.arctan2(o[:, 26], o[:, 28]) for o in (before, after))
    turned = np.degrees(np.angle(np.exp(1j * (end - start))))
    np.testing.assert_allclose(turned, 40 * before[:, 32], atol=1e-4)
    np.testing.assert_array_equal(after[:, 32], before[:, 32])


def test_what_is_observed_of_the_bodies_hangs_together():
    """Unit quaternions, joints that hold, and speeds that fit the change of the positions."""
    agents = 10
    with ReacherEnvironment(agents, seed=0) as env:
        env.reset()
        for actions in random_actions(100, agents):
            observations = env.step(actions)[BRAIN].vector_observations
            bodies = observations[:, :26].reshape(agents, 2, 13)
            position, quaternion = bodies[..., 0:3], bodies[..., 3:7]
            np.testing.assert_allclose(np.linalg.norm(quaternion, axis=-1), 1, atol=1e-6)
            turn = rotation(quaternion[..., [3, 0, 1, 2]])
            upper, forearm = (lambda p, k=k: position[:, k] + turn[:, k] @ p for k in (0, 1))
            shoulder = upper([0, -4.02, 0])
            np.testing.assert_allclose(shoulder, np.tile([0, 0.02, 0], (agents, 1)), atol=1e-5)
            np.testing.assert_allclose(upper([0, 3, 0]), forearm([0, -3, 0]), atol=1e-5)
            # Velocities of the centres of mass follow from w: v_A = w_A x r from the shoulder.
            w, v = bodies[..., 7:10], bodies[..., 10:13]
            # The bodies have moved since, by w dt <= 0.14 rad or so, and r by as much of 4 m.
            arm = position[:, 0] - [0, 0.02, 0]
            reach = np.linalg.norm(w[:, 0], axis=-1) ** 2 * 4.02 * STEP
            off = np.linalg.norm(v[:, 0] - np.cross(w[:, 0], arm), axis=-1)
            assert (off <= 1.1 * reach + 1e-4).all()


# ----------------------------------------------------------------------------- episodes and rewards


def test_an_episode_has_1001_decisions_and_the_next_one_follows_by_itself():
    agents = 3
    with ReacherEnvironment(agents, seed=5) as env, ReacherEnvironment(agents, seed=5) as twin:
        config = {"goal_size": 1000.0}  # every physics step pays, the very last one as well
        env.reset(config=config)
        for decision in range(1, DECISIONS + 1):
            answer = env.step(np.full((agents, 4), 0.3))[BRAIN]
            last = decision == DECISIONS
            assert answer.local_done == answer.max_reached == [last] * agents
            assert answer.rewards == [np.float32(0.04)] * agents
        np.testing.assert_array_equal(
            answer.vector_observations[:, :26], np.tile(HANGING, (agents, 1))
        )
        np.testing.assert_array_equal(answer.previous_vector_actions, np.zeros((agents, 4)))

        # The second episode is the one that an explicit reset would have begun.
        twin.reset(config=config)
        second = twin.reset()[BRAIN]
        np.testing.assert_array_equal(answer.vector_observations, second.vector_observations)
        for actions in random_actions(3, agents):
            assert_same(env.step(actions), twin.step(actions))


def test_rewards_add_up_from_hand_and_goal():
    """The rewards of 300 decisions, recomputed from geometry alone.

    A second set of arms gets the same torques; the goals follow from the first observation. In
    each physics step the goal moves first, then the overlap counts, then the bodies move.
    """
    agents, size = 20, 16.0  # a large goal, so that random torques meet it now and then
    actions = random_actions(300, agents, seed=2)
    actions[100:] = np.repeat(actions[100::10], 10, axis=0)  # some of them held for longer
    physics = Physics(agents)
    with ReacherEnvironment(agents, seed=2) as env:
        first = env.reset(config={"goal_size": size})[BRAIN].vector_observations
        angle, speed = np.degrees(np.arctan2(first[:, 26], first[:, 28])).round(), first[:, 32]
        torques = np.zeros((2 * agents, 3))
        total = np.zeros(agents)
        for action in actions:
            rewards = np.array(env.step(action)[BRAIN].rewards)
            # Actions pass through single precision, and chaos would show any other rounding.
            torques[:, [0, 2]] = 150.0 * action.astype(np.float32).astype(float).reshape(-1, 2)
            least, most = np.zeros(agents), np.zeros(agents)
            for _ in range(4):
                angle = angle + speed
                goal = np.stack(
                    [
                        8 * np.sin(np.radians(angle)),
                        np.full(agents, -1.0),
                        8 * np.cos(np.radians(angle)),
                    ],
                    axis=1,
                )
                distance = np.linalg.norm(physics.hand - goal, axis=1)
                # The observed speed is float32: 1200 steps may misplace a goal by 1e-5 m.
                least += 0.01 * (distance <= size / 2 + 1 - 1e-4)
                most += 0.01 * (distance <= size / 2 + 1 + 1e-4)
                physics.step(torques)
            assert (rewards >= least - 1e-6).all() and (rewards <= most + 1e-6).all()
            total += rewards
    assert (total > 0).all() and (total < 0.04 * len(actions)).all()  # else nothing was tested


def test_a_decision_pays_whole_hundredths_up_to_four():
    with ReacherEnvironment(100, seed=0) as env:
        env.reset(config={"goal_size": 12.0})
        seen = {
            reward
            for actions in random_actions(200, 100)
            for reward in env.step(actions)[BRAIN].rewards
        }
    assert seen == {float(np.float32(pay)) for pay in (0, 0.01, 0.02, 0.03, 0.04)}


@pytest.mark.parametrize("size, pay", [(0, 0.0), (1000, 0.04)])
def test_goal_size_is_honoured_and_stays(size, pay):
    """A goal of size 0 is still a point that the hand could touch, but not while it hangs."""
    with ReacherEnvironment(4, seed=0) as env:
        env.reset(config={"goal_size": size})
        for _ in range(2):  # and it stays after a reset without config, as in Unity
            for _ in range(50):
                rewards = env.step(np.zeros((4, 4)))[BRAIN].rewards
                assert rewards == [np.float32(pay)] * 4
            env.reset()


def test_goal_speed_is_honoured_and_stays():
    with ReacherEnvironment(50, seed=0) as env:
        first = env.reset(config={"goal_speed": 0})[BRAIN].vector_observations
        for _ in range(5):
            later = env.step(np.zeros((50, 4)))[BRAIN].vector_observations
        np.testing.assert_array_equal(first[:, 26:29], later[:, 26:29])
        assert (env.reset()[BRAIN].vector_observations[:, 32] == 0).all()
        speed = env.reset(config={"goal_speed": 30})[BRAIN].vector_observations[:, 32]
        assert 25 < np.abs(speed).max() <= 30  # P(all of 50 below 25) = (25/30)^50 = 1e-4


def test_goals_are_set_at_construction_as_by_a_reset():
    config = {"goal_size": 14.0, "goal_speed": 3.0}
    with ReacherEnvironment(3, 0, **config) as env, ReacherEnvironment(3, 0) as twin:
        assert env.state()["parameters"] == config
        assert "goal_size -> 14.0" in str(env)
        assert_same(env.reset(), twin.reset(config=config))
        for actions in random_actions(50, 3):
            assert_same(env.step(actions), twin.step(actions))
        assert_same(env.reset(config={"goal_size": 2.0}), twin.reset(config={"goal_size": 2.0}))
        assert env.state() == twin.state()


@pytest.mark.parametrize("value", [-1.0, float("nan"), np.float16("inf"), "5", True, 10**400])
@pytest.mark.parametrize("name", ["goal_size", "goal_speed"])
def test_a_bad_goal_at_construction_is_an_error(name, value):
    with pytest.raises(ValueError, match=f"reset parameter '{name}' must be a number from 0 to"):
        ReacherEnvironment(1, **{name: value})


# --------------------------------------------------------------------------------------- interface


def test_academy_and_brain_are_described_as_in_unityagents():
    with ReacherEnvironment() as env:
        assert env.brain_names == env.external_brain_names == [BRAIN]
        assert env.academy_name == "Academy"
        assert env.number_brains == env.number_external_brains == 1
        brain = env.brains[BRAIN]
        assert brain.brain_name == BRAIN
        assert (brain.vector_observation_space_size, brain.vector_action_space_size) == (33, 4)
        assert brain.vector_observation_space_type == "continuous"
        assert brain.vector_action_space_type == "continuous"
        assert brain.num_stacked_vector_observations == 1
        assert brain.number_visual_observations == 0
        assert list(brain.camera_resolutions) == []
        assert list(brain.vector_action_descriptions) == [""] * 4
        for line in (
            "Unity Academy name: Academy",
            "goal_size -> 5.0",
            "goal_speed -> 1.0",
            "Vector Action space size (per agent): 4",
        ):
            assert line in str(env)
        assert env.global_done is None
        env.reset()
        assert env.global_done is False


def test_an_answer_has_the_fields_and_types_of_unityagents():
    actions = random_actions(1, 20)[0]
    with ReacherEnvironment() as env:
        for answer in (env.reset(train_mode=True), env.step(actions)):
            assert list(answer) == [BRAIN]
            info = answer[BRAIN]
            assert set(vars(info)) == {
                "vector_observations",
                "rewards",
                "local_done",
                "max_reached",
                "agents",
                "previous_vector_actions",
                "visual_observations",
                "text_observations",
                "memories",
                "previous_text_actions",
            }
            assert info.vector_observations.shape == (20, 33)
            assert info.vector_observations.dtype == np.float64
            # Unity sends single precision.
            np.testing.assert_array_equal(
                info.vector_observations, info.vector_observations.astype(np.float32)
            )
            for name, kind in (
                ("rewards", float),
                ("local_done", bool),
                ("max_reached", bool),
                ("agents", int),
            ):
                values = getattr(info, name)
                assert type(values) is list and [type(value) for value in values] == [kind] * 20
            assert info.visual_observations == [] and info.memories.size == 0
            assert info.previous_vector_actions.shape == (20, 4)
        np.testing.assert_array_equal(info.previous_vector_actions, actions.astype(np.float32))


def test_all_forms_of_actions_mean_the_same():
    actions = random_actions(1, 3)[0]
    forms = [
        actions,
        actions.ravel(),
        actions.astype(np.float32),
        actions.tolist(),
        actions.ravel().tolist(),
        torch.from_numpy(actions),
        {BRAIN: actions},
        {BRAIN: actions.ravel().tolist()},
        np.asfortranarray(actions),
    ]
    with ReacherEnvironment(3, seed=1) as env:
        answers = []
        for form in forms:
            env.reset(config={"goal_speed": 0})
            answers.append([env.step(form)[BRAIN].vector_observations[:, :26] for _ in range(3)])
    for answer in answers[1:]:
        np.testing.assert_array_equal(answer, answers[0])
    assert np.abs(answers[0][-1] - HANGING).max() > 0.1  # they moved at all


def test_no_actions_stand_for_zeros_and_large_ones_are_cut():
    with ReacherEnvironment(2, seed=0) as env, ReacherEnvironment(2, seed=0) as twin:
        env.reset(), twin.reset()
        for action, same in ((np.ones((2, 4)), np.full((2, 4), 7.0)), (-np.ones(8), [-1.5] * 8)):
            np.testing.assert_array_equal(
                env.step(action)[BRAIN].vector_observations,
                twin.step(same)[BRAIN].vector_observations,
            )
        for nothing in (None, {}, {BRAIN: None}):
            assert_same(env.step(nothing), twin.step(np.zeros((2, 4))))
        assert_same(env.step(), twin.step(np.zeros((2, 4))))


def test_one_arm_takes_a_flat_action():
    with ReacherEnvironment(num_agents=1) as env:
        assert env.reset()[BRAIN].vector_observations.shape == (1, 33)
        assert len(env.step([0.1, 0.2, 0.3, 0.4])[BRAIN].rewards) == 1
        assert len(env.step([[0.1, 0.2, 0.3, 0.4]])[BRAIN].rewards) == 1


def test_answers_are_not_overwritten_by_later_steps():
    actions = random_actions(2, 2)
    with ReacherEnvironment(2) as env:
        env.reset()
        info = env.step(actions[0])[BRAIN]
        kept = {name: np.copy(value) for name, value in vars(info).items()}
        env.step(actions[1])
        for name, value in kept.items():
            np.testing.assert_array_equal(getattr(info, name), value, err_msg=name)
        info.vector_observations[:] = np.nan  # nor does writing into one reach the environment
        assert np.isfinite(env.step(actions[1])[BRAIN].vector_observations).all()


# ------------------------------------------------------------------------------------------ errors

NAN_ACTIONS = np.zeros((3, 4))
NAN_ACTIONS[1, 2] = np.nan
INFINITE_ACTIONS = np.zeros(12)
INFINITE_ACTIONS[7] = -np.inf

BAD_CALLS = {
    "too few arms": (lambda env: env.step(np.zeros((2, 4))), ValueError, r"\(3, 4\)"),
    "too many actions": (lambda env: env.step(np.zeros((3, 5))), ValueError, r"\(3, 4\)"),
    "transposed": (lambda env: env.step(np.zeros((4, 3))), ValueError, r"\(3, 4\)"),
    "three axes": (lambda env: env.step(np.zeros((1, 3, 4))), ValueError, r"\(3, 4\)"),
    "flat and short": (lambda env: env.step(np.zeros(11)), ValueError, r"\(12,\)"),
    "one number": (lambda env: env.step(0.5), ValueError, r"\(3, 4\)"),
    "no numbers": (lambda env: env.step([]), ValueError, r"\(3, 4\)"),
    "ragged": (lambda env: env.step([[0.0] * 4, [0.0] * 3, [0.0] * 4]), ValueError, "numbers"),
    "text": (lambda env: env.step("left"), ValueError, "numbers"),
    "NaN": (lambda env: env.step(NAN_ACTIONS), ValueError, "action 2 of arm 1 is nan"),
    "infinite": (lambda env: env.step(INFINITE_ACTIONS), ValueError, "action 3 of arm 1 is -inf"),
    "other brain": (
        lambda env: env.step({"OtherBrain": np.zeros((3, 4))}),
        ValueError,
        "OtherBrain",
    ),
    "unknown key": (
        lambda env: env.reset(config={"goal_size": 9.0, "goal_sise": 4.0}),
        ValueError,
        "goal_sise",
    ),
    "negative size": (
        lambda env: env.reset(config={"goal_speed": 2.0, "goal_size": -1.0}),
        ValueError,
        "goal_size",
    ),
    "action beyond single precision": (
        lambda env: env.step(np.full(12, 1e39)),
        ValueError,
        "action 0 of arm 0 is inf",
    ),
    "tensor with gradient": (
        lambda env: env.step(torch.ones(12, requires_grad=True)),
        ValueError,
        "requires grad",
    ),
    "huge size": (lambda env: env.reset(config={"goal_size": 10**400}), ValueError, "goal_size"),
    "NaN size": (
        lambda env: env.reset(config={"goal_size": float("nan")}),
        ValueError,
        "goal_size",
    ),
    "infinite speed": (
        lambda env: env.reset(config={"goal_speed": float("inf")}),
        ValueError,
        "goal_speed",
    ),
    "text as size": (lambda env: env.reset(config={"goal_size": "5"}), ValueError, "goal_size"),
    "bool as size": (lambda env: env.reset(config={"goal_size": True}), ValueError, "goal_size"),
    "infinite half precision": (
        lambda env: env.reset(config={"goal_size": np.float16("inf")}),
        ValueError,
        "goal_size",
    ),
    "complex": (
        lambda env: env.step(np.ones((3, 4), complex)),
        ValueError,
        r"real numbers of shape \(3, 4\), not complex128",
    ),
    "complex in a list": (lambda env: env.step([1j] * 12), ValueError, "not complex128"),
    "dates": (lambda env: env.step(np.full(12, "2020", "M8[Y]")), ValueError, "not datetime64"),
    "durations": (lambda env: env.step(np.ones(12, "m8[s]")), ValueError, "not timedelta64"),
    "structured": (
        lambda env: env.step(np.zeros(12, [("torque", float)])),
        ValueError,
        "real numbers",
    ),
    "numeric strings": (lambda env: env.step(["0.5"] * 12), ValueError, "real numbers.*not <U3"),
    "numeric strings as objects": (
        lambda env: env.step(np.full(12, "1", object)),
        ValueError,
        "real numbers.*not object",
    ),
    "an integer beyond double precision": (
        lambda env: env.step([10**400] * 12),
        ValueError,
        "real numbers.*not object",
    ),
    "no mapping": (lambda env: env.reset(config=[("goal_size", 5.0)]), ValueError, "mapping"),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_a_bad_call_is_a_clear_error_and_moves_nothing(name):
    call, kind, message = BAD_CALLS[name]
    with ReacherEnvironment(3, seed=4) as env, ReacherEnvironment(3, seed=4) as twin:
        env.reset(), twin.reset()
        actions = random_actions(4, 3)
        assert_same(env.step(actions[0]), twin.step(actions[0]))
        with pytest.raises(kind, match=message):
            call(env)
        assert_same(env.step(actions[1]), twin.step(actions[1]))
        assert_same(env.reset(), twin.reset())  # neither the goals nor the parameters were touched
        assert_same(env.step(actions[2]), twin.step(actions[2]))


def test_step_before_reset_and_after_close_are_clear_errors():
    env = ReacherEnvironment(2)
    with pytest.raises(RuntimeError, match="reset"):
        env.step(np.zeros((2, 4)))
    env.reset()
    env.step(np.zeros((2, 4)))
    env.close()
    for call in (lambda: env.step(np.zeros((2, 4))), env.reset, env.close):
        with pytest.raises(RuntimeError, match="closed"):
            call()


def test_a_with_block_closes_the_environment_whatever_happens_in_it():
    with pytest.raises(ZeroDivisionError), ReacherEnvironment(2) as env:
        1 / 0
    with pytest.raises(RuntimeError, match="closed"):
        env.reset()
    with ReacherEnvironment(2) as env:
        env.close()  # closing it inside is no error at the block's end


@pytest.mark.parametrize("number", [0, 2001, -1])
def test_a_number_of_arms_out_of_range_is_an_error(number):
    with pytest.raises(ValueError, match=f"num_agents must be from 1 to 2000, not {number}"):
        ReacherEnvironment(num_agents=number)


def test_a_number_with_more_digits_than_python_writes_is_an_error():
    """Beyond 4,300 digits Python refuses to print an integer."""
    for name in ("num_agents", "seed"):
        with pytest.raises(ValueError, match=f"{name} must be from .* thousands of digits"):
            ReacherEnvironment(**{name: 10**5000})
    with ReacherEnvironment(1) as env, pytest.raises(ValueError, match="goal_size.*thousands"):
        env.reset(config={"goal_size": 10**5000})


def test_integers_and_truth_values_are_taken_as_actions():
    answers = []
    for one in (1.0, 1, True, np.int8(1), np.float16(1), np.longdouble(1)):
        with ReacherEnvironment(1) as env:
            env.reset()
            answers.append(env.step([one] * 4)[BRAIN].vector_observations)
    for answer in answers[1:]:
        np.testing.assert_array_equal(answer, answers[0])


@pytest.mark.parametrize("number", [2.5, 20.0, True, "20", None, [20]])
def test_a_number_of_arms_that_is_no_integer_is_an_error(number):
    with pytest.raises(TypeError, match="num_agents must be an integer"):
        ReacherEnvironment(num_agents=number)


@pytest.mark.parametrize(
    "seed, kind",
    [
        (-1, ValueError),
        (2**63, ValueError),
        (1.0, TypeError),
        ("0", TypeError),
        (None, TypeError),
        (False, TypeError),
    ],
)
def test_a_bad_seed_is_an_error(seed, kind):
    with pytest.raises(kind, match="seed must be"):
        ReacherEnvironment(1, seed=seed)


def test_the_smallest_and_the_largest_number_of_arms_work():
    for agents in (1, np.int64(2), 2000):
        with ReacherEnvironment(agents) as env:
            env.reset()
            for actions in random_actions(3, agents):
                info = env.step(actions)[BRAIN]
            assert info.vector_observations.shape == (agents, 33)
            assert np.isfinite(info.vector_observations).all()


# ----------------------------------------------------------------------- determinism, independence

EPISODES = """
import hashlib
import numpy as np
from reacher import ReacherEnvironment

digest = hashlib.sha256()
generator = np.random.default_rng(8)
with ReacherEnvironment(num_agents=5, seed=8) as env:
    info = env.reset()["ReacherBrain"]
    for _ in range(1200):  # over the end of an episode
        info = env.step(generator.uniform(-1, 1, (5, 4)))["ReacherBrain"]
        digest.update(info.vector_observations.tobytes() + np.array(info.rewards).tobytes())
print(digest.hexdigest())
"""


def test_the_same_seed_gives_the_same_numbers_in_this_and_in_a_fresh_process(capsys):
    for _ in range(2):
        exec(EPISODES, {})
    here = capsys.readouterr().out.split()
    fresh = subprocess.run(
        [sys.executable, "-c", EPISODES],
        cwd=PROJECT,
        text=True,
        capture_output=True,
        check=True,
        timeout=120,
    ).stdout.split()
    assert here == 2 * fresh and len(fresh[0]) == 2 * hashlib.sha256().digest_size


def test_another_seed_gives_other_goals():
    goals = []
    for seed in (0, 1):
        with ReacherEnvironment(20, seed=seed) as env:
            goals += [env.reset()[BRAIN].vector_observations[:, 26:29] for _ in range(2)]
    for i in range(4):
        for j in range(i):
            # A goal repeats with chance 1/360; two of 20 with chance 1.4e-3, five with 1e-9.
            assert (goals[i] == goals[j]).all(axis=1).sum() < 5


def test_an_arm_does_not_depend_on_the_number_of_arms():
    actions = random_actions(150, 200, seed=3)
    actions[::7] = np.sign(actions[::7])
    results = {}
    for agents in (200, 20, 3, 1):
        with ReacherEnvironment(agents, seed=6) as env:
            rows = [env.reset()[BRAIN].vector_observations]
            rewards = []
            for action in actions:
                info = env.step(action[:agents])[BRAIN]
                rows.append(info.vector_observations)
                rewards.append(info.rewards)
        results[agents] = np.array(rows), np.array(rewards)
    for agents in (20, 3, 1):
        np.testing.assert_array_equal(results[agents][0], results[200][0][:, :agents])
        np.testing.assert_array_equal(results[agents][1], results[200][1][:, :agents])


# ----------------------------------------------------------------------------------------- physics


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
    """Kinetic plus potential, every ten seconds: it always falls, in four minutes to a quarter."""
    agents = 10
    physics = Physics(agents)
    arms = Arms(physics)
    for _ in play(physics, 100, held_torques(agents, seed=3)):
        pass
    lowest = -GRAVITY * (4 + 10 + FOREARM_CENTER)
    above = []  # J above the arm at rest
    for _ in range(24):
        for _ in range(500):
            before = arms.mass_matrix(), arms.pose()[1]  # velocities are those before a move
            physics.step(np.zeros((2 * agents, 3)))
        mass, center = before
        velocity = physics.velocity.reshape(-1, 12)
        above.append(energy(mass, velocity) + GRAVITY * center[:, :, 1].sum(axis=1) - lowest)
    above = np.array(above)  # (24, arms)
    assert (above[0] > 10).all()  # they begin high: 20 J lift an arm by a metre
    assert (np.diff(above, axis=0) < 0).all() and (above[-1] > 0).all()
    assert (above[-1] < 0.25 * above[0]).all()


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
        np.testing.assert_allclose(
            physics.hand, center[:, 1] + (3 - FOREARM_CENTER) * turn[:, 1, :, 1], atol=1e-5
        )


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


# ---------------------------------------------------------------------------------------- fidelity


def warnings_counted(task):
    """How often MuJoCo warned of anything."""
    return sum(warning.number for warning in task.physics.data.warning)


def never_stopping(agents, generator):
    """Full torques, each held until a coin of 1 in 20 turns it."""
    signs = generator.choice([-1.0, 1.0], (agents, 4))
    while True:
        signs = np.where(generator.random((agents, 4)) < 0.05, -signs, signs)
        yield signs


def random_torques(agents, generator):
    while True:
        yield generator.standard_normal((agents, 4))


def largest_torques(agents, generator):
    """All at +1, and after that, arm by arm, the fifteen other corners."""
    signs = 1.0 - 2.0 * (np.arange(agents)[:, None] >> np.arange(4) & 1)
    while True:
        yield signs


@pytest.mark.parametrize("torques", [random_torques, largest_torques, never_stopping])
def test_two_million_arm_steps_stay_finite(torques):
    """500 arms, 1000 decisions of four steps, without a reset between them."""
    agents = 500
    task = Task(agents, seed=0)
    task.reset()
    source = torques(agents, np.random.default_rng(0))
    largest = np.zeros(33)
    for _ in range(1000):
        observations, rewards, _ = task.step(next(source))
        assert np.isfinite(observations).all() and np.isfinite(rewards).all()
        largest = np.maximum(largest, np.abs(observations).max(axis=0))
    assert warnings_counted(task) == 0
    # Joints cannot tear: the forearm's centre stays within 7.02 + 3 of the shoulder at 0.02.
    assert largest[13:16].max() <= 10.05


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
    generator = np.random.default_rng(0)
    with ReacherEnvironment(20, seed=0) as env:
        scores = np.array(
            [
                evaluate_policy(env, lambda _: generator.standard_normal((20, 4)).clip(-1, 1))
                for _ in range(20)
            ]
        )
    assert abs(scores.mean() - 0.127) <= 0.02
    assert 0.52 <= (scores == 0).mean() <= 0.72
