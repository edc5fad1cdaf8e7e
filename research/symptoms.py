"""Numbers of an agent beside its scores: those that betray a bug before the curve does.

They are measured after an episode, from the replay and a copy of the networks, and change nothing
of the training.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch

NUMBERS = {  # the columns of numbers.csv, after those that name a run and an episode
    "Q": "value of the actor's choices, mean over the last update phase",
    "critic_loss": "the critic's loss, mean over the last update phase",
    "td_error": "absolute TD error that becomes a priority, mean over the last update phase",
    "noise_mean": "mean of the newest noise on the actions, all arms and torques",
    "noise_shared": "share of the action noise that all arms have in common",  # of its mean square
    "saturation": "share of torques beyond 0.99, without noise",
    "q_spread": "standard deviation of Q over the newest transitions",
    "terminal_share": "share of stored transitions with a discount of 0",
    "priority_ratio": "stored priorities over present absolute TD errors, ratio of means",
    "batch_dependence": "mean change of a TD error when other transitions are rated with it",
    "mode_gap": "mean change of Q from the critic's evaluation mode to its training mode",
    "sigma": "mean absolute sigma of the noisy layers",
    "largest_weight": "largest absolute weight of actor and critic",
}
SAMPLE, BATCH = 2_000, 64  # stored transitions that are rated; in a batch
SATURATED = 0.99


@torch.no_grad()
def numbers_of(agent: Any, arms: int) -> dict[str, float]:
    """NUMBERS of an agent that learns, by name; NaN where it has no such number."""
    replay, settings = agent.replay, agent.settings
    ddpg = copy.deepcopy(agent.ddpg)  # a bug may change statistics when it is asked
    observation_size, action_size = ddpg.sizes
    reward = observation_size + action_size  # the column of the return

    def rated(rows):
        """TD errors (k,), also of a learner that makes a matrix of them."""
        return ddpg.td_errors(rows).reshape(len(rows), -1).mean(dim=1)

    phase = np.arange(min(len(replay), arms * settings.train_freq))
    newest = torch.from_numpy(replay.rows[(replay.position - 1 - phase) % len(replay.rows)])
    seen = newest[:, :observation_size]
    chosen = ddpg.actor(seen)
    noise = np.broadcast_to(getattr(agent, "action_noise", 0.0), (arms, action_size))
    places = np.random.default_rng(0).integers(len(replay), size=SAMPLE)
    rows = torch.from_numpy(replay.rows[places])
    present = rated(rows).abs().mean().item()
    noisy = [layer for layer in ddpg.actor.modules() if hasattr(layer, "sigma_weight")]
    sigmas = [layer.sigma_weight.abs().mean().item() for layer in noisy]
    found = {
        "Q": agent.log["Q"],
        "critic_loss": agent.log["critic loss"],
        "td_error": agent.log["TD error"],
        "noise_mean": float(noise.mean()),
        "noise_shared": float(
            (noise.mean(axis=0) ** 2).mean() / (noise**2).mean() if noise.any() else np.nan
        ),
        "saturation": (chosen.abs() > SATURATED).float().mean().item(),
        "q_spread": ddpg.critic(seen, chosen).std().item(),
        "terminal_share": float((replay.rows[: len(replay), reward + 1] == 0).mean()),
        "priority_ratio": np.nan,
        "batch_dependence": (rated(rows[:BATCH]) - rated(rows[: 2 * BATCH])[:BATCH])
        .abs()
        .mean()
        .item(),
        "sigma": float(np.mean(sigmas)) if sigmas else np.nan,
        "largest_weight": max(
            parameter.abs().max().item()
            for network in (ddpg.actor, ddpg.critic)
            for parameter in network.parameters()
        ),
    }
    if settings.replay == "prioritized" and settings.priority_exponent:
        powers = replay.tree[len(replay.tree) // 2 + places]  # p^alpha
        stored = powers ** (1 / settings.priority_exponent) - replay.epsilon
        found["priority_ratio"] = stored.mean() / present
    batch = rows[:BATCH, :observation_size]
    chosen = ddpg.actor(batch)
    values = [ddpg.critic.train(mode)(batch, chosen) for mode in (True, False)]
    found["mode_gap"] = (values[0] - values[1]).abs().mean().item()
    return {name: found[name] for name in NUMBERS}
