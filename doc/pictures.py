"""The pictures of README and notebook, from kept weights and scores: python -m doc.pictures"""

import base64
import contextlib
import io
import re

import matplotlib.pyplot as plt
import nbformat
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from reacher.episode import play_episode
from reacher.moving import animated_png, drawn_arms, moving_arms
from reacher_page.page import STILL
from tutorial.notebook import definitions, learner_with
from tutorial.paths import CHECKPOINTS, DOC, NOTEBOOK, PROJECT
from tutorial.randomness import seed_everything
from tutorial.run import load_network
from tutorial.settings import make_settings

TRAINED = CHECKPOINTS / "whole" / "seed0"
GROUND = "#0e121b"
STYLE = [
    "dark_background",
    {"axes.facecolor": GROUND, "savefig.facecolor": GROUND, "figure.figsize": (8, 4)},
]


def played(file, arms):
    """What an actor of `whole_networks` sees in an episode, and its arms' mean score.

    Without a file it is untrained.
    """
    notebook = definitions()
    settings = make_settings(notebook.Hyperparameters, "default", {"engine": "torch"})
    agent = notebook.Agent(settings, seed_everything(0), learner_with("whole_networks"))
    if file:
        load_network(file, agent.learner.actor)
    episode = play_episode(agent.policy, arms, seed=1000)
    return list(episode.observations), episode.scores.mean()


def trained_arms():
    """Twenty arms after training, in real time, and a still picture."""
    frames, _ = played(TRAINED / "actor_best.safetensors", 20)
    (DOC / "trained_arms.png").write_bytes(moving_arms(frames[:55], 80, first=34))
    STILL.write_bytes(moving_arms(frames[34:35]))


def early_actors():
    """The same five arms and goals, a row for each of four actors."""
    rows = []
    for number in range(4):
        file = TRAINED / f"actor_episode{number}.safetensors" if number else None
        frames, _ = played(file, 5)
        row = drawn_arms(frames[:76:2], width=740)
        label, font = Image.new("RGB", (160, len(row[0])), GROUND), ImageFont.load_default(26)
        text = ("untrained", "practiced", "practiced\nmore", "trained")[number]
        ImageDraw.Draw(label).text((10, 40), text, "white", font)
        rows.append([np.concatenate([np.asarray(label), picture], axis=1) for picture in row])
    pictures = [np.concatenate(moment) for moment in zip(*rows, strict=True)]
    (DOC / "gallery.png").write_bytes(animated_png(pictures[24:] + pictures[:24], 160))


def learning_curves():
    """What the snippet of README draws, on a dark ground, as behind the arms."""
    [snippet] = re.findall(r"```python\n(.*?)```", (PROJECT / "README.md").read_text(), re.DOTALL)
    with contextlib.chdir(PROJECT), plt.style.context(STYLE):
        exec(snippet.replace("show()", 'savefig("doc/scores.png", metadata={"Software": None})'))


def small_figures():
    """Give the notebook's figures a palette of 128 colors: a quarter of the bytes."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    for output in (one for cell in notebook.cells for one in cell.get("outputs", [])):
        data = output.get("data", {})
        if "image/png" in data:
            picture = Image.open(io.BytesIO(base64.b64decode(data["image/png"])))
            if picture.mode == "P":  # as moving pictures are
                continue
            small = picture.convert("RGB").quantize(128, dither=Image.Dither.NONE)
            small.save(file := io.BytesIO(), "PNG", optimize=True)
            data["image/png"] = base64.b64encode(file.getvalue()).decode()
    nbformat.write(notebook, NOTEBOOK)


if __name__ == "__main__":
    for draw in (trained_arms, early_actors, learning_curves, small_figures):
        draw()
