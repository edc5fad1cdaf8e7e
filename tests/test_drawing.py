"""The arms in three dimensions: geometry, touch, backends, and moving pictures."""

from __future__ import annotations

import io
import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from PIL import Image

from reacher import ReacherEnvironment, drawing
from reacher.drawing import backends, flat, points, style
from reacher.drawing.scene import ArmScene, Camera, outline
from reacher.episode import play_episode
from reacher.task import GOAL_ORBIT
from tutorial import moving
from tutorial.paths import PROJECT

BACKEND = backends.working_backend()
needs_opengl = pytest.mark.skipif(
    BACKEND is None, reason="no OpenGL backend works here: on Debian, apt-get install libosmesa6"
)
COLUMNS_OF_GREY = np.array([0.299, 0.587, 0.114])
# How colours look without red or without green receptors: Machado, Oliveira and Fernandes (2009),
# severity 1, on linear light.
NO_RED = np.array(
    [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ]
)
NO_GREEN = np.array(
    [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ]
)


def seen_without(matrix, colors):
    """Colours (..., 3), 0 to 255, as somebody without a kind of receptors sees them."""
    linear = (np.asarray(colors, float) / 255) ** 2.2
    return 255 * (linear @ matrix.T).clip(0, 1) ** (1 / 2.2)


def hanging(arms=1, seed=0):
    """The first observations of an episode."""
    return play_episode(lambda seen: np.zeros((arms, 4)), arms, seed, 1).observations[0].copy()


def swinging(arms=1, seed=0, decisions=12, **parameters):
    """The begin of an episode of constant torques, and what is seen after so many decisions."""
    torques = np.random.default_rng(seed).uniform(-1, 1, (arms, 4))
    return play_episode(lambda seen: torques, arms, seed, decisions + 1, **parameters)


def with_goal(observations, goal):
    moved = observations.copy()
    moved[..., 26:29] = goal
    return moved


def middle_of(mask):
    rows, columns = np.nonzero(mask)
    return np.array([columns.mean() + 0.5, rows.mean() + 0.5])


def is_blue(picture):
    red, _, blue = np.moveaxis(picture.astype(int), -1, 0)
    return blue - red > 50


def reddened(scene, observations):
    """Pixels that the goal makes redder; its shadow makes others darker."""
    away = with_goal(observations, [0.0, -60.0, 0.0])  # below the floor
    red, without = (scene.frame(each)[..., 0].astype(int) for each in (observations, away))
    return red - without > 4


def pixels_of(scene, observations, part):
    """Where the camera should have a part of each arm, (arms, 2)."""
    spot = points.arm_points(np.atleast_2d(observations))[part]
    return scene.camera.project(points.upright(spot) + scene.arm_positions)


# ---------------------------------------------------------------------------------------- geometry


@needs_opengl
def test_hand_and_goal_are_where_the_camera_projects_them():
    """Within a pixel and a half: a ball's outline is an ellipse, a little off its centre."""
    observations = with_goal(swinging().observations[-1], [7.0, 3.0, -4.0])
    hand = points.arm_points(observations)["hand"][0]
    assert np.hypot(*(hand - [7, 3, -4])[:2]) > 4  # apart in the picture, too
    with ArmScene(1) as scene:
        picture = scene.frame(observations[0])
        for mask, part in ((is_blue(picture), "hand"), (reddened(scene, observations), "goal")):
            assert mask.sum() > 100
            np.testing.assert_allclose(
                middle_of(mask), pixels_of(scene, observations, part)[0], atol=1.5
            )
        # x goes to the right, Unity's y up.
        right, up = (
            scene.camera.project(np.array([[0, 0, 0], [5.0, 0, 0]])),
            scene.camera.project(np.array([[0, 0, 0], [0, 0, 5.0]])),
        )
    assert right[1, 0] - right[0, 0] > 30 and up[0, 1] - up[1, 1] > 30


@needs_opengl
def test_each_of_many_arms_is_at_its_place():
    observations = with_goal(swinging(20).observations[-1], [0.0, -40.0, 0.0])  # out of the way
    with ArmScene(20, 900, 540) as scene:
        picture = scene.frame(observations)
        hands = pixels_of(scene, observations, "hand")
    for x, y in np.floor(hands).astype(int):
        assert is_blue(picture[y - 2 : y + 3, x - 2 : x + 3]).sum() >= 9, (x, y)
    assert len(np.unique(np.round(hands), axis=0)) == 20


