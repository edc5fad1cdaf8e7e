"""The edits of doc/extensions.ipynb: their formulas, their engine, and the notebook as a whole."""

from __future__ import annotations

import copy
import math

import nbformat
import numpy as np
import papermill
import pytest
import torch
from torch import nn

import small_training
import test_compiled
from research import trials
from research.report import trials as report
from tapejit import compiled
from tutorial.notebook import extensions
from tutorial.paths import DOC, EXTENSIONS

EDITS = ("TD3", "D4PG", "CrossQ")
ROUNDING = 2.0**-24  # relative, float32


@pytest.fixture
def edit(notebook, monkeypatch):
    """`edit(name)`: put this learner in the place of the notebook's; its class."""

    def put(name):
        kind = getattr(extensions(), name)
        monkeypatch.setattr(notebook, "DDPG", kind)
        return kind

    return put


@pytest.fixture
def make(edit, notebook, defaults):
    """`make(name)`: a small learner of this kind, and a batch of transitions for it, as rows."""

    def make(name, seed=0, **overrides):
        edit(name)
        ddpg = test_compiled.make_ddpg(notebook, defaults, seed, **overrides)
        return ddpg, torch.from_numpy(test_compiled.make_rows())

    return make


def learn(ddpg, rows, with_actor=True):
    noise = torch.zeros(1, ddpg.noise_size)
    return ddpg.learn(rows, torch.ones(len(rows)), noise, with_actor)


# ---------------------------------------------------------------------------------- both engines


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_is_compiled_and_learns_as_with_pytorch(
    edit, notebook, defaults, monkeypatch, name
):
    """By the notebook's own test. The engines draw different smoothing noise, so TD3 has none."""
    edit(name)
    monkeypatch.setattr(torch, "randn_like", torch.zeros_like)
    test_compiled.test_both_engines_learn_the_same(notebook, defaults, {}, ())


@pytest.mark.parametrize("name", EDITS)
def test_running_averages_and_atoms_are_those_of_pytorch(make, monkeypatch, name):
    monkeypatch.setattr(torch, "randn_like", torch.zeros_like)
    plain = compiled.Learner(make(name)[0])
    learner = compiled.CompiledLearner(copy.deepcopy(plain.ddpg))
    for each in (plain, learner):
        test_compiled.train(each, 9, phase=3)
    assert learner.engine == "compiled"
    for critic in ("critic", "target_critic"):
        expected = dict(getattr(getattr(plain.ddpg, critic, None), "named_buffers", dict)())
        found = dict(getattr(getattr(learner.ddpg, critic, None), "named_buffers", dict)())
        assert expected.keys() == found.keys()
        for key, values in expected.items():
            bound = test_compiled.ROOM * 9 * ROUNDING * max(1, values.abs().max())
            torch.testing.assert_close(found[key], values, rtol=0, atol=float(bound))


@pytest.mark.parametrize("name", EDITS)
def test_a_resumed_training_has_the_same_bits(edit, notebook, tmp_path, monkeypatch, name):
    edit(name)
    small_training.shrink(monkeypatch.setattr)
    small_training.train(notebook, tmp_path / "whole", episodes=4)
    for episodes in (2, 4):
        small_training.train(notebook, tmp_path / "cut", episodes=episodes)
    outcomes = [small_training.left_by(tmp_path / each) for each in ("whole", "cut")]
    small_training.assert_same(*outcomes)


# ------------------------------------------------------------------------------------------- TD3


def test_the_smaller_of_two_target_critics_counts(make, monkeypatch):
    monkeypatch.setattr(torch, "randn_like", torch.zeros_like)
    ddpg, rows = make("TD3")
    batch = extensions().split_rows(rows, *ddpg.sizes)
    with torch.no_grad():
        actions = ddpg.target_actor(batch.next_observations)
        one, other = (
            critic(batch.next_observations, actions)
            for critic in (ddpg.target_critic, ddpg.target_critic_2)
        )
        values = ddpg.critic(batch.observations, batch.actions)
        shift = (one - other).mean()  # so that now one is smaller, now the other
        ddpg.target_critic_2.output.bias += shift
        other = other + shift
    assert (one < other).any() and (other < one).any()
    expected = batch.returns + batch.discounts * torch.where(one < other, one, other) - values
    torch.testing.assert_close(ddpg.td_errors(rows), expected)
    torch.testing.assert_close(learn(ddpg, rows)[0], expected)


