"""Draw the arms from kept weights: python doc/arm_pictures.py

It needs the packages reacher, pillow and safetensors, and neither PyTorch nor a run of the
notebook. On one machine the same weights give the same bytes.
"""

from __future__ import annotations

import base64
import sys
import time
import warnings
from pathlib import Path

import nbformat

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from reacher.actor import load_actor  # noqa: E402
from reacher.drawing.moving import animated_png, gallery, moving_arms, still_png  # noqa: E402
from reacher.episode import play_episode  # noqa: E402

NOTEBOOK = PROJECT / "Continuous_Control.ipynb"
DOC, KEPT = PROJECT / "doc", PROJECT / "checkpoints"
TRAINED, GALLERY = KEPT / "default" / "seed0", KEPT / "gallery" / "seed0"
GALLERY_EPISODES = 1, 2, 3, 5, 100
SEED = 1000  # of the goals
ARMS, GALLERY_ARMS = 20, 5
DECISIONS, FIRST = 62, 34  # of an episode that the picture shows, and the one it shows first
EVERY, GALLERY_DECISIONS, GALLERY_FIRST = 2, 76, 24  # decisions from frame to frame; first frame
REAL_TIME = 80  # ms of a decision
LARGEST = 1_500_000  # bytes


def trained_arms(decisions: int = DECISIONS, first: int = FIRST) -> dict[str, bytes]:
    """Twenty arms after training: the moving picture, and the still one."""
    episode = play_episode(load_actor(TRAINED), ARMS, SEED)
    label = (f"{ARMS} arms after training, in real time. A goal lights up and wears a ring while "
             "the hand touches it.")
    frames = list(episode.observations[:decisions])
    return {"trained_arms.png": moving_arms(frames, REAL_TIME, first=first, label=label),
            "trained_arms_still.png": moving_arms(frames[first:first + 1], label=label)}


def early_actors(decisions: int = GALLERY_DECISIONS, first: int = GALLERY_FIRST
                 ) -> dict[str, bytes]:
    """The same arms and goals with actors of early episodes and the last: moving, and still."""
    rows = []
    for number in GALLERY_EPISODES:
        episode = play_episode(load_actor(GALLERY, str(number)), ARMS, SEED)
        rows.append((f"{number} episode{'s' * (number > 1)}", f"score {episode.scores.mean():.1f}",
                     list(episode.observations[:decisions:EVERY, :GALLERY_ARMS])))
    frames = gallery(rows, "The same arms and the same goals after so many episodes of training, "
                     "in real time", first=first)
    return {"gallery.png": animated_png(frames, EVERY * REAL_TIME),
            "gallery_still.png": still_png(frames[0])}


def attach(pictures: dict[str, bytes]) -> None:
    """Put new pictures into the notebook's first cell, where it has them attached."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    attachments = notebook.cells[0].get("attachments", {})
    for name in attachments.keys() & pictures.keys():
        attachments[name] = {"image/png": base64.b64encode(pictures[name]).decode()}
    nbformat.write(notebook, NOTEBOOK)


def main() -> None:
    warnings.simplefilter("error")  # flat pictures are not what is asked for here
    pictures = {}
    for make in (trained_arms, early_actors):
        begin = time.perf_counter()
        made = make()
        for name, content in made.items():
            if len(content) > LARGEST:
                raise RuntimeError(f"{name} has {len(content)} bytes, more than {LARGEST}")
            (DOC / name).write_bytes(content)
            print(f"doc/{name}  {len(content) / 1e6:.2f} MB")
        print(f"  in {time.perf_counter() - begin:.0f} s")
        pictures |= made
    attach(pictures)


if __name__ == "__main__":
    main()
