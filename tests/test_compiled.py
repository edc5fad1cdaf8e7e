"""The compiled learner beside PyTorch's: the same numbers, up to rounding, and the same edits.

How far may two float32 computations of the same formulas drift apart? Move every weight of the
PyTorch learner to a neighbouring float32 number and train both: what these two differ by after k
steps is what a single rounding of the start grows to. The engines round differently in each of
about ten operations, one after the other, of every step (products, normalisations, activations,
the optimiser), so `ROOM` times as much is allowed, and a few roundings of the largest weight, in
case a rounding of the start should happen to fade. Where rounding lets a silent ReLU wake in one
engine only, Adam (averages of 0.9 and 0.999) moves its weights by up to ten learning rates; edits
are therefore compared after few steps.
"""

from __future__ import annotations

import ast
import copy
import os
import subprocess
import sys
import textwrap
import time

import nbformat
import numpy as np
import pytest
import torch

import small_training
from tutorial.paths import NOTEBOOK, PROJECT
from tutorial.training import compiled, saving
from tutorial.training.environments import open_environment
from tutorial.training.randomness import seed_everything

SCALE = np.array([1.0, 2.0, 4.0], dtype=np.float32)  # of three observations
ACTIONS, BATCH, WIDTH = 2, 16, 2 * 3 + 2 + 2
SMALL = {
    "actor_hidden": (16, 16),
    "critic_hidden": (16, 16),
    "batch_size": BATCH,
    "learning_starts": 20,
    "replay_capacity": 1000,
}
ROOM = 30  # ten operations, and the two neighbours of a number are both possible, and luck
ROUNDING = 2.0**-24  # relative, float32

PLAIN = {
    "actor_normalization": "none",
    "critic_normalization": "none",
    "input_normalization": "none",
    "noisy_layers": False,
}
OPTIONS = [
    {},
    PLAIN | {"critic_hidden": (16, 8, 16), "critic_action_layer": 3},
    {"input_normalization": "none", "actor_normalization": "none", "critic_action_layer": 2},
    {"critic_normalization": "none", "noisy_layers": False, "negative_slope": 0.1},
    {
        "actor_hidden": (8, 4, 6),
        "critic_hidden": (8,),
        "initialization": "fan_in",
        "zero_target_critic": True,
        "tau": 1.0,
    },
    {"actor_hidden": (1,), "critic_hidden": (1, 1), "weight_decay": 0.01},
    {
        "actor_gradient_clip": 0.05,
        "critic_gradient_clip": 0.1,
        "weight_decay": 0.01,
        "actor_learning_rate": 1e-4,
        "critic_learning_rate": 3e-3,
    },
    {"actor_hidden": (128, 128), "critic_hidden": (128, 128), "batch_size": 64, "tau": 1e-3},
]


def make_ddpg(notebook, defaults, seed=0, **overrides):
    torch.manual_seed(seed)
    return notebook.DDPG(SCALE, ACTIONS, defaults(**{**SMALL, **overrides}))


def make_rows(size=BATCH, seed=0):
    """Transitions, one of them terminal."""
    rows = np.random.default_rng(seed).standard_normal((size, WIDTH), np.float32)
    rows[:, 3:5] = np.tanh(rows[:, 3:5])
    rows[:, 6] = 0.9
    rows[0, 6] = 0.0
    return rows


def train(learner, steps, begin=1, phase=10):
    """Learn in phases; return TD errors (steps, batch) and losses (steps, 2)."""
    found = []
    for first in range(begin, begin + steps, phase):
        numbers = range(first, min(first + phase, begin + steps))
        chance = [np.random.default_rng([1, number]) for number in numbers]
        size, noise_size = learner.ddpg.settings.batch_size, learner.ddpg.noise_size
        found.append(
            learner.learn_phase(
                np.stack([make_rows(size, number) for number in numbers]),
                np.stack([each.uniform(0.1, 1.0, size).astype(np.float32) for each in chance]),
                np.stack([each.standard_normal((1, noise_size), np.float32) for each in chance]),
                np.array(numbers) % 2 == 0,
            )
        )
    learner.synced()
    return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))