def test_target_actions_are_smoothed_as_in_the_paper(make):
    """Normal noise of 0.2, clipped to 0.5; the action clipped to [-1, 1]. By the same formula."""
    ddpg, _ = make("TD3")
    asked = []
    ddpg.target_critic = ddpg.target_critic_2 = lambda s, a: asked.append(a) or a.sum(1)
    draws = 100_000
    for action in (0.0, 0.9):
        ddpg.target_value(torch.zeros(draws, 3), torch.full((draws, 1), action))
    assert torch.equal(asked[0], asked[1]), "both critics are asked for the same action"
    noise = asked[0]
    assert noise.abs().max() == 0.5 and asked[2].max() == 1.0 and asked[2].min() >= 0.4 - 1e-6
    # Beyond 2.5 sigma are 1.24 % of the draws, all at 0.5; the others are normal.
    share, beyond = (noise.abs() == 0.5).float().mean().item(), math.erfc(2.5 / math.sqrt(2))
    assert abs(share - beyond) < 5 * math.sqrt(beyond / draws)
    inside = noise[noise.abs() < 0.1]  # half a sigma: 38.3 %
    expected = math.erf(0.5 / math.sqrt(2))
    assert abs(len(inside) / draws - expected) < 5 * math.sqrt(expected * (1 - expected) / draws)


def test_the_targets_of_td3_follow_with_the_actor(make):
    ddpg, rows = make("TD3")
    targets = (ddpg.target_actor, ddpg.target_critic, ddpg.target_critic_2)
    online = (ddpg.actor, ddpg.critic, ddpg.critic_2)
    before = copy.deepcopy((targets, online))
    learn(ddpg, rows, with_actor=False)
    for old, new in zip(before[0], targets, strict=True):
        assert same(old, new)
    assert [same(*pair) for pair in zip(before[1], online, strict=True)] == [True, False, False]
    learn(ddpg, rows)
    for old, new, target in zip(before[0], online, targets, strict=True):
        expected = {
            key: value.lerp(new.state_dict()[key], ddpg.settings.tau)
            for key, value in old.state_dict().items()
        }
        torch.testing.assert_close(target.state_dict(), expected)


def same(one, other):
    return all(map(torch.equal, one.state_dict().values(), other.state_dict().values()))


# ------------------------------------------------------------------------------------------ D4PG


def projected_in_a_loop(returns, probabilities, atoms):
    """Algorithm 1 of Bellemare et al. (2017), in float64, one number at a time."""
    step = atoms[1] - atoms[0]
    found = np.zeros((len(returns), len(atoms)))
    for k, j in np.ndindex(*returns.shape):
        place = (min(max(returns[k, j], atoms[0]), atoms[-1]) - atoms[0]) / step
        low, high = math.floor(place), math.ceil(place)
        if low == high:
            found[k, low] += probabilities[k, j]
        else:
            found[k, low] += probabilities[k, j] * (high - place)
            found[k, high] += probabilities[k, j] * (place - low)
    return found


@pytest.mark.parametrize("span", [1.0, 3.0], ids=["inside", "beyond the ends"])
def test_the_projection_is_that_of_the_paper(span):
    generator = np.random.default_rng(0)
    atoms = torch.linspace(0, 13, 51)
    probabilities = torch.from_numpy(generator.dirichlet(np.full(51, 0.1), 20)).float()
    middle = 6.5 + span * (generator.uniform(0, 13, (20, 51)) - 6.5)
    returns = torch.from_numpy(middle).float()
    found = extensions().project(returns, probabilities, atoms)
    expected = projected_in_a_loop(returns.double().numpy(), probabilities.numpy(), atoms.numpy())
    # Places in units of the step, up to 50, are rounded, and so are the atoms; 51 terms are added.
    np.testing.assert_allclose(found, expected, rtol=0, atol=4 * 50 * ROUNDING)
    np.testing.assert_allclose(found.sum(1), 1, rtol=0, atol=4 * 50 * ROUNDING)
    means = (found @ atoms, (probabilities * returns.clamp(0, 13)).sum(1))
    np.testing.assert_allclose(*means, rtol=0, atol=13 * 4 * 50 * ROUNDING)


