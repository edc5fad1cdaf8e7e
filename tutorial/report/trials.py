"""Tables of planned comparisons, from the files of `tutorial.experiments.trials`.

python -m tutorial.report.trials mirrors
"""

from __future__ import annotations

import argparse
import csv
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from tutorial.paths import CHECKPOINTS
from tutorial.report import statistics
from tutorial.report.tables import as_markdown, mean_and_interval, median_and_range
from tutorial.training.scores import first_at, solved_at

EVALUATION_ARMS = 20
Variant = Mapping[str, np.ndarray]  # column to (seeds, episodes), NaN where there is no number
Measure = Callable[[Variant], np.ndarray]  # to one number a seed


def read_variant(path: Path) -> Variant:
    """A variant's table, column by column, each (seeds, episodes), seeds in order."""
    table = np.genfromtxt(path, delimiter=",", names=True)
    seeds = len(np.unique(table["seed"]))
    return {name: table[name].reshape(seeds, -1) for name in table.dtype.names}


def read_plan(plan: str) -> dict[str, Variant]:
    """All variants of a plan by name."""
    folder = CHECKPOINTS / plan
    return {
        path.stem: read_variant(path)
        for path in sorted(folder.glob("*.csv"))
        if path.stem not in ("lost_arms", "numbers")
    }


def low_arms(plan: str) -> Counter[str]:
    """How often an arm scored below 38.5 after the end of learning, by variant."""
    path = CHECKPOINTS / plan / "lost_arms.csv"
    with open(path, newline="") as file:
        return Counter(line["variant"] for line in csv.DictReader(file))


def mean_score(episodes: int) -> Measure:
    """The mean training score of the first episodes."""
    return lambda variant: variant["score"][:, :episodes].mean(axis=1)


def after_learning(column: str, statistic: Callable = np.nanmean) -> Measure:
    """A statistic of evaluations in episodes without learning; NaN where there is none."""

    def measure(variant: Variant) -> np.ndarray:
        steps = np.diff(variant["num_updates"], axis=1, prepend=-1)
        later = np.where(steps > 0, np.nan, variant[column])
        return np.array([statistic(row) if np.isfinite(row).any() else np.nan for row in later])

    return measure


def count_after_learning(variant: Variant) -> int:
    """Evaluations of all seeds in episodes without learning."""
    return int(np.nansum(after_learning("evaluation", lambda row: np.isfinite(row).sum())(variant)))


def first_at_30(variant: Variant) -> list[int | None]:
    return [first_at(scores) for scores in variant["score"]]


def seconds_until_30(variant: Variant) -> list[float | None]:
    return [
        None if first is None else float(seconds[first - 1])
        for first, seconds in zip(first_at_30(variant), variant["seconds"], strict=True)
    ]


def summary_table(variants: Mapping[str, Variant], episodes: int, low: Mapping[str, int]) -> str:
    """What each variant reached, over its seeds.

    Args:
        episodes: at first, of which the mean training score is given.
        low: as `low_arms` counts them.
    """
    head = [
        "variant",
        f"mean of 1-{episodes} (95 %)",
        "first 30, episode",
        "solved at",
        "without noise, after learning",
        "lowest arm there",
        "arms below 38.5 there",
    ]
    lines = []
    for name, variant in variants.items():
        evaluations = after_learning("evaluation")(variant)
        worst = after_learning("worst_arm", np.nanmin)(variant)
        ended, arms = np.isfinite(evaluations), EVALUATION_ARMS * count_after_learning(variant)
        lines.append(
            [
                name,
                mean_and_interval(mean_score(episodes)(variant)),
                median_and_range(first_at_30(variant)),
                median_and_range([solved_at(scores) for scores in variant["score"]]),
                f"{evaluations[ended].mean():.2f}" if ended.any() else "-",
                f"{worst[ended].min():.1f}" if ended.any() else "-",
                f"{low.get(name, 0) / arms:.1%}" if ended.any() else "-",
            ]
        )
    return as_markdown(head, lines)


