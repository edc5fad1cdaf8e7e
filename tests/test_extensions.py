"""The edits of doc/extensions.ipynb: their formulas, their engine, and the notebook as a whole."""

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn

from small_training import execute, make_batch
from tutorial.environments import Task
from tutorial.notebook import definitions, extensions, learner_with
from tutorial.paths import DOC, EXTENSIONS

ROUNDING = 2.0**-24  # relative, float32
SMALL = Task(np.ones(3, np.float32), 2, None)


def make(name, **overrides):
    """A small learner of this kind."""
    torch.manual_seed(0)
    settings = definitions().Hyperparameters(hidden_units=16, batch_size=16, **overrides)
    return learner_with("noisy_networks", name)(settings, SMALL)


def test_the_smaller_of_two_target_critics_counts(monkeypatch):
    monkeypatch.setattr(torch, "randn_like", torch.zeros_like)
    learner, batch = make("TD3"), make_batch()
    with torch.no_grad():
        actions = learner.target_actor(batch.next_observations)
        critics = learner.target_critic, learner.target_critic_2
        one, other = (critic(batch.next_observations, actions) for critic in critics)
        values = learner.critic(batch.observations, batch.actions)
        shift = (one - other).mean()  # so that now one is smaller, now the other
        learner.target_critic_2.layers[-1].bias += shift
        other = other + shift
    assert (one < other).any() and (other < one).any()
    expected = batch.rewards + batch.discounts * torch.where(one < other, one, other) - values
    torch.testing.assert_close(learner.td_errors(batch).detach(), expected)
    torch.testing.assert_close(learner.learn_critic(batch), expected)


def test_target_actions_are_smoothed_as_in_the_paper():
    """Normal noise of 0.2, clipped to 0.5; the action clipped to [-1, 1]. By the same formula."""
    learner, asked = make("TD3"), []
    learner.target_critic = learner.target_critic_2 = lambda s, a: asked.append(a) or a.sum(1)
    draws = 100_000
    for action in (0.0, 0.9):
        learner.target_value(torch.zeros(draws, 3), torch.full((draws, 1), action))
    assert torch.equal(asked[0], asked[1]), "both critics are asked for the same action"
    noise = asked[0]
    assert noise.abs().max() == 0.5 and asked[2].max() == 1.0 and asked[2].min() >= 0.4 - 1e-6
    for sigmas in (0.5, 2.49):  # the few beyond 2.5 sigma are all at 0.5; the others are normal
        expected = math.erf(sigmas / math.sqrt(2))
        found = (noise.abs() < 0.2 * sigmas).float().mean().item()
        assert abs(found - expected) < 5 * math.sqrt(expected * (1 - expected) / draws)


def test_td3_learns_twice_before_its_actor_and_targets_follow_once(monkeypatch):
    """The first half of a batch moves the critics alone; rows keep their weights and errors."""
    monkeypatch.setattr(torch, "randn_like", torch.zeros_like)
    batch, weights = make_batch(), torch.linspace(0.1, 1, 16)
    learner, by_hand = make("TD3"), make("TD3")
    names = "actor", "critic", "critic_2"
    before = {name: copy.deepcopy(getattr(by_hand, name).state_dict()) for name in names}
    noise = torch.ones(1, learner.noise_size)
    errors, _ = learner.learn(batch, weights, noise)
    halves = slice(8), slice(8, 16)
    found = [by_hand.learn_critic(batch.at(half), weights[half]) for half in halves]
    by_hand.learn_actor(batch.at(halves[1]), noise)
    torch.testing.assert_close(errors, torch.cat(found))
    for name in names:
        new = getattr(learner, name).state_dict()
        torch.testing.assert_close(new, getattr(by_hand, name).state_dict())
        target = getattr(learner, f"target_{name}").state_dict()
        for key, old in before[name].items():
            torch.testing.assert_close(target[key], old.lerp(new[key], learner.tau))


