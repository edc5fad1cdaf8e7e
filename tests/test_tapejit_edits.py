"""Edits that people make to a learner train the same with either engine, or a line says why not.

Each edit is a class `Edited(DDPG)`, made of the notebook's learner, and functions around it:
`before(d, k)` and `after(d, k)` run around phase k, and `act(d, fast, observations)` and
`learn(d, fast, *arguments)` take the place of the compiled calls. Behind its name stands what
computes it in the end: compiled, torch, either, or an error that it raises. `~ x` multiplies the
weights of the loss by x.

How far may the engines lie apart? Optimizers get a large epsilon, so that no rounding of a gradient
grows; then all numbers agree to some ten roundings of each of 21 steps.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from tapejit_training import train

import tapejit
from tapejit import jax_setup

EVERY_7TH = """
def hard_update(d, count):
    if count % 7 == 0:
        with torch.no_grad():
            for old, new in zip(d.target_critic.parameters(), d.critic.parameters()):
                old.copy_(new)
"""
CRITIC = """
class Edited(DDPG):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.critic = Mine(self.critic)
        self.target_critic = copy.deepcopy(self.critic).requires_grad_(False)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=1e-3)
"""
ACTOR = CRITIC.replace("critic", "actor")
INIT = """
class Edited(DDPG):
    def __init__(self, *arguments):
        super().__init__(*arguments)
"""
WEIGHTED = r"""    def learn(self, rows, weights, *others):
        return super().learn(rows, weights * (\1), *others)"""
LEARN = """
class Edited(DDPG):
    def learn(self, *arguments):
        result = super().learn(*arguments)
"""

# Those of strangers: each trained something else than PyTorch, and nobody was told.
STRANGERS = """
# counter in a global dict: torch
COUNT = {"n": 0}
{EVERY_7TH}
{LEARN}
        COUNT["n"] += 1
        hard_update(self, COUNT["n"])
        return result
# counter in a global list: torch
COUNT = [0]
{EVERY_7TH}
{LEARN}
        COUNT[0] += 1
        hard_update(self, COUNT[0])
        return result
# itertools.count: torch
COUNT = itertools.count(1)
{EVERY_7TH}
{LEARN}
        hard_update(self, next(COUNT))
        return result
# counter in an object of the learner: torch
class Clock:
    ticks = 0
    def tick(self):
        self.ticks += 1
        return self.ticks
{EVERY_7TH}
{INIT}
        self.clock = Clock()
    def learn(self, *arguments):
        hard_update(self, self.clock.tick())
        return super().learn(*arguments)
# counter in a closure: torch
{EVERY_7TH}
def make():
    n = 0
    def tick():
        nonlocal n
        n += 1
        return n
    return tick
TICK = make()
{LEARN}
        hard_update(self, TICK())
        return result
# counter in an array of NumPy: torch
COUNT = np.zeros(1, int)
{EVERY_7TH}
{LEARN}
        COUNT[0] += 1
        hard_update(self, COUNT[0])
        return result
# counter as attribute of a function: torch
{EVERY_7TH}
def step(d):
    step.n = getattr(step, "n", 0) + 1
    hard_update(d, step.n)
{LEARN}
        step(self)
        return result
# random.random: torch
import random
{LEARN}
        if random.random() < 0.8:
            my_soft_update(self.target_actor, self.actor, 0.5)
        return result
# np.random.rand: torch
{LEARN}
        if np.random.rand() < 0.8:
            my_soft_update(self.target_actor, self.actor, 0.5)
        return result
# a random.Random of one's own: torch
import random
CHANCE = random.Random(0)
{LEARN}
        if CHANCE.random() < 0.8:
            my_soft_update(self.target_actor, self.actor, 0.5)
        return result
# whole numbers beyond 32 bits: compiled
class Edited(DDPG):
    def learn(self, rows, weights, *others):
        bucket = (rows[:, 0] * 1e9).long() * 16 % 7
        return super().learn(rows, weights * (1 + bucket.float()), *others)
