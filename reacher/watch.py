"""Watch an actor in the browser: `python -m reacher.watch RUN` writes one HTML file.

    python -m reacher.watch checkpoints/default/seed0
    python -m reacher.watch checkpoints/gallery/seed0 --actor 3 --beside 100 --open
    python -m reacher.watch runs/default/seed0 --actor last --beside random

RUN is the folder of a training run, with hyperparameters.json and an actor's weights. The file
needs no network, no server and no kernel.
"""

from __future__ import annotations

import argparse
import os
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from reacher.actor import load_actor, pretrained_actors, read_settings
from reacher.drawing.page import page
from reacher.episode import Episode, play_episode, random_torques
from reacher.task import EPISODE_DECISIONS, RESET_PARAMETERS, STEP_REWARD, STEPS_PER_DECISION

RANDOM = "random"
SEED = 1000  # of the goals; trainings begin with seeds from 0 on
OUT = Path("runs") / "watch.html"
MOST_ARMS = 40  # in a page: more make a file that is too large to hand around


def watch_page(
    folder: str | os.PathLike,
    actor: str = "best",
    beside: str | None = None,
    beside_folder: str | os.PathLike | None = None,
    arms: int = 20,
    seed: int = SEED,
    decisions: int = EPISODE_DECISIONS,
    autoplay: bool = True,
    **parameters: float,
) -> str:
    """The page of an actor's episode, with that of another one beside it if one is named.

    Args:
        folder: of the run.
        actor: "best", "last", the number of an episode whose weights are kept, or "random".
        beside: a second one, under the same goals.
        beside_folder: the second one's run; None: the same.
        arms: 1 to 40.
        seed: of the goals.
        decisions: 1 to 1001.
        autoplay: whether it begins to play by itself.
        parameters: `goal_size` and `goal_speed`.

    Raises:
        FileNotFoundError, ModuleNotFoundError, TypeError, ValueError: what is missing or wrong.
    """
    if not 1 <= arms <= MOST_ARMS:
        raise ValueError(f"arms must be from 1 to {MOST_ARMS}, not {arms}")
    asked = [(Path(folder), actor)]
    if beside is not None or beside_folder is not None:
        asked.append((Path(beside_folder or folder), beside or "best"))
    played = [_play(run, name, arms, seed, decisions, parameters) for run, name in asked]
    runs = {episode.facts for episode in played}
    common = "; ".join(played[0].facts) if len(runs) == 1 else ""
    episodes = [
        episode.named(
            episode.title,
            *(() if common else episode.facts),
            f"mean score {episode.scores.mean():.2f}",
        )
        for episode in played
    ]
    goal = episodes[0].goal_size
    most = STEP_REWARD * STEPS_PER_DECISION * decisions
    what = (
        f"{arms} arm{'s' * (arms > 1)}, one episode of {decisions} decisions, "
        f"{goal:g} m goals of seed {seed}; at most {most:.2f} for an arm. "
        f"{common + '. ' if common else ''}No noise on weights or torques"
        f"{', but the random ones' * any(name == RANDOM for _, name in asked)}."
    )
    return page(
        episodes,
        " beside ".join(_capital(episode.title, k == 0) for k, episode in enumerate(episodes)),
        what,
        min(decisions, 40),
        autoplay,
    )


def _capital(text: str, wanted: bool) -> str:
    return text[:1].upper() + text[1:] if wanted else text[:1].lower() + text[1:]


def _play(
    folder: Path, name: str, arms: int, seed: int, decisions: int, parameters: dict
) -> Episode:
    if name == RANDOM:
        if not folder.is_dir():
            raise FileNotFoundError(f"no run in {folder}")
        episode = play_episode(random_torques(seed), arms, seed, decisions, **parameters)
        return episode.named("Random torques")
    actor = load_actor(folder, name)
    about = read_settings(folder)
    episode = play_episode(actor, arms, seed, decisions, **parameters)
    title = f"Actor after episode {name}" if name.isdecimal() else f"{name.capitalize()} actor"
    facts = [f"Run {folder}"]
    facts += [f"{key} {about[key]}" for key in ("preset", "seed") if key in about]
    return episode.named(title, ", ".join(facts))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m reacher.watch",
        description=__doc__.splitlines()[0],
        epilog="An ACTOR is best, last, the number of an episode that is kept, or random.",
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a run")
    parser.add_argument("--actor", help="which one (best, or the last that is kept)")
    parser.add_argument("--beside", metavar="ACTOR", help="a second one, under the same goals")
    parser.add_argument("--beside-run", type=Path, metavar="RUN", help="its run (the same)")
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
    parser.add_argument("--decisions", type=int, default=EPISODE_DECISIONS, help="1 to 1001 (1001)")
    parser.add_argument("--out", type=Path, default=OUT, help=f"the file ({OUT})")
    parser.add_argument("--open", action="store_true", help="open it in the browser")
    options = parser.parse_args(arguments)
    try:
        actor = options.actor or first_choice(options.run)
        content = watch_page(
            options.run,
            actor,
            options.beside,
            options.beside_run,
            options.arms,
            options.seed,
            options.decisions,
            goal_size=options.goal_size,
            goal_speed=options.goal_speed,
        )
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(content, encoding="utf-8")
    except (OSError, ModuleNotFoundError, TypeError, ValueError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    print(f"{options.out}  {options.out.stat().st_size / 1e6:.2f} MB, open it in a browser")
    if options.open:
        webbrowser.open(options.out.resolve().as_uri())
    return 0


def first_choice(folder: Path) -> str:
    """The actor to show where none is named: the best, or the last that is kept."""
    kept = pretrained_actors(folder) if folder.is_dir() else []
    return "best" if "best" in kept or not kept else kept[-1]


if __name__ == "__main__":
    sys.exit(main())
