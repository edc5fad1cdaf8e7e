"""What this package needs of the classes that the notebook defines, and of an environment.

The notebook's `Agent`, `DDPG` and `UniformReplay` fit these protocols (PEP 544) by their shape,
without a common base class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch

from reacher.environment import BrainInfo
from tapejit.compiled import Learner
from tutorial.settings import Settings


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
class DDPG(Protocol):
    """The notebook's `DDPG`: networks, optimizers, and the methods that the engine records.

    Its networks (torch.nn.Module) and optimizers (torch.optim.Optimizer) are found among its
    attributes, whatever their names are.

    Attributes:
        actor: the network that acts; its best weights are shown.
        settings: its hyperparameters.
        sizes: of an observation, and of an action.
        noise_size: normal numbers that the actor's noisy layers take for one row.
    """

    actor: Any
    settings: Settings
    sizes: tuple[int, int]
    noise_size: int

    def act(self, observations: torch.Tensor, noise: torch.Tensor | None = None) -> torch.Tensor:
        """Actions (rows, action_size); with noise (1 or rows, noise_size), or mean weights."""

    def td_errors(self, rows: torch.Tensor) -> torch.Tensor:
        """TD errors (k,) of transitions (k, width)."""

    def learn(
        self,
        rows: torch.Tensor,
        weights: torch.Tensor,
        noise: torch.Tensor | None = None,
        with_actor: bool = True,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """One gradient step: TD errors (batch,), and the losses of critic and actor."""


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


@runtime_checkable
class PrioritizedReplay(Replay, Protocol):
    """A replay memory that draws in proportion to priorities (Schaul et al., 2016).

    Attributes:
        tree: the sum tree, (2 * leaves,) float64: node 1 is the root, the leaves are the second
            half.
    """

    tree: np.ndarray


@runtime_checkable
class Agent(Protocol):
    """The notebook's `Agent`.

    Attributes:
        settings: its hyperparameters.
        engine: "torch" or "compiled".
        ddpg, learner: networks and optimizers in PyTorch, and what computes with their numbers.
        replay: its memory.
        new_transitions: row blocks (k, width) that wait for the next update phase.
        learns: whether it learns in this episode.
        env_steps, episodes, num_updates: decisions, episodes and gradient steps so far.
        annealed_episodes: episodes since learning began to fade out.
        first_score, best_score: means over at least 20 arms; None: not yet.
        reward_threshold: the score that counts as solved, or None.
        largest_reward: absolute value so far, scaled.
        log: what the last update phase showed, by name.
    """

    settings: Settings
    engine: str
    ddpg: DDPG
    learner: Learner
    replay: Replay
    new_transitions: list[np.ndarray]
    learns: bool
    env_steps: int
    episodes: int
    num_updates: int
    annealed_episodes: int
    first_score: float | None
    best_score: float | None
    reward_threshold: float | None
    largest_reward: float
    log: dict[str, float]

    def anneal_factor(self) -> float:
        """What is left of learning and of noise in this episode, 1 to 0."""

    def act(self, observations: np.ndarray, explore: bool = True) -> np.ndarray:
        """Actions (arms, action_size) for observations (arms, observation_size), float32."""
