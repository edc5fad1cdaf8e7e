"""A training and its files: a folder with its lock, scores, weights, and a state to resume."""

from __future__ import annotations

import contextlib
import io
import json
import os
import time
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
    """Load weights into a network; a ValueError says that they are damaged or of another one."""
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


def write(path: Path, content: bytes | memoryview) -> None:
    """Write a file, which is there whole or not at all."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError as error:  # such as a full disk
        temporary.unlink(missing_ok=True)
        raise OSError(f"{path} cannot be written: {error}") from error


@dataclass
class TrainingRun:
    """What a training writes: scores and weights after every episode, now and then a state.

    Attributes:
        folder: `<out_dir>/<preset>/seed<N>`.
        max_episodes: of the whole training.
        resume: go on from the folder's state; otherwise an earlier run there moves aside.
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
    resume: bool = False
    stop_when_solved: bool = True
    save_every: int = 10
    metadata: Mapping[str, Any] = field(default_factory=dict)
    evaluation: Evaluation | None = None
    after_episode: Callable[[Any, list[float]], None] | None = None
    scores: list[float] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.folder, self.start = Path(self.folder), time.perf_counter()
        self.tables = {name: [head] for name, head in HEADS.items()}  # lines of text
        self.learns, self.left_out = self.agent.learns, list[str]()

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to train."""
        solved = self.stop_when_solved and solved_at(self.scores, self.agent.reward_threshold)
        return len(self.scores) >= self.max_episodes or bool(solved)

    def record_episode(self, arm_scores: np.ndarray) -> None:
        """Take in the scores (arms,) of an episode; write them, and the weights after it."""
        self.scores.append(float(arm_scores.mean()))
        number, learned, self.learns = len(self.scores), self.learns, self.agent.learns
        self.add_line("scores.csv", arm_scores)
        if learned:  # else the last weights are what they were
            self.save_weights("last")
        if self.scores[-1] == max(self.scores):
            self.save_weights("best")
        seconds, ended = time.perf_counter() - self.start, learned and not self.learns
        show_progress(self.agent.log, self.scores, seconds, ended)
        if self.evaluation and self.evaluation.due(number):
            began = time.perf_counter()
            found = self.evaluation.scores(self.agent.policy, number // self.evaluation.every - 1)
            self.start += time.perf_counter() - began  # the training's clock stands still
            self.add_line("evaluation.csv", found, f"{self.agent.decisions},")
        if number % self.save_every == 0 or self.is_over:
            self.save_state()
        if self.after_episode:
            self.after_episode(self.agent, self.scores)

    def add_line(self, name: str, scores: np.ndarray, more: str = "") -> None:
        """Add the scores (arms,) of the newest episode to a table."""
        three = ",".join(f"{value:.6f}" for value in (scores.mean(), scores.min(), scores.max()))
        seconds = time.perf_counter() - self.start
        self.tables[name].append(f"{len(self.scores)},{three},{more}{seconds:.3f}")
        write(self.folder / name, "\n".join([*self.tables[name], ""]).encode())

    def save_weights(self, which: str) -> None:
        """Write the weights of all networks that learn; targets follow them."""
        for name, network in vars(self.agent.learner).items():
            if isinstance(network, torch.nn.Module) and not name.startswith("target"):
                weights = {key: tensor.clone() for key, tensor in network.state_dict().items()}
                for key, tensor in weights.items():
                    require_finite(f"{key} of the {name}", tensor.numpy())
                write(self.folder / f"{name}_{which}.safetensors", save(weights))

    def about(self) -> dict[str, Any]:
        """What the run is, which may not change."""
        return {"hyperparameters": self.agent.settings.model_dump(mode="json"), **self.metadata}

    def begin(self) -> None:
        """Make the folder. An earlier run there moves aside, under a name with the time."""
        if self.folder.exists():
            aside = self.folder.rename(f"{self.folder}.{datetime.now():%Y%m%d-%H%M%S-%f}")
            print(f"an earlier run moves to {aside.name}")
        self.folder.mkdir()
        self.save_state()

    def save_state(self) -> None:
        """Write all that the future depends on, between two episodes, into `state.pt`."""
        state = {
            "agent": self.agent,
            "engine": self.agent.fast.engine,
            "environment": environment_state(self.environment),
            "randomness": random_states(),
            "scores": self.scores,
            "tables": self.tables,
            "seconds": time.perf_counter() - self.start,
        }
        left_out, file = list[str](), io.BytesIO()
        torch.save(pack(state, "", set(), left_out), file)
        about = self.about() | {"engine": state["engine"], "versions": versions()}
        write(self.folder / "hyperparameters.json", json.dumps(about, indent=2).encode())
        write(self.folder / "state.pt", file.getbuffer())
        if left_out != self.left_out:
            print(f"a resumed training may differ, because not saved is: {', '.join(left_out)}")
            self.left_out = left_out

    def go_on(self) -> None:
        """Begin where `state.pt` was saved; a ValueError says why that cannot be."""
        try:
            self.require_same(load_run(self.folder))
            packed = torch.load(self.folder / "state.pt", weights_only=True)
            state = unpack(packed, {"agent": self.agent})
            if state["engine"] == "torch":  # it may have given way
                self.agent.fast = tapejit.compile(self.agent.learner, "torch")
            if state["environment"] is None:
                print("this environment cannot be saved, so it begins anew: other scores follow")
            else:
                self.environment.restore(state["environment"])
            restore_random_states(state["randomness"])
            self.scores[:] = [float(score) for score in state["scores"]]
            self.tables = {name: [*map(str, state["tables"][name])] for name in HEADS}
            self.start, self.learns = time.perf_counter() - state["seconds"], self.agent.learns
        except Exception as error:  # PyTorch's, and what a damaged or foreign file leads to
            told = f"{type(error).__name__}: {error}".partition("\n")[0]
            again = "cannot be resumed, begin again with train = True"
            raise ValueError(f"{self.folder} {again} ({told})") from error
        if self.is_over:
            print(f"nothing is left to train after {len(self.scores)} episodes of {self.folder}")

    def require_same(self, before: Mapping[str, Any]) -> None:
        """Raise ValueError if the run began with other settings."""
        now = self.about()
        for facts, others in ((now["hyperparameters"], before["hyperparameters"]), (now, before)):
            for name, value in facts.items():
                if name != "hyperparameters" and value != others.get(name):
                    raise ValueError(f"{name} is {value!r} and was {others.get(name)!r}")


def environment_state(environment: Any) -> Any:
    """What an environment's `restore` takes, or None where it cannot go on exactly."""
    try:
        return environment.state()
    except (AttributeError, RuntimeError):  # a Unity build; one with a memory of its own
        return None


@contextlib.contextmanager
def training_run(*arguments: Any, **options: Any) -> Iterator[TrainingRun]:
    """A context with a TrainingRun, whose arguments it takes; the stop button ends it.

    Raises:
        ValueError: another training runs in the folder, or what is there cannot be resumed.
    """
    run = TrainingRun(*arguments, **options)
    run.folder.parent.mkdir(parents=True, exist_ok=True)
    try:  # the system releases this lock when the process ends, however
        with filelock.FileLock(run.folder.with_name(f".{run.folder.name}.lock"), blocking=False):
            run.go_on() if run.resume else run.begin()
            try:
                yield run
            except (KeyboardInterrupt, Exception) as error:
                told = f"after {len(run.scores)} episodes of {run.folder}; train = 'resume' goes on"
                error.add_note(told)
                if not isinstance(error, KeyboardInterrupt):
                    raise
                print(f"interrupted {told}")
    except filelock.Timeout:
        raise ValueError(f"another training runs in {run.folder}: choose another out_dir") from None
