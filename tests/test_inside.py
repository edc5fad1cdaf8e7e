"""What is noted during a training for the report."""

from __future__ import annotations

import numpy as np

import helpers
from reacher import task
from workshop import notebook
from workshop.experiments import inside

SMALL = {"actor_hidden": (8, 8), "critic_hidden": (8,), "batch_size": 16, "learning_starts": 20,
         "learn_steps": 2, "replay_capacity": 50}
EPISODES, ARMS, DECISIONS = 3, 2, 30


def noted(monkeypatch):
    monkeypatch.setattr(task, "EPISODE_DECISIONS", DECISIONS)
    monkeypatch.setattr(task, "RESET_PARAMETERS", task.RESET_PARAMETERS | {"goal_size": 24.0})
    return inside.record(EPISODES, ARMS, **SMALL)


def test_every_transition_is_counted_once_and_every_draw(monkeypatch):
    found = noted(monkeypatch)
    draws = found["draws"][:EPISODES]
    # The last decision of each arm is dropped; the rows that an episode's end brings are stored
    # in the next, those of the last episode never.
    per_episode = ARMS * (DECISIONS - 1)
    left = per_episode * EPISODES - draws.sum()
    assert 0 <= left <= ARMS * (DECISIONS - 1)
    assert draws[0].sum() <= per_episode
    total = (draws * np.arange(draws.shape[1])).sum()
    assert total > 0 and total % 16 == 0  # whole batches


def test_noting_changes_nothing(monkeypatch, tmp_path):
    found = noted(monkeypatch)
    definitions = notebook.definitions()
    settings = definitions.make_hyperparameters("default", SMALL)
    with helpers.open_environment("", ARMS, inside.SEED) as environment:
        generator = helpers.seed_everything(inside.SEED)
        agent = definitions.Agent(definitions.OBSERVATION_SCALE, 4, ARMS, settings, generator)
        scores = definitions.train_agent(environment, agent, tmp_path, EPISODES)
    assert max(scores) > 0
    np.testing.assert_array_equal(found["score"], scores)
    sigma = agent.ddpg.actor.noisy_layers[-1].sigma_weight.abs().mean().item()
    assert found["sigma_output"][-1] == sigma


def test_the_gallery_shows_the_same_goals_each_time(monkeypatch):
    monkeypatch.setattr(inside, "GALLERY_EPISODES", (1, 3))
    monkeypatch.setattr(inside, "GALLERY_DECISIONS", (0, 5))
    frames = noted(monkeypatch)["gallery_frames"]
    assert frames.shape == (2, 6, inside.GALLERY_ARMS, 33)
    np.testing.assert_array_equal(frames[0, :, :, 26:29], frames[1, :, :, 26:29])
    assert (frames[0, 1:, :, :26] != frames[1, 1:, :, :26]).any()