# a dict of the learner is changed: compiled
class Edited(DDPG):
    options = {"scale": 1.0, None: 1.0}
    ~ self.options["scale"] * self.options[None]
def before(d, k):
    d.options["scale"] = 3.0 if k > 3 else 1.0
    d.options[None] = 2.0 if k > 5 else 1.0
# a tensor of the learner is changed in place: compiled
{INIT}
        self.scale = torch.ones(1)
    ~ self.scale
def before(d, k):
    d.scale.fill_(1.0 + k)
# a gain of the network is annealed: compiled
class Mine(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner, self.gain = inner, 1.0
    def forward(self, *arguments):
        return self.gain * self.inner(*arguments)
{CRITIC}
def before(d, k):
    d.critic.gain = 2.0 if k > 3 else 1.0
# a global number is changed: compiled
SCALE_OF_LOSS = 1.0
~ SCALE_OF_LOSS
def before(d, k):
    global SCALE_OF_LOSS
    SCALE_OF_LOSS = 1.0 + (k > 3)
# a global dict is changed: compiled
OPTIONS = {"scale": 1.0}
~ OPTIONS["scale"]
def before(d, k):
    OPTIONS["scale"] = 1.0 + (k > 3)
# a layer is frozen from a phase on: torch
def before(d, k):
    if k == 4:
        for parameter in d.critic.layers[:2].parameters():
            parameter.requires_grad_(False)
# a running mean of the observations: compiled
{INIT}
        self.mean = torch.zeros(3)
    def act(self, observations, noise=None):
        return super().act(observations - self.mean, noise)
    def learn(self, rows, *others):
        return super().learn(torch.cat([rows[:, :3] - self.mean, rows[:, 3:]], 1), *others)
def before(d, k):
    d.mean.lerp_(torch.full((3,), 1.0 + k), 0.1)
# parameter noise: compiled
def before(d, k):
    with torch.no_grad():
        for parameter in d.actor.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
# a new critic is loaded: compiled
def after(d, k):
    new = d.make_networks(d.settings, TASK)[1]
    d.critic.load_state_dict(new.state_dict())
# weights are clipped after a phase, by data: compiled
def after(d, k):
    for parameter in d.critic.parameters():
        parameter.data.clamp_(-0.2, 0.2)
# the optimizer's state is cleared: compiled
def after(d, k):
    if k in (3, 4):
        d.critic_optimizer.state.clear()
# a running statistic as buffer: compiled
class Mine(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.register_buffer("mean", torch.zeros(3))
    def forward(self, observations, *others):
        return self.inner(observations - self.mean, *others)
{ACTOR}
def before(d, k):
    d.actor.mean += 0.1
# a loop over learn of one's own: compiled
PHASES = []
def learn(d, fast, rows, weights, noise):
    PHASES.append(len(rows))
    if len(PHASES) % 2:
        return fast.scan("learn", rows, weights, noise)
    for k in range(len(rows)):
        result = d.learn(*map(torch.from_numpy, (rows[k], weights[k], noise[k])))
    return [np.array(each) for each in result]
# no number through three kinds of ReLU: compiled
def layer(x):
    return nn.ReLU()(torch.relu(F.relu(torch.sqrt(2.0 - x.abs()))))
Mine = functools.partial(Behind, layer)
{CRITIC}
# an index beyond a table: raises IndexError
{INIT}
        self.table = torch.linspace(1, 2, 3)
    ~ self.table[rows[:, 0].abs().long()]
# an index beyond an axis: raises RuntimeError
{INIT}
        self.table = torch.linspace(1, 2, 3)
    ~ self.table.gather(0, rows[:, 0].abs().long())
# the arguments are changed in place: compiled
class Edited(DDPG):
    def learn(self, rows, *others):
        rows[:, 5] *= 0.5
        return super().learn(rows, *others)
def act(d, fast, observations):
    rows = np.tile(observations, (1, 4))[:, :10].copy()
    fast.call("learn", rows, np.ones(len(rows), np.float32))
    return rows
# a global counter: torch
COUNT = 0
{EVERY_7TH}
{LEARN}
        global COUNT
        COUNT += 1
        hard_update(self, COUNT)
        return result
"""

# Other things that people do to a learner.
OWN = """
# a schedule outside of the learner: compiled
{INIT}
        self.schedule = torch.optim.lr_scheduler.StepLR(self.critic_optimizer, 1, 0.5)
def after(d, k):
    d.schedule.step()
# a schedule inside of the learner: torch
{INIT}
        self.schedule = torch.optim.lr_scheduler.StepLR(self.critic_optimizer, 1, 0.9)
    def learn(self, *arguments):
        result = super().learn(*arguments)
        self.schedule.step()
        return result
# a running normalizer that learn updates, a new tensor each time: torch
class Normalizer:
    def __init__(self):
        self.mean, self.square = torch.zeros(3), torch.ones(3)
    def update(self, x):
        self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
        self.square = 0.9 * self.square + 0.1 * x.square().mean(0)
    def __call__(self, x):
        return (x - self.mean) / (self.square - self.mean.square()).clamp(min=1e-2).sqrt()
{INIT}
        self.normalizer = Normalizer()
    def learn(self, rows, *others):
        self.normalizer.update(rows[:, :3])
        return super().learn(torch.cat([self.normalizer(rows[:, :3]), rows[:, 3:]], 1), *others)
    def act(self, observations, noise=None):
        return super().act(self.normalizer(observations), noise)
# returns are divided by a running size in NumPy: torch
class Edited(DDPG):
    size = np.ones(1, np.float32)
    def learn(self, rows, *others):
        self.size = 0.9 * self.size + 0.1 * np.abs(rows[:, 5].numpy()).mean()
        return super().learn(rows, *others)
# gradients are clipped by their norm: compiled
class Edited(DDPG):
    def learn_critic(self, batch, weights=1.0):
        errors = self.td_errors(batch)
        loss = (weights * errors.square()).mean()
        self.critic_optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.critic.parameters(), 0.05)
        self.critic_optimizer.step()
        return errors.detach()
# gradients are clipped by value, and an L1 penalty: compiled
class Edited(DDPG):
    def learn_critic(self, batch, weights=1.0):
        errors = self.td_errors(batch)
        loss = (weights * errors.square()).mean()
        loss = loss + 1e-2 * sum(p.abs().sum() for p in self.critic.parameters())
        self.critic_optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(self.critic.parameters(), 1e-2)
        self.critic_optimizer.step()
        return errors.detach()
# a penalty of the critic's gradient by the action: compiled
class Edited(DDPG):
    def learn_critic(self, batch, weights=1.0):
        actions = batch.actions.clone().requires_grad_()
        value = self.critic(batch.observations, actions).sum()
        (slope,) = torch.autograd.grad(value, actions, create_graph=True)
        loss = slope.square().sum(1).mean()
        descend(loss, self.critic_optimizer)
        return super().learn_critic(batch, weights)
# two critics in a plain list, clipped double Q: compiled
{INIT}
        self.critics = [self.critic, self.make_networks(*arguments)[1]]
        self.slow = copy.deepcopy(self.critics)
        parameters = [critic.parameters() for critic in self.critics]
        self.optimizers = {c: torch.optim.Adam(parameters[c], eps=1e-2) for c in (0, 1)}
    def learn_critic(self, batch, weights=1.0):
        with torch.no_grad():
            after = self.target_actor(batch.next_observations)
            values = [target(batch.next_observations, after) for target in self.slow]
            y = batch.rewards + batch.discounts * torch.stack(values).amin(0)
        for k, critic in enumerate(self.critics):
            errors = y - critic(batch.observations, batch.actions)
            loss = (weights * errors.square()).mean()
            descend(loss, self.optimizers[k])
        for target, critic in zip(self.slow, self.critics):
            my_soft_update(target, critic, 0.05)
        return errors.detach()
# the entropy's temperature is learned: compiled
{INIT}
        self.log_alpha = torch.zeros(1, requires_grad=True)
        self.alpha_optimizer = torch.optim.Adam([self.log_alpha], lr=1e-2)
    def learn_actor(self, batch, noise=None):
        actions = self.actor(batch.observations)
        size, values = actions.square().sum(1), self.critic(batch.observations, actions)
        loss = (self.log_alpha.exp().detach() * size - values).mean()
        descend(loss, self.actor_optimizer)
        descend(-(self.log_alpha * (size.detach() - 0.1)).mean(), self.alpha_optimizer)
        return loss.detach()
# an average of the actor's weights in a dict: compiled
{INIT}
        self.averages = {name: p.detach().clone() for name, p in self.actor.named_parameters()}
    def update_targets(self):
        super().update_targets()
        with torch.no_grad():
            for name, p in self.actor.named_parameters():
                self.averages[name].mul_(0.9).add_(p, alpha=0.1)
# a distributional critic, quantile loss: compiled
class Quantiles(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(inputs, 16), nn.SiLU(), nn.Linear(16, 5))
    def all(self, s, a):
        return self.layers(torch.cat([s, a], -1))
    def forward(self, s, a):
        return self.all(s, a).mean(1)
{INIT}
        self.critic, self.taus = Quantiles(5), torch.linspace(0.1, 0.9, 5)
        self.target_critic = copy.deepcopy(self.critic)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters())
    def learn_critic(self, batch, weights=1.0):
        with torch.no_grad():
            s = batch.next_observations
            after = self.target_critic.all(s, self.target_actor(s))
            y = batch.rewards[:, None] + batch.discounts[:, None] * after
        errors = y[:, None, :] - self.critic.all(batch.observations, batch.actions)[:, :, None]
        huber = F.huber_loss(errors, 0 * errors, reduction="none")
        loss = (huber * (self.taus[:, None] - (errors < 0).float()).abs()).mean()
        descend(loss, self.critic_optimizer)
        return errors.detach().mean((1, 2))
