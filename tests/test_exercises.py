"""The notebook's exercises: as they are given, with wrong answers, and with the solutions."""

import re

import numpy as np
import pytest

from small_training import code_cells
from tutorial import exercises
from tutorial.environments import open_environment

NAMES = (
    "my_policy my_targets my_soft_update my_n_step_return my_step_down my_noise "
    "MirroredCritic my_noise_probe my_networks"
).split()
GIVEN, SOLVED = code_cells("exercise"), code_cells("solution")
EACH = pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)


@pytest.fixture
def space(notebook, monkeypatch):
    """What a reader has when the cells of the exercises run."""
    monkeypatch.setattr(notebook, "seed", 0, raising=False)  # which its functions look up
    return {**vars(notebook), "environment": open_environment("", 20, 0), "num_agents": 20}


def test_each_exercise_has_a_solution():
    assert len(GIVEN) == len(SOLVED) == len(NAMES)


@EACH
def test_an_exercise_runs_as_given_and_asks_for_an_answer(space, capsys, number):
    """A gap gets no hint yet, which would tell the answer to somebody who only reads."""
    exec(GIVEN[number], space)
    said = capsys.readouterr().out
    assert "Hint:" not in said and "is right" not in said


@EACH
def test_a_solution_passes(space, capsys, number):
    exec(GIVEN[number] + "\n" + SOLVED[number], space)
    assert f"Exercise {number + 1} is right" in capsys.readouterr().out


@pytest.mark.parametrize("number", [*map(exercises.EXERCISES.index, exercises.IN_USE)])
def test_a_right_answer_is_not_replaced_by_the_solution(space, number):
    given, solution = GIVEN[number], SOLVED[number]
    exec(given + "\n" + solution, space)
    answer = space[NAMES[number]]  # as a reader's own would be
    exec(given[given.rindex("\npassed") :] + "\n" + solution, space)
    assert space[NAMES[number]] is answer
    name = f"passed_{number + 1}"  # of its own, so that a solution can be run at any time
    assert f"\n{name} = exercises." in given and f"if not {name}:" in solution


POLICY = """def my_policy(observations):
    forearm = observations[:, columns.FOREARM]
    to_goal = (observations[:, columns.GOAL] - forearm[:, columns.POSITION]) / 4
    turning = 0.3 * forearm[:, columns.ANGULAR_VELOCITY]
    about_x = -to_goal[:, 2] - turning[:, 0]
    about_z = """
TORQUES = "\n    return np.stack([about_x, about_z, about_x, about_z], axis=1).clip(-1, 1)"
TARGETS = """def my_targets(batch, actor, critic):
    seen, factor = batch.next_observations, batch.discounts
    return batch.rewards + """
LOSS = (
    TARGETS
    + """(factor * critic(seen, actor(seen))).detach()


def my_actor_loss(seen, actor, critic):
    return """
)
NO_GRADIENT = LOSS.replace("def my_actor_loss", "@torch.no_grad()\ndef my_actor_loss")
UPDATE = """@torch.no_grad()
def my_soft_update(target, online, tau):
    for old, new in zip(target.parameters(), online.parameters(), strict=True):
        """
CRITIC = """class MirroredCritic(PlainCritic):
    def __init__(self, scale, layers):
        super().__init__(scale, layers)
        self.frame = CanonicalFrame()

    def forward(self, observations, actions):
        signs, action_signs = self.frame(observations)
        return """
PROBE = "my_noise_probe = lambda agent: "
NETWORKS = """def my_networks(settings, task=ARMS):
    actor, critic = normalized_networks(settings)
    """
PAIR = "\n    return actor, critic"
RETURN = "my_n_step_return = lambda rewards, gamma: "
STEP = """def my_step_down(tree, nodes, values):
    left, others = 2 * nodes, 2 * nodes + 1
    right = values >= tree[left]
    return """
