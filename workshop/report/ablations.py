"""One thing changed at a time, with version 1's default: `doc/ablations.md`, from the score files.

    python -m workshop.report.ablations

These are training scores, with exploration on: an agent without noise pays nothing for it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

import helpers
from workshop.paths import CHECKPOINTS, DOC
from workshop.report import statistics

FOLDER, PAGE = CHECKPOINTS / "ablations", DOC / "ablations.md"
BASE = "version_1"
WITHOUT_NOISY = "noise_gaussian"  # version 1's default without NoisyNet: a base itself
MEASURES = ("mean of 1-100", "mean of 81-100")


def measures(run: Mapping[str, np.ndarray]) -> dict[str, float | None]:
    """First episode at 30, and two means of training scores; None where a run is too short."""
    score, whole = run["score"], len(run["score"]) >= 100
    return {"first at 30": helpers.first_at(score),
            "mean of 1-100": float(score[:100].mean()) if whole else None,
            "mean of 81-100": float(score[80:100].mean()) if whole else None}


def changes(folder: Path) -> dict:
    """What differs from version 1's default in a run's settings, by name."""
    def settings(path):
        return json.loads((path / "seed0/hyperparameters.json").read_text())["hyperparameters"]

    usual = settings(FOLDER / BASE)
    return {name: value for name, value in settings(folder).items() if value != usual[name]}


def as_text(overrides: Mapping) -> str:
    """Overrides as one would type them."""
    return ", ".join(f"{name} = {json.dumps(value)}" for name, value in overrides.items())


def lines_of(base: str, names: list[str], groups: Mapping) -> list[str]:
    """A table of differences from a base: Welch's intervals, Holm's correction over the table."""
    tests = {}
    for name in names:
        for measure in MEASURES:
            one, other = ([run[measure] for run in groups[group]] for group in (name, base))
            if None not in one + other:
                tests[name, measure] = statistics.difference(one, other)
    corrected = dict(zip(tests, statistics.holm([test["p"] for test in tests.values()]),
                         strict=True))
    rows = ["| changed | seeds | first episode at 30: median (range) | "
            + " | ".join(f"{measure}, difference (95 %), p by Holm" for measure in MEASURES) + " |",
            "|---|---|---|---|---|"]
    for name in names:
        firsts = sorted(run["first at 30"] or np.inf for run in groups[name])
        first = f"{np.median(firsts):g} ({firsts[0]:g} to {firsts[-1]:g})".replace("inf", "never")
        cells = []
        for measure in MEASURES:
            if (name, measure) not in tests:
                cells.append("-")
                continue
            test, p = tests[name, measure], corrected[name, measure]
            ends = f"{test['low']:+.2f} to {test['high']:+.2f}"
            cells.append(f"{test['difference']:+.2f} ({ends}), {p:.3f}"
                         + " **shown**" * bool(p < 0.05))
        text = as_text(changes(FOLDER / name)) or "nothing"
        rows.append(f"| `{text}` | {len(groups[name])} | {first} | " + " | ".join(cells) + " |")
    return rows


def page() -> str:
    """The whole page."""
    folders = sorted(path.parents[1] for path in FOLDER.glob("*/seed0/scores.csv"))
    groups = {folder.name: [measures(run) for run in helpers.read_runs(folder).values()]
              for folder in folders}
    without = [name for name in groups if name != WITHOUT_NOISY
               and "noisy_layers" in changes(FOLDER / name)]
    others = [name for name in groups if name not in (BASE, *without)]
    spread = {measure: [run[measure] for run in groups[BASE]] for measure in MEASURES}
    usual = "; ".join(f"{measure} {np.mean(values):.2f} ({low:.2f} to {high:.2f})"
                      for measure, values in spread.items()
                      for low, high in [statistics.interval(values)])
    same = statistics.difference(*([run["mean of 1-100"] for run in groups[name]]
                                   for name in ("alpha_0", "uniform_replay")))
    return "\n".join([
        "# One thing changed at a time", "",
        "Written by `python -m workshop.report.ablations` from the score files in "
        "`checkpoints/ablations/`; not edited by hand. The agents are version 1's: four learning "
        "steps a decision where the present default has two, computed by PyTorch, 20 arms. Scores "
        "are *training* scores, with exploration on, so an agent without noise pays nothing for "
        "it. The questions were not all asked beforehand; the pages of version 1 drew more from "
        "these runs than they support. *Shown* here means: Welch's test, p below 0.05 after "
        "Holm's correction over all tests of the table. Two measures stand for much the same: "
        "over these runs the mean of 1-100 and the first episode at 30 correlate by -0.91. Both "
        "are squeezed by the ceiling of 40. With five seeds against ten a difference has to be "
        "about 1.5 points of the first measure, or 1.1 of the second, to be found four times out "
        "of five; a smaller one that is not shown may still be there.", "",
        f"Version 1's default, ten seeds (95 %, BCa bootstrap): {usual}.", "",
        "## Beside version 1's default", "",
        *lines_of(BASE, others, groups), "",
        "`priority_exponent = 0.0` and `replay = \"uniform\"` draw from the same distribution. "
        f"They differ by {same['difference']:+.2f} ({same['low']:+.2f} to {same['high']:+.2f}) in "
        "the mean of 1-100: so far apart are two groups of five seeds by chance alone.",
        "", "## Without NoisyNet, beside the same without it", "",
        *lines_of(WITHOUT_NOISY, without, groups), ""])


def main() -> None:
    PAGE.write_text(page())
    print(PAGE)


if __name__ == "__main__":
    main()
