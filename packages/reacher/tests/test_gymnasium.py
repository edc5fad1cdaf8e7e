"""The arms as Gymnasium makes them."""

import warnings

import gymnasium
import numpy as np
from gymnasium.utils.env_checker import check_env

from reacher import ReacherVectorEnv

ENV_ID = "reacher/Reacher-v0"
DECISIONS = 1001  # of an episode


def make(**options):
    return gymnasium.make(ENV_ID, **options)


def random_actions(decisions, arms, seed=0):
    """Uniform torques, (decisions, arms, 4) float32."""
    return np.random.default_rng(seed).uniform(-1, 1, (decisions, arms, 4)).astype(np.float32)


def test_gymnasiums_checker_finds_nothing_but_infinite_bounds():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*infinity")  # as with its own Reacher
        check_env(make(goal_speed=9).unwrapped, skip_render_check=True)


def test_an_arm_is_that_of_the_simulation_of_many_bit_for_bit():
    env, twin = make(), ReacherVectorEnv(1, seed=5)
    for seed in (5, None):  # two episodes
        (expected, _), (observation, _) = twin.reset(), env.reset(seed=seed)
        for (action,) in random_actions(DECISIONS, 1):
            np.testing.assert_array_equal(observation, expected[0])
            observation, reward, terminated, truncated, _ = env.step(action)
            expected, rewards, _, ends, _ = twin.step(action)
            assert (reward, truncated, terminated) == (rewards[0], ends[0], False)
        assert truncated and observation[1] > -4  # the true last observation, not a first one
        twin.restore({**twin.state(), "episodes": 1})  # it has begun the next one by itself


def test_make_vec_gives_the_simulation_of_many():
    """By seeds, with the spec's arguments, and with a picture of each arm."""
    envs, twin = gymnasium.make_vec(ENV_ID, num_envs=3, goal_size=2.0), ReacherVectorEnv(3)
    assert type(envs.unwrapped) is ReacherVectorEnv and envs.spec.reward_threshold == 30
    assert envs.metadata["autoreset_mode"] is gymnasium.vector.AutoresetMode.SAME_STEP
    for seed in (7, 8):
        (first, _), (expected, _) = envs.reset(seed=seed), twin.reset(seed=seed)
        np.testing.assert_array_equal(first, expected)
        assert envs.observation_space.contains(first)
    assert envs.unwrapped.state()["parameters"] == {"goal_size": 2.0, "goal_speed": 1.0}
    short = gymnasium.make_vec(ENV_ID, num_envs=2, max_episode_steps=3)
    short.reset(seed=0)
    ends = [short.step(short.action_space.sample())[3].all() for _ in range(6)]
    assert ends == [False, False, True] * 2


def test_seeds():
    env, first = make(), make().reset(seed=4)[0]
    by_chance = env.reset()[0]
    np.testing.assert_array_equal(env.reset(seed=4)[0], first)
    goes_on = env.reset()[0]
    others = (by_chance, goes_on, make().reset(seed=5)[0], make().reset()[0])
    assert len(np.unique([first, *others], axis=0)) == 5
