"""A training and its files: a folder with its lock, scores, weights, and a state to resume."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import filelock
import numpy as np
import safetensors.torch
import torch
from tqdm import tqdm

import torch_phases
from tutorial.environments import restore_state, state_of
from tutorial.evaluation import Evaluation
from tutorial.files import write_whole
from tutorial.randomness import processor, random_states, restore_random_states, versions
from tutorial.scores import moving_average, solved_at


def run_folder(out_dir: str | os.PathLike, preset: str, seed: int) -> Path:
    """`<out_dir>/<preset>/seed<N>`, the folder of one training run; `~` is the user's own."""
    return Path(out_dir).expanduser() / preset / f"seed{seed}"


def load_run(folder: Path) -> dict[str, Any]:
    """What `hyperparameters.json` says of a run: `hyperparameters`, and facts beside them.

    Raises ValueError, with the file's name, if it holds anything else.
    """
    path = Path(folder) / "hyperparameters.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found["hyperparameters"], dict):
            return found
    except (ValueError, KeyError, TypeError, RecursionError):  # of JSON, or of another content
        pass
    raise ValueError(f"{path} is damaged: it should be a JSON object with hyperparameters")


def load_network(path: Path, network: torch.nn.Module) -> None:
    """Load weights into a network; a ValueError says that they are damaged or of another one."""
    try:
        weights = safetensors.torch.load_file(path)
        own = network.state_dict()
        for name, found in weights.items():
            if found.dtype != own.get(name, found).dtype:  # it would be converted in silence
                raise RuntimeError(f"{name} has the type {found.dtype}, not {own[name].dtype}")
            if not found.isfinite().all():
                raise RuntimeError(f"{name} is not finite")
        network.load_state_dict(weights)
    except (RuntimeError, safetensors.SafetensorError) as error:
        raise ValueError(f"{path} holds no weights of this network: {error}") from None


