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
import hashlib
import os
import re
import subprocess
import sys
import textwrap
import time

import nbformat
import numpy as np
import pytest
import torch

import small_training
from research.bugs import BATCH as BATCH_NORMALIZATION
from tapejit import compiled, recording
from tutorial import saving
from tutorial.environments import open_environment
from tutorial.paths import NOTEBOOK, PROJECT
from tutorial.randomness import seed_everything

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

PLAIN = (  # an edit: old and new texts of `edited`
    *("nn.LayerNorm(outputs), ", ""),
    *("FixedScale(observation_scale)", "nn.Identity()"),
    *("FixedScale(scale)", "nn.Identity()"),
)
CLIP = ("update", "    nn.utils.clip_grad_norm_(optimizer.param_groups[0]['params'], 0.05)\n{}")
DECAY = ("optimizer", "Adam(network.parameters(), weight_decay=0.01)")
OPTIONS = [  # overrides, and an edit
    ({}, ()),
    ({"critic_hidden": (16, 8, 16), "noisy_layers": False}, PLAIN),
    ({}, PLAIN),
    ({"noisy_layers": False}, ("activation", "nn.LeakyReLU(0.1)")),
    ({"actor_hidden": (8, 4, 6), "critic_hidden": (8,), "tau": 1.0}, ()),
    ({"actor_hidden": (1,), "critic_hidden": (1, 1)}, DECAY),
    ({"actor_learning_rate": 1e-4, "critic_learning_rate": 3e-3}, CLIP + DECAY),
    ({"actor_hidden": (128, 128), "critic_hidden": (128, 128), "batch_size": 64, "tau": 1e-3}, ()),
]


def make_ddpg(notebook, defaults, seed=0, edit=(), **overrides):
    kind = edited(notebook, *edit) if edit else notebook.DDPG
    torch.manual_seed(seed)
    return kind(SCALE, ACTIONS, defaults(**{**SMALL, **overrides}))


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
    """The largest difference of each network, running statistics included."""
    return {
        name: max(
            (a - b).abs().max().item()
            for a, b in zip(
                network.state_dict().values(),
                getattr(other, name).state_dict().values(),
                strict=True,
            )
        )
        for name, network in compiled.networks(one).items()
    }


def tensors_of(ddpg):
    """All tensors of networks and optimisers, by name."""
    return dict(saving.tensors_in(saving.learner_state(ddpg)))


def same_bits(one, other):
    one, other = tensors_of(one), tensors_of(other)
    assert one.keys() == other.keys()
    return all(torch.equal(one[name], other[name]) for name in one)


# ---------------------------------------------------------------------------------- same numbers


@pytest.mark.parametrize("overrides, edit", OPTIONS, ids=str)
def test_both_engines_learn_the_same(notebook, defaults, overrides, edit):
    """Every network, after 1 compiled step and after 100, as far apart as roundings are.

    Then both act and rate the same with the same weights.
    """
    base = compiled.Learner(make_ddpg(notebook, defaults, edit=edit, **overrides))
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
    plain, rows = compiled.Learner(learner.synced()), make_rows(20)
    noise = np.random.default_rng(0).standard_normal((20, plain.ddpg.noise_size), np.float32)
    for name, *given in (
        ("td_errors", rows),
        ("act", rows[:, :3].copy()),  # with the mean weights
        ("act", rows[:, :3].copy(), noise[:1]),  # with one row of noise for all
        ("act", rows[:, :3].copy(), noise),
    ):
        expected, found = (getattr(each, name)(*given) for each in (plain, learner))
        assert found.shape == expected.shape and found.dtype == np.float32
        # A sum of n products errs by n roundings of its terms at most, and three layers follow
        # each other; terms are of the order of 1 to 10 here.
        np.testing.assert_allclose(found, expected, rtol=0, atol=3 * 10 * 128 * ROUNDING)
    assert learner.engine == "compiled"


def test_batch_normalization_learns_the_same(notebook, defaults):
    """Running statistics and counts of batches too, in training and in evaluation mode.

    The gradient of a bias before a normalization is rounding and nothing else. Adam divides it by
    its size, which makes steps of it, unless epsilon is large beside it.
    """
    edit = (*BATCH_NORMALIZATION, "optimizer", "Adam(network.parameters(), eps=1e-3)")
    test_both_engines_learn_the_same(notebook, defaults, {}, edit)


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

