"""The best possible score, from below: a planner that knows the simulator.

    python -m research planner --goals 100

For each goal the cross-entropy method searches the first twenty decisions of one arm, with the
arms' own physics; then the stored actor of `default`, seed 0, plays on. Once it is in its goal the
actor loses nothing, so all that can be gained is on the way there. Each goal is a job, and a
line of `results/planner/goal_size_<m>.csv`: seed is the goal, score the planner's, evaluation the
actor's without a plan.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file

from reacher.points import hand_to_goal
from reacher.task import ACTION_SIZE, EPISODE_DECISIONS, World
from research import runner, store
from research.training import Row
from tutorial import notebook
from tutorial.paths import CHECKPOINTS, plan_folder

PLANNED, SEEN = 20, 32  # decisions: of a plan, and those by which it is judged
CANDIDATES, ELITE, ROUNDS = 400, 40, 30
SMALLEST_SPREAD = 0.03  # of a torque among the candidates
DISTANCE_COST = 1e-3  # of a meter to the goal at the end: decides while no candidate is rewarded
FIRST_SEED = 20_000  # of the goals, which no training has

Policy = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Goal:
    """One job: the goal that an arm gets with a seed."""

    number: int
    goal_size: float = 5.0  # m

    @property
    def path(self) -> Path:
        return plan_folder("planner") / f"goal_size_{self.goal_size}.csv"


def play(goal: Goal, plans: np.ndarray, decisions: int, policy: Policy) -> Any:
    """Play plans (arms, PLANNED, 4) and then a policy, so many decisions in all.

    Returns:
        Scores and last distances from the goal, m, (arms,) each; and the actions of the first arm.
    """
    task = World(len(plans), 0)
    task.set_parameters({"goal_size": goal.goal_size})
    draws = np.random.default_rng(FIRST_SEED + goal.number)
    angle, speed = int(draws.integers(360)), float(draws.uniform(-1, 1))
    # All arms have this goal.
    task.generators = [SimpleNamespace(integers=lambda _: angle, uniform=lambda *_: speed)]
    observations, scores, taken = task.reset(), np.zeros(len(plans)), []
    for decision in range(decisions):
        planned = decision < plans.shape[1]
        actions = plans[:, decision] if planned else policy(observations)
        observations, rewards, _ = task.step(np.asarray(actions, dtype=float))
        scores += rewards
        taken.append(actions[0])
    return scores, hand_to_goal(observations), np.array(taken)


def search(goal: Goal, mean: np.ndarray, spread: float, policy: Policy) -> np.ndarray:
    """The best plan (PLANNED, 4) that the cross-entropy method finds around a first one."""
    generator, spreads = np.random.default_rng(goal.number), np.full_like(mean, spread)
    best, best_value = mean, -np.inf
    for _ in range(ROUNDS):
        noise = generator.standard_normal((CANDIDATES, *mean.shape))
        plans = np.clip(mean + spreads * noise, -1, 1)
        plans[0] = best
        scores, distances, _ = play(goal, plans, SEEN, policy)
        values = scores - DISTANCE_COST * distances
        if values.max() > best_value:
            best, best_value = plans[values.argmax()], values.max()
        elite = plans[np.argsort(-values)[:ELITE]]
        mean, spreads = elite.mean(axis=0), np.maximum(elite.std(axis=0), SMALLEST_SPREAD)
    return best


def solve(goal: Goal) -> list[Row]:
    """The row of a goal: the best of two searches, one of which begins with the actor's actions."""
    began, actor = time.perf_counter(), stored_actor()
    [alone], _, own = play(goal, np.zeros((1, 0, ACTION_SIZE)), EPISODE_DECISIONS, actor)
    own = own[:PLANNED]
    found = [own, search(goal, own, 0.5, actor), search(goal, np.zeros_like(own), 1.0, actor)]
    scores, *_ = play(goal, np.array(found), EPISODE_DECISIONS, actor)
    numbers = [f"{scores.max():.2f}", f"{alone:.2f}", "", ""]
    return [[str(goal.number), "1", *numbers, f"{time.perf_counter() - began:.2f}"]]


def stored_actor() -> Policy:
    """The actor of checkpoints/default/seed0."""
    torch.set_num_threads(1)
    cells = notebook.definitions()
    actor = cells.DDPG(cells.OBSERVATION_SCALE, ACTION_SIZE, cells.Hyperparameters()).actor
    actor.load_state_dict(load_file(CHECKPOINTS / "default" / "seed0" / "actor_best.safetensors"))
    return lambda seen: actor(torch.from_numpy(seen)).detach().numpy()


def run(options: argparse.Namespace) -> int:
    """Plan for goals of 5 m and of 1.3 m, as far as they are not stored; return how many failed."""
    jobs = [Goal(number, size) for size in (5.0, 1.3) for number in range(options.goals)]
    jobs = [job for job in jobs if job.number not in store.stored_seeds(job.path)]
    address = options.address, options.workers
    return runner.run(jobs, solve, lambda job, rows: store.store(job.path, rows), *address)
