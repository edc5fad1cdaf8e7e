"""The pictures of README and notebook, from kept weights and scores.

    python -m tutorial.pictures

On one machine the same weights give the same bytes.
"""

from __future__ import annotations

import io
import time
import warnings

import matplotlib.pyplot as plt

from reacher.episode import play_episode
from tutorial.figures import plot_scores
from tutorial.moving import animated_png, gallery, moving_arms, still_png
from tutorial.paths import CHECKPOINTS, DOC
from tutorial.scores import read_scores
from web.actor import load_actor

TRAINED, GALLERY = CHECKPOINTS / "default" / "seed0", CHECKPOINTS / "gallery" / "seed0"
GALLERY_EPISODES = 1, 2, 3, 5, 20
SEED = 1000  # of the goals
GROUND = "#11151c"  # of the curve, as behind the arms
ARMS, GALLERY_ARMS = 20, 5
DECISIONS, FIRST = 62, 34  # of an episode that the picture shows, and the one it shows first
EVERY, GALLERY_DECISIONS, GALLERY_FIRST = 2, 76, 24  # decisions from frame to frame; first frame
REAL_TIME = 80  # ms of a decision
LARGEST = 1_500_000  # bytes


def trained_arms(decisions: int = DECISIONS, first: int = FIRST) -> dict[str, bytes]:
    """Twenty arms after training: the moving picture, and the still one."""
    episode = play_episode(load_actor(TRAINED), ARMS, SEED)
    label = (
        f"{ARMS} arms after training, in real time. A goal lights up and wears a ring while "
        "the hand touches it."
    )
    frames = list(episode.observations[:decisions])
    return {
        "trained_arms.png": moving_arms(frames, REAL_TIME, first=first, label=label),
        "trained_arms_still.png": moving_arms(frames[first : first + 1], label=label),
    }


def early_actors(
    decisions: int = GALLERY_DECISIONS, first: int = GALLERY_FIRST
) -> dict[str, bytes]:
    """The same arms and goals with actors of early episodes and the last: moving, and still."""
    rows = []
    for number in GALLERY_EPISODES:
        episode = play_episode(load_actor(GALLERY, str(number)), ARMS, SEED)
        rows.append(
            (
                f"{number} episode{'s' * (number > 1)}",
                f"score {episode.scores.mean():.1f}",
                list(episode.observations[:decisions:EVERY, :GALLERY_ARMS]),
            )
        )
    frames = gallery(
        rows,
        "The same arms and goals, in real time, after 1, 2, 3, 5 and 20 episodes of training",
        first=first,
    )
    return {
        "gallery.png": animated_png(frames, EVERY * REAL_TIME),
        "gallery_still.png": still_png(frames[0]),
    }


def learning_curve() -> dict[str, bytes]:
    """Scores of the kept run, on the same dark ground as the arms: no white box in a dark page."""
    with plt.style.context("dark_background"):
        figure = plot_scores(read_scores(TRAINED / "scores.csv"), "preset default, seed 0, 20 arms")
        figure.patch.set_facecolor(GROUND)
        for axes in figure.axes:
            axes.set_facecolor(GROUND)
            for text in axes.texts:
                text.set_color("0.8")
        file = io.BytesIO()
        figure.savefig(file, dpi=110, metadata={"Software": None})
        plt.close(figure)
    return {"scores.png": file.getvalue()}


def main() -> None:
    warnings.simplefilter("error")  # flat pictures are not what is asked for here
    for make in (trained_arms, early_actors, learning_curve):
        begin = time.perf_counter()
        for name, content in make().items():
            if len(content) > LARGEST:
                raise RuntimeError(f"{name} has {len(content)} bytes, more than {LARGEST}")
            (DOC / name).write_bytes(content)
            print(f"doc/{name}  {len(content) / 1e6:.2f} MB")
        print(f"  in {time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
