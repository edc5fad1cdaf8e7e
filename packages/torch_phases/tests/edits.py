"""Edits that people make to a learner. Each class is one, or some that show the same.

An edit trains in many phases. What must not be told silently: the numbers are PyTorch's.
"""

import builtins
import collections
import copy
import dataclasses
import functools
import itertools
import operator
import os
import random
import time

import numpy as np
import torch
from learner import BATCH, DDPG, SEEN, Behind, Critic, adam, descend, soft_update
from torch import nn
from torch.nn import functional as F

# ------------------------------------------------- what Python does in a step: told, with a line

COUNT, NUMBERS, ARRAY, TOTAL = {"n": 0}, itertools.count(1), np.zeros(1, int), 0
START, SEEN_BY_HOOK = time.time(), []


def ticking():
    n = 0

    def tick():
        nonlocal n
        n += 1
        return n

    return tick


tick = ticking()


class Told(DDPG):
    """Left to PyTorch; each function `edit_...` is one, with the begin of the line, if tested."""

    outcome, steps = "torch", 0

    def update_targets(self):
        super().update_targets()
        self.edit()

    def begin(self):
        self.schedule = torch.optim.lr_scheduler.StepLR(self.critic_optimizer, 1, 0.9)

    def edit(self):
        pass

    def at(self, count):
        """What is trained depends on how often a step has run."""
        if count % 7 == 0:
            soft_update(self.target_critic, self.critic, 1.0)


def edit_a_counter_in_a_dict(self):
    """changes COUNT, which is no tensor, in edit_a_counter_in_a_dict (COUNT["n"] += 1): keep it"""
    COUNT["n"] += 1
    self.at(COUNT["n"])


def edit_a_count_of_itertools(self):
    self.at(next(NUMBERS))


def edit_an_attribute(self):
    """changes self.steps, which is no tensor, in edit_an_attribute (self.steps += 1)"""
    self.steps += 1
    self.at(self.steps)


def edit_a_counter_in_a_closure(self):
    self.at(tick())


def edit_a_counter_in_an_array(self):
    ARRAY[0] += 1
    self.at(ARRAY[0])


def edit_a_counter_of_a_function(self):
    ticking.n = getattr(ticking, "n", 0) + 1
    self.at(ticking.n)


def edit_a_global_counter(self):
    global TOTAL
    TOTAL += 1
    self.at(TOTAL)


def edit_random_numbers_of_python(self):
    self.at(random.randint(6, 7))


def edit_random_numpy(self):
    """computes with NumPy, in edit_random_numpy (self.at(np.random.randint(6, 8))): use"""
    self.at(np.random.randint(6, 8))


def edit_the_clock(self):
    """calls the module time, in edit_the_clock (self.at(7 + (time.time() < START))): do so"""
    self.at(7 + (time.time() < START))


def edit_a_file(self):
    """calls open, in edit_a_file (with open(os.devnull, "a") as file:): do so outside, and give"""
    with open(os.devnull, "a") as file:
        file.write("learned")


def edit_a_print(self):
    """prints, in edit_a_print (print(self.actor.layers[0].weight.sum())): print what scan"""
    print(self.actor.layers[0].weight.sum())


def edit_a_look(self):
    """looks at a tensor's number, in edit_a_look (if self.actor.layers[2].bias[0] < 0.1:)"""
    if self.actor.layers[2].bias[0] < 0.1:
        self.at(7)


def edit_a_history(self):
    """changes SEEN_BY_HOOK, which is no tensor, in edit_a_history"""
    SEEN_BY_HOOK.append(self.actor.layers[2].bias[0])


def edit_a_schedule_inside(self):
    self.schedule.step()


class AGeneratorOfTorch(Told):
    def begin(self):
        self.chance = torch.Generator().manual_seed(0)

    def learn(self, rows, weights):
        return super().learn(rows + 0.1 * torch.randn(rows.shape, generator=self.chance), weights)


class ANewTensorInAnAttribute(Told):
    mean = torch.zeros(SEEN)

    def learn(self, rows, weights):
        self.mean = 0.9 * self.mean + 0.1 * rows[:, :SEEN].mean(0)
        return super().learn(torch.cat([rows[:, :SEEN] - self.mean, rows[:, SEEN:]], 1), weights)