@needs_opengl
@pytest.mark.parametrize("goal_size", [2.0, 5.0, 9.0])
def test_a_goal_has_its_own_size(goal_size):
    observations = with_goal(hanging(), [9.0, 6.0, 0.0])
    with ArmScene(1, goal_size=goal_size) as scene:
        mask = reddened(scene, observations)
        ends = scene.camera.project(np.array([[9, 0, 6], [9 + goal_size / 2, 0, 6]]))
    radius = ends[1, 0] - ends[0, 0]
    assert (mask.sum() / np.pi) ** 0.5 == pytest.approx(radius, abs=0.7)  # half covered pixels


@pytest.mark.parametrize(
    "arms, shape",
    [(1, (480, 480)), (2, (900, 300)), (7, (640, 480)), (20, (900, 540)), (45, (400, 800))],
)
@pytest.mark.parametrize("bottom", [0, 40])
def test_the_camera_frames_any_number_of_arms(arms, shape, bottom):
    camera = Camera(*shape)
    around = np.concatenate(
        [
            outline(place, style.WORKPLACE, 5.0)
            for place in points.arm_positions(arms, points.columns_for(arms), 5.0)
        ]
    )
    camera.frame(around, bottom)
    x, y = np.moveaxis(camera.project(around), -1, 0)
    assert x.min() >= 0 and x.max() <= shape[0] and y.min() >= 0 and y.max() <= shape[1] - bottom
    filled = max(np.ptp(x) / shape[0], np.ptp(y) / (shape[1] - bottom))
    assert 0.9 < filled <= 1  # and stands no farther away than it must


@pytest.mark.parametrize("goal_size", [2.0, 5.0, 10.0])
@pytest.mark.parametrize("arms, columns, shape", [(20, 5, (900, 540)), (6, 3, (900, 540))])
def test_goals_of_neighbours_never_overlap_in_the_picture(arms, columns, shape, goal_size):
    spots = points.arm_positions(arms, columns, goal_size)
    camera = Camera(*shape)
    camera.frame(np.concatenate([outline(place, style.WORKPLACE, goal_size) for place in spots]))
    angle = np.radians(np.arange(0, 360, 10))
    goals = spots[:, None] + np.stack(
        [GOAL_ORBIT * np.sin(angle), GOAL_ORBIT * np.cos(angle), np.full(len(angle), -1.0)], -1
    )
    pixel = camera.project(goals)
    depth = (goals - camera.target) @ camera.forward + camera.distance
    radius = camera.focal * goal_size / 2 / depth
    for one in range(arms):
        for other in range(one):
            apart = np.linalg.norm(pixel[one][:, None] - pixel[other][None], axis=-1)
            assert (apart > radius[one][:, None] + radius[other][None]).all(), (one, other)


# ------------------------------------------------------------------------------- touch and motion


def touch_and_not():
    """The same arm with its goal around the hand, and just too far away."""
    observations = swinging().observations[-1]
    hand = points.arm_points(observations)["hand"][0]
    return [with_goal(observations, hand + np.array([0, away, 0])) for away in (3.4, 3.6)]


@needs_opengl
def test_touch_shows_by_more_than_colour():
    touched, apart = touch_and_not()
    assert points.touching(touched, 5.0)[0] and not points.touching(apart, 5.0)[0]
    with ArmScene(1) as scene:
        pictures = [scene.frame(each[0]).astype(float) for each in (touched, apart)]
        center = pixels_of(scene, touched, "goal")[0]
        ends = scene.camera.project(np.array([[0, 0, 0], [style.RING_OUTSIDE * 2.5, 0, 0]]))
    x, y = np.floor(center).astype(int)
    goals = [picture[y - 12 : y + 1, x - 4 : x + 5].mean((0, 1)) for picture in pictures]
    for matrix in (np.eye(3), NO_RED, NO_GREEN):
        bright, dark = (seen_without(matrix, color) @ COLUMNS_OF_GREY for color in goals)
        assert bright - dark > 45
    ring = round(x + ends[1, 0] - ends[0, 0])  # outside the goal, at its right
    beside = [picture[y - 6 : y + 7, ring - 4 : ring + 5].max() for picture in pictures]
    assert beside[0] > 220 and beside[1] < 120


