"""Edits that people make to a learner: functions of the first three classes, and learners after.

An edit trains in many phases. What must not be told silently: the numbers are PyTorch's.
"""

import builtins
import collections
import copy
import dataclasses
import functools
import operator
import os
import random
import time

import numpy as np
import torch
from learner import BATCH, DDPG, SEEN, Behind, Critic, adam, descend, soft_update
from torch import nn
from torch.nn import functional as F

# ----------------- told, with a line: of a function it begins as its documentation, if there is one

COUNT, TOTAL, SEEN_SO_FAR, START = {"n": 0}, 0, [], time.time()


def ticking():
    n = 0

    def tick():
        nonlocal n
        n += 1
        return n

    return tick


tick = ticking()


class Told(DDPG):
    """Left to PyTorch."""

    outcome, steps, mean = "torch", 0, torch.zeros(())

    def begin(self):
        self.chance = torch.Generator().manual_seed(0)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.critic_optimizer, 1, 0.9)

    def update_targets(self):
        super().update_targets()
        self.edit()

    def edit(self):
        """What Python does in a step."""

    def at(self, count):
        """What is trained depends on how often a step has run."""
        if count % 7 == 0:
            soft_update(self.target_critic, self.critic, 1.0)


class Edit:
    def a_counter_in_a_dict(self):
        """changes COUNT, which is no tensor, in a_counter_in_a_dict (COUNT["n"] += 1): keep it"""
        COUNT["n"] += 1
        self.at(COUNT["n"])

    def an_attribute(self):
        """changes self.steps, which is no tensor, in an_attribute (self.steps += 1)"""
        self.steps += 1
        self.at(self.steps)

    def a_counter_in_a_closure(self):
        self.at(tick())

    def a_global_counter(self):
        global TOTAL
        TOTAL += 1
        self.at(TOTAL)

    def random_numbers_of_python(self):
        self.at(random.randint(6, 7))

    def random_numpy(self):
        """computes with NumPy, in random_numpy (self.at(np.random.randint(6, 8))): use PyTorch"""
        self.at(np.random.randint(6, 8))

    def the_clock(self):
        """calls the module time, in the_clock (self.at(7 + (time.time() < START))): do so"""
        self.at(7 + (time.time() < START))

    def a_file(self):
        """calls open, in a_file (with open(os.devnull, "a") as file:): do so outside, and give"""
        with open(os.devnull, "a") as file:
            file.write("learned")

    def a_print(self):
        """prints, in a_print (print(self.actor.layers[0].weight.sum())): print what scan"""
        print(self.actor.layers[0].weight.sum())

    def a_look(self):
        """looks at a tensor's number, in a_look (if self.actor.layers[2].bias[0] < 0.1:)"""
        if self.actor.layers[2].bias[0] < 0.1:
            self.at(7)

    def a_history(self):
        """changes SEEN_SO_FAR, which is no tensor, in a_history"""
        SEEN_SO_FAR.append(self.actor.layers[2].bias[0])

    def a_schedule_inside(self):
        self.schedule.step()


class Begin:
    def a_hook_with_a_counter(self):
        self.critic.register_forward_hook(lambda *given: SEEN_SO_FAR.append(1))

    def a_hook_of_an_optimizer(self):
        """meets a hook of a tensor or optimizer: do in the method what the hook does"""
        self.critic_optimizer.register_step_post_hook(lambda *given: SEEN_SO_FAR.append(1))

    def a_hook_of_gradients_of_a_module(self):
        last = self.critic.layers[3]
        last.register_full_backward_hook(lambda module, given, result: (2 * given[0],))

    def a_hook_after_a_gradient(self):
        for parameter in self.critic.parameters():
            parameter.register_post_accumulate_grad_hook(halve)

    def a_hook_that_changes_gradients(self):
        for parameter in self.critic.parameters():
            parameter.register_hook(lambda gradient: 0.5 * gradient.sign())

    def gradients_are_not_set_to_zero(self):
        """uses a gradient of the step before: set gradients to zero before backward()"""
        self.actor_optimizer.zero_grad = lambda *given, **more: None

    def two_states_that_share_memory(self):
        """changes a tensor that shares memory with another one: give it memory of its own"""
        self.target_critic.layers[3].bias.data = self.critic.layers[3].bias.data

    def a_kind_of_optimizer_that_looks(self):
        self.critic_optimizer = torch.optim.RAdam(self.critic.parameters())