def neighbour(ddpg, seed=0):
    """A copy with every weight moved to a neighbouring number, up or down."""
    moved = copy.deepcopy(ddpg)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for network in compiled.trained_networks(moved).values():
            for parameter in network.parameters():
                up = torch.rand(parameter.shape, generator=generator) < 0.5
                infinite = torch.where(up, torch.inf, -torch.inf)
                parameter.copy_(torch.nextafter(parameter, infinite))
    return moved


def differences(one, other):
    """The largest difference of each network."""
    return {
        name: max(
            (a - b).abs().max().item()
            for a, b in zip(network.parameters(), getattr(other, name).parameters(), strict=True)
        )
        for name, network in compiled.networks(one).items()
    }


def same_bits(one, other):
    one, other = saving.learner_tensors(one), saving.learner_tensors(other)
    assert one.keys() == other.keys()
    return all(torch.equal(one[name], other[name]) for name in one)


# ---------------------------------------------------------------------------------- same numbers


@pytest.mark.parametrize("overrides", OPTIONS, ids=str)
def test_both_engines_learn_the_same(notebook, defaults, overrides):
    """Every network, after 1 compiled step and after 100, as far apart as roundings are."""
    base = compiled.Learner(make_ddpg(notebook, defaults, **overrides))
    train(base, 2)  # optimisers have their averages: from here on all can be compiled
    plain = compiled.Learner(copy.deepcopy(base.ddpg))
    moved = compiled.Learner(neighbour(base.ddpg))
    learner = compiled.CompiledLearner(copy.deepcopy(base.ddpg))
    for begin, steps in ((3, 1), (4, 99)):
        results = [train(each, steps, begin, phase=33) for each in (plain, moved, learner)]
        allowed, found = (differences(plain.ddpg, each.ddpg) for each in (moved, learner))
        for name, network in compiled.networks(plain.ddpg).items():
            largest = max(parameter.abs().max().item() for parameter in network.parameters())
            assert found[name] <= ROOM * (allowed[name] + ROUNDING * largest), (name, steps)
        scale = np.abs(results[0][0]).max()
        for k, bound in enumerate((scale, 1 + scale**2)):
            np.testing.assert_allclose(
                results[2][k], results[0][k], rtol=0, atol=ROOM * 100 * ROUNDING * bound
            )
    assert learner.engine == "compiled"


@pytest.mark.parametrize("overrides", OPTIONS, ids=str)
def test_both_engines_act_and_rate_the_same(notebook, defaults, overrides):
    """With the mean weights, with one row of noise for all, and with a row for each."""
    learner = compiled.CompiledLearner(make_ddpg(notebook, defaults, **overrides))
    plain, rows = compiled.Learner(learner.ddpg), make_rows(20)
    noise = np.random.default_rng(0).standard_normal((20, plain.ddpg.noise_size), np.float32)
    for given in ((), (noise[:1],), (noise,)):
        expected, found = (each.act(rows[:, :3].copy(), *given) for each in (plain, learner))
        assert found.shape == (20, ACTIONS) and found.dtype == np.float32
        # A sum of n products errs by n roundings of its terms at most, and three layers follow
        # each other; terms are of the order of 1 to 10 here.
        np.testing.assert_allclose(found, expected, rtol=0, atol=3 * 10 * 128 * ROUNDING)
    expected, found = (each.td_errors(rows) for each in (plain, learner))
    assert found.shape == (20,) and found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=0, atol=3 * 10 * 128 * ROUNDING)


@pytest.mark.skipif(sys.platform != "linux", reason="what other systems do was not looked at")
def test_a_phase_is_computed_in_the_thread_that_calls(notebook, defaults):
    """On another core it takes a quarter longer. Shares of processor time, no times: a phase in a
    second thread leaves about a tenth of it to the one that calls."""
    settings = defaults()
    learner = compiled.CompiledLearner(notebook.DDPG(np.ones(33, np.float32), 4, settings))
    if "xla_cpu_scheduler_type" not in compiled.options():
        pytest.skip("this version of JAX's compiler has no option for it")
    chance, steps, batch = np.random.default_rng(0), settings.gradient_steps, settings.batch_size
    rows = chance.standard_normal((steps, batch, 72), np.float32)
    noise = chance.standard_normal((steps, 1, learner.ddpg.noise_size), np.float32)

    def learn():
        ones = np.ones((steps, batch), np.float32)
        learner.learn_phase(rows, ones, noise, np.ones(steps, bool))
        learner.td_errors(rows.reshape(-1, 72)[:200])

    learn(), learn()  # PyTorch's, and one that compiles
    before = time.thread_time(), time.process_time()
    for _ in range(20):
        learn()
    assert time.thread_time() - before[0] > 0.5 * (time.process_time() - before[1])