@pytest.mark.parametrize(
    "matrix", [np.eye(3), NO_RED, NO_GREEN], ids=["all colours", "no red", "no green"]
)
def test_flat_touch_shows_by_more_than_colour(matrix):
    """Greys of both goals were 14 of 255 apart, and there was no ring."""
    greys, rings = [], []
    for observations in touch_and_not():
        picture = flat.FlatArms(1, 480, 480).frame(observations[0])
        goal = observations[0, 26:29]
        x, y = (np.array([goal[0], -(goal[1] + 0.35 * goal[2])]) + flat.REACH) * 480 / 30
        disk = seen_without(matrix, picture) @ COLUMNS_OF_GREY
        across = np.hypot(*(np.mgrid[0:480, 0:480] + 0.5 - np.array([y, x])[:, None, None]))
        greys.append(np.median(disk[across < 30]))
        rings.append(np.median(disk[np.abs(across - 40) < 1]))
    assert greys[1] - greys[0] > 60  # darker where it is touched
    assert rings[1] - rings[0] > 100  # and with a dark edge


@needs_opengl
def test_frames_differ_over_time_and_repeat_exactly():
    episode = swinging(3, decisions=4)
    with ArmScene(3, 300, 200) as scene, ArmScene(3, 300, 200) as other:
        frames = [scene.frame(observations) for observations in episode.observations]
        again = [other.frame(observations) for observations in episode.observations]  # in turns
        first = scene.frame(episode.observations[0])
    assert all((one != next_).any() for one, next_ in zip(frames[:-1], frames[1:], strict=True))
    np.testing.assert_array_equal(frames, again)
    np.testing.assert_array_equal(frames[0], first)


@needs_opengl
def test_drawing_changes_no_number():
    drawn = gymnasium.make("reacher/Reacher-v0", render_mode="rgb_array")
    plain = gymnasium.make("reacher/Reacher-v0")
    generator = np.random.default_rng(0)
    np.testing.assert_array_equal(drawn.reset(seed=4)[0], plain.reset(seed=4)[0])
    for _ in range(10):
        picture = drawn.render()
        action = generator.uniform(-1, 1, 4).astype(np.float32)
        seen, expected = drawn.step(action)[0], plain.step(action)[0]
        np.testing.assert_array_equal(seen, expected)
    assert picture.shape == (480, 480, 3) and picture.dtype == np.uint8
    assert picture[0, 0].mean() < 60  # not the white page of the flat drawing
    drawn.close()


# ---------------------------------------------------------------------------------------- backends


def test_without_opengl_the_arms_are_flat_and_one_line_says_what_to_install(monkeypatch):
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr(backends, "works", lambda name: False)
    backends._warn.cache_clear()
    with pytest.warns(UserWarning, match="apt-get install libosmesa6") as told:
        picture = drawing.arms_picture(1, 480, 480)
        drawing.arms_picture(1, 480, 480)
    assert len(told) == 1 and "\n" not in str(told[0].message)
    assert isinstance(picture, flat.FlatArms)
    assert picture.frame(hanging()[0]).shape == (480, 480, 3)
    content = moving.moving_arms(list(swinging(4, decisions=3).observations), label="flat")
    assert Image.open(io.BytesIO(content)).n_frames == 4
    with pytest.raises(RuntimeError, match="no OpenGL backend works here.*libosmesa6"):
        ArmScene(1)


def test_mujoco_gl_is_respected(monkeypatch):
    for value, names in (("osmesa", ["osmesa"]), ("EGL ", ["egl"]), ("glx", ["glfw"]), ("off", [])):
        monkeypatch.setenv("MUJOCO_GL", value)
        assert backends.candidates() == names
    monkeypatch.setenv("MUJOCO_GL", "disable")
    assert backends.working_backend() is None
    monkeypatch.setenv("MUJOCO_GL", "")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.delenv("PYOPENGL_PLATFORM", raising=False)
    monkeypatch.setenv("DISPLAY", ":0")
    assert backends.candidates() == ["glfw", "egl", "osmesa"]
    monkeypatch.delenv("DISPLAY")
    assert backends.candidates() == ["egl", "osmesa"]
    monkeypatch.setenv("PYOPENGL_PLATFORM", "osmesa")  # PyOpenGL is bound to it
    assert backends.candidates() == ["osmesa"]


