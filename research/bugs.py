"""Famous bugs of DDPG, each as a small change of the present agent, for doc/bugs.md.

A bug is a setting that exists, or a subclass of the notebook's agent, learner or buffer; only where
a line itself is the bug, it is an edit of the text, which must match exactly once.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from tutorial.notebook import load_definitions
from tutorial.paths import NOTEBOOK


@dataclass(frozen=True)
class Bug:
    """A change of the agent, or an agent that bugs are compared with."""

    title: str
    why: str = ""  # one sentence, with its source; empty: this is no bug
    number: str = ""  # that betrays it: a column of the tables of `research.trials`
    base: str = "default"  # the correct agent that it is compared with
    overrides: Mapping[str, Any] = field(default_factory=dict)  # beside those of its base
    edits: tuple[tuple[str, str], ...] = ()  # old and new text, beside those of its base
    # Classes that take the place of the notebook's, each made of the one that it inherits from.
    classes: Mapping[str, Callable[[type], type]] = field(default_factory=dict)
    episode: int = 5  # of its number; 0: the last one of learning


def course_noise(agent: Any) -> type:
    """The Ornstein-Uhlenbeck process of Udacity's course, which begins at 0 in each episode."""

    class CourseNoise(agent):
        def begin_episode(self):
            super().begin_episode()
            self.wandering = np.float32(0)

        def torque_noise(self, shape):
            self.wandering = np.float32(0.85) * self.wandering + np.float32(0.2) * self.push(shape)
            return np.float32(self.schedules.noise_factor()) * self.wandering

        def push(self, shape):
            return self.generator.standard_normal(shape, np.float32)

    return CourseNoise


def biased_noise(agent: Any) -> type:
    class BiasedNoise(agent):
        def push(self, shape):
            return self.generator.random(shape, np.float32)

    return BiasedNoise


def broadcast_critic(critic: Any) -> type:
    class BroadcastCritic(critic):
        def forward(self, observations, actions):
            return super().forward(observations, actions)[:, None]

    return BroadcastCritic


def broadcast(ddpg: Any) -> type:
    class Broadcast(ddpg):
        def learn_critic(self, batch, weights=1.0):
            errors = super().learn_critic(batch, weights)
            return errors.mean(dim=0)  # (batch, batch), which our learner would refuse

    return Broadcast


def terminal_at_limit(agent: Any) -> type:
    class TerminalAtLimit(agent):
        def remember(self, observations, actions, env_info):
            env_info = copy.copy(env_info)
            env_info.max_reached = [False] * len(env_info.max_reached)
            super().remember(observations, actions, env_info)

    return TerminalAtLimit


def stale_gradients(ddpg: Any) -> type:
    """The same as calling `zero_grad` after `step`: a gradient begins with what the last one left.

    Gradients that stay cannot be compiled, so they wait among the networks.
    """

    class StaleGradients(ddpg):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            zeros = [torch.zeros_like(weight) for weight in self.critic.parameters()]
            self.stale = nn.ParameterList(zeros).requires_grad_(False)

        def learn_critic(self, batch, weights=1.0):
            errors = self.td_errors(batch)
            self.critic_optimizer.zero_grad()
            (weights * errors.square()).mean().backward()
            for weight, stale in zip(self.critic.parameters(), self.stale, strict=True):
                weight.grad += stale
            self.critic_optimizer.step()
            self.critic_optimizer.zero_grad()
            return errors.detach()

        def learn_actor(self, batch, noise=None):
            loss = super().learn_actor(batch, noise)
            for weight, stale in zip(self.critic.parameters(), self.stale, strict=True):
                stale.copy_(weight.grad)
            return loss

    return StaleGradients


def gamma_power(buffer: Any) -> type:
    class GammaPower(buffer):
        def window(self, steps, final_observations, goes_on=True):
            whole = len(steps) == self.n_step
            rows = super().window(steps, final_observations, goes_on)
            rows[:, -final_observations.shape[1] - 1] *= self.discount if whole else 1
            return rows

    return GammaPower