def test_a_categorical_critic_is_a_critic(make):
    ddpg, rows = make("D4PG")
    batch = extensions().split_rows(rows, *ddpg.sizes)
    critic = ddpg.critic
    values = critic(batch.observations, batch.actions)
    logits = critic.logits(batch.observations, batch.actions)
    assert values.shape == (16,) and logits.shape == (16, 51)
    settings = ddpg.settings
    largest = settings.reward_scale * 0.04 / (1 - settings.discount)
    np.testing.assert_allclose(critic.atoms, np.linspace(0, largest, 51), rtol=1e-6)
    expected = (logits.exp() / logits.exp().sum(1, keepdim=True) * critic.atoms).sum(1)
    torch.testing.assert_close(values, expected)
    assert not set(map(id, critic.parameters())) - {
        id(parameter)
        for group in ddpg.critic_optimizer.param_groups
        for parameter in group["params"]
    }, "all of it learns"


def test_the_loss_is_the_cross_entropy_and_the_errors_are_of_means(make):
    ddpg, rows = make("D4PG")
    rows[:, 5], rows[:, 6] = rows[:, 5].abs().clamp(max=1.0), 0.5  # nothing is clipped
    expected, batch = ddpg.td_errors(rows), extensions().split_rows(rows, *ddpg.sizes)
    targets = ddpg.target_probabilities(batch)
    logits = ddpg.critic.logits(batch.observations, batch.actions).detach()
    cross_entropies = -(targets * (logits - logits.logsumexp(1, keepdim=True))).sum(1)
    weights = torch.linspace(0.1, 1, len(rows))
    noise = torch.zeros(1, ddpg.noise_size)
    errors, loss, _ = ddpg.learn(rows, weights, noise, with_actor=False)
    torch.testing.assert_close(loss, (weights * cross_entropies).mean())
    # Means of up to 13.3 are sums of 51 terms; rounding as in the test of the projection.
    torch.testing.assert_close(errors, expected, rtol=0, atol=13.3 * 4 * 50 * ROUNDING)


def test_a_categorical_critic_learns_two_outcomes_and_not_their_mean(make):
    """Returns of 0 or 12 with equal probability and no future, whatever is seen and done."""
    ddpg, rows = make("D4PG", critic_learning_rate=1e-2)
    chance = np.random.default_rng(0)
    rows[:, 6] = 0.0
    for _ in range(300):
        rows[:, 5] = torch.from_numpy(chance.permutation(np.repeat([0.0, 12.0], 8))).float()
        learn(ddpg, rows, with_actor=False)
    batch = extensions().split_rows(rows, *ddpg.sizes)
    with torch.no_grad():
        found = ddpg.critic.logits(batch.observations, batch.actions).softmax(1).mean(0)
    near = [found[(ddpg.critic.atoms - outcome).abs() < 0.5].sum() for outcome in (0, 12)]
    assert min(near) > 0.4 and sum(near) > 0.95


# ---------------------------------------------------------------------------------------- CrossQ


def test_the_written_out_normalization_is_pytorchs():
    torch.manual_seed(0)
    ours, theirs = extensions().BatchNorm(5), nn.BatchNorm1d(5, eps=1e-3, momentum=0.01)
    for _ in range(3):
        x = 3 + 2 * torch.randn(40, 5)
        torch.testing.assert_close(ours(x), theirs(x))
    torch.testing.assert_close(ours.mean, theirs.running_mean)
    # PyTorch divides by n - 1 in the running variance, which begins at 1.
    start = 0.99**3
    expected = start + (theirs.running_var - start) * 39 / 40
    torch.testing.assert_close(ours.variance, expected)
    ours.eval(), theirs.eval()
    theirs.running_var.copy_(ours.variance)
    torch.testing.assert_close(ours(x), theirs(x))


