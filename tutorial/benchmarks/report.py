"""The tables of `doc/benchmarks.md`, from what `results.json` holds."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from tutorial.benchmarks import measure
from tutorial.benchmarks.measure import Target
from tutorial.report.tables import as_markdown

REACHED = {True: "reached", False: "**not reached**", None: "not measured"}
HEAD = """\
# Benchmarks

Measured by `python -m tutorial.benchmarks` (`make bench`), which writes this page; not edited by
hand. Programs that it names are in `tutorial/benchmarks/`. Times are medians over repetitions that
take turns between ours and the others', with the interquartile range. Whole
trainings run one after another, each with one thread. Results stand here as they were measured,
whether they reach what was set as a target beforehand or not."""


def machine_lines(here: Mapping) -> str:
    """Machine and versions as two lines."""
    machine = here["machine"]
    packages = ", ".join(f"{name} {version}" for name, version in here["versions"].items())
    return (
        f"Machine: {machine['processor']}, {machine['cores']} cores, {machine['memory']}, "
        f"{machine['system']}.\n\nVersions: {packages}."
    )


def targets_table(targets: list[Target]) -> str:
    """All targets with what was measured."""
    return as_markdown(
        ["target", "measured", ""],
        [[target.what, target.measured, REACHED[target.reached]] for target in targets],
    )


def seconds_table(measured: Mapping) -> str:
    """Median, quartiles and number of repetitions of every candidate, in µs."""
    lines = []
    for name, entry in measured.items():
        if "missing" in entry:
            lines.append([name, entry["missing"], "-", "-"])
            continue
        values = [1e6 * value for value in entry["seconds"]]
        low, high = measure.quartiles(values)
        middle = measure.median(values)
        lines.append([name, f"{middle:,.1f}", f"{low:,.1f} to {high:,.1f}", str(len(values))])
    return as_markdown(["", "median, µs", "quartiles, µs", "repetitions"], lines)


def row_tables(module: ModuleType, measured: Mapping) -> list[str]:
    """The row's own tables, or the table of seconds."""
    return module.tables(measured) if hasattr(module, "tables") else [seconds_table(measured)]


def render(
    rows: Mapping[str, Mapping], modules: Mapping[str, ModuleType], quick: bool = False
) -> str:
    """The whole page.

    Args:
        rows: the content of results.json.
        modules: the rows' modules by name, in the order of the page.
    """
    there = {name: rows[name] for name in modules if rows.get(name, {}).get("measured")}
    targets = [
        target for name, row in there.items() for target in modules[name].targets(row["measured"])
    ]
    absent = [modules[name].TITLE for name in modules if name not in there]
    parts = [HEAD]
    if quick:
        parts.append("**Quick run: tiny sizes that check the code. The numbers mean nothing.**")
    common = shared_environment(there)
    if common:
        parts.append(machine_lines(common))
    parts += ["## Targets", targets_table(targets)]
    if absent:
        parts.append(f"Not measured yet: {', '.join(absent)}.")
    for name, row in there.items():
        module = modules[name]
        parts += [f"## {module.TITLE}", module.EXPLANATION, *row_tables(module, row["measured"])]
        note = f"Measured on {row['date']}: `python -m tutorial.benchmarks --only {name}`."
        note += f" {row['note']}" if "note" in row else ""
        parts.append(note if row["finished"] else note + " **Cut short: not all of it is there.**")
        if not common:
            parts.append(machine_lines(row["here"]))
    return "\n\n".join(parts) + "\n"


def shared_environment(rows: Mapping[str, Mapping]) -> Mapping | None:
    """Machine and versions, if they are the same for all rows."""
    every = [row["here"] for row in rows.values()]
    return every[0] if every and all(here == every[0] for here in every) else None
