"""Moving pictures of arms as animated PNG, which Jupyter, GitHub and browsers show as pictures."""

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image

from reacher.render import ArmRenderer

COLORS = 100  # of a moving picture, at most


def moving_arms(
    frames: Sequence[np.ndarray],
    milliseconds: int = 160,
    width: int = 900,
    first: int = 0,
) -> bytes:
    """Recorded arms as a moving picture.

    Args:
        frames: observations (arms, 33), one per frame, which shows for so many milliseconds.
        width: pixels.
        first: the frame that shows first; frame 0 follows the last one.
    """
    pictures = drawn_arms(frames, width)
    return animated_png(pictures[first:] + pictures[:first], milliseconds)


def drawn_arms(frames: Sequence[np.ndarray], width: int) -> list[np.ndarray]:
    """Pictures (height, width, 3) uint8 of observations (arms, 33); up to five arms in a row."""
    arms = len(frames[0])
    height = round(width * (0.2 if 1 < arms <= 5 else 0.55))
    renderer = ArmRenderer(arms, width=width, height=height)
    pictures = [renderer.frame(observations) for observations in frames]
    renderer.close()
    return pictures


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
