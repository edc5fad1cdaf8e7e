"""The n-step buffer against brute force."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

import small_training
from small_training import joined, outcome

EPISODES = st.lists(st.tuples(st.integers(1, 12), st.booleans()), min_size=1, max_size=4)


def play(buffer, observations, actions, rewards, terminal):
    """All row blocks of one episode; arrays are (decisions, arms, ...), terminal is (arms,)."""
    blocks = []
    for decision in zip(observations, actions, rewards, strict=True):
        blocks += buffer.append(*decision)
    return blocks + buffer.flush(terminal)


def windows(observations, actions, rewards, n_step, discount, terminal):
    """What the blocks of an episode should be, by definition: one block for each first decision.

    A window of k rewards from decision t on ends in the observation of decision t + k. After a
    terminal end nothing follows. After a time limit the observation that follows the last decision
    belongs to the next episode: the last decision is lost, windows end before it at the latest.
    """
    decisions = len(rewards)
    usable = decisions if terminal else decisions - 1
    blocks = []
    for t in range(usable):
        k = min(n_step, usable - t)
        returns = sum(discount**j * rewards[t + j].astype(float) for j in range(k))
        ends = terminal and t + k == decisions
        final = None if ends else observations[t + k]
        blocks.append((observations[t], actions[t], returns, 0.0 if ends else discount**k, final))
    return blocks


def check(block, expected, magnitude):
    """A row block against its definition.

    Args: magnitude bounds the sum of the absolute rewards; float32 sums of 13 terms are off by
    less than 13 * 2^-23 of it. Factors below 1e-37 are 0 in float32.
    """
    observations, actions, returns, bootstrap, final = expected
    assert {part.dtype for part in block} == {torch.float32}
    np.testing.assert_array_equal(block.observations, observations)
    np.testing.assert_array_equal(block.actions, actions)
    np.testing.assert_allclose(block.rewards, returns, atol=13 * 2.0**-23 * magnitude)
    np.testing.assert_allclose(block.discounts, bootstrap, rtol=1e-6, atol=1e-37)
    if final is not None:
        np.testing.assert_array_equal(block.next_observations, final)


@given(
    n_step=st.integers(1, 10),
    discount=st.floats(0, 1, exclude_max=True),
    arms=st.integers(1, 4),
    episodes=EPISODES,
    seed=st.integers(0, 2**32 - 1),
)
def test_windows_against_brute_force(notebook, n_step, discount, arms, episodes, seed):
    """One buffer, several episodes of any length and end: no window reaches over a reset."""
    generator = np.random.default_rng(seed)
    buffer = notebook.NStepBuffer(n_step, discount)
    for decisions, terminal in episodes:
        # Observations and actions are unlike any other, so a row from elsewhere is seen.
        observations = generator.random((decisions, arms, 3)).astype(np.float32)
        actions = generator.random((decisions, arms, 2)).astype(np.float32)
        rewards = generator.normal(scale=10, size=(decisions, arms))
        blocks = play(buffer, observations, actions, rewards, np.full(arms, terminal))
        expected = windows(observations, actions, rewards, n_step, discount, terminal)
        assert len(blocks) == len(expected)
        for block, definition in zip(blocks, expected, strict=True):
            check(block, definition, magnitude=np.abs(rewards).sum(axis=0).max())


def test_an_episode_tells_terminal_arms_from_those_at_a_time_limit(notebook):
    """Two arms end in the same step, the first by a time limit and the second for good."""
    agent = small_training.make_agent(n_step=2)
    for decision in range(1, 5):
        seen = np.full((2, 33), decision, np.float32)
        agent.remember(seen, seen[:, :4], outcome(seen, [1.0, 1.0], decision == 4, [True, False]))
    discounts = joined(agent.waiting).discounts
    gamma = np.float32(agent.settings.discount)
    # Windows of both arms from decision 0 and 1; then 2, of one reward, of the arm whose last
    # successor is unknown, and 2 and 3 of the terminal arm.
    np.testing.assert_allclose(discounts, [gamma**2] * 4 + [gamma, 0, 0], rtol=1e-6)
