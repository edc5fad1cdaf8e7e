"""A training and its files: a folder with its lock, scores, weights, and a state to resume."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import filelock
import numpy as np
import torch
from safetensors.torch import load_file, save

import tapejit
from tutorial.evaluation import Evaluation
from tutorial.progress import show_progress
from tutorial.randomness import random_states, restore_random_states, versions
from tutorial.scores import solved_at
from tutorial.states import pack, unpack

HEADS = {
    "scores.csv": "episode,score,min,max,seconds",
    "evaluation.csv": "episode,score,min,max,decisions,seconds",
}


def run_folder(out_dir: str | os.PathLike, preset: str, seed: int) -> Path:
    """`<out_dir>/<preset>/seed<N>`, the folder of one training run; `~` is the user's own."""
    return Path(out_dir).expanduser() / preset / f"seed{seed}"


def load_run(folder: Path) -> dict[str, Any]:
    """What `hyperparameters.json` says of a run: `hyperparameters`, and facts beside them."""
    return json.loads((Path(folder) / "hyperparameters.json").read_text(encoding="utf-8"))


def load_network(path: Path, network: torch.nn.Module) -> None:
    """Load weights into a network of the same shape. The file format cannot carry code.

    Raises:
        FileNotFoundError, ValueError: no such file; it is damaged, or of another network.
    """
    try:
        network.load_state_dict(load_file(path))
    except FileNotFoundError:
        raise
    except Exception as error:  # safetensors and PyTorch have no error in common
        raise ValueError(f"{path} holds no weights of this network: {error}") from None


def require_finite(what: str, values: np.ndarray) -> None:
    """Raise FloatingPointError if one of the values is NaN or infinite."""
    if not np.isfinite(values).all():
        raise FloatingPointError(f"{what} is not finite")