class AHookWithACounter(Told):
    def begin(self):
        self.critic.register_forward_hook(lambda module, given, result: SEEN_BY_HOOK.append(1))


class AHookOfAnOptimizer(Told):
    line = "meets a hook of a tensor or optimizer: do in the method what the hook does"

    def begin(self):
        self.critic_optimizer.register_step_post_hook(lambda *given: SEEN_BY_HOOK.append(1))


class AHookOfGradientsOfAModule(Told):
    def begin(self):
        last = self.critic.layers[3]
        last.register_full_backward_hook(lambda module, given, result: (2 * given[0],))


def halve(parameter):
    parameter.grad.mul_(0.5)


class AHookAfterAGradient(Told):
    def begin(self):
        for parameter in self.critic.parameters():
            parameter.register_post_accumulate_grad_hook(halve)


class TheGradientOfTheStepBefore(Told):
    def scale(self, rows):
        gradient = self.critic.layers[3].bias.grad
        return 1.0 if gradient is None else 1 + gradient.abs()


class GradientsAreNotSetToZero(Told):
    line = "uses a gradient of the step before: set gradients to zero before backward()"

    def begin(self):
        self.actor_optimizer.zero_grad = lambda *given, **more: None


class AMaskTakesRows(Told):
    line = (
        "makes a tensor whose size depends on numbers, in learn "
        "(rows[rows[:, 5] > 0.5, 5] = 0.5): multiply by a mask, or use torch.where"
    )

    def learn(self, rows, weights):
        rows[rows[:, 5] > 0.5, 5] = 0.5
        return super().learn(rows, weights)


class TwoStatesThatShareMemory(Told):
    line = "changes a tensor that shares memory with another one: give it memory of its own (clone)"

    def begin(self):
        self.target_critic.layers[3].bias.data = self.critic.layers[3].bias.data


class AnOperationThatIsNotTranslated(Told):
    line = "uses median.default, not translated, in scale (return 1 + rows.median())"

    def scale(self, rows):
        return 1 + rows.median()


class HalfPrecision(Told):
    def scale(self, rows):
        return rows[:, 0].bfloat16().abs().float()


class AnIndexBeyondATable(DDPG):
    outcome = "IndexError"

    def begin(self):
        self.table = torch.linspace(1, 2, 3)

    def scale(self, rows):
        return self.table[rows[:, 0].abs().long()]


# -------------------------------------------------------------- other learners, which are compiled


class OtherNumbers(DDPG):
    """Integers of 64 bits, double precision, tables, counts, operations in place, no number."""

    def begin(self):
        self.table, self.counts, self.sums = nn.Embedding(4, 1), torch.zeros(4), torch.zeros(4)

    def scale(self, rows):
        whole = 1 + ((rows[:, 0] * 1e9).long() * 16 % 7).float()
        double = rows[:, 0].double().abs() / rows[:, 0].double().abs().sum()
        index = (rows[:, 0] > 0).long() + 2 * (rows[:, 1] > 0).long()
        self.counts.scatter_add_(0, index, torch.ones(len(index)))
        self.sums.index_put_((index,), rows[:, 5], accumulate=True)
        known = 1 + self.table(index).detach()[:, 0].abs() + (self.sums / self.counts)[index]
        return whole * double.float() * known

    def learn(self, rows, weights):
        rows[:, 5].clamp_(-0.5, 0.5).mul_(2)
        weights[:4] = 0.5
        return super().learn(rows, weights)


class NoNumberThroughReLUs(DDPG):
    def targets(self, batch):
        return super().targets(batch) + F.relu(nn.ReLU()(torch.sqrt(0.9 - batch.rewards.abs())))


class Clipped(DDPG):
    """Gradients, by norm or by value, with a penalty of a slope."""

    def critic_loss(self, batch, weights=1.0):
        actions = batch.actions.clone().requires_grad_()
        value = self.critic(batch.observations, actions).sum()
        (slope,) = torch.autograd.grad(value, actions, create_graph=True)
        loss, errors = super().critic_loss(batch, weights)
        return loss + slope.square().sum(1).mean(), errors

    def learn_critic(self, batch, weights=1.0):
        for clip, limit in ((nn.utils.clip_grad_norm_, 0.05), (nn.utils.clip_grad_value_, 1e-2)):
            loss, errors = self.critic_loss(batch, weights)
            self.critic_optimizer.zero_grad()
            loss.backward()
            clip(self.critic.parameters(), limit)
            self.critic_optimizer.step()
        return errors


