"""What the notebook needs around its agent: environments, seeds, files and pictures.

The agent itself (replay, networks, losses, training loop) is defined in the notebook.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import os
import platform
import random
import shutil
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import matplotlib.pyplot as plt
import numpy as np
import torch
from IPython import get_ipython
from IPython.display import display
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from safetensors.torch import load as load_tensors
from safetensors.torch import load_file, save
from tqdm.std import tqdm

from reacher import ReacherEnvironment
from reacher.drawing.moving import moving_arms
from reacher.physics import MAX_AGENTS

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch.utils.tensorboard import SummaryWriter
    from unityagents import UnityEnvironment

    from reacher.unity_shaped import UnityShaped

GYMNASIUM = "gymnasium:"  # begins the location of a Gymnasium environment
SOLVED_SCORE = 30.0  # the course's mark for the average score
AVERAGE_WINDOW = 100  # over so many episodes
SCORE_COLUMNS = ("episode", "score", "min", "max", "seconds")
RUN_FORMAT = 1  # of hyperparameters.json and of the training states
COLORS = {"score": "#0072B2", "average": "#D55E00"}  # Okabe and Ito


# -------------------------------------------------------------------------------------- parameters

class Parameters(BaseModel):
    """The notebook's parameters cell: what each may be."""

    model_config = ConfigDict(strict=True, extra="forbid")

    preset: Annotated[str, Field(min_length=1)]
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)]
    num_agents: Annotated[int, Field(ge=1, le=MAX_AGENTS)]
    max_episodes: Annotated[int, Field(ge=1, le=1_000_000)]
    stop_when_solved: bool
    env_location: str | os.PathLike
    out_dir: Annotated[str, Field(min_length=1)] | os.PathLike
    overrides: dict
    train: bool
    resume: bool
    save_every: Annotated[int, Field(ge=1, le=1_000_000)]
    tensorboard: bool
    test_episodes: Annotated[int, Field(ge=1, le=100_000)]


def check_parameters(**parameters: Any) -> None:
    """Check the notebook's parameters before anything is built.

    Raises:
        ValueError: names each wrong parameter, its value and what is allowed.
    """
    try:
        Parameters(**parameters)
    except ValidationError as error:
        wrong = [f"{problem['loc'][0]} = {shown(problem['input'])}: {problem['msg']}"
                 for problem in error.errors()]
        raise ValueError("; ".join(dict.fromkeys(wrong))) from None
    if not parameters["train"]:
        for name in ("overrides", "resume"):
            if parameters[name]:
                raise ValueError(f"{name} = {shown(parameters[name])} has no effect with "
                                 "train = False, which shows a kept agent with its own settings")


def shown(value: object, longest: int = 100) -> str:
    """A value in an error message: cut where it is long; Python writes no huge integers at all."""
    try:
        text = repr(value)
    except ValueError:
        return "a number with thousands of digits"
    return text if len(text) <= longest else f"{text[:longest]} ..."


# ------------------------------------------------------------------------- environments and seeds

def open_environment(location: str | os.PathLike = "", num_agents: int = 20, seed: int = 0,
                     **unity_options: float | None
                     ) -> ReacherEnvironment | UnityShaped | UnityEnvironment:
    """The embedded environment, the Unity build whose path is given, or one of Gymnasium's.

    Args:
        location: empty for the embedded environment; or the path of the Unity build (the
            `.x86_64`, `.x86`, `.app` or `.exe`, or the unpacked folder); or `gymnasium:<id>`, such
            as `gymnasium:Pendulum-v1`, for an environment with continuous actions.
        num_agents: arms of the embedded environment, or copies of one of Gymnasium's; a Unity
            build has its own number.
        seed: seed of the environment.
        unity_options: `no_graphics` and `timeout` (s) of `reacher.unity.open_unity`; without a
            Unity build they have no effect.

    Returns:
        An object with the interface of `unityagents.UnityEnvironment`.

    Raises:
        TypeError, ValueError: a bad argument, or there is no such build or environment.
        ModuleNotFoundError: a package is missing.
        UnityError: the build does not start.
    """
    if not str(location):
        return ReacherEnvironment(num_agents=num_agents, seed=seed)
    if str(location).startswith(GYMNASIUM):
        from reacher.unity_shaped import UnityShaped

        return UnityShaped(str(location).removeprefix(GYMNASIUM), num_agents, seed)
    from reacher.unity import open_unity  # needs unityagents, which the embedded one does not

    return open_unity(location, seed=seed, **unity_options)