# ------------------------------------------------------------------------------- edits of the cells

CELLS = ("cell-076", "cell-088", "cell-090", "cell-094", "cell-110", "cell-124", "e781992f")
SOURCE = "\n\n\n".join(cell.source for cell in nbformat.read(NOTEBOOK, 4).cells if cell.id in CELLS)


def edited(notebook, *replacements):
    """A DDPG of the notebook's cells with other text in some places."""
    code = SOURCE
    for old, new in replacements:
        assert code.count(old) == 1, old
        code = code.replace(old, new)
    space = dict(vars(notebook))
    exec(compile(code, "the edited cells", "exec"), space)
    return space["DDPG"]


def activation(new):
    return ("layers.activation(settings)", new)


def normalization(new):
    return ("layers.normalization(normalization, outputs)", new)


def loss(new):
    return ("(weights * td_errors.square()).mean()", new)


def element_loss(name):
    return loss(f"(weights * F.{name}(td_errors, 0 * td_errors, reduction='none')).mean()")


def target(new):
    old = "batch.returns + batch.discounts * target_critic(batch.next_observations, next_actions)"
    return (old, f"({old}){new}")


def climbed(new):
    return ("-critic(observations, actor(observations, noise)).mean()", new)


def optimizer(new):
    return (
        "torch.optim.Adam(network.parameters(), weight_decay=settings.weight_decay)",
        f"torch.optim.{new}",
    )


def moving(new):
    return ("old.lerp_(new, tau)", new)


def in_step(new):
    old = "        loss_of_actor = torch.zeros(())  # where it waits\n"
    return (old, textwrap.indent(textwrap.dedent(new), 8 * " ") + "\n" + old)


def td3(smoothing):
    """A second critic, smoothed target actions, and targets that follow with the actor."""
    return (
        (
            "        self.actor_optimizer, self",
            "        self.critic_2 = Critic(observation_scale, action_size, settings)\n"
            "        self.target_critic_2 = layers.target_copy(self.critic_2)\n"
            "        self.critic_2_optimizer = torch.optim.Adam(self.critic_2.parameters())\n"
            "        self.actor_optimizer, self",
        ),
        (
            "self.target_actor, self.target_critic)\n        errors = td_error(batch, self.critic, "
            "targets)\n        loss",
            f"""self.target_actor, lambda s, a: torch.minimum(
            self.target_critic(s, b := (a + {smoothing}).clamp(-1, 1)), self.target_critic_2(s, b)))
        second = critic_loss(td_error(batch, self.critic_2, targets), weights)
        descend(second, self.critic_2_optimizer)
        errors = td_error(batch, self.critic, targets)
        loss""",
        ),
        (
            "        soft_update(self.target_critic, self.critic, settings.tau)\n",
            "        if with_actor:\n"
            "            soft_update(self.target_critic, self.critic, settings.tau)\n"
            "            soft_update(self.target_critic_2, self.critic_2, settings.tau)\n",
        ),
    )


