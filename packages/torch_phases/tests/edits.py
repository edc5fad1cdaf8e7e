"""Edits that people make to a learner: functions of the first two classes, and learners after.

An edit trains in many phases. What must not be told silently: the numbers are PyTorch's.
"""

import collections
import copy
import dataclasses
import functools
import os
import random
import time
from unittest import mock

import numpy as np
import torch
from learner import DDPG, Batch, Critic, adam, batches, descend, soft_update
from torch import nn

# ----------------- told, with a line: of a function it begins as its documentation, if there is one

COUNT, TOTAL, SEEN, START = {"n": 0}, 0, [], time.time()
FACTOR = torch.ones(1, requires_grad=True)


class Told(DDPG):
    outcome, steps, mean = "torch", 0, torch.zeros(())


class Begin:
    def a_counter_in_a_closure(self):
        """changes a variable of scale, which is no tensor, in scale (n += 1): keep it in a"""

        def scale(batch):
            nonlocal n
            n += 1
            return n % 7

        n, self.scale = 0, scale

    def a_hook_with_a_counter(self):
        self.critic.register_forward_hook(lambda *given: SEEN.append(1))

    def a_hook_of_an_optimizer(self):
        """meets a hook of a tensor or optimizer: do in the method what the hook does"""
        self.critic_optimizer.register_step_post_hook(lambda *given: SEEN.append(1))

    def a_hook_of_gradients_of_a_module(self):
        self.critic.layers[3].register_full_backward_hook(lambda net, given, _: (2 * given[0],))

    def a_hook_after_a_gradient(self):
        """meets a hook of a tensor or optimizer: do in the method what the hook does"""
        for parameter in self.critic.parameters():
            parameter.register_post_accumulate_grad_hook(lambda x: setattr(x, "grad", x.grad / 2))

    def a_hook_that_changes_gradients(self):
        """meets a hook of a tensor or optimizer: do in the method what the hook does"""
        self.critic.layers[3].bias.register_hook(torch.sign)

    def gradients_are_not_set_to_zero(self):
        """uses a gradient of the step before: set gradients to zero before backward()"""
        self.actor_optimizer.zero_grad = lambda *given, **more: None

    def two_states_that_share_memory(self):
        """changes a tensor that shares memory with another one: give it memory of its own"""
        self.target_critic.layers[3].bias.data = self.critic.layers[3].bias.data

    def its_own_tensor_is_returned(self):
        """returns a tensor of the learner itself: return a clone"""
        self.learn_critic = lambda batch: (DDPG.learn_critic(self, batch), self.actor[0].weight)

    def a_kind_of_optimizer_that_looks(self):
        self.critic_optimizer = torch.optim.RAdam(self.critic.parameters())

    def a_schedule_inside(self):
        schedule = torch.optim.lr_scheduler.StepLR(self.critic_optimizer, 1, 0.9)
        self.scale = lambda batch: schedule.step() or 1

    def a_generator_of_torch(self):
        chance = torch.Generator().manual_seed(0)
        self.scale = lambda batch: 1 + torch.rand(16, generator=chance)


