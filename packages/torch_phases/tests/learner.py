"""A small learner (DDPG, Lillicrap et al., 2016), and its training for some phases."""

from __future__ import annotations

import copy
import random
from collections import namedtuple

import numpy as np
import torch
from torch import nn
from torch.utils._pytree import tree_leaves

import torch_phases

Batch = namedtuple("Batch", "observations actions rewards discounts next_observations weights")


def batches(*sizes, seed=0, limit=1.0):
    """Random numbers in arrays that begin with these axes."""
    chance, features = np.random.default_rng(seed), ((3,), (2,), (), (), (3,), ())
    return Batch(*(np.float32(chance.uniform(-limit, limit, sizes + each)) for each in features))


class Critic(nn.Module):
    def __init__(self, *before):
        super().__init__()
        first = nn.Linear(5, 8, bias=False)  # few parameters are recorded sooner
        norm = nn.LayerNorm(8, elementwise_affine=False)
        self.layers = nn.Sequential(*before, first, norm, nn.ReLU(), nn.Linear(8, 1))

    def forward(self, observations, actions):
        return self.layers(torch.cat([observations, actions], 1)).squeeze(1)


def adam(network):  # with a large epsilon, so that no rounding of a gradient grows
    return torch.optim.Adam(network.parameters(), lr=1e-2, eps=1e-2)


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
    """Edits override any of it.

    Attributes:
        outcome: what must compute it in the end: compiled, torch, or the name of an error.
        line: why PyTorch computes, word by word, where it is tested.
        notes: how often a check has to find that something has changed.
    """

    outcome, line, notes = "compiled", "", 0
    make_critic = Critic

    def __init__(self, seed=0):
        torch.manual_seed(seed)
        first, last = nn.Linear(3, 8, bias=False), nn.Linear(8, 2)
        self.actor = nn.Sequential(first, nn.ReLU(), last, nn.Tanh())
        self.critic = self.make_critic()
        self.target_actor, self.target_critic = copy.deepcopy((self.actor, self.critic))
        self.actor_optimizer = torch.optim.SGD(self.actor.parameters(), lr=1e-2)
        self.critic_optimizer = adam(self.critic)
        self.begin()

    def begin(self):
        """What an edit adds."""

    def changes(self):
        """Makes a change before each phase that is trained."""
        yield from range(6)

    def scale(self, batch):
        """By which the critic's loss is multiplied."""
        return 1.0

    def targets(self, batch):
        with torch.no_grad():
            actions = self.target_actor(batch.next_observations)
            values = self.target_critic(batch.next_observations, actions)
            return batch.rewards + batch.discounts * values

    def critic_loss(self, batch):
        errors = self.targets(batch) - self.critic(batch.observations, batch.actions)
        return (batch.weights * self.scale(batch) * errors.square()).mean(), errors.detach()

    def actor_loss(self, batch):
        return -self.critic(batch.observations, self.actor(batch.observations)).mean()

    def learn_critic(self, batch):
        loss, errors = self.critic_loss(batch)
        descend(loss, self.critic_optimizer)
        return errors

    def learn(self, batch, share=0.05):
        errors = self.learn_critic(batch)
        loss = descend(self.actor_loss(batch), self.actor_optimizer)
        soft_update(self.target_actor, self.actor, share)
        soft_update(self.target_critic, self.critic, share)
        return {"errors": errors, "loss": loss, "share": share, "nothing": None}

    @torch.no_grad()
    def act(self, observations):
        return self.actor(observations)

    def state_dict(self):
        """All numbers that it holds."""
        parts = [x.state_dict() if hasattr(x, "state_dict") else x for x in tree_leaves(vars(self))]
        return [x for x in tree_leaves(parts) if isinstance(x, (int, float, torch.Tensor))]


class One:
    """A tensor of weights, and its loss."""

    def __init__(self, weight, loss, kind=torch.optim.SGD, **options):
        self.weight, self.loss = weight.requires_grad_(), loss
        self.optimizer = kind([self.weight], **options)

    def learn(self, x):
        return descend(self.loss(self.weight, x), self.optimizer)


def train(kind, engine):
    """The engine; all numbers: results, actions, and the state in the end; and the error."""
    random.seed(0), np.random.seed(0)
    fast, found, error = torch_phases.compile(kind(), engine), [], ""
    try:
        for k, _ in enumerate(fast.learner.changes()):
            rows = batches((3, 5, 1)[k % 3], 16, seed=k, limit=5.0 if k % 6 == 5 else 1.0)
            found += [fast.scan("learn", rows, 0.05), fast.call("act", rows.observations[0]), rows]
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"
    return fast, [*found, fast.learner.state_dict()], error