# dropout: compiled
Mine = functools.partial(Behind, nn.Dropout(0.3))
{CRITIC}
# smoothed target actions: compiled
class Edited(DDPG):
    def learn_critic(self, batch, weights=1.0):
        with torch.no_grad():
            a = self.target_actor(batch.next_observations)
            a = (a + (0.2 * torch.randn_like(a)).clamp(-0.5, 0.5)).clamp(-1, 1)
            y = batch.rewards + batch.discounts * self.target_critic(batch.next_observations, a)
        errors = y - self.critic(batch.observations, batch.actions)
        loss = (weights * errors.square()).mean()
        descend(loss, self.critic_optimizer)
        return errors.detach()
# random numbers of a torch.Generator of one's own: torch
{INIT}
        self.chance = torch.Generator().manual_seed(0)
    def learn(self, rows, *others):
        return super().learn(rows + 0.1 * torch.randn(rows.shape, generator=self.chance), *others)
# sampled actions of a distribution: compiled
class Edited(DDPG):
    def learn_actor(self, batch, noise=None):
        mean = self.actor(batch.observations)
        actions = torch.distributions.Normal(mean, 0.1, validate_args=False).rsample()
        loss = -self.critic(batch.observations, actions).mean()
        descend(loss, self.actor_optimizer)
        return loss.detach()
