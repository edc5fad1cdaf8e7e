"""Sum tree and replay memories against brute force."""

import types

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tutorial.notebook import definitions


def numbered(numbers):
    """Transitions that are numbered in all their parts."""
    part = torch.as_tensor(numbers, dtype=torch.float32)
    return definitions().Batch(part[:, None], part[:, None], part, part, part[:, None])


def memory(notebook, capacity=16, alpha=0.6, epsilon=1e-4):
    """A prioritized memory."""
    settings = notebook.PrioritySettings(replay_capacity=capacity, priority_exponent=alpha)
    replay = notebook.PrioritizedReplay(settings, np.random.default_rng(0))
    replay.epsilon = epsilon
    return replay


@given(data=st.data(), depth=st.integers(1, 7))
def test_updates_and_finds_against_brute_force(notebook, data, depth):
    """Whole-numbered priorities add up exactly, so the cumulative sum settles every draw."""
    size = 2**depth
    tree, plain = notebook.SumTree(size), np.zeros(size)
    update = st.tuples(st.integers(0, size - 1), st.integers(0, 2**20))
    updates = st.lists(update, min_size=1, max_size=20)
    for batch in data.draw(st.lists(updates, min_size=1, max_size=5)):
        leaves = np.array([leaf for leaf, _ in batch])
        priorities = np.array([float(priority) for _, priority in batch])
        tree.update(leaves, priorities)
        for leaf, priority in batch:  # of two updates of a leaf the later one counts
            plain[leaf] = priority
        np.testing.assert_array_equal(tree.sums[size:], plain)
        np.testing.assert_array_equal(tree.sums[1:size], tree.sums[2::2] + tree.sums[3::2])
    if whole := tree.sums[1]:
        share = st.floats(0, 1, exclude_max=True)
        values = whole * np.array(data.draw(st.lists(share, min_size=1, max_size=20)))
        edges = np.concatenate([[0], np.cumsum(plain)[:-1]])
        values = np.concatenate([values, edges[edges < whole]])  # where one share ends
        expected = np.searchsorted(np.cumsum(plain), values, side="right")
        np.testing.assert_array_equal(tree.find(values), expected)


@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=40), st.integers(0, 1000))
def test_nothing_is_sampled_that_was_never_stored(notebook, td_errors, seed):
    """Not even where rounding carries a point to the end of all shares."""
    replay = memory(notebook, 64)
    replay.add(numbered(np.zeros(len(td_errors))), np.array(td_errors))
    for share in np.random.default_rng(seed).random(), np.nextafter(1, 0):
        replay.generator = types.SimpleNamespace(random=lambda shape, x=share: np.full(shape, x))
        indices, _, weights = replay.sample((3, 50), beta=0.4)
        assert indices.max() < len(td_errors) and np.isfinite(weights).all()


@given(capacity=st.integers(2, 12), sizes=st.lists(st.integers(1, 15), min_size=1, max_size=8))
def test_the_ring_keeps_the_newest(notebook, capacity, sizes):
    settings = notebook.PlainSettings(replay_capacity=capacity)
    replay, added = notebook.UniformReplay(settings, np.random.default_rng(0)), 0
    for size in sizes:
        replay.add(numbered(np.arange(added, added + size)))
        added += size
        newest = np.arange(max(0, added - capacity), added)
        held = replay.at(slice(None))
        np.testing.assert_array_equal(held.observations[newest % capacity, 0], newest)
        np.testing.assert_array_equal(np.sort(held.rewards[: replay.size]), newest)
        drawn = replay.sample((30,))
        assert drawn.observations.shape == (30, 1) and np.isin(drawn.rewards, newest).all()
        assert all(torch.equal(part.view(30), drawn.rewards) for part in drawn)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_frequencies_follow_the_priorities(notebook, alpha):
    """P(i) = p_i^alpha / sum, p_i = |delta_i| + epsilon, for TD errors of either sign."""
    replay = memory(notebook, 50, alpha, epsilon=0.01)
    td_errors = np.random.default_rng(1).normal(size=37)
    replay.add(numbered(np.zeros(37)), td_errors)
    draws = replay.sample((5_000, 16), beta=0.4)[0].ravel()
    priority = (np.abs(td_errors) + 0.01) ** alpha
    expected = priority / priority.sum()
    # A stratified count varies less than a binomial one: five of its standard deviations.
    deviation = np.sqrt(expected * (1 - expected) / len(draws))
    frequency = np.bincount(draws, minlength=37) / len(draws)
    assert (np.abs(frequency - expected) < 5 * deviation).all()


def test_each_batch_is_stratified(notebook):
    """A share of k P(i) strata is cut by at most two edges: the count is off by less than 2.

    Independent draws would fail: their counts have a standard deviation of about sqrt(k P(i)).
    """
    replay = memory(notebook, 8, alpha=1.0, epsilon=1e-9)
    priority = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    replay.add(numbered(np.zeros(8)), priority)
    for batch in replay.sample((200, 144), beta=0.4)[0]:
        assert (np.abs(np.bincount(batch, minlength=8) - 4 * priority) < 2).all()
    first = replay.sample((200, 2), beta=0.4)[0]  # but random within a stratum
    assert len({tuple(indices) for indices in first}) > 5


@pytest.mark.parametrize("beta", [0.0, 0.4, 1.0])
def test_importance_weights_follow_their_formula(notebook, beta):
    """w_i = (1 / N / P(i))^beta, divided by the largest of the batch; N what is held, not room."""
    replay = memory(notebook, 100, alpha=0.7)
    td_errors = np.linspace(0.01, 3, 60)
    replay.add(numbered(np.arange(60)), td_errors)
    priority = (td_errors + 1e-4) ** 0.7
    indices, batches, weights = replay.sample((5, 32), beta)
    np.testing.assert_array_equal(batches.rewards, indices)
    expected = (1 / 60 / (priority / priority.sum())[indices]) ** beta
    expected /= expected.max(axis=1, keepdims=True)
    assert weights.dtype == np.float32
    np.testing.assert_allclose(weights, expected, rtol=1e-6)
