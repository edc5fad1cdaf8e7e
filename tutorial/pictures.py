"""The pictures of README and notebook, from kept weights and scores: python -m tutorial.pictures"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont

from reacher.episode import play_episode
from tutorial.figures import plot_scores
from tutorial.moving import animated_png, drawn_arms, moving_arms, still_png
from tutorial.notebook import definitions
from tutorial.paths import CHECKPOINTS, DOC
from tutorial.run_files import load_network
from tutorial.scores import read_scores

TRAINED, GALLERY = CHECKPOINTS / "default" / "seed0", CHECKPOINTS / "gallery" / "seed0"
GROUND = "#0e121b"


def played(file, arms):
    """What an actor of the preset `default` sees in an episode, and its arms' mean score."""
    notebook = definitions()
    sizes = notebook.OBSERVATION_SCALE, 4, notebook.make_hyperparameters("default", {})
    actor = notebook.Actor(*sizes).eval()
    load_network(file, actor)
    with torch.no_grad():
        episode = play_episode(lambda seen: actor(torch.from_numpy(seen)).numpy(), arms, seed=1000)
    return list(episode.observations), episode.scores.mean()


def trained_arms():
    """Twenty arms after training, in real time, and a still picture."""
    frames, _ = played(TRAINED / "actor_best.safetensors", 20)
    (DOC / "trained_arms.png").write_bytes(moving_arms(frames[:62], 80, first=34))
    (DOC / "trained_arms_still.png").write_bytes(moving_arms(frames[34:35]))


def early_actors():
    """The same five arms and goals, a row for each of five actors."""
    rows = []
    for number in (1, 2, 3, 5, 20):
        frames, score = played(GALLERY / f"actor_episode{number}.safetensors", 5)
        row = drawn_arms(frames[:76:2], width=740)
        label, font = Image.new("RGB", (160, len(row[0])), GROUND), ImageFont.load_default(18)
        text = f"{number} episode{'s' * (number > 1)}\nscore {score:.1f}"
        ImageDraw.Draw(label).text((18, 50), text, "white", font)
        rows.append([np.concatenate([np.asarray(label), picture], axis=1) for picture in row])
    pictures = [np.concatenate(moment) for moment in zip(*rows, strict=True)]
    (DOC / "gallery.png").write_bytes(animated_png(pictures[24:] + pictures[:24], 160))
    (DOC / "gallery_still.png").write_bytes(still_png(pictures[24]))


def learning_curve():
    """Scores of the kept run on a dark ground, as behind the arms."""
    with plt.style.context(["dark_background", {"axes.facecolor": GROUND}]):
        figure = plot_scores(read_scores(TRAINED / "scores.csv"), "preset default, seed 0, 20 arms")
        figure.axes[0].texts[0].set_color("0.8")
        figure.savefig(DOC / "scores.png", dpi=110, facecolor=GROUND, metadata={"Software": None})


if __name__ == "__main__":
    for draw in (trained_arms, early_actors, learning_curve):
        draw()
