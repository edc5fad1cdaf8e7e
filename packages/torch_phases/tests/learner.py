"""A small learner (DDPG, Lillicrap et al., 2016), and its training for some phases."""

from __future__ import annotations

import copy
import random
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

SEEN, ACTIONS, BATCH, STEPS = 3, 2, 16, 3


class Batch(NamedTuple):
    observations: torch.Tensor
    actions: torch.Tensor
    rewards: torch.Tensor
    discounts: torch.Tensor
    next_observations: torch.Tensor


def split_rows(rows):
    parts = rows.split([SEEN, ACTIONS, 1, 1, SEEN], dim=-1)
    return Batch(*parts[:2], parts[2][..., 0], parts[3][..., 0], parts[4])


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        first = nn.Linear(SEEN, 8, bias=False)  # few parameters are recorded sooner
        self.layers = nn.Sequential(first, nn.ReLU(), nn.Linear(8, ACTIONS))

    def forward(self, observations):
        return self.layers(observations).tanh()


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        first = nn.Linear(SEEN + ACTIONS, 8, bias=False)
        norm = nn.LayerNorm(8, elementwise_affine=False)
        self.layers = nn.Sequential(first, norm, nn.ReLU(), nn.Linear(8, 1))

    def forward(self, observations, actions):
        return self.layers(torch.cat([observations, actions], 1)).squeeze(1)


class Behind(nn.Module):
    """A network behind a layer."""

    def __init__(self, layer, inner):
        super().__init__()
        self.layer, self.inner = layer, inner

    def forward(self, observations, *others):
        return self.inner(self.layer(observations), *others)


def adam(network, rate=1e-2):  # with a large epsilon, so that no rounding of a gradient grows
    return torch.optim.Adam(network.parameters(), lr=rate, eps=1e-2)


def descend(loss, optimizer):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


@torch.no_grad()
def soft_update(target, network, share):
    for old, new in zip(target.parameters(), network.parameters(), strict=True):
        old.lerp_(new, share)


class DDPG:
    """Its phases are trained by `phase`, each after `before`; edits override any of it.

    Attributes:
        outcome: what must compute it in the end: compiled, torch, or the name of an error.
        line: why PyTorch computes, word by word, where it is tested.
        note: whether a check has to find that something has changed.
        phases: how many.
    """

    outcome, line, note, phases = "compiled", "", False, 6

    def __init__(self):
        self.actor, self.critic = Actor(), self.make_critic()
        self.target_actor, self.target_critic = copy.deepcopy((self.actor, self.critic))
        self.actor_optimizer = torch.optim.SGD(self.actor.parameters(), lr=1e-2)
        self.critic_optimizer = adam(self.critic)
        self.begin()

    def make_critic(self):
        return Critic()

    def begin(self):
        """What an edit adds."""

    def scale(self, rows):
        """By which the critic's loss is multiplied."""
        return 1.0

    def targets(self, batch):
        with torch.no_grad():
            actions = self.target_actor(batch.next_observations)
            values = self.target_critic(batch.next_observations, actions)
            return batch.rewards + batch.discounts * values

    def critic_loss(self, batch, weights=1.0):
        errors = self.targets(batch) - self.critic(batch.observations, batch.actions)
        return (weights * errors.square()).mean(), errors.detach()

    def actor_loss(self, batch):
        return -self.critic(batch.observations, self.actor(batch.observations)).mean()

    def learn_critic(self, batch, weights=1.0):
        loss, errors = self.critic_loss(batch, weights)
        descend(loss, self.critic_optimizer)
        return errors

    def learn(self, rows, weights):
        batch = split_rows(rows)
        errors = self.learn_critic(batch, weights * self.scale(rows))
        loss = descend(self.actor_loss(batch), self.actor_optimizer)
        self.update_targets()
        return errors, loss

    def update_targets(self):
        soft_update(self.target_actor, self.actor, 0.05)
        soft_update(self.target_critic, self.critic, 0.05)

    @torch.no_grad()
    def act(self, observations):
        return self.actor(observations)

    def before(self, k):
        """Runs before phase k."""

    def end(self):
        """Runs in the end: what is not the learner's own is put back."""

    def phase(self, fast, k, rows, weights):
        return fast.scan("learn", rows, weights)

    def look(self, fast, observations):
        return fast.call("act", observations)


def tensors_in(value, known):
    """All tensors of a learner, whatever holds them."""
    if id(value) in known or isinstance(value, type):
        return
    known[id(value)] = value  # kept, or another object could get its id
    if isinstance(value, torch.Tensor):
        yield value.detach()
    elif isinstance(value, (dict, list, tuple)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from tensors_in(each, known)
    elif hasattr(value, "__dict__"):
        yield from tensors_in(vars(value), known)


def numbers_of(result):
    leaves = torch.utils._pytree.tree_leaves(result)
    return [np.array(x) for x in leaves if x is not None]


def train(kind, start):
    """The engine, and all numbers: results, actions, and the state in the end; or the error."""
    torch.manual_seed(0), np.random.seed(0), random.seed(0)
    learner = kind()
    fast, found, chance = start(learner), [], np.random.default_rng(0)
    try:
        for k in range(kind.phases):
            rows = chance.uniform(-1, 1, (STEPS, BATCH, 2 * SEEN + ACTIONS + 2))
            rows = np.float32(rows * (1 if k < kind.phases - 1 else 5))
            weights = np.float32(chance.uniform(0.5, 1, (STEPS, BATCH)))
            learner.before(k)
            found += numbers_of(learner.phase(fast, k, rows, weights))
            found += numbers_of(learner.look(fast, rows[0, :, :SEEN].copy()))
    except Exception as error:
        found.append(error)
    finally:
        learner.end()
    return fast, found + [tensor.clone().numpy() for tensor in tensors_in(learner, {})]