CODE = [cell.source for cell in nbformat.read(NOTEBOOK, 4).cells if cell.cell_type == "code"]
LEARNER = (
    "def td_targets(",
    "def descend(",
    "class NoisyLinear(",
    "def linear(",
    "class Critic(",
    "class PlainDDPG:",
    "class DDPG(",
)
SOURCE = "\n\n\n".join(code for code in CODE if any(name in code for name in LEARNER))


PLACES = {
    "activation": "nn.ReLU()",
    "normalization": "nn.LayerNorm(outputs)",
    "loss": "(weights * td_errors.square()).mean()",
    "targets": "    return targets - critic",
    "actor's loss": "-critic(observations, actor(observations, noise)).mean()",
    "update": "    optimizer.step()",
    "soft update": "old.lerp_(new, tau)",
    "end of init": "        self.set_learning_rates(1.0)",
    "step": "        loss_of_actor = self.learn_actor(",
}


def edited(notebook, *texts):
    """A DDPG of the notebook's cells with other texts: old, new, and so on; {} is the old one.

    "optimizer" is that of each network, which its new text calls `network`.
    """
    code, pairs = SOURCE, []
    for old, new in zip(texts[::2], texts[1::2], strict=True):
        if old == "optimizer":
            pairs += [
                (f"Adam({each}.parameters(), lr=1e-3)", new.replace("network", each))
                for each in ("self.actor", "self.critic")
            ]
        else:
            pairs.append((PLACES.get(old, old), new))
    for old, new in pairs:
        assert code.count(old) == 1, old
        code = code.replace(old, new.replace("{}", old))
    space = dict(vars(notebook))
    exec(compile(code, "the edited cells", "exec"), space)
    return space["DDPG"]


def element_loss(name):
    return f"(weights * F.{name}(td_errors, 0 * td_errors, reduction='none')).mean()"


def td3(smoothing):
    """A second critic, smoothed target actions, and targets that follow with the actor."""
    return (
        "end of init",
        """
        self.critic_2 = Critic(observation_scale, action_size, settings)
        self.target_critic_2 = copy.deepcopy(self.critic_2).requires_grad_(False)
        self.critic_2_optimizer = torch.optim.Adam(self.critic_2.parameters())
{}""",
        "self.target_actor, self.target_critic)\n        errors = td_error(batch, self.critic, "
        "targets)\n        loss",
        f"""self.target_actor, lambda s, a: torch.minimum(
            self.target_critic(s, b := (a + {smoothing}).clamp(-1, 1)), self.target_critic_2(s, b)))
        second = critic_loss(td_error(batch, self.critic_2, targets), weights)
        descend(second, self.critic_2_optimizer)
        errors = td_error(batch, self.critic, targets)
        loss""",
        "        self.update_targets()\n        for",
        """        if with_actor:
            self.update_targets()
            soft_update(self.target_critic_2, self.critic_2, self.tau)
        for""",
    )