COMPILED = {
    "SiLU": [activation("nn.SiLU()")],
    "GELU": [activation("nn.GELU()")],
    "GELU by tanh": [activation("nn.GELU(approximate='tanh')")],
    "tanh": [activation("nn.Tanh()")],
    "sigmoid": [activation("nn.Sigmoid()")],
    "ELU": [activation("nn.ELU()")],
    "SELU": [activation("nn.SELU()")],
    "softplus": [activation("nn.Softplus()")],
    "Mish": [activation("nn.Mish()")],
    "hard tanh": [activation("nn.Hardtanh()")],
    "hard swish": [activation("nn.Hardswish()")],
    "PReLU": [activation("nn.PReLU()")],
    "RMSNorm": [normalization("nn.RMSNorm(outputs)")],
    "no bias": [normalization("nn.LayerNorm(outputs, bias=False)")],
    "no weights": [normalization("nn.LayerNorm(outputs, elementwise_affine=False)")],
    "third layer": [
        ("enumerate(settings.critic_hidden, start=1)", "enumerate((16, 16, 8), start=1)")
    ],
    "Huber": [element_loss("huber_loss")],
    "smooth L1": [element_loss("smooth_l1_loss")],
    "L1": [element_loss("l1_loss")],
    "log cosh": [loss("(weights * td_errors.cosh().log()).mean()")],
    "einsum": [loss("torch.einsum('b,b,b,b->', weights, weights, td_errors, td_errors)")],
    "weights of sum 1": [loss("(weights * td_errors.square()).sum() / weights.sum()")],
    "clamped targets": [target(".clamp(-0.5, 0.5)")],
    "penalty on actions": [
        climbed(
            "(a := actor(observations, noise)).square().mean() - critic(observations, a).mean()"
        )
    ],
    "normalised values": [
        climbed(
            "-(q := critic(observations, actor(observations, noise))).mean()"
            " / q.abs().mean().detach()"
        )
    ],
    "penalty on weights": [
        climbed(
            "sum(p.square().sum() for p in actor.parameters())"
            " - critic(observations, actor(observations, noise)).mean()"
        )
    ],
    "hard targets": [moving("old.copy_(new)")],
    "targets by products": [moving("old.mul_(1 - 2 * tau).add_(2 * tau * new)")],
    "targets by data": [moving("old.data.copy_(old.data * 0.9 + new.data * 0.1)")],
    "another tau": [
        ("self.target_actor, self.actor, settings.tau)", "self.target_actor, self.actor, 0.5)")
    ],
    "clipped values": [
        (
            "    optimizer.step()",
            "    nn.utils.clip_grad_value_(optimizer.param_groups[0]['params'],"
            " 1e-4)\n    optimizer.step()",
        )
    ],
    "autograd.grad": [
        (
            "    loss.backward()",
            "    ps = optimizer.param_groups[0]['params']\n"
            "    for p, g in zip(ps, torch.autograd.grad(loss, ps)):\n        p.grad = g.sign()",
        )
    ],
    "Adam, other betas": [optimizer("Adam(network.parameters(), betas=(0.5, 0.99), eps=1e-3)")],
    "AMSGrad": [optimizer("Adam(network.parameters(), amsgrad=True, eps=1e-2)")],
    "Adam, foreach": [optimizer("Adam(network.parameters(), foreach=True, eps=1e-2)")],
    "AdamW": [optimizer("AdamW(network.parameters(), weight_decay=0.1)")],
    "SGD": [optimizer("SGD(network.parameters())")],
    "SGD, momentum": [optimizer("SGD(network.parameters(), momentum=0.9, nesterov=True)")],
    "RMSprop": [optimizer("RMSprop(network.parameters(), centered=True, momentum=0.5)")],
    "Adagrad": [optimizer("Adagrad(network.parameters())")],
    "Adamax": [optimizer("Adamax(network.parameters())")],
    "NAdam": [optimizer("NAdam(network.parameters())")],
    "two groups": [
        optimizer(
            "Adam([{'params': list(network.parameters())[:3], 'weight_decay': 0.1},"
            " {'params': list(network.parameters())[3:]}])"
        )
    ],
    "no f": [("self.epsilon.sign() * self.epsilon.abs().sqrt()", "self.epsilon")],
    "rates": [("factor * self.settings.critic_learning_rate", "0.1 * factor")],
    "TD3 without smoothing": td3("0"),
}


@pytest.fixture(scope="module")
def unedited(notebook, defaults):
    """What the cells as they stand learn, act and rate."""
    return outcome(compiled.Learner(make_ddpg(notebook, defaults)))


def outcome(learner):
    """TD errors and losses of three phases, and then actions and TD errors."""
    rows, found = make_rows(20), train(learner, 9, phase=3)
    return [*found, learner.act(rows[:, :3].copy()), learner.td_errors(rows)]


@pytest.mark.parametrize("name", COMPILED)
def test_an_edit_is_compiled_and_counts(notebook, defaults, unedited, name):
    """It learns as PyTorch does with the same edit, and unlike the cells as they stand."""
    kind = edited(notebook, *COMPILED[name])
    learners = []
    for engine in (compiled.Learner, compiled.CompiledLearner):
        torch.manual_seed(0)
        learners.append(engine(kind(SCALE, ACTIONS, defaults(**SMALL))))
    expected, found = map(outcome, learners)
    assert learners[1].engine == "compiled"
    for one, other, before in zip(expected, found, unedited, strict=True):
        scale = max(1, np.abs(one).max())
        np.testing.assert_allclose(other, one, rtol=0, atol=ROOM * 9 * ROUNDING * scale)
        largest = np.abs(one - before).max()
        assert largest > 10 * np.abs(one - other).max() and largest > 1e-7, "the edit counts"


