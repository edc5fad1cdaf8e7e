"""A training and its files, from the lock to the last state."""

from __future__ import annotations

import contextlib
import copy
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import filelock
import numpy as np
import torch
from tqdm.std import tqdm

from reacher.files import write_whole
from tapejit import compiled
from tutorial.evaluation import Evaluation
from tutorial.progress import progress_bar, show_progress
from tutorial.protocols import Agent, Environment
from tutorial.run_files import (
    begin_run,
    cannot_write,
    keep_engine,
    require_same_run,
    require_state,
    save_networks,
    to_bytes,
)
from tutorial.saving import History, restore_state, save_state
from tutorial.scores import ScoreFile
from tutorial.settings import Settings
from tutorial.states import TrainingState


class TrainingRun:
    """What a training writes: scores and weights after every episode, and states to go on from.

    Attributes:
        scores: of the episodes so far, the earlier ones of a resumed training included. Who plays
            an episode adds its own, and then calls `record_episode`.
    """

    def __init__(
        self,
        states: TrainingState,
        agent: Agent,
        environment: Environment,
        past: History,
        evaluation: Evaluation | None,
        after_episode: Callable[[Agent, list[float]], None] | None,
        bar: tqdm,
    ) -> None:
        self.states, self.agent, self.environment, self.past = states, agent, environment, past
        self.evaluation, self.after_episode, self.bar = evaluation, after_episode, bar
        self.folder, self.scores = states.folder.parent, past.scores
        self.saved = len(past.scores) if states.exists() else None  # episodes of the newest state
        self.score_file = ScoreFile(self.folder, past.lines)
        if evaluation:
            self.evaluation_file = ScoreFile(self.folder, past.evaluations, "evaluation.csv")
        if past.scores:  # weights of later episodes are forgotten
            save_networks(self.folder, "_last", **self.networks())
            self.save_best()
        self.start = time.perf_counter() - past.seconds
        self.is_playing = True  # or writes, between two episodes

    def networks(self) -> dict[str, torch.nn.Module]:
        """Those whose weights are saved."""
        return compiled.trained_networks(self.agent.learner.synced())

    def record_episode(self, arm_scores: np.ndarray) -> None:
        """Write the scores (arms,) of an episode and the weights after it; show both."""
        self.is_playing = False
        if self.agent.engine != self.agent.learner.engine:  # it gave way to PyTorch on the way
            self.agent.engine = self.agent.learner.engine
            keep_engine(self.folder, self.agent.engine)
        self.score_file.append(len(self.scores), arm_scores, time.perf_counter() - self.start)
        if self.agent.learns:  # else they are what they were
            save_networks(self.folder, "_last", **self.networks())
        if self.scores[-1] == max(self.scores):
            self.past.best = {
                name: copy.deepcopy(network.state_dict())
                for name, network in self.networks().items()
            }
            self.save_best()
        show_progress(self.bar, self.agent, self.scores)
        if self.evaluation and self.evaluation.due(len(self.scores)):
            self.evaluate(self.evaluation)
        self.is_playing = True
        if self.after_episode:
            self.after_episode(self.agent, self.scores)

    def evaluate(self, evaluation: Evaluation) -> None:
        """Play the mean weights without noise; the training's clock stands still meanwhile."""
        now = time.perf_counter()
        seconds = now - self.start
        scores = evaluation.scores(
            lambda seen: self.agent.act(seen, explore=False),
            earlier=len(self.scores) // evaluation.every - 1,
        )
        self.evaluation_file.append(len(self.scores), scores, seconds, self.agent.env_steps)
        self.past.evaluations = self.evaluation_file.lines
        self.start += time.perf_counter() - now

    def save_best(self) -> None:
        """Write the weights of the best episode."""
        for name, weights in self.past.best.items():
            write_whole(self.folder / f"{name}_best.safetensors", to_bytes(weights))

    def save_state(self) -> None:
        """Write a state to go on from, unless the newest is of this moment."""
        self.is_playing = False
        if self.saved != len(self.scores):
            self.past.lines = self.score_file.lines
            self.past.seconds = time.perf_counter() - self.start
            save_state(self.states, self.agent, self.environment, self.past)
            self.saved = len(self.scores)
        self.is_playing = True

    def end(self, keep_state: bool) -> None:
        """What a training that ends by itself leaves: its last state, or none."""
        if keep_state:
            self.save_state()
        else:
            self.states.remove()
        self.bar.total = self.bar.n
        self.bar.refresh()