EDITS = [
    *[
        ("activation", f"nn.{name}")
        for name in (
            "SiLU() GELU() GELU(approximate='tanh') Tanh() Sigmoid() ELU() SELU() Softplus() "
            "Mish() Hardtanh() Hardswish() PReLU()"
        ).split()
    ],
    ("normalization", "nn.RMSNorm(outputs)"),
    ("normalization", "nn.LayerNorm(outputs, bias=False)"),
    ("normalization", "nn.LayerNorm(outputs, elementwise_affine=False)"),
    *[("loss", element_loss(name)) for name in ("huber_loss", "smooth_l1_loss", "l1_loss")],
    ("loss", "(weights * td_errors.cosh().log()).mean()"),
    ("loss", "torch.einsum('b,b,b,b->', weights, weights, td_errors, td_errors)"),
    ("loss", "(weights * td_errors.square()).sum() / weights.sum()"),
    ("targets", "    targets = targets.clamp(-0.5, 0.5)\n{}"),
    ("actor's loss", "{} + actor(observations, noise).square().mean()"),
    (  # of TD3+BC; alone the factor would change nothing, because Adam divides it out
        "actor's loss",
        "{} / critic(observations, actor(observations)).abs().mean().detach()"
        " + actor(observations).square().mean()",
    ),
    ("actor's loss", "{} + sum(p.square().sum() for p in actor.parameters())"),
    ("optimizer", "Adam(network.parameters(), betas=(0.5, 0.99), eps=1e-3)"),
    ("optimizer", "Adam(network.parameters(), amsgrad=True, eps=1e-2)"),
    ("optimizer", "Adam(network.parameters(), foreach=True, eps=1e-2)"),
    (
        "optimizer",
        "Adam([{'params': (every := list(network.parameters()))[:3], 'weight_decay': 0.1},"
        " {'params': every[3:]}])",
    ),
    ("optimizer", "AdamW(network.parameters(), weight_decay=0.1)"),
    ("optimizer", "SGD(network.parameters())"),
    ("optimizer", "SGD(network.parameters(), momentum=0.9, nesterov=True)"),
    ("optimizer", "RMSprop(network.parameters(), centered=True, momentum=0.5)"),
    ("optimizer", "Adagrad(network.parameters())"),
    ("optimizer", "Adamax(network.parameters())"),
    ("optimizer", "NAdam(network.parameters())"),
    ("update", "    nn.utils.clip_grad_value_(optimizer.param_groups[0]['params'], 1e-4)\n{}"),
    (
        "    loss.backward()",
        "    ps = optimizer.param_groups[0]['params']\n"
        "    for p, g in zip(ps, torch.autograd.grad(loss, ps)):\n        p.grad = g.sign()",
    ),
    ("soft update", "old.copy_(new)"),
    ("soft update", "old.mul_(1 - 2 * tau).add_(2 * tau * new)"),
    ("soft update", "old.data.copy_(old.data * 0.9 + new.data * 0.1)"),
    ("self.target_actor, self.actor, self.tau)", "self.target_actor, self.actor, 0.5)"),
    ("(len(scale), *settings.critic_hidden)", "(len(scale), 16, 16, 8)"),
    ("self.epsilon.sign() * self.epsilon.abs().sqrt()", "self.epsilon"),
    ("factor * self.settings.critic_learning_rate", "0.1 * factor"),
    td3("0"),
]


@pytest.fixture(scope="module")
def unedited(notebook, defaults):
    """What the cells as they stand learn, act and rate."""
    return outcome(compiled.Learner(make_ddpg(notebook, defaults)))


def outcome(learner):
    """TD errors and losses of three phases, and then actions and TD errors."""
    rows, found = make_rows(20), train(learner, 9, phase=3)
    return [*found, learner.act(rows[:, :3].copy()), learner.td_errors(rows)]


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit[1].strip())
def test_an_edit_is_compiled_and_counts(notebook, defaults, unedited, edit):
    """It learns as PyTorch does with the same edit, and unlike the cells as they stand."""
    kind = edited(notebook, *edit)
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
    "name, old, new",
    [
        ("act", "return self.actor(observations, noise)", "return 0.5 * self.actor(observations)"),
        ("td_errors", "return td_error(batch, self.critic, targets)", "return 0 * rows[:, 0]"),
    ],
)
def test_acting_and_rating_are_the_readers_own(notebook, defaults, name, old, new):
    torch.manual_seed(0)
    ddpg = edited(notebook, old, new)(SCALE, ACTIONS, defaults(**SMALL))
    learner, rows = compiled.CompiledLearner(ddpg), make_rows()
    rows = rows[:, :3].copy() if name == "act" else rows
    expected = getattr(ddpg, name)(torch.from_numpy(rows)).numpy()
    np.testing.assert_allclose(getattr(learner, name)(rows), expected, rtol=0, atol=1e-6)