@pytest.mark.parametrize(
    "replacement, name",
    [
        (
            ("return self.actor(observations, noise)", "return 0.5 * self.actor(observations)"),
            "act",
        ),
        (("return td_error(batch, self.critic, targets)", "return 0 * rows[:, 0]"), "td_errors"),
    ],
    ids=["act", "td_errors"],
)
def test_acting_and_rating_are_the_readers_own(notebook, defaults, replacement, name):
    torch.manual_seed(0)
    ddpg = edited(notebook, replacement)(SCALE, ACTIONS, defaults(**SMALL))
    learner, rows = compiled.CompiledLearner(ddpg), make_rows()
    rows = rows[:, :3].copy() if name == "act" else rows
    expected = getattr(ddpg, name)(torch.from_numpy(rows)).numpy()
    np.testing.assert_allclose(getattr(learner, name)(rows), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "edit",
    [td3("0.1 * torch.randn_like(a)"), [normalization("nn.Dropout()")]],
    ids=["TD3", "dropout"],
)
def test_random_operations_are_drawn_anew_in_every_step_and_kept(notebook, defaults, edit):
    """From PyTorch's generator, so that one seed gives one training, resumed or not."""
    outcomes = []
    for seed, cut in ((0, False), (0, True), (1, False)):
        torch.manual_seed(0)
        ddpg = edited(notebook, *edit)(SCALE, ACTIONS, defaults(**SMALL))
        learner = compiled.CompiledLearner(ddpg)
        torch.manual_seed(seed)
        train(learner, 20)
        if cut:  # as a resumed training does
            learner.synced(), learner.take_over()
        errors, _ = train(learner, 10, begin=21)
        assert learner.engine == "compiled"
        outcomes.append(errors)
    np.testing.assert_array_equal(outcomes[0], outcomes[1])
    assert not np.array_equal(outcomes[0], outcomes[2])
    rows = np.stack([make_rows()] * 4)
    learner.ddpg.settings = defaults(**SMALL, tau=1e-9)
    learner.ddpg.set_learning_rates(0.0)  # nothing changes between two steps but what is drawn
    ones, noise = np.ones((4, BATCH), np.float32), np.zeros((4, 1, learner.ddpg.noise_size))
    errors, _ = learner.learn_phase(rows, ones, noise.astype(np.float32), np.zeros(4, bool))
    assert learner.engine == "compiled" and len({row.tobytes() for row in errors}) == 4


LEFT_TO_PYTORCH = {
    "no translation": ([normalization("nn.GroupNorm(4, outputs)")], "Actor.forward"),
    "type": ([loss("td_errors.double().square().mean().float()")], "torch.float64"),
    "print": ([in_step("print('step')")], "something is printed in DDPG.learn"),
    "item": ([in_step("if loss_of_critic.item() > 1e9: pass")], "(item) in DDPG.learn"),
    "branch": ([in_step("if loss_of_critic > 1e9: pass")], "(__bool__) in DDPG.learn"),
    "numpy": ([loss("td_errors.square().mean() * float(weights.numpy().mean())")], "critic_loss"),
    "counter": ([in_step("self.count = getattr(self, 'count', 0) + 1")], "changes self.count"),
    "list": (
        [
            ("class DDPG", "CURVE = []\n\n\nclass DDPG"),
            in_step("CURVE.append(loss_of_critic.detach())"),
        ],
        "changes CURVE",
    ),
    "NumPy's chance": ([loss("td_errors.square().mean() * np.random.rand()")], "different things"),
    "memory": (
        [
            in_step("""
        self.mean = 0.9 * getattr(self, "mean", 0) + 0.1 * errors.detach()
        soft_update(self.target_critic, self.critic, 0)
        self.critic.output.bias.data += 1e-3 * self.mean.mean()""")
        ],
        "different things",
    ),
    "gradients that add up": ([("    optimizer.zero_grad()\n", "")], "outside of the networks"),
    "a rate that falls": (
        [in_step("self.critic_optimizer.param_groups[0]['lr'] *= 0.99")],
        "a learning rate",
    ),
    "RAdam": ([optimizer("RAdam(network.parameters())")], "descend"),
    "a mask": (
        [
            (
                "    return targets - critic",
                "    targets[targets < 0] *= 0.5\n    return targets - critic",
            )
        ],
        "td_error",
    ),
}