def seed_everything(seed: int) -> np.random.Generator:
    """Seed Python, NumPy and PyTorch, and return a NumPy generator for the agent's own use."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
    return np.random.default_rng(seed)


def random_states() -> tuple[dict, dict[str, torch.Tensor]]:
    """States of the generators that `seed_everything` seeds: of Python and NumPy, and PyTorch's."""
    version, words, gauss = random.getstate()
    numpy_state = np.random.get_state(legacy=False)
    numpy_state["state"]["key"] = numpy_state["state"]["key"].tolist()
    return ({"python": [version, list(words), gauss], "numpy": numpy_state},
            {"torch_generator": torch.get_rng_state()})


def restore_random_states(states: Mapping, torch_generator: torch.Tensor) -> None:
    """Set the generators back to what `random_states` returned."""
    version, words, gauss = states["python"]
    random.setstate((version, tuple(words), gauss))
    numpy_state = dict(states["numpy"])
    numpy_state["state"] = {**numpy_state["state"],
                            "key": np.array(numpy_state["state"]["key"], dtype=np.uint32)}
    np.random.set_state(numpy_state)
    torch.set_rng_state(torch_generator)


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that the numbers depend on."""
    packages = ("torch", "numpy", "mujoco", "numba", "pydantic", "matplotlib")
    return {"python": platform.python_version()} | {name: metadata.version(name)
                                                    for name in packages}


# --------------------------------------------------------------------------------------- run files

def run_folder(out_dir: str | os.PathLike, preset: str, seed: int) -> Path:
    """`<out_dir>/<preset>/seed<N>`, the folder of one training run."""
    return Path(out_dir) / preset / f"seed{seed}"


def require_kept_agent(folder: Path) -> None:
    """Check that `checkpoints/<preset>/seed<N>` holds a trained agent.

    Raises:
        FileNotFoundError: it does not; names those that do.
    """
    weights = "actor_best.safetensors"
    if not (folder / weights).exists():
        kept = sorted(path.parent for path in folder.parents[1].glob(f"*/seed*/{weights}"))
        names = ", ".join(f"{path.parent.name} {path.name}" for path in kept)
        raise FileNotFoundError(f"no trained agent in {folder}: with train = False these can be "
                                f"shown: {names or 'none'}; train others first (train = True)")


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: into a temporary file first, which then takes its name."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:  # a full disk, or the stop button
        temporary.unlink(missing_ok=True)
        raise


def begin_run(folder: Path, resume: bool = False) -> None:
    """Make the folder of a new run; what an earlier run left there moves aside to `<folder>.<k>`.

    A finished run moves without its training state, the one large thing in it. With resume,
    nothing moves: the run goes on.

    Raises:
        ValueError: the folder cannot be made or written, or there is nothing to resume.
    """
    folder = Path(folder)
    if resume:
        try:
            exists = TrainingState(folder).exists()
        except OSError:  # a name that cannot be
            exists = False
        if not exists:
            raise ValueError(f"resume = True, but {folder} holds no training state; "
                             "begin with resume = False")
        return
    try:
        if folder.exists() and any(folder.iterdir()):
            aside = next(path for k in range(1, 1_000_000)
                         if not (path := folder.with_name(f"{folder.name}.{k}")).exists())
            folder.rename(aside)
            print(f"an earlier run moves to {aside.name}")
            if TrainingState(aside).finished():
                shutil.rmtree(aside / "state")
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / "writable", b"")
        (folder / "writable").unlink()
    except (OSError, ValueError) as error:  # the last: a name that cannot be
        raise ValueError(f"cannot write into {folder}: {error}; choose another out_dir") from None


def save_hyperparameters(folder: Path, hyperparameters: Mapping, **more: object) -> None:
    """Write `hyperparameters.json`: the settings of a run, with its seed and versions."""
    content = {"format": RUN_FORMAT, "hyperparameters": dict(hyperparameters), **more,
               "versions": versions()}
    write_whole(folder / "hyperparameters.json", json.dumps(content, indent=2).encode() + b"\n")


def load_hyperparameters(folder: Path, names: Iterable[str] | None = None) -> dict:
    """Read the settings that `save_hyperparameters` wrote.

    Args:
        names: of the settings that there must be, no less and no more; None: any.

    Raises:
        FileNotFoundError, ValueError: no such file, or it does not hold what it should.
    """
    path = Path(folder) / "hyperparameters.json"
    if not path.exists():
        raise FileNotFoundError(f"no {path}: nothing is kept of this preset and seed; "
                                "train first (train = True)")
    settings = read_run_file(path)["hyperparameters"]
    if names is not None:
        require_names(path, settings, names)
    return settings


def require_names(path: Path, settings: Mapping, names: Iterable[str]) -> None:
    """Raise ValueError where settings are missing or unknown: another version wrote them."""
    missing, unknown = set(names) - set(settings), set(settings) - set(names)
    if missing or unknown:
        raise ValueError(f"{path} is of another version of this project: "
                         f"missing {sorted(missing)}, unknown {sorted(unknown)}")


def read_run_file(path: Path) -> dict:
    """Contents of `hyperparameters.json`.

    Raises:
        ValueError: it is damaged, or of a newer format.
    """
    try:
        content = json.loads(path.read_text())
        newer = content.get("format", 1) > RUN_FORMAT
        content["hyperparameters"].items()
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error!r}") from None
    if newer:
        raise ValueError(f"{path} has format {content['format']}, and this version reads up to "
                         f"{RUN_FORMAT}: get a newer version of this project")
    return content


def require_same_run(folder: Path, hyperparameters: Mapping, **more: object) -> None:
    """Check that a run to resume has the settings that it began with.

    Other versions of packages are a warning.

    Raises:
        FileNotFoundError: the run has no hyperparameters.json.
        ValueError: it is damaged, or a setting differs; names each that does.
    """
    path = Path(folder) / "hyperparameters.json"
    if not path.exists():
        raise FileNotFoundError(f"no {path}: with what settings did this run begin?")
    before = read_run_file(path)
    require_names(path, before["hyperparameters"], hyperparameters)
    earlier = before | before["hyperparameters"]
    now = json.loads(json.dumps({**hyperparameters, **more}))
    differing = [f"{name} is {value!r} and was {earlier.get(name)!r}"
                 for name, value in now.items() if earlier.get(name) != value]
    if differing:
        raise ValueError(f"the run in {folder} began with other settings: {'; '.join(differing)}")
    if before.get("versions") != versions():
        warnings.warn(f"the run in {folder} began with {before.get('versions')}; with other "
                      "versions it goes on, but may not give the same numbers", stacklevel=2)


def save_networks(folder: Path, suffix: str = "", **networks: torch.nn.Module) -> None:
    """Write each network's weights as `<name><suffix>.safetensors`."""
    for name, network in networks.items():
        write_whole(folder / f"{name}{suffix}.safetensors", to_bytes(network.state_dict()))


