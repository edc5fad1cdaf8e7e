"""The Reacher task: what the arms are asked to do, what they see and what they earn.

A goal, a sphere of radius 2.5, circles each arm at a constant speed of its own. Every physics step
in which the hand, a sphere of radius 1, overlaps the goal gives 0.01. An agent decides once in four
physics steps, so a decision gives at most 0.04 and an episode of 1001 decisions 40.04. The end of
an episode is a time limit (a truncation), not a terminal state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from reacher import columns
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

FOREARM, GOAL, HAND = columns.FOREARM.start, columns.GOAL.start, columns.HAND.start
ORIENTATION, ANGULAR_VELOCITY = columns.ORIENTATION.start, columns.ANGULAR_VELOCITY.start

# Unity's half turn about x is a single-precision one: its quaternion (x, y, z, w) is not
# (1, 0, 0, 0) but (1, -0, -0, cos 90 deg in float32). That shows in the first observation only.
HALF_TURN_W = -4.3711388e-08
NEGATIVE_ZEROS = [4, 5, 17, 18]  # y and z of both bodies' quaternions


class World:
    """Goals, rewards and observations of all arms.

    Args:
        num_agents: number of arms, each with its own goal.
        seed, goals: those of `reacher.goals.goal_generators`.

    Nothing but `parameters` and `generators` outlives a reset.
    """

    def __init__(self, num_agents: int, seed: int, goals: str = "own") -> None:
        self.num_agents = num_agents
        self.physics = Physics(num_agents)
        self.parameters = dict(RESET_PARAMETERS)  # diameter, m; largest, degrees per physics step
        self.decisions, self.limit = 0, EPISODE_DECISIONS  # taken in this episode; where it ends
        # of the goals, one per arm, or a list of the one that all arms share
        self.generators: list[Any] = goal_generators(seed, num_agents, goals)
        self._goal_angle = np.zeros(num_agents)  # degrees
        self._goal_speed = np.zeros(num_agents)  # degrees per physics step
        self._goal = np.zeros((num_agents, 3))  # m
        self._torques = np.zeros((2 * num_agents, 3))  # N m, world axes

    def set_parameters(self, parameters: Mapping[str, float]) -> None:
        """Change some of `parameters` from the next reset on.

        Raises ValueError for an unknown name, or not a number from 0 to 1e6; nothing changes then.
        """
        if unknown := parameters.keys() - RESET_PARAMETERS.keys():
            known = "known are goal_size and goal_speed"
            raise ValueError(f"unknown reset parameters {unknown}; {known}")
        self.parameters |= {name: number(name, x, 0, 1e6) for name, x in parameters.items()}

    def reset(self) -> np.ndarray:
        """Hang all arms down, draw new goals and return the first observations, (agents, 33)."""
        self.physics.reset()
        self.decisions = 0
        self._goal_radius = self.parameters["goal_size"] / 2
        self.draw_goals()
        move_goals(np.zeros(self.num_agents), self._goal_angle, self._goal)
        observations = self.observe()
        observations[:, NEGATIVE_ZEROS] = -0.0
        return observations

    def draw_goals(self) -> None:
        """Draw an episode's angle and speed of every goal: two numbers of its generator."""
        for arm in range(self.num_agents):
            generator = self.generators[arm % len(self.generators)]
            self._goal_angle[arm] = generator.integers(360)
            self._goal_speed[arm] = generator.uniform(-1, 1) * self.parameters["goal_speed"]

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        """Hold the actions for one decision (four physics steps, 0.08 s).

        Args:
            actions: (agents, 4) torques as a share of 150 N m, cut to [-1, 1]: upper arm about
                x and z, forearm about x and z (world axes).

        Returns:
            observations (agents, 33) float32, rewards (agents,) float64, whether this was the last.
        """
        physics, reach = self.physics, HAND_RADIUS + self._goal_radius
        rewards = np.zeros(self.num_agents)
        shares = np.asarray(actions, np.float64).clip(-1, 1)
        self._torques[:, ::2] = MAX_TORQUE * shares.reshape(-1, 2)  # about x and z
        for _ in range(STEPS_PER_DECISION):
            # PhysX looks for overlaps before it moves the bodies, and the goal has moved by then.
            move_goals(self._goal_speed, self._goal_angle, self._goal)
            reward_touch(physics.position, physics.rotation, reach, self._goal, rewards)
            physics.step(self._torques)
        self.decisions += 1
        return self.observe(), rewards, self.decisions >= self.limit

    def observe(self) -> np.ndarray:
        """Observations of all arms, (agents, 33) float32, in the order of `reacher.columns`."""
        seen, physics = np.empty((self.num_agents, OBSERVATION_SIZE), np.float32), self.physics
        bodies = physics.position, physics.quaternion, physics.velocity
        write_observations(*bodies, self._goal, self._goal_speed, seen)
        return seen


@njit
def move_goals(speed, angle, goal):
    """Change angles (agents,), degrees, by a physics step, and write the goals (agents, 3), m."""
    for arm in range(len(angle)):
        angle[arm] += speed[arm]
        radians = np.radians(angle[arm])
        goal[arm, 0] = GOAL_ORBIT * np.sin(radians)
        goal[arm, 1] = GOAL_HEIGHT
        goal[arm, 2] = GOAL_ORBIT * np.cos(radians)


@njit
def reward_touch(position, rotation, reach, goal, rewards):
    """Add to `rewards` (agents,) where a hand overlaps its goal: is within `reach` of it, m."""
    for arm in range(len(goal)):
        squared = 0.0
        for k in range(3):
            hand = position[2 * arm + 1, k] + HAND_OFFSET * rotation[2 * arm + 1, k, 1]
            squared += (hand - goal[arm, k]) ** 2
        if squared <= reach * reach:
            rewards[arm] += STEP_REWARD


@njit
def write_observations(position, quaternion, velocity, goal, goal_speed, observations):
    """Write what `World.observe` returns, of arrays of `Physics` and goals."""
    for body in range(len(position)):
        row = observations[body // 2, FOREARM * (body % 2) :]
        for k in range(3):
            row[k] = position[body, k]
            row[ORIENTATION + k] = quaternion[body, 1 + k]  # from w, x, y, z to x, y, z, w
        row[ORIENTATION + 3] = quaternion[body, 0] + HALF_TURN_W
        for k in range(6):
            row[ANGULAR_VELOCITY + k] = velocity[body, k]
    observations[:, GOAL : GOAL + 3] = goal
    observations[:, HAND], observations[:, HAND + 1], observations[:, HAND + 2] = 0, 1, 0
    observations[:, columns.GOAL_SPEED] = goal_speed