# batch normalization in the critic: compiled
Mine = functools.partial(Behind, nn.BatchNorm1d(3))
{CRITIC}
        self.critic.eval(), self.target_critic.eval()
# group normalization: either
Mine = functools.partial(Behind, nn.GroupNorm(3, 3))
{CRITIC}
# weight normalization: either
{INIT}
        nn.utils.parametrizations.weight_norm(self.critic.layers[2])
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=1e-3)
        self.target_critic = copy.deepcopy(self.critic)
# spectral normalization: either
{INIT}
        nn.utils.parametrizations.spectral_norm(self.critic.layers[2])
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=1e-3)
        self.target_critic = copy.deepcopy(self.critic)
# layers are reset at each second phase: compiled
def after(d, k):
    if k % 2:
        d.actor.apply(lambda m: m.reset_parameters() if isinstance(m, nn.Linear) else None)
# the optimizer is swapped: compiled
def after(d, k):
    if k == 3:
        d.critic_optimizer = torch.optim.SGD(d.critic.parameters(), lr=1e-2)
# the whole critic is another object: compiled
def after(d, k):
    if k == 3:
        d.critic = copy.deepcopy(d.critic)
        d.critic_optimizer = torch.optim.Adam(d.critic.parameters(), lr=1e-2, eps=1e-2)
