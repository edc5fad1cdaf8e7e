"""The arms as other people's agents meet them, and a record of how their training goes."""

from __future__ import annotations

import time

import numpy as np

from reacher.task import EPISODE_DECISIONS, SOLVED_SCORE, Task
from tutorial.training.scores import first_at


class ArmsEnv:
    """All arms at once, with a reset at the time limit and a record of all scores.

    Other than Unity's interface it reports the true last observation of an episode, since the
    baselines bootstrap from it.

    Args:
        num_agents: arms.
        seed: of the goals.
        max_episodes: after so many `finished` is true.
        max_seconds: after so many seconds, too.
        stop_at: and with the first episode that scores so much.

    Attributes:
        scores: mean over the arms of each whole episode.
        seconds: when it ended, s since `start`.
    """

    def __init__(
        self,
        num_agents: int = 20,
        seed: int = 0,
        max_episodes: float = np.inf,
        max_seconds: float = np.inf,
        stop_at: float = SOLVED_SCORE,
    ):
        self.num_agents = num_agents
        self.task = Task(num_agents, seed)
        self.max_episodes, self.max_seconds, self.stop_at = max_episodes, max_seconds, stop_at
        self.scores: list[float] = []
        self.seconds: list[float] = []
        self.start()

    def start(self) -> None:
        """Start the clock."""
        self.started, self.score = time.perf_counter(), 0.0

    @property
    def finished(self) -> bool:
        """Whether the training may end."""
        return (
            len(self.scores) >= self.max_episodes
            or max(self.scores, default=-np.inf) >= self.stop_at
            or time.perf_counter() - self.started >= self.max_seconds
        )

    def reset(self) -> np.ndarray:
        """Begin an episode; return observations (agents, 33) float32."""
        self.score = 0.0
        return self.task.reset()

    def step(self, actions: np.ndarray):
        """One decision with actions (agents, 4).

        Returns:
            observations (agents, 33), of the next episode after the last decision of one;
            rewards (agents,) float32; whether the time limit ended the episode; and the
            observations (agents, 33) that the actions led to.
        """
        actions = np.asarray(actions, np.float32).astype(np.float64)  # as in ReacherEnvironment
        final, rewards, done = self.task.step(actions)
        self.score += rewards.mean()
        if not done:
            return final, rewards.astype(np.float32), False, final
        self.scores.append(float(self.score))
        self.seconds.append(time.perf_counter() - self.started)
        return self.reset(), rewards.astype(np.float32), True, final


def progress(scores, seconds) -> dict:
    """What is recorded of a training: scores, seconds, and the first episode at 30, if any.

    Args:
        scores: (episodes,) mean over the arms.
        seconds: (episodes,) s since the training began.
    """
    first = first_at(scores)
    return {
        "scores": [round(float(score), 3) for score in scores],
        "seconds": [round(float(second), 3) for second in seconds],
        "first episode at 30": first,
        "decisions to 30": first and first * EPISODE_DECISIONS,
        "seconds to 30": first and round(float(seconds[first - 1]), 3),
    }
