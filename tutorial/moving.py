"""Moving pictures as animated PNG: ordinary pictures to Jupyter, GitHub and browsers."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np

from reacher.drawing import style
from reacher.drawing.picture import arms_picture
from reacher.drawing.points import columns_for, require_arms

COLORS = 96  # of a moving picture, at most
EDGE_SHADES = 15  # half see-through shades at a card's rounded corners


def moving_arms(
    frames: Sequence[np.ndarray],
    milliseconds: int = 160,
    width: int = 900,
    goal_size: float = 5.0,
    first: int = 0,
    label: str = "",
) -> bytes:
    """Recorded arms as a moving picture: a dark card with rounded corners, for any page.

    Args:
        frames: observations (arms, 33), one per frame.
        milliseconds: how long a frame shows; 80 is real time for every decision.
        width: pixels.
        goal_size: diameter of the goals, m.
        first: the frame that shows first; the last is followed by frame 0, and that by those up
            to `first`, so that the picture goes round without a jump but one.
        label: a line of text at the lower edge.

    Raises:
        ValueError: no frame, or observations of something else.
    """
    if not len(frames):
        raise ValueError("a moving picture needs a frame or more")
    arms = len(require_arms(frames[0]))
    columns = columns_for(arms)
    bottom = style.LABEL_HEIGHT if label else 0
    height = bottom + round(
        width * style.GRID_SHAPE * -(-arms // columns) / min(columns, arms)
        + width * style.GRID_EDGE
    )
    picture = arms_picture(arms, width, height, goal_size, bottom=bottom)
    try:
        drawn = [picture.frame(frame) for frame in frames]
    finally:
        picture.close()
    if label:
        drawn = [write(frame, [(style.CORNER, height - bottom // 2 - 4, label)]) for frame in drawn]
    return animated_png(drawn[first:] + drawn[:first], milliseconds)


def gallery(
    rows: Sequence[tuple[str, str, Sequence[np.ndarray]]],
    title: str,
    width: int = 900,
    first: int = 0,
) -> list[np.ndarray]:
    """Frames of several recordings of the same arms, one below the other, with a label each.

    Args:
        rows: of each recording a large and a small label, and its frames: observations (arms, 33).
        title: a line above them.
        width: of the picture, pixels.
        first: the frame that shows first, as for `moving_arms`.

    Returns:
        Pictures (height, width, 3) uint8, for `animated_png` and `still_png`.
    """
    arms = len(require_arms(rows[0][2][0]))
    side, high, top = style.GALLERY_LABELS, style.GALLERY_ROW, style.LABEL_HEIGHT
    picture = arms_picture(
        arms,
        width - side,
        high,
        columns=arms,
        framed=style.GALLERY_FRAMED,
        elevation=style.GALLERY_ELEVATION,
    )
    sky = np.round(255 * np.array(style.SKY)).astype(np.uint8)
    frames = []
    try:
        for moment in zip(*(frames for _, _, frames in rows), strict=True):
            card = np.tile(sky, (top + high * len(rows), width, 1))
            for k, observations in enumerate(moment):
                card[top + k * high + 1 : top + (k + 1) * high, side:] = picture.frame(
                    observations
                )[1:]
            frames.append(card)
    finally:
        picture.close()
    texts: list[tuple] = [(style.CORNER, top // 2, title, 18)]
    for k, (large, small, _) in enumerate(rows):
        middle = top + k * high + high // 2
        texts += [
            (style.CORNER, middle - 13, large, 20),
            (style.CORNER, middle + 13, small, 16, style.CARD_QUIET_TEXT),
        ]
    labeled = write(frames[0], texts)
    mask = np.zeros(labeled.shape[:2], bool)
    mask[:top] = mask[:, :side] = True
    for frame in frames:  # the labels are the same in each
        frame[mask] = labeled[mask]
    return frames[first:] + frames[:first]


def write(picture: np.ndarray, texts: Sequence[tuple], size: int = 17) -> np.ndarray:
    """A picture (height, width, 3) with texts on it.

    Args:
        texts: (left, middle, text), pixels, optionally with a size and a color.
    """
    from PIL import Image, ImageDraw, ImageFont

    image = Image.fromarray(picture)
    draw = ImageDraw.Draw(image)
    ink = style.CARD_TEXT if picture[-1, 0].mean() < 128 else style.PAGE_TEXT
    for left, middle, text, *more in texts:
        font = ImageFont.load_default(more[0] if more else size)
        draw.text((left, middle), text, more[1] if len(more) > 1 else ink, font, anchor="lm")
    return np.asarray(image)


def animated_png(
    pictures: Sequence[np.ndarray], milliseconds: int = 160, corner: int = style.CORNER
) -> bytes:
    """Pictures (height, width, 3) uint8 as an animated PNG with rounded corners.

    All frames share a palette, and a frame holds only what changed: so it stays small. The same
    pictures give the same bytes.

    Args:
        milliseconds: how long each shows; equal neighbors are joined to one.
        corner: radius, pixels.
    """
    from PIL import Image

    palette, numbers = with_one_palette(pictures, COLORS)
    height, width = pictures[0].shape[:2]
    cover = rounded(width, height, corner)
    shade = np.round(cover * (EDGE_SHADES + 1)).astype(np.uint8)  # 0 to EDGE_SHADES + 1
    edge = np.median(pictures[0][cover < 1], axis=0) if (cover < 1).any() else np.zeros(3)
    # Palette: 0 is see-through, then the half see-through ones of the edges, then the colors.
    colors = np.concatenate([np.tile(edge, (EDGE_SHADES + 1, 1)), palette]).astype(np.uint8)
    frames, before = [], None
    for number in numbers:
        indices = np.where(shade > EDGE_SHADES, number + EDGE_SHADES + 1, shade).astype(np.uint8)
        part = indices if before is None else np.where(indices == before, 0, indices)
        frames.append(Image.fromarray(part.astype(np.uint8)))
        frames[-1].putpalette(colors.tobytes())
        before = indices
    file = io.BytesIO()
    frames[0].save(
        file,
        "PNG",
        save_all=True,
        append_images=frames[1:],
        duration=milliseconds,
        loop=0,  # for ever
        blend=[0] + [1] * (len(frames) - 1),  # the first replaces, the others go over it
        transparency=bytes(round(255 * k / (EDGE_SHADES + 1)) for k in range(EDGE_SHADES + 1)),
        optimize=True,
    )
    return file.getvalue()


def still_png(picture: np.ndarray) -> bytes:
    """One picture (height, width, 3) uint8 as a PNG with rounded corners."""
    return animated_png([picture])


def with_one_palette(
    pictures: Sequence[np.ndarray], colors: int
) -> tuple[np.ndarray, list[np.ndarray]]:
    """A palette (colors, 3) for all pictures, and each as its numbers (height, width)."""
    from PIL import Image

    some = np.concatenate(pictures[:: -(-len(pictures) // 6)])
    base = Image.fromarray(some).quantize(
        colors, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE
    )
    palette = np.array((base.getpalette() or [])[: 3 * colors], np.uint8).reshape(-1, 3)
    if (some == 255).all(-1).mean() > 0.2:  # a white page stays white
        palette[palette.min(axis=1) > 240] = 255
    base.putpalette(palette.tobytes())
    return palette, [
        np.asarray(Image.fromarray(picture).quantize(palette=base, dither=Image.Dither.NONE))
        for picture in pictures
    ]


def rounded(width: int, height: int, corner: int) -> np.ndarray:
    """How much of each pixel (height, width) a card with rounded corners covers, 0 to 1."""
    x = np.abs(np.arange(width) + 0.5 - width / 2) - (width / 2 - corner)
    y = np.abs(np.arange(height) + 0.5 - height / 2) - (height / 2 - corner)
    beyond = np.hypot(x.clip(0)[None], y.clip(0)[:, None])
    return (corner + 0.5 - beyond).clip(0, 1)