@pytest.mark.parametrize("name", LEFT_TO_PYTORCH)
def test_what_cannot_be_compiled_is_told_in_a_line_and_left_to_pytorch(
    notebook, defaults, capsys, name
):
    edit, told = LEFT_TO_PYTORCH[name]
    outcomes = []
    for engine in ("torch", "auto"):
        torch.manual_seed(0), np.random.seed(0)
        ddpg = edited(notebook, *edit)(SCALE, ACTIONS, defaults(**SMALL))
        capsys.readouterr()
        learner = compiled.learner(ddpg, engine)
        lines = capsys.readouterr().out.splitlines()
        assert learner.engine == "torch"
        outcomes.append(outcome(learner))
        assert ("step" in capsys.readouterr().out) == (name == "print")
    for one, other in zip(*outcomes, strict=True):
        np.testing.assert_array_equal(one, other)
    [line] = lines
    assert line.startswith("engine: torch, because ") and told in line and "six times" in line
    with pytest.raises(ValueError, match="engine = 'compiled' cannot be: .*choose 'torch'"):
        compiled.learner(ddpg, "compiled")


@pytest.mark.parametrize(
    "edit, error, message",
    [
        (in_step("raise RuntimeError('mine')"), RuntimeError, "^mine$"),
        (("self.output(x).squeeze(1)", "self.output(x)"), ValueError, r"must return .*\(16, 16\)"),
        (("        return errors.detach(),", "        errors.detach(),"), ValueError, "NoneType"),
        (
            ("self.critic_optimizer, settings", "self.criticoptimizer, settings"),
            AttributeError,
            "criticoptimizer",
        ),
    ],
    ids=["raises", "shape", "no return", "name"],
)
def test_a_readers_mistake_is_told_in_its_own_words(notebook, defaults, edit, error, message):
    ddpg = edited(notebook, edit)(SCALE, ACTIONS, defaults(**SMALL))
    for engine in ("torch", "auto", "compiled"):
        with pytest.raises(error, match=message):
            train(compiled.learner(ddpg, engine), 1)


def test_what_changes_between_two_phases_is_recorded_anew(notebook, defaults, capsys):
    plain = compiled.Learner(make_ddpg(notebook, defaults))
    learner = compiled.CompiledLearner(copy.deepcopy(plain.ddpg), strict=False)
    for number, decay in enumerate((0.0, 0.1, 0.1, 0.2)):
        for each in (plain, learner):
            each.ddpg.critic_optimizer.param_groups[0]["weight_decay"] = decay
            each.ddpg.set_learning_rates(1 / (1 + number))
            train(each, 4, begin=1 + 4 * number)
        assert max(differences(plain.ddpg, learner.ddpg).values()) < 1e-5
    assert learner.engine == "compiled"
    for decay in np.linspace(0.3, 0.9, 9):  # again and again: then it is quicker not to
        learner.ddpg.critic_optimizer.param_groups[0]["weight_decay"] = decay
        train(learner, 2)
    assert learner.engine == "torch" and "from phase to phase" in capsys.readouterr().out


