"""The notebook's agent with mirrors and layer normalization, from top to bottom in plain PyTorch.

python -m tutorial.ddpg    trains it for six episodes, which takes about a minute

Of this project it needs only `reacher`, the arms. It computes what the notebook's cells compute,
up to section 14.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from reacher import ReacherVectorEnv, columns

DISCOUNT, REWARD_SCALE, TAU, LEARNING_RATE = 0.97, 10.0, 0.01, 1e-3
NOISE = 0.3  # standard deviation of the noise on torques
CAPACITY, STARTS, BATCH = 1_000_000, 1_000, 64  # transitions
EVERY, STEPS = 10, 40  # gradient steps after so many decisions

# Observations are divided by these; infinity leaves the orientations out.
BODY = [10.0] * 3 + [np.inf] * 4 + [5.0] * 3 + [20.0] * 3
FACTOR = 1 / torch.tensor([*BODY, *BODY, 8, 8, 8, 1, 1, 1, 1])


def signs_of_mirror(x: int, z: int) -> Tensor:
    """Signs (37,) of an observation and its action; x or z is -1 if it is mirrored."""
    polar, axial = [x, 1, z], [z, x * z, x]  # positions and velocities; rotations
    body = [*polar, 1, 1, 1, 1, *axial, *polar]  # whatever orientations are, FACTOR leaves them out
    return torch.tensor([*body, *body, *polar, 1, 1, 1, x * z, z, x, z, x], dtype=torch.float32)


MIRROR_X, MIRROR_Z = signs_of_mirror(-1, 1), signs_of_mirror(1, -1)


def signs_of(observations: Tensor) -> tuple[Tensor, Tensor]:
    """Signs (batch, 33) and (batch, 4) that bring each arm's goal to x >= 0 and z >= 0."""
    flip_x, _, flip_z = (observations[:, columns.GOAL] < 0).split(1, dim=1)
    signs = torch.where(flip_x, MIRROR_X, 1) * torch.where(flip_z, MIRROR_Z, 1)
    return signs[:, :33], signs[:, 33:]


def mlp(*sizes: int) -> nn.Sequential:
    """Linear layers; hidden ones are normalized, and pass a ReLU."""
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(sizes[:-1]):
        layers += [nn.Linear(inputs, outputs), nn.LayerNorm(outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))


class Actor(nn.Module):
    """Observations (batch, 33) to torques (batch, 4)."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = mlp(33, 128, 128, 4)

    def forward(self, observations: Tensor) -> Tensor:
        signs, action_signs = signs_of(observations)
        return action_signs * self.layers(signs * observations * FACTOR).tanh()


class Critic(nn.Module):
    """Observations (batch, 33) and torques (batch, 4) to values (batch,)."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = mlp(33 + 4, 128, 128, 1)

    def forward(self, observations: Tensor, actions: Tensor) -> Tensor:
        signs, action_signs = signs_of(observations)
        inputs = torch.cat([signs * observations * FACTOR, action_signs * actions], dim=1)
        return self.layers(inputs).squeeze(1)


def train(environment: Any, seed: int = 0) -> Iterator[tuple[float, Actor]]:
    """DDPG (Lillicrap et al., 2016, algorithm 1): after each episode its score, and the actor."""
    torch.manual_seed(seed)
    generator = np.random.default_rng(seed)
    actor, critic = Actor(), Critic()
    target_actor, target_critic = copy.deepcopy((actor, critic))
    actor_optimizer = torch.optim.Adam(actor.parameters(), LEARNING_RATE)
    critic_optimizer = torch.optim.Adam(critic.parameters(), LEARNING_RATE)
    memory, stored, decisions = np.zeros((CAPACITY, 33 + 4 + 1 + 1 + 33), np.float32), 0, 0

    def gradient_step(rows: Tensor) -> None:
        seen, actions, rewards, discounts, seen_next = rows.split([33, 4, 1, 1, 33], dim=1)
        with torch.no_grad():
            next_values = target_critic(seen_next, target_actor(seen_next))
            targets = rewards[:, 0] + discounts[:, 0] * next_values
        critic_loss = (targets - critic(seen, actions)).square().mean()
        critic_optimizer.zero_grad()
        critic_loss.backward()
        critic_optimizer.step()
        actor_loss = -critic(seen, actor(seen)).mean()
        actor_optimizer.zero_grad()
        actor_loss.backward()
        actor_optimizer.step()
        with torch.no_grad():
            for target, online in ((target_critic, critic), (target_actor, actor)):
                for old, new in zip(target.parameters(), online.parameters(), strict=True):
                    old.lerp_(new, TAU)

    while True:
        (seen, _), score, is_over = environment.reset(), 0.0, False  # (arms, 33)
        while not is_over:
            with torch.no_grad():
                actions = actor(torch.from_numpy(seen)).numpy()
            noise = NOISE * generator.standard_normal(actions.shape, np.float32)
            actions = (actions + noise).clip(-1, 1)
            seen_next, rewards, terminated, truncated, _ = environment.step(actions)
            is_over = (terminated | truncated).any()  # of all arms together
            score += rewards.mean(dtype=float)
            discounts = np.where(terminated, 0, DISCOUNT)  # nothing follows where an arm broke
            parts = seen, actions, REWARD_SCALE * rewards, discounts, seen_next
            rows = np.column_stack(parts)[~truncated]  # out of time, it sees the next episode
            seen = seen_next
            memory[(stored + np.arange(len(rows))) % CAPACITY] = rows
            stored += len(rows)
            decisions += 1
            if decisions % EVERY == 0 and stored >= STARTS:
                chosen = generator.integers(min(stored, CAPACITY), size=(STEPS, BATCH))
                for indices in chosen:
                    gradient_step(torch.from_numpy(memory[indices]))
        yield score, actor


if __name__ == "__main__":
    torch.set_num_threads(1)
    arms = ReacherVectorEnv(num_envs=20, seed=0)
    for episode, (mean, _) in enumerate(itertools.islice(train(arms), 6), 1):
        print(f"episode {episode}: score {mean:.1f}", flush=True)
