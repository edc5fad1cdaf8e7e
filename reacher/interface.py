"""The interface of `unityagents.UnityEnvironment` 0.4.0: what environments with it share.

`reacher.environment` has the Reacher with it, `reacher.gymnasium.unity_wrapper` any environment of
Gymnasium with continuous actions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from reacher.checks import actions_of_shape
from reacher.goals import UnityRandom, generator_from, generator_state
from reacher.task import ACTION_SIZE, OBSERVATION_SIZE

BRAIN_NAME = "ReacherBrain"
ACADEMY_NAME = "Academy"


@dataclass(frozen=True)
class BrainParameters:
    """What the agents observe and do (the fields of `unityagents.BrainParameters`)."""

    brain_name: str = BRAIN_NAME
    vector_observation_space_size: int = OBSERVATION_SIZE
    num_stacked_vector_observations: int = 1
    number_visual_observations: int = 0
    camera_resolutions: tuple = ()
    vector_action_space_size: int = ACTION_SIZE
    vector_action_descriptions: tuple[str, ...] = ("",) * ACTION_SIZE
    vector_action_space_type: str = "continuous"
    vector_observation_space_type: str = "continuous"

    def __str__(self) -> str:
        return "\n        ".join(
            [
                f"Unity brain name: {self.brain_name}",
                f"Number of Visual Observations (per agent): {self.number_visual_observations}",
                f"Vector Observation space type: {self.vector_observation_space_type}",
                f"Vector Observation space size (per agent): {self.vector_observation_space_size}",
                f"Number of stacked Vector Observation: {self.num_stacked_vector_observations}",
                f"Vector Action space type: {self.vector_action_space_type}",
                f"Vector Action space size (per agent): {self.vector_action_space_size}",
                f"Vector Action descriptions: {', '.join(self.vector_action_descriptions)}",
            ]
        )


@dataclass
class BrainInfo:
    """The answer to a reset or a step (the fields of `unityagents.BrainInfo`).

    Sizes and values are those of the Reacher; `reacher.gymnasium.unity_wrapper` says what
    others have.

    Attributes:
        vector_observations: (agents, 33) float64 that hold single-precision values, as Unity's do.
        rewards: one float per agent, of the last decision.
        local_done: one bool per agent; true in the 1001st answer of an episode.
        max_reached: one bool per agent; true where `local_done` comes from the time limit: always.
        agents: one number per agent.
        previous_vector_actions: (agents, 4) what was last sent, zeros at an episode's start.
        visual_observations, text_observations, memories, previous_text_actions: empty.
    """

    vector_observations: np.ndarray
    rewards: list[float]
    local_done: list[bool]
    max_reached: list[bool]
    agents: list[int]
    previous_vector_actions: np.ndarray
    visual_observations: list = field(default_factory=list)
    text_observations: list[str] = field(default_factory=list)
    memories: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    previous_text_actions: list[str] = field(default_factory=list)


class UnityInterface:
    """What the environments with the interface of `unityagents` share.

    Attributes:
        reward_threshold: the score that counts as solved, on average over 100 episodes
            (Gymnasium's `spec.reward_threshold`); None where nobody has set one.
        max_episode_steps: decisions after which an episode ends by its time limit, or None.

    Args:
        name: of the environment, in its saved states.
        academy_name: name of the whole in Unity's words.
        num_agents: number of agents.
        brain: what they observe and do.
    """

    reward_threshold: float | None = None
    max_episode_steps: int | None = None
    AGENT = "arm"  # what error messages call an agent

    def __init__(
        self, name: str, academy_name: str, num_agents: int, brain: BrainParameters
    ) -> None:
        self._name, self.academy_name, self.num_agents = name, academy_name, num_agents
        self.brain_names = self.external_brain_names = [brain.brain_name]
        self.brains = {brain.brain_name: brain}
        self.number_brains = self.number_external_brains = 1
        self.global_done: bool | None = None
        self._is_open, self._is_reset = True, False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._is_open:
            self.close()

    def __str__(self) -> str:
        parameters = "\n\t\t".join(f"{k} -> {v}" for k, v in self._parameters().items())
        return "\n".join(
            [
                f"Unity Academy name: {self.academy_name}",
                "        Number of Brains: 1",
                "        Number of External Brains : 1",
                f"        Reset Parameters :\n\t\t{parameters}",
                *map(str, self.brains.values()),
            ]
        )

    def reset(
        self,
        train_mode: bool = True,
        config: Mapping[str, float] | None = None,
        lesson: int | None = None,
    ) -> dict[str, BrainInfo]:
        """Begin a new episode of all agents.

        Args:
            config: values of reset parameters by name, which stay until they are changed again, as
                in Unity. The arms have `goal_size` and `goal_speed`, as in their constructor;
                Gymnasium's environments have none.
            train_mode, lesson: taken for the interface's sake, without an effect.

        Raises:
            ValueError: an unknown name or a bad value in `config`; nothing has changed then. Or
                an environment of Gymnasium answers with what is no observation of its space.
            RuntimeError: the environment is closed.
        """
        self._require_open("reset")
        if config is not None and not isinstance(config, Mapping):
            raise ValueError(f"config must be a mapping of reset parameters, not {config!r}")
        self._set_parameters(config or {})
        self._is_reset, self.global_done = True, False
        return self._begin()

    def step(
        self,
        vector_action: ArrayLike | Mapping[str, ArrayLike] | None = None,
        memory: object = None,
        text_action: object = None,
    ) -> dict[str, BrainInfo]:
        """Hold the actions for one decision.

        After the last decision of an episode all agents are, as in Unity, reset before they answer:
        that answer holds the last reward of the old episode and the first observation of the next
        one, which goes on with the next step. `max_reached` is true of an agent whose episode ended
        by a time limit only.

        Args:
            vector_action: (agents, actions) or flat, array or list or CPU tensor, or {brain name:
                any of these}; None stands for zeros. Values are cut to [-1, 1].
            memory, text_action: taken for the interface's sake, without an effect.

        Raises:
            ValueError: wrong shape, NaN or infinity, or an unknown brain; nothing has moved then.
            RuntimeError: before the first reset, or after close.
        """
        self._require_open("step")
        if not self._is_reset:
            raise RuntimeError("step() before the first reset(): call reset() to begin an episode")
        return self._decide(self._checked_actions(vector_action))

    def state(self) -> dict:
        """What decides the future from the next reset on, for `restore`, as JSON can hold it.

        Returns:
            A dict of `environment` (its name), `num_agents`, `parameters` (those of `reset`'s
            config) and `generators` (one state of a random generator per agent, or of the one
            that they share). The episode that is under way is not in it.

        Raises:
            RuntimeError: the environment is closed.
        """
        self._require_open("state")
        return {
            "environment": self._name,
            "num_agents": self.num_agents,
            "parameters": dict(self._parameters()),
            "generators": [generator_state(generator) for generator in self._generators()],
        }

    def restore(self, state: Mapping) -> None:
        """Go on as the environment did whose `state()` this is, from the next reset on.

        The episode that is under way ends here: call reset() next.

        Raises:
            ValueError: no such state, a damaged one, or one of another environment or number of
                agents; nothing has changed then.
            RuntimeError: the environment is closed.
        """
        self._require_open("restore")
        own = {"environment": self._name, "num_agents": self.num_agents}
        try:
            if (given := {name: state[name] for name in own}) != own:
                raise ValueError(f"this is a state of {given}, not of {own}")
            both = zip(state["generators"], self._generators(), strict=True)
            generators = [generator_from(value, present) for value, present in both]
            parameters = {name: state["parameters"][name] for name in self._parameters()}
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            raise ValueError(f"no state of this environment: {error!r}") from None
        self._restore(generators, parameters)
        self._is_reset = False

    def close(self) -> None:
        """End the environment; as in unityagents, closing it twice is an error."""
        self._require_open("close")
        self._is_open = False

    def _begin(self) -> dict[str, BrainInfo]:
        """Begin an episode and answer."""
        raise NotImplementedError

    def _decide(self, actions: np.ndarray) -> dict[str, BrainInfo]:
        """Take checked actions (agents, actions), float64, and answer."""
        raise NotImplementedError

    def _set_parameters(self, parameters: Mapping[str, float]) -> None:
        """Change these reset parameters, or raise ValueError before any change."""
        raise NotImplementedError

    def _parameters(self) -> Mapping[str, float]:
        """The reset parameters that are in force."""
        raise NotImplementedError

    def _generators(self) -> Sequence[np.random.Generator | UnityRandom]:
        """One random generator per agent, or a list of the one that they share."""
        raise NotImplementedError

    def _restore(self, generators: list, parameters: Mapping) -> None:
        """Take over generators and reset parameters; an error must come before any change."""
        raise NotImplementedError

    def _require_open(self, call: str) -> None:
        if not self._is_open:
            raise RuntimeError(
                f"{call}() on a closed environment: make a new {type(self).__name__}"
            )

    def _checked_actions(self, actions) -> np.ndarray:
        """Any form of actions that `step` accepts as (agents, actions) float64, or ValueError."""
        ((name, brain),) = self.brains.items()
        if isinstance(actions, Mapping):
            for unknown in actions.keys() - {name}:
                raise ValueError(f"unknown brain {unknown!r}; the only one is {name!r}")
            actions = actions.get(name)
        shape = (self.num_agents, brain.vector_action_space_size)
        return np.zeros(shape) if actions is None else actions_of_shape(actions, shape, self.AGENT)

    def _answer(
        self,
        observations: np.ndarray,
        rewards: list[float],
        done: bool,
        max_reached: list[bool],
        actions: np.ndarray | None = None,
    ) -> dict[str, BrainInfo]:
        """One answer of all agents; `actions` are those of a running episode."""
        ((name, brain),) = self.brains.items()
        if actions is None or done:
            actions = np.zeros((self.num_agents, brain.vector_action_space_size))
        return {
            name: BrainInfo(
                vector_observations=observations.astype(np.float64),
                rewards=rewards,
                local_done=[done] * self.num_agents,
                max_reached=max_reached,
                agents=list(range(self.num_agents)),
                previous_vector_actions=actions,
                text_observations=[""] * self.num_agents,
                previous_text_actions=[""] * self.num_agents,
            )
        }