def test_an_edited_loss_shows_in_the_next_training(notebook, tmp_path, monkeypatch, capsys):
    """The cells from 4.7 on are run again with Huber's loss, and then section 6, engine "auto"."""
    small_training.shrink(monkeypatch.setattr)
    cells = [cell for cell in nbformat.read(NOTEBOOK, 4).cells if cell.cell_type == "code"]
    begin = [cell.id for cell in cells].index("cell-094")
    trees = [ast.parse(cell.source) for cell in cells[begin:]]
    code = "\n\n".join(
        ast.unparse(statement)
        for tree in trees
        for statement in tree.body
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef))
    )
    old, new = element_loss("huber_loss")
    new = new.replace("'none'", "'none', delta=0.01")
    assert code.count(old) == 1
    scores, quick = {}, {"gradient_steps": 10, "action_noise": "none", "batch_size": 8}
    quick |= {"actor_learning_rate": 0.01, "critic_learning_rate": 0.01}
    for name, loss, engine in (
        ("as it stands", old, "auto"),
        ("Huber", new, "auto"),
        ("with PyTorch", new, "torch"),
    ):
        space = dict(vars(notebook))
        exec(code.replace(old, loss), space)
        settings = notebook.make_hyperparameters("default", small_training.SMALL | quick)
        generator = seed_everything(0)
        agent = space["Agent"](
            notebook.OBSERVATION_SCALE, 4, small_training.ARMS, settings, generator, engine=engine
        )
        environment = open_environment("", small_training.ARMS, 0)
        scores[name] = space["train_agent"](environment, agent, tmp_path / name, 8)
        assert agent.engine == ("torch" if engine == "torch" else "compiled")
    assert "engine: compiled" in capsys.readouterr().out
    np.testing.assert_array_equal(scores["Huber"][:4], scores["with PyTorch"][:4])  # in steps
    assert np.abs(np.subtract(scores["as it stands"], scores["Huber"])).max() > 1e-3


# ------------------------------------------------------------------------- one format, same bits


@pytest.mark.parametrize(
    "edit",
    [(), [optimizer("SGD(network.parameters(), momentum=0.9)")], td3("0")],
    ids=["as it stands", "SGD", "TD3"],
)
def test_a_restored_learner_goes_on_bit_for_bit(notebook, defaults, edit):
    """Whatever networks and optimisers it has; with the other engine, up to rounding."""

    def make(seed):
        torch.manual_seed(seed)
        return edited(notebook, *edit)(SCALE, ACTIONS, defaults(**SMALL))

    learner, others = compiled.CompiledLearner(make(0)), [make(1), make(2)]
    train(learner, 5, phase=2)
    for other in others:
        saved = saving.learner_tensors(learner.ddpg)
        saving.restore_learner(other, {name: tensor.clone() for name, tensor in saved.items()})
        assert same_bits(learner.ddpg, other)
    resumed, plain = compiled.CompiledLearner(others[0]), compiled.Learner(others[1])
    for each in (learner, resumed, plain):
        train(each, 5, begin=6)
    assert same_bits(learner.ddpg, resumed.ddpg) and resumed.newer is False
    assert all(0 < value < 1e-5 for value in differences(learner.ddpg, plain.ddpg).values())


def test_taking_over_and_writing_back_changes_no_bit(notebook, defaults):
    plain = compiled.Learner(make_ddpg(notebook, defaults))
    for steps in (0, 1, 3):  # without averages, those of the critic alone, and all
        if steps:
            train(plain, steps)
        before = copy.deepcopy(plain.ddpg)
        learner = compiled.CompiledLearner(plain.ddpg)
        learner.load()
        learner.newer = True
        assert same_bits(before, learner.synced())


def test_a_number_that_is_none_is_seen(notebook, defaults):
    learner = compiled.CompiledLearner(make_ddpg(notebook, defaults))
    train(learner, 4, phase=2)
    assert learner.is_finite()
    rows = np.stack([make_rows()] * 2)
    rows[1, 3, 5] = np.inf
    ones, noise = np.ones((2, BATCH), np.float32), np.zeros((2, 1, learner.ddpg.noise_size))
    found = learner.learn_phase(rows, ones, noise.astype(np.float32), np.array([False, True]))
    assert not any(np.isfinite(values[1]).all() for values in found)
    assert learner.newer and not learner.is_finite()
    assert not compiled.Learner(learner.synced()).is_finite()


def in_another_process(code, **environment):
    """Output of a program that has the notebook's definitions."""
    program = f"""
        import sys
        sys.path[:0] = [{str(PROJECT)!r}, {str(PROJECT / "tests")!r}]
        from tutorial.notebook import definitions
    """
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "error::UserWarning",
            "-c",
            textwrap.dedent(program) + textwrap.dedent(code),
        ],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        cwd=PROJECT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


