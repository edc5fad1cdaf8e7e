"""The notebook's exercises: as they are given, with wrong answers, and with the solutions."""

from __future__ import annotations

import nbformat
import numpy as np
import pytest

from reacher import ReacherEnvironment
from tutorial import exercises
from tutorial.paths import NOTEBOOK

NAMES = "policy target actor_loss step signs n_step_target probe weights noise".split()
NAMES = [f"my_{name}" for name in NAMES]


def cells_with(tag):
    """Sources of the code cells with a tag, in order."""
    return [
        cell.source
        for cell in nbformat.read(NOTEBOOK, as_version=4).cells
        if cell.cell_type == "code" and tag in cell.metadata.get("tags", ())
    ]


@pytest.fixture
def space(notebook):
    """What a reader has when the cells of the exercises run."""
    with ReacherEnvironment(num_agents=20, seed=0) as environment:
        yield {**vars(notebook), "environment": environment, "num_agents": 20, "seed": 0}


def name_of(source):
    (name,) = [name for name in NAMES if f"def {name}(" in source]
    return name


def test_each_exercise_has_a_solution_in_the_same_order():
    given, solved = ([*map(name_of, cells_with(tag))] for tag in ("exercise", "solution"))
    assert given == solved == list(NAMES)


@pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)
def test_an_exercise_runs_as_given_and_asks_for_an_answer(space, capsys, number):
    """A gap gets no hint yet, which would tell the answer to somebody who only reads."""
    exec(cells_with("exercise")[number], space)
    said = capsys.readouterr().out
    assert "Hint: " not in said and "is right" not in said


@pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)
def test_a_solution_passes_in_place_of_the_gap(space, capsys, number):
    """With the function of the solution in the cell of the exercise, whose check comes last."""
    given, solution = cells_with("exercise")[number], cells_with("solution")[number]
    answer = solution[: solution.index("\n\n\n")]
    check = given[given.index("\n\n\n") :]
    exec(answer + check, space)
    assert f"Exercise {number + 1} is right" in capsys.readouterr().out


WRONG = {
    "pulls the other way": (
        "policy",
        lambda seen: np.tile(seen[:, [15, 13]] - seen[:, [28, 26]], 2).clip(-1, 1),
    ),
    "no discount": ("target", lambda reward, discount, value: reward + value),
    "downhill": ("actor_loss", lambda s, actor, critic: critic(s, actor(s)).mean()),
    "a new tensor": ("step", lambda old, new, tau: old + tau * (new - old)),
    "as a position": ("mirror", lambda x, z: [x, 1, z]),
    "only the value": ("n_step", lambda rewards, value, gamma: gamma ** len(rewards) * value),
    "not divided": ("weights", lambda probabilities, beta: probabilities**-beta),
    "without the sign": ("noise", lambda x, y: np.outer(np.abs(y) ** 0.5, np.abs(x) ** 0.5)),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_gets_a_hint(space, capsys, name):
    exercise, answer = WRONG[name]
    check = getattr(exercises, f"check_{exercise}")
    given = (space["environment"], answer) if exercise == "policy" else (answer,)
    check(*given)
    said = capsys.readouterr().out
    assert "Hint: " in said and "is right" not in said