@contextlib.contextmanager
def written(path: Path) -> Iterator[Any]:
    """A new file, which takes its name once it is complete: it is there whole or not at all."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except (OSError, RuntimeError) as error:  # a full disk; the second is PyTorch's
        temporary.unlink(missing_ok=True)
        raise OSError(f"{path} cannot be written: {error}") from error


@dataclass
class TrainingRun:
    """What a training writes: scores and weights after every episode, now and then a state.

    Attributes:
        folder: of the run.
        agent, environment: the notebook's, which train.
        max_episodes: of the whole training.
        stop_when_solved: end as soon as the 100-episode average reaches the reward threshold.
        save_every: episodes from one state to the next.
        metadata: of the run, beside the hyperparameters, such as its seed.
        evaluation: for `evaluation.csv`, or None.
        after_episode: called with the agent and the scores so far, or None.
        scores: means over the arms of all episodes so far.
    """

    folder: Path
    agent: Any
    environment: Any
    max_episodes: int
    stop_when_solved: bool = True
    save_every: int = 10
    metadata: Mapping[str, Any] = field(default_factory=dict)
    evaluation: Evaluation | None = None
    after_episode: Callable[[Any, list[float]], None] | None = None
    scores: list[float] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        names = HEADS if self.evaluation else ["scores.csv"]
        self.tables = {name: [HEADS[name]] for name in names}
        self.best: dict[str, dict[str, torch.Tensor]] = {}  # weights by the name of the network
        self.start, self.learns = time.perf_counter(), True
        self.left_out: list[str] = []

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to train."""
        solved = self.stop_when_solved and solved_at(self.scores, self.agent.reward_threshold)
        return len(self.scores) >= self.max_episodes or bool(solved)

    def record_episode(self, arm_scores: np.ndarray) -> None:
        """Take in the scores (arms,) of an episode; write them, and the weights after it."""
        self.scores.append(float(arm_scores.mean()))
        self.add_line("scores.csv", arm_scores)
        if self.learns:  # else they are what they were
            self.save_weights("last", self.weights())
        if self.scores[-1] == max(self.scores):
            self.best = copy.deepcopy(self.weights())
            self.save_weights("best", self.best)
        learned, self.learns = self.learns, self.agent.learns
        ended = learned and not self.learns
        show_progress(self.agent.log, self.scores, time.perf_counter() - self.start, ended)
        if self.evaluation and self.evaluation.due(len(self.scores)):
            self.evaluate(self.evaluation)
        if len(self.scores) % self.save_every == 0 or self.is_over:
            self.save_state()
        if self.after_episode:
            self.after_episode(self.agent, self.scores)

    def evaluate(self, evaluation: Evaluation) -> None:
        """Play without noise; the training's clock stands still meanwhile."""
        now, earlier = time.perf_counter(), len(self.scores) // evaluation.every - 1
        found = evaluation.scores(self.agent.policy, earlier)
        self.start += time.perf_counter() - now
        self.add_line("evaluation.csv", found, f"{self.agent.decisions},")

    def add_line(self, name: str, scores: np.ndarray, more: str = "") -> None:
        three = ",".join(f"{value:.6f}" for value in (scores.mean(), scores.min(), scores.max()))
        seconds = time.perf_counter() - self.start
        self.tables[name].append(f"{len(self.scores)},{three},{more}{seconds:.3f}")
        self.write(name, "\n".join(self.tables[name]))

    def write(self, name: str, text: str) -> None:
        with written(self.folder / name) as file:
            file.write(f"{text}\n".encode())

    def weights(self) -> dict[str, dict[str, torch.Tensor]]:
        """Those of all networks that learn; targets follow them."""
        return {
            name: network.state_dict()
            for name, network in vars(self.agent.learner).items()
            if isinstance(network, torch.nn.Module) and not name.startswith("target")
        }

    def save_weights(self, which: str, networks: Mapping[str, Mapping[str, torch.Tensor]]) -> None:
        for name, weights in networks.items():
            for key, tensor in weights.items():
                require_finite(f"{key} of the {name}", tensor.numpy())
            with written(self.folder / f"{name}_{which}.safetensors") as file:
                file.write(save({key: tensor.clone() for key, tensor in weights.items()}))

    def about(self) -> dict[str, Any]:
        """What `hyperparameters.json` says."""
        settings = {"hyperparameters": self.agent.settings.model_dump(mode="json")}
        more = {"engine": self.agent.fast.engine, "versions": versions()}
        return settings | dict(self.metadata) | more

    def begin(self) -> None:
        """Make the folder. An earlier run there moves aside, under a name with the time."""
        if self.folder.exists():
            aside = self.folder.rename(f"{self.folder}.{datetime.now():%Y%m%d-%H%M%S-%f}")
            print(f"an earlier run moves to {aside.name}")
        self.folder.mkdir()
        self.save_state()

    def save_state(self) -> None:
        """Write all that the future depends on, between two episodes, into `state.pt`."""
        left_out: list[str] = []
        state = {
            "agent": self.agent,
            "engine": self.agent.fast.engine,
            "scores": self.scores,
            "tables": self.tables,
            "best": self.best,
            "seconds": time.perf_counter() - self.start,
            "environment": environment_state(self.environment),
            "randomness": random_states(),
        }
        with written(self.folder / "state.pt") as file:
            torch.save(pack(state, "", {}, left_out), file)
        self.write("hyperparameters.json", json.dumps(self.about(), indent=2))
        if left_out != self.left_out:
            print(f"a resumed training may differ, because not saved is: {', '.join(left_out)}")
            self.left_out = left_out

    def resume(self) -> None:
        """Go on from `state.pt`.

        Raises:
            FileNotFoundError: there is no state.
            ValueError: it is damaged or of another training.
        """
        path, again = self.folder / "state.pt", "begin again with train = True"
        if not path.is_file():
            raise FileNotFoundError(f"no {path} to resume from: {again}")
        changed = self.changes()
        try:
            state = unpack(torch.load(path, weights_only=True), {"agent": self.agent}, "state", {})
            self.restore(state, changed)
        except (FloatingPointError, MemoryError, OSError):
            raise
        except Exception as error:  # PyTorch's, and what a foreign file leads to
            reason = error if type(error) is ValueError else "it is damaged, or of other cells"
            raise ValueError(f"{path} cannot be resumed, {again}: {reason}") from error

    def changes(self) -> dict[str, str]:
        """What has changed since the run began, by name: only engine and versions may.

        Raises:
            ValueError: another setting has; names each.
        """
        before, now = load_run(self.folder), self.about()
        facts, others = ({**run, **run["hyperparameters"]} for run in (now, before))
        names = facts.keys() - {"hyperparameters"}
        told = {
            name: f"{name} is {facts[name]!r} and was {others.get(name)!r}"
            for name in sorted(names)
            if facts[name] != others.get(name)
        }
        if told.keys() - {"engine", "versions"}:
            raise ValueError(f"the run in {self.folder} is another one: {'; '.join(told.values())}")
        return told

    def restore(self, state: Mapping[str, Any], changed: dict[str, str]) -> None:
        """Go on from a state, which is in the agent already, and write the files of then."""
        if state["agent"] is not self.agent:
            raise ValueError("it holds no agent")
        if state["engine"] == "torch" and "engine" not in changed:  # it may have given way
            self.agent.fast = tapejit.compile(self.agent.learner, "torch")
        if state["engine"] != self.agent.fast.engine:
            changed["engine"] = f"engine is {self.agent.fast.engine} and was {state['engine']}"
        if changed:
            told = "; ".join(changed.values())
            warnings.warn(f"numbers may be rounded otherwise than before: {told}", stacklevel=2)
        if state["environment"] is None:
            print("this environment cannot be saved, so it begins anew: other scores will follow")
        else:
            self.environment.restore(state["environment"])
        restore_random_states(state["randomness"])
        self.scores[:] = [float(score) for score in state["scores"]]
        self.start, self.learns = time.perf_counter() - state["seconds"], self.agent.learns
        self.tables = {name: state["tables"].get(name, self.tables[name]) for name in self.tables}
        for name, lines in self.tables.items():
            self.write(name, "\n".join(lines))
        if self.scores:
            self.best = {name: state["best"][name] for name in self.weights()}
            self.save_weights("best", self.best)
            self.save_weights("last", self.weights())
        if self.is_over:
            print(f"nothing is left to train after {len(self.scores)} episodes of {self.folder}")