class TwoCriticsAndATemperature(DDPG):
    """In lists and dicts, with averages of weights and None in a result."""

    def begin(self):
        self.critics = [self.critic, self.make_critic()]
        self.slow = copy.deepcopy(self.critics)
        self.optimizers = {k: adam(self.critics[k]) for k in (0, 1)}
        self.log_alpha = torch.zeros(1, requires_grad=True)
        self.alpha_optimizer = torch.optim.Adam([self.log_alpha], lr=1e-2)
        self.averages = {name: p.detach().clone() for name, p in self.actor.named_parameters()}

    def learn_critic(self, batch, weights=1.0):
        with torch.no_grad():
            after = self.target_actor(batch.next_observations)
            values = [target(batch.next_observations, after) for target in self.slow]
            y = batch.rewards + batch.discounts * torch.stack(values).amin(0)
        for k, critic in enumerate(self.critics):
            errors = y - critic(batch.observations, batch.actions)
            descend((weights * errors.square()).mean(), self.optimizers[k])
        for target, critic in zip(self.slow, self.critics, strict=True):
            soft_update(target, critic, 0.05)
        return {"errors": errors.detach(), "nothing": None}

    def actor_loss(self, batch):
        actions = self.actor(batch.observations)
        size, values = actions.square().sum(1), self.critic(batch.observations, actions)
        descend(-(self.log_alpha * (size.detach() - 0.1)).mean(), self.alpha_optimizer)
        return (self.log_alpha.exp().detach() * size - values).mean()

    @torch.no_grad()
    def update_targets(self):
        super().update_targets()
        for name, p in self.actor.named_parameters():
            self.averages[name].mul_(0.9).add_(p, alpha=0.1)


class RandomNumbers(DDPG):
    """Dropout, smoothed targets and sampled actions draw PyTorch's, in their order."""

    def make_critic(self):
        return Behind(nn.Dropout(0.3), Critic())

    def targets(self, batch):
        return super().targets(batch) + 0.2 * torch.randn_like(batch.rewards).clamp(-0.5, 0.5)

    def actor_loss(self, batch):
        mean = self.actor(batch.observations)
        actions = torch.distributions.Normal(mean, 0.1, validate_args=False).rsample()
        return -self.critic(batch.observations, actions).mean()


class NormalizedByBatchesWhereItLearns(DDPG):
    """The flags of its modules change within a step, and are in the end as they were."""

    def make_critic(self):
        critic = Behind(nn.BatchNorm1d(SEEN, track_running_stats=False), Critic())
        return critic.eval()

    def critic_loss(self, batch, weights=1.0):
        self.critic.train()
        found = super().critic_loss(batch, weights)
        self.critic.eval()
        return found


class BatchNormalization(DDPG):
    """A step writes its running means several times."""

    def make_critic(self):
        return Behind(nn.BatchNorm1d(SEEN), Critic())


class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        return -0.5 * gradient


class AFunctionOfAutograd(DDPG):
    def actor_loss(self, batch):
        return Reversed.apply(-super().actor_loss(batch))


class AHookThatChangesGradients(DDPG):
    outcome = "torch"

    def begin(self):
        for parameter in self.critic.parameters():
            parameter.register_hook(lambda gradient: 0.5 * gradient.sign())


class TwoLearnersShareACritic(DDPG):
    def begin(self):
        self.other = DDPG.__new__(DDPG)
        vars(self.other).update(vars(self))
        self.other.actor = copy.deepcopy(self.actor)
        self.other.actor_optimizer = adam(self.other.actor)

    def learn(self, rows, weights):
        return *super().learn(rows, weights), *self.other.learn(rows, weights)


class AdamWAndFusedAdam(DDPG):
    """Kinds of optimizers, one for each part."""

    kinds = (
        functools.partial(torch.optim.AdamW, weight_decay=0.1),
        functools.partial(torch.optim.Adam, lr=1e-2, fused=True, amsgrad=True),
    )

    def begin(self):
        actor, critic = self.kinds
        self.actor_optimizer = actor(self.actor.parameters(), eps=1e-2)
        self.critic_optimizer = critic(self.critic.parameters(), eps=1e-2)


