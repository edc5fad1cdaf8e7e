"""The Reacher for Gymnasium, and Gymnasium's environments with the interface of Unity's."""

from __future__ import annotations

import json
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

from answers import assert_same
from lines import Line
from reacher import DelayedRewards, ReacherEnvironment
from reacher.gymnasium.unity_wrapper import UnityWrapper

ENV_ID = "reacher/Reacher-v0"
BRAIN, PENDULUM = "ReacherBrain", "PendulumBrain"
DECISIONS = 1001  # of an episode


def make(**options):
    return gymnasium.make(ENV_ID, **options)


def random_actions(decisions, arms, seed=0):
    """Uniform torques, (decisions, arms, 4) float32."""
    return np.random.default_rng(seed).uniform(-1, 1, (decisions, arms, 4)).astype(np.float32)


# --------------------------------------------------------------------------- the arms in Gymnasium


def test_gymnasiums_checker_finds_nothing_but_infinite_bounds():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*infinity")  # as with its own Reacher
        check_env(make(goal_speed=9).unwrapped, skip_render_check=True)


def test_an_arm_is_that_of_the_unity_shaped_environment_bit_for_bit():
    env = make()
    with ReacherEnvironment(1, seed=5) as twin:
        for seed in (5, None):  # two episodes
            answer = twin.reset()[BRAIN]
            observation, _ = env.reset(seed=seed)
            for (action,) in random_actions(DECISIONS, 1):
                np.testing.assert_array_equal(observation, answer.vector_observations[0])
                observation, reward, terminated, truncated, _ = env.step(action)
                answer = twin.step(action)[BRAIN]
                assert reward == answer.rewards[0] and truncated == answer.local_done[0]
                assert not terminated
            assert truncated and observation[1] > -4  # the true last observation, not a first one
            twin.restore({**twin.state(), "episodes": 1})  # it has begun the next one by itself


def test_seeds():
    env, first = make(), make().reset(seed=4)[0]
    by_chance = env.reset()[0]
    np.testing.assert_array_equal(env.reset(seed=4)[0], first)
    goes_on = env.reset()[0]
    others = (by_chance, goes_on, make().reset(seed=5)[0], make().reset()[0])
    assert len(np.unique([first, *others], axis=0)) == 5


def test_variants_are_the_task_with_other_goals():
    for name, options in (("SmallGoals", {"goal_size": 2.0}), ("QuickGoals", {"goal_speed": 2.0})):
        variant, expected = gymnasium.make(f"reacher/Reacher{name}-v0"), make(**options)
        np.testing.assert_array_equal(variant.reset(seed=3)[0], expected.reset(seed=3)[0])
        for (action,) in random_actions(100, 1):
            for one, other in zip(variant.step(action), expected.step(action), strict=True):
                np.testing.assert_array_equal(one, other)


