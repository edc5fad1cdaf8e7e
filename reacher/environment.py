"""The embedded Reacher with the interface of `unityagents.UnityEnvironment` 0.4.0."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from reacher.checks import integer
from reacher.goals import UnityRandom
from reacher.interface import ACADEMY_NAME, BrainInfo, BrainParameters, UnityInterface
from reacher.physics import MAX_AGENTS
from reacher.task import EPISODE_DECISIONS, SOLVED_SCORE, Task


class ReacherEnvironment(UnityInterface):
    """Two-joint arms that follow a moving goal: the Unity build's task, without Unity.

    Args:
        num_agents: number of arms, 1 to 2000; the course's builds have 20 and 1.
        seed: of the goals, an integer >= 0. The same seed and actions give the same numbers, bit
            for bit, on one machine.
        goal_size: diameter of the goals, m; None for the Unity build's 5.0.
        goal_speed: largest speed of the goals, degrees per physics step; None for the Unity
            build's 1.0. Both are what `reset` takes as `config`, and can be changed by it.
        goals: "own": every arm has a random stream of its own, so its numbers do not depend on how
            many others there are. "unity": those that the Unity build draws with `unityagents`'
            `seed` (0 to 2**31 - 1), reset by reset. It draws at each `reset`, and again when the
            arms reset themselves at the end of an episode.

    Attributes:
        reward_threshold: 30, the score that counts as solved, on average over 100 episodes.
        max_episode_steps: 1001, the decisions of every episode.

    Raises:
        TypeError, ValueError: an argument is no number of its kind, or out of range.

    Example:
        with ReacherEnvironment(num_agents=20, seed=0) as env:
            brain_name = env.brain_names[0]
            states = env.reset(train_mode=True)[brain_name].vector_observations
            answer = env.step(np.zeros((20, 4)))[brain_name]
    """

    reward_threshold = SOLVED_SCORE
    max_episode_steps = EPISODE_DECISIONS

    def __init__(
        self,
        num_agents: int = 20,
        seed: int = 0,
        goal_size: float | None = None,
        goal_speed: float | None = None,
        goals: str = "own",
    ) -> None:
        num_agents = integer("num_agents", num_agents, 1, MAX_AGENTS)
        self._task = Task(num_agents, seed, goals)
        parameters = {"goal_size": goal_size, "goal_speed": goal_speed}
        self._task.set_parameters(
            {name: value for name, value in parameters.items() if value is not None}
        )
        name = "Reacher" if goals == "own" else "Reacher (Unity goals)"
        super().__init__(name, ACADEMY_NAME, num_agents, BrainParameters())

    def _begin(self) -> dict[str, BrainInfo]:
        return self._arms_answer(self._task.reset(), np.zeros(self.num_agents), done=False)

    def _decide(self, actions: np.ndarray) -> dict[str, BrainInfo]:
        observations, rewards, done = self._task.step(actions)
        if done:
            observations = self._task.reset()
        return self._arms_answer(observations, rewards, done, actions)

    def _arms_answer(self, observations, rewards, done, actions=None) -> dict[str, BrainInfo]:
        return self._answer(
            observations,
            rewards.astype(np.float32).tolist(),
            done,
            [done] * self.num_agents,
            actions,
        )

    def _set_parameters(self, parameters: Mapping[str, float]) -> None:
        self._task.set_parameters(parameters)

    def _parameters(self) -> Mapping[str, float]:
        return self._task.parameters

    def _generators(self) -> list[np.random.Generator] | list[UnityRandom]:
        return self._task.generators

    def _restore(self, generators: list, parameters: Mapping) -> None:
        self._task.set_parameters(parameters)
        self._task.generators = generators
