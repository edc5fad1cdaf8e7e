"""Tables of scores over seeds, as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from workshop.report import statistics
from workshop.training.scores import SOLVED_SCORE, first_at, solved_at

Runs = Mapping[str, Mapping[str, np.ndarray]]  # of several seeds, as `read_runs` returns them


def as_markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table; its cells are text."""
    return "\n".join([" | ".join(head), "|".join(["---"] * len(head)), *map(" | ".join, lines)])


def median_and_range(values: Sequence[float | None], form: str = "{:.3g}") -> str:
    """Of numbers over seeds, or None, which counts as larger than any."""
    numbers = [np.inf if value is None else value for value in values]
    low, middle, high = ("never" if number == np.inf else form.format(number) for number in (
        min(numbers), np.median(numbers), max(numbers)))
    return f"{middle} ({low} to {high})"


def mean_and_interval(values: Sequence[float]) -> str:
    """Mean over seeds with its 95 % interval (BCa bootstrap)."""
    low, high = statistics.interval(values)
    return f"{np.mean(values):.2f} ({low:.2f} to {high:.2f})"


def of_presets(kept: Mapping[str, Runs], evaluations: Mapping[str, Runs]) -> str:
    """What ten seeds of each preset reached, in training and in evaluations without noise.

    Args:
        kept: training scores by preset and seed.
        evaluations: of the same runs.
    """
    head = ["preset", "seeds", "first training score of 30: episode, median (range)",
            "seconds until then", "training scores of 1-100, mean (95 %)",
            "evaluations after 100, mean (95 %)", "lowest seed's", "solved at 100"]
    lines = []
    for name, runs in kept.items():
        firsts = {seed: first_at(run["score"]) for seed, run in runs.items()}
        seconds = [first and runs[seed]["seconds"][first - 1] for seed, first in firsts.items()]
        late = [run["score"][run["episode"] > 100].mean() for run in evaluations[name].values()]
        solved = sum(solved_at(run["score"]) == 100 for run in runs.values())
        lines.append([
            f"`{name}`", str(len(runs)), median_and_range([*firsts.values()]),
            median_and_range(seconds),
            mean_and_interval([run["score"][:100].mean() for run in runs.values()]),
            mean_and_interval(late), f"{min(late):.2f}", f"{solved} of {len(runs)}"])
    return as_markdown(head, lines)


def of_runs(groups: Mapping[str, Runs], mark: float = SOLVED_SCORE) -> str:
    """A line for each training: first episode at the mark, solved, mean of the last ten."""
    lines = [[name, seed, str(first_at(run["score"], mark) or "never"),
              str(solved_at(run["score"], mark) or "not"), f"{run['score'][-10:].mean():.2f}"]
             for name, runs in groups.items() for seed, run in runs.items()]
    return as_markdown(["agent", "seed", f"first episode at {mark:g}", "solved at",
                        "mean of the last ten"], lines)