BAD = {
    "NaN": (lambda env: env.step([0, 0, np.nan, 0]), ValueError, "action 2 of agent 0"),
    "no reset": (lambda env: make().unwrapped.step(np.zeros(4)), ResetNeeded, "call reset"),
    "mode": (lambda env: make(render_mode="ansi"), ValueError, "None or 'rgb_array'"),
    "size": (lambda env: make(goal_size=-1.0), ValueError, "goal_size must be a number"),
    "name": (lambda env: make(goal_sise=1.0), ValueError, "goal_sise"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_a_clear_error_and_moves_nothing(name):
    call, kind, message = BAD[name]
    env, twin = make().unwrapped, make().unwrapped
    env.reset(seed=2), twin.reset(seed=2)
    with warnings.catch_warnings(), pytest.raises(kind, match=message):
        warnings.simplefilter("ignore")  # of Gymnasium, on an unknown render_mode
        call(env)
    np.testing.assert_array_equal(env.step(np.ones(4))[0], twin.step(np.ones(4))[0])
    np.testing.assert_array_equal(env.reset()[0], twin.reset()[0])


# ------------------------------------------------------------ Gymnasium's with Unity's interface


def answers(env, steps, seed=0):
    """The answer to a reset, and those to random actions."""
    (brain,) = env.brain_names
    shape = (steps, env.num_agents, env.brains[brain].vector_action_space_size)
    actions = np.random.default_rng(seed).uniform(-1.2, 1.2, shape)
    return [env.reset()[brain], *(env.step(action)[brain] for action in actions)]


def test_numbers_are_those_of_gymnasium():
    with UnityWrapper("Pendulum-v1", num_agents=2, seed=3) as env:
        assert (env.reward_threshold, env.max_episode_steps) == (None, 200)
        np.testing.assert_array_equal(env.observation_scale, [1, 1, 8])
        assert env.brains[PENDULUM].vector_observation_space_size == 3
        first = env.reset()[PENDULUM]
        twins = [gymnasium.make("Pendulum-v1") for _ in range(2)]
        for twin, (x, y, speed) in zip(twins, first.vector_observations, strict=True):
            twin.reset()
            twin.unwrapped.state = np.array([np.arctan2(y, x), speed])
        for action in np.random.default_rng(0).uniform(-1, 1, (199, 2, 1)).astype(np.float32):
            answer = env.step(action)[PENDULUM]
            steps = [twin.step(2 * one) for twin, one in zip(twins, action, strict=True)]
            expected = [step[0] for step in steps]  # its angle went through float32
            np.testing.assert_allclose(answer.vector_observations, expected, atol=1e-2)
            assert answer.local_done == [False] * 2
        assert env.step([0, 0])[PENDULUM].max_reached == [True] * 2


def test_copies_differ_and_do_not_depend_on_their_number():
    def observations(num_agents, seed):
        with UnityWrapper("Pendulum-v1", num_agents, seed) as env:
            return np.stack([env.reset()[PENDULUM].vector_observations for _ in range(2)])

    first = observations(3, 4)
    np.testing.assert_array_equal(observations(5, 4)[:, :3], first)
    assert len(np.unique(np.concatenate([*first, *observations(3, 5)]), axis=0)) == 12


def test_a_restored_environment_goes_on_bit_for_bit():
    with UnityWrapper("Pendulum-v1", 2, seed=3) as env, UnityWrapper("Pendulum-v1", 2) as other:
        answers(env, 250)
        other.restore(json.loads(json.dumps(env.state())))
        for one, two in zip(answers(other, 250), answers(env, 250), strict=True):
            assert_same({PENDULUM: one}, {PENDULUM: two})
        with pytest.raises(ValueError, match="this is a state of"):
            env.restore(ReacherEnvironment(2).state())
        with pytest.raises(ValueError, match="no reset parameters, not even"):
            env.reset(config={"goal_size": 5.0})


def test_rewards_of_any_environment_can_be_delayed(register):
    with UnityWrapper(register()) as env:
        rewards = [answer.rewards[0] for answer in answers(DelayedRewards(env, 2), 7)]
        with pytest.raises(ValueError, match="every must be from 1"):
            DelayedRewards(env, every=0)
    assert rewards == [0, 0, 0.5 + 1, 0, 1.5 + 2, 2.5, 0, 0.5 + 1]


def test_actions_are_cut_and_scaled_to_the_bounds(register):
    low, high = np.float32([[-2, 0, 1e-3]]), np.float32([[2, 10, 7]])
    space = gymnasium.spaces.Box(low, high)
    with UnityWrapper(register(action_space=space, end=99)) as env:
        env.reset()
        for action in ([-1, -1, -1], [1, 1, 1], [0, 0, 0], [0.5, -0.5, -3], [1e9, -1e9, 1.001]):
            env.step([action])
    expected = [low, high, [[0, 5, 3.5005]], [[1, 2.5, 1e-3]], [[2, 0, 7]]]
    for action, wanted in zip(Line.made[0].actions, expected, strict=True):
        assert action in space
        np.testing.assert_allclose(action, wanted, rtol=1e-6)


@pytest.mark.parametrize("how", ["terminated", "truncated", "terminated and truncated"])
def test_the_last_answer_holds_the_last_reward_and_the_next_first_observation(how, register):
    with UnityWrapper(register(end=3, how=how), num_agents=2) as env:
        _, *steps = answers(env, 4)
    assert [answer.local_done[0] for answer in steps] == [False, False, True, False]
    assert [answer.max_reached[1] for answer in steps] == [False, False, how == "truncated", False]
    assert [answer.rewards for answer in steps] == [[0.5] * 2, [1.0] * 2, [1.5] * 2, [0.5] * 2]
    assert [answer.vector_observations[0, 1] for answer in steps] == [1, 2, 0, 1]
    assert not steps[2].previous_vector_actions.any() and steps[3].previous_vector_actions.all()


def test_copies_that_end_one_by_one_are_a_clear_error(register):
    with UnityWrapper(register(end=-1), num_agents=3) as env:
        with pytest.raises(RuntimeError, match="(?s)1 of 3 copies.*num_agents = 1"):
            answers(env, 1)
        with pytest.raises(RuntimeError, match="call reset"):
            env.step(np.zeros(3))


@pytest.mark.parametrize(
    ("spaces", "message"),
    [
        ({"action_space": gymnasium.spaces.Discrete(2)}, r"Discrete\(2\); only continuous actions"),
        ({"action_space": gymnasium.spaces.Box(-np.inf, 1, (1,))}, "with finite bounds"),
        ({"observation_space": gymnasium.spaces.Box(0, 1, (4, 4))}, "a Box of one axis"),
    ],
)
def test_an_unknown_environment_or_spaces_that_do_not_fit_are_named(register, spaces, message):
    with pytest.raises(ValueError, match=message):
        UnityWrapper(register(**spaces))
    with pytest.raises(ValueError, match="such as 'Pendulum-v1', not"):
        UnityWrapper("Pendulum-v7")
