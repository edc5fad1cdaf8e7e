"""Edits in which something is changed between two phases."""

import copy
import dataclasses
import enum
import functools
import os

import numpy as np
import torch
from learner import BATCH, DDPG, SEEN, Behind, adam
from torch import nn

SCALE, OPTIONS = 1.0, {"scale": 1.0}


def scaled(x, options={"by": 1.0}):  # noqa: B006
    return options["by"] * x


class Config:
    scale = 1.0


@dataclasses.dataclass
class Data:
    base: float = 1.0

    @property
    def scale(self):
        return 2 * self.base


class Slots:
    __slots__ = ("scale",)


class Kind(enum.Enum):
    SQUARE = 1
    ABSOLUTE = 2


@functools.lru_cache
def scale_of(name):
    return OPTIONS[name]


class Settings(DDPG):
    """All kinds of places for a number, one of which changes before each phase."""

    phases, scale_of_critic, way = 16, 1.0, Kind.SQUARE

    def begin(self):
        self.options, self.list = {"scale": 1.0, None: 1.0}, [1.0]
        self.config, self.slots = Data(), Slots()
        self.slots.scale = 1.0
        self.by = functools.partial(lambda options, x: options[0] * x, self.list)

    def scale(self, rows):
        own = self.options["scale"] * self.options[None] * self.by(1.0)
        named = self.config.scale * self.slots.scale * getattr(self, "scale_of_" + "critic")
        cached = scale_of("cached") if "cached" in OPTIONS else float(os.environ.get("SCALE", 1))
        way = 1.0 if self.way is Kind.SQUARE else 0.8
        return SCALE * OPTIONS["scale"] * scaled(1.0) * Config.scale * own * named * cached * way

    def before(self, k):
        global SCALE
        match k:
            case 1:
                SCALE = 1.3
            case 2:
                OPTIONS["scale"] = 0.7
            case 3:
                self.options["scale"] = 1.3
            case 4:
                self.options[None] = 0.7
            case 5:
                scaled.__defaults__[0]["by"] = 1.3
            case 6:
                Config.scale = 0.7
            case 7:
                self.config = Data(1.3)
            case 8:
                self.config.base = 0.7
            case 9:
                self.slots.scale = 1.3
            case 10:
                self.scale_of_critic = 0.7
            case 11:
                self.list[0] = 1.3
            case 12:
                self.way = Kind.ABSOLUTE
            case 13:
                os.environ["SCALE"] = "1.3"
            case 14:
                OPTIONS["cached"] = 0.7
            case 15:
                OPTIONS["cached"] = 1.3
                scale_of.cache_clear()

    def end(self):
        os.environ.pop("SCALE", None)


class ANumberIsAnnealed(DDPG):
    size = 1.0

    def scale(self, rows):
        return self.size

    def after(self, k):
        self.size *= 0.9


class ATensorIsFilled(DDPG):
    def begin(self):
        self.size = torch.ones(1)

    def scale(self, rows):
        return self.size

    def before(self, k):
        self.size.fill_(1.0 + k)


class Gain(Behind):
    gain = 1.0

    def forward(self, *given):
        return self.gain * self.inner(*given)


class AGainOfTheNetwork(DDPG):
    def make_critic(self):
        return Gain(None, super().make_critic())

    def before(self, k):
        self.critic.gain = 2.0 if k > 3 else 1.0


class ALayerIsFrozen(DDPG):
    outcome = "either"

    def before(self, k):
        if k == 4:
            self.critic.layers[:2].requires_grad_(False)


class ARunningMean(DDPG):
    def begin(self):
        self.mean = torch.zeros(SEEN)

    def act(self, observations):
        return super().act(observations - self.mean)

    def learn(self, rows, weights):
        return super().learn(torch.cat([rows[:, :3] - self.mean, rows[:, 3:]], 1), weights)

    def before(self, k):
        self.mean.lerp_(torch.full((SEEN,), 1.0 + k), 0.1)


class ParameterNoise(DDPG):
    @torch.no_grad()
    def before(self, k):
        for parameter in self.actor.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))


class WeightsAreLoaded(DDPG):
    def after(self, k):
        self.critic.load_state_dict(self.make_critic().state_dict())


class WeightsAreClippedByData(DDPG):
    def after(self, k):
        for parameter in self.critic.parameters():
            parameter.data.clamp_(-0.2, 0.2)


class TheOptimizersStateIsCleared(DDPG):
    def after(self, k):
        if k in (2, 3):
            self.critic_optimizer.state.clear()


class Centered(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(SEEN))

    def forward(self, x):
        return x - self.mean


class ABuffer(DDPG):
    def begin(self):
        self.actor = Behind(Centered(), self.actor)
        self.target_actor = copy.deepcopy(self.actor)

    def before(self, k):
        self.actor.layer.mean += 0.1


class ALoopOfOnesOwn(DDPG):
    def phase(self, fast, k, rows, weights):
        if k % 2:
            return fast.scan("learn", rows, weights)
        for k in range(len(rows)):
            result = self.learn(*map(torch.from_numpy, (rows[k], weights[k])))
        return [each.numpy() for each in result]


class AScheduleOutside(DDPG):
    def begin(self):
        self.schedule = torch.optim.lr_scheduler.StepLR(self.critic_optimizer, 1, 0.5)

    def after(self, k):
        self.schedule.step()


class LayersAreReset(DDPG):
    def after(self, k):
        if k % 2:
            self.actor.apply(lambda m: m.reset_parameters() if isinstance(m, nn.Linear) else None)


class TheOptimizerIsSwapped(DDPG):
    def after(self, k):
        if k == 3:
            self.critic_optimizer = torch.optim.SGD(self.critic.parameters(), lr=1e-2)


class TheCriticIsAnotherObject(DDPG):
    def after(self, k):
        if k == 3:
            self.critic = copy.deepcopy(self.critic)
            self.critic_optimizer = adam(self.critic)


class TheTargetIsACopyInEachPhase(DDPG):
    def after(self, k):
        self.target_critic = copy.deepcopy(self.critic)


def loss_of(errors, weights):
    return (weights * errors.square()).mean()


class TheLossIsAnotherFunction(DDPG):
    def critic_loss(self, batch, weights=1.0):
        errors = super().critic_loss(batch)[1]
        errors = self.targets(batch) - self.critic(batch.observations, batch.actions)
        return loss_of(errors, weights), errors.detach()

    def after(self, k):
        global loss_of
        if k == 3:
            loss_of = lambda errors, weights: (weights * errors.abs()).mean()  # noqa: E731


class TheArgumentsAreChanged(DDPG):
    def learn(self, rows, weights):
        rows[:, 5] *= 0.5
        return super().learn(rows, weights)

    def look(self, fast, observations):
        rows = np.tile(observations, (1, 4))[:, :10].copy()
        fast.call("learn", rows, np.ones(BATCH, np.float32))
        return rows


class Louder(DDPG):
    def scale(self, rows):
        return 3.0


class TheClassIsSwapped(DDPG):
    def after(self, k):
        if k == 3:
            self.__class__ = Louder


def louder(self, rows):
    return 3.0


class CodeIsReplacedInPlace(DDPG):
    """As %autoreload does it."""

    def scale(self, rows):
        return 1.0

    def after(self, k):
        if k == 3:
            type(self).scale.__code__ = louder.__code__
