"""A training and its files: a folder with its lock, scores, weights and settings."""

from __future__ import annotations

import contextlib
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
import safetensors.torch
import torch
from gymnasium.vector import VectorEnv
from tqdm import tqdm

from reacher.episode import Policy, evaluate_policy
from tutorial.environments import open_environment
from tutorial.randomness import processor, versions
from tutorial.results import moving_average, solved_at


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


EVALUATION_SEED = 2**31 - 1  # its goals are the same in every training


class Evaluation:
    """Plays an actor's mean weights on goals that no training sees, the same in every training.

    Its environment is its own, so a training's numbers do not depend on it. `every` are the
    episodes of training from one to the next.
    """

    def __init__(self, environment: VectorEnv, every: int = 5) -> None:
        self.environment, self.every = environment, every

    def scores(self, policy: Policy, earlier: int = 0) -> np.ndarray:
        """Each agent's sum of rewards over one episode, (agents,).

        Args:
            earlier: evaluations before this one, whose goals are passed over.
        """
        seed = EVALUATION_SEED - earlier * self.environment.num_envs  # of copies, one each
        self.environment.reset(seed=seed)
        return evaluate_policy(self.environment, policy)


def training_options(preset: str, seed: int, env_location: str, num_agents: int) -> dict[str, Any]:
    """Options of `training_run`, by the notebook's parameters.

    No evaluation beside a Unity build, which cannot go back to the same goals; a line says so.
    """
    metadata = {"preset": preset, "seed": seed, "env_location": env_location}
    metadata["num_agents"] = num_agents
    if env_location:
        print("no evaluation beside the training: a Unity build cannot go back to the same goals")
        return {"metadata": metadata}
    evaluation = Evaluation(open_environment("", num_agents, EVALUATION_SEED))
    return {"metadata": metadata, "evaluation": evaluation}


@dataclass
class TrainingRun:
    """What a training writes after every episode: scores, weights, and what it is.

    If TensorBoard is installed, it writes scalars for it, too: `tensorboard --logdir runs`.
    """

    folder: Path  # <out_dir>/<preset>/seed<N>
    agent: Any
    max_episodes: int
    stop_when_solved: bool = True  # as soon as the average of 100 episodes is at the threshold
    metadata: Mapping[str, Any] = field(default_factory=dict)  # beside the hyperparameters
    evaluation: Evaluation | None = None  # for `evaluation.csv`
    after_episode: Callable[[Any, list[float]], None] | None = None  # gets agent and scores
    scores: list[float] = field(default_factory=list, init=False)  # of all episodes, means

    def __post_init__(self) -> None:
        self.folder, self.start = Path(self.folder), time.perf_counter()
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
        self.add_line("scores.csv", "episode,score,min,max,seconds", arm_scores)
        self.save_weights("last")
        if self.scores[-1] == max(self.scores):
            self.save_weights("best")
        self.save_settings()  # with the engine, which may have given way to PyTorch
        self.show_progress()
        self.add_scalars(self.facts())
        if self.evaluation and number % self.evaluation.every == 0:
            began = time.perf_counter()
            found = self.evaluation.scores(self.agent.policy, number // self.evaluation.every - 1)
            self.start += time.perf_counter() - began  # the training's clock stands still
            head = "episode,score,min,max,decisions,seconds"
            self.add_line("evaluation.csv", head, found, f"{self.agent.decisions},")
            self.add_scalars({"score without noise": float(found.mean())})
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
            bar = tqdm(total=self.max_episodes, unit=" episodes", disable=None)
            self.bar = stack.enter_context(bar)
            with contextlib.suppress(ImportError):
                from torch.utils.tensorboard import SummaryWriter

                self.scalars = stack.enter_context(SummaryWriter(self.folder / "tensorboard"))
            yield

    def add_scalars(self, values: Mapping[str, float]) -> None:
        for name, value in values.items() if self.scalars else ():
            self.scalars.add_scalar(name, value, len(self.scores))

    def add_line(self, name: str, head: str, scores: np.ndarray, more: str = "") -> None:
        """Add the scores (arms,) of the newest episode to a table."""
        three = ",".join(f"{value:.6f}" for value in (scores.mean(), scores.min(), scores.max()))
        seconds = time.perf_counter() - self.start
        with open(self.folder / name, "a", encoding="utf-8", newline="\n") as file:
            if not file.tell():
                file.write(f"{head}\n")
            file.write(f"{len(self.scores)},{three},{more}{seconds:.3f}\n")

    def save_weights(self, which: str) -> None:
        """Write the weights of all networks that learn; targets follow them."""
        for name, network in vars(self.agent.learner).items():
            if isinstance(network, torch.nn.Module) and not name.startswith("target"):
                weights = {key: tensor.clone() for key, tensor in network.state_dict().items()}
                for key, tensor in weights.items():
                    if not tensor.isfinite().all():
                        raise FloatingPointError(f"{key} of the {name} is not finite")
                safetensors.torch.save_file(weights, self.folder / f"{name}_{which}.safetensors")

    def save_settings(self) -> None:
        """Write what the run is, and with what it computes."""
        about = {"hyperparameters": self.agent.settings.model_dump(mode="json"), **self.metadata}
        about |= {"engine": self.agent.fast.engine, "versions": versions()}
        about["processor"] = processor()
        (self.folder / "hyperparameters.json").write_text(json.dumps(about, indent=2), "utf-8")

    def begin(self) -> None:
        """Make the folder. An earlier run there moves aside, under a name with the time."""
        if self.folder.exists():
            aside = self.folder.rename(f"{self.folder}.{datetime.now():%Y%m%d-%H%M%S-%f}")
            print(f"an earlier run moves to {aside.name}")
        self.folder.mkdir()
        self.save_settings()


@contextlib.contextmanager
def training_run(*arguments: Any, **options: Any) -> Iterator[TrainingRun]:
    """A context with a TrainingRun, whose arguments it takes; the stop button ends it.

    Raises:
        ValueError: another training runs in the folder.
    """
    run = TrainingRun(*arguments, **options)
    run.folder.parent.mkdir(parents=True, exist_ok=True)
    try:  # the system releases this lock when the process ends, however
        with filelock.FileLock(run.folder.with_name(f".{run.folder.name}.lock"), blocking=False):
            run.begin()
            try:
                with run.shown():
                    yield run
            except (KeyboardInterrupt, Exception) as error:
                told = f"after {len(run.scores)} episodes, which are kept in {run.folder}"
                error.add_note(told)
                if not isinstance(error, KeyboardInterrupt):
                    raise
                print(f"interrupted {told}")
    except filelock.Timeout:
        raise ValueError(f"another training runs in {run.folder}: choose another out_dir") from None