def load_network(path: Path, network: torch.nn.Module) -> None:
    """Load weights into a network of the same shape. The file format cannot carry code.

    Raises:
        FileNotFoundError: no such file.
        ValueError: a damaged file, or weights of another network.
    """
    if not Path(path).exists():
        raise FileNotFoundError(f"no {path}: train first (train = True)")
    try:
        weights = load_file(path)
    except Exception as error:  # safetensors has one exception type for all damage
        raise ValueError(f"{path} is damaged or no safetensors file: {error}") from None
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(f"{path} holds the weights of another network: {error}") from None


def to_bytes(tensors: Mapping[str, torch.Tensor]) -> bytes:
    """Tensors as the content of a safetensors file."""
    return save({name: tensor.detach().clone() for name, tensor in tensors.items()})


class TrainingState:
    """The last two states of a training in `<run folder>/state`, each enough to go on from.

    A state is a file `state_<episode>.json`, written last, that holds plain facts and names its
    data files with their checksums. Data files are in the safetensors format, which cannot carry
    code. They are never changed, and go when no state names them. The two states share none, so
    that one damaged file leaves the other state.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder) / "state"
        self.files = {}  # of the state saved or loaded last: name -> [file, checksum]
        self.before = {}  # of the one before it

    def paths(self) -> list[Path]:
        """Files of the states, newest first."""
        return sorted(self.folder.glob("state_*.json"), reverse=True)

    def exists(self) -> bool:
        return bool(self.paths())

    def finished(self) -> bool:
        """Whether the newest state is that of a training that came to its end."""
        try:
            return bool(json.loads(self.paths()[0].read_text())["facts"]["finished"])
        except (IndexError, KeyError, TypeError, ValueError):
            return False

    def save(self, episode: int, facts: Mapping, data: Mapping[str, bytes | None]) -> None:
        """Write a state, then remove what the last two do not need.

        Args:
            episode: whole episodes so far.
            facts: what JSON can hold.
            data: contents of data files by name; None for one unchanged since the last state.

        Raises:
            OSError: the disk is full or gone; the states before are as they were.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        files = {}
        for name, content in data.items():
            if content is None:  # two states ago it may have been the same
                file, expected = self.files[name]
                if self.before.get(name, [None, None])[1] == expected:
                    files[name] = self.before[name]
                    continue
                content = (self.folder / file).read_bytes()
                if checksum(content) != expected:
                    raise OSError(f"{self.folder / file} was damaged meanwhile")
            file = f"{name}_{episode:07d}.safetensors"
            write_whole(self.folder / file, content)
            files[name] = [file, checksum(content)]
        state = {"format": RUN_FORMAT, "episode": episode, "facts": facts, "files": files}
        state["checksum"] = checksum(json.dumps(state).encode())
        write_whole(self.folder / f"state_{episode:07d}.json", json.dumps(state).encode())
        self.files, self.before = files, self.files
        self.remove_old()

    def remove_old(self) -> None:
        """Remove all states but two, and data files and remains that none of them names."""
        for path in self.paths()[2:]:
            path.unlink()
        needed = {path.name for path in self.paths()}
        needed |= {file for file, _ in (*self.files.values(), *self.before.values())}
        for path in self.folder.glob("*"):
            if path.name not in needed and path.suffix in (".safetensors", ".tmp"):
                path.unlink()

    def load(self) -> tuple[int, dict, dict[str, torch.Tensor]]:
        """The newest state that is whole: its episode, facts, and tensors of all data files.

        A damaged one is named in a warning and, if there is a whole one, set aside as
        `<name>.damaged`.

        Raises:
            ValueError: no whole state, or one of a newer format.
        """
        damaged = []
        for path in self.paths():
            try:
                state = json.loads(path.read_text())
                if state.pop("checksum") != checksum(json.dumps(state).encode()):
                    raise ValueError(f"{path.name} has another checksum")
                if state["format"] > RUN_FORMAT:
                    raise NewerFormat(f"{path} has format {state['format']}, and this version "
                                      f"reads up to {RUN_FORMAT}: get a newer version")
                tensors = {}
                for file, expected in state["files"].values():
                    content = (self.folder / file).read_bytes()
                    if checksum(content) != expected:
                        raise ValueError(f"{file} has another checksum")
                    tensors |= load_tensors(content)
            except NewerFormat:
                raise
            except Exception as error:  # whatever damage does to a file
                warnings.warn(f"{path} is damaged ({error}); the state before is used",
                              stacklevel=2)
                damaged.append(path)
                continue
            for other in damaged:
                other.replace(other.with_name(other.name + ".damaged"))
            self.files, self.before = state["files"], {}
            return state["episode"], state["facts"], tensors
        raise ValueError(f"{self.folder} holds no whole training state; "
                         "begin with resume = False")


