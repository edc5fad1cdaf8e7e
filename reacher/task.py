"""The Reacher task: what the arms are asked to do, what they see and what they are paid.

A goal, a sphere of radius 2.5, circles each arm at a constant speed of its own.  Every physics
step in which the hand, a sphere of radius 1, overlaps the goal pays 0.01.  An agent decides once
in four physics steps, so a decision pays at most 0.04 and an episode of 1001 decisions 40.04.
These numbers have names here, for whoever needs one of them.

The end of an episode is a time limit (a truncation), not a terminal state: nothing in the world
ends there, and an agent should go on counting on the rewards that would have followed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from reacher.checks import number
from reacher.compiling import njit
from reacher.goals import goal_generators
from reacher.physics import HAND_OFFSET, PHYSICS_STEP, Physics

OBSERVATION_SIZE = 33
ACTION_SIZE = 4
EPISODE_DECISIONS = 1001
STEPS_PER_DECISION = 4  # physics steps; the action is held over them
DECISION_SECONDS = STEPS_PER_DECISION * PHYSICS_STEP  # 0.08
MAX_TORQUE = 150.0  # N m, at an action of 1
STEP_REWARD = 0.01  # of a physics step in which hand and goal overlap
MAX_DECISION_REWARD = STEPS_PER_DECISION * STEP_REWARD  # 0.04
MAX_SCORE = EPISODE_DECISIONS * MAX_DECISION_REWARD  # of an episode: 40.04
SOLVED_SCORE = 30.0  # what counts as solved, for the average score of 100 episodes
HAND_RADIUS = 1.0  # m
GOAL_ORBIT = 8.0  # m, radius of the goal's circle
GOAL_HEIGHT = -1.0  # m
RESET_PARAMETERS = {"goal_size": 5.0, "goal_speed": 1.0}  # the Unity build's own defaults

# Unity's half turn about x is a single-precision one: its quaternion (x, y, z, w) is not
# (1, 0, 0, 0) but (1, -0, -0, cos 90 deg in float32). That shows in the first observation only.
HALF_TURN_W = -4.3711388e-08
NEGATIVE_ZEROS = [4, 5, 17, 18]  # y and z of both bodies' quaternions


class Task:
    """Goals, rewards and observations of all arms.

    Args:
        num_agents: number of arms, each with its own goal.
        seed: seed of the goals.
        goals: "own" or "unity", see `reacher.goals`.

    Attributes:
        parameters: `goal_size` (diameter, m) and `goal_speed` (largest, degrees per physics step).
        generators: of the goals, one per arm, or a list of the one that all arms share. Nothing
            else, but for the parameters, outlives a reset.
        decisions: taken in this episode.
    """

    def __init__(self, num_agents: int, seed: int, goals: str = "own") -> None:
        self.num_agents = num_agents
        self.physics = Physics(num_agents)
        self.parameters = dict(RESET_PARAMETERS)
        self.decisions = 0
        self.generators: list[Any] = goal_generators(seed, num_agents, goals)
        self._goal_angle = np.zeros(num_agents)  # degrees
        self._goal_speed = np.zeros(num_agents)  # degrees per physics step
        self._goal = np.zeros((num_agents, 3))  # m
        self._torques = np.zeros((2 * num_agents, 3))  # N m, world axes

    def set_parameters(self, parameters: Mapping[str, float]) -> None:
        """Change `goal_size` (diameter, m) or `goal_speed` (largest, degrees per physics step).

        The new values hold from the next reset on.

        Raises:
            ValueError: an unknown name, or a value that is not a number from 0 to 1e6.
        """
        self.parameters.update(checked_parameters(parameters))

    def reset(self) -> np.ndarray:
        """Hang all arms down, draw new goals and return the first observations, (agents, 33)."""
        self.physics.reset()
        self.decisions = 0
        self._goal_radius = self.parameters["goal_size"] / 2
        for arm in range(self.num_agents):
            generator = self.generators[arm % len(self.generators)]
            self._goal_angle[arm] = generator.integers(360)
            self._goal_speed[arm] = generator.uniform(-1, 1) * self.parameters["goal_speed"]
        place_goals(self._goal_angle, self._goal)
        observations = self.observe()
        observations[:, NEGATIVE_ZEROS] = -0.0
        return observations

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        """Hold the actions for one decision (four physics steps, 0.08 s).

        Args:
            actions: (agents, 4) torques as a share of 150 N m, cut to [-1, 1]: upper arm about
                x and z, forearm about x and z (world axes).

        Returns:
            observations (agents, 33) float32, rewards (agents,) float64, and whether the time
            limit is reached.
        """
        physics, reach = self.physics, self.reach
        rewards = np.zeros(self.num_agents)
        write_torques(actions, self._torques)
        for _ in range(STEPS_PER_DECISION):
            # PhysX looks for overlaps before it moves the bodies, and the goal has moved by then.
            move_goals_and_reward(
                self._goal_speed,
                physics.position,
                physics.rotation,
                reach,
                self._goal_angle,
                self._goal,
                rewards,
            )
            physics.step(self._torques)
        self.decisions += 1
        return self.observe(), rewards, self.decisions >= EPISODE_DECISIONS

    @property
    def distance(self) -> np.ndarray:
        """From each hand's center to its goal's, (agents,), m."""
        return np.linalg.norm(self.physics.hand - self._goal, axis=1)

    @property
    def reach(self) -> float:
        """The sum of the radii of hand and goal, m: the distance within which they overlap."""
        return HAND_RADIUS + self._goal_radius

    def observe(self) -> np.ndarray:
        """Observations of all arms, (agents, 33) float32.

        | index | meaning                                       | unit                     |
        |-------|-----------------------------------------------|--------------------------|
        | 0-2   | upper arm: position                           | m                        |
        | 3-6   | upper arm: orientation, quaternion x, y, z, w | -                        |
        | 7-9   | upper arm: angular velocity                   | rad/s                    |
        | 10-12 | upper arm: velocity of its center of mass     | m/s                      |
        | 13-25 | forearm: the same thirteen numbers            |                          |
        | 26-28 | goal: position                                | m                        |
        | 29-31 | hand as the forearm sees it, always 0, 1, 0   | of 3 m                   |
        | 32    | goal: speed on its circle                     | degrees per physics step |

        Positions are relative to the arm's own base; axes are Unity's, y up.
        """
        observations = np.empty((self.num_agents, OBSERVATION_SIZE), dtype=np.float32)
        physics = self.physics
        write_observations(
            physics.position,
            physics.quaternion,
            physics.velocity,
            self._goal,
            self._goal_speed,
            observations,
        )
        return observations


def checked_parameters(parameters: Mapping[str, float]) -> dict[str, float]:
    """Reset parameters as floats, or the ValueError of `Task.set_parameters`."""
    for name in parameters:
        if name not in RESET_PARAMETERS:
            raise ValueError(
                f"unknown reset parameter {name!r}; known are {', '.join(RESET_PARAMETERS)}"
            )
    return {
        name: number(f"reset parameter {name!r}", value, 0, 1e6)
        for name, value in parameters.items()
    }


@njit
def write_torques(actions, torques):
    """Write the torques (2 * agents, 3), N m, of the actions (agents, 4), cut to [-1, 1]."""
    for arm in range(len(actions)):
        for part in range(2):  # upper arm, forearm; each about x and z
            for k in range(2):
                share = min(max(actions[arm, 2 * part + k], -1.0), 1.0)
                torques[2 * arm + part, 2 * k] = MAX_TORQUE * share


@njit
def place_goals(angle, goal):
    """Write the goals' positions (agents, 3), m, for their angles (agents,), degrees."""
    for arm in range(len(angle)):
        radians = np.radians(angle[arm])
        goal[arm, 0] = GOAL_ORBIT * np.sin(radians)
        goal[arm, 1] = GOAL_HEIGHT
        goal[arm, 2] = GOAL_ORBIT * np.cos(radians)


