"""What the notebook needs around its agent: environments, seeds, files and pictures.

The agent itself (replay, networks, losses, training loop) is defined in the notebook.
"""

from __future__ import annotations

import csv
import io
import json
import os
import platform
import random
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from IPython import get_ipython
from IPython.display import display
from matplotlib.collections import EllipseCollection, LineCollection
from PIL import Image
from safetensors.torch import load_file, save
from tqdm.std import tqdm

from reacher import ReacherEnvironment
from reacher.physics import HAND_OFFSET
from reacher.task import HAND_RADIUS

SOLVED_SCORE = 30.0  # the course's mark for the average score
AVERAGE_WINDOW = 100  # over so many episodes
SCORE_COLUMNS = ("episode", "score", "min", "max", "seconds")
COLORS = {"score": "#0072B2", "average": "#D55E00", "goal": "#009E73"}  # Okabe and Ito


# ------------------------------------------------------------------------- environments and seeds

def open_environment(location: str | os.PathLike = "", num_agents: int = 20, seed: int = 0,
                     **unity_options):
    """The embedded environment, or the Unity build whose path is given.

    Args:
        location: empty for the embedded environment; else the path of the Unity build (the
            `.x86_64`, `.x86`, `.app` or `.exe`, or the unpacked folder).
        num_agents: arms of the embedded environment; a Unity build has its own number.
        seed: seed of the environment.
        unity_options: passed on to `reacher.unity.open_unity`.

    Returns:
        An object with the interface of `unityagents.UnityEnvironment`.
    """
    if not str(location):
        return ReacherEnvironment(num_agents=num_agents, seed=seed)
    from reacher.unity import open_unity  # needs unityagents, which the embedded one does not

    return open_unity(location, seed=seed, **unity_options)


def seed_everything(seed: int) -> np.random.Generator:
    """Seed Python, NumPy and PyTorch, and return a NumPy generator for the agent's own use."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
    return np.random.default_rng(seed)


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that the numbers depend on."""
    packages = ("torch", "numpy", "mujoco", "numba", "pydantic", "matplotlib")
    return {"python": platform.python_version()} | {name: metadata.version(name)
                                                    for name in packages}


# --------------------------------------------------------------------------------------- run files

def run_folder(out_dir: str | os.PathLike, preset: str, seed: int) -> Path:
    """`<out_dir>/<preset>/seed<N>`, the folder of one training run."""
    return Path(out_dir) / preset / f"seed{seed}"


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: into a temporary file first, which then takes its name."""
    temporary = path.with_name(path.name + ".tmp")
    with open(temporary, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def save_hyperparameters(folder: Path, hyperparameters: Mapping, **more) -> None:
    """Write `hyperparameters.json`: the settings of a run, with its seed and versions."""
    content = {"hyperparameters": dict(hyperparameters), **more, "versions": versions()}
    write_whole(folder / "hyperparameters.json", json.dumps(content, indent=2).encode() + b"\n")


def load_hyperparameters(folder: Path) -> dict:
    """Read the settings that `save_hyperparameters` wrote.

    Raises:
        FileNotFoundError, ValueError: no such file, or it does not hold what it should.
    """
    path = Path(folder) / "hyperparameters.json"
    if not path.exists():
        raise FileNotFoundError(f"no {path}: nothing is kept of this preset and seed; "
                                "train first (train = True)")
    try:
        return json.loads(path.read_text())["hyperparameters"]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error!r}") from None


def save_networks(folder: Path, suffix: str = "", **networks: torch.nn.Module) -> None:
    """Write each network's weights as `<name><suffix>.safetensors`."""
    for name, network in networks.items():
        weights = {key: value.detach().clone() for key, value in network.state_dict().items()}
        write_whole(folder / f"{name}{suffix}.safetensors", save(weights))


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


class ScoreFile:
    """`scores.csv` of one run: a line `episode,score,min,max,seconds` after every episode.

    Every line is on disk before the next episode begins, so an interrupt loses nothing.
    """

    def __init__(self, folder: Path):
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "scores.csv"
        self.path.write_text(",".join(SCORE_COLUMNS) + "\n")

    def append(self, episode: int, scores: np.ndarray, seconds: float) -> None:
        """Add one episode.

        Args:
            episode: from 1 on.
            scores: (agents,) each arm's sum of rewards.
            seconds: wall clock since training began.
        """
        with open(self.path, "a") as file:
            file.write(f"{episode},{scores.mean():.6f},{scores.min():.6f},{scores.max():.6f},"
                       f"{seconds:.3f}\n")