NOISE = "my_noise = lambda noise_in, noise_out: "
WRONG = [  # an answer, and what it is told
    (POLICY + "1 + 0 * to_goal[:, 0]" + TORQUES, "does not look where the goal is"),
    (POLICY + "-to_goal[:, 1] - turning[:, 1]" + TORQUES, "looks at the goal's height"),
    (POLICY + "-to_goal[:, 0] - turning[:, 2]" + TORQUES, "pushes the arm away"),
    (POLICY + "to_goal[:, 0] + turning[:, 2]" + TORQUES, "feeds the swinging"),
    ("my_policy = lambda observations: observations[:, :2]", "float32 of shape (20, 2)"),
    (TARGETS + "critic(seen, actor(seen)).detach()", "where does the discount go?"),
    (TARGETS + "factor * critic(batch.observations, actor(batch.observations))", "the first ones"),
    (TARGETS + "factor * critic(seen, actor(seen))", "stands still"),
    (TARGETS + "factor[:, None] * critic(seen, actor(seen))", "the shape should be (2,)"),
    (LOSS + "critic(seen, actor(seen)).mean()", "downhill"),
    (LOSS + "-critic(seen, actor(seen).detach()).mean()", "nothing flows back to the actor"),
    (NO_GRADIENT + "-critic(seen, actor(seen)).mean()", "nothing flows back to the actor"),
    (UPDATE + "old.lerp_(new, 1 - tau)", "tau is how far to go"),
    (UPDATE + "old.copy_(new)", "this copies at once"),
    (UPDATE + "old.add_(tau * new)", "has to replace something"),
    (UPDATE.replace("@torch.no_grad()\n", "") + "old.lerp_(new, tau)", "raised RuntimeError"),
    (CRITIC + "super().forward(signs * observations, actions)", "a torque points the other way"),
    (CRITIC + "super().forward(observations, action_signs * actions)", "the arm has to be"),
    (CRITIC + "super().forward(observations.abs(), actions.abs())", "forgets its side"),
    (CRITIC + "action_signs[:, 0] * super().forward(signs * observations, action_signs * actions)",
     "has a value got a side?"),
    (PROBE + "True", "it finds noise in both"),
    (PROBE + "len(np.unique(agent.act(np.random.rand(20, 33)), axis=0)) > 1", "noise in both"),
    (PROBE + "False", "it finds noise in neither"),
    (NETWORKS + "critic.factor[columns.EARNINGS] = 0" + PAIR, "the actor that should not"),
    (NETWORKS + "actor.factor[31] = critic.factor[31] = 0" + PAIR, "should still see"),
    (NETWORKS + "actor.factor *= 0" + PAIR, "needs all the rest"),
    (RETURN + "sum(rewards)", "counts less, the later it comes"),
    (RETURN + "sum(gamma**k * x for k, x in enumerate(rewards, 1))", "is not discounted"),
    (RETURN + "sum(gamma**k * x for k, x in enumerate(rewards[::-1]))", "is the nearest one"),
    (RETURN + "gamma ** len(rewards) * sum(rewards)", "a power of its own"),
    (RETURN + "'0.5'", "raised TypeError: the answer should be numbers"),
    (STEP + "left + right, values", "the left sum is left behind"),
    (STEP + "left + right, values - right * tree[others]", "what lies to the left"),
    (STEP.replace(">=", "<") + "left + right, values - right * tree[left]", "lies to the left"),
    (STEP.replace(">=", ">") + "left + right, values - right * tree[left]", "not its upper one"),
    (NOISE + "torch.outer(noise_out.abs().sqrt(), noise_in.abs().sqrt())", "where is the sign?"),
    (NOISE + "torch.outer(noise_out.sqrt(), noise_in.sqrt())", "a negative number has no root"),
    (NOISE + "torch.outer(signed_root(noise_in), signed_root(noise_out))", "outputs are the rows"),
]  # fmt: skip


def exercise_of(source):
    return next(k for k, name in enumerate(NAMES) if re.search(rf"\b{name}\b", source))


@pytest.mark.parametrize("source, told", WRONG, ids=[told for _, told in WRONG])
@pytest.mark.filterwarnings("ignore")  # of what goes wrong in an answer
def test_a_wrong_answer_is_told_its_mistake(space, capsys, source, told):
    given = GIVEN[exercise_of(source)]
    exec(given, space)
    capsys.readouterr()
    exec(source + given[given.rindex("\n") :], space)
    said = " ".join(capsys.readouterr().out.split())
    assert told in said and "is right" not in said
    if "raised" not in said:
        assert "Hint:" in said


def test_every_exercise_has_three_wrong_answers_here():
    counts = np.bincount([exercise_of(source) for source, _ in WRONG])
    assert (counts >= 3).all() and len(counts) == len(NAMES)


def test_an_exception_is_told_with_the_line_that_raised_it(tmp_path, capsys):
    """As the reader's, and not from within the check."""
    path = tmp_path / "answer.py"
    path.write_text("def my_n_step_return(rewards, discount):\n    return rewards / 2\n")
    names = {}
    exec(compile(path.read_text(), path, "exec"), names)
    assert not exercises.check_n_step(names["my_n_step_return"])
    said = " ".join(capsys.readouterr().out.split())
    assert "your function raised TypeError: unsupported operand" in said
    assert said.endswith("in its line 'return rewards / 2'.")
