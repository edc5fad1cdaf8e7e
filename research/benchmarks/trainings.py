"""Whole trainings through the notebook, as a user runs it, and acting with what they left."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from reacher.episode import evaluate_policy
from research.benchmarks import measure
from tapejit import compiled
from tutorial import notebook
from tutorial.environments import open_environment
from tutorial.paths import NOTEBOOK
from tutorial.run_files import load_hyperparameters, load_network, run_folder
from tutorial.scores import read_scores

PRESETS = ("default", "fast")


@contextmanager
def notebook_run(**parameters) -> Iterator[tuple[Path, dict[str, np.ndarray], float]]:
    """Execute the notebook by papermill with these parameters.

    Yields:
        the folder of the training run, which is deleted at the end; its scores; and the seconds
        that the whole notebook took, imports, figures and demo included.
    """
    with tempfile.TemporaryDirectory() as out_dir:
        executed = Path(out_dir) / "executed.ipynb"
        command = notebook.papermill_command(NOTEBOOK, executed, {**parameters, "out_dir": out_dir})
        start = time.perf_counter()
        done = subprocess.run(command, text=True, capture_output=True)
        seconds = time.perf_counter() - start
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-3000:]}")
        folder = run_folder(out_dir, parameters["preset"], parameters["seed"])
        yield folder, read_scores(folder / "scores.csv"), seconds


def acting_seconds(folder: Path, num_agents: int, seed: int, number: int, engine: str) -> float:
    """Seconds of so many episodes of the trained actor without noise, without learning.

    Args:
        engine: that acts: "torch", or "auto" for the one that would train.
    """
    definitions = notebook.definitions()
    fields = definitions.Hyperparameters.model_fields
    settings = definitions.Hyperparameters(**load_hyperparameters(folder, fields))
    with measure.torch_threads(1), open_environment("", num_agents, seed) as environment:
        size = environment.brains[environment.brain_names[0]].vector_action_space_size
        agent = definitions.Agent(
            definitions.OBSERVATION_SCALE, size, settings, np.random.default_rng(seed)
        )
        load_network(folder / "actor_best.safetensors", agent.ddpg.actor)
        agent.fast = compiled.learner(agent.ddpg, engine)
        evaluate_policy(environment, lambda seen: agent.act(seen, explore=False))  # compiles
        start = time.perf_counter()
        for _ in range(number):
            evaluate_policy(environment, lambda seen: agent.act(seen, explore=False))
        return time.perf_counter() - start
