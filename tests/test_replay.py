"""Sum tree and replay memories against brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tutorial.notebook import definitions


def assert_parents_are_sums(tree):
    """Every inner node is exactly the floating-point sum of its two children."""
    inner = np.arange(1, len(tree) // 2)
    np.testing.assert_array_equal(tree[inner], tree[2 * inner] + tree[2 * inner + 1])


def leaves_of(tree):
    return tree[len(tree) // 2 :]


def numbered(numbers):
    """Transitions that are numbered in all their parts."""
    part = torch.as_tensor(numbers, dtype=torch.float32)
    return definitions().Batch(part[:, None], part[:, None], part, part, part[:, None])


def memory(notebook, capacity=16, alpha=0.6, epsilon=1e-4):
    """A prioritized memory."""
    settings = notebook.PlainSettings(replay_capacity=capacity)
    replay = notebook.PrioritizedReplay(settings, np.random.default_rng(0), alpha)
    replay.epsilon = epsilon
    return replay


@given(data=st.data(), depth=st.integers(1, 7))
def test_updates_and_finds_against_brute_force(notebook, data, depth):
    """Whole-numbered priorities add up exactly, so the cumulative sum settles every draw."""
    size = 2**depth
    tree, plain = np.zeros(2 * size), np.zeros(size)
    updates = st.lists(
        st.tuples(st.integers(0, size - 1), st.integers(0, 2**20)), min_size=1, max_size=20
    )
    for batch in data.draw(st.lists(updates, min_size=1, max_size=5)):
        leaves = np.array([leaf for leaf, _ in batch])
        priorities = np.array([float(priority) for _, priority in batch])
        notebook.tree_update(tree, leaves, priorities)
        for leaf, priority in batch:  # of two updates of a leaf the later one counts
            plain[leaf] = priority
        np.testing.assert_array_equal(leaves_of(tree), plain)
        assert_parents_are_sums(tree)
    if tree[1]:
        share = st.floats(0, 1, exclude_max=True)
        values = tree[1] * np.array(data.draw(st.lists(share, min_size=1, max_size=20)))
        edges = np.concatenate([[0], np.cumsum(plain)[:-1]])
        values = np.concatenate([values, edges[edges < tree[1]]])  # where one share ends
        expected = np.searchsorted(np.cumsum(plain), values, side="right")
        np.testing.assert_array_equal(notebook.tree_find(tree, values), expected)


@given(
    priorities=st.lists(
        st.one_of(st.just(0.0), st.floats(1e-12, 1e12)), min_size=1, max_size=64
    ).filter(any),
    seed=st.integers(0, 1000),
)
def test_no_leaf_of_priority_zero_is_ever_found(notebook, priorities, seed):
    """Not even where rounding carries a value to the end of all shares."""
    size = 2 ** max(1, math.ceil(math.log2(len(priorities))))
    tree = np.zeros(2 * size)
    notebook.tree_update(tree, np.arange(len(priorities)), np.array(priorities))
    values = np.random.default_rng(seed).random(50) * tree[1]
    found = notebook.tree_find(tree, np.append(values, [0, np.nextafter(tree[1], 0), tree[1]]))
    assert (leaves_of(tree)[found] > 0).all()


@given(capacity=st.integers(1, 12), sizes=st.lists(st.integers(1, 15), min_size=1, max_size=8))
def test_the_ring_keeps_the_newest(notebook, capacity, sizes):
    settings = notebook.PlainSettings(replay_capacity=capacity)
    replay, added = notebook.UniformReplay(settings, np.random.default_rng(0)), 0
    for size in sizes:
        replay.add(numbered(np.arange(added, added + size)))
        added += size
        newest = np.arange(max(0, added - capacity), added)
        np.testing.assert_array_equal(
            replay.at(slice(None)).observations[newest % capacity, 0], newest
        )
        np.testing.assert_array_equal(
            np.sort(replay.at(slice(None)).rewards[: replay.size]), newest
        )
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