RARE = """
x.gather(1, i) | x.gather(0, i) | x.scatter(1, i, y) | x.scatter(1, i, 0.5) | x.scatter_add(1, i, y)
x.index_select(0, i[0]) | x[i[0]] | x[:, i[0]] | x.index_put((i[0],), y[0])
x.masked_fill(x > 0, 2) | x.index_add(0, i[0], y[:3]) | F.pad(x, (1, 2)) | torch.cat([x, y], 1)
x.log_softmax(1) | x.softmax(0) | x.logsumexp(1) | x.std(1) | x.var(0) | x.cumsum(1) | x.norm(1, 1)
x.sort(1).values | x.max(1).values | x.min(0).indices * 1.0 | x.argmax(1) * 1.0 | x.amin((0, 1))
torch.stack([x, y]).unbind(2)[1] | x.repeat(2, 1).split(3, 1)[1] | x.quantile(0.5) | y.pow(x)
x.remainder(0.3) | x.fmod(0.3) | x.frac() | x.sinh().atan() | x.hypot(y) | x.atan2(y) | 2**x
torch.where((x > 0).logical_or(y > 0.5), x, y) | x.clamp(-y, y) | x.lerp(y, y) | x.sgn() | x.tril()
"""


@pytest.mark.parametrize("expression", [each.strip() for each in re.split("[|\n]", RARE.strip())])
def test_an_operation_is_pytorchs(expression):
    """A few roundings of sums of 24 numbers below 4 may lie between them, and powers up to 20."""
    numbers = np.random.default_rng(0)
    x, y = (torch.from_numpy(numbers.standard_normal((4, 6), np.float32)) for _ in "xy")
    space = {"x": x, "y": y.abs() + 0.1, "i": torch.tensor([[2, 0, 1]]), "torch": torch}
    space["F"] = torch.nn.functional
    library, found = compiled.translation(), []

    def call():
        found.append(eval(expression, space).float())
        return [found]

    recorded = recording.record(call, [[x, space["y"]]], (), library.ALLOWED)
    arrays = [library.jnp.asarray(value.numpy()) for value in (x, space["y"])]
    [[result]] = library.Translation(recorded, (), [arrays]).outputs()
    assert result.shape == found[0].shape
    np.testing.assert_allclose(result, found[0].numpy(), rtol=0, atol=64 * 20 * ROUNDING)


