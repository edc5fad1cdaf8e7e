"""The actors of early episodes that are kept, and the pictures that are drawn from them."""

from __future__ import annotations

import importlib.util

import pytest
from PIL import Image

from benchmarks import gallery
from conftest import PROJECT
from reacher.actor import kept_actors, load_actor, read_settings
from reacher.drawing import backends
from reacher.episode import play_episode


def test_a_training_keeps_its_actor_after_some_episodes(tmp_path):
    scores = gallery.record(tmp_path, (1, 3), arms=2, learn_steps=1, batch_size=8)
    assert len(scores) == 3 and kept_actors(tmp_path) == ["1", "3"]
    settings = read_settings(tmp_path)
    assert settings["kept_episodes"] == [1, 3] and settings["seed"] == 0
    first, third = (play_episode(load_actor(tmp_path, name), 2, 0, 20) for name in ("1", "3"))
    assert (first.observations != third.observations).any()
    gallery.record(tmp_path, (2,), arms=2, learn_steps=1, batch_size=8)
    assert kept_actors(tmp_path) == ["2"]  # none is left of an earlier training


def test_early_actors_are_kept_and_get_better():
    assert kept_actors(gallery.KEPT) == [str(episode) for episode in gallery.EPISODES]
    scores = [play_episode(load_actor(gallery.KEPT, str(episode)), 20, 1000, 300).scores.mean()
              for episode in gallery.EPISODES]
    assert scores[-1] > 0.9 * 12 and scores[0] < 0.3 * scores[-1]
    assert all(path.stat().st_size < 1_000_000 for path in gallery.KEPT.iterdir())


@pytest.mark.skipif(backends.working_backend() is None, reason="no OpenGL backend works here: on "
                    "Debian, apt-get install libosmesa6")
def test_pictures_of_kept_weights_are_the_same_each_time():
    spec = importlib.util.spec_from_file_location("arm_pictures", PROJECT / "doc/arm_pictures.py")
    pictures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pictures)
    for make in (pictures.trained_arms, pictures.early_actors):
        assert make(4, 1) == make(4, 1)


@pytest.mark.parametrize("name", ["trained_arms", "gallery"])
def test_pictures_are_small_moving_and_there_as_a_still(name):
    path = PROJECT / "doc" / f"{name}.png"
    assert path.stat().st_size < 1_500_000
    with Image.open(path) as moving, Image.open(path.with_stem(f"{name}_still")) as still:
        assert moving.n_frames > 20 and getattr(still, "n_frames", 1) == 1
        assert moving.size == still.size
        assert moving.convert("RGBA").getpixel((0, 0))[3] == 0  # good on any page
