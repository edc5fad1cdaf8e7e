"""Drawings that explain: the arm, how data flows, the sum tree, n-step windows, noise, values.

Each draws what it is given and returns the figure; nothing in them is measured here.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

from tutorial.figures import BLUE, GREEN, ORANGE, PURPLE

GRAY, DARK_PURPLE = "0.4", "#8a3f6c"  # the second for text
ARROW = {"arrowstyle": "-|>", "mutation_scale": 12, "shrinkA": 0, "shrinkB": 0}


class Drawing(Figure):
    """A figure that a notebook keeps as SVG, too, which a web page can enlarge."""

    def _repr_svg_(self) -> str:
        file = io.StringIO()
        with plt.rc_context({"svg.hashsalt": "drawing"}):  # the same identifiers each time
            self.savefig(file, format="svg", bbox_inches="tight", metadata={"Date": None})
        return file.getvalue()


def blank(width: float, height: float, right: float, top: float) -> tuple[Figure, Axes]:
    """A figure without axes, its drawing units 0 to right and 0 to top, equal both ways."""
    figure, axes = plt.subplots(figsize=(width, height), layout="constrained", FigureClass=Drawing)
    axes.set(xlim=(0, right), ylim=(0, top), aspect="equal")
    axes.axis("off")
    return figure, axes


def arrow(
    axes: Axes,
    start: tuple,
    end: tuple,
    text: str = "",
    place: tuple = (0, 0),
    bend: float = 0.0,
    color: str = GRAY,
    **style: object,
) -> None:
    """An arrow with a word beside its middle, moved by `place`."""
    axes.add_patch(
        FancyArrowPatch(
            start, end, connectionstyle=f"arc3,rad={bend}", color=color, **ARROW | style
        )
    )
    if text:
        middle = (np.array(start) + end) / 2 + place
        axes.text(
            *middle,
            text,
            ha="center",
            va="center",
            fontsize=8.5,
            color=color,
            backgroundcolor=(1, 1, 1, 0.75),
        )


def box(
    axes: Axes,
    x: float,
    y: float,
    text: str,
    width: float = 2.6,
    height: float = 1.0,
    color: str = BLUE,
    strong: bool = False,
) -> None:
    """A rounded box with text in its middle; a strong one stands out."""
    axes.add_patch(
        FancyBboxPatch(
            (x - width / 2, y - height / 2),
            width,
            height,
            linewidth=2.6 if strong else 1.3,
            boxstyle="round,pad=0.05,rounding_size=0.15",
            edgecolor=color,
            facecolor=(*plt.matplotlib.colors.to_rgb(color), 0.45 if strong else 0.12),
        )
    )
    axes.text(x, y, text, ha="center", va="center", fontsize=9)


def draw_arm() -> Figure:
    """One arm with its joints, torques, goal and reward, seen from the side."""
    figure, panels = plt.subplots(
        1,
        2,
        figsize=(9, 4.2),
        layout="constrained",
        width_ratios=[1.15, 1],
        FigureClass=Drawing,
    )
    side, above = panels
    shoulder, elbow = np.array([0.0, 0.0]), 7 * np.array([0.62, -0.785])
    hand = elbow + 6 * np.array([0.86, 0.51])
    goal = np.array([8.0, -1.0])
    side.plot([-3, 10.8], [-1, -1], color=GRAY, linewidth=0.8, linestyle=":")
    side.add_patch(Circle(goal, 2.5, facecolor=PURPLE, alpha=0.3))
    side.add_patch(Circle(hand, 1.0, facecolor=BLUE, zorder=3))
    side.plot(*np.stack([shoulder, elbow]).T, color="0.3", linewidth=7, solid_capstyle="round")
    side.plot(*np.stack([elbow, hand]).T, color="0.5", linewidth=6, solid_capstyle="round")
    for joint, name, place in (
        (shoulder, "shoulder: fixed,\nbends about x and z", (-0.6, 1.0)),
        (elbow, "elbow: bends\nabout x and z", (-1.1, -1.0)),
    ):
        side.plot(*joint, "o", color="white", markeredgecolor="0.2", markersize=9, zorder=4)
        side.annotate(name, joint, xytext=joint + place, ha="right", va="center", fontsize=8.5)
    side.annotate(
        "upper arm\n7 m",
        (shoulder + elbow) / 2,
        xytext=(-3.4, -3.4),
        fontsize=8.5,
        arrowprops={"arrowstyle": "-", "color": GRAY},
    )
    side.annotate(
        "forearm\n6 m",
        (elbow + hand) / 2,
        xytext=(7.4, -6.2),
        fontsize=8.5,
        arrowprops={"arrowstyle": "-", "color": GRAY},
    )
    side.annotate(
        "hand: 2 m across",
        hand,
        xytext=(2.2, 3.9),
        fontsize=8.5,
        arrowprops={"arrowstyle": "-", "color": GRAY},
    )
    side.annotate(
        "goal: 5 m across.\nWhile they overlap,\n+0.01 each physics step",
        goal + (1.2, 2.2),
        xytext=(8.0, 3.0),
        fontsize=8.5,
        color=DARK_PURPLE,
        arrowprops={"arrowstyle": "-", "color": PURPLE},
    )
    arrow(side, (-2.7, -7.6), (-2.7, -5.6), color="0.2")
    arrow(side, (-2.7, -7.6), (-0.7, -7.6), color="0.2")
    side.text(-2.7, -5.3, "y, up", fontsize=8.5, ha="center")
    side.text(-0.5, -7.6, "x", fontsize=8.5, va="center")
    side.set(xlim=(-5.2, 13.5), ylim=(-8.4, 5.2), aspect="equal", title="from the side")
    circle = np.linspace(0, 2 * np.pi, 200)
    above.plot(8 * np.cos(circle), 8 * np.sin(circle), color=GRAY, linewidth=0.8, linestyle=":")
    above.add_patch(Circle((8, 0), 2.5, facecolor=PURPLE, alpha=0.3))
    above.add_patch(Circle((hand[0], 0), 1.0, facecolor=BLUE, zorder=3))
    above.plot([0, elbow[0]], [0, 0], color="0.3", linewidth=7, solid_capstyle="round")
    above.plot([elbow[0], hand[0]], [0, 0], color="0.5", linewidth=6, solid_capstyle="round")
    above.plot(0, 0, "o", color="white", markeredgecolor="0.2", markersize=9, zorder=4)
    arrow(above, (7.4, 4.6), (4.4, 7.5), color=DARK_PURPLE, bend=0.18)
    above.text(
        8.6,
        7.6,
        "up to 50 degrees\na second, either way",
        fontsize=8.5,
        color=DARK_PURPLE,
        ha="center",
    )
    above.annotate("8 m", (-4, 0.0), fontsize=8.5, ha="center", va="bottom")
    above.annotate("", (-8, 0), (0, 0), arrowprops={"arrowstyle": "<->", "color": GRAY})
    arrow(above, (-9.6, -9.6), (-7.6, -9.6), color="0.2")
    arrow(above, (-9.6, -9.6), (-9.6, -7.6), color="0.2")
    above.text(-7.4, -9.6, "x", fontsize=8.5, va="center")
    above.text(-9.6, -7.2, "z", fontsize=8.5, ha="center")
    above.set(xlim=(-10.5, 11.5), ylim=(-10.5, 9), aspect="equal", title="from above")
    for axes in panels:
        axes.axis("off")
    return figure


def draw_mirrors() -> Figure:
    """One arm from above with its three mirror images, and how the goals of all four move."""
    figure, panel = plt.subplots(figsize=(5.2, 5.2), layout="constrained", FigureClass=Drawing)
    elbow, hand, goal = (np.array(place) for place in ((3.5, 2.2), (5.0, 6.0), (5.2, 6.1)))
    around = np.linspace(0, 2 * np.pi, 200)
    panel.plot(8 * np.sin(around), 8 * np.cos(around), color=GRAY, linewidth=0.8, linestyle=":")
    panel.fill([0, 10.5, 10.5, 0], [0, 0, 10.5, 10.5], color=BLUE, alpha=0.06, linewidth=0)
    for x, z in itertools.product((1, -1), repeat=2):
        signs, seen = np.array([x, z]), x == z == 1
        color = BLUE if seen else GRAY
        panel.add_patch(Circle(signs * goal, 2.5, facecolor=PURPLE, alpha=0.35 if seen else 0.15))
        path = np.array([(0.0, 0.0), elbow, hand]) * signs
        panel.plot(*path.T, color="0.3" if seen else "0.65", linewidth=6, solid_capstyle="round")
        panel.add_patch(Circle(signs * hand, 1.0, facecolor=color, zorder=3))
        ahead = 8 * np.array([np.sin(1.15), np.cos(1.15)])
        start = 8 * np.array([np.sin(0.95), np.cos(0.95)])
        panel.annotate(
            "",
            signs * ahead,
            xytext=signs * start,
            arrowprops={"arrowstyle": "->", "color": PURPLE, "linewidth": 1.5},
        )
        name = ", ".join(
            "$-$" * int(sign < 0) + axis for sign, axis in zip(signs, "xz", strict=True)
        )
        panel.text(*(signs * (9.0, 9.6)), name, ha="center")
    for vertical, name in ((True, "the mirror x = 0"), (False, "the mirror z = 0")):
        line, place = (panel.axvline, (0.2, -10.3)) if vertical else (panel.axhline, (-10.4, 0.3))
        line(0, color=BLUE, linewidth=1.2, linestyle="--")
        panel.text(*place, name, fontsize=8.5, color=BLUE)
    panel.set(xlim=(-10.6, 10.6), ylim=(-10.6, 10.6), xlabel="x, m", ylabel="z, m", aspect="equal")
    return figure


PARTS = ("", "mirrors", "n-step", "replay", "noise")  # in the order in which the agent gets them


def draw_flow(part: str = "") -> Figure:
    """How data flows: arms, replay buffer, learner, and back to the arms.

    Args:
        part: the improvement that stands out, one of PARTS, with those before it; empty: DDPG
            without any of them.
    """
    have = PARTS[1 : PARTS.index(part) + 1]

    def strong(name):
        return {"strong": name == part}

    figure, axes = blank(9, 3.9, 18.6, 8.0)
    box(axes, 2.0, 6.2, "20 arms", 2.8)
    if "n-step" in have:
        box(axes, 7.0, 6.2, "n-step windows", 3.2, **strong("n-step"))
        arrow(axes, (3.5, 6.2), (5.3, 6.2), "s, a, r", (0, 0.55))
        arrow(axes, (8.7, 6.2), (10.8, 6.2), "transition", (0, 0.55))
    else:
        arrow(axes, (3.5, 6.2), (10.8, 6.2), "transition", (0, 0.55))
    buffer, sampled = ("replay buffer", "sample")
    if "replay" in have:
        buffer, sampled = "replay buffer\nwith a sum tree", "sample by\npriority"
        arrow(axes, (12.6, 4.2), (12.6, 5.4), "|TD error|", (-1.15, 0.0), color=ORANGE)
    box(axes, 12.6, 6.2, buffer, 3.4, 1.4, **strong("replay"))
    arrow(axes, (14.4, 6.2), (16.8, 4.0), sampled, (0.9, 0.45), bend=-0.3)
    box(axes, 16.8, 3.4, "batch", 2.8)
    mirrored = "\nin one quarter" if "mirrors" in have else ""
    box(axes, 12.6, 3.4, f"critic  Q{mirrored}", 2.8, 1.3, ORANGE, **strong("mirrors"))
    box(axes, 12.6, 0.9, "target networks", 3.4, color=GRAY)
    lines, height = f"actor  μ{mirrored}", 1.3
    if "noise" in have:
        lines, height = f"{lines},\nwith noisy weights", 1.7
    box(axes, 7.0, 3.4, lines, 2.9, height, GREEN, strong=part in ("mirrors", "noise"))
    box(axes, 2.0, 3.4, "action noise", 3.0, 1.4, GREEN)
    arrow(axes, (3.2, 5.4), (5.5, 4.1), "s", (0.35, 0.3))
    arrow(axes, (15.3, 3.4), (14.1, 3.4))
    arrow(axes, (11.1, 3.4), (8.5, 3.4), "slope of Q", (0, 0.55), color=ORANGE)
    arrow(axes, (5.5, 3.4), (3.6, 3.4), "torques", (0, 0.55), color=GREEN)
    arrow(axes, (2.0, 4.2), (2.0, 5.6), color=GREEN)
    arrow(axes, (13.0, 1.5), (13.0, 2.65), "target y", (0.95, 0))
    arrow(axes, (12.2, 2.65), (12.2, 1.5), "follow\nslowly", (-1.0, 0))
    arrow(axes, (16.8, 2.8), (14.5, 0.9), "r, s'", (1.3, -0.7), bend=-0.25)
    arrow(axes, (7.0, 2.45), (10.8, 0.9), "follow slowly", (-0.4, -0.45), bend=0.25)
    return figure


def draw_tree(tree: np.ndarray, value: float) -> Figure:
    """A sum tree, and the way of a value from its root to a leaf.

    Args:
        tree: (2 * leaves,) as the notebook's; node 0 is not used.
        value: from 0 to below the root's.
    """
    leaves = len(tree) // 2
    depth = leaves.bit_length() - 1
    figure, axes = blank(8, 1.1 * (depth + 1) + 0.5, 2.0 * leaves, 2.2 * (depth + 1))

    def place(node):
        level = node.bit_length() - 1
        width = 2.0 * leaves / 2**level
        return width * (node - 2**level + 0.5), 2.2 * (depth - level) + 1.1

    walk, left_over, steps = [1], value, []
    while walk[-1] < leaves:
        left = 2 * walk[-1]
        if left_over >= tree[left]:
            steps.append(
                f"{left_over:g} ≥ {tree[left]:g}: right,\n{left_over:g} - {tree[left]:g}"
                f" = {left_over - tree[left]:g} are left"
            )
            left_over -= tree[left]
            walk.append(left + 1)
        else:
            steps.append(f"{left_over:g} < {tree[left]:g}: left")
            walk.append(left)
    for node in range(2, 2 * leaves):
        on = node in walk
        axes.plot(
            *np.stack([place(node // 2), place(node)]).T,
            zorder=1,
            color=ORANGE if on else "0.75",
            linewidth=2.5 if on else 1,
        )
    for node in range(1, 2 * leaves):
        x, y = place(node)
        color = ORANGE if node in walk else BLUE
        axes.add_patch(
            Circle(
                (x, y),
                0.55,
                facecolor="white",
                edgecolor=color,
                zorder=2,
                linewidth=2 if node in walk else 1.2,
            )
        )
        axes.text(x, y, f"{tree[node]:g}", ha="center", va="center", fontsize=10, zorder=3)
        axes.text(x + 0.5, y + 0.52, f"{node}", fontsize=7, color=GRAY, zorder=3)
    for leaf in range(leaves):
        x, y = place(leaves + leaf)
        axes.text(
            x,
            y - 0.95,
            f"leaf {leaf}",
            ha="center",
            fontsize=8,
            color=ORANGE if leaves + leaf in walk else GRAY,
        )
    for node, text in zip(walk, steps, strict=False):
        x, y = place(node)
        axes.text(x - 0.8, y + 0.1, text, fontsize=8, color=ORANGE, ha="right", va="center")
    axes.text(
        place(1)[0] + 0.8,
        place(1)[1] + 0.1,
        f"number {value:g}",
        fontsize=9,
        color=ORANGE,
        va="center",
        fontweight="bold",
    )
    return figure


def draw_networks(observations: int, actions: int, settings: Any) -> Figure:
    """Actor and critic, layer by layer, with their units; noisy layers are shaded."""
    rows = {
        "actor": [observations, *settings.actor_hidden, actions],
        "critic": [observations, *settings.critic_hidden, 1],
    }
    longest = max(map(len, rows.values()))
    figure, axes = blank(9, 2.6, 3.6 * longest + 1.4, 4.6)
    for (name, sizes), y, color in zip(rows.items(), (3.4, 1.2), (GREEN, ORANGE), strict=True):
        axes.text(0.1, y, f"{name}", ha="left", va="center", fontsize=10, color=color)
        for k, units in enumerate(sizes):
            x, last = 3.1 + 3.6 * k, k == len(sizes) - 1
            if k == 0:
                joined = f",\n{actions} torques" if name == "critic" else ""
                text = f"{units} numbers{joined}"
            elif last:
                text = f"{units} torques,\ntanh" if name == "actor" else "Q"
            else:
                text = f"{units} units,\nlayer norm"
            box(axes, x, y, text, 2.6, 1.2, color if k else GRAY)
            if k:
                noisy = name == "actor" and settings.noisy_layers and k > 1
                arrow(
                    axes,
                    (x - 2.25, y),
                    (x - 1.38, y),
                    linewidth=4 if noisy else 1.2,
                    color=PURPLE if noisy else GRAY,
                )
                if noisy:
                    axes.text(x - 1.8, y + 0.5, "noisy", fontsize=8, color=DARK_PURPLE, ha="center")
    return figure


def draw_phase(arms: int, schedules: Any) -> Figure:
    """The cycle of decisions and an update phase, with the numbers of the schedules' settings."""
    settings, gradient_steps = schedules.settings, schedules.num_gradient_steps(arms)
    by_priority = settings.replay == "prioritized"
    steps = [
        f"{arms} arms make\n{settings.train_freq} decisions each",
        f"store {arms * settings.train_freq} transitions"
        + ",\npriorities from\ntheir TD errors" * by_priority,
        f"sample {gradient_steps} batches\nof {settings.batch_size}" + " by priority" * by_priority,
        f"{gradient_steps} gradient steps:\ncritic, actor, targets",
    ] + ["set the priorities\nfrom the new\nTD errors"] * by_priority
    figure, axes = blank(9, 1.9, 4.2 * len(steps), 4.4)
    for k, text in enumerate(steps):
        x, color = 2.1 + 4.2 * k, BLUE if k == 0 else ORANGE if "gradient" in text else GRAY
        box(axes, x, 3.0, text, 3.3, 1.6, color)
        if k:
            arrow(axes, (x - 2.5, 3.0), (x - 1.75, 3.0))
    last = 2.1 + 4.2 * (len(steps) - 1)
    arrow(axes, (last, 2.1), (2.1, 2.1), bend=-0.13)
    axes.text(last / 2 + 1, 0.35, "and so on, until the episode ends", ha="center", fontsize=8.5)
    return figure