@pytest.mark.parametrize(
    "edit",
    [td3("0.1 * torch.randn_like(a)"), ("normalization", "nn.Dropout()")],
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
    learner.ddpg.tau = 1e-9
    learner.ddpg.set_learning_rates(0.0)  # nothing changes between two steps but what is drawn
    ones, noise = np.ones((4, BATCH), np.float32), np.zeros((4, 1, learner.ddpg.noise_size))
    errors, _ = learner.learn_phase(rows, ones, noise.astype(np.float32), np.zeros(4, bool))
    assert learner.engine == "compiled" and len({row.tobytes() for row in errors}) == 4


LEFT_TO_PYTORCH = [  # what is told, and the edit
    ("in Actor.forward", "normalization", "nn.GroupNorm(4, outputs)"),
    (  # the modes that learning leaves behind count
        "td_errors changes the networks",
        *("normalization", "nn.BatchNorm1d(outputs)"),
        *("            network.eval()", "            network.train()"),
    ),
    ("torch.float64", "loss", "td_errors.double().square().mean().float()"),
    ("something is printed in DDPG.learn", "step", "        print('step')\n{}"),
    ("(item) in DDPG.learn", "step", "        if loss_of_critic.item() > 1e9: pass\n{}"),
    ("(__bool__) in DDPG.learn", "step", "        if loss_of_critic > 1e9: pass\n{}"),
    ("(numpy) in critic_loss", "loss", "{} * float(weights.numpy().mean())"),
    ("changes self.count", "step", "        self.count = getattr(self, 'count', 0) + 1\n{}"),
    ("changes self.last", "step", "        self.last = loss_of_critic.detach()\n{}"),
    (
        "changes CURVE",
        *("class DDPG", "CURVE = []\n\n\nclass DDPG"),
        *("step", "        CURVE.append(loss_of_critic.detach())\n{}"),
    ),
    ("do different things", "loss", "{} * np.random.rand()"),
    (
        "do different things",
        "step",
        """        critic = self.critic
        critic.mean = 0.9 * getattr(critic, "mean", 0) + 0.1 * errors.detach()
        soft_update(self.target_critic, critic, 0)
        critic.output.bias.data += 1e-3 * critic.mean.mean()
{}""",
    ),
    ("outside of the networks", "    optimizer.zero_grad()\n", ""),
    ("a learning rate", "step", "        self.critic_optimizer.param_groups[0]['lr'] *= 0.99\n{}"),
    (
        "share memory",
        *(
            "end of init",
            "{}\n        self.target_critic.output.bias.data = self.critic.output.bias.data",
        ),
    ),
    ("in descend", "optimizer", "RAdam(network.parameters())"),
    ("in td_error", "targets", "    targets[targets < 0] *= 0.5\n{}"),
]


@pytest.mark.parametrize("told, edit", [(told, edit) for told, *edit in LEFT_TO_PYTORCH])
def test_what_cannot_be_compiled_is_told_in_a_line_and_left_to_pytorch(
    notebook, defaults, capsys, told, edit
):
    outcomes = []
    for engine in ("torch", "auto"):
        torch.manual_seed(0), np.random.seed(0)
        ddpg = edited(notebook, *edit)(SCALE, ACTIONS, defaults(**SMALL))
        capsys.readouterr()
        learner = compiled.learner(ddpg, engine)
        lines = capsys.readouterr().out.splitlines()
        assert learner.engine == "torch"
        outcomes.append(outcome(learner))
        assert ("step" in capsys.readouterr().out) == ("printed" in told)
    for one, other in zip(*outcomes, strict=True):
        np.testing.assert_array_equal(one, other)
    [line] = lines
    assert line.startswith("engine: torch, because ") and told in line and "eight times" in line
    with pytest.raises(ValueError, match="engine = 'compiled' cannot be: .*choose 'torch'"):
        compiled.learner(ddpg, "compiled")


@pytest.mark.parametrize(
    "error, message, old, new",
    [
        (RuntimeError, "^mine$", "step", "        raise RuntimeError('mine')\n{}"),
        (ValueError, r"must return .*\(16, 16\)", "self.output(x).squeeze(1)", "self.output(x)"),
        (ValueError, "NoneType", "        return errors, loss", "        errors, loss"),
        (AttributeError, "criticoptimizer", "loss, self.critic_opt", "loss, self.criticopt"),
    ],
)
def test_a_readers_mistake_is_told_in_its_own_words(notebook, defaults, error, message, old, new):
    ddpg = edited(notebook, old, new)(SCALE, ACTIONS, defaults(**SMALL))
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
    """The cells from 2.4 on are run again with Huber's loss, and then section 6, engine "auto"."""
    small_training.shrink(monkeypatch.setattr)
    (begin,) = [k for k, code in enumerate(CODE) if "def critic_loss(" in code]
    trees = [ast.parse(code) for code in CODE[begin:]]
    code = "\n\n".join(
        ast.unparse(statement)
        for tree in trees
        for statement in tree.body
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef))
    )
    old = PLACES["loss"]
    new = element_loss("huber_loss").replace("'none'", "'none', delta=0.01")
    assert code.count(old) == 1
    scores, quick = {}, {"gradient_steps": 10, "gaussian_sigma": 0.0, "batch_size": 8}
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
        agent = space["Agent"](notebook.OBSERVATION_SCALE, 4, settings, generator, engine=engine)
        environment = open_environment("", small_training.ARMS, 0)
        scores[name] = space["train_agent"](environment, agent, tmp_path / name, 8)
        assert agent.engine == ("torch" if engine == "torch" else "compiled")
    assert "engine: compiled" in capsys.readouterr().out
    np.testing.assert_array_equal(scores["Huber"][:4], scores["with PyTorch"][:4])  # in steps
    assert np.abs(np.subtract(scores["as it stands"], scores["Huber"])).max() > 1e-3


# ------------------------------------------------------------------------- one format, same bits


