"""Moving pictures of arms as animated PNG, which Jupyter, GitHub and browsers show as pictures."""

import io
import warnings
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

from reacher.points import arm_points
from reacher.render import ArmRenderer

COLORS = 100  # of a moving picture, at most
GOAL_SIZE = 5.0  # diameter, m


def moving_arms(
    frames: Sequence[np.ndarray],
    milliseconds: int = 160,
    width: int = 900,
    first: int = 0,
) -> bytes:
    """Recorded arms as a moving picture; where OpenGL is missing, a warning and a plain still.

    Args:
        frames: observations (arms, 33), one per frame, which shows for so many milliseconds.
        width: pixels.
        first: the frame that shows first; frame 0 follows the last one.
    """
    try:
        pictures = drawn_arms(frames, width)
    except RuntimeError as error:
        warnings.warn(str(error), stacklevel=3)
        return plain_still(frames[first])
    return animated_png(pictures[first:] + pictures[:first], milliseconds)


def drawn_arms(frames: Sequence[np.ndarray], width: int) -> list[np.ndarray]:
    """Pictures (height, width, 3) uint8 of observations (arms, 33); up to five arms in a row."""
    arms = len(frames[0])
    renderer = ArmRenderer(arms, GOAL_SIZE, width, round(width * (0.2 if 1 < arms <= 5 else 0.55)))
    pictures = [renderer.frame(observations) for observations in frames]
    renderer.close()
    return pictures


def plain_still(observations: np.ndarray) -> bytes:
    """Arms (arms, 33) from the front, side by side, by matplotlib, as PNG."""
    figure, axes = plt.subplots(figsize=(8, 2))
    for arm, observation in enumerate(observations):
        points: list = [point[:2] + [24 * arm, 0] for point in arm_points(observation).values()]
        axes.plot(*np.transpose(points[:3]), color="0.4", linewidth=3)  # base, elbow, hand
        axes.add_patch(plt.Circle(points[3], GOAL_SIZE / 2, color="C6", alpha=0.4))
        axes.add_patch(plt.Circle(points[2], 1, color="C0"))
    axes.set(aspect="equal", xlim=(-15, 24 * len(observations) - 9), ylim=(-15, 15))
    axes.axis("off")
    figure.savefig(file := io.BytesIO())
    plt.close(figure)
    return file.getvalue()


def animated_png(pictures: Sequence[np.ndarray], milliseconds: int = 160) -> bytes:
    """Pictures (height, width, 3) uint8 as an animated PNG, each for so many milliseconds.

    All frames share a palette, and a frame holds only what changed, so the file stays small.
    """
    some = Image.fromarray(np.concatenate(pictures[:: -(-len(pictures) // 6)]))
    base: Any = some.quantize(COLORS, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    frames, before = [], None
    for picture in pictures:
        image = Image.fromarray(picture).quantize(palette=base, dither=Image.Dither.NONE)
        numbers = np.asarray(image) + np.uint8(1)
        frames.append(Image.fromarray(np.where(numbers == before, np.uint8(0), numbers)))
        frames[-1].putpalette([0, 0, 0, *base.getpalette()[: 3 * COLORS]])  # 0 is see-through
        before = numbers
    file, blend = io.BytesIO(), [0] + [1] * (len(frames) - 1)  # the first replaces, others go over
    options = {"save_all": True, "append_images": frames[1:], "loop": 0, "optimize": True}
    frames[0].save(file, "PNG", duration=milliseconds, blend=blend, transparency=0, **options)
    return file.getvalue()
