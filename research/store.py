"""Storing results in `<folder>/<plan>/<variant>.csv`, a line for each episode of each seed.

`tutorial.results` reads them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from research.machine import hash_of, this_machine
from research.training import COLUMNS, Row


def write_whole(path: Path, text: str) -> None:
    """Write into a temporary file, which then takes the file's name."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(text, "utf-8", newline="\n")
    os.replace(temporary, path)


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
    write_whole(path, "\n".join([",".join(COLUMNS), *lines, ""]))
    note_machine(path.parent, {f"{path.stem}, seed {row[0]}" for row in rows})


def note_machine(folder: Path, runs: Iterable[str]) -> None:
    """Add runs to the file that says on which kind of machine they ran; see `research.machine`."""
    machine = this_machine()
    path = folder / f"machine-{hash_of(json.dumps(machine))}.json"
    known = json.loads(path.read_text())["runs"] if path.exists() else []
    about = {**machine, "runs": sorted({*known, *runs})}
    write_whole(path, json.dumps(about, indent=1) + "\n")
