"""The arms in one simulation, and as Gymnasium makes them."""

import warnings

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

from reacher import ReacherVectorEnv
from reacher.columns import GOAL, GOAL_SPEED, HAND
from reacher.physics import HAND_OFFSET, Physics

DECISIONS = 1001  # of an episode
ENV_ID = "reacher/Reacher-v0"

# Unity's half turn about x in single precision, as every public notebook prints it.
HALF_TURN_W = float(np.float32(-4.37113883e-08))
HANGING = [0, -4, 0, 1, 0, 0, HALF_TURN_W, *[0] * 6, 0, -10, 0, 1, 0, 0, HALF_TURN_W, *[0] * 6]


def random_actions(decisions, agents, seed=0):
    """Clipped standard normal torques, (decisions, agents, 4)."""
    return np.random.default_rng(seed).standard_normal((decisions, agents, 4)).clip(-1, 1)


def assert_same(answer, expected):
    """Two answers of environments agree in every number and type, bit for bit."""
    for one, other in zip(answer, expected, strict=True):
        assert type(one) is type(other) and getattr(one, "dtype", 0) == getattr(other, "dtype", 0)
        np.testing.assert_array_equal(one, other)


def test_arms_hang_and_goals_start_on_whole_degrees_of_a_circle():
    observations, _ = ReacherVectorEnv(1000, seed=0).reset()
    np.testing.assert_array_equal(observations[:, :26], np.tile(HANGING, (1000, 1)))
    np.testing.assert_array_equal(observations[:, HAND], np.tile([0, 1, 0], (1000, 1)))
    goal, speed = observations[:, GOAL], observations[:, GOAL_SPEED]
    degrees = np.degrees(np.arctan2(goal[:, 0], goal[:, 2]))
    # float32 holds a coordinate of 8 m to 5e-7 m, so an angle to 5e-6 degrees.
    np.testing.assert_allclose(degrees, degrees.round(), atol=1e-5)
    np.testing.assert_allclose(np.hypot(goal[:, 0], goal[:, 2]), 8, atol=1e-5)
    assert (goal[:, 1] == -1).all() and np.abs(speed).max() <= 1
    # 1000 uniform draws: each quarter holds 250 +- 13.7 of them; five standard deviations.
    for draws, limits in ((degrees % 360, (0, 360)), (speed, (-1, 1))):
        assert np.abs(np.histogram(draws, bins=4, range=limits)[0] - 250).max() < 69


def test_an_episode_has_1001_decisions_and_the_next_one_follows_by_itself():
    arms, options = 3, {"goal_size": 1000.0}  # every physics step pays, the very last one as well
    env, twin = ReacherVectorEnv(arms, seed=5), ReacherVectorEnv(arms, seed=5)
    env.reset(options=options)
    for decision in range(1, DECISIONS + 1):
        answer = env.step(np.full((arms, 4), 0.3))
        observations, rewards, terminated, truncated, infos = answer
        assert truncated.tolist() == [decision == DECISIONS] * arms and not terminated.any()
        assert rewards.tolist() == [np.float32(0.04)] * arms and infos == {}
    np.testing.assert_array_equal(observations[:, :26], np.tile(HANGING, (arms, 1)))

    # The second episode is the one that an explicit reset would have begun.
    twin.reset(options=options)
    np.testing.assert_array_equal(observations, twin.reset()[0])
    for actions in random_actions(3, arms):
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
    env = ReacherVectorEnv(agents, seed=2)
    first, _ = env.reset(options={"goal_size": size})
    angle = np.degrees(np.arctan2(first[:, 26], first[:, 28])).round()
    speed = first[:, GOAL_SPEED]
    torques = np.zeros((2 * agents, 3))
    total = np.zeros(agents)
    for action in actions:
        _, rewards, *_ = env.step(action)
        # Actions pass through single precision, and chaos would show any other rounding.
        torques[:, [0, 2]] = 150.0 * action.astype(np.float32).astype(float).reshape(-1, 2)
        least, most = np.zeros(agents), np.zeros(agents)
        for _ in range(4):
            angle = angle + speed
            x, z = 8 * np.sin(np.radians(angle)), 8 * np.cos(np.radians(angle))
            goal = np.stack([x, np.full(agents, -1.0), z], axis=1)
            hand = physics.position[1::2] + HAND_OFFSET * physics.rotation[1::2, :, 1]
            distance = np.linalg.norm(hand - goal, axis=1)
            # The observed speed is float32: 1200 steps may misplace a goal by 1e-5 m.
            least += 0.01 * (distance <= size / 2 + 1 - 1e-4)
            most += 0.01 * (distance <= size / 2 + 1 + 1e-4)
            physics.step(torques)
        assert (rewards >= least - 1e-6).all() and (rewards <= most + 1e-6).all()
        total += rewards
    assert (total > 0).all() and (total < 0.04 * len(actions)).all()  # else nothing was tested