def test_a_backend_that_ends_its_process_ends_no_other(monkeypatch):
    monkeypatch.setattr(backends, "TRIAL", "import os; os.abort()")
    assert not backends.works.__wrapped__("osmesa")
    monkeypatch.setattr(backends, "TRIAL", "import time; time.sleep(60)")
    monkeypatch.setattr(backends, "LONGEST_TRIAL", 0.2)
    assert not backends.works.__wrapped__("osmesa")


BACKEND_PROGRAM = """
import sys; sys.path.insert(0, sys.argv[1])
import numpy as np
from reacher.drawing import backends
from reacher.drawing.scene import ArmScene
name, = backends.candidates()
if not backends.works(name):
    sys.exit(7)
with ArmScene(1, 64, 64) as scene:
    assert scene.backend == name
    assert len(np.unique(scene.frame(np.zeros(33)))) > 10
"""


@pytest.mark.parametrize("name", ["glfw", "egl", "osmesa", "cgl"])
def test_each_backend_that_is_there_draws(name):
    done = subprocess.run(
        [sys.executable, "-c", BACKEND_PROGRAM, str(PROJECT)],
        env=environment_with(MUJOCO_GL=name),
        capture_output=True,
        text=True,
    )
    if done.returncode == 7 or "invalid value for environment variable" in done.stderr:
        pytest.skip(f"{name} does not work here")
    assert done.returncode == 0, done.stderr


def environment_with(**more):
    import os

    return {name: value for name, value in os.environ.items() if name != "PYOPENGL_PLATFORM"} | more


MEMORY_PROGRAM = """
import sys; sys.path.insert(0, sys.argv[1])
import gc, resource
import numpy as np
from reacher.drawing.scene import ArmScene

def used():  # MB that the process holds now
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6

seen = np.zeros((1, 33), np.float32)
seen[:, 6] = seen[:, 19] = 1
def frames(count):
    with ArmScene(1, 16, 16) as scene:
        for k in range(count):
            seen[:, 26] = k % 7
            scene.frame(seen)
        return used()
frames(10), frames(10)
ten, thousand = frames(10), frames(1000)
for _ in range(12):
    frames(1)
print(ten, thousand, used())
"""


@needs_opengl
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_thousand_frames_take_no_more_memory_than_ten_and_closing_leaks_nothing():
    done = subprocess.run(
        [sys.executable, "-c", MEMORY_PROGRAM, str(PROJECT)],
        check=True,
        env=environment_with(),
        capture_output=True,
        text=True,
    )
    ten, thousand, reopened = map(float, done.stdout.split())
    assert thousand - ten < 5
    assert reopened - ten < 8  # of 12 scenes, each of some MB


@needs_opengl
def test_a_closed_scene_says_so_and_closes_again():
    scene = ArmScene(1, 64, 64)
    scene.close()
    scene.close()
    with pytest.raises(RuntimeError, match="closed scene"):
        scene.frame(hanging()[0])


# ------------------------------------------------------------------------------------------ errors


@needs_opengl
def test_only_arms_can_be_drawn():
    with ArmScene(2, 64, 64) as scene:
        for observations in (np.zeros((2, 3)), np.zeros((2, 2, 33)), np.zeros((3, 33))):
            with pytest.raises(ValueError, match=r"only arms can be drawn|2 arms, not 3"):
                scene.frame(observations)
    with pytest.raises(ValueError, match="only arms can be drawn.*Gymnasium"):
        moving.moving_arms([np.zeros((1, 3))])
    with pytest.raises(ValueError, match="needs a frame"):
        moving.moving_arms([])


@pytest.mark.parametrize(
    "options, message",
    [
        ({"width": 5}, "from 16 to 4096"),
        ({"height": 10_000}, "from 16 to 4096"),
    ],
)
def test_a_bad_size_is_a_clear_error(options, message):
    with pytest.raises(ValueError, match=message):
        ArmScene(1, **options)


@needs_opengl
def test_an_unknown_backend_is_a_clear_error():
    with pytest.raises(RuntimeError, match="backend vulkan does not work.*osmesa"):
        ArmScene(1, backend="vulkan")