def halve(parameter):
    parameter.grad.mul_(0.5)


FACTOR = torch.ones(1, requires_grad=True)


class Scale:
    def the_gradient_of_the_step_before(self, rows):
        gradient = self.critic.layers[3].bias.grad
        return 1.0 if gradient is None else 1 + gradient.abs()

    def a_gradient_goes_elsewhere(self, rows):
        """gives a gradient to a tensor that hangs elsewhere: let the learner have it"""
        return FACTOR.square()

    def a_mask_takes_rows(self, rows):
        """takes places by a list or tensor, in a_mask_takes_rows"""
        return 1 + rows[rows[:, 5] > 0.5].mean()

    def a_mask_is_written_into(self, rows):
        """takes places by a list or tensor, in a_mask_is_written_into"""
        rows[rows[:, 5] > 0.5, 5] = 0.5
        return 1.0

    def an_operation_that_is_not_translated(self, rows):
        """uses median, not translated, in an_operation_that_is_not_translated"""
        return 1 + rows.median()

    def a_new_tensor_in_an_attribute(self, rows):
        self.mean = 0.9 * self.mean + 0.1 * rows.mean()
        return 1 + self.mean

    def a_generator_of_torch(self, rows):
        return 1 + torch.rand(len(rows), generator=self.chance)

    def half_precision(self, rows):
        return rows[:, 0].bfloat16().abs().float()


class AColumnThatIsNotThere(DDPG):
    outcome = "IndexError"

    def scale(self, rows):
        return rows[:, [10]]


# -------------------------------------------------------------- other learners, which are compiled


class OtherNumbers(DDPG):
    """Integers of 64 bits, double precision, no number, arguments written into."""

    def scale(self, rows):
        whole = 1 + ((rows > 0).sum(1) * 2**40 % 7).float()
        double = rows[:, 0].double().abs() / rows[:, 0].double().abs().sum()
        return whole * double.float() * rows[:, :2].sum(1)

    def targets(self, batch):
        none = F.relu(nn.ReLU()(torch.sqrt(0.9 - batch.rewards.abs())))
        return super().targets(batch) + none

    def learn(self, rows, weights):
        rows[:, 5].clamp_(-0.5, 0.5).mul_(2)
        weights[:4] = 0.5
        return super().learn(rows, weights)

    def look(self, fast, observations):
        rows = np.tile(observations, (1, 4))[:, :10].copy()
        fast.call("learn", rows, np.ones(BATCH, np.float32))
        return rows


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
    """In lists and dicts, with None in a result."""

    def begin(self):
        self.critics = [self.critic, self.make_critic()]
        self.slow = copy.deepcopy(self.critics)
        self.optimizers = {k: adam(self.critics[k]) for k in (0, 1)}
        self.log_alpha = torch.zeros(1, requires_grad=True)
        self.alpha_optimizer = torch.optim.Adam([self.log_alpha], lr=1e-2)

    def learn_critic(self, batch, weights=1.0):
        with torch.no_grad():
            after = self.target_actor(batch.next_observations)
            values = [target(batch.next_observations, after) for target in self.slow]
            y = batch.rewards + batch.discounts * torch.stack(values).min(0).values
        for k, critic in enumerate(self.critics):
            errors = y - critic(batch.observations, batch.actions)
            descend((weights * errors.square()).mean(), self.optimizers[k])
            soft_update(self.slow[k], critic, 0.05)
        return {"errors": errors.detach(), "nothing": None}

    def actor_loss(self, batch):
        actions = self.actor(batch.observations)
        size, values = actions.square().sum(1), self.critic(batch.observations, actions)
        descend(-(self.log_alpha * (size.detach() - 0.1)).mean(), self.alpha_optimizer)
        return (self.log_alpha.exp().detach() * size - values).mean()


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
    """The flags of its modules are in the end as they were; running means are written twice."""

    def make_critic(self):
        return Behind(nn.BatchNorm1d(SEEN), Critic()).eval()

    def critic_loss(self, batch, weights=1.0):
        self.critic.train()
        self.critic(batch.next_observations, batch.actions)
        found = super().critic_loss(batch, weights)
        self.critic.eval()
        return found


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


