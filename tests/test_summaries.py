"""Lines of text, tables and figures about runs, by hand."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

from reacher import task
from tutorial import figures, summaries, tables
from tutorial.paths import CHECKPOINTS, DOC
from tutorial.scores import read_runs


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
        "90 % of the largest reward, mean over the arms: decision 5",
        "mean reward from decision 101 on: 100.0 % of the largest",
    ]
    assert "not reached" in summaries.reward_summary(np.zeros((50, 2)))


@pytest.mark.parametrize("number", [2, 4, 7])
def test_every_preset_is_in_its_figure(number):
    """With a colour of its own as long as there are any."""
    scores = {
        "episode": np.arange(1, 101),
        "score": np.linspace(0, 39, 100),
        "seconds": np.arange(1.0, 101.0),
    }
    runs = {f"preset {k}": {0: scores, 1: scores} for k in range(number)}
    figure = figures.plot_presets(runs, runs)
    *lines, _ = figure.axes[1].get_legend().get_lines()
    assert [line.get_label() for line in lines] == list(runs)
    assert len({line.get_color() for line in lines}) == min(number, len(figures.PALETTE))
    plt.close(figure)


def test_a_table_is_written_as_markdown():
    assert tables.as_markdown(["a", "b"], [["1", "2"], ["3", ""]]).splitlines() == [
        "| a | b |",
        "|---|---|",
        "| 1 | 2 |",
        "| 3 |  |",
    ]


def test_the_most_that_can_be_had():
    """Of the module's docstring: a decision pays at most 0.04, and an episode 40.04."""
    assert task.MAX_DECISION_REWARD == 0.04 and task.MAX_SCORE == pytest.approx(40.04, abs=1e-12)


@pytest.mark.parametrize("page", ["differences.md", "results.md"])
def test_tables_of_pages_are_those_of_the_stored_runs(page):
    """Where the notebook does not compute them, as their functions print them."""
    if page == "differences.md":
        runs = {name: read_runs(CHECKPOINTS / folder) for name, folder in tables.REPORTS.items()}
        table = tables.runs_table(runs)
    else:
        table = tables.pendulum_table(read_runs(CHECKPOINTS / "pendulum"))
    assert table in (DOC / page).read_text()