@pytest.mark.parametrize("size, pay", [(0, 0.0), (1000, 0.04)])
def test_goals_are_set_and_stay(size, pay):
    """A goal of size 0 is still a point that the hand could touch, but not while it hangs."""
    options, still = {"goal_size": size, "goal_speed": 0}, np.zeros((4, 4))
    env, twin = ReacherVectorEnv(4, seed=0), ReacherVectorEnv(4, seed=0, **options)
    first, _ = env.reset(options=options)
    np.testing.assert_array_equal(first, twin.reset()[0])
    for _ in range(2):  # and they stay after a reset without options, as in Unity
        for _ in range(5):
            seen, rewards, *_ = env.step(still)
            assert rewards.tolist() == [np.float32(pay)] * 4
        np.testing.assert_array_equal(seen[:, GOAL], first[:, GOAL])
        first, _ = env.reset()


# Seed, number of the draw, angle in degrees and speed: the six different first states that public
# notebooks of the Unity build print. Draw 20 is the first arm's at the second reset of 20 arms.
PRINTED = [
    (0, 0, 46, -0.168165),
    (0, 1, 232, -0.533014),
    (0, 20, 81, -0.522214),
    (0, 300, 49, -0.179076),
    (0, 6440, 33, -0.802231),
    (1, 0, 274, -0.548526),
]