# the target is a new copy in each phase: compiled
def after(d, k):
    d.target_critic = copy.deepcopy(d.critic)
# the loss is another function from a phase on: compiled
def my_loss(errors, weights):
    return (weights * errors.square()).mean()
class Edited(DDPG):
    def learn_critic(self, batch, weights=1.0):
        errors = self.td_errors(batch)
        loss = my_loss(errors, weights)
        descend(loss, self.critic_optimizer)
        return errors.detach()
def after(d, k):
    global my_loss
    if k == 3:
        my_loss = lambda errors, weights: (weights * errors.abs()).mean()
# a default that is changed: compiled
def scale(x, options={"by": 1.0}):
    return options["by"] * x
~ scale(weights)
def after(d, k):
    if k == 3:
        scale.__defaults__[0]["by"] = 3.0
# a class attribute that is changed: compiled
class Config:
    scale = 1.0
~ Config.scale
def after(d, k):
    if k == 3:
        Config.scale = 3.0
# a dataclass with a property: compiled
import dataclasses
@dataclasses.dataclass
class Config:
    base: float = 1.0
    @property
    def scale(self):
        return 2 * self.base
{INIT}
        self.config = Config()
    ~ self.config.scale
def after(d, k):
    if k == 3:
        d.config = Config(3.0)
# an object with slots: torch
class Config:
    __slots__ = ("scale",)
{INIT}
        self.config = Config()
        self.config.scale = 1.0
    ~ self.config.scale
def after(d, k):
    if k == 3:
        d.config.scale = 3.0
# a name that is put together: torch
class Edited(DDPG):
    scale_of_critic = 1.0
    ~ getattr(self, "scale_of_" + "critic")
def after(d, k):
    if k == 3:
        d.scale_of_critic = 3.0
# a partial and a lambda: compiled
{INIT}
        self.options = [1.0]
        self.scale = functools.partial(lambda options, x: options[0] * x, self.options)
    ~ self.scale(weights)
def after(d, k):
    if k == 3:
        d.options[0] = 3.0
import functools
# a cache: torch
import functools
@functools.lru_cache
def scale_of(k):
    return SCALES[k]
SCALES = [1.0]
~ scale_of(0)
def after(d, k):
    if k == 3:
        SCALES[0] = 3.0
        scale_of.cache_clear()
# a number that is annealed in each phase: either
class Edited(DDPG):
    scale = 1.0
    ~ self.scale
def after(d, k):
    d.scale *= 0.9
# time: torch
import time
START = time.time()
~ (1.0 + (time.time() < START))
# an environment variable: torch
import os
~ float(os.environ.get("SCALE", "1.0"))
def before(d, k):
    os.environ["SCALE"] = str(1.0 + (k > 3))
# a file: torch
class Edited(DDPG):
    def learn(self, *arguments):
        with open(os.devnull, "a") as file:
            file.write("learned")
        return super().learn(*arguments)
import os
# a print now and then: torch
class Edited(DDPG):
    def learn(self, *arguments):
        result = super().learn(*arguments)
        print(f"loss {result[1]:.3f}")
        return result
