"""One training: what describes it, and the function that trains it.

A `Training` decides its result. Where it is trained does not matter, and neither does what the same
process trained before, as long as the machine and the versions of packages are alike.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from gymnasium.vector import VectorEnv

from reacher import DelayedRewards
from reacher.columns import CLOCK, EARNINGS
from tutorial import notebook
from tutorial.environments import open_environment, task_of
from tutorial.randomness import seed_everything
from tutorial.run import EVALUATION_SEED, Evaluation
from tutorial.settings import make_settings, require_known

COLUMNS = ("seed", "episode", "score", "evaluation", "worst_arm", "num_updates", "seconds")
ALLOWED = {
    "learner": ("DDPG", "TD3", "D4PG", "CrossQ", "Remembering"),
    "blind": ("", "actor", "critic"),
    "replay": ("prioritized", "uniform"),
    "earnings": (False, True),
}
EVALUATION_ARMS = 20
Row = list[str]  # one number for each of COLUMNS, or ""; num_updates are of earlier runs only


@dataclasses.dataclass(frozen=True)
class Training:
    """One training."""

    plan: str
    variant: str
    seed: int  # of goals, networks and noise
    preset: str = "default"
    overrides: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)
    arms: int = 20
    episodes: int = 100  # each a row of the table
    evaluate_every: int = 5  # episodes from one evaluation without noise to the next; 0: none
    location: str = ""  # of the environment, as `open_environment` takes it; empty: the arms
    goal_size: float = 5.0  # diameter of the arms' goals, m
    reward_every: int = 1  # decisions after which the rewards since the last time are paid
    clock: bool = False  # whether arms observe the share of `reward_every` that has passed,
    earnings: bool = False  # and what they have earned in it
    blind: str = ""  # the network that does not observe them
    learner: str = "DDPG"  # the notebook's, or one of doc/extensions.ipynb
    networks: str = "noisy_networks"  # a function of the notebook that makes actor and critic
    replay: str = "prioritized"  # or "uniform"

    def __str__(self) -> str:
        return f"{self.plan}/{self.variant}, seed {self.seed}"

    @property
    def goals(self) -> dict[str, float]:
        """What `open_environment` takes: only the arms have goals."""
        return {} if self.location else {"goal_size": self.goal_size}

    def hyperparameters(self, cells: Any) -> Any:
        """The notebook's, checked; the engine is "compiled", unless another one is asked for."""
        overrides = {"engine": "compiled", **self.overrides}
        return make_settings(cells.Hyperparameters, self.preset, overrides)


OPTIONS = [field.name for field in dataclasses.fields(Training)][3:]


def make_training(plan: str, variant: str, seed: int, changes: Mapping[str, Any]) -> Training:
    """A training that differs by fields of `Training` and by hyperparameters, both by name."""
    fields = {name: value for name, value in changes.items() if name in OPTIONS}
    overrides = {name: value for name, value in changes.items() if name not in OPTIONS}
    return Training(plan, variant, seed, overrides=overrides, **fields)


def check(training: Training) -> None:
    """Raise ValueError where a setting is not allowed, before anything is trained."""
    for name, allowed in ALLOWED.items():
        if (value := getattr(training, name)) not in allowed:
            raise ValueError(f"{name} is {value!r}, and must be one of {allowed}")
    for name in ("arms", "episodes", "reward_every"):
        if getattr(training, name) < 1:
            raise ValueError(f"{name} is {getattr(training, name)}, and must be at least 1")
    cells = notebook.definitions()
    known = [name for name in vars(cells) if name.endswith("_networks")]
    require_known("networks", training.networks, known)
    training.hyperparameters(cells)


def train(training: Training) -> list[Row]:
    """A row for each episode of a training.

    `score` is the mean over the arms of an episode with noise, as long as the agent learns.
    `evaluation` and `worst_arm` are of an episode without noise after it, on goals that are the
    same in every training. `seconds` are those of training so far, without evaluations.
    """
    torch.set_num_threads(1)
    cells, place = notebook.definitions(), (training.location, training.arms)
    learner = notebook.learner_with(training.networks, training.learner)
    evaluation = make_evaluation(training)
    environment = open_environment(*place, training.seed, training.goals)
    settings, task = training.hyperparameters(cells), task_of(environment, cells.ARMS)
    kind = cells.Agent if training.replay == "prioritized" else uniform_agent(cells)
    agent = kind(settings, seed_everything(training.seed), learner, task)
    hide(agent.learner, training.blind)
    playing = delayed(environment, training)
    rows, began, evaluating = list[Row](), time.perf_counter(), 0.0
    for episode in range(1, training.episodes + 1):
        score = cells.train_episode(playing, agent).mean()
        seconds = time.perf_counter() - began - evaluating
        evaluated = ["", ""]
        if evaluation and episode % evaluation.every == 0:
            found = evaluation.scores(agent.policy, episode // evaluation.every - 1)
            evaluated = [f"{found.mean():.3f}", f"{found.min():.2f}"]
        evaluating = time.perf_counter() - began - seconds
        row = [training.seed, episode, f"{score:.3f}", *evaluated, "", f"{seconds:.2f}"]
        rows.append([*map(str, row)])
    return rows


def uniform_agent(cells: Any) -> type:
    """The notebook's whole agent, with the replay buffer of its plain one."""

    class UniformAgent(cells.Agent):
        def __init__(self, settings: Any, generator: np.random.Generator, *others: Any):
            super().__init__(settings, generator, *others)
            self.memory = cells.UniformReplay(settings, generator)

        keep = cells.NStepAgent.keep

        def update(self) -> None:
            if self.learns and self.memory.is_ready():
                shape = self.settings.gradient_steps, self.settings.batch_size
                alike, noise = np.ones(shape, np.float32), self.weight_noise(shape[0], 1)
                self.fast.scan("learn", self.memory.sample(shape), alike, noise)

    return UniformAgent


def hide(learner: Any, blind: str) -> None:
    """Let a network of the learner, "actor" or "critic", not observe clock and earnings."""
    for network in (blind, f"target_{blind}") if blind else ():
        getattr(learner, network).factor[[CLOCK, EARNINGS]] = 0


def delayed(environment: Any, training: Training) -> VectorEnv:
    """The environment, with the rewards and the observations of a training."""
    shown = training.clock, training.earnings, training.learner == "Remembering"
    return DelayedRewards(environment, training.reward_every, *shown)


def make_evaluation(training: Training) -> Evaluation | None:
    """Of the agent without noise, in the environment of a training; None: none is wanted."""
    if not training.evaluate_every:
        return None
    judges = training.arms if training.location else EVALUATION_ARMS
    environment = open_environment(training.location, judges, EVALUATION_SEED, training.goals)
    if training.clock or training.earnings:
        environment = delayed(environment, training)
    return Evaluation(environment, training.evaluate_every)
