"""Famous bugs of DDPG, each as a small change of the present agent, for doc/bugs.md.

A bug is a setting that exists, or an edit of the notebook's cells: pairs of old and new text, each
of which must match exactly once. So a change of a cell that an edit needs is noticed at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Bug:
    """A change of the agent, or an agent that bugs are compared with."""

    title: str
    why: str = ""  # one sentence, with its source; empty: this is no bug
    number: str = ""  # that betrays it: a column of the tables of `research.trials`
    base: str = "default"  # the correct agent that it is compared with
    overrides: Mapping[str, Any] = field(default_factory=dict)  # beside those of its base
    edits: tuple[tuple[str, str], ...] = ()  # old and new text
    episode: int = 5  # of its number; 0: the last one of learning


BATCH = ("nn.LayerNorm(outputs)", "nn.BatchNorm1d(outputs)")
NORMAL = "self.normal(*actions.shape)"
COURSE = (  # the process begins at 0 in each episode
    (
        "        self.windows.steps.clear()",
        "        self.action_noise = np.float32(0)\n        self.windows.steps.clear()",
    ),
    (
        "self.settings.gaussian_sigma * self.normal",
        "np.float32(0.85) * self.action_noise + 0.2 * self.normal",
    ),
)

END_OF_INIT = "        self.set_learning_rates(1.0)"
# The same as calling `zero_grad` after `step`: the critic's next gradient begins with what the
# actor's loss has left. Gradients that stay cannot be compiled, so they wait among the networks.
STALE = (
    (
        END_OF_INIT,
        "        zeros = [torch.zeros_like(weight) for weight in critic.parameters()]\n"
        "        self.stale = nn.ParameterList(zeros).requires_grad_(False)\n" + END_OF_INIT,
    ),
    (
        "        descend(loss, self.critic_optimizer)\n",
        "        self.critic_optimizer.zero_grad()\n"
        "        loss.backward()\n"
        "        for weight, stale in zip(self.critic.parameters(), self.stale, strict=True):\n"
        "            weight.grad += stale\n"
        "        self.critic_optimizer.step()\n"
        "        self.critic_optimizer.zero_grad()\n",
    ),
    (
        "        descend(loss, self.actor_optimizer)\n",
        "        descend(loss, self.actor_optimizer)\n"
        "        for weight, stale in zip(self.critic.parameters(), self.stale, strict=True):\n"
        "            stale.copy_(weight.grad)\n",
    ),
)

BUGS = {
    "default": Bug("The default, without a bug"),
    "course_noise": Bug(
        "Ornstein-Uhlenbeck noise instead of NoisyNet",
        overrides={"noisy_layers": False},
        edits=COURSE,
    ),
    "biased_noise": Bug(
        "Noise with a bias",
        "The process is pushed by uniform numbers from 0 to 1 instead of normal ones, so that its "
        "mean is not 0 and it pushes every torque in the same direction (`ddpg_agent.py` of "
        "Udacity's course; Lillicrap et al., 2016, section 7, have values around 0).",
        "noise_mean",
        "course_noise",
        edits=(*COURSE, (NORMAL, "self.generator.random(actions.shape, np.float32)")),
    ),
    "broadcast": Bug(
        "Shapes that broadcast",
        "Values of shape (batch, 1) and returns of shape (batch,) differ by a whole matrix, so the "
        "critic learns the mean over the batch for every transition (PyTorch's rules of "
        "broadcasting; `mse_loss` warns of it).",
        "q_spread",
        edits=(
            ("return self.output(x).squeeze(1)  # (batch, 1) to (batch,)", "return self.output(x)"),
            # Our learner refuses errors of shape (batch, batch); libraries that do not ask go on.
            (
                "return errors.detach(), loss.detach()",
                "return errors.mean(dim=0).detach(), loss.detach()",
            ),
        ),
    ),
    "terminal_at_limit": Bug(
        "The time limit as an end",
        "The last targets of an episode say that no reward can follow, although only the time "
        "is up and no observation tells the time (Pardo et al., 2018, equation 6).",
        "terminal_share",
        edits=(("self.windows.flush(terminal)", "self.windows.flush(True)"),),
    ),
    "stale_gradients": Bug(
        "Stale gradients",
        "The actor's loss runs through the critic and leaves gradients there, and the critic's "
        "next step, which does not clear them first, raises Q as the actor wishes (Lillicrap et "
        "al., 2016, algorithm 1, keeps the two updates apart).",
        "Q",
        edits=STALE,
    ),
    "gamma_power": Bug(
        "Gamma to the power n + 1",
        "After n rewards the critic's value must be discounted by gamma to the power n, and one "
        "power more shortens the horizon (Sutton and Barto, 2018, equation 7.1).",
        "Q",
        episode=0,
        edits=(("self.discount**self.n_step)", "self.discount ** (self.n_step + 1))"),),
    ),
    "one_noise": Bug(
        "One noise for all arms",
        "All arms try the same deviation at the same time, so twenty arms explore less "
        "than they could (Mnih et al., 2016, section 4, let parallel actors explore differently).",
        "noise_shared",
        edits=(
            (NORMAL, "self.normal(1, actions.shape[1])"),
            ("self.normal(len(observations), self", "self.normal(1, self"),
        ),
    ),
    "weighted_priorities": Bug(
        "Weights inside the priorities",
        "Importance weights belong into the loss alone, and a priority made of the weighted error "
        "undoes part of the prioritization (Schaul et al., 2016, algorithm 1, lines 11 to 13).",
        "priority_ratio",
        edits=(("return errors.detach(), loss", "return (weights * errors).detach(), loss"),),
    ),
    "saturated_actor": Bug(
        "A saturated actor",
        "With output weights of standard deviation 1 the tanh is flat where it begins, so the "
        "slope of the critic hardly reaches the actor's weights (Lillicrap et al., 2016, section "
        "7, draw them from -0.003 to 0.003 so that the first outputs are near 0).",
        "saturation",
        edits=(
            (
                "for layer in self.noisy_layers)\n",
                "for layer in self.noisy_layers)\n"
                "        nn.init.normal_(self.layers[-2].weight)\n",
            ),
        ),
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
        edits=(BATCH,),
    ),
    "training_targets": Bug(
        "Targets in training mode",
        "Target networks in training mode normalize with the statistics of the batch, so the "
        "target of a transition depends on the others that were sampled with it (Ioffe and "
        "Szegedy, 2015, section 3.1, use fixed statistics for inference).",
        "batch_dependence",
        "batch_normalization",
        edits=(
            BATCH,
            # As `train()` on the targets does, whose running statistics nobody reads. Without them
            # nothing changes where transitions are rated, so it can be compiled.
            (
                "class DDPG(PlainDDPG):",
                "class BatchStatistics(nn.BatchNorm1d):\n"
                "    def forward(self, x):\n"
                "        return F.batch_norm(x, None, None, self.weight, self.bias, True)\n"
                "\n\nclass DDPG(PlainDDPG):",
            ),
            (
                END_OF_INIT,
                "        targets = nn.ModuleList([self.target_actor, self.target_critic])\n"
                "        for layer in targets.modules():\n"
                "            if isinstance(layer, nn.BatchNorm1d):\n"
                "                layer.__class__ = BatchStatistics\n" + END_OF_INIT,
            ),
        ),
    ),
    "crossq": Bug(
        "CrossQ's batch normalization",
        base="batch_normalization",
        overrides={"tau": 1.0},  # no target networks: where new transitions are rated, they agree
        edits=(
            BATCH,
            (
                "        targets = td_targets(batch, self.target_actor, self.target_critic)\n"
                "        errors = td_error(batch, self.critic, targets)\n"
                "        loss",
                "        self.actor.eval()\n"
                "        next_actions = self.actor(batch.next_observations).detach()\n"
                "        self.actor.train()\n"
                "        values, next_values = self.critic(\n"
                "            torch.cat([batch.observations, batch.next_observations]),\n"
                "            torch.cat([batch.actions, next_actions]),\n"
                "        ).chunk(2)  # one pass, so that its statistics are of both\n"
                "        errors = batch.returns + batch.discounts * next_values.detach() - values\n"
                "        loss",
            ),
            (
                "        loss_of_actor = self.learn_actor",
                "        self.critic.eval()  # the actor's actions leave its statistics alone\n"
                "        loss_of_actor = self.learn_actor",
            ),
        ),
    ),
}


def overrides_of(name: str) -> dict[str, Any]:
    """All settings of a variant that differ from the default's, those of its base included."""
    bug = BUGS[name]
    base = {} if name in ("default", bug.base) else overrides_of(bug.base)
    return base | dict(bug.overrides)


def is_bug(name: str) -> bool:
    """Whether a variant is wrong, and not one that others are compared with."""
    return bool(BUGS[name].why)
