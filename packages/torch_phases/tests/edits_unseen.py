"""Edits between two phases that no guard of Dynamo sees, but a check; and hooks of all kinds."""

import builtins
import collections

import torch
from learner import DDPG, Critic
from torch import nn

FORWARD, LERP = nn.LayerNorm.forward, torch.Tensor.lerp_


class Unseen(DDPG):
    note = True


class AMethodOfALibrarysClass(Unseen):
    def after(self, k):
        if k == 3:
            nn.LayerNorm.forward = lambda layer, x: 2 * FORWARD(layer, x)

    def end(self):
        nn.LayerNorm.forward = FORWARD


class AMethodOfTensors(Unseen):
    outcome = "torch"

    def after(self, k):
        if k == 3:
            torch.Tensor.lerp_ = lambda x, y, share: LERP(x, y, 2 * share)

    def end(self):
        torch.Tensor.lerp_ = LERP


class ADictIsReordered(Unseen):
    def begin(self):
        self.parts = collections.OrderedDict(one=2.0, two=1.0)

    def scale(self, rows):
        return next(iter(self.parts.values()))

    def after(self, k):
        if k == 3:
            self.parts.move_to_end("one")


class AGlobalThatShadowsABuiltin(DDPG):
    def scale(self, rows):
        return 1.0 + abs(-1.0)

    def after(self, k):
        if k == 3:
            globals()["abs"] = lambda x: builtins.abs(x) + 2.0


class Meta(type):
    by = 1.0


class Measured(metaclass=Meta):
    pass


class AnAttributeOfAMetaclass(Unseen):
    def scale(self, rows):
        return Measured.by

    def after(self, k):
        if k == 3:
            Meta.by = 3.0


class AHookOfAModuleThatComesLater(DDPG):
    def after(self, k):
        if k == 3:
            self.critic.register_forward_hook(lambda module, given, result: 2 * result)


class AHookBeforeAModule(DDPG):
    def begin(self):
        self.actor.register_forward_pre_hook(lambda module, given: (0.5 * given[0],))


class AHookOfGradientsOfAModule(DDPG):
    outcome = "torch"

    def begin(self):
        self.critic.layers[3].register_full_backward_hook(
            lambda module, given, result: (2 * given[0],)
        )


def halve(parameter):
    parameter.grad.mul_(0.5)


class AHookAfterAGradient(DDPG):
    outcome = "torch"

    def begin(self):
        for parameter in self.critic.parameters():
            parameter.register_post_accumulate_grad_hook(halve)


class Doubled(Critic):
    by = 2.0

    @property
    def factor(self):
        return self.by

    def forward(self, observations, actions):
        return self.factor * super().forward(observations, actions)


class AProperty(DDPG):
    def make_critic(self):
        return Doubled()

    def after(self, k):
        if k == 3:
            Doubled.by = 3.0


class AnotherForward(DDPG):
    def after(self, k):
        if k == 3:
            Critic.forward = lambda net, s, a: 2 * net.layers(torch.cat([s, a], 1)).squeeze(1)

    def end(self):
        Critic.forward = self.kept

    def begin(self):
        self.kept = Critic.forward
