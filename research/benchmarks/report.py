"""The tables of `doc/benchmarks.md`, from what `results.json` holds."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

HEAD = """\
# Benchmarks

Measured by `python -m research.benchmarks` (`make bench`), which writes this page; not edited by
hand. `baselines.md` compares whole trainings with those of other agents. Times of gradient steps
are medians over repetitions that take turns between ours and the others', with the interquartile
range. Whole trainings run one after another, each with one thread."""


def machine_lines(here: Mapping) -> str:
    """Machine and versions as two lines."""
    machine = here["machine"]
    packages = ", ".join(f"{name} {version}" for name, version in here["versions"].items())
    return (
        f"Machine: {machine['processor']}, {machine['cores']} cores, {machine['memory']}, "
        f"{machine['system']}.\n\nVersions: {packages}."
    )


def render(rows: Mapping[str, Mapping], modules: Mapping[str, ModuleType]) -> str:
    """The whole page.

    Args:
        rows: the content of results.json.
        modules: the rows' modules by name, in the order of the page.
    """
    there = {name: rows[name] for name in modules if rows.get(name, {}).get("measured")}
    absent = [modules[name].TITLE for name in modules if name not in there]
    parts = [HEAD]
    places = [row["here"] for row in there.values()]
    same = all(place == places[0] for place in places)
    if places and same:
        parts.append(machine_lines(places[0]))
    if absent:
        parts.append(f"Not measured yet: {', '.join(absent)}.")
    for name, row in there.items():
        module = modules[name]
        parts += [f"## {module.TITLE}", module.EXPLANATION, module.table(row["measured"])]
        parts.append(f"Measured on {row['date']}: `python -m research.benchmarks --only {name}`.")
        if not same:
            parts.append(machine_lines(row["here"]))
    return "\n\n".join(parts) + "\n"
