"""One episode of arms, played and kept: what pictures show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reacher.actor import Actor
from reacher.checks import MAX_SEED, actions_of_shape, integer
from reacher.physics import MAX_AGENTS
from reacher.task import ACTION_SIZE, EPISODE_DECISIONS, RESET_PARAMETERS, Task


@dataclass(frozen=True)
class Episode:
    """What was seen and earned.

    Attributes:
        observations: (decisions + 1, arms, 33) float32; the last ones are the episode's own.
        rewards: (decisions, arms) float32.
        goal_size: diameter of the goals, m.
        seed: of the goals.
    """

    observations: np.ndarray
    rewards: np.ndarray
    goal_size: float = RESET_PARAMETERS["goal_size"]
    seed: int = 0

    @property
    def scores(self) -> np.ndarray:
        """Each arm's sum of rewards, (arms,)."""
        return self.rewards.sum(0, dtype=np.float64)


def random_torques(seed: int) -> Actor:
    """Clipped standard normal torques, as in the notebook's section 2.3."""
    generator = np.random.default_rng(seed)
    return lambda observations: generator.standard_normal((len(observations), ACTION_SIZE)).clip(
        -1, 1
    )


def play_episode(
    actor: Actor,
    arms: int = 20,
    seed: int = 0,
    decisions: int = EPISODE_DECISIONS,
    **parameters: float,
) -> Episode:
    """Let an actor play the first episode of `ReacherEnvironment(arms, seed)`.

    Args:
        actor: observations (arms, 33) float32 to actions (arms, 4).
        arms: 1 to 2000.
        seed: of the goals, which are the same for every actor.
        decisions: 1 to 1001.
        parameters: `goal_size` and `goal_speed`.

    Raises:
        TypeError, ValueError: a number out of range.
    """
    arms = integer("arms", arms, 1, MAX_AGENTS)
    decisions = integer("decisions", decisions, 1, EPISODE_DECISIONS)
    task = Task(arms, integer("seed", seed, 0, MAX_SEED))
    task.set_parameters(parameters)
    seen, earned = [task.reset()], []
    for _ in range(decisions):
        actions = actions_of_shape(actor(seen[-1]), (arms, ACTION_SIZE))
        observations, rewards, _ = task.step(actions)
        seen.append(observations)
        earned.append(rewards.astype(np.float32))
    return Episode(np.array(seen), np.array(earned), task.parameters["goal_size"], seed)
