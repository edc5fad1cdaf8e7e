"""The drawings tell the truth: beside the notebook's own functions, and by counting."""

from __future__ import annotations

import re

import matplotlib.pyplot as plt
import numpy as np
import pytest
from IPython.core.formatters import DisplayFormatter

from reacher import task
from tutorial import diagrams, interactive
from tutorial.figures import PALETTE
from tutorial.paths import CHECKPOINTS


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    yield
    plt.close("all")


def test_a_notebook_keeps_a_drawing_as_svg_too():
    """In few bytes: six of them are in the notebook, beside the PNG of GitHub and of the PDF."""
    formats, _ = DisplayFormatter().format(diagrams.draw_flow())
    assert formats["image/svg+xml"].startswith("<?xml") and len(formats["image/svg+xml"]) < 60_000


@pytest.mark.parametrize("value", [0.0, 0.5, 2.9, 3.0, 4.5, 9.9])
def test_the_drawn_walk_ends_where_the_draw_does(notebook, value):
    tree = np.zeros(8)
    notebook.tree_update(tree, np.arange(4), np.array([1.0, 2.0, 3.0, 4.0]))
    [leaf] = notebook.tree_find(tree, np.array([value]))
    texts = diagrams.draw_tree(tree, value).axes[0].texts
    marked = [
        text.get_text()
        for text in texts
        if text.get_text().startswith("leaf") and text.get_color() == diagrams.ORANGE
    ]
    assert marked == [f"leaf {leaf}"]


def test_value_travels_n_cells_a_sweep():
    figure = diagrams.draw_value_chain(20, sweeps=(1, 2, 4), n_steps=(1, 3, 10), discount=0.9)
    for axes, n in zip(figure.axes, (1, 3, 10), strict=True):
        rows = np.asarray(axes.images[0].get_array())
        for row, sweep in zip(rows, (1, 2, 4), strict=True):
            reached = min(20, n * sweep)
            assert (row > 0).sum() == reached and (row[20 - reached :] > 0).all()
            np.testing.assert_allclose(row[20 - reached :], 0.9 ** np.arange(reached - 1, -1, -1))


def test_windows_are_those_of_the_buffer(notebook):
    """Lengths of all windows of an episode of seven decisions, and the one that is dropped."""
    buffer, blocks = notebook.NStepBuffer(n_step=3, discount=0.5), []
    for t in range(7):
        blocks += buffer.append(np.full((1, 1), t, np.float32), np.zeros((1, 1), np.float32), [1.0])
    blocks += buffer.flush(terminal=False)
    rows = np.concatenate(blocks)
    expected = [f"{round(np.log(factor) / np.log(0.5))} reward" for factor in rows[:, 3]]
    texts = [text.get_text() for text in diagrams.draw_windows(7, 3).axes[0].texts]
    drawn = [text for text in texts if "reward" in text]
    assert [text[:8] for text in drawn] == expected
    assert [text for text in texts if text.startswith("dropped")] == [
        "dropped: its successor is not known"
    ]


def test_the_arm_has_the_sizes_of_the_task():
    """Goal, hand and their places from the side; its circle and bound of speed from above."""
    side, above = diagrams.draw_arm().axes
    goal, hand = side.patches[:2]
    assert goal.radius == task.RESET_PARAMETERS["goal_size"] / 2
    assert hand.radius == task.HAND_RADIUS
    assert goal.center == pytest.approx((task.GOAL_ORBIT, task.GOAL_HEIGHT))
    circle = above.lines[0].get_xydata()
    np.testing.assert_allclose(np.hypot(*circle.T), task.GOAL_ORBIT)
    upper, fore = (side.lines[k].get_xydata() for k in (1, 2))
    lengths = [np.linalg.norm(np.diff(part, axis=0)) for part in (upper, fore)]
    assert lengths == pytest.approx([7, 6], rel=1e-3)  # as their labels say
    assert fore[1] == pytest.approx(hand.center)
    degrees = task.RESET_PARAMETERS["goal_speed"] * task.STEPS_PER_DECISION / task.DECISION_SECONDS
    assert f"up to {degrees:.0f} degrees" in above.texts[0].get_text()


def test_the_flow_begins_and_ends_at_the_arms():
    """Each box that learns or acts is there, and an improvement appears with its part."""
    words = ["arms", "replay", "batch", "critic", "target", "actor", "action noise"]
    new = {
        "mirrors": "quarter",
        "n-step": "windows",
        "replay": "sum tree",
        "noise": "noisy weights",
    }
    for part in diagrams.PARTS:
        texts = [text.get_text() for text in diagrams.draw_flow(part).axes[0].texts]
        words += [new[part]] if part else []
        for word in (*words, *new.values()):
            assert any(word in text for text in texts) == (word in words), (part, word)


# ---------------------------------------------------------------------------- interactive figures


def test_interactive_figures_are_small_and_leave_no_figure_open(notebook):
    tree = np.zeros(16)
    notebook.tree_update(tree, np.arange(8), np.arange(8.0))
    made = [
        interactive.value_chain(),
        interactive.sum_tree(tree, 4.5),
        interactive.study_curves(CHECKPOINTS / "study"),
    ]
    assert not plt.get_fignums()  # else a notebook would show the drawing a second time
    assert sum(len(figure.data) for figure in made) < 200_000
    for figure in made:
        assert figure.data.count("<img") == figure.data.count("<iframe") == 1


@pytest.mark.parametrize("leaves, value", [(4, 10.0), (4, -0.5), (4, np.nan), (3, 1), (16, 1)])
def test_a_tree_that_cannot_be_shown_is_a_clear_error(leaves, value):
    tree = np.zeros(2 * leaves)
    tree[1] = 10.0
    with pytest.raises(ValueError, match="not (6|32|10|-0.5|nan)$"):
        interactive.sum_tree(tree, value)


def test_interactive_figures_have_the_colours_of_all_figures():
    used = set(re.findall(r"#[0-9a-fA-F]{6}", (interactive.ASSETS / "figure.css").read_text()))
    assert len(used) == 4 and used <= set(PALETTE)


def test_the_phase_has_the_numbers_of_the_settings(notebook):
    def texts(arms, **changed):
        settings = notebook.make_hyperparameters("default", {"batch_size": 32} | changed)
        figure = diagrams.draw_phase(arms, notebook.Schedules(settings, 30.0))
        return [text.get_text() for text in figure.axes[0].texts]

    found = texts(7, train_freq=5)
    assert "5 decisions" in found[0] and "store 35 transitions" in found[1]
    assert "40 batches\nof 32 by priority" in found[2] and "priorities" in found[4]
    assert not any("priorit" in text for text in texts(7, replay="uniform"))
    # one arm stores 10 transitions, of which 128 uses each fill 20 batches of 64
    found = texts(1, batch_size=64)
    assert "20 batches" in found[2] and "20 gradient steps" in found[3]