@contextlib.contextmanager
def training_run(
    folder: Path,
    agent: Agent,
    environment: Environment,
    max_episodes: int,
    resume: bool = False,
    keep_state: bool = False,
    metadata: Mapping[str, object] | None = None,
    evaluation: Evaluation | None = None,
    after_episode: Callable[[Agent, list[float]], None] | None = None,
) -> Iterator[TrainingRun]:
    """A context with a new TrainingRun, or, with resume, one that goes on.

    A new run moves what an earlier one left in the folder aside. The stop button ends the context
    without an error; bad numbers and a full disk end it with what, where and when. A run that ends
    by itself removes its states, which are large: then there is nothing to resume.

    Args:
        max_episodes: of the whole training, for the bar.
        keep_state: write a last state at the end instead, so that the training can be made longer.
        metadata: of the run, beside the hyperparameters, such as its seed.
        evaluation: for `evaluation.csv`, or None.
        after_episode: called with the agent and the scores so far, or None.

    Raises:
        ValueError: the folder cannot be written, another training runs in it, there is nothing to
            resume, or it is of another training.
        FloatingPointError, OSError: as the training raised them, with where and how to go on.
    """
    folder, metadata, past = Path(folder), metadata or {}, History()
    states = TrainingState(folder)
    with locked(folder):
        if resume:
            require_state(folder)
            require_same_run(folder, agent.settings, **metadata)
            past = restore_state(states, agent, environment)
            keep_engine(folder, agent.engine)
        else:
            begin_run(folder, agent.settings.model_dump(), **metadata)
        warn_if_never_learning(environment, agent.settings, max_episodes)
        run = None
        try:
            with progress_bar(max_episodes, len(past.scores)) as bar:
                run = TrainingRun(states, agent, environment, past, evaluation, after_episode, bar)
                try:
                    yield run
                    run.end(keep_state)
                except KeyboardInterrupt:
                    print(
                        f"interrupted in episode {agent.episodes + 1}; all before it is in {folder}"
                    )
        except (FloatingPointError, OSError) as error:
            raise type(error)(
                f"{error} ({episode_of(agent, run)}, decision {agent.env_steps}, gradient "
                f"step {agent.num_updates}); {left_in(folder, states)}"
            ) from error


def episode_of(agent: Agent, run: TrainingRun | None) -> str:
    """The episode in which, or after which, something happens."""
    if run is None or run.is_playing:
        return f"episode {agent.episodes + 1}"
    return f"after episode {agent.episodes}"


def left_in(folder: Path, states: TrainingState) -> str:
    """What an error leaves, and how to go on."""
    if not folder.is_dir():
        return f"the run's folder {folder} was removed meanwhile: begin again with resume = False"
    return f"what was saved before is in {folder}, and " + (
        "resume = True goes on from the last state there"
        if states.exists()
        else "that is no state yet to go on from: begin again with resume = False"
    )


def warn_if_never_learning(environment: Environment, settings: Settings, max_episodes: int) -> None:
    """Warn where a training ends before the first update phase, if its length is known."""
    length = getattr(environment, "max_episode_steps", None)
    if length is None:
        return
    decisions = max_episodes * length
    arms = getattr(environment, "num_agents", 1)
    enough = max(settings.learning_starts, settings.batch_size)
    if decisions < settings.train_freq or decisions * arms < enough:
        warnings.warn(
            f"the agent will not learn: max_episodes = {max_episodes} are at most {decisions:,} "
            f"decisions of {arms} arms, learning comes every train_freq = "
            f"{settings.train_freq:,} decisions, and it needs {enough:,} transitions "
            "(learning_starts, batch_size)",
            stacklevel=2,
        )


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold `<folder>.lock`, which the system releases when the process ends, however it ends.

    Raises:
        ValueError: somebody else holds it, or it cannot be made.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(folder.with_name(f"{folder.name}.lock"))
        lock.acquire(blocking=False)
    except filelock.Timeout:
        raise ValueError(
            f"another training runs in {folder}: wait until it ends, or choose another out_dir"
        ) from None
    except (NotImplementedError, OSError, ValueError) as error:  # no locks; a name that cannot be
        raise cannot_write(folder, error) from None
    try:
        yield
    finally:
        lock.release()
