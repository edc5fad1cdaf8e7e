"""The n-step buffer against brute force."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import small_training

EPISODES = st.lists(st.tuples(st.integers(1, 12), st.booleans()), min_size=1, max_size=4)


def play(buffer, observations, actions, rewards, terminal):
    """All row blocks of one episode; arrays are (decisions, arms, ...)."""
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
        bootstrap = 0.0 if ends else discount**k
        blocks.append(
            (observations[t], actions[t], returns, bootstrap, None if ends else observations[t + k])
        )
    return blocks


def check(block, expected, magnitude):
    """A row block against its definition.

    Args: magnitude bounds the sum of the absolute rewards; float32 sums of 13 terms are off by
    less than 13 * 2^-23 of it. Factors below 1e-37 are 0 in float32.
    """
    observations, actions, returns, bootstrap, final = expected
    width, acting = observations.shape[1], actions.shape[1]
    assert block.dtype == np.float32 and block.shape == (len(returns), 2 * width + acting + 2)
    np.testing.assert_array_equal(block[:, :width], observations)
    np.testing.assert_array_equal(block[:, width : width + acting], actions)
    np.testing.assert_allclose(block[:, -width - 2], returns, atol=13 * 2.0**-23 * magnitude)
    np.testing.assert_allclose(block[:, -width - 1], bootstrap, rtol=1e-6, atol=1e-37)
    if final is not None:
        np.testing.assert_array_equal(block[:, -width:], final)


@given(
    n_step=st.integers(1, 10),
    discount=st.floats(0, 1, exclude_max=True),
    arms=st.integers(1, 4),
    episodes=EPISODES,
    seed=st.integers(0, 2**32 - 1),
)
def test_windows_of_successive_episodes_against_brute_force(
    notebook, n_step, discount, arms, episodes, seed
):
    """One buffer, several episodes of any length and end: no window reaches over a reset."""
    generator = np.random.default_rng(seed)
    buffer = notebook.NStepBuffer(n_step, discount)
    for decisions, terminal in episodes:
        # Observations and actions are unlike any other, so a row from elsewhere is seen.
        observations = generator.random((decisions, arms, 3)).astype(np.float32)
        actions = generator.random((decisions, arms, 2)).astype(np.float32)
        rewards = generator.normal(scale=10, size=(decisions, arms))
        blocks = play(buffer, observations, actions, rewards, terminal)
        expected = windows(observations, actions, rewards, n_step, discount, terminal)
        assert len(blocks) == len(expected)
        for block, definition in zip(blocks, expected, strict=True):
            check(block, definition, magnitude=np.abs(rewards).sum(axis=0).max())


@given(
    n_step=st.integers(1, 6),
    decisions=st.integers(1, 9),
    terminal=st.lists(st.booleans(), min_size=1, max_size=4),
)
def test_each_arm_ends_in_its_own_way(notebook, n_step, decisions, terminal):
    """Rows are those of the arm alone, whatever becomes of the others in the same step."""
    arms, shape = len(terminal), (decisions, len(terminal), 1)
    observations = np.arange(decisions * arms, dtype=np.float32).reshape(shape)  # each its own
    episode = observations, -observations, observations[..., 0] ** 2
    together = play(notebook.NStepBuffer(n_step, 0.5), *episode, np.array(terminal))
    rows = np.concatenate([np.zeros((0, 5), np.float32), *together])
    for arm, ends in enumerate(terminal):
        alone = play(
            notebook.NStepBuffer(n_step, 0.5), *(part[:, arm : arm + 1] for part in episode), ends
        )
        of_arm = rows[rows[:, 0] % arms == arm]
        np.testing.assert_array_equal(of_arm, np.concatenate([np.zeros((0, 5)), *alone]))


class EndsInTwoWays:
    """Two arms end in the same step, the first by a time limit and the second for good."""

    brain_names = ["Brain"]

    def answer(self, done):
        observations = np.full((small_training.ARMS, 33), self.decision, np.float64)
        return {
            "Brain": SimpleNamespace(
                vector_observations=observations,
                rewards=[1.0, 1.0],
                local_done=[done, done],
                max_reached=[done, False],
            )
        }

    def reset(self, train_mode=True):
        self.decision = 0
        return self.answer(False)

    def step(self, actions):
        self.decision += 1
        return self.answer(self.decision == 4)


def test_an_episode_tells_terminal_arms_from_those_at_a_time_limit(notebook):
    agent = small_training.make_agent(n_step=2)
    notebook.run_episode(EndsInTwoWays(), agent)
    rows = np.concatenate(agent.new_transitions)
    discounts = rows[:, 33 + 4 + 1]  # after observations, actions and the return
    gamma = np.float32(agent.settings.discount)
    # Windows of both arms from decision 0 and 1; then 2 and 3 of the terminal arm, and 2, of one
    # reward, of the other, whose last successor is unknown.
    expected = [gamma**2] * 4 + [0, 0] + [gamma]
    np.testing.assert_allclose(discounts, expected, rtol=1e-6)


def constant(arms, value):
    return np.full((arms, 1), value, dtype=np.float32)


def test_one_step_is_the_plain_transition(notebook):
    buffer = notebook.NStepBuffer(n_step=1, discount=0.9)
    assert buffer.append(constant(2, 0), constant(2, 10), [1.0, 2.0]) == []
    (block,) = buffer.append(constant(2, 1), constant(2, 11), [3.0, 4.0])
    np.testing.assert_allclose(block, [[0, 10, 1, 0.9, 1], [0, 10, 2, 0.9, 1]])


def test_a_time_limit_shortens_and_a_terminal_state_ends(notebook):
    """Rewards 1, 2, 4 and gamma = 1/2, by hand."""
    for terminal, expected in (
        (False, [[0, 0, 1 + 1, 0.25, 2], [1, 0, 2, 0.5, 2]]),
        (True, [[0, 0, 1 + 1 + 1, 0, None], [1, 0, 2 + 2, 0, None], [2, 0, 4, 0, None]]),
    ):
        buffer, blocks = notebook.NStepBuffer(n_step=5, discount=0.5), []
        for t, reward in enumerate([1.0, 2.0, 4.0]):
            blocks += buffer.append(constant(1, t), constant(1, 0), [reward])
        assert blocks == []  # nothing is complete before the end
        blocks = buffer.flush(terminal)
        assert len(blocks) == len(expected)
        for block, row in zip(blocks, expected, strict=True):
            known = [value for value in row if value is not None]
            np.testing.assert_array_equal(block[0, : len(known)], known)


def test_later_changes_of_the_callers_arrays_of_rewards_do_not_matter(notebook):
    """The training loop passes the environment's list of rewards; arrays may be reused."""
    buffer = notebook.NStepBuffer(n_step=1, discount=0.5)
    rewards = [1.0]
    buffer.append(constant(1, 0), constant(1, 0), rewards)
    rewards[0] = 99.0
    (block,) = buffer.append(constant(1, 1), constant(1, 0), rewards)
    assert block[0, 2] == 1
