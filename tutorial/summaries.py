"""What a run's numbers say, in lines of text."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from IPython.display import Markdown

from tutorial.results import as_markdown
from tutorial.scores import SOLVED_SCORE, first_at, solved_at


def training_summary(scores: Mapping[str, np.ndarray]) -> str:
    """When a training first reached 30 and was solved, and its means.

    Args:
        scores: as `read_scores` returns them.
    """
    lines = []
    for name, episode in (
        (f"first episode at {SOLVED_SCORE:g}", first_at(scores["score"])),
        ("solved at episode", solved_at(scores["score"])),
    ):
        when = f", after {scores['seconds'][episode - 1]:.0f} s of training" if episode else ""
        lines.append(f"{name}: {episode or 'not yet'}{when}")
    lines.append(
        f"mean of all {len(scores['score'])} episodes: {scores['score'].mean():.2f}, "
        f"of the last ten: {scores['score'][-10:].mean():.2f}"
    )
    return "\n".join(lines)


def value_summary(values: np.ndarray, returns: np.ndarray) -> str:
    """How a critic's values (decisions, arms) compare with the returns that followed."""
    value, followed = values.mean(), returns.mean()
    return f"mean value {value:.2f}, mean return {followed:.2f}, gap {value - followed:+.2f}"


def settings_table(model: Any) -> Markdown:
    """All hyperparameters of a class of settings, in the groups of the classes that add them."""
    last = {name: group for group in reversed(model.__mro__) for name in own_fields(group)}
    lines = []
    for group in dict.fromkeys(last.values()):
        lines.append([f"**{(group.__doc__ or group.__name__).rstrip('.')}**", "", "", "", ""])
        for name in own_fields(group):
            if last[name] is group:
                field = model.model_fields[name]
                others = field.json_schema_extra.values()
                lines.append([f"`{name}`", f"{field.default}", *others, field.description])
    head = ["setting", "here", "papers", "write-up", "meaning"]
    return Markdown(as_markdown(head, lines))


def own_fields(model: Any) -> list[str]:
    """The settings that a class adds, or gives another default, in their order."""
    fields = getattr(model, "model_fields", {})
    return [name for name in inspect.get_annotations(model) if name in fields]


def network_table(**networks: torch.nn.Module) -> Markdown:
    """The layers of networks by name, with the shapes and the numbers of their weights."""
    lines = []
    for title, network in networks.items():
        for layer in network.modules():
            weights = [*layer.parameters(recurse=False)]
            if weights:
                shapes = ", ".join(" x ".join(map(str, one.shape)) for one in weights)
                count = sum(one.numel() for one in weights)
                lines.append([title, type(layer).__name__, shapes, f"{count:,}"])
        whole = sum(one.numel() for one in network.parameters())
        lines.append([f"**{title}**", "", "", f"**{whole:,}**"])
    return Markdown(as_markdown(["network", "layer", "shapes", "weights"], lines))
