"""The n-step buffer against brute force."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from small_training import joined

ENDS = "terminated", "known", "unknown"  # how an episode ends; the last two by a time limit


def windows(observations, actions, rewards, n_step, discount, end, last):
    """What an arm's episode should leave, by definition: one window for each first decision.

    A window of k rewards from decision t on ends in the observation of decision t + k. After a
    terminal end nothing follows. If nobody knows what followed the last decision, that decision is
    lost, and windows end before it at the latest.
    """
    decisions, found = len(rewards), []
    usable = decisions - 1 if end == "unknown" else decisions
    for t in range(usable):
        k = min(n_step, usable - t)
        returns = sum(discount**j * rewards[t + j].astype(float) for j in range(k))
        factor, final = discount**k, last if t + k == decisions else observations[t + k]
        if end == "terminated" and t + k == decisions:
            factor, final = 0.0, None
        found.append((observations[t], actions[t], returns, factor, final))
    return found


def check(row, expected, magnitude):
    """A transition against its definition.

    Args: magnitude bounds the sum of the absolute rewards; float32 sums of 13 terms are off by
    less than 13 * 2^-23 of it. Factors below 1e-37 are 0 in float32.
    """
    observations, actions, returns, factor, final = expected
    assert {part.dtype for part in row} == {torch.float32}
    np.testing.assert_array_equal(row.observations, observations)
    np.testing.assert_array_equal(row.actions, actions)
    np.testing.assert_allclose(row.rewards, returns, atol=13 * 2.0**-23 * magnitude)
    np.testing.assert_allclose(row.discounts, factor, rtol=1e-6, atol=1e-37)
    if final is not None:
        np.testing.assert_array_equal(row.next_observations, final)


@given(
    n_step=st.integers(1, 10),
    discount=st.floats(0, 1, exclude_max=True),
    arms=st.integers(1, 4),
    together=st.booleans(),
    decisions=st.integers(1, 40),
    seed=st.integers(0, 2**32 - 1),
)
def test_windows_against_brute_force(notebook, n_step, discount, arms, together, decisions, seed):
    """Episodes of any length and end, of arms that end together or apart."""
    generator = np.random.default_rng(seed)
    # Observations and actions are unlike any other, so a row from elsewhere is seen.
    observations = generator.random((decisions, arms, 3)).astype(np.float32)
    observations[..., 0] = np.arange(arms)  # whose a row is
    actions = generator.random((decisions, arms, 2)).astype(np.float32)
    followed = generator.random((decisions, arms, 3)).astype(np.float32)
    rewards = generator.normal(scale=10, size=(decisions, arms))
    ends = np.where(generator.random((decisions, arms)) < 0.15, generator.integers(1, 4), 0)
    ends = np.tile(ends[:, :1], arms) if together else ends
    ends[-1] = generator.integers(1, 4, arms)

    buffer, blocks = notebook.NStepBuffer(n_step, discount), []
    for t, end in enumerate(ends):
        seen = np.where(end[:, None] > 0, followed[t], observations[(t + 1) % decisions])
        what_it_did = observations[t], actions[t], rewards[t]
        blocks += buffer.add(*what_it_did, seen, end != 3, end == 1, end > 1)
    batch = joined(blocks) if blocks else None

    for arm in range(arms):
        expected, begin = [], 0
        for t in np.flatnonzero(ends[:, arm]):
            parts = (part[begin : t + 1, arm] for part in (observations, actions, rewards))
            end = ENDS[ends[t, arm] - 1]
            expected += windows(*parts, n_step, discount, end, followed[t, arm])
            begin = t + 1
        own = [] if batch is None else np.flatnonzero(batch.observations[:, 0] == arm)
        assert len(own) == len(expected)
        for place, definition in zip(own, expected, strict=True):
            check(batch.at(place), definition, np.abs(rewards).sum(axis=0).max())