@njit
def move_goals_and_reward(speed, position, rotation, reach, angle, goal, rewards):
    """Move the goals and pay where a hand overlaps its goal then.

    Args:
        speed: (agents,) of the goals, degrees per physics step.
        position, rotation: those of `Physics`.
        reach: the sum of the radii of hand and goal, m.
        angle: (agents,) changed, degrees.
        goal: (agents, 3) changed, m.
        rewards: (agents,) what this physics step pays is added.
    """
    for arm in range(len(angle)):
        angle[arm] += speed[arm]
    place_goals(angle, goal)
    for arm in range(len(angle)):
        squared = 0.0
        for k in range(3):
            hand = position[2 * arm + 1, k] + HAND_OFFSET * rotation[2 * arm + 1, k, 1]
            squared += (hand - goal[arm, k]) ** 2
        if squared <= reach * reach:
            rewards[arm] += STEP_REWARD


@njit
def write_observations(position, quaternion, velocity, goal, goal_speed, observations):
    """Write what `Task.observe` describes into `observations` (agents, 33).

    Args: those of `Physics`, two rows per arm, and goals (agents, 3), m, with speeds (agents,).
    """
    for arm in range(len(observations)):
        row = observations[arm]
        for part in range(2):  # upper arm, forearm
            body, first = 2 * arm + part, 13 * part
            for k in range(3):
                row[first + k] = position[body, k]
                row[first + 3 + k] = quaternion[body, 1 + k]  # from w, x, y, z to x, y, z, w
            row[first + 6] = quaternion[body, 0] + HALF_TURN_W
            for k in range(6):
                row[first + 7 + k] = velocity[body, k]
        for k in range(3):
            row[26 + k] = goal[arm, k]
        row[29], row[30], row[31] = 0.0, 1.0, 0.0
        row[32] = goal_speed[arm]