def read_scores(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """Read a score file as one array per column.

    Raises:
        FileNotFoundError, ValueError: no such file; empty, cut, or with other columns.
    """
    if not Path(path).exists():
        raise FileNotFoundError(f"no score file {path}: train first (train = True)")
    text = Path(path).read_text()
    rows = list(csv.reader(text.splitlines()))
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

def plot_scores(scores: Mapping[str, np.ndarray], title: str = ""):
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
    axes.axhline(SOLVED_SCORE, color="0.4", linestyle="--", linewidth=1)
    axes.annotate("solved: average of 30", (0.99, SOLVED_SCORE), xytext=(0, -4), va="top",
                  ha="right", xycoords=("axes fraction", "data"), textcoords="offset points",
                  color="0.3")
    axes.set(xlabel="episode", ylabel="score (sum of rewards)", ylim=(0, 41),
             xlim=(1, max(episode[-1], 2)), title=title)
    axes.legend(loc="lower right", frameon=False)
    return figure


def arm_points(observations: np.ndarray) -> dict[str, np.ndarray]:
    """Where an arm's parts are, from observations alone, so for a Unity build as well.

    Args:
        observations: (..., 33).

    Returns:
        `base`, `elbow`, `hand` and `goal`, each (..., 3), m.
    """
    def along_own_y(quaternion):  # second column of the rotation matrix; order x, y, z, w
        x, y, z, w = np.moveaxis(quaternion, -1, 0)
        return np.stack([2 * (x * y - z * w), 1 - 2 * (x * x + z * z), 2 * (y * z + x * w)], -1)

    upper, forearm = observations[..., 0:13], observations[..., 13:26]
    elbow = upper[..., 0:3] + HAND_OFFSET * along_own_y(upper[..., 3:7])
    hand = forearm[..., 0:3] + HAND_OFFSET * along_own_y(forearm[..., 3:7])
    return {"base": np.zeros_like(elbow), "elbow": elbow, "hand": hand,
            "goal": observations[..., 26:29]}


def draw_arms(axes, observations: np.ndarray, columns: int = 10, spacing: float = 23.0,
              goal_size: float = 5.0) -> None:
    """Draw arms side by side, seen from the front and a little from above.

    Args:
        axes: matplotlib axes; what they hold is cleared.
        observations: (agents, 33).
        goal_size: diameter of the goals, m; a goal is green while the hand touches it.
    """
    def flat(point):  # (agents, 3) to (agents, 2): x to the right, y up, z a little upwards
        return np.stack([point[:, 0], point[:, 1] + 0.35 * point[:, 2]], -1) + place

    agents = np.arange(len(observations))
    place = spacing * np.stack([agents % columns, -(agents // columns)], -1)
    point = {name: flat(value) for name, value in arm_points(observations).items()}
    axes.clear()
    axes.set_aspect("equal")
    axes.axis("off")
    distance = np.linalg.norm(arm_points(observations)["hand"] - observations[:, 26:29], axis=1)
    touching = distance <= HAND_RADIUS + goal_size / 2
    ball = {"units": "x", "angles": 0, "transOffset": axes.transData}
    axes.add_collection(EllipseCollection(
        np.full(len(agents), goal_size), np.full(len(agents), goal_size), offsets=point["goal"],
        facecolors=np.where(touching, COLORS["goal"], "#CC79A7"), alpha=0.55, **ball))
    for start, end in (("base", "elbow"), ("elbow", "hand")):
        axes.add_collection(LineCollection(np.stack([point[start], point[end]], 1),
                                           colors="0.35", linewidths=2.2, capstyle="round"))
    axes.plot(*point["base"].T, "o", color="0.35", markersize=4)
    axes.add_collection(EllipseCollection(
        np.full(len(agents), 2 * HAND_RADIUS), np.full(len(agents), 2 * HAND_RADIUS),
        offsets=point["hand"],
        facecolors=COLORS["score"], **ball))
    rows = -(-len(agents) // columns)
    axes.set_xlim(-spacing / 2, (min(columns, len(agents)) - 0.5) * spacing)
    axes.set_ylim(-(rows - 0.5) * spacing - 2, spacing / 2 - 2)


def record_frames(environment, policy: Callable[[np.ndarray], np.ndarray], decisions: int,
                  every: int = 2) -> list[np.ndarray]:
    """Observations (agents, 33) of every second decision while `policy` acts from a reset on."""
    brain_name = environment.brain_names[0]
    observations = environment.reset(train_mode=True)[brain_name].vector_observations
    frames = []
    for decision in range(decisions):
        if decision % every == 0:
            frames.append(observations)
        observations = environment.step(policy(observations))[brain_name].vector_observations
    return frames


def animated_png(frames: Sequence[np.ndarray], milliseconds: int = 160, width: float = 7.5,
                 columns: int = 10, most: int = 20) -> bytes:
    """The recorded arms, the first `most` of them, as an animated PNG.

    It is an ordinary picture to Jupyter, VS Code and browsers: it moves without any script.

    Args:
        frames: observations (agents, 33), one per frame.
        milliseconds: how long a frame shows; 160 is real time for every second decision.
    """
    frames = [observations[:most] for observations in frames]
    rows = -(-len(frames[0]) // columns)
    height = width * rows / min(columns, len(frames[0]))
    figure, axes = plt.subplots(figsize=(width, height), dpi=90)
    figure.subplots_adjust(0, 0, 1, 1)
    pictures = []
    for observations in frames:
        draw_arms(axes, observations, columns=columns)
        figure.canvas.draw()
        picture = Image.fromarray(np.asarray(figure.canvas.buffer_rgba())).convert("RGB")
        pictures.append(picture.quantize(32, dither=Image.Dither.NONE))
    plt.close(figure)
    file = io.BytesIO()
    pictures[0].save(file, format="PNG", save_all=True, append_images=pictures[1:],
                     duration=milliseconds, loop=0, optimize=True)
    return file.getvalue()


# ---------------------------------------------------------------------------------------- progress

class NotebookBar(tqdm):
    """A tqdm bar as one text output that is updated in place.

    It needs no widgets, and a saved notebook or its HTML shows the last state instead of a line
    for every update.
    """

    def __init__(self, *arguments, **options):
        self.output = None
        super().__init__(*arguments, **options, file=io.StringIO())

    def display(self, msg=None, pos=None):
        """What tqdm calls to show itself."""
        text = {"text/plain": str(self) if msg is None else msg}
        if self.output is None:
            self.output = display(text, raw=True, display_id=True)
        else:
            self.output.update(text, raw=True)


def progress_bar(total: int) -> tqdm:
    """A progress bar over episodes, for a notebook or a terminal."""
    in_notebook = hasattr(get_ipython(), "kernel")
    layout = "{n_fmt}/{total_fmt} episodes |{bar:12}| {elapsed}<{remaining}{postfix}"
    return (NotebookBar if in_notebook else tqdm)(total=total, bar_format=layout, mininterval=0.5)