@dataclass
class TrainingRun:
    """What a training writes: scores and weights after every episode, now and then a state.

    If TensorBoard is installed, it writes scalars for it, too: `tensorboard --logdir runs`.
    """

    folder: Path  # <out_dir>/<preset>/seed<N>
    agent: Any
    environment: Any
    max_episodes: int
    resume: bool = False  # from the folder's state; otherwise an earlier run there moves aside
    stop_when_solved: bool = True  # as soon as the average of 100 episodes is at the threshold
    save_every: int = 10  # episodes from one state to the next
    metadata: Mapping[str, Any] = field(default_factory=dict)  # beside the hyperparameters
    evaluation: Evaluation | None = None  # for `evaluation.csv`
    after_episode: Callable[[Any, list[float]], None] | None = None  # gets agent and scores
    scores: list[float] = field(default_factory=list, init=False)  # of all episodes, means

    def __post_init__(self) -> None:
        self.folder, self.start = Path(self.folder), time.perf_counter()
        self.tables = {
            "scores.csv": ["episode,score,min,max,seconds"],  # and a line for each episode
            "evaluation.csv": ["episode,score,min,max,decisions,seconds"],
        }
        self.can_resume = True
        self.bar: Any = tqdm(disable=True)
        self.scalars: Any = None

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to train."""
        solved = self.stop_when_solved and solved_at(self.scores, self.agent.task.reward_threshold)
        return len(self.scores) >= self.max_episodes or bool(solved)

    def record_episode(self, arm_scores: np.ndarray) -> None:
        """Take in the scores (arms,) of an episode; write them, and the weights after it."""
        self.scores.append(float(arm_scores.mean()))
        number = len(self.scores)
        self.add_line("scores.csv", arm_scores)
        self.save_weights("last")
        if self.scores[-1] == max(self.scores):
            self.save_weights("best")
        self.show_progress()
        self.add_scalars(self.facts())
        if self.evaluation and number % self.evaluation.every == 0:
            began = time.perf_counter()
            found = self.evaluation.scores(self.agent.policy, number // self.evaluation.every - 1)
            self.start += time.perf_counter() - began  # the training's clock stands still
            self.add_line("evaluation.csv", found, f"{self.agent.decisions},")
            self.add_scalars({"score without noise": float(found.mean())})
        if number % self.save_every == 0 or self.is_over:
            self.save_state()
        if self.after_episode:
            self.after_episode(self.agent, self.scores)

    def facts(self) -> dict[str, float]:
        """Numbers that tell how the training goes, after its newest episode."""
        average = float(moving_average(self.scores)[-1])
        return {"score": self.scores[-1], "average": average, **self.agent.log}

    def show_progress(self) -> None:
        """Print a line for each of the first five episodes, and then for every twentieth."""
        number = len(self.scores)
        self.bar.update()
        if number <= 5 or number % 20 == 0:
            facts = ", ".join(f"{name} {value:.3g}" for name, value in self.facts().items())
            end = "" if self.agent.learns else "; learning and noise have ended"
            seconds = time.perf_counter() - self.start
            print(f"episode {number:3}: {facts}, {seconds:.0f} s{end}")

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """A progress bar, in a terminal; and scalars, where TensorBoard is installed."""
        with contextlib.ExitStack() as stack:
            size = {"total": self.max_episodes, "initial": len(self.scores)}
            self.bar = stack.enter_context(tqdm(**size, unit=" episodes", disable=None))
            with contextlib.suppress(ImportError):
                from torch.utils.tensorboard import SummaryWriter

                # A resumed training takes the place of what was written after its last state.
                place, following = self.folder / "tensorboard", len(self.scores) + 1
                self.scalars = stack.enter_context(SummaryWriter(place, purge_step=following))
            yield

    def add_scalars(self, values: Mapping[str, float]) -> None:
        for name, value in values.items() if self.scalars else ():
            self.scalars.add_scalar(name, value, len(self.scores))

    def add_line(self, name: str, scores: np.ndarray, more: str = "") -> None:
        """Add the scores (arms,) of the newest episode to a table."""
        three = ",".join(f"{value:.6f}" for value in (scores.mean(), scores.min(), scores.max()))
        seconds = time.perf_counter() - self.start
        self.tables[name].append(f"{len(self.scores)},{three},{more}{seconds:.3f}")
        write_whole(self.folder / name, "\n".join([*self.tables[name], ""]).encode())

    def save_weights(self, which: str) -> None:
        """Write the weights of all networks that learn; targets follow them."""
        for name, network in vars(self.agent.learner).items():
            if isinstance(network, torch.nn.Module) and not name.startswith("target"):
                weights = {key: tensor.clone() for key, tensor in network.state_dict().items()}
                for key, tensor in weights.items():
                    if not tensor.isfinite().all():
                        raise FloatingPointError(f"{key} of the {name} is not finite")
                write_whole(
                    self.folder / f"{name}_{which}.safetensors", safetensors.torch.save(weights)
                )

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
        about = self.about() | {"engine": self.agent.fast.engine, "versions": versions()}
        about["processor"] = processor()
        write_whole(self.folder / "hyperparameters.json", json.dumps(about, indent=2).encode())
        state = {
            "agent": {name: part for name, part in vars(self.agent).items() if name != "fast"},
            "environment": state_of(self.environment),
            "randomness": random_states(),
            "scores": self.scores,
            "tables": self.tables,
            "seconds": time.perf_counter() - self.start,
        }
        try:
            torch.save(state, file := io.BytesIO())
        except (AttributeError, TypeError, pickle.PicklingError) as error:
            if self.can_resume:
                print(
                    f"no training can go on from here, because the agent cannot be saved: {error}"
                )
            self.can_resume = False
        else:
            write_whole(self.folder / "state.pt", file.getbuffer())

    def go_on(self) -> None:
        """Begin where `state.pt` was saved; a ValueError says why that cannot be."""
        try:
            before = load_run(self.folder)
            known = before | before["hyperparameters"]
            for name, value in (self.about() | self.about()["hyperparameters"]).items():
                if name != "hyperparameters" and value != known.get(name):
                    raise ValueError(f"{name} is {value!r} and was {known.get(name)!r}")
            with zipfile.ZipFile(self.folder / "state.pt") as file:
                if damaged := file.testzip():  # by checksums, which PyTorch does not compare
                    raise ValueError(f"state.pt is damaged in {damaged}")
            state = torch.load(self.folder / "state.pt", weights_only=False)
            require_alike("agent", vars(self.agent), state["agent"] | {"fast": None})
            vars(self.agent).update(state["agent"])
            engine = self.agent.settings.engine if before["engine"] != "torch" else "torch"
            self.agent.fast = torch_phases.compile(self.agent.learner, engine)
            if state["environment"] is None:
                print("this environment cannot be saved, so it begins anew: other scores follow")
            else:
                restore_state(self.environment, state["environment"])
            restore_random_states(state["randomness"])
            self.scores, self.tables = state["scores"], state["tables"]
            self.start = time.perf_counter() - state["seconds"]
        except Exception as error:  # PyTorch's, and what a damaged or foreign file leads to
            told = f"{type(error).__name__}: {error}".partition("\n")[0]
            again = "cannot be resumed, begin again with train = True"
            raise ValueError(f"{self.folder} {again} ({told})") from error
        if self.is_over:
            print(f"nothing is left to train after {len(self.scores)} episodes of {self.folder}")


def require_alike(name: str, now: Mapping[str, Any], before: Mapping[str, Any]) -> None:
    """Raise ValueError if edited cells build an agent of other parts than the saved one's."""
    for key, part in now.items():
        if key not in before:
            raise ValueError(f"the {name} had no {key}")
        if isinstance(part, torch.nn.Module) and str(part) != str(before[key]):
            raise ValueError(f"the {key} is another network now")
        if key in ("learner", "memory"):
            require_alike(key, vars(part), vars(before[key]))


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
                with run.shown():
                    yield run
            except (KeyboardInterrupt, Exception) as error:
                told = f"after {len(run.scores)} episodes of {run.folder}; train = 'resume' goes on"
                error.add_note(told)
                if not isinstance(error, KeyboardInterrupt):
                    raise
                print(f"interrupted {told}")
    except filelock.Timeout:
        raise ValueError(f"another training runs in {run.folder}: choose another out_dir") from None