# stop early if the loss is small: torch
class Edited(DDPG):
    def learn_actor(self, batch, noise=None):
        loss = my_actor_loss(batch.observations, self.actor, self.critic)
        if loss < -0.05:
            return loss.detach()
        descend(loss, self.actor_optimizer)
        return loss.detach()
# a history of losses: torch
{INIT}
        self.history = []
    def learn(self, *arguments):
        result = super().learn(*arguments)
        self.history.append(result[1])
        return result
# the last loss is kept: torch
class Edited(DDPG):
    last = None
    def learn(self, *arguments):
        result = super().learn(*arguments)
        self.last = result[1]
        return result
def act(d, fast, observations):
    return d.last.numpy()
# a loss that depends on the one before: torch
{INIT}
        self.scale = torch.ones(())
    def learn(self, rows, weights, *others):
        result = super().learn(rows, weights / self.scale, *others)
        self.scale = 0.9 * self.scale + 0.1 * result[0].square().mean().sqrt()
        return result
# a custom function of autograd: compiled
class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x.clone()
    @staticmethod
    def backward(context, gradient):
        return -0.5 * gradient
class Edited(DDPG):
    def learn_actor(self, batch, noise=None):
        values = self.critic(batch.observations, self.actor(batch.observations))
        loss = Reversed.apply(values).mean()
        descend(loss, self.actor_optimizer)
        return loss.detach()
# a hook with a counter: torch
SEEN = []
{INIT}
        self.critic.register_forward_hook(lambda module, given, result: SEEN.append(1) or result)
# a hook that changes gradients: compiled
{INIT}
        for parameter in self.critic.parameters():
            parameter.register_hook(lambda gradient: 0.5 * gradient.sign())
# operations in place: compiled
class Edited(DDPG):
    def learn(self, rows, weights, *others):
        rows[:, 5].clamp_(-0.5, 0.5).mul_(2)
        weights[:4] = 0.5
        return super().learn(rows, weights, *others)
# the size of a gradient of the step before: torch
class Edited(DDPG):
    def learn(self, rows, weights, *others):
        gradient = self.critic.layers[-1].bias.grad
        size = 1.0 if gradient is None else 1 + gradient.abs()
        return super().learn(rows, weights * size, *others)
# gradients are not set to zero: torch
{INIT}
        self.actor_optimizer.zero_grad = lambda *given, **more: None
# a delayed actor, by a flag of each step: torch
class Edited(DDPG):
    def learn(self, rows, weights, noise, with_actor):
        batch = split_rows(rows, 3)
        return self.learn_actor(batch) if with_actor else self.learn_critic(batch).mean()
def learn(d, fast, rows, weights, noise):
    return fast.scan("learn", rows, weights, noise, np.arange(len(rows)) % 2 == 0)
