"""Early actors of a training, which the gallery shows."""

from __future__ import annotations

import numpy as np
import pytest

from reacher import task
from research import gallery
from tutorial import notebook
from tutorial.environments import open_environment
from tutorial.randomness import seed_everything
from web.actor import actor_files, load_actor

SMALL = {
    "actor_hidden": (8, 8),
    "critic_hidden": (8,),
    "batch_size": 16,
    "learning_starts": 20,
    "gradient_steps": 2,
    "replay_capacity": 50,
}
ARMS = 2


@pytest.fixture
def scores(monkeypatch, tmp_path):
    """Of a small training of three episodes, whose actors after two are saved."""
    monkeypatch.setattr(task, "EPISODE_DECISIONS", 30)
    monkeypatch.setattr(task, "RESET_PARAMETERS", task.RESET_PARAMETERS | {"goal_size": 24.0})
    monkeypatch.setattr(gallery, "EPISODES", (1, 3))
    return gallery.save_early_actors(tmp_path / "gallery", ARMS, engine="torch", **SMALL)


def test_saving_changes_nothing(scores, tmp_path):
    definitions = notebook.definitions()
    settings = definitions.make_hyperparameters("default", SMALL)
    with open_environment("", ARMS, gallery.SEED) as environment:
        generator = seed_everything(gallery.SEED)
        agent = definitions.Agent(definitions.OBSERVATION_SCALE, 4, settings, generator)
        expected = definitions.train_agent(environment, agent, tmp_path / "run", 3)
    assert max(expected) > 0
    assert scores == expected


def test_early_actors_are_stored_and_can_be_played(scores, tmp_path):
    assert list(actor_files(tmp_path / "gallery")) == ["1", "3"]
    seen = np.random.default_rng(0).normal(size=(4, 33)).astype(np.float32)
    first, third = (load_actor(tmp_path / "gallery", name)(seen) for name in ("1", "3"))
    assert first.shape == (4, 4) and (first != third).any()
