"""Play with trained arms in the browser: `python -m web.watch RUN ...` writes one HTML file.

    python -m web.watch --out site/index.html
    python -m web.watch runs/default/seed0 --open

RUN is the folder of a training run, with hyperparameters.json and an actor's weights; of several
folders the reader of the page chooses among all actors. The arms are simulated in the page. The
file needs no network, no server and no kernel. Without RUN it has the actors of
checkpoints/gallery/seed0 and checkpoints/default/seed0, which are those of one training.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reacher.episode import play_episode, random_torques
from reacher.files import write_whole
from reacher.task import RESET_PARAMETERS
from web.actor import NAMED, actor_path, load_actor, pretrained_actors, read_settings
from web.packed import packed_actor, packed_critic
from web.page import Choice, page

SEED = 1000  # of the goals; trainings begin with seeds from 0 on
OUT = Path("runs") / "watch.html"
RUNS = Path("checkpoints/gallery/seed0"), Path("checkpoints/default/seed0")
MOST_ARMS = 40
STILL = Path(__file__).parents[1] / "doc" / "trained_arms_still.png"


def watch_page(
    *folders: str | os.PathLike,
    arms: int = 20,
    seed: int = SEED,
    embedded: bool = False,
    **parameters: Any,
) -> str:
    """The page of random torques and of all actors in the folders of runs, by their episodes.

    Args:
        folders: of runs, most often of one training: their scores make the page's curve.
        arms: 1 to 40.
        seed: of the goals.
        embedded: for within a notebook.
        parameters: `goal_size` and `goal_speed`.

    Raises:
        FileNotFoundError, ModuleNotFoundError, TypeError, ValueError: what is missing or wrong.
    """
    if not 1 <= arms <= MOST_ARMS:
        raise ValueError(f"arms must be from 1 to {MOST_ARMS}, not {arms}")

    def score(actor):
        return float(play_episode(actor, arms, seed, **parameters).scores.mean())

    choices = [Choice("0", "not at all, random torques", score(random_torques(0)), None, 0)]
    scores: list[float] = []
    critic, about = None, []
    for folder in map(Path, folders):
        settings = read_settings(folder)
        about.append(
            ", ".join(f"{key} {settings[key]}" for key in ("preset", "seed") if key in settings)
        )
        scores = read_curve(folder) or scores
        critic = packed_critic(folder) or critic
        names = pretrained_actors(folder) or ["best"]  # which says what is missing
        if "best" in names[:1]:
            names = [name for name in names[1:] if not same(folder, name)] + ["best"]
        for name in names:
            network = packed_actor(folder, name)
            episode = int(name) if name.isdecimal() else None
            title = f"{name} episode{'s' * (name != '1')}" if episode else f"the {name} actor"
            if scores and name in NAMED:
                episode = scores.index(max(scores)) + 1 if name == "best" else len(scores)
                title = f"{episode} episodes, the {name} actor"
            choices.append(Choice(name, title, score(load_actor(folder, name)), network, episode))
    choices.sort(key=lambda choice: math.inf if choice.episode is None else choice.episode)
    what = (
        f"{arms} arm{'s' * (arms > 1)}, simulated in this page, with actors that the notebook "
        f"trained ({'; '.join(dict.fromkeys(about))}). Drag a goal, drag a hand, or click an arm."
    )
    still = STILL.read_bytes() if STILL.is_file() else b""
    return page(
        choices, critic, scores, arms, seed, what=what, still=still, embedded=embedded, **parameters
    )


def same(folder: Path, name: str) -> bool:
    """Whether an actor has the weights of the best one."""
    return actor_path(folder, name).read_bytes() == actor_path(folder, "best").read_bytes()


def read_curve(folder: Path) -> list[float]:
    """The scores of a run's episodes, mean over the arms; none where it keeps no scores.csv.

    Raises:
        ValueError: the file is damaged.
    """
    path = folder / "scores.csv"
    if not path.is_file():
        return []
    try:
        with path.open(newline="", encoding="utf-8") as lines:
            return [float(line["score"]) for line in csv.DictReader(lines)]
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{path} is damaged: it needs a column score, of numbers") from None


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m web.watch", description=__doc__.splitlines()[0]
    )
    parser.add_argument("runs", type=Path, metavar="RUN", nargs="*", help="folder of a run")
    parser.add_argument("--arms", type=int, default=20, help="1 to 40 (20)")
    parser.add_argument("--seed", type=int, default=SEED, help=f"of the goals ({SEED})")
    parser.add_argument(
        "--goal-size",
        type=float,
        default=RESET_PARAMETERS["goal_size"],
        help="diameter, m (%(default)g)",
    )
    parser.add_argument(
        "--goal-speed",
        type=float,
        default=RESET_PARAMETERS["goal_speed"],
        help="largest, degrees per physics step (%(default)g)",
    )
    parser.add_argument("--out", type=Path, default=OUT, help=f"the file ({OUT})")
    parser.add_argument("--open", action="store_true", help="open it in the browser")
    options = parser.parse_args(arguments)
    try:
        content = watch_page(
            *(options.runs or RUNS),
            arms=options.arms,
            seed=options.seed,
            goal_size=options.goal_size,
            goal_speed=options.goal_speed,
        )
        options.out.parent.mkdir(parents=True, exist_ok=True)
        write_whole(options.out, content.encode())
    except (OSError, ModuleNotFoundError, TypeError, ValueError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    print(f"{options.out}  {options.out.stat().st_size / 1e6:.2f} MB, open it in a browser")
    if options.open:
        webbrowser.open(options.out.resolve().as_uri())
    return 0


if __name__ == "__main__":
    sys.exit(main())