class Scale:  # what Python does in a step, and often a factor of the loss that hangs on it
    def a_counter_in_a_dict(self, batch):
        """changes COUNT, which is no tensor, in a_counter_in_a_dict (COUNT["n"] += 1): keep it"""
        COUNT["n"] += 1
        return COUNT["n"] % 7

    def an_attribute(self, batch):
        """changes self.steps, which is no tensor, in an_attribute (self.steps += 1)"""
        self.steps += 1
        return self.steps % 7

    def a_global_counter(self, batch):
        global TOTAL
        TOTAL += 1
        return TOTAL % 7

    def random_in_python(self, batch):
        """draws random numbers in a way of its own, in random.randint: draw with torch.rand"""
        return random.randint(1, 2)

    def random_in_c(self, batch):
        """draws random numbers in a way of its own, in random_in_c (return random.random())"""
        return random.random()

    def random_in_numpy(self, batch):
        """computes with NumPy, in random_in_numpy (return torch.from_numpy(np.random.rand(16)"""
        return torch.from_numpy(np.random.rand(16)).float()

    def the_clock(self, batch):
        """calls the module time, in the_clock (return 1 + (time.time() < START)): do so"""
        return 1 + (time.time() < START)

    def a_file(self, batch):
        """calls open, in a_file (return open(os.devnull, "a").write("learned")): do so outside"""
        return open(os.devnull, "a").write("learned")

    def a_print(self, batch):
        """prints, in a_print (return print(batch.rewards.sum()) or 1): print what scan"""
        return print(batch.rewards.sum()) or 1

    def a_look(self, batch):
        """looks at a tensor's number, in a_look (return 1 if batch.rewards.sum() < 0 else 2)"""
        return 1 if batch.rewards.sum() < 0 else 2

    def a_history(self, batch):
        """changes SEEN, which is no tensor, in a_history"""
        SEEN.append(batch.rewards)
        return len(SEEN) % 7

    def the_gradient_of_the_step_before(self, batch):
        gradient = self.critic.layers[3].bias.grad
        return 1 if gradient is None else 1 + gradient.abs()

    def a_gradient_goes_elsewhere(self, batch):
        """gives a gradient to a tensor that hangs elsewhere: let the learner have it"""
        return FACTOR.square()

    def a_mask_takes_rows(self, batch):
        """takes places by a list or tensor, in a_mask_takes_rows"""
        return 1 + batch.actions[batch.rewards > 0].mean()

    def a_mask_is_written_into(self, batch):
        """takes places by a list or tensor, in a_mask_is_written_into"""
        batch.weights[batch.rewards > 0] = 0.5
        return 1

    def an_operation_that_is_not_translated(self, batch):
        """uses median, not translated, in an_operation_that_is_not_translated"""
        return 1 + batch.rewards.median()

    def a_new_tensor_in_an_attribute(self, batch):
        self.mean = 0.9 * self.mean + 0.1 * batch.rewards.mean()
        return 1 + self.mean

    def whole_numbers_of_others(self, batch):
        """uses _to_copy, not translated for its arguments (makes whole numbers of others, which"""
        return 1 + batch.rewards.long()

    def half_precision(self, batch):
        return batch.rewards.bfloat16().abs().float()


class ShapesThatDoNotFit(DDPG):
    outcome = "RuntimeError"

    def scale(self, batch):
        return batch.observations[:, :2]


# -------------------------------------------------------------- other learners, which are compiled


class OtherNumbers(DDPG):
    """Integers of 64 bits, double precision, arguments written into; no numbers in the end."""

    def scale(self, batch):
        double = batch.observations.double().abs()
        whole = 1 + ((double > 0.5).sum(1) * 2**40 % 7).float()
        return whole * (double / double.sum()).float().sum(1)

    def targets(self, batch):
        batch.observations[:, 2].clamp_(-0.5, 0.5).mul_(2)
        batch.weights[:4] = 0.5
        return super().targets(batch) + torch.sqrt(1 - batch.rewards.abs()).relu()

    def act(self, observations):
        return super().act(observations.mul_(2))


class Reversed(torch.autograd.Function):
    forward = staticmethod(lambda context, x: x.clone())
    backward = staticmethod(lambda context, gradient: -0.5 * gradient)


class Gradients(DDPG):
    """Clipped by norm or by value, with a penalty of a slope, and by a function of autograd."""

    def actor_loss(self, batch):
        return Reversed.apply(-super().actor_loss(batch))

    def critic_loss(self, batch):
        actions = batch.actions.clone().requires_grad_()
        value = self.critic(batch.observations, actions).sum()
        (slope,) = torch.autograd.grad(value, actions, create_graph=True)
        loss, errors = super().critic_loss(batch)
        return loss + slope.square().sum(1).mean(), errors

    def learn_critic(self, batch):
        for clip, limit in ((nn.utils.clip_grad_norm_, 0.05), (nn.utils.clip_grad_value_, 1e-2)):
            loss, errors = self.critic_loss(batch)
            self.critic_optimizer.zero_grad()
            loss.backward()
            clip(self.critic.parameters(), limit)
            self.critic_optimizer.step()
        return errors