class TwoLearnersShareACritic(DDPG):
    def begin(self):
        self.other = DDPG.__new__(DDPG)
        vars(self.other).update(vars(self))
        self.other.actor = copy.deepcopy(self.actor)
        self.other.actor_optimizer = adam(self.other.actor)

    def learn(self, rows, weights):
        return *super().learn(rows, weights), *self.other.learn(rows, weights)


class Optimizers(DDPG):
    """Of other kinds, one for each tensor of weights; and rates of these, in groups."""

    def begin(self):
        kinds = (
            functools.partial(torch.optim.AdamW, weight_decay=0.1),
            functools.partial(torch.optim.Adam, lr=1e-2, fused=True, amsgrad=True),
            torch.optim.NAdam,
            torch.optim.Adagrad,
            torch.optim.Adamax,
            torch.optim.RMSprop,
        )
        groups = [{"params": [x], "lr": 1e-2 / (1 + len(x))} for x in self.critic.parameters()]
        options = {"momentum": 0.9, "nesterov": True, "weight_decay": 1e-2}
        self.critic_optimizer = torch.optim.SGD(groups, 1e-2, **options)
        parameters = [*self.critic.parameters(), *self.actor.parameters()]
        pairs = zip(kinds, parameters, strict=True)
        self.optimizers = [kind([parameter], eps=1e-2) for kind, parameter in pairs]

    def learn(self, rows, weights):
        found = super().learn(rows, weights)
        for each in self.optimizers:
            each.step()
        return found


# ------------------------------------------------------------------ what changes between two phases

SCALE, OPTIONS = 1.0, {"scale": 1.0}


def scaled(x, options={"by": 1.0}):  # noqa: B006
    return options["by"] * x


@dataclasses.dataclass
class Data:
    scale: float = 1.0


@functools.lru_cache
def scale_of(name):
    return OPTIONS[name]


class Settings(DDPG):
    """All kinds of places for a number, one of which changes before each phase.

    The check alone finds that a variable of the environment has changed: Dynamo guards none.
    """

    phases, note, scale_of_critic = 12, True, 1.0

    def begin(self):
        self.options, self.list, self.config = {"scale": 1.0}, [1.0], Data()

    def scale(self, rows):
        own = self.options["scale"] * self.list[0] * self.config.scale
        named = getattr(self, "scale_of_" + "critic")
        cached = scale_of("cached") if "cached" in OPTIONS else float(os.environ.get("SCALE", 1))
        return SCALE * OPTIONS["scale"] * scaled(1.0) * own * named * cached

    def before(self, k):
        scale_of.cache_clear()
        place, name, value = [
            (OPTIONS, "scale", 1.0),
            (globals(), "SCALE", 1.3),
            (OPTIONS, "scale", 0.7),
            (self.options, "scale", 1.3),
            (scaled.__defaults__[0], "by", 1.3),
            (self, "config", Data(1.3)),
            (self.config, "scale", 0.7),
            (self, "scale_of_critic", 0.7),
            (self.list, 0, 1.3),
            (os.environ, "SCALE", "1.3"),
            (OPTIONS, "cached", 0.7),
            (OPTIONS, "cached", 1.3),
        ][k]
        (operator.setitem if hasattr(place, "__setitem__") else setattr)(place, name, value)

    def end(self):
        os.environ.pop("SCALE", None)


class Annealed(DDPG):
    """A number, a learning rate, and a tensor."""

    size = 1.0

    def begin(self):
        self.schedule = torch.optim.lr_scheduler.StepLR(self.critic_optimizer, 1, 0.5)
        self.tensor = torch.ones(1)

    def scale(self, rows):
        return self.size * self.tensor

    def before(self, k):
        self.size *= 0.9
        self.schedule.step()
        self.tensor.fill_(1.0 + k)


