"""What is noted during a training for the report."""

from __future__ import annotations

import numpy as np
import pytest

from reacher import task
from reacher.actor import load_actor, pretrained_actors
from tutorial import notebook
from tutorial.experiments import diagnostics
from tutorial.training.environments import open_environment
from tutorial.training.randomness import seed_everything

SMALL = {
    "actor_hidden": (8, 8),
    "critic_hidden": (8,),
    "batch_size": 16,
    "learning_starts": 20,
    "gradient_steps": 2,
    "replay_capacity": 50,
}
EPISODES, ARMS, DECISIONS = 3, 2, 30


@pytest.fixture
def noted(monkeypatch, tmp_path):
    """`noted(...)`: what a small training tells, its early actors in a folder of the test's own."""
    monkeypatch.setattr(task, "EPISODE_DECISIONS", DECISIONS)
    monkeypatch.setattr(task, "RESET_PARAMETERS", task.RESET_PARAMETERS | {"goal_size": 24.0})
    return lambda **overrides: diagnostics.record(
        tmp_path / "gallery", EPISODES, ARMS, engine="torch", **SMALL | overrides
    )


def test_every_transition_is_counted_once_and_every_draw(noted):
    found = noted()
    draws = found["draws"][:EPISODES]
    # The last decision of each arm is dropped; the rows that an episode's end brings are stored
    # in the next, those of the last episode never.
    per_episode = ARMS * (DECISIONS - 1)
    left = per_episode * EPISODES - draws.sum()
    assert 0 <= left <= ARMS * (DECISIONS - 1)
    assert draws[0].sum() <= per_episode
    total = (draws * np.arange(draws.shape[1])).sum()
    assert total > 0 and total % 16 == 0  # whole batches


def test_noting_changes_nothing(noted, tmp_path):
    found = noted()
    definitions = notebook.definitions()
    settings = definitions.make_hyperparameters("default", SMALL)
    with open_environment("", ARMS, diagnostics.SEED) as environment:
        generator = seed_everything(diagnostics.SEED)
        agent = definitions.Agent(definitions.OBSERVATION_SCALE, 4, ARMS, settings, generator)
        scores = definitions.train_agent(environment, agent, tmp_path / "run", EPISODES)
    assert max(scores) > 0
    np.testing.assert_array_equal(found["score"], scores)
    sigma = agent.ddpg.actor.noisy_layers[-1].sigma_weight.abs().mean().item()
    assert found["sigma_output"][-1] == sigma


def test_early_actors_are_kept_and_can_be_played(monkeypatch, noted, tmp_path):
    monkeypatch.setattr(diagnostics, "GALLERY_EPISODES", (1, 3))
    noted()
    assert pretrained_actors(tmp_path / "gallery") == ["1", "3"]
    seen = np.random.default_rng(0).normal(size=(4, 33)).astype(np.float32)
    first, third = (load_actor(tmp_path / "gallery", name)(seen) for name in ("1", "3"))
    assert first.shape == (4, 4) and (first != third).any()


@pytest.mark.parametrize(
    "hidden, names",
    [
        ((8,), ["sigma_output"]),
        ((8, 8), ["sigma_hidden", "sigma_output"]),
        ((8, 8, 8), ["sigma_hidden_2", "sigma_hidden_3", "sigma_output"]),
    ],
)
def test_every_noisy_layer_has_its_name(noted, hidden, names):
    found = noted(actor_hidden=hidden)
    assert [name for name in found if name.startswith("sigma")] == names
    for name in names:
        assert found[name].shape == (EPISODES,) and (found[name] > 0).all()
    bound = 1 / np.sqrt(8)  # initial sigma of layers with 8 inputs
    assert abs(found[names[-1]][-1] / bound - 1) < 0.2  # few small steps from there


def test_without_noisy_layers_no_other_number_passes_for_a_sigma(noted):
    found = noted(noisy_layers=False)
    assert not [name for name in found if name.startswith("sigma")]
    assert {"critic_loss", "Q", "TD_error", "noise"} < found.keys()
    assert (found["noise"][1:] > 0).all()  # on the actions, and not another column
