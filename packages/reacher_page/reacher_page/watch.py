"""Arms that live and learn in the browser: `python -m reacher_page.watch RUN` writes one file.

RUN is the folder of a training run, such as runs/default/seed0; of several the reader of the page
chooses among all actors. With `--agent helpers:quick_agent`, an agent learns in the page, too. All
happens there, without network, server or kernel.
"""

from __future__ import annotations

import argparse
import math
import pkgutil
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reacher.episode import play_episode, random_torques
from reacher.task import SOLVED_SCORE
from reacher_page.actor import actor_files, read_network
from reacher_page.page import SEED, page

RUN = Path("checkpoints/whole/seed0")


def watch_page(*folders: Path | str, arms: int = 20, **options: Any) -> str:
    """The page of random torques and of all actors in the folders of runs, by their episodes.

    Args:
        folders: of runs, most often of one training: their scores make the page's curve.
        arms: how many.
        options: of `reacher_page.page.page`: `tutorial`, `embedded`, `learning`.
    """

    def add(label, episode, network, policy):
        score = float(play_episode(policy, arms, SEED).scores.mean())
        actors.append({"label": label, "episode": episode, "network": network, "score": score})

    actors: list[dict] = []
    scores, seconds, critic = np.zeros(0), np.zeros(0), None
    add("0", 0, None, random_torques(0))
    for folder in map(Path, folders):
        if not (files := actor_files(folder)):
            raise FileNotFoundError(f"no actor in {folder}: train one first (make run)")
        if (path := folder / "scores.csv").is_file():
            scores, seconds = read_curve(path)
        if (path := folder / "critic_best.safetensors").is_file():
            critic = read_network(path).packed()
        for name, path in files.items():
            episode = int(name) if name.isdecimal() else None
            if len(scores) and name == "best":
                episode = int(scores.argmax()) + 1
            if name != "last" or "best" not in files:
                network = read_network(path)
                add(name, episode, network.packed(), network.act)
                score, best = actors[-1]["score"], scores.max(initial=0)
                if name == "best" and score < best / 2:
                    raise ValueError(
                        f"{path} scores {score:.1f} here and {best:.1f} in its training: pages "
                        "cannot show actors of edited cells"
                    )
    actors.sort(key=lambda actor: math.inf if actor["episode"] is None else actor["episode"])
    solved = seconds[scores >= SOLVED_SCORE]
    what = "Nobody told these arms how to reach their goals. They learned it by trial and error"
    what += f", and had 30 of 40 points after {solved[0]:.0f} seconds." if len(solved) else "."
    return page(actors, critic, scores.tolist(), arms, what, **options)


def read_curve(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Scores and seconds of a training's episodes; ValueError: the table has none."""
    try:
        with warnings.catch_warnings(action="ignore"):  # of an empty file, which has no names
            table = np.atleast_1d(np.genfromtxt(path, delimiter=",", names=True))
        return table["score"], table["seconds"]
    except (IndexError, ValueError):  # NumPy's, of a file without such a table
        raise ValueError(f"{path} has no columns score and seconds") from None


def make_agent(name: str) -> Any:
    """What the function MODULE:FUNCTION returns; ValueError: there is none, or it fails."""
    try:
        return pkgutil.resolve_name(name)()
    except Exception as error:  # whatever the user's module raises
        raise ValueError(
            f"--agent {name} gives no agent: {type(error).__name__}: {error}"
        ) from error


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m reacher_page.watch", description=__doc__)
    add = parser.add_argument
    add("runs", type=Path, metavar="RUN", nargs="*", help=f"folder ({RUN})")
    add("--arms", type=int, default=20, help="how many (20)")
    add("--out", type=Path, default=Path("runs/watch.html"), help="the file (runs/watch.html)")
    add("--tutorial", default="", help="address that the page links to")
    add("--agent", metavar="MODULE:FUNCTION", help="makes an agent, which learns in the page")
    options = vars(parser.parse_args(arguments))
    runs, out, agent = options.pop("runs") or [RUN], options.pop("out"), options.pop("agent")
    try:
        if agent:
            from reacher_page.learn import learning_of  # which needs PyTorch

            made = make_agent(agent)
            try:
                options["learning"] = learning_of(made)
            except ValueError as reason:  # edited cells, for example
                print(f"it cannot learn in the page: {reason}", file=sys.stderr)
        content = watch_page(*runs, **options)
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(content, encoding="utf-8")
    except (OSError, TypeError, ValueError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    print(f"{out.resolve().as_uri()}  {len(content) / 1e6:.2f} MB, open it in a browser")
    return 0


if __name__ == "__main__":
    sys.exit(main())