class TensorsAreWritten(DDPG):
    """By what is neither a phase nor recorded; and a layer is frozen after it had gradients."""

    phases = 8

    def begin(self):
        self.actor = Behind(nn.BatchNorm1d(SEEN).eval(), self.actor)
        self.target_actor = copy.deepcopy(self.actor)
        self.actor_optimizer = torch.optim.SGD(self.actor.parameters(), lr=1e-2)

    @torch.no_grad()
    def before(self, k):
        if k == 1:
            for parameter in self.actor.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
        elif k == 2:
            self.critic.load_state_dict(self.make_critic().state_dict())
        elif k == 3:
            for parameter in self.critic.parameters():
                parameter.data.clamp_(-0.2, 0.2)
        elif k == 4:
            self.actor.layer.running_mean += 0.1
        elif k == 5:
            self.critic_optimizer.state.clear()
        elif k == 7:
            self.critic.layers[:2].requires_grad_(False)

    def phase(self, fast, k, rows, weights):
        if k % 3:
            return fast.scan("learn", rows, weights)
        for k in range(len(rows)):
            result = self.learn(*map(torch.from_numpy, (rows[k], weights[k])))
        return [each.numpy() for each in result]


class Gain(Critic):
    by = 2.0

    @property
    def factor(self):
        return self.by

    def forward(self, observations, actions):
        return self.factor * super().forward(observations, actions)


LAYER_NORM, LERP = nn.LayerNorm.forward, torch.Tensor.lerp_


class Meta(type):
    by = 1.0


class Measured(metaclass=Meta):
    pass


def loss_of(errors, weights):
    return (weights * errors.square()).mean()


def louder(self, rows):
    return 3.0


class ObjectsAreSwapped(DDPG):
    """Functions, classes, hooks and code, in each phase another one.

    Only the check finds a global that hides a builtin, the `forward` of a class, a reordered dict
    and an attribute of a metaclass.
    """

    phases, note = 14, True

    def begin(self):
        self.factors = collections.OrderedDict(one=2.0, two=1.0)

    def make_critic(self):
        return Gain()

    def critic_loss(self, batch, weights=1.0):
        errors = self.targets(batch) - self.critic(batch.observations, batch.actions)
        return loss_of(errors, weights) * abs(-1.0), errors.detach()

    def scale(self, rows):
        return next(iter(self.factors.values())) * Measured.by

    def before(self, k):
        global loss_of
        match k:
            case 1:
                self.critic_optimizer = torch.optim.SGD(self.critic.parameters(), lr=1e-2)
            case 2:
                self.critic = copy.deepcopy(self.critic)
                self.critic_optimizer = adam(self.critic)
            case 3:
                loss_of = lambda errors, weights: (weights * errors.abs()).mean()  # noqa: E731
            case 4:
                Gain.by = 3.0
            case 5:
                self.critic.register_forward_hook(lambda module, given, result: 2 * result)
            case 6:
                globals()["abs"] = lambda x: builtins.abs(x) + 2.0
            case 7:
                Gain.forward = lambda net, s, a: 2 * net.layers(torch.cat([s, a], 1)).squeeze(1)
            case 8:
                nn.LayerNorm.forward = lambda layer, x: 2 * LAYER_NORM(layer, x)
            case 9:
                self.factors.move_to_end("one")
            case 10:
                Meta.by = 3.0
            case 11:
                type(self).scale.__code__ = louder.__code__  # as %autoreload does it
            case 12:
                self.__class__ = Louder
            case 13:
                self.actor.register_forward_pre_hook(lambda module, given: (0.5 * given[0],))

    def end(self):
        nn.LayerNorm.forward = LAYER_NORM


class Louder(ObjectsAreSwapped):
    scale = louder


class AMethodOfTensors(DDPG):
    """What is recorded has the first one again, so that PyTorch computes in the end."""

    outcome, note = "torch", True

    def before(self, k):
        if k == 4:
            torch.Tensor.lerp_ = lambda x, y, share: LERP(x, y, 2 * share)

    def end(self):
        torch.Tensor.lerp_ = LERP
