"""The goals of the Unity build, reset by reset, and the arms' own ones."""

from __future__ import annotations

import json

import numpy as np
import pytest

from reacher import ReacherEnvironment
from reacher.goals import UnityRandom

BRAIN = "ReacherBrain"

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


def first_states(env, resets=1):
    for _ in range(resets):
        states = env.reset()[BRAIN].vector_observations
    return states


@pytest.mark.parametrize(("seed", "draw", "angle", "speed"), PRINTED)
def test_unitys_goals_are_those_that_notebooks_print(seed, draw, angle, speed):
    with ReacherEnvironment(20, seed, goals="unity") as env:
        state = first_states(env, draw // 20 + 1)[draw % 20]
    assert abs(state[32] - speed) <= 5.1e-7  # half of the sixth digit, and single precision
    radians = np.radians(angle)
    # Unity rounds a goal's position at the arm's place in its world: by 2e-6 m in these states.
    np.testing.assert_allclose(
        state[26:29], [8 * np.sin(radians), -1, 8 * np.cos(radians)], atol=2e-6
    )


def test_the_first_state_is_printed_as_in_unity():
    """With the signs of its zeros, as in the course's own notebook."""
    with ReacherEnvironment(20, goals="unity") as env:
        text = str(first_states(env)[0, :26])
    expected = (
        [0, -4, 0, 1, -0.0, -0.0, -4.37113883e-08] + [0] * 6
        + [0, -10, 0, 1, -0.0, -0.0, -4.37113883e-08] + [0] * 6
    )  # fmt: skip
    assert text == str(np.array(expected, np.float32).astype(float))
    assert text.count("-0.00000000e+00") == 4


def test_the_arms_draw_again_when_they_reset_themselves():
    generator = UnityRandom(3)
    goals = [(generator.integers(360), generator.uniform(-1, 1)) for _ in range(9)]
    with ReacherEnvironment(3, seed=3, goals="unity") as env:
        states = [first_states(env)]
        for _ in range(1001):
            answer = env.step()[BRAIN]
        assert all(answer.local_done)
        states += [answer.vector_observations, first_states(env)]
    np.testing.assert_array_equal(
        np.concatenate(states)[:, 32], np.float32([speed for _, speed in goals])
    )


def test_unitys_speeds_follow_the_reset_parameter():
    with ReacherEnvironment(2, goals="unity") as env, ReacherEnvironment(2, goals="unity") as slow:
        np.testing.assert_array_equal(
            slow.reset(config={"goal_speed": 0.5})[BRAIN].vector_observations[:, 32],
            first_states(env)[:, 32] / 2,
        )


def test_a_state_goes_on_with_unitys_goals():
    with ReacherEnvironment(4, seed=5, goals="unity") as env:
        first_states(env, 3)
        state = json.loads(json.dumps(env.state()))
        expected = first_states(env)
    with ReacherEnvironment(4, seed=0, goals="unity") as env:
        env.restore(state)
        np.testing.assert_array_equal(first_states(env), expected)
        for damaged in ([1, 2, 3], {}, None):
            with pytest.raises(ValueError, match="no state of this environment"):
                env.restore({**state, "generators": [damaged]})
    with ReacherEnvironment(4) as env:
        with pytest.raises(ValueError, match=r"\(Unity goals\)'.*, not of .*'Reacher'"):
            env.restore(state)
        with pytest.raises(ValueError, match="no state of this environment"):
            env.restore({**env.state(), "generators": [[1, 2, 3, 4]] * 4})


def test_own_goals_are_those_of_version_1():
    """Pretrained agents depend on them: angles and speeds of two arms at their second reset."""
    found = {}
    for seed in (0, 1):
        with ReacherEnvironment(2, seed) as env:
            states = first_states(env, 2)
        angles = np.degrees(np.arctan2(states[:, 26], states[:, 28])).round() % 360
        found[seed] = [*angles.astype(int).tolist(), *states[:, 32].round(6).tolist()]
    assert found == {
        0: [229, 320, -0.918053, 0.601816],
        1: [184, 119, -0.711681, 0.015265],
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"goals": "Unity"}, "goals must be 'own' or 'unity', not 'Unity'"),
        ({"goals": None}, "goals must be 'own' or 'unity', not None"),
        ({"goals": "unity", "seed": 2**31}, "seed of Unity's goals must be from 0 to 2147483647"),
    ],
)
def test_other_goals_and_seeds_are_errors(options, message):
    with pytest.raises(ValueError, match=message):
        ReacherEnvironment(2, **options)