def comparisons_table(
    pairs: Sequence[tuple[str, Variant, Variant]], measures: Sequence[Measure], margin: float
) -> str:
    """Differences of pairs (title, variant, base), with Holm's correction over all of them.

    Args:
        measures: the primary measure of each pair.
        margin: within which two variants count as alike.
    """
    head = ["comparison", "difference (95 %)", "p", "p, Holm", "verdict"]
    rows, p = [], []
    for (title, variant, base), measure in zip(pairs, measures, strict=True):
        one, other = measure(variant), measure(base)
        found = statistics.difference(one, other)
        p.append(statistics.permutation_of_groups(one, other))
        alike = statistics.equivalence_of_groups(one, other, margin) < 0.05
        rows.append((title, found, alike))
    lines = [
        [
            title,
            f"{found['difference']:+.1f} ({found['low']:+.1f} to {found['high']:+.1f})",
            f"{raw:.1g}",
            f"{corrected:.1g}",
            "shown" if corrected < 0.05 else "alike" if alike else "not shown",
        ]
        for (title, found, alike), raw, corrected in zip(rows, p, statistics.holm(p), strict=True)
    ]
    return as_markdown(head, lines)


MIRRORS = ("none", "samples", "canonical")
AGENTS = {"default": 20, "fast": 20, "one_arm": 60}  # episodes of the primary measure


def mirrors_table() -> str:
    """What the mirrors bring `default` with twenty arms and with one."""
    variants, low = read_plan("mirrors"), low_arms("mirrors")
    chosen = {
        agent: {name: variants[name] for name in (f"{agent}_{kind}" for kind in MIRRORS)}
        for agent in ("default", "one_arm")
    }
    return "\n\n".join(summary_table(chosen[agent], AGENTS[agent], low) for agent in chosen)


def mirrors_report() -> str:
    """The tables of doc/mirrors.md."""
    variants = read_plan("mirrors")
    pairs = [
        (f"{agent}, {mirrors}", variants[f"{agent}_{mirrors}"], variants[f"{agent}_none"])
        for agent in AGENTS
        for mirrors in MIRRORS[1:]
    ]
    measures = [mean_score(AGENTS[title.split(",")[0]]) for title, *_ in pairs]
    low = low_arms("mirrors")
    one_arm = {name: variant for name, variant in variants.items() if name.startswith("one_arm")}
    others = {name: variant for name, variant in variants.items() if name not in one_arm}
    return "\n\n".join(
        [
            summary_table(others, 20, low),
            summary_table(one_arm, 60, low),
            comparisons_table(pairs, measures, margin=1.0),
        ]
    )


def extensions_report() -> str:
    """The tables of doc/extensions.ipynb."""
    variants = read_plan("extensions")
    names = {"default": "`default`", "td3": "TD3", "d4pg": "D4PG", "crossq": "CrossQ"}
    head = [
        "agent",
        "training scores of 1-20, mean (95 %)",
        "first training score of 30: episode, median (range)",
        "seconds until then",
        "seeds that ended learning",
        "without noise after that, mean (95 %)",
    ]
    lines = []
    for name, title in names.items():
        evaluations = after_learning("evaluation")(variants[name])
        ended = evaluations[np.isfinite(evaluations)]
        lines.append(
            [
                title,
                mean_and_interval(mean_score(20)(variants[name])),
                median_and_range(first_at_30(variants[name])),
                median_and_range(seconds_until_30(variants[name])),
                f"{len(ended)} of {len(evaluations)}",
                mean_and_interval(ended) if len(ended) > 1 else "-",
            ]
        )
    pairs = [
        (f"{names[name]} - `default`", variants[name], variants["default"])
        for name in ("td3", "d4pg", "crossq")
    ]
    compared = comparisons_table(pairs, [mean_score(20)] * len(pairs), margin=1.0)
    return f"{as_markdown(head, lines)}\n\n{compared}"


def tuned_report() -> str:
    """The table of doc/mirrors.md of both presets as they are now."""
    titles = {
        "default_1": "`default`, first round",
        "fast_1": "`fast`, first round",
        "default": "`default`",
        "fast": "`fast`",
    }
    variants, low = read_plan("mirrors_tuned"), low_arms("mirrors_tuned")
    return summary_table(
        {title: variants[name] for name, title in titles.items()},
        20,
        {title: low[name] for name, title in titles.items()},
    )


REPORTS = {
    "mirrors": mirrors_report,
    "mirrors_tuned": tuned_report,
    "extensions": extensions_report,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plan", choices=REPORTS)
    print(REPORTS[parser.parse_args().plan]())


if __name__ == "__main__":
    main()
