"""Other learners, which must all be compiled unless it is said."""

import copy

import numpy as np
import torch
from learner import ACTIONS, DDPG, SEEN, Behind, Critic, adam, descend, soft_update, split_rows
from torch import nn
from torch.nn import functional as F


class WholeNumbersBeyond32Bits(DDPG):
    def scale(self, rows):
        return 1 + ((rows[:, 0] * 1e9).long() * 16 % 7).float()


class Rectified(nn.Module):
    def forward(self, x):
        return nn.ReLU()(torch.relu(F.relu(torch.sqrt(2.0 - x.abs()))))


class NoNumberThroughThreeReLUs(DDPG):
    def make_critic(self):
        return Behind(Rectified(), Critic())


class GradientsAreClipped(DDPG):
    def learn_critic(self, batch, weights=1.0):
        loss, errors = self.critic_loss(batch, weights)
        self.critic_optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.critic.parameters(), 0.05)
        self.critic_optimizer.step()
        return errors


class GradientsAreClippedByValue(DDPG):
    def learn_critic(self, batch, weights=1.0):
        loss, errors = self.critic_loss(batch, weights)
        loss = loss + 1e-2 * sum(p.abs().sum() for p in self.critic.parameters())
        self.critic_optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(self.critic.parameters(), 1e-2)
        self.critic_optimizer.step()
        return errors


class APenaltyOfTheSlope(DDPG):
    def critic_loss(self, batch, weights=1.0):
        actions = batch.actions.clone().requires_grad_()
        value = self.critic(batch.observations, actions).sum()
        (slope,) = torch.autograd.grad(value, actions, create_graph=True)
        loss, errors = super().critic_loss(batch, weights)
        return loss + slope.square().sum(1).mean(), errors


class TwoCriticsInAList(DDPG):
    def begin(self):
        self.critics = [self.critic, self.make_critic()]
        self.slow = copy.deepcopy(self.critics)
        self.optimizers = {k: adam(self.critics[k]) for k in (0, 1)}

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
        return errors.detach()


class ALearnedTemperature(DDPG):
    def begin(self):
        self.log_alpha = torch.zeros(1, requires_grad=True)
        self.alpha_optimizer = torch.optim.Adam([self.log_alpha], lr=1e-2)

    def actor_loss(self, batch):
        actions = self.actor(batch.observations)
        size, values = actions.square().sum(1), self.critic(batch.observations, actions)
        descend(-(self.log_alpha * (size.detach() - 0.1)).mean(), self.alpha_optimizer)
        return (self.log_alpha.exp().detach() * size - values).mean()


class AnAverageOfWeightsInADict(DDPG):
    def begin(self):
        self.averages = {name: p.detach().clone() for name, p in self.actor.named_parameters()}

    @torch.no_grad()
    def update_targets(self):
        super().update_targets()
        for name, p in self.actor.named_parameters():
            self.averages[name].mul_(0.9).add_(p, alpha=0.1)


class Quantiles(nn.Module):
    def __init__(self):
        super().__init__()
        inputs = SEEN + ACTIONS
        self.layers = nn.Sequential(nn.Linear(inputs, 16), nn.SiLU(), nn.Linear(16, 5))

    def all(self, s, a):
        return self.layers(torch.cat([s, a], -1))

    def forward(self, s, a):
        return self.all(s, a).mean(1)


class ADistributionalCritic(DDPG):
    taus = torch.linspace(0.1, 0.9, 5)

    def make_critic(self):
        return Quantiles()

    def critic_loss(self, batch, weights=1.0):
        with torch.no_grad():
            s = batch.next_observations
            after = self.target_critic.all(s, self.target_actor(s))
            y = batch.rewards[:, None] + batch.discounts[:, None] * after
        errors = y[:, None, :] - self.critic.all(batch.observations, batch.actions)[:, :, None]
        huber = F.huber_loss(errors, 0 * errors, reduction="none")
        loss = (huber * (self.taus[:, None] - (errors < 0).float()).abs()).mean()
        return loss, errors.detach().mean((1, 2))


class Dropout(DDPG):
    def make_critic(self):
        return Behind(nn.Dropout(0.3), Critic())


class SmoothedTargets(DDPG):
    def targets(self, batch):
        with torch.no_grad():
            a = self.target_actor(batch.next_observations)
            a = (a + (0.2 * torch.randn_like(a)).clamp(-0.5, 0.5)).clamp(-1, 1)
            return batch.rewards + batch.discounts * self.target_critic(batch.next_observations, a)


class SampledActions(DDPG):
    def actor_loss(self, batch):
        mean = self.actor(batch.observations)
        actions = torch.distributions.Normal(mean, 0.1, validate_args=False).rsample()
        return -self.critic(batch.observations, actions).mean()


class BatchNormalization(DDPG):
    outcome = "either"

    def make_critic(self):
        return Behind(nn.BatchNorm1d(SEEN), Critic())


class NormalizedByBatchesWhereItLearns(BatchNormalization):
    """The flags of its modules change within a step, and are in the end as they were."""

    outcome = "compiled"

    def make_critic(self):
        critic = Behind(nn.BatchNorm1d(SEEN, track_running_stats=False), Critic())
        return critic.eval()

    def critic_loss(self, batch, weights=1.0):
        self.critic.train()
        found = super().critic_loss(batch, weights)
        self.critic.eval()
        return found