# a delayed actor, by a batch cut in two: compiled
class Edited(DDPG):
    def learn(self, rows, weights, noise):
        first, second = (split_rows(half, 3) for half in rows.chunk(2))
        self.learn_critic(first)
        return super().learn(rows[len(rows) // 2 :], 1.0, noise)
# two states that share memory: torch
{INIT}
        self.target_critic.layers[2].bias.data = self.critic.layers[2].bias.data
# an auxiliary loss with a network of its own: compiled
{INIT}
        self.others = {"model": [nn.Linear(5, 3)]}
        weights = self.others["model"][0].parameters()
        self.others["optimizer"] = torch.optim.RMSprop(weights, eps=1e-2)
    def learn(self, rows, *others):
        guess = self.others["model"][0](rows[:, :5])
        loss = F.mse_loss(guess, rows[:, 7:10])
        descend(loss, self.others["optimizer"])
        return (*super().learn(rows, *others), {"model": loss.detach(), "nothing": None})
def learn(d, fast, *arguments):
    *found, more = fast.scan("learn", *arguments)
    assert more["nothing"] is None
    return [*found, more["model"]]
# an embedding of a whole number: compiled
{INIT}
        self.table = nn.Embedding(4, 1)
    def learn(self, rows, weights, *others):
        index = (rows[:, 0] > 0).long() + 2 * (rows[:, 1] > 0).long()
        return super().learn(rows, weights * (1 + self.table(index).detach()[:, 0].abs()), *others)
# counts and sums by scatter and index_put: compiled
{INIT}
        self.counts, self.sums = torch.zeros(4), torch.zeros(4)
    def learn(self, rows, weights, *others):
        index = (rows[:, 0] > 0).long() + 2 * (rows[:, 1] > 0).long()
        self.counts.scatter_add_(0, index, torch.ones(len(index)))
        self.sums.index_put_((index,), rows[:, 5], accumulate=True)
        return super().learn(rows, weights * (1 + self.sums / self.counts)[index], *others)
# rewards are cut by a mask: torch
class Edited(DDPG):
    def learn(self, rows, *others):
        rows[rows[:, 5] > 0.5, 5] = 0.5
        return super().learn(rows, *others)
# a mask takes rows of a batch: torch
class Edited(DDPG):
    def learn(self, rows, weights, *others):
        return super().learn(rows[rows[:, 5] > 0], weights[rows[:, 5] > 0], *others)[1:]
# numbers of double precision: compiled
class Edited(DDPG):
    def learn(self, rows, weights, *others):
        exact = weights.double() / weights.double().sum() * len(weights)
        return super().learn(rows, exact.float(), *others)
# weight decay, Nesterov and another rate for each layer: compiled
{INIT}
        options = {"momentum": 0.9, "nesterov": True, "weight_decay": 1e-2}
        layers = enumerate(self.critic.parameters())
        groups = [{"params": [p], "lr": 1e-2 / (1 + k)} for k, p in layers]
        self.critic_optimizer = torch.optim.SGD(groups, 1e-2, **options)
    def set_learning_rates(self, factor):
        pass
"""


def table(text):
    """Name, outcome and code of each edit."""
    parts = re.split(r"^# (?=.*: (?:compiled|torch|raises|either))", text, flags=re.M)[1:]
    for part in parts:
        head, _, code = part.partition("\n")
        name, _, outcome = head.rpartition(": ")
        code = re.sub("{([A-Z0-9_]+)}", lambda match: globals()[match[1]].strip("\n"), code)
        code = re.sub("^~", "class Edited(DDPG):\n    ~", code, flags=re.M)
        code = re.sub("^    ~ (.*)$", WEIGHTED, code, flags=re.M)
        yield pytest.param(outcome, code, id=name)


@pytest.mark.parametrize("wanted, code", [*table(STRANGERS), *table(OWN)])
def test_an_edit_counts_in_either_engine(notebook, monkeypatch, capsys, wanted, code):
    quick = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
    monkeypatch.setattr(jax_setup, "COMPILER_OPTIONS", jax_setup.COMPILER_OPTIONS | quick)
    _, expected = train(notebook, code, lambda d: tapejit.compile(d, "torch"))
    capsys.readouterr()
    fast, found = train(notebook, code, tapejit.compile)
    lines = [x for x in capsys.readouterr().out.splitlines() if x.startswith("engine: torch, ")]
    assert len(found) == len(expected)
    for one, other in zip(expected, found, strict=True):
        if isinstance(one, Exception):
            assert type(other) is type(one) and str(other) == str(one)
            assert wanted == f"raises {type(one).__name__}"
        else:
            np.testing.assert_allclose(other, one, rtol=2e-5, atol=2e-5)
    assert wanted in ("either", fast.engine) or (
        wanted[:6] == "raises" and fast.engine == "compiled"
    )
    assert bool(lines) == (fast.engine == "torch") == (fast.reason is not None)
    assert fast.engine == "torch" or fast.current, "something was compiled"
