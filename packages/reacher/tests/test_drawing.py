"""Pictures of the arms: what is where, touch, and OpenGL."""

import os
import subprocess
import sys

import numpy as np
import pytest

from reacher import ReacherEnv
from reacher.columns import GOAL
from reacher.episode import play_episode
from reacher.points import arm_points, touching
from reacher.render import ArmRenderer

LUMINANCE = np.array([0.299, 0.587, 0.114])

try:
    ArmRenderer(1, 5.0, 64, 64).close()
    OPENGL = True
except RuntimeError:
    OPENGL = False
needs_opengl = pytest.mark.skipif(not OPENGL, reason="no OpenGL: apt-get install libosmesa6")


def swinging(arms, decisions=12):
    """Observations (decisions, arms, 33) of constant torques."""
    torques = np.random.default_rng(0).uniform(-1, 1, (arms, 4))
    return play_episode(lambda seen: torques, arms, 0, decisions).observations


def with_goals(observations, goals):
    moved = observations.copy()
    moved[..., GOAL] = goals
    return moved


def test_distance_and_touch_follow_from_the_points():
    observations = swinging(3)[-1]
    hand = arm_points(observations)["hand"]
    observations = with_goals(observations, hand + [0, 3.4, 0])
    assert touching(observations, 5.0).all() and not touching(observations, 4.7).any()


@needs_opengl
@pytest.mark.parametrize(
    ("arms", "shape", "goal_size"),
    [(1, (480, 480), 12.0), (5, (720, 144), 2.0), (20, (900, 540), 2.0)],
)
def test_every_arm_is_in_the_picture_and_the_goals_are_apart(arms, shape, goal_size):
    """All goals are below the floor, but one beside its arm: what gets redder is that goal."""
    observations = with_goals(swinging(arms)[-1], [0.0, -60.0, 0.0])
    renderer = ArmRenderer(arms, goal_size, *shape)
    without, seen = renderer.frame(observations).astype(int), []
    for arm in {0, 1, arms // 2, arms - 2, arms - 1} & set(range(arms)):
        one = observations.copy()
        one[arm, GOAL] = [8.0, -1.0, 0.0]
        red = renderer.frame(one)[..., 0] - without[..., 0] > 20  # shadows are darker
        assert red.sum() > 5
        assert not red[0].any() and not red[-1].any()  # nor is it cut by the edges
        assert not red[:, 0].any() and not red[:, -1].any()
        assert not any((red & other).any() for other in seen)
        seen.append(red)
    blue = without[..., 2] - without[..., 0] > 60
    assert blue.sum() > 5 * arms  # the hands


@needs_opengl
def test_a_touched_goal_is_brighter_and_wears_a_white_ring():
    observations = swinging(1)[-1]
    hand = arm_points(observations)["hand"]
    places = (with_goals(observations, hand + [0, up, 0]) for up in (3.4, 3.6))
    touched, apart = (ArmRenderer(1, 5.0, 480, 480).frame(place).astype(int) for place in places)
    pink = apart[..., 0] - apart[..., 1] > 20
    assert pink.sum() > 500
    assert (touched[pink] @ LUMINANCE).mean() - (apart[pink] @ LUMINANCE).mean() > 45
    white = [(picture.min(axis=-1) > 235).sum() for picture in (touched, apart)]
    assert white[0] > 50 + white[1]


@needs_opengl
def test_frames_repeat_and_drawing_changes_no_number():
    drawn_env, plain = ReacherEnv(render_mode="rgb_array"), ReacherEnv()
    np.testing.assert_array_equal(drawn_env.reset(seed=4)[0], plain.reset(seed=4)[0])
    for action in np.random.default_rng(0).uniform(-1, 1, (5, 4)):
        picture = drawn_env.render()
        again = drawn_env.render()  # the software renderer rounds single pixels otherwise
        np.testing.assert_allclose(again, picture.astype(int), atol=2)
        np.testing.assert_array_equal(drawn_env.step(action)[0], plain.step(action)[0])
        assert (drawn_env.render() != picture).any()
    assert picture.shape == (480, 480, 3) and picture.dtype == np.uint8
    assert plain.render() is None
    drawn_env.close()


def test_without_opengl_an_error_names_mujoco_gl(monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "disable")
    with pytest.raises(RuntimeError, match="Set MUJOCO_GL.*libosmesa6"):
        ArmRenderer(1)


@pytest.mark.skipif(sys.platform != "linux", reason="MuJoCo reads MUJOCO_GL otherwise elsewhere")
@pytest.mark.parametrize("library", ["no_such_library", "osmesa"])
def test_arms_that_nobody_draws_need_no_opengl(library):
    """Not even if MUJOCO_GL names a library that is missing, for PyOpenGL as well."""
    play = """import ctypes
load = ctypes.CDLL.__init__
def refuse(library, name, *others, **options):
    if "OSMesa" in str(name):
        raise OSError(f"{name}: cannot open shared object file")
    load(library, name, *others, **options)
ctypes.CDLL.__init__ = refuse
from reacher.episode import play_episode
play_episode(lambda s: 0 * s[:, :4], 1, 0, 2)"""
    environment = os.environ | {"MUJOCO_GL": library}
    subprocess.run([sys.executable, "-c", play], env=environment, check=True)
