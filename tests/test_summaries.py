"""Lines of text about a run, by hand."""

from __future__ import annotations

import numpy as np

from tutorial.report import summaries


def test_a_training_that_reached_the_mark_and_was_not_solved():
    scores = {"score": np.array([10.0, 31.0, 35.0]), "seconds": np.array([1.0, 2.4, 3.0])}
    assert summaries.training_summary(scores, 30.0).splitlines() == [
        "first episode at 30: 2, after 2 s of training",
        "solved at episode: not yet",
        "mean of all 3 episodes: 25.33, of the last ten: 25.33",
    ]
    assert "first episode" not in summaries.training_summary(scores, None)


def test_pay_of_an_episode():
    rewards = np.zeros((200, 2))
    rewards[2:, 0] = 0.04  # the first arm from the third decision on, the second from the fifth
    rewards[4:, 1] = 0.04
    assert summaries.reward_summary(rewards).splitlines() == [
        "first touch of any arm: decision 3",
        "90 % of the full pay, all arms together: decision 5",
        "share of the full pay from decision 101 on: 100.0 %",
    ]
    assert "not reached" in summaries.reward_summary(np.zeros((50, 2)))


def test_draws_of_episodes():
    draws = np.zeros((20, 3), dtype=int)  # of the last eight no transition was kept
    draws[:5, 2], draws[5:12, 0] = 10, 10  # ten transitions each: drawn twice, or never
    lines = summaries.draws_summary({"draws": draws}).splitlines()
    assert lines[0] == "transitions of episode  1: drawn   2.0 times on average,  0 % never"
    assert lines[2].endswith("drawn   0.0 times on average, 100 % never")
    assert lines[3] == "of all draws, 100 % were of the first five episodes"