class NewerFormat(ValueError):
    """A file that a newer version of this project wrote."""


def checksum(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def scalar_writer(folder: Path, wanted: bool
                  ) -> contextlib.AbstractContextManager[SummaryWriter | None]:
    """A context with TensorBoard's SummaryWriter into `<folder>/tensorboard`, or with None."""
    if not wanted:
        return contextlib.nullcontext()
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise ValueError("tensorboard = True needs the package: pip install tensorboard") from None
    return SummaryWriter(folder / "tensorboard")


class ScoreFile:
    """`scores.csv` of one run: a line `episode,score,min,max,seconds` after every episode.

    Every line is on disk before the next episode begins, so an interrupt loses nothing. A run that
    goes on begins with the lines of its episodes so far.
    """

    def __init__(self, folder: Path, lines: Sequence[str] = ()) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "scores.csv"
        self.lines = list(lines)
        write_whole(self.path, self.content())

    def content(self) -> bytes:
        return "\n".join([",".join(SCORE_COLUMNS), *self.lines, ""]).encode()

    def append(self, episode: int, scores: np.ndarray, seconds: float) -> None:
        """Add one episode.

        Args:
            episode: from 1 on.
            scores: (agents,) each arm's sum of rewards.
            seconds: wall clock since training began.

        Raises:
            OSError: the disk is full or gone, or somebody else has written the file.
        """
        if not self.path.exists() or self.path.read_bytes() != self.content():
            raise OSError(f"{self.path} is not as this training left it: another training may "
                          "run in the same folder; choose another out_dir")
        self.lines.append(f"{episode},{scores.mean():.6f},{scores.min():.6f},{scores.max():.6f},"
                          f"{seconds:.3f}")
        write_whole(self.path, self.content())


def read_scores(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """Read a score file as one array per column.

    Raises:
        FileNotFoundError, ValueError: no such file; empty, cut, or with other columns.
    """
    if not Path(path).exists():
        raise FileNotFoundError(f"no score file {path}: train first (train = True)")
    try:
        text = Path(path).read_text()
        rows = list(csv.reader(text.splitlines()))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    if not rows or tuple(rows[0]) != SCORE_COLUMNS:
        raise ValueError(f"{path} does not begin with the columns {','.join(SCORE_COLUMNS)}")
    if len(rows) == 1:
        raise ValueError(f"{path} holds no episode yet")
    try:
        table = np.array(rows[1:], dtype=float).T
    except ValueError:
        table = np.empty(0)
    if len(table) != len(SCORE_COLUMNS) or not text.endswith("\n"):
        raise ValueError(f"{path} has a line that is cut or holds no numbers")
    return dict(zip(SCORE_COLUMNS, table, strict=True))


def read_runs(folder: Path) -> dict[str, dict[str, np.ndarray]]:
    """Score files of all seeds of a preset: `<folder>/seed<N>/scores.csv`, in order of N.

    A file that cannot be read is named in a warning and left out.

    Raises:
        FileNotFoundError: none can be read.
    """
    runs = {}
    paths = [path for path in Path(folder).glob("seed*/scores.csv")
             if path.parent.name.removeprefix("seed").isdecimal()]  # no run that moved aside
    for path in sorted(paths, key=lambda path: int(path.parent.name.removeprefix("seed"))):
        try:
            runs[path.parent.name] = read_scores(path)
        except ValueError as error:
            warnings.warn(f"left out: {error}", stacklevel=2)
    if not runs:
        raise FileNotFoundError(f"no score file that can be read in {folder}/seed*/")
    return runs


def moving_average(scores: Sequence[float], window: int = AVERAGE_WINDOW) -> np.ndarray:
    """Mean of the last `window` scores after each episode, or of all where there are fewer."""
    total = np.concatenate([[0.0], np.cumsum(scores)])
    end = np.arange(1, len(total))
    begin = np.maximum(end - window, 0)
    return (total[end] - total[begin]) / (end - begin)


def solved_at(scores: Sequence[float]) -> int | None:
    """First episode at which a full window of 100 averages at least 30, or None."""
    average = moving_average(scores)
    solved = np.flatnonzero(average[AVERAGE_WINDOW - 1:] >= SOLVED_SCORE)
    return int(solved[0]) + AVERAGE_WINDOW if len(solved) else None


# ---------------------------------------------------------------------------------------- pictures

def plot_scores(scores: Mapping[str, np.ndarray], title: str = "") -> Figure:
    """Score of every episode, spread over the arms, 100-episode average and the mark at 30.

    Args:
        scores: what `read_scores` returns.

    Returns:
        The matplotlib figure.
    """
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    episode = scores["episode"]
    axes.fill_between(episode, scores["min"], scores["max"], alpha=0.2, color=COLORS["score"],
                      linewidth=0, label="worst to best arm")
    axes.plot(episode, scores["score"], color=COLORS["score"], label="mean over the arms")
    axes.plot(episode, moving_average(scores["score"]), color=COLORS["average"], linewidth=2,
              label="average of the last 100 episodes")
    if scores["min"].min() >= 0:  # else it is no Reacher, and has another range
        axes.axhline(SOLVED_SCORE, color="0.4", linestyle="--", linewidth=1)
        axes.annotate("solved: average of 30", (0.99, SOLVED_SCORE), xytext=(0, -4), va="top",
                      ha="right", xycoords=("axes fraction", "data"), textcoords="offset points",
                      color="0.3")
        axes.set_ylim(0, 41)
    axes.set(xlabel="episode", ylabel="score (sum of rewards)", xlim=(1, max(episode[-1], 2)),
             title=title)
    axes.legend(loc="lower right", frameon=False)
    return figure


def record_frames(environment: ReacherEnvironment | UnityShaped | UnityEnvironment,
                  policy: Callable[[np.ndarray], np.ndarray], decisions: int,
                  every: int = 2) -> list[np.ndarray]:
    """Observations while `policy` acts from a reset on.

    Args:
        environment: of arms; it is reset.
        policy: observations (agents, 33) to actions (agents, 4).
        decisions: how many to play.
        every: decisions from one frame to the next.

    Returns:
        Observations (agents, 33), one array for each frame.
    """
    brain_name = environment.brain_names[0]
    observations = environment.reset(train_mode=True)[brain_name].vector_observations
    frames = []
    for decision in range(decisions):
        if decision % every == 0:
            frames.append(observations)
        observations = environment.step(policy(observations))[brain_name].vector_observations
    return frames


def animated_png(frames: Sequence[np.ndarray], milliseconds: int = 160, most: int = 20,
                 first: int | None = None, label: str = "", goal_size: float = 5.0) -> bytes:
    """The recorded arms, the first `most` of them, as an animated PNG.

    It is an ordinary picture to Jupyter, VS Code and browsers: it moves without any script.

    Args:
        frames: observations (agents, 33), one per frame.
        milliseconds: how long a frame shows; 160 is real time for every second decision.
        most: arms that are shown.
        first: the frame that shows first, before which the picture ends; None: one a third into
            the recording, since at the beginning all arms hang.
        label: a line of text at the lower edge.
        goal_size: diameter of the goals, m.
    """
    first = len(frames) // 3 if first is None else first
    return moving_arms([observations[:most] for observations in frames], milliseconds,
                       first=first, label=label, goal_size=goal_size)


# ---------------------------------------------------------------------------------------- progress

class NotebookBar(tqdm):
    """A tqdm bar as one text output that is updated in place.

    It needs no widgets, and a saved notebook or its HTML shows the last state instead of a line
    for every update.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.output = None
        super().__init__(*arguments, **options, file=io.StringIO())

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """What tqdm calls to show itself."""
        text = {"text/plain": str(self) if msg is None else msg}
        if self.output is None:
            self.output = display(text, raw=True, display_id=True)
        else:
            self.output.update(text, raw=True)


def progress_bar(total: int, done: int = 0) -> tqdm:
    """A progress bar over episodes, some of them done before, for a notebook or a terminal."""
    in_notebook = hasattr(get_ipython(), "kernel")
    layout = "{n_fmt}/{total_fmt} episodes |{bar:12}| {elapsed}<{remaining}{postfix}"
    return (NotebookBar if in_notebook else tqdm)(total=total, initial=done, bar_format=layout,
                                                 mininterval=0.5)
