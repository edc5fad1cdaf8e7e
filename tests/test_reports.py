"""The chapter on three reports: its agents are those that its cells say."""

import operator
import types

import numpy as np
import pytest

from tutorial.notebook import load_definitions
from tutorial.paths import DOC


@pytest.fixture(scope="module")
def loaded(notebook):
    """Of each name an agent, without a training."""
    agents = load_definitions(DOC / "reports.ipynb").AGENTS
    return {name: make(np.random.default_rng(0)) for name, make in agents.items()}


def test_settings_are_those_that_the_write_ups_name(loaded):
    a, b, c = (loaded[name].settings for name in "abc")
    names = "batch_size learning_starts train_freq gradient_steps discount tau replay_capacity"
    read = operator.attrgetter(*names.split())
    assert read(a) == (128, 10_001, 50, 100, 0.97, 5e-4, 10**6)
    assert read(c) == (256, 257, 20, 10, 0.99, 1e-3, 10**6)
    assert (b.discount, b.actor_learning_rate, b.critic_learning_rate) == (0.99, 1e-3, 1e-3)


def test_networks_of_c_have_the_sizes_and_first_weights_that_it_prints(loaded):
    learner = loaded["c"].learner
    for network, count, bounds in (
        (learner.actor, 42_950, {256: (2 / 256) ** 0.5, 128: (2 / 128) ** 0.5, 4: 0.003}),
        (learner.critic, 21_571, {128: (2 / 128) ** 0.5, 1: 0.003}),
    ):
        assert sum(weights.numel() for weights in network.parameters()) == count
        for weights in (weights for weights in network.parameters() if weights.dim() == 2):
            largest, bound = weights.abs().max().item(), bounds[len(weights)]
            # The largest of k >= 128 uniform numbers is below 0.9 of the bound once in 700,000.
            assert 0.9 * bound < largest <= bound


def test_a_samples_by_priority_and_each_step_changes_priorities(loaded):
    """Its exponent is 1.2 of errors, as 0.6 of squares; nothing is added to them."""
    calls, agent = [], loaded["a"]
    assert (agent.settings.priority_exponent, agent.memory.epsilon) == (1.2, 0.0)
    agent.memory = types.SimpleNamespace(
        sample=lambda shape, beta: calls.append(shape) or (None, None, None),
        update=lambda indices, errors: calls.append("update"),
    )
    agent.fast = types.SimpleNamespace(scan=lambda *_: (np.zeros(1), np.zeros(1)))
    agent.replay_surprises((3, 128))
    assert calls == [(1, 128), "update"] * 3