class TwoCriticsAndATemperature(DDPG):
    """In lists and dicts."""

    def begin(self):
        self.critics = [self.critic, self.make_critic()]
        self.slow = copy.deepcopy(self.critics)
        self.optimizers = {k: adam(self.critics[k]) for k in (0, 1)}
        self.log_alpha = torch.zeros(1, requires_grad=True)
        self.alpha_optimizer = torch.optim.Adam([self.log_alpha], lr=1e-2)

    def learn_critic(self, batch):
        with torch.no_grad():
            after = self.target_actor(batch.next_observations)
            values = [target(batch.next_observations, after) for target in self.slow]
            y = batch.rewards + batch.discounts * torch.stack(values).min(0).values
        for k, critic in enumerate(self.critics):
            errors = y - critic(batch.observations, batch.actions)
            descend(errors.square().mean(), self.optimizers[k])
            soft_update(self.slow[k], critic, 0.05)
        return errors.detach()

    def actor_loss(self, batch):
        actions = self.actor(batch.observations)
        size, values = actions.square().sum(1), self.critic(batch.observations, actions)
        descend(-(self.log_alpha * (size.detach() - 0.1)).mean(), self.alpha_optimizer)
        return (self.log_alpha.exp().detach() * size - values).mean()


class RandomNumbers(DDPG):
    """Dropout, smoothed targets and sampled actions draw PyTorch's, in their order."""

    def make_critic(self):
        return Critic(nn.Dropout(0.3))

    def targets(self, batch):
        return super().targets(batch) + 0.2 * torch.randn_like(batch.rewards).clamp(-0.5, 0.5)

    def actor_loss(self, batch):
        mean = self.actor(batch.observations)
        actions = torch.distributions.Normal(mean, 0.1, validate_args=False).rsample()
        return -self.critic(batch.observations, actions).mean()


class NormalizedByBatchesWhereItLearns(DDPG):
    """The flags of its modules are in the end as they were; running means are written twice."""

    def make_critic(self):
        return Critic(nn.BatchNorm1d(5)).eval()

    def critic_loss(self, batch):
        self.critic.train()
        self.critic(batch.next_observations, batch.actions)
        found = super().critic_loss(batch)
        self.critic.eval()
        return found


class TwoLearnersShareACritic(DDPG):
    def begin(self):
        self.other = copy.copy(self)
        self.other.actor = copy.deepcopy(self.actor)
        self.other.actor_optimizer = adam(self.other.actor)

    def learn(self, *given):
        return super().learn(*given), DDPG.learn(self.other, *given)


class Optimizers(DDPG):
    """Of other kinds, one for each tensor of weights; and rates of these, in groups."""

    def begin(self):
        groups = [{"params": [x], "lr": 1e-2 / (1 + len(x))} for x in self.critic.parameters()]
        options = {"momentum": 0.9, "nesterov": True, "weight_decay": 1e-2}
        self.critic_optimizer = torch.optim.SGD(groups, 1e-2, **options)
        adam = functools.partial(torch.optim.Adam, lr=1e-2, fused=True, amsgrad=True)
        names = "AdamW", "NAdam", "Adagrad", "Adamax", "RMSprop"
        kinds = [adam, *(getattr(torch.optim, name) for name in names)]
        pairs = zip(kinds, [*self.critic.parameters(), *self.actor.parameters()], strict=True)
        self.optimizers = [kind([parameter], eps=1e-2) for kind, parameter in pairs]

    def learn(self, *given):
        found = super().learn(*given)
        for each in self.optimizers:
            each.step()
        return found


# ------------------------------------------------------------------ what changes between two phases

SCALE, OPTIONS = 1.0, {"scale": 1.0}
Data = dataclasses.make_dataclass("Data", ["scale"])
cached = functools.lru_cache(lambda name: OPTIONS.get(name, 1.0))


def scaled(x, options={"by": 1.0}):  # noqa: B006
    return options["by"] * x


class Settings(DDPG):
    """All kinds of places for a number.

    The check alone finds that a variable of the environment has changed: Dynamo guards none.
    """

    notes, scale_of_critic = 1, 1.0

    def begin(self):
        self.options, self.list, self.config = {"scale": 1.0}, [1.0], Data(1.0)

    def scale(self, batch):
        own = self.options["scale"] * self.list[0] * self.config.scale
        named = getattr(self, "scale_of_" + "critic") * cached("cached")
        environment = float(os.environ.get("SCALE", 1))
        return SCALE * OPTIONS["scale"] * scaled(1.0) * own * named * environment

    def changes(self):
        yield
        yield globals().update(SCALE=1.3)
        yield OPTIONS.update(scale=0.7)
        yield self.options.update(scale=1.3)
        yield scaled.__defaults__[0].update(by=1.3)
        yield setattr(self, "config", Data(1.3))
        yield setattr(self.config, "scale", 0.7)
        yield setattr(self, "scale_of_critic", 0.7)
        yield self.list.insert(0, 1.3)
        for number in (0.7, 1.3):
            cached.cache_clear()
            yield OPTIONS.update(cached=number)
        with mock.patch.dict(os.environ, SCALE="1.3"):
            yield