@pytest.mark.parametrize(("seed", "draw", "angle", "speed"), PRINTED)
def test_unitys_goals_are_those_that_notebooks_print(seed, draw, angle, speed):
    env = ReacherVectorEnv(20, seed, goals="unity")
    state = [env.reset()[0] for _ in range(draw // 20 + 1)][-1][draw % 20]
    assert abs(state[GOAL_SPEED] - speed) <= 5.1e-7  # half of the sixth digit, single precision
    radians = np.radians(angle)
    # Unity rounds a goal's position at the arm's place in its world: by 2e-6 m in these states.
    goal = [8 * np.sin(radians), -1, 8 * np.cos(radians)]
    np.testing.assert_allclose(state[GOAL], goal, atol=2e-6)


def test_all_forms_of_actions_mean_the_same_and_large_ones_are_cut():
    actions = random_actions(1, 3)[0]
    actions[0] = 1
    forms = [actions, actions.ravel(), actions.astype(np.float32), actions.tolist()]
    forms += [torch.from_numpy(actions), np.where(actions == 1, 7, actions)]
    answers = []
    for form in forms:
        env = ReacherVectorEnv(3, seed=1)
        env.reset()
        answers.append([env.step(form) for _ in range(3)][-1][0])
    for answer in answers[1:]:
        np.testing.assert_array_equal(answer, answers[0])
    assert np.abs(answers[0][:, :26] - HANGING).max() > 0.1  # they moved at all


def test_answers_are_not_overwritten_by_later_steps():
    actions, env = random_actions(2, 2), ReacherVectorEnv(2)
    env.reset()
    answer = env.step(actions[0])
    kept = [np.copy(part) for part in answer[:4]]
    env.step(actions[1])
    for part, before in zip(answer, kept, strict=False):
        np.testing.assert_array_equal(part, before)
    answer[0][:] = np.nan  # nor does writing into one reach the environment
    assert np.isfinite(env.step(actions[1])[0]).all()


BAD_CALLS = {
    "transposed": (lambda env: env.step(np.zeros((4, 3))), r"\(3, 4\)"),
    "ragged": (lambda env: env.step([[0.0] * 4, [0.0] * 3, [0.0] * 4]), "real numbers"),
    "NaN": (lambda env: env.step([0.0] * 6 + [np.nan] + [0.0] * 5), "action 2 of agent 1"),
    "gradient": (lambda env: env.step(torch.ones(12, requires_grad=True)), "requires grad"),
    "unknown key": (lambda env: env.reset(options={"goal_sise": 4.0}), "goal_sise.*known are"),
    "NaN size": (
        lambda env: env.reset(options={"goal_speed": 2.0, "goal_size": float("nan")}),
        "goal_size must be a number from 0 to",
    ),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_a_bad_call_is_a_clear_error_and_moves_nothing(name):
    call, message = BAD_CALLS[name]
    env, twin = ReacherVectorEnv(3, seed=4), ReacherVectorEnv(3, seed=4)
    with pytest.raises(ResetNeeded, match="call reset"):
        env.step(np.zeros((3, 4)))
    env.reset(), twin.reset()
    with pytest.raises(ValueError, match=message):
        call(env)
    actions = random_actions(2, 3)
    assert_same(env.step(actions[0]), twin.step(actions[0]))
    assert_same(env.reset(), twin.reset())  # neither the goals nor the parameters were touched
    assert_same(env.step(actions[1]), twin.step(actions[1]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_envs": 2001}, "num_envs must be from 1 to 2000, not 2001"),
        ({"seed": -1}, "seed must be from 0"),
        ({"seed": 2**31, "goals": "unity"}, "seed of Unity's goals must be from 0"),
    ],
)
def test_a_bad_argument_is_a_clear_error(options, message):
    with pytest.raises(ValueError, match=message):
        ReacherVectorEnv(**{"num_envs": 2, **options})


def test_gymnasiums_checker_finds_nothing_but_infinite_bounds():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*infinity")  # as with its own Reacher
        check_env(gymnasium.make(ENV_ID, goal_speed=9).unwrapped, skip_render_check=True)


def test_an_arm_is_that_of_the_simulation_of_many_bit_for_bit():
    env, twin = gymnasium.make(ENV_ID), ReacherVectorEnv(1, seed=5)
    expected, _ = twin.reset()  # which begins the next episode by itself
    for seed in (5, None):
        observation, _ = env.reset(seed=seed)
        for (action,) in random_actions(DECISIONS, 1).astype(np.float32):
            np.testing.assert_array_equal(observation, expected[0])
            observation, reward, terminated, truncated, _ = env.step(action)
            expected, rewards, _, ends, _ = twin.step(action)
            assert (reward, truncated, terminated) == (rewards[0], ends[0], False)
        assert truncated and observation[1] > -4  # the true last observation, not a first one


def test_make_vec_gives_the_simulation_of_many():
    """By seeds, with the spec's arguments, and with a picture of each arm."""
    envs, twin = gymnasium.make_vec(ENV_ID, num_envs=3, goal_size=2.0), ReacherVectorEnv(3)
    assert type(envs.unwrapped) is ReacherVectorEnv and envs.spec.reward_threshold == 30
    assert envs.metadata["autoreset_mode"] is gymnasium.vector.AutoresetMode.SAME_STEP
    for seed in (7, 8):
        (first, _), (expected, _) = envs.reset(seed=seed), twin.reset(seed=seed)
        np.testing.assert_array_equal(first, expected)
        assert envs.observation_space.contains(first)
    assert envs.unwrapped._task.parameters == {"goal_size": 2.0, "goal_speed": 1.0}
    short = gymnasium.make_vec(ENV_ID, num_envs=2, max_episode_steps=3)
    short.reset(seed=0)
    ends = [short.step(short.action_space.sample())[3].all() for _ in range(6)]
    assert ends == [False, False, True] * 2


def test_seeds():
    env, other, third = (gymnasium.make(ENV_ID) for _ in range(3))
    resets = (env, None), (env, 4), (env, None), (other, None), (third, 5)
    seen = [one.reset(seed=seed)[0] for one, seed in resets]
    np.testing.assert_array_equal(third.reset(seed=4)[0], seen[1])
    assert len(np.unique(seen, axis=0)) == 5
