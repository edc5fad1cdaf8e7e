"""The arms with the interface of `unityagents.UnityEnvironment` 0.4.0, as trainings use it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from reacher.checks import actions_of_shape, integer
from reacher.goals import goal_generators
from reacher.physics import MAX_AGENTS
from reacher.task import (
    ACTION_SIZE,
    EPISODE_DECISIONS,
    OBSERVATION_SIZE,
    SOLVED_SCORE,
    Task,
)

BRAIN_NAME = "ReacherBrain"


@dataclass(frozen=True)
class BrainParameters:
    """What the agents observe and do (fields of `unityagents.BrainParameters`)."""

    brain_name: str
    vector_observation_space_size: int
    vector_action_space_size: int
    vector_observation_space_type: str = "continuous"
    vector_action_space_type: str = "continuous"


@dataclass
class BrainInfo:
    """The answer to a reset or a step (fields of `unityagents.BrainInfo`).

    Attributes:
        vector_observations: (agents, observations) float64; the arms' hold float32 values.
        rewards: one float per agent, of the last decision.
        local_done: one bool per agent: this answer begins a new episode.
        max_reached: one bool per agent: the old one ended by a time limit only, as the arms' do.
        agents: one number per agent.
        previous_vector_actions: (agents, actions) what was last sent, zeros at an episode's start.
    """

    vector_observations: np.ndarray
    rewards: list[float]
    local_done: list[bool]
    max_reached: list[bool]
    agents: list[int]
    previous_vector_actions: np.ndarray


class UnityInterface(AbstractContextManager):
    """What the arms share with `reacher.gymnasium.unity_wrapper`'s environments.

    Attributes:
        reward_threshold: the score that counts as solved, on average over 100 episodes, or None.
        max_episode_steps: decisions after which an episode ends by its time limit, or None.
    """

    reward_threshold: float | None = None
    max_episode_steps: int | None = None

    def __init__(self, name: str, num_agents: int, seed: int, brain: BrainParameters) -> None:
        self._identity = {"environment": name, "num_agents": num_agents}
        self.num_agents, self._seed, self._brain = num_agents, seed, brain
        self.brain_names, self.brains = [brain.brain_name], {brain.brain_name: brain}
        self._parameters: dict[str, float] = {}  # reset parameters in force
        self._episodes = 0  # begun so far
        self._is_reset = False

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the environment. It may be called again."""

    def reset(
        self, train_mode: bool = True, config: Mapping[str, float] | None = None
    ) -> dict[str, BrainInfo]:
        """Begin a new episode of all agents; `train_mode` is without an effect.

        Args:
            config: values of reset parameters by name, which stay until they are changed again, as
                in Unity: `goal_size` and `goal_speed` of the arms, none of other environments.

        Raises:
            ValueError: an unknown name or a bad value in `config`; nothing has changed then.
        """
        self._set_parameters(config or {})
        self._is_reset, never = True, [False] * self.num_agents
        zeros = np.zeros((self.num_agents, self._brain.vector_action_space_size))
        return self._answer(self._begin(), [0.0] * self.num_agents, never, never, zeros)

    def step(self, vector_action: ArrayLike) -> dict[str, BrainInfo]:
        """Hold the actions for one decision.

        After the last decision of an episode all agents are, as in Unity, reset before they answer:
        that answer holds the last reward of the old episode and the first observation of the next.

        Args:
            vector_action: (agents, actions) or flat, array, list or CPU tensor, cut to [-1, 1].

        Raises:
            ValueError: wrong shape, NaN or infinity; nothing has moved then.
            RuntimeError: before the first reset.
        """
        if not self._is_reset:
            raise RuntimeError("step() before the first reset(): call reset() to begin an episode")
        shape = (self.num_agents, self._brain.vector_action_space_size)
        actions = actions_of_shape(vector_action, shape)
        observations, rewards, done, max_reached = self._decide(actions)
        if all(done):
            observations, actions = self._begin(), np.zeros(shape)
        return self._answer(observations, rewards, done, max_reached, actions)

    def state(self) -> dict[str, Any]:
        """What decides the future from the next reset on, for `restore`, as JSON can hold it.

        All randomness follows from the seed and the number of episodes begun.
        """
        begun = {"seed": self._seed, "episodes": self._episodes}
        return self._identity | begun | {"parameters": dict(self._parameters)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on as the environment did whose `state()` this is, from the next reset on.

        Raises:
            ValueError: a state of another environment or number of agents.
        """
        if (given := {name: state.get(name) for name in self._identity}) != self._identity:
            raise ValueError(f"this is a state of {given}, not of {self._identity}")
        self._set_parameters(state["parameters"])
        self._seed, self._episodes, self._is_reset = state["seed"], state["episodes"], False

    def _begin(self) -> np.ndarray:
        """Begin the next episode; return its first observations (agents, observations)."""
        self._episodes += 1
        return self._first_observations()

    def _first_observations(self) -> np.ndarray:
        raise NotImplementedError

    def _decide(self, actions: np.ndarray) -> tuple[np.ndarray, list, list, list]:
        """Take actions (agents, actions); return observations, rewards, done and max_reached."""
        raise NotImplementedError

    def _set_parameters(self, parameters: Mapping[str, float]) -> None:
        if parameters:
            raise ValueError(f"this environment has no reset parameters, not even {parameters!r}")

    def _answer(self, observations, rewards, done, max_reached, actions):
        agents, observations = list(range(self.num_agents)), observations.astype(np.float64)
        info = BrainInfo(observations, rewards, done, max_reached, agents, actions)
        return {self._brain.brain_name: info}


class ReacherEnvironment(UnityInterface):
    """Two-joint arms that follow a moving goal: the Unity build's task, without Unity.

    The same seed and actions give the same numbers, bit for bit, on one machine.

    Args:
        num_agents: number of arms, 1 to 2000; the course's builds have 20 and 1.
        seed: of the goals, an integer >= 0.
        goal_size: diameter of the goals, m; None for the Unity build's 5.0.
        goal_speed: largest speed of the goals, degrees per physics step; None for 1.0.
        goals: "own" or "unity", see `reacher.goals`.

    Raises:
        TypeError, ValueError: an argument is no number of its kind, or out of range.
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
        self._task, self._goals = Task(num_agents, seed, goals), goals
        name = "Reacher" if goals == "own" else "Reacher (Unity goals)"
        brain = BrainParameters(BRAIN_NAME, OBSERVATION_SIZE, ACTION_SIZE)
        super().__init__(name, num_agents, seed, brain)
        self._parameters = self._task.parameters
        given = {"goal_size": goal_size, "goal_speed": goal_speed}
        self._set_parameters({name: value for name, value in given.items() if value is not None})

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        self._task.generators = goal_generators(self._seed, self.num_agents, self._goals)
        for _ in range(self._episodes):
            self._task.draw_goals()

    def _first_observations(self) -> np.ndarray:
        return self._task.reset()

    def _decide(self, actions: np.ndarray) -> tuple[np.ndarray, list, list, list]:
        observations, rewards, is_last = self._task.step(actions)
        done = [is_last] * self.num_agents
        return observations, rewards.astype(np.float32).tolist(), done, list(done)

    def _set_parameters(self, parameters: Mapping[str, float]) -> None:
        self._task.set_parameters(parameters)