def one_noise(agent: Any) -> type:
    class OneNoise(agent):
        def act(self, observations):
            if not self.learns:
                return super().act(observations)
            actions = self.fast.call("act", observations, self.weight_noise(1))
            return (actions + self.torque_noise((1, actions.shape[1]))).clip(-1, 1)

    return OneNoise


def weighted_priorities(ddpg: Any) -> type:
    class WeightedPriorities(ddpg):
        def learn(self, batch, weights, noise=None):
            errors, loss = super().learn(batch, weights, noise)
            return weights * errors, loss

    return WeightedPriorities


def saturated_actor(actor: Any) -> type:
    class SaturatedActor(actor):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            nn.init.normal_(self.layers[-1].weight)

    return SaturatedActor


def two_modes(ddpg: Any) -> type:
    """Batch normalization by the batch in a gradient step, and by running statistics elsewhere."""

    class TwoModes(ddpg):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            for network in (self.actor, self.critic, self.target_actor, self.target_critic):
                network.eval()

        def learn(self, batch, weights, noise=None):
            self.actor.train()
            self.critic.train()
            found = super().learn(batch, weights, noise)
            self.actor.eval()
            self.critic.eval()
            return found

    return TwoModes


class BatchStatistics(nn.BatchNorm1d):
    """As after `train()`, but without running statistics, which nobody reads in a target."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.batch_norm(x, None, None, self.weight, self.bias, True)


def training_targets(ddpg: Any) -> type:
    class TrainingTargets(ddpg):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            for layer in nn.ModuleList([self.target_actor, self.target_critic]).modules():
                if isinstance(layer, nn.BatchNorm1d):
                    layer.__class__ = BatchStatistics

    return TrainingTargets


def crossq(ddpg: Any) -> type:
    class CrossQ(ddpg):
        def learn_critic(self, batch, weights=1.0):
            self.actor.eval()
            with torch.no_grad():
                next_actions = self.actor(batch.next_observations)
            self.actor.train()
            values, next_values = self.critic(
                torch.cat([batch.observations, batch.next_observations]),
                torch.cat([batch.actions, next_actions]),
            ).chunk(2)  # one pass, so that its statistics are of both
            errors = batch.returns + batch.discounts * next_values.detach() - values
            self.critic_optimizer.zero_grad()
            (weights * errors.square()).mean().backward()
            self.critic_optimizer.step()
            self.critic.eval()  # the actor's actions leave its statistics alone
            return errors.detach()

    return CrossQ


BATCH = (("nn.LayerNorm(outputs)", "nn.BatchNorm1d(outputs)"),)

BUGS = {
    "default": Bug("The default, without a bug"),
    "course_noise": Bug(
        "Ornstein-Uhlenbeck noise instead of NoisyNet",
        overrides={"noisy_layers": False},
        classes={"Agent": course_noise},
    ),
    "biased_noise": Bug(
        "Noise with a bias",
        "The process is pushed by uniform numbers from 0 to 1 instead of normal ones, so that its "
        "mean is not 0 and it pushes every torque in the same direction (`ddpg_agent.py` of "
        "Udacity's course; Lillicrap et al., 2016, section 7, have values around 0).",
        "noise_mean",
        "course_noise",
        classes={"Agent": biased_noise},
    ),
    "broadcast": Bug(
        "Shapes that broadcast",
        "Values of shape (batch, 1) and returns of shape (batch,) differ by a whole matrix, so the "
        "critic learns the mean over the batch for every transition (PyTorch's rules of "
        "broadcasting; `mse_loss` warns of it).",
        "q_spread",
        classes={"Critic": broadcast_critic, "DDPG": broadcast},
    ),
    "terminal_at_limit": Bug(
        "The time limit as an end",
        "The last targets of an episode say that no reward can follow, although only the time "
        "is up and no observation tells the time (Pardo et al., 2018, equation 6).",
        "terminal_share",
        classes={"Agent": terminal_at_limit},
    ),
    "stale_gradients": Bug(
        "Stale gradients",
        "The actor's loss runs through the critic and leaves gradients there, and the critic's "
        "next step, which does not clear them first, raises Q as the actor wishes (Lillicrap et "
        "al., 2016, algorithm 1, keeps the two updates apart).",
        "Q",
        classes={"DDPG": stale_gradients},
    ),
    "gamma_power": Bug(
        "Gamma to the power n + 1",
        "After n rewards the critic's value must be discounted by gamma to the power n, and one "
        "power more shortens the horizon (Sutton and Barto, 2018, equation 7.1).",
        "Q",
        episode=0,
        classes={"NStepBuffer": gamma_power},
    ),
    "one_noise": Bug(
        "One noise for all arms",
        "All arms try the same deviation at the same time, so twenty arms explore less "
        "than they could (Mnih et al., 2016, section 4, let parallel actors explore differently).",
        "noise_shared",
        classes={"Agent": one_noise},
    ),
    "weighted_priorities": Bug(
        "Weights inside the priorities",
        "Importance weights belong into the loss alone, and a priority made of the weighted error "
        "undoes part of the prioritization (Schaul et al., 2016, algorithm 1, lines 11 to 13).",
        "priority_ratio",
        classes={"DDPG": weighted_priorities},
    ),
    "saturated_actor": Bug(
        "A saturated actor",
        "With output weights of standard deviation 1 the tanh is flat where it begins, so the "
        "slope of the critic hardly reaches the actor's weights (Lillicrap et al., 2016, section "
        "7, draw them from -0.003 to 0.003 so that the first outputs are near 0).",
        "saturation",
        classes={"NoisyActor": saturated_actor},
    ),
    "no_end": Bug(
        "No end of learning",
        "The weights go on wandering around a good solution, and the noise in them stays, so now "
        "and then they wander out of it (Robbins and Monro, 1951, ask for rates that fall to 0).",
        "worst_arm",
        overrides={"anneal_episodes": None},
    ),
    "batch_normalization": Bug(
        "Batch normalization",
        "A likely reason is that no running statistics fit both the old actions that the critic "
        "learns from and the actor's own actions, about which its targets ask (Bhatt et al., 2024, "
        "on CrossQ).",
        "mode_gap",
        edits=BATCH,
        classes={"DDPG": two_modes},
    ),
    "training_targets": Bug(
        "Targets in training mode",
        "Target networks in training mode normalize with the statistics of the batch, so the "
        "target of a transition depends on the others that were sampled with it (Ioffe and "
        "Szegedy, 2015, section 3.1, use fixed statistics for inference).",
        "batch_dependence",
        "batch_normalization",
        classes={"DDPG": training_targets},
    ),
    "crossq": Bug(
        "CrossQ's batch normalization",
        base="batch_normalization",
        overrides={"tau": 1.0},  # no target networks: where new transitions are rated, they agree
        classes={"DDPG": crossq},
    ),
}


def lineage_of(name: str) -> list[Bug]:
    """A variant, after those that it is built upon."""
    bug = BUGS[name]
    return [bug] if bug.base in ("default", name) else [*lineage_of(bug.base), bug]


def overrides_of(name: str) -> dict[str, Any]:
    """All settings of a variant that differ from the default's, those of its base included."""
    return {key: value for bug in lineage_of(name) for key, value in bug.overrides.items()}


def cells_with(name: str) -> Any:
    """A copy of the notebook's definitions in which a variant's classes take their places."""
    lineage = lineage_of(name)
    cells: Any = load_definitions(NOTEBOOK, [edit for bug in lineage for edit in bug.edits])
    for bug in lineage:
        for place, change in bug.classes.items():
            setattr(cells, place, change(getattr(cells, place)))
    cells.DDPG.actor_class, cells.DDPG.critic_class = cells.NoisyActor, cells.Critic

    class AgentWithLearner(cells.Agent):
        """The same agent, whose learner is the changed one unless another is named."""

        def __init__(self, settings, generator, learner=cells.DDPG, task=cells.ARMS):
            super().__init__(settings, generator, learner, task)

    cells.Agent = AgentWithLearner
    return cells


def is_bug(name: str) -> bool:
    """Whether a variant is wrong, and not one that others are compared with."""
    return bool(BUGS[name].why)
