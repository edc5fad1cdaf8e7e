"""Famous bugs of DDPG, each as a small change of an agent, for the probes of doc/bugs.md.

The agent is the notebook's with `whole_networks`: mirrors, layer normalization, NoisyNet.

A bug is a setting that exists, or a class that is put before the notebook's agent, learner or
buffer; only where a line itself is the bug, it is an edit of the text, which must match once. The
runs of the page are at commit 2c0e614.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.figure import Figure
from torch import nn
from torch.nn import functional as F

from tutorial.figures import BLUE, threshold_line
from tutorial.notebook import load_definitions
from tutorial.paths import NOTEBOOK
from tutorial.results import Variant


@dataclass(frozen=True)
class Bug:
    """A change of the agent, or an agent that bugs are compared with."""

    title: str  # of its section in doc/bugs.md, which gives the reason
    number: str = ""  # that betrays it, in `research/results/bugs/`; empty: this is no bug
    base: str = "default"  # the correct agent that it is compared with
    overrides: Mapping[str, Any] = field(default_factory=dict)  # beside those of its base
    edits: tuple[tuple[str, str], ...] = ()  # old and new text, beside those of its base
    classes: Mapping[str, type] = field(default_factory=dict)  # put before the notebook's
    episode: int = 5  # of its number; 0: the last one of learning


class CourseNoise:
    """The Ornstein-Uhlenbeck process of Udacity's course, which begins at 0 in each episode."""

    def begin_episode(self):
        super().begin_episode()
        self.wandering = np.float32(0)

    def torque_noise(self, shape):
        self.wandering = np.float32(0.85) * self.wandering + np.float32(0.2) * self.push(shape)
        return np.float32(self.schedules.noise_factor()) * self.wandering

    def push(self, shape):
        return self.generator.standard_normal(shape, np.float32)


class BiasedNoise:
    def push(self, shape):
        return self.generator.random(shape, np.float32)


class BroadcastCritic:
    def forward(self, observations, actions):
        return super().forward(observations, actions)[:, None]


class Broadcast:
    def learn_critic(self, batch, weights=1.0):
        errors = super().learn_critic(batch, weights)
        return errors.mean(dim=0)  # (batch, batch), which our learner would refuse


class TerminalAtLimit:
    def remember(
        self, observations, actions, next_observations, rewards, terminated, truncated, infos
    ):
        swapped = next_observations, rewards, truncated, terminated, infos
        super().remember(observations, actions, *swapped)


class StaleGradients:
    """The same as calling `zero_grad` after `step`: a gradient begins with what the last one left.

    Gradients that stay cannot be compiled, so they wait among the networks.
    """

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

    def learn_actor(self, batch, *noise):
        loss = super().learn_actor(batch, *noise)
        for weight, stale in zip(self.critic.parameters(), self.stale, strict=True):
            stale.copy_(weight.grad)
        return loss


class GammaPower:
    def window(self, steps, *arguments):
        batch, whole = super().window(steps, *arguments), len(steps) == self.n_step
        return batch._replace(discounts=batch.discounts * (self.discount if whole else 1))


class OneNoise:
    def act(self, observations):
        if not self.learns:
            return super().act(observations)
        actions = self.fast.call("act", observations, self.weight_noise(1))
        return (actions + self.torque_noise((1, actions.shape[1]))).clip(-1, 1)


class WeightedPriorities:
    def learn(self, batch, weights, noise=None):
        errors, loss = super().learn(batch, weights, noise)
        return weights * errors, loss


class SaturatedActor:
    def __init__(self, *arguments):
        super().__init__(*arguments)
        nn.init.normal_(self.layers[-1].weight)


class TwoModes:
    """Batch normalization by the batch in a gradient step, and by running statistics elsewhere."""

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