class Annealed(DDPG):
    """A number, learning rates, and a tensor."""

    def begin(self):
        self.schedule = torch.optim.lr_scheduler.StepLR(self.critic_optimizer, 1, 0.5)
        self.size, self.tensor = 1.0, torch.ones(1)

    def scale(self, batch):
        return self.tensor.add(self.tensor, alpha=self.size)

    def changes(self):
        for k in range(6):
            yield self.tensor.fill_(1.0 + k)
            self.size *= 0.9
            self.schedule.step()
            self.actor_optimizer.param_groups[0]["lr"] *= 0.9


class TensorsAreWritten(DDPG):
    """By what is neither a phase nor recorded; and a layer is frozen after it had gradients."""

    def make_critic(self):
        return Critic(nn.BatchNorm1d(5)).eval()

    def changes(self):
        yield self.learn(Batch(*map(torch.from_numpy, batches(16))))
        for parameter in self.actor.parameters():
            parameter.data.add_(0.1 * torch.randn_like(parameter))
        yield self.critic.load_state_dict(self.make_critic().state_dict())
        yield [x.data.clamp_(-0.2, 0.2) for x in self.critic.parameters()]
        yield self.critic.layers[0].running_mean.add_(0.1)
        yield self.critic_optimizer.state[self.critic.layers[1].weight]["step"].add_(3)
        yield self.critic_optimizer.state.clear()
        yield self.learn(Batch(*map(torch.from_numpy, batches(16))))
        yield self.critic.layers[:3].requires_grad_(False)


class Gain(Critic):
    by = 2.0

    @property
    def factor(self):
        return self.by

    def forward(self, observations, actions):
        return self.factor * super().forward(observations, actions)


LAYER_NORM, LERP = nn.LayerNorm.forward, torch.Tensor.lerp_
Meta = type("Meta", (type,), {"by": 1.0})
Measured = Meta("Measured", (), {})


def loss_of(errors, weights):
    return (weights * errors.square()).mean()


class ObjectsAreSwapped(DDPG):
    """Functions, classes, hooks and code.

    Only the check finds a global that hides a builtin, the `forward` of a class, a reordered dict
    and an attribute of a metaclass.
    """

    notes, make_critic = 5, Gain

    def begin(self):
        self.factors = collections.OrderedDict(one=2.0, two=1.0)

    def critic_loss(self, batch):
        errors = self.targets(batch) - self.critic(batch.observations, batch.actions)
        return loss_of(errors, batch.weights) * abs(self.scale(batch)), errors.detach()

    def scale(self, batch):
        return next(iter(self.factors.values())) * Measured.by

    def changes(self):
        global loss_of
        yield
        self.critic_optimizer = torch.optim.SGD(self.critic.parameters(), lr=1e-2)
        yield
        self.critic = copy.deepcopy(self.critic)
        self.critic_optimizer = adam(self.critic)
        yield
        loss_of = lambda errors, weights: (weights * errors.abs()).mean()  # noqa: E731
        yield
        yield setattr(Gain, "by", 3.0)
        yield self.critic.register_forward_hook(lambda module, given, result: 2 * result)
        with (
            mock.patch("edits.abs", lambda x: max(x, -x) + 2.0),
            mock.patch.object(nn.LayerNorm, "forward", LAYER_NORM),
        ):
            yield
            Gain.forward = lambda net, s, a: 2 * net.layers(torch.cat([s, a], 1)).squeeze(1)
            yield
            nn.LayerNorm.forward = lambda net, x: 2 * LAYER_NORM(net, x)
            yield
            yield self.factors.move_to_end("one")
            yield setattr(Meta, "by", 3.0)
            type(self).scale.__code__ = (lambda self, batch: 7.0).__code__  # as %autoreload does
            yield
            self.__class__ = type("Louder", (type(self),), {"scale": lambda *_: 5.0})
            yield
            yield self.actor.register_forward_pre_hook(lambda module, given: (0.5 * given[0],))


class AMethodOfTensors(DDPG):
    """What is recorded has the first one again, so that PyTorch computes in the end."""

    outcome, notes = "torch", 1

    def changes(self):
        yield from range(4)
        with mock.patch.object(torch.Tensor, "lerp_", lambda x, y, t: LERP(x, y, 2 * t)):
            yield from range(2)
