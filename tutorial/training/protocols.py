"""What this package needs of the classes that the notebook defines, and of an environment.

The notebook's `Agent`, `DDPG` and `UniformReplay` fit these protocols (PEP 544) by their shape,
without a common base class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch

from reacher.interface import BrainInfo
from tutorial.training.settings import RareSettings


class Environment(Protocol):
    """The part of `unityagents.UnityEnvironment`'s interface that plays episodes."""

    @property
    def brain_names(self) -> Sequence[str]:
        """Names of its brains; here there is one."""

    def reset(self, train_mode: bool = True) -> Mapping[str, BrainInfo]:
        """Begin an episode; the answer by the brain's name."""

    def step(self, vector_action: np.ndarray, /) -> Mapping[str, BrainInfo]:
        """Take the actions (arms, action_size); the answer by the brain's name."""


@runtime_checkable
class SavedEnvironment(Environment, Protocol):
    """An environment that can go back to where it was; a Unity build cannot."""

    def state(self) -> dict:
        """What decides the future from the next reset on, as JSON can hold it.

        Raises:
            RuntimeError: the environment has a memory that cannot be saved.
        """

    def restore(self, state: Mapping, /) -> None:
        """Go on as the environment did whose `state()` this is, from the next reset on."""


@runtime_checkable
class Networks(Protocol):
    """The notebook's `DDPG` as PyTorch has it: what is saved and loaded.

    Attributes:
        actor, critic: the networks that are trained.
        noise_size: normal numbers that the actor's noisy layers take for one row.
    """

    actor: Any
    critic: torch.nn.Module
    noise_size: int

    def networks(self) -> dict[str, torch.nn.Module]:
        """Actor, critic and their targets by name."""

    def optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """Both optimisers by name."""


@runtime_checkable
class Learner(Protocol):
    """What computes for the agent: the notebook's `DDPG` itself, or a compiled one."""

    def act(self, observations: np.ndarray, noise: np.ndarray | None = None) -> np.ndarray:
        """Actions (rows, action_size) for observations (rows, observation_size), float32.

        Args: noise (1 or rows, noise_size), or None for the mean weights.
        """

    def td_errors(self, rows: np.ndarray) -> np.ndarray:
        """TD errors (k,) of transitions (k, width)."""

    def learn_phase(
        self, rows: np.ndarray, weights: np.ndarray, noise: np.ndarray, with_actor: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """A gradient step with each batch.

        Args:
            rows, weights: transitions (steps, batch, width), importance weights (steps, batch).
            noise: of the actor's losses, (steps, 1, noise_size).
            with_actor: in which steps the actor learns, (steps,) of bool.

        Returns:
            TD errors (steps, batch) and losses (steps, 2) of critic and actor.
        """


@runtime_checkable
class Replay(Sized, Protocol):
    """The notebook's replay memories: a ring of transitions.

    Attributes:
        rows: the transitions, (capacity, width) float32; the first `size` hold something.
        size, position: transitions held, and the place of the next one.
        generator: draws the batches.
    """

    rows: np.ndarray
    size: int
    position: int
    generator: np.random.Generator

    def clear(self) -> None:
        """Forget all transitions."""


@runtime_checkable
class PrioritizedReplay(Replay, Protocol):
    """A replay memory that draws in proportion to priorities (Schaul et al., 2016).

    Attributes:
        tree: the sum tree, (2 * leaves,) float64: node 1 is the root, the leaves are the second
            half.
        largest: the largest priority so far, before its exponent.
    """

    tree: np.ndarray
    largest: float


@runtime_checkable
class Agent(Protocol):
    """The notebook's `Agent`.

    Attributes:
        settings: its hyperparameters.
        engine: "torch" or "compiled".
        ddpg, learner: networks and optimisers in PyTorch, and what computes with their numbers.
        replay: its memory.
        new_transitions: row blocks (k, width) that wait for the next update phase.
        learns: whether it learns in this episode.
        env_steps, episodes, num_updates: decisions, episodes and gradient steps so far.
        annealed_episodes: episodes since learning began to fade out.
        average_score, best_score: of the episodes so far; the notebook's `update_scores`.
        reward_threshold: the score that counts as solved, or None.
        largest_reward: absolute value so far, scaled.
        log: what the last update phase showed, by name.
    """

    settings: RareSettings
    engine: str
    ddpg: Networks
    learner: Learner
    replay: Replay
    new_transitions: list[np.ndarray]
    learns: bool
    env_steps: int
    episodes: int
    num_updates: int
    annealed_episodes: int
    average_score: float
    best_score: float
    reward_threshold: float | None
    largest_reward: float
    log: dict[str, float]

    def act(self, observations: np.ndarray, explore: bool = True) -> np.ndarray:
        """Actions (arms, action_size) for observations (arms, observation_size), float32."""