@needs_opengl
@pytest.mark.parametrize("goal_size", [0.0, 0.01, 1e6])
def test_any_goal_size_can_be_drawn(goal_size):
    with ArmScene(2, 64, 64, goal_size=goal_size) as scene:
        assert scene.frame(hanging(2)).shape == (64, 64, 3)


# --------------------------------------------------------------------------------- moving pictures


def some_pictures(count=5, height=60, width=90):
    """A square that moves over a shaded page."""
    page = np.tile(np.linspace(20, 120, width).astype(np.uint8)[None, :, None], (height, 1, 3))
    pictures = [page.copy() for _ in range(count)]
    for k, picture in enumerate(pictures):
        picture[20:30, 10 * k + 5 : 10 * k + 15] = (250, 40, 40)
    return pictures


def test_an_animated_png_shows_each_picture():
    pictures = some_pictures()
    pictures.insert(3, pictures[2].copy())  # where nothing changes, too
    content = moving.animated_png(pictures, 80, corner=8)
    assert content == moving.animated_png(pictures, 80, corner=8)
    shown = Image.open(io.BytesIO(content))
    assert shown.n_frames == 6 and shown.info["loop"] == 0
    for k, picture in enumerate(pictures):
        shown.seek(k)
        assert shown.info["duration"] == 80
        frame = np.asarray(shown.convert("RGBA")).astype(int)
        inside = frame[8:-8, 8:-8]
        assert np.abs(inside[..., :3] - picture[8:-8, 8:-8]).max() <= 6  # 6 bits, and a palette
        assert (inside[..., 3] == 255).all()
        assert (frame[[0, 0, -1, -1], [0, -1, 0, -1], 3] == 0).all()  # rounded corners


def test_a_frame_holds_only_what_changed():
    still, moves = (
        moving.animated_png(pictures) for pictures in ([some_pictures()[0]] * 50, some_pictures(8))
    )
    one = moving.still_png(some_pictures()[0])
    assert len(still) < len(one) + 50 * 100
    assert len(moves) < 8 * len(one)


@needs_opengl
def test_moving_arms_begin_with_the_frame_that_is_asked_for_and_end_before_it():
    episode = swinging(2, decisions=5)
    content = moving.moving_arms(list(episode.observations), 80, width=200, first=2, label="two")
    assert content == moving.moving_arms(
        list(episode.observations), 80, width=200, first=2, label="two"
    )
    later = moving.moving_arms(list(episode.observations[2:3]), 80, width=200, label="two")
    one, all_ = (Image.open(io.BytesIO(each)) for each in (later, content))
    assert all_.n_frames == 6 and all_.size == one.size
    difference = np.abs(
        np.asarray(one.convert("RGB")).astype(int) - np.asarray(all_.convert("RGB")).astype(int)
    )
    assert np.mean(difference) < 2  # palettes differ


@needs_opengl
def test_a_gallery_has_a_row_for_each_recording():
    rows = [
        (f"{k} episodes", "score", list(swinging(3, seed, 2).observations))
        for k, seed in enumerate((1, 2))
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frames = moving.gallery(rows, "Title", width=500)
    assert len(frames) == 3
    assert frames[0].shape == (style.LABEL_HEIGHT + 2 * style.GALLERY_ROW, 500, 3)
    upper, lower = np.split(frames[1][style.LABEL_HEIGHT :, style.GALLERY_LABELS :], 2)
    assert (upper != lower).any() and is_blue(upper).any() and is_blue(lower).any()
    np.testing.assert_array_equal(
        frames[0][:, : style.GALLERY_LABELS], frames[2][:, : style.GALLERY_LABELS]
    )


def test_an_episode_is_that_of_the_environment():
    torques = np.random.default_rng(0).uniform(-1, 1, (3, 4))
    episode = play_episode(lambda seen: torques, 3, 5, goal_size=9.0)
    with ReacherEnvironment(3, seed=5) as env:
        answer = env.reset(config={"goal_size": 9.0})["ReacherBrain"]
        total = np.zeros(3)
        for seen in episode.observations:
            np.testing.assert_array_equal(answer.vector_observations, seen)
            answer = env.step(torques)["ReacherBrain"]
            total += answer.rewards
    np.testing.assert_allclose(episode.scores, total, atol=1e-6)
    assert episode.observations.shape == (1001, 3, 33)
