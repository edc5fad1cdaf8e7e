"""Sum tree and replay memories against brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st


def assert_parents_are_sums(tree):
    """Every inner node is exactly the floating-point sum of its two children."""
    inner = np.arange(1, len(tree) // 2)
    np.testing.assert_array_equal(tree[inner], tree[2 * inner] + tree[2 * inner + 1])


def leaves_of(tree):
    return tree[len(tree) // 2 :]


def memory(notebook, defaults, capacity=16, width=1, seed=0, **overrides):
    """A replay with these settings; any capacity, also too small a one."""
    epsilon = overrides.pop("epsilon", None)  # of prioritized replay, no setting
    settings = defaults(**overrides).model_copy(update={"replay_capacity": capacity})
    rest = width, np.random.default_rng(seed)
    if settings.replay == "uniform":
        return notebook.UniformReplay(capacity, *rest)
    replay = notebook.PrioritizedReplay(capacity, *rest, settings.priority_exponent)
    if epsilon is not None:
        replay.epsilon = epsilon
    return replay


def rows_of(*values):
    """Rows of width 1."""
    return np.array(values, dtype=np.float32)[:, None]


# ---------------------------------------------------------------------------------------- sum tree


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


def test_a_million_updates_leave_no_drift(notebook):
    """Priorities over twelve orders of magnitude; a tree that adds differences would drift."""
    generator, size = np.random.default_rng(0), 2**12
    tree, plain = np.zeros(2 * size), np.zeros(size)
    for _ in range(100):
        leaves = generator.integers(size, size=10_000)
        priorities = 10.0 ** generator.uniform(-6, 6, size=10_000)
        notebook.tree_update(tree, leaves, priorities)
        plain[leaves] = priorities  # NumPy, too, keeps the last of several
    np.testing.assert_array_equal(leaves_of(tree), plain)
    assert_parents_are_sums(tree)
    # Twelve rounded additions on the way up, each off by 2^-53 of its sum at most.
    assert abs(tree[1] / math.fsum(plain) - 1) <= 12 * 2.0**-53
    notebook.tree_update(tree, np.arange(size), np.zeros(size))
    assert not tree.any()


@pytest.mark.parametrize("capacity", [1, 2, 3, 5, 100, 1000])
def test_any_capacity_is_drawn_whole_and_nothing_beyond_it(notebook, defaults, capacity):
    replay = memory(notebook, defaults, capacity)
    for _ in range(2):  # once to fill it, once to overwrite it
        replay.add(np.zeros((capacity, 1), np.float32), np.ones(capacity))
    assert len(replay) == capacity
    indices, _, weights = replay.sample(capacity, beta=1.0)
    # Equal priorities and as many strata as places: each place once, up to a rounded edge.
    assert len(np.unique(indices)) >= capacity - 1
    assert indices.min() >= 0 and indices.max() < capacity
    np.testing.assert_array_equal(weights, np.ones(capacity, np.float32))


# -------------------------------------------------------------------------------------- both rings


@pytest.fixture(scope="module", params=["uniform", "prioritized"])
def make_memory(request, notebook, defaults):
    """`make_memory(capacity)`: a memory of rows of width 1, of either kind."""

    def make(capacity):
        if request.param == "uniform":
            return memory(notebook, defaults, capacity, replay="uniform")
        return memory(notebook, defaults, capacity)

    return make


@given(capacity=st.integers(1, 12), sizes=st.lists(st.integers(1, 15), min_size=1, max_size=8))
def test_the_ring_keeps_the_newest(make_memory, capacity, sizes):
    replay, added = make_memory(capacity), 0
    for size in sizes:
        rows = np.arange(added, added + size, dtype=np.float32)[:, None]
        replay.add(rows, np.ones(size))
        added += size
        newest = np.arange(max(0, added - capacity), added)
        np.testing.assert_array_equal(replay.rows[newest % capacity, 0], newest)
        assert len(replay) == len(newest)
        np.testing.assert_array_equal(np.sort(replay.rows[: len(replay), 0]), newest)
        drawn = replay.sample(30, beta=0.5)[1]
        assert np.isin(drawn, newest).all()


def test_uniform_draws_are_uniform_and_have_weight_one(notebook):
    replay = notebook.UniformReplay(20, 1, np.random.default_rng(0))
    replay.add(np.arange(10, dtype=np.float32)[:, None])
    indices, rows, weights = replay.sample(100_000, beta=0.4)
    np.testing.assert_array_equal(rows[:, 0], indices)
    # Binomial, p = 1/10: the standard deviation of a count is 95; five of them.
    assert np.abs(np.bincount(indices, minlength=10) - 10_000).max() < 5 * 95
    np.testing.assert_array_equal(weights, np.ones(100_000, np.float32))


# ---------------------------------------------------------------------------------- prioritization


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_frequencies_follow_the_priorities(notebook, defaults, alpha):
    """P(i) = p_i^alpha / sum, p_i = |delta_i| + epsilon, for TD errors of either sign."""
    replay = memory(notebook, defaults, capacity=50, priority_exponent=alpha, epsilon=0.01)
    td_errors = np.random.default_rng(1).normal(size=37)
    replay.add(np.zeros((37, 1), np.float32), td_errors)
    draws = np.concatenate([replay.sample(16, beta=0.4)[0] for _ in range(5_000)])
    priority = (np.abs(td_errors) + 0.01) ** alpha
    expected = priority / priority.sum()
    # A stratified count varies less than a binomial one: five of its standard deviations.
    deviation = np.sqrt(expected * (1 - expected) / len(draws))
    frequency = np.bincount(draws, minlength=37) / len(draws)
    assert (np.abs(frequency - expected) < 5 * deviation).all()


def test_each_batch_is_stratified(notebook, defaults):
    """A share of k P(i) strata is cut by at most two edges: the count is off by less than 2.

    Independent draws would fail: their counts have a standard deviation of about sqrt(k P(i)).
    """
    replay = memory(notebook, defaults, capacity=8, priority_exponent=1.0, epsilon=1e-9)
    priority = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    replay.add(np.zeros((8, 1), np.float32), priority)
    for _ in range(200):
        counts = np.bincount(replay.sample(144, beta=0.4)[0], minlength=8)
        assert (np.abs(counts - 4 * priority) < 2).all()
    first = [replay.sample(2, beta=0.4)[0] for _ in range(200)]  # but random within a stratum
    assert len({tuple(indices) for indices in first}) > 5


@pytest.mark.parametrize("beta", [0.0, 0.4, 1.0])
def test_importance_weights_follow_their_formula(notebook, defaults, beta):
    """w_i = (1 / N / P(i))^beta, divided by the largest of the batch; N what is held, not room."""
    replay = memory(notebook, defaults, capacity=100, priority_exponent=0.7)
    td_errors = np.linspace(0.01, 3, 60)
    replay.add(np.arange(60, dtype=np.float32)[:, None], td_errors)
    indices, rows, weights = replay.sample(32, beta)
    np.testing.assert_array_equal(rows[:, 0], indices)
    priority = (td_errors + 1e-4) ** 0.7
    expected = (1 / 60 / (priority / priority.sum())[indices]) ** beta
    assert weights.dtype == np.float32 and weights.shape == (32,)
    np.testing.assert_allclose(weights, expected / expected.max(), rtol=1e-6)


def test_weights_undo_the_prioritization(notebook, defaults):
    """With beta = 1, weighted draws estimate the plain mean over the memory."""
    replay = memory(notebook, defaults, capacity=64, priority_exponent=0.6)
    values = np.random.default_rng(2).exponential(size=40).astype(np.float32)
    replay.add(values[:, None], values)  # large values are drawn more often
    drawn, weight = [], []
    for _ in range(4_000):
        _, rows, weights = replay.sample(32, beta=1.0)
        drawn.append(rows[:, 0])
        weight.append(weights)
    plain = np.mean([rows.mean() for rows in drawn])
    # Each batch has its own largest weight, which cancels in its weighted mean.
    weighted = [np.average(rows, weights=w) for rows, w in zip(drawn, weight, strict=True)]
    assert plain > values.mean() * 1.2
    # The mean of ratios is biased by O(1 / 32); the bias without weights is over 20 %.
    assert abs(np.mean(weighted) / values.mean() - 1) < 0.05


def test_new_transitions_get_their_own_td_error_in_one_batch(notebook, defaults):
    """`store_new_transitions`, for several arms."""
    torch.manual_seed(0)
    settings = defaults(
        actor_hidden=(4,),
        critic_hidden=(4,),
        learning_starts=1,
        batch_size=2,
        replay_capacity=100,
    )
    agent = notebook.Agent(np.ones(3, np.float32), 2, settings, np.random.default_rng(0))
    generator = np.random.default_rng(1)
    for _ in range(6):
        seen = generator.normal(size=(5, 3)).astype(np.float32)
        agent.remember(seen, agent.act(seen), generator.normal(size=5))
    notebook.store_new_transitions(agent)
    held = 5 * (6 - settings.n_step)
    assert len(agent.replay) == held and not agent.new_transitions
    leaves = leaves_of(agent.replay.tree)
    assert not leaves[held:].any()
    batch = notebook.split_rows(torch.from_numpy(agent.replay.rows[:held]), 3, 2)
    with torch.no_grad():
        bootstrap = agent.ddpg.target_critic(
            batch.next_observations, agent.ddpg.target_actor(batch.next_observations)
        )
        error = (
            batch.returns
            + batch.discounts * bootstrap
            - agent.ddpg.critic(batch.observations, batch.actions)
        )
    own = (error.abs().numpy() + 1e-4) ** settings.priority_exponent
    np.testing.assert_allclose(leaves[:held], own, rtol=1e-4)


def test_update_changes_only_the_priorities_of_its_places(notebook, defaults):
    replay = memory(notebook, defaults, capacity=8, priority_exponent=1.0, epsilon=0.5)
    replay.add(rows_of(0, 1, 2, 3), np.array([1.0, 2.0, 3.0, 4.0]))
    replay.update(np.array([2, 0]), np.array([-7.0, 0.0], dtype=np.float32))
    np.testing.assert_array_equal(leaves_of(replay.tree), [0.5, 2.5, 7.5, 4.5, 0, 0, 0, 0])
    np.testing.assert_array_equal(replay.rows[:4], rows_of(0, 1, 2, 3))


def test_a_vanishing_error_is_still_drawn(notebook, defaults):
    """Epsilon keeps every transition in play."""
    replay = memory(notebook, defaults, capacity=4, priority_exponent=1.0, epsilon=0.25)
    replay.add(rows_of(0, 1), np.array([0.0, 0.75]))
    drawn = np.concatenate([replay.sample(2, beta=0.4)[0] for _ in range(2_000)])
    # P(0) = 1/4 / (1/4 + 1); five binomial standard deviations of 4000 draws are 0.032.
    assert abs((drawn == 0).mean() - 0.2) < 0.032


def test_rows_are_split_where_they_were_joined(notebook):
    rows = np.arange(24, dtype=np.float32).reshape(2, 12)  # 4 observed, 2 actions, 1, 1, 4 observed
    batch = notebook.split_rows(rows, observation_size=4, action_size=2)
    assert batch.observations.tolist() == [[0, 1, 2, 3], [12, 13, 14, 15]]
    assert batch.actions.tolist() == [[4, 5], [16, 17]]
    assert batch.returns.tolist() == [6, 18] and batch.discounts.tolist() == [7, 19]
    assert batch.next_observations.tolist() == [[8, 9, 10, 11], [20, 21, 22, 23]]
