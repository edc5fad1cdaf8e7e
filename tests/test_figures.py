"""Pictures and plots of the notebook."""

from __future__ import annotations

import io

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

from reacher import ReacherEnvironment
from tutorial import figures
from tutorial.scores import first_at, moving_average, solved_at

BRAIN = "ReacherBrain"


def observed(agents=12, decisions=30, seed=0):
    """An environment in motion, and its observations after each decision."""
    env = ReacherEnvironment(agents, seed=seed)
    generator = np.random.default_rng(seed)
    frames = [env.reset()[BRAIN].vector_observations]
    for _ in range(decisions):
        actions = generator.uniform(-1, 1, (agents, 4))
        frames.append(env.step(actions)[BRAIN].vector_observations)
    return env, frames


def test_recorded_frames_are_every_second_observation():
    with ReacherEnvironment(2, seed=0) as env, ReacherEnvironment(2, seed=0) as twin:
        frames = figures.record_frames(env, lambda seen: np.ones((len(seen), 4)), decisions=7)
        expected = [twin.reset()[BRAIN].vector_observations]
        for _ in range(6):
            expected.append(twin.step(np.ones((2, 4)))[BRAIN].vector_observations)
    assert len(frames) == 4
    for frame, observation in zip(frames, expected[::2], strict=True):
        np.testing.assert_array_equal(frame, observation)


def test_figures_know_the_size_of_the_goals():
    """A goal of 2 m is touched at 1 m and the hand's radius, and it is drawn smaller."""
    frames = observed(2, decisions=3)[1]
    assert figures.animated_png(frames) != figures.animated_png(frames, goal_size=2.0)
    figure = figures.plot_distances(np.ones((100, 2)), goal_size=2.0)
    (line,) = (line for line in figure.axes[0].lines if line.get_label() == "touch")
    assert set(line.get_ydata()) == {2.0}
    plt.close(figure)


@pytest.mark.parametrize("agents", [1, 12])
def test_the_animation_is_an_animated_png_of_all_frames(agents):
    _, frames = observed(agents, decisions=5)
    content = figures.animated_png(frames)
    assert content.startswith(b"\x89PNG\r\n\x1a\n") and b"acTL" in content
    picture = Image.open(io.BytesIO(content))
    assert picture.is_animated and picture.n_frames == len(frames)
    assert picture.info["loop"] == 0  # for ever
    seen = []
    for k in range(picture.n_frames):
        picture.seek(k)
        assert picture.info["duration"] == 160
        seen.append(np.asarray(picture.convert("RGBA")))
    assert all(
        (one != other).any()  # it moves
        for one, other in zip(seen[:-1], seen[1:], strict=True)
    )
    assert (np.array(seen)[:, [0, -1], [0, -1], 3] == 0).all()  # a card with rounded corners
    assert not plt.get_fignums()  # and leaves no figure open


@pytest.mark.parametrize("episodes", [1, 2, 120])
def test_the_score_plot_holds_the_scores_and_their_average(episodes):
    score = np.random.default_rng(0).uniform(1, 40, episodes)
    figure = figures.plot_scores(
        {
            "episode": np.arange(1, episodes + 1),
            "score": score,
            "min": score - 1,
            "max": score + 1,
            "seconds": score,
        }
    )
    (axes,) = figure.axes
    lines = [line.get_ydata() for line in axes.lines]
    np.testing.assert_array_equal(lines[0], score)
    np.testing.assert_array_equal(lines[1], moving_average(score))
    np.testing.assert_array_equal(lines[2], [30, 30])
    assert axes.get_xlabel() == "episode" and "score" in axes.get_ylabel()
    plt.close(figure)


def test_scores_of_an_environment_without_a_mark_have_no_line():
    score = np.array([-900.0, -200.0])
    figure = figures.plot_scores(
        {
            "episode": np.arange(1, 3),
            "score": score,
            "min": score - 1,
            "max": score + 1,
            "seconds": score,
        },
        reward_threshold=None,
        limits=None,
    )
    (axes,) = figure.axes
    assert len(axes.lines) == 2 and axes.get_ylim()[0] < -900
    assert "average of 30" not in [text.get_text() for text in axes.texts]
    plt.close(figure)


@pytest.mark.parametrize(
    "reward_threshold, first, solved",
    [(30.0, 2, 101), (20.0, 1, 100), (41.0, None, None), (None, None, None)],
)
def test_the_mark_is_the_environments(reward_threshold, first, solved):
    scores = [25.0] + [35.0] * 99 + [35.0]
    scores[2:7] = [-65.0] * 5  # so that the first full window averages 29.9, the second 30.0
    assert first_at(scores, reward_threshold) == first
    assert solved_at(scores, reward_threshold) == solved