DIGEST = """
    import hashlib
    import test_compiled as t
    notebook = definitions()
    defaults = lambda **overrides: notebook.make_hyperparameters("default", overrides)
    ddpg = t.make_ddpg(notebook, defaults, actor_hidden=(128, 128), critic_hidden=(128, 128))
    learner = t.compiled.CompiledLearner(ddpg)
    t.train(learner, 20)
    digest = hashlib.sha256()
    for name, tensor in t.saving.learner_tensors(ddpg).items():
        digest.update(tensor.numpy().tobytes())
    noise = t.np.ones((20, ddpg.noise_size), t.np.float32)
    digest.update(learner.act(t.make_rows(20)[:, :3].copy(), noise).tobytes())
    digest.update(learner.td_errors(t.make_rows(20)).tobytes())
    print(digest.hexdigest())
"""


def test_two_processes_compute_the_same_bits():
    outputs = [in_another_process(DIGEST)[0] for _ in range(2)]
    assert outputs[0] == outputs[1] and len(outputs[0]) == 65


# ------------------------------------------------------------------------- where it cannot be used


USE_TORCH = """
    from tutorial.training import compiled
    assert "jax" not in sys.modules
    notebook = definitions()
    settings = notebook.make_hyperparameters("default", {})
    agent = notebook.Agent(notebook.OBSERVATION_SCALE, 4, 2, settings,
                           notebook.np.random.default_rng(0))
    agent.act(notebook.np.zeros((2, 33), notebook.np.float32))
    assert "jax" not in sys.modules
    print(compiled.why_no_jax())
"""


def test_nothing_of_jax_is_imported_before_it_is_used():
    assert in_another_process(USE_TORCH)[0] == "None\n"


@pytest.mark.parametrize(
    "content, reason",
    [
        (None, "JAX is not installed (no module named 'jax'): pip install jax"),
        (
            "import jaxlib_that_is_not_there",
            "JAX is not installed (no module named 'jaxlib_that_is_not_there'): pip install jax",
        ),
        (
            "raise RuntimeError('jaxlib is version 1, but\\n2 is needed')",
            "JAX is installed but does not work: RuntimeError: jaxlib is version 1, but",
        ),
        (
            "",
            "JAX is installed but does not work: AttributeError: module 'jax' has no attribute "
            "'config'",
        ),
        ("raise SystemError", "JAX is installed but does not work: SystemError: "),
    ],
)
def test_pytorch_trains_without_a_jax_that_works(tmp_path, content, reason):
    if content is None:  # as if there were none
        code = "\n    sys.modules['jax'] = None" + USE_TORCH.replace(
            'assert "jax" not in sys.modules', ""
        )
        assert "JAX" in in_another_process(code)[0]
        code += """
    from importlib import metadata
    version = metadata.version
    def without(name):
        if name == "jax":
            raise metadata.PackageNotFoundError(name)
        return version(name)
    metadata.version = without
    from tutorial.training.randomness import versions
    found = versions()  # as the notebook's first cell shows them
    assert "jax" not in found and "torch" in found
    assert notebook.make_hyperparameters("default", {}).n_step
    learner = compiled.learner(agent.ddpg, "auto")
    assert learner.engine == "torch"
"""
        output = in_another_process(code)[0]
        assert "engine: torch, because JAX is not installed" in output
        return
    (tmp_path / "jax.py").write_text(content)
    output, _ = in_another_process(f"\n    sys.path.insert(0, {str(tmp_path)!r})" + USE_TORCH)
    assert output == reason + "\n"


def test_the_users_flags_are_kept_and_nothing_is_warned_of():
    code = """
        import warnings
        warnings.simplefilter("error")
        from tutorial.training import compiled
        assert compiled.why_no_jax() is None
        import os
        import jax
        print(os.environ.get("XLA_FLAGS"), os.environ.get("NPROC"), jax.devices()[0].platform,
              jax.numpy.ones(()).dtype)
    """
    assert in_another_process(code) == ("None None cpu float32\n", "")
    flags = "--xla_cpu_prefer_vector_width=256"
    assert in_another_process(code, XLA_FLAGS=flags, NPROC="2") == (f"{flags} 2 cpu float32\n", "")


def test_a_jax_that_fails_leaves_no_environment_variable(monkeypatch):
    """NPROC is only for XLA's start: other programs read it, too."""
    jax = pytest.importorskip("jax")

    def fail():
        raise RuntimeError("no backend")

    monkeypatch.delenv("NPROC", raising=False)
    monkeypatch.setattr(jax, "devices", fail)
    with pytest.raises(RuntimeError, match="no backend"):
        compiled.translation.__wrapped__()
    assert "NPROC" not in os.environ
