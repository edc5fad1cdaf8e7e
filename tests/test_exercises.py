"""The notebook's exercises: as they are given, with wrong answers, and with the solutions."""

from __future__ import annotations

import nbformat
import pytest

from reacher import ReacherVectorEnv
from tutorial.exercises import IN_USE
from tutorial.paths import NOTEBOOK

NAMES = (
    "my_policy my_targets my_soft_update MirroredCritic my_noise_probe my_networks "
    "my_n_step_target my_weights my_noise"
).split()


def cells_with(tag):
    """Sources of the code cells with a tag, in order."""
    return [
        cell.source
        for cell in nbformat.read(NOTEBOOK, as_version=4).cells
        if cell.cell_type == "code" and tag in cell.metadata.get("tags", ())
    ]


@pytest.fixture
def space(notebook, monkeypatch):
    """What a reader has when the cells of the exercises run."""
    monkeypatch.setattr(notebook, "seed", 0, raising=False)  # which its functions look up
    return {**vars(notebook), "environment": ReacherVectorEnv(20, 0), "num_agents": 20}


def name_of(source):
    (name,) = [name for name in NAMES if f" {name}(" in source]
    return name


def test_each_exercise_has_a_solution_in_the_same_order():
    given, solved = ([*map(name_of, cells_with(tag))] for tag in ("exercise", "solution"))
    assert given == solved == list(NAMES)


@pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)
def test_an_exercise_runs_as_given_and_asks_for_an_answer(space, capsys, number):
    """A gap gets no hint yet, which would tell the answer to somebody who only reads."""
    exec(cells_with("exercise")[number], space)
    said = capsys.readouterr().out
    assert "Hint:" not in said and "is right" not in said


@pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)
def test_a_solution_passes(space, capsys, number):
    exec(cells_with("exercise")[number] + "\n" + cells_with("solution")[number], space)
    assert f"Exercise {number + 1} is right" in capsys.readouterr().out


@pytest.mark.parametrize("number", [number - 1 for number in IN_USE])
def test_a_right_answer_is_not_replaced_by_the_solution(space, number):
    given, solution = cells_with("exercise")[number], cells_with("solution")[number]
    exec(given + "\n" + solution, space)
    answer = space[NAMES[number]]  # as a reader's own would be
    exec(given[given.rindex("\npassed") :] + "\n" + solution, space)
    assert space[NAMES[number]] is answer
    name = f"passed_{number + 1}"  # of its own, so that a solution can be run at any time
    assert f"\n{name} = exercises." in given and f"if not {name}:" in solution


CRITIC = """class MirroredCritic(PlainCritic):
    def __init__(self, scale, layers):
        super().__init__(scale, layers)
        self.frame = CanonicalFrame()

    def forward(self, observations, actions):
        signs, action_signs = self.frame(observations)
        return """
TARGETS = """def my_targets(batch, actor, critic):
    values = critic(batch.next_observations, actor(batch.next_observations))
    return """
WRONG = {
    "pulls the other way": (
        "my_policy = lambda s: np.tile(s[:, [15, 13]] - s[:, [28, 26]], 2).clip(-1, 1)"
    ),
    "no discount": TARGETS + "batch.rewards + values.detach()",
    "a gradient in the targets": TARGETS + "batch.rewards + batch.discounts * values",
    "downhill": (
        TARGETS + "batch.rewards + batch.discounts * values.detach()\n"
        "my_actor_loss = lambda s, actor, critic: critic(s, actor(s)).mean()"
    ),
    "both move": """def my_soft_update(target, online, tau):
    for old, new in zip(target.parameters(), online.parameters(), strict=True):
        old.data.lerp_(new, tau)
        new.data.lerp_(old, tau)""",
    "torques as they are": CRITIC + "super().forward(signs * observations, actions)",
    "a value with a side": (
        CRITIC + "signs[:, 26] * super().forward(signs * observations, action_signs * actions)"
    ),
    "an agent is sound": "my_noise_probe = lambda agent: True",
    "a blind critic": """def my_networks():
        actor, critic = normalized_networks()
        critic.factor[columns.EARNINGS] = 0
        return actor, critic""",
    "only the value": "my_n_step_target = lambda rewards, value, gamma: gamma**3 * value",
    "not divided": "my_weights = lambda probabilities, beta: probabilities**-beta",
    "without the sign": "my_noise = lambda x, y: np.outer(np.abs(y) ** 0.5, np.abs(x) ** 0.5)",
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_gets_a_hint(space, capsys, name):
    number = [exercise in WRONG[name] for exercise in NAMES].index(True)
    given = cells_with("exercise")[number]
    exec(given + "\n" + WRONG[name] + given[given.rindex("\n") :], space)
    said = capsys.readouterr().out
    assert "Hint:" in said and "is right" not in said