@pytest.mark.parametrize(
    "edit",
    [(), ("optimizer", "SGD(network.parameters(), momentum=0.9)"), td3("0")],
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
        saving.restore_learner(other, copy.deepcopy(saving.learner_state(learner.ddpg)))
        assert same_bits(learner.ddpg, other)
    resumed, plain = compiled.CompiledLearner(others[0]), compiled.Learner(others[1])
    for each in (learner, resumed, plain):
        train(each, 5, begin=6)
    assert same_bits(learner.ddpg, resumed.ddpg) and resumed.newer is False
    assert all(0 < value < 1e-5 for value in differences(learner.ddpg, plain.ddpg).values())


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
    """Output of a program that has the notebook's definitions; it warns of nothing."""
    program = f"""
        import sys
        sys.path[:0] = [{str(PROJECT)!r}, {str(PROJECT / "tests")!r}]
        from tutorial.notebook import definitions
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program) + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        cwd=PROJECT,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def digest(notebook):
    """Of all numbers of a small training, and of what the learner then answers."""

    def defaults(**overrides):
        return notebook.make_hyperparameters("default", overrides, has_mirrors=False)

    ddpg = make_ddpg(notebook, defaults, actor_hidden=(128, 128), critic_hidden=(128, 128))
    learner = compiled.CompiledLearner(ddpg)
    train(learner, 20)
    arrays = [tensor.numpy() for tensor in tensors_of(ddpg).values()]
    arrays.append(learner.act(make_rows(20)[:, :3].copy(), np.ones((20, ddpg.noise_size), "f4")))
    arrays.append(learner.td_errors(make_rows(20)))
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()


def test_two_processes_compute_the_same_bits(notebook):
    """With one thread of PyTorch in both, as the notebook has it: with two, last bits differ."""
    code = "import test_compiled; print(test_compiled.digest(definitions()))"
    assert in_another_process(code, OMP_NUM_THREADS="1") == digest(notebook) + "\n"


# ------------------------------------------------------------------------- where it cannot be used


def test_jax_is_imported_when_it_is_used_and_the_users_flags_are_kept():
    code = """
        import os
        from tapejit import compiled
        notebook = definitions()
        settings = notebook.make_hyperparameters("default", {})
        chance = notebook.np.random.default_rng(0)
        agent = notebook.Agent(notebook.OBSERVATION_SCALE, 4, settings, chance)
        agent.act(notebook.np.zeros((2, 33), notebook.np.float32))
        assert "jax" not in sys.modules and compiled.why_no_jax() is None
        import jax
        print(os.environ.get("XLA_FLAGS"), os.environ.get("NPROC"), jax.devices()[0].platform,
              jax.numpy.ones(()).dtype)
    """
    assert in_another_process(code) == "None None cpu float32\n"
    flags = "--xla_cpu_prefer_vector_width=256"
    assert in_another_process(code, XLA_FLAGS=flags, NPROC="2") == f"{flags} 2 cpu float32\n"


@pytest.mark.parametrize(
    "error, reason",
    [
        (
            ModuleNotFoundError("", name="jaxlib"),
            "JAX is not installed (no module named 'jaxlib'): pip install jax",
        ),
        (
            RuntimeError("jaxlib is version 1, but\n2 is needed"),
            "JAX is installed but does not work: RuntimeError: jaxlib is version 1, but",
        ),
        (SystemError(), "JAX is installed but does not work: SystemError: "),
    ],
)
def test_a_jax_that_does_not_work_is_told_in_a_line(monkeypatch, error, reason):
    def fail():
        raise error

    monkeypatch.setattr(compiled, "translation", fail)
    assert compiled.why_no_jax.__wrapped__() == reason


def test_pytorch_trains_without_jax():
    code = """
        sys.modules["jax"] = None  # as if there were none
        from importlib import metadata
        version = metadata.version
        def without(name):
            if name == "jax":
                raise metadata.PackageNotFoundError(name)
            return version(name)
        metadata.version = without
        from tapejit import compiled
        from tutorial.randomness import versions
        found = versions()  # as the notebook's first cell shows them
        assert "jax" not in found and "torch" in found
        import test_compiled
        notebook = definitions()
        def defaults(**overrides):
            return notebook.make_hyperparameters("default", overrides, has_mirrors=False)
        learner = compiled.learner(test_compiled.make_ddpg(notebook, defaults), "auto")
        test_compiled.train(learner, 2)
        assert learner.engine == "torch"
    """
    assert "engine: torch, because JAX is not installed" in in_another_process(code)


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
