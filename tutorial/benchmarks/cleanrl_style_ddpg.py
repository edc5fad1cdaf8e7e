"""DDPG in one file, in CleanRL's style: one module a network, plain PyTorch, no options but these.

Written from the paper (Lillicrap et al., 2016, algorithm 1), with what such files usually take:
two layers of 256 units, Adam, Gaussian noise on the actions, uniform replay, random actions at
first, one update a decision of all environments, the actor and the targets in every second one.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from reacher.task import ACTION_SIZE, OBSERVATION_SIZE
from tutorial.benchmarks.baseline_environment import Arms


@dataclass(frozen=True)
class Settings:
    """Hyperparameters; the defaults are the usual ones."""

    hidden: tuple[int, int] = (256, 256)
    learning_rate: float = 3e-4
    buffer_size: int = 1_000_000  # transitions
    gamma: float = 0.99
    tau: float = 0.005
    batch_size: int = 256
    exploration_noise: float = 0.1  # standard deviation, in actions
    learning_starts: int = 25_000  # transitions; actions are uniform until then
    policy_frequency: int = 2  # critic updates for one of the actor and the targets
    updates: int = 1  # for one decision of all environments


LIKE_OURS = Settings(
    hidden=(128, 128),
    learning_rate=1e-3,
    gamma=0.97,
    tau=0.01,
    batch_size=64,
    exploration_noise=0.2,
    learning_starts=1_000,
    updates=3,
)


class QNetwork(nn.Module):
    """(batch, observation) and (batch, action) to values (batch,)."""

    def __init__(self, observation_size: int, action_size: int, hidden: tuple[int, int]):
        super().__init__()
        self.fc1 = nn.Linear(observation_size + action_size, hidden[0])
        self.fc2 = nn.Linear(hidden[0], hidden[1])
        self.fc3 = nn.Linear(hidden[1], 1)

    def forward(self, x, a):
        x = F.relu(self.fc1(torch.cat([x, a], 1)))
        x = F.relu(self.fc2(x))
        return self.fc3(x).view(-1)


class Actor(nn.Module):
    """(batch, observation) to actions (batch, action) in [-1, 1]."""

    def __init__(self, observation_size: int, action_size: int, hidden: tuple[int, int]):
        super().__init__()
        self.fc1 = nn.Linear(observation_size, hidden[0])
        self.fc2 = nn.Linear(hidden[0], hidden[1])
        self.fc_mu = nn.Linear(hidden[1], action_size)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return torch.tanh(self.fc_mu(x))


class UniformReplay:
    """A ring of transitions, one array a field."""

    def __init__(self, size: int, observation_size: int, action_size: int, seed: int):
        self.observations = np.zeros((size, observation_size), np.float32)
        self.next_observations = np.zeros((size, observation_size), np.float32)
        self.actions = np.zeros((size, action_size), np.float32)
        self.rewards = np.zeros(size, np.float32)
        self.terminations = np.zeros(size, np.float32)
        self.generator = np.random.default_rng(seed)
        self.position, self.held = 0, 0

    def add(self, observations, next_observations, actions, rewards, terminations) -> None:
        """Store a transition of each environment."""
        size = len(self.rewards)
        indices = (self.position + np.arange(len(rewards))) % size
        self.observations[indices] = observations
        self.next_observations[indices] = next_observations
        self.actions[indices] = actions
        self.rewards[indices] = rewards
        self.terminations[indices] = terminations
        self.position = (self.position + len(rewards)) % size
        self.held = min(self.held + len(rewards), size)

    def sample(self, batch_size: int) -> tuple[torch.Tensor, ...]:
        """A batch of each field, as tensors."""
        indices = self.generator.integers(self.held, size=batch_size)
        fields = (
            self.observations,
            self.next_observations,
            self.actions,
            self.rewards,
            self.terminations,
        )
        return tuple(torch.from_numpy(field[indices]) for field in fields)


class Learner:
    """Networks, targets, optimisers, and the update."""

    def __init__(self, observation_size: int, action_size: int, settings: Settings):
        self.settings, self.updates = settings, 0
        self.actor = Actor(observation_size, action_size, settings.hidden)
        self.qf1 = QNetwork(observation_size, action_size, settings.hidden)
        self.target_actor, self.qf1_target = copy.deepcopy(self.actor), copy.deepcopy(self.qf1)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), settings.learning_rate)
        self.q_optimizer = torch.optim.Adam(self.qf1.parameters(), settings.learning_rate)

    def update(self, observations, next_observations, actions, rewards, terminations) -> None:
        """One update of the critic, and now and then of the actor and the targets."""
        settings = self.settings
        self.updates += 1
        with torch.no_grad():
            next_actions = self.target_actor(next_observations)
            next_values = self.qf1_target(next_observations, next_actions)
            targets = rewards + (1 - terminations) * settings.gamma * next_values
        qf1_loss = F.mse_loss(self.qf1(observations, actions), targets)
        self.q_optimizer.zero_grad()
        qf1_loss.backward()
        self.q_optimizer.step()
        if self.updates % settings.policy_frequency:
            return
        actor_loss = -self.qf1(observations, self.actor(observations)).mean()
        self.actor_optimizer.zero_grad()
        actor_loss.backward()
        self.actor_optimizer.step()
        for online, target in ((self.actor, self.target_actor), (self.qf1, self.qf1_target)):
            for parameter, follower in zip(online.parameters(), target.parameters(), strict=True):
                follower.data.copy_(
                    settings.tau * parameter.data + (1 - settings.tau) * follower.data
                )


def train(settings: Settings, arms: Arms, seed: int) -> None:
    """Train until `arms.finished`."""
    torch.manual_seed(seed)
    generator = np.random.default_rng(seed)
    learner = Learner(OBSERVATION_SIZE, ACTION_SIZE, settings)
    memory = UniformReplay(settings.buffer_size, OBSERVATION_SIZE, ACTION_SIZE, seed)
    shape = (arms.num_agents, ACTION_SIZE)
    arms.start()
    observations = arms.reset()
    while not arms.finished:
        if memory.held < settings.learning_starts:
            actions = generator.uniform(-1, 1, shape).astype(np.float32)
        else:
            with torch.no_grad():
                actions = learner.actor(torch.from_numpy(observations)).numpy()
            noise = settings.exploration_noise * generator.standard_normal(shape)
            actions = np.clip(actions + noise, -1, 1).astype(np.float32)
        next_observations, rewards, _, final = arms.step(actions)
        memory.add(observations, final, actions, rewards, np.zeros(len(rewards)))  # never terminal
        observations = next_observations
        if memory.held >= max(settings.learning_starts, settings.batch_size):
            for _ in range(settings.updates):
                learner.update(*memory.sample(settings.batch_size))