class BatchStatistics(nn.BatchNorm1d):
    """As after `train()`, but without running statistics, which nobody reads in a target."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.batch_norm(x, None, None, self.weight, self.bias, True)


class TrainingTargets:
    def __init__(self, *arguments):
        super().__init__(*arguments)
        for layer in nn.ModuleList([self.target_actor, self.target_critic]).modules():
            if isinstance(layer, nn.BatchNorm1d):
                layer.__class__ = BatchStatistics


UNITS = "(whole[-1].out_features)"  # as the notebook's `normalized` has it
BATCH = ((f"nn.LayerNorm{UNITS}", f"nn.BatchNorm1d{UNITS}"),)

BUGS = {
    "default": Bug("The default, without a bug"),
    "course_noise": Bug(
        "Ornstein-Uhlenbeck noise instead of NoisyNet",
        overrides={"noisy_layers": False},
        classes={"Agent": CourseNoise},
    ),
    "biased_noise": Bug(
        "Noise with a bias", "noise_mean", "course_noise", classes={"Agent": BiasedNoise}
    ),
    "broadcast": Bug(
        "Shapes that broadcast",
        "q_spread",
        classes={"MirroredCritic": BroadcastCritic, "DDPG": Broadcast},
    ),
    "terminal_at_limit": Bug(
        "The time limit as an end", "terminal_share", classes={"Agent": TerminalAtLimit}
    ),
    "stale_gradients": Bug("Stale gradients", "Q", classes={"DDPG": StaleGradients}),
    "gamma_power": Bug(
        "Gamma to the power n + 1", "Q", episode=0, classes={"NStepBuffer": GammaPower}
    ),
    "one_noise": Bug("One noise for all arms", "noise_shared", classes={"Agent": OneNoise}),
    "weighted_priorities": Bug(
        "Priorities from weighted errors", "priority_ratio", classes={"DDPG": WeightedPriorities}
    ),
    "saturated_actor": Bug(
        "A saturated actor", "saturation", classes={"MirroredActor": SaturatedActor}
    ),
    "no_end": Bug("No end of learning", "worst_arm", overrides={"anneal_episodes": None}),
    "batch_normalization": Bug(
        "Batch normalization", "mode_gap", edits=BATCH, classes={"DDPG": TwoModes}
    ),
    "training_targets": Bug(
        "Targets in training mode",
        "batch_dependence",
        "batch_normalization",
        classes={"DDPG": TrainingTargets},
    ),
}


def lineage_of(name: str) -> list[Bug]:
    """A variant, after those that it is built upon."""
    bug = BUGS[name]
    return [bug] if bug.base in ("default", name) else [*lineage_of(bug.base), bug]


def overrides_of(name: str) -> dict[str, Any]:
    """All settings of a variant that differ from the default's, those of its base included."""
    return {key: value for bug in lineage_of(name) for key, value in bug.overrides.items()}


@functools.cache
def cells_with(name: str) -> Any:
    """A copy of the notebook's definitions, one in a process, with a variant's classes in place."""
    lineage = lineage_of(name)
    cells: Any = load_definitions(NOTEBOOK, [edit for bug in lineage for edit in bug.edits])
    cells.DDPG.make_networks = staticmethod(cells.whole_networks)
    for bug in lineage:
        for place, change in bug.classes.items():
            setattr(cells, place, type(place, (change, getattr(cells, place)), {}))
    return cells


def plot_bugs(variants: Mapping[str, Variant], titles: Mapping[str, str]) -> Figure:
    """Training scores of variants, one panel each, over the range of the runs of `default`.

    Args:
        variants: of the plan `bugs`, as `read_plan` returns them.
        titles: of the panels by variant, in their order.
    """
    columns, rows = 3, -(-len(titles) // 3)
    figure, panels = plt.subplots(
        rows, columns, figsize=(9, 2.3 * rows), sharex=True, sharey=True, layout="constrained"
    )
    episodes, base = variants["default"]["episode"][0], variants["default"]["score"]
    for axes in panels.flat[len(titles) :]:
        axes.axis("off")
    for axes, (name, title) in zip(panels.flat, titles.items(), strict=False):
        axes.fill_between(
            episodes, base.min(axis=0), base.max(axis=0), color="0.85", label="range without a bug"
        )
        axes.plot(episodes, variants[name]["score"].T, color=BLUE, linewidth=0.8)
        threshold_line(axes)
        axes.set_title(title, fontsize=9)
        ticks = [tick for tick in (1, 2, 5, 10, 20, 50) if tick <= episodes[-1]]
        axes.set(xscale="log", xlim=(1, episodes[-1]), ylim=(0, 41))
        axes.set_xticks(ticks, ticks)
        axes.minorticks_off()
        axes.tick_params(labelbottom=True)
    handles = panels.flat[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper right", ncols=2, frameon=False, fontsize=8)
    figure.supxlabel("episode", fontsize=10)
    figure.supylabel("training score (sum of rewards)", fontsize=10)
    return figure