def draw_windows(decisions: int, n_step: int) -> Figure:
    """The windows of an episode on a time line: full ones, shortened ones, and what is dropped."""
    figure, axes = blank(8, 3.6, decisions + 4.2, 0.62 * decisions + 2.0)
    top = 0.62 * decisions + 0.5
    for t in range(decisions):
        axes.text(t + 0.8, top + 1.15, f"$s_{t}$", ha="center", fontsize=10)
        axes.text(t + 1.3, top + 0.6, f"$r_{t}$", ha="center", fontsize=9, color=GRAY)
        axes.plot([t + 0.8] * 2, [0.2, top + 0.9], color="0.9", linewidth=1, zorder=0)
    axes.plot([decisions + 0.55] * 2, [0.0, top + 1.5], color=ORANGE, linestyle="--", linewidth=1)
    axes.text(decisions + 0.8, top + 1.15, "reset", fontsize=9, color=ORANGE)
    last = decisions - 1  # the observation before the last action: what follows is never reported
    for t in range(decisions):
        y, end = top - 0.62 * t, min(t + n_step, last)
        if end == t:
            axes.plot([t + 0.8, t + 1.55], [y, y], color="0.75", linewidth=5, linestyle=(0, (1, 1)))
            axes.text(
                decisions + 0.8,
                y,
                "dropped: its successor is not known",
                fontsize=8.5,
                color=GRAY,
                va="center",
            )
            continue
        color = BLUE if end == t + n_step else PURPLE
        axes.plot([t + 0.8, end + 0.8], [y, y], color=color, linewidth=6, solid_capstyle="butt")
        axes.plot(end + 0.8, y, "o", color=color, markersize=8)
        rewards = f"{end - t} reward{'s' * (end - t > 1)}"
        axes.text(
            decisions + 0.8,
            y,
            f"{rewards}, then $\\gamma^{end - t}\\,Q(s_{end})$",
            fontsize=8.5,
            va="center",
            color=color if color == BLUE else DARK_PURPLE,
        )
    return figure