def environment_state(environment: Any) -> Any:
    """What an environment's `restore` takes, or None where it cannot go on exactly."""
    try:
        return environment.state()
    except (AttributeError, RuntimeError):  # a Unity build; one with a memory of its own
        return None


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a lock beside a folder, which the system releases when the process ends, however."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        with filelock.FileLock(folder.with_name(f".{folder.name}.lock"), blocking=False):
            yield
    except filelock.Timeout:
        raise ValueError(f"another training runs in {folder}: choose another out_dir") from None


@contextlib.contextmanager
def training_run(
    folder: str | os.PathLike,
    agent: Any,
    environment: Any,
    max_episodes: int,
    resume: bool = False,
    **options: Any,
) -> Iterator[TrainingRun]:
    """A context with a new TrainingRun, or, with resume, one that goes on from its state.

    The stop button ends the context without an error. Options are the attributes of TrainingRun.

    Raises:
        ValueError: another training runs in the folder, or there is nothing to resume.
        FloatingPointError, OSError: as the training raised them, with where and how to go on.
    """
    run = TrainingRun(Path(folder), agent, environment, max_episodes, **options)
    with locked(run.folder):
        run.resume() if resume else run.begin()
        try:
            yield run
        except (FloatingPointError, OSError) as error:
            error.add_note(
                f"after {len(run.scores)} episodes of {folder}; train = 'resume' goes on"
            )
            raise
        except KeyboardInterrupt:
            print(f"interrupted after {len(run.scores)} episodes, which are in {folder}")