def test_crossq_learns_from_one_joint_pass(make):
    """Its gradient is that of the squared error with y held fixed."""
    ddpg, rows = make("CrossQ")
    assert not {"target_actor", "target_critic"} & vars(ddpg).keys()
    assert all(block[0].bias is None for block in ddpg.critic.blocks)
    batch = extensions().split_rows(rows, *ddpg.sizes)
    by_hand = copy.deepcopy(ddpg.critic).train()
    with torch.no_grad():
        actions = ddpg.actor(batch.next_observations)
    pairs = ((batch.observations, batch.next_observations), (batch.actions, actions))
    both = by_hand(*map(torch.cat, pairs))
    targets = (batch.returns + batch.discounts * both[16:]).detach()
    (targets - both[:16]).square().mean().backward()
    errors, _, _ = learn(ddpg, rows, with_actor=False)
    torch.testing.assert_close(errors, (targets - both[:16]).detach())
    for one, other in zip(by_hand.parameters(), ddpg.critic.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad)
    for one, other in zip(by_hand.buffers(), ddpg.critic.buffers(), strict=True):
        torch.testing.assert_close(one, other)
    assert not ddpg.critic.training


# --------------------------------------------------------------------------- the notebook, the runs


def test_the_notebook_runs_from_its_own_folder(tmp_path):
    """As a kernel starts it; each of the four agents is compiled."""
    papermill.execute_notebook(
        EXTENSIONS,
        tmp_path / "out.ipynb",
        cwd=str(DOC),
        kernel_name="python3",
        parameters={"episodes": 1},
        progress_bar=False,
        request_save_on_cell_execute=False,
    )
    executed = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    outputs = [output for cell in executed.cells for output in cell.get("outputs", ())]
    told = "".join(output.text for output in outputs if output.output_type == "stream")
    assert told.count("engine: compiled") == 4
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 2


def test_a_planned_run_trains_the_edit(edit, notebook, monkeypatch):
    edit("TD3")
    monkeypatch.setattr(notebook, "DDPG", None)  # what a run finds is its own choice
    small_training.shrink(monkeypatch.setattr)
    plan = trials.trials_of_the_extensions()
    assert {(trial.variant, trial.learner) for trial in plan} == {
        ("default", "DDPG"),
        *((name.lower(), name) for name in EDITS),
    }
    trial = trials.Trial(
        "extensions", "td3", 8590, overrides=small_training.SMALL, arms=2, episodes=1, learner="TD3"
    )
    [line] = trials.train(trial)["td3.csv"].splitlines()
    assert line.startswith("8590,1,") and notebook.DDPG is extensions().TD3
    with pytest.raises(AttributeError, match=r"extensions\.ipynb does not define 'TD4'"):
        trials.train(trials.Trial("extensions", "td4", 0, learner="TD4"))


def test_the_report_compares_each_edit_with_the_default(monkeypatch, tmp_path):
    """Two edits that differ by nothing and by 3 points, and one that never ends learning."""
    chance = np.random.default_rng(0)
    noise = chance.normal(0, 0.3, (10, 1))
    for name, shift in {"default": 0, "td3": 0, "d4pg": 3, "crossq": -3}.items():
        lines = [
            [seed, episode, score, 39 if episode % 5 == 0 else "", 38, updates, episode]
            for seed, own in zip(range(8500, 8510), noise[:, 0], strict=True)
            for episode in range(1, 41)
            for score in [min(episode, 20) + own + shift]
            for updates in [episode if name == "crossq" else min(episode, 20)]
        ]
        (tmp_path / "extensions").mkdir(exist_ok=True)
        path = tmp_path / "extensions" / f"{name}.csv"
        path.write_text(trials.as_csv([trials.COLUMNS, *lines]))
    monkeypatch.setattr(report, "CHECKPOINTS", tmp_path)
    table = report.extensions_report()
    rows = {line.split("|")[1].strip(): line for line in table.splitlines() if line}
    assert "10 of 10 | 39.00" in rows["`default`"] and "0 of 10 | - |" in rows["CrossQ"]
    assert "alike" in rows["TD3 - `default`"] and "+0.0" in rows["TD3 - `default`"]
    assert "+3.0" in rows["D4PG - `default`"] and "shown" in rows["D4PG - `default`"]
    assert "-3.0" in rows["CrossQ - `default`"]