class NAdamAndAdagrad(AdamWAndFusedAdam):
    kinds = torch.optim.NAdam, torch.optim.Adagrad


class AdamaxAndRMSprop(AdamWAndFusedAdam):
    kinds = torch.optim.Adamax, torch.optim.RMSprop


class RAdam(AdamWAndFusedAdam):
    outcome, kinds = "torch", (torch.optim.RAdam, torch.optim.RAdam)


class RatesOfLayers(DDPG):
    def begin(self):
        options = {"momentum": 0.9, "nesterov": True, "weight_decay": 1e-2}
        layers = enumerate(self.critic.parameters())
        groups = [{"params": [p], "lr": 1e-2 / (1 + k)} for k, p in layers]
        self.critic_optimizer = torch.optim.SGD(groups, 1e-2, **options)


# ------------------------------------------------------------------ what changes between two phases

SCALE, OPTIONS = 1.0, {"scale": 1.0}


def scaled(x, options={"by": 1.0}):  # noqa: B006
    return options["by"] * x


@dataclasses.dataclass
class Data:
    base: float = 1.0

    @property
    def scale(self):
        return 2 * self.base


class Slots:
    __slots__ = ("scale",)


@functools.lru_cache
def scale_of(name):
    return OPTIONS[name]


class Settings(DDPG):
    """All kinds of places for a number, one of which changes before each phase.

    The check alone finds that a variable of the environment has changed: Dynamo guards none.
    """

    phases, note, scale_of_critic = 14, True, 1.0

    def begin(self):
        self.options, self.list = {"scale": 1.0, None: 1.0}, [1.0]
        self.config, self.slots = Data(), Slots()
        self.slots.scale = 1.0
        self.by = functools.partial(lambda options, x: options[0] * x, self.list)

    def scale(self, rows):
        own = self.options["scale"] * self.options[None] * self.by(1.0)
        named = self.config.scale * self.slots.scale * getattr(self, "scale_of_" + "critic")
        cached = scale_of("cached") if "cached" in OPTIONS else float(os.environ.get("SCALE", 1))
        return SCALE * OPTIONS["scale"] * scaled(1.0) * own * named * cached

    def before(self, k):
        scale_of.cache_clear()
        place, name, value = [
            (OPTIONS, "scale", 1.0),
            (globals(), "SCALE", 1.3),
            (OPTIONS, "scale", 0.7),
            (self.options, "scale", 1.3),
            (self.options, None, 0.7),
            (scaled.__defaults__[0], "by", 1.3),
            (self, "config", Data(1.3)),
            (self.config, "base", 0.7),
            (self.slots, "scale", 1.3),
            (self, "scale_of_critic", 0.7),
            (self.list, 0, 1.3),
            (os.environ, "SCALE", "1.3"),
            (OPTIONS, "cached", 0.7),
            (OPTIONS, "cached", 1.3),
        ][k]
        (operator.setitem if hasattr(place, "__setitem__") else setattr)(place, name, value)

    def end(self):
        os.environ.pop("SCALE", None)


class Centered(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(SEEN))

    def forward(self, x):
        return x - self.mean


class Annealed(DDPG):
    """A number, a learning rate, and a tensor."""

    size = 1.0

    def begin(self):
        self.schedule = torch.optim.lr_scheduler.StepLR(self.critic_optimizer, 1, 0.5)
        self.tensor = torch.ones(1)

    def scale(self, rows):
        return self.size * self.tensor

    def after(self, k):
        self.size *= 0.9
        self.schedule.step()
        self.tensor.fill_(2.0 + k)


class TensorsAreWritten(DDPG):
    """By what is neither a phase nor recorded."""

    phases = 8

    def begin(self):
        self.actor = Behind(Centered(), self.actor)
        self.target_actor = copy.deepcopy(self.actor)
        self.actor_optimizer = torch.optim.SGD(self.actor.parameters(), lr=1e-2)

    @torch.no_grad()
    def before(self, k):
        match k:
            case 1:
                for parameter in self.actor.parameters():
                    parameter.add_(0.1 * torch.randn_like(parameter))
            case 2:
                self.critic.load_state_dict(self.make_critic().state_dict())
            case 3:
                for parameter in self.critic.parameters():
                    parameter.data.clamp_(-0.2, 0.2)
            case 4:
                self.actor.layer.mean += 0.1
            case 5:
                self.actor.apply(lambda m: isinstance(m, nn.Linear) and m.reset_parameters())
            case 6:
                self.critic_optimizer.state.clear()

    def phase(self, fast, k, rows, weights):
        if k % 3:
            return fast.scan("learn", rows, weights)
        for k in range(len(rows)):
            result = self.learn(*map(torch.from_numpy, (rows[k], weights[k])))
        return [each.numpy() for each in result]