@pytest.mark.parametrize("span", [1.0, 3.0], ids=["inside", "beyond the ends"])
def test_the_projection_is_that_of_the_paper(span):
    """Algorithm 1 of Bellemare et al. (2017), in float64, one number at a time."""
    generator, atoms = np.random.default_rng(0), np.linspace(0, 13, 51)
    probabilities = generator.dirichlet(np.full(51, 0.1), 20).astype(np.float32)
    returns = np.float32(6.5 + span * (generator.uniform(0, 13, (20, 51)) - 6.5))
    given = map(torch.from_numpy, (returns, probabilities, np.float32(atoms)))
    found = extensions().project(*given)
    expected = np.zeros((20, 51))
    for k, j in np.ndindex(20, 51):
        place = np.clip(float(returns[k, j]), 0, 13) / 13 * 50
        low = min(math.floor(place), 49)
        expected[k, low] += probabilities[k, j] * (low + 1 - place)
        expected[k, low + 1] += probabilities[k, j] * (place - low)
    # Places in units of the step, up to 50, are rounded, and so are the atoms; 51 terms are added.
    np.testing.assert_allclose(found, expected, rtol=0, atol=4 * 50 * ROUNDING)


def test_a_categorical_critic_learns_two_outcomes_and_not_their_mean():
    """Returns of 0 or 12 with equal probability and no future, whatever is seen and done."""
    learner, batch = make("D4PG", critic_learning_rate=1e-2), make_batch()
    chance = np.random.default_rng(0)
    batch.discounts.zero_()
    for _ in range(300):
        batch.rewards[:] = torch.from_numpy(chance.permutation(np.repeat([0.0, 12.0], 8)))
        learner.learn_critic(batch)
    with torch.no_grad():
        found = learner.critic.logits(batch.observations, batch.actions).softmax(1).mean(0)
    near = [found[(learner.critic.atoms - outcome).abs() < 0.5].sum() for outcome in (0, 12)]
    assert min(near) > 0.4 and sum(near) > 0.95
    assert learner.critic.atoms[-1] == pytest.approx(0.4 / 0.03)  # as rewards and discount say


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


def test_crossq_learns_from_one_joint_pass():
    """Its gradient is that of the squared error with y held fixed."""
    learner, batch = make("CrossQ"), make_batch()
    assert learner.target_critic is learner.critic and learner.target_actor is learner.actor
    by_hand = copy.deepcopy(learner.critic).train()
    with torch.no_grad():
        actions = learner.actor(batch.next_observations)
    pairs = ((batch.observations, batch.next_observations), (batch.actions, actions))
    both = by_hand(*map(torch.cat, pairs))
    targets = (batch.rewards + batch.discounts * both[16:]).detach()
    (targets - both[:16]).square().mean().backward()
    torch.testing.assert_close(learner.learn_critic(batch), (targets - both[:16]).detach())
    for one, other in zip(by_hand.parameters(), learner.critic.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad)
    for one, other in zip(by_hand.buffers(), learner.critic.buffers(), strict=True):
        torch.testing.assert_close(one, other)
    assert not learner.critic.training


def test_a_critic_that_remembers_adds_up_moments_in_any_order_and_mirror():
    learner = extensions().Remembering(definitions().Hyperparameters(hidden_units=16))
    now, moments, actions = torch.randn(8, 33), torch.randn(8, 3, 33), torch.randn(8, 4).tanh()
    moments[:, :, 30], moments[:, 2] = 1, 0  # the last one is still to come

    def value(moments, signs):
        seen = torch.cat([now[:, None], moments], 1) * signs[:33]
        return learner.critic(seen.flatten(1), actions * signs[33:])

    expected, *mirrored = (value(moments, signs) for signs in definitions().MIRRORS)
    for same in (value(moments.flip(1), torch.ones(37)), *mirrored):
        torch.testing.assert_close(same, expected)
    assert not torch.isclose(value(moments[:, [0, 0, 2]], torch.ones(37)), expected).any()


@pytest.mark.parametrize("path, figures", [(EXTENSIONS, 2), (DOC / "reports.ipynb", 1)])
def test_a_notebook_runs_from_its_own_folder(tmp_path, path, figures):
    """As a kernel starts it; each of its agents is compiled."""
    outputs = execute(path, tmp_path / "out.ipynb", episodes=1)
    assert not any("engine: torch" in output.get("text", "") for output in outputs)
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= figures