def draw_value_chain(
    states: int, sweeps: Sequence[int], n_steps: Sequence[int], discount: float = 0.9
) -> Figure:
    """How far value has traveled along a chain with a reward at its end.

    Every transition of the chain is updated once a sweep with the n-step target.
    """
    figure, panels = plt.subplots(
        len(n_steps), 1, figsize=(8, 0.9 * len(n_steps) + 0.7), sharex=True, layout="constrained"
    )
    for axes, n in zip(panels, n_steps, strict=True):
        values, rows = np.zeros(states + 1), []
        for sweep in range(max(sweeps) + 1):
            if sweep in sweeps:
                rows.append(values[:-1].copy())
            before = values.copy()
            for state in range(states):
                end = min(state + n, states)
                paid = discount ** (states - 1 - state) if end == states else 0.0
                values[state] = paid + (
                    discount ** (end - state) * before[end] if end < states else 0.0
                )
        axes.imshow(rows, cmap="Blues", vmin=0, vmax=1, aspect="auto")
        axes.set(yticks=range(len(sweeps)), yticklabels=[f"{s}" for s in sweeps], ylabel=f"n = {n}")
        axes.tick_params(labelsize=8)
        axes.set_xticks(np.arange(-0.5, states), minor=True)
        axes.set_yticks(np.arange(-0.5, len(sweeps)), minor=True)
        axes.grid(which="minor", color="white", linewidth=1)
        axes.tick_params(which="minor", length=0)
    panels[-1].set(
        xlabel="cell of the chain; the reward waits behind the last one", xticks=range(0, states, 2)
    )
    figure.supylabel("sweeps", fontsize=9)
    return figure