class TheArgumentsAreChanged(DDPG):
    def learn(self, rows, weights):
        rows[:, 5] *= 0.5
        return super().learn(rows, weights)

    def look(self, fast, observations):
        rows = np.tile(observations, (1, 4))[:, :10].copy()
        fast.call("learn", rows, np.ones(BATCH, np.float32))
        return rows


class ALayerIsFrozen(DDPG):
    def before(self, k):
        if k == 4:
            self.critic.layers[:2].requires_grad_(False)


class Gain(Critic):
    by, gain = 2.0, 1.0

    @property
    def factor(self):
        return self.by * self.gain

    def forward(self, observations, actions):
        return self.factor * super().forward(observations, actions)


def loss_of(errors, weights):
    return (weights * errors.square()).mean()


def louder(self, rows):
    return 3.0


class Louder(DDPG):
    scale = louder


class ObjectsAreSwapped(DDPG):
    """Functions, classes, hooks and code, in each phase another one.

    The check finds the global that shadows a builtin, and the `forward` of a class.
    """

    phases, note = 13, True

    def make_critic(self):
        return Gain()

    def critic_loss(self, batch, weights=1.0):
        errors = self.targets(batch) - self.critic(batch.observations, batch.actions)
        return loss_of(errors, weights) * abs(-1.0), errors.detach()

    def scale(self, rows):
        return 1.0

    def before(self, k):
        global loss_of
        match k:
            case 1:
                self.critic_optimizer = torch.optim.SGD(self.critic.parameters(), lr=1e-2)
            case 2:
                self.critic = copy.deepcopy(self.critic)
                self.critic_optimizer = adam(self.critic)
            case 3:
                self.target_critic = copy.deepcopy(self.critic)
            case 4:
                loss_of = lambda errors, weights: (weights * errors.abs()).mean()  # noqa: E731
            case 5:
                Gain.by = 3.0
            case 6:
                self.critic.gain = 0.5
            case 7:
                self.critic.register_forward_hook(lambda module, given, result: 2 * result)
            case 8:
                self.actor.register_forward_pre_hook(lambda module, given: (0.5 * given[0],))
            case 9:
                globals()["abs"] = lambda x: builtins.abs(x) + 2.0
            case 10:
                Gain.forward = lambda net, s, a: 2 * net.layers(torch.cat([s, a], 1)).squeeze(1)
            case 11:
                type(self).scale.__code__ = louder.__code__  # as %autoreload does it
            case 12:
                self.__class__ = Louder


# --------------------------------------------------- what no guard of Dynamo sees, but a check does

FORWARD, LERP = nn.LayerNorm.forward, torch.Tensor.lerp_


class AMethodOfALibrarysClass(DDPG):
    note = True

    def after(self, k):
        if k == 3:
            nn.LayerNorm.forward = lambda layer, x: 2 * FORWARD(layer, x)

    def end(self):
        nn.LayerNorm.forward = FORWARD


class AMethodOfTensors(DDPG):
    outcome, note = "torch", True

    def after(self, k):
        if k == 3:
            torch.Tensor.lerp_ = lambda x, y, share: LERP(x, y, 2 * share)

    def end(self):
        torch.Tensor.lerp_ = LERP


class ADictIsReordered(DDPG):
    note = True

    def begin(self):
        self.parts = collections.OrderedDict(one=2.0, two=1.0)

    def scale(self, rows):
        return next(iter(self.parts.values()))

    def after(self, k):
        if k == 3:
            self.parts.move_to_end("one")


class Meta(type):
    by = 1.0


class Measured(metaclass=Meta):
    pass


class AnAttributeOfAMetaclass(DDPG):
    note = True

    def scale(self, rows):
        return Measured.by

    def after(self, k):
        if k == 3:
            Meta.by = 3.0
