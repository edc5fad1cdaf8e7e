"""Stored results: `<folder>/<plan>/<variant>.csv`, a line for each episode of each seed."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from research.training import COLUMNS, Row
from tutorial.paths import CHECKPOINTS

HEAD = ",".join(COLUMNS)
Variant = dict[str, np.ndarray]  # column to (seeds, episodes), NaN where there is no number


def read_variant(path: Path) -> Variant:
    """A table, column by column, each (seeds, episodes), seeds in order.

    Raises:
        ValueError: seeds with different numbers of episodes.
    """
    table = np.genfromtxt(path, delimiter=",", names=True, ndmin=1)
    _, episodes = np.unique(table["seed"], return_counts=True)
    if len(set(episodes)) != 1:
        raise ValueError(f"{path} has seeds with {min(episodes)} to {max(episodes)} episodes")
    return {name: table[name].reshape(len(episodes), -1) for name in COLUMNS}


def read_plan(plan: str, folder: Path = CHECKPOINTS) -> dict[str, Variant]:
    """All variants of a plan that are stored, by name; not other tables that lie beside them."""
    paths = sorted((folder / plan).glob("*.csv"))
    return {
        path.stem: read_variant(path)
        for path in paths
        if path.read_text().partition("\n")[0] == HEAD
    }


def read_study(folder: Path = CHECKPOINTS) -> dict[str, Variant]:
    """The study's variants, `<task>_n_<n>_<replay>_<plain or noisy>`.

    Its tables have a line for each evaluation: n_step, replay, noisy_layers, seed, episode, score.
    """
    runs: dict[str, dict[int, list[tuple[float, float]]]] = {}
    for path in sorted((folder / "study").glob("*.csv")):
        with open(path, newline="") as file:
            for line in csv.DictReader(file):
                noisy = "noisy" if line["noisy_layers"] == "True" else "plain"
                name = f"{path.stem}_n_{line['n_step']}_{line['replay']}_{noisy}"
                points = runs.setdefault(name, {}).setdefault(int(line["seed"]), [])
                points.append((float(line["episode"]), float(line["score"])))
    found = {}
    for name, seeds in runs.items():
        table = np.array([one for _, one in sorted(seeds.items())])
        found[name] = {"episode": table[..., 0], "evaluation": table[..., 1]}
    return found


def stored_seeds(path: Path) -> set[int]:
    """The seeds that a table has; none where there is no table yet."""
    lines = path.read_text().splitlines()[1:] if path.exists() else []
    return {int(line.partition(",")[0]) for line in lines}


def store(path: Path, rows: Sequence[Row]) -> None:
    """Add the rows of a seed to a table, in order; the file is written whole or not at all."""
    lines = path.read_text().splitlines()[1:] if path.exists() else []
    lines += [",".join(row) for row in rows]
    lines.sort(key=lambda line: [int(number) for number in line.split(",")[:2]])
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.write_text("\n".join([HEAD, *lines, ""]))
    os.replace(temporary, path)