class GroupNormalization(DDPG):
    outcome = "torch"

    def make_critic(self):
        return Behind(nn.GroupNorm(3, 3), Critic())


class WeightNormalization(DDPG):
    outcome = "torch"

    def make_critic(self):
        critic = Critic()
        nn.utils.parametrizations.weight_norm(critic.layers[3])
        return critic


class SpectralNormalization(DDPG):
    outcome = "either"

    def make_critic(self):
        critic = Critic()
        nn.utils.parametrizations.spectral_norm(critic.layers[3])
        return critic


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
    outcome = "either"

    def begin(self):
        for parameter in self.critic.parameters():
            parameter.register_hook(lambda gradient: 0.5 * gradient.sign())


class OperationsInPlace(DDPG):
    def learn(self, rows, weights):
        rows[:, 5].clamp_(-0.5, 0.5).mul_(2)
        weights[:4] = 0.5
        return super().learn(rows, weights)


class ADelayedActorByHalves(DDPG):
    def learn(self, rows, weights):
        first, second = rows.chunk(2)
        self.learn_critic(split_rows(first))
        return super().learn(second, 1.0)


class AModelOfTheWorld(DDPG):
    def begin(self):
        self.others = {"model": [nn.Linear(5, 3)]}
        weights = self.others["model"][0].parameters()
        self.others["optimizer"] = torch.optim.RMSprop(weights, eps=1e-2)

    def learn(self, rows, weights):
        guess = self.others["model"][0](rows[:, :5])
        loss = descend(F.mse_loss(guess, rows[:, 7:10]), self.others["optimizer"])
        return (*super().learn(rows, weights), {"model": loss, "nothing": None})

    def phase(self, fast, k, rows, weights):
        *found, more = super().phase(fast, k, rows, weights)
        assert more["nothing"] is None
        return [*found, more["model"]]


class AnEmbedding(DDPG):
    def begin(self):
        self.table = nn.Embedding(4, 1)

    def scale(self, rows):
        index = (rows[:, 0] > 0).long() + 2 * (rows[:, 1] > 0).long()
        return 1 + self.table(index).detach()[:, 0].abs()


class CountsAndSums(DDPG):
    def begin(self):
        self.counts, self.sums = torch.zeros(4), torch.zeros(4)

    def scale(self, rows):
        index = (rows[:, 0] > 0).long() + 2 * (rows[:, 1] > 0).long()
        self.counts.scatter_add_(0, index, torch.ones(len(index)))
        self.sums.index_put_((index,), rows[:, 5], accumulate=True)
        return 1 + (self.sums / self.counts)[index]


class DoublePrecision(DDPG):
    def scale(self, rows):
        exact = rows[:, 0].double().abs() / rows[:, 0].double().abs().sum()
        return exact.float()


class RatesOfLayers(DDPG):
    def begin(self):
        options = {"momentum": 0.9, "nesterov": True, "weight_decay": 1e-2}
        layers = enumerate(self.critic.parameters())
        groups = [{"params": [p], "lr": 1e-2 / (1 + k)} for k, p in layers]
        self.critic_optimizer = torch.optim.SGD(groups, 1e-2, **options)


class Kinds(DDPG):
    """Kinds of optimizers, one for each part."""

    def begin(self):
        self.actor_optimizer = self.make(self.actor.parameters())
        self.critic_optimizer = self.make(self.critic.parameters())

    def make(self, parameters):
        return torch.optim.AdamW(parameters, eps=1e-2, weight_decay=0.1)


class FusedAdam(Kinds):
    def make(self, parameters):
        return torch.optim.Adam(parameters, lr=1e-2, eps=1e-2, fused=True, amsgrad=True)


class NAdam(Kinds):
    def make(self, parameters):
        return torch.optim.NAdam(parameters, eps=1e-2)


class RAdam(Kinds):
    outcome = "either"

    def make(self, parameters):
        return torch.optim.RAdam(parameters, eps=1e-2)


class Adagrad(Kinds):
    def make(self, parameters):
        return torch.optim.Adagrad(parameters, eps=1e-2)


class Adamax(Kinds):
    def make(self, parameters):
        return torch.optim.Adamax(parameters, eps=1e-2)


class AnAverageOfTorch(DDPG):
    outcome = "either"

    def begin(self):
        self.average = torch.optim.swa_utils.AveragedModel(self.actor)

    def update_targets(self):
        super().update_targets()
        self.average.update_parameters(self.actor)


class Autocast(DDPG):
    outcome = "either"

    def critic_loss(self, batch, weights=1.0):
        with torch.autocast("cpu", torch.bfloat16):
            loss, errors = super().critic_loss(batch, weights)
        return loss.float(), errors.float()

    def look(self, fast, observations):
        return np.zeros(1)


class TwoLearnersShareACritic(DDPG):
    def begin(self):
        self.other = DDPG.__new__(DDPG)
        vars(self.other).update(vars(self))
        self.other.actor = copy.deepcopy(self.actor)
        self.other.actor_optimizer = adam(self.other.actor)

    def learn(self, rows, weights):
        return *super().learn(rows, weights), *self.other.learn(rows, weights)
