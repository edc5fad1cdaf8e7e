"""Every table of the evidence pages, from the stored results: `python -m research tables`."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from research.bugs import BUGS
from research.plans import EARLY, PLANS, Measure, Plan, Weights
from research.statistics import Effect, detectable, difference, effect_of_seeds, judged
from tutorial.paths import plan_folder
from tutorial.results import Variant, as_markdown, first_at, mean_and_interval, read_plan, solved_at

Variants = Mapping[str, Variant]


def table_of(lines: Sequence[Mapping[str, str]]) -> str:
    """A Markdown table of lines, cells by column; a column comes where a line first has it."""
    columns = [*dict.fromkeys(column for line in lines for column in line)]
    return as_markdown(columns, [[line.get(column, "") for column in columns] for line in lines])


def median_and_range(values: Iterable[float | None]) -> str:
    """Of numbers over seeds, or None, which counts as larger than any."""
    numbers = [np.inf if value is None else value for value in values]
    low, middle, high = (
        "never" if number == np.inf else f"{number:.3g}"
        for number in (min(numbers), np.median(numbers), max(numbers))
    )
    return f"{middle} ({low} to {high})"


def told(effect: Effect) -> str:
    """An effect and its 95 % interval."""
    middle, low, high = (f"{effect[end]:+.1f}" for end in ("effect", "low", "high"))
    return f"{middle} ({low} to {high})"


def report(name: str) -> str:
    """All tables of a plan, from the trainings that are stored."""
    plan, variants = PLANS[name], read(name)
    if not variants:
        return f"## {name}\n\n{plan.question} Nothing is stored yet."
    parts = [f"## {name}", plan.question, means_table(plan, variants)]
    if effects := effects_of(plan, variants):
        parts.append(effects_table(judged(effects), "yes"))
    if secondary := contrasts_of(plan, variants, plan.secondary):
        parts += ["Secondary, not corrected:", effects_table(secondary, "secondary")]
    if name in MORE:
        parts.append(MORE[name](variants))
    return "\n\n".join(parts)


def read(name: str) -> dict[str, Variant]:
    """The stored variants of a plan, in its order where it has one."""
    found: dict[str, Variant] = read_plan(name) if plan_folder(name).exists() else {}
    if name == "rates":
        found |= at_best_rates(found)
    order = [*PLANS[name].changes()]
    return dict(
        sorted(found.items(), key=lambda one: order.index(one[0]) if one[0] in order else 999)
    )


def at_best_rates(variants: Variants) -> dict[str, Variant]:
    """Each agent at the rate with the best mean over the other half of the seeds."""
    measure, found = PLANS["rates"].measure, {}
    for name in {name.rsplit("_", 1)[0]: None for name in variants}:
        rates = [one for key, one in variants.items() if key.rsplit("_", 1)[0] == name]
        halves = np.array([np.split(measure(one), 2) for one in rates]).mean(axis=2)
        first, second = halves.argmax(axis=0)  # the rates that the halves would choose
        found[name] = {
            column: np.concatenate([np.split(rates[rate][column], 2)[half] for half, rate in parts])
            for parts in [((0, second), (1, first))]
            for column in rates[0]
        }
    return found


def means_table(plan: Plan, variants: Variants) -> str:
    """What each variant reached over its seeds."""
    lines = []
    title = "; ".join(map(str, (plan.measure, *plan.measures.values())))
    for name, variant in variants.items():
        values = plan.values(name, variant)
        line = {
            "variant": name,
            "seeds": str(len(values)),
            f"{title} (95 %)": mean_and_interval(values),
        }
        if "location" not in plan.changes().get(name, {}):  # else the scores are not those of arms
            line |= columns_of_arms(variant)
        lines.append(line)
    return table_of(lines)


def columns_of_arms(variant: Variant) -> dict[str, str]:
    """What only arms have, of which 40.04 is the largest score, as far as it is stored."""
    line, scores, evaluations = {}, variant["score"], variant["evaluation"]
    if is_early(variant):
        line["points lost, episodes 1 to 3 (95 %)"] = mean_and_interval(EARLY(variant))
        line["first evaluation of 30, episode"] = median_and_range(map(first_at, evaluations))
    if is_whole(variant):
        line["first training score of 30, episode"] = median_and_range(map(first_at, scores))
        if scores.shape[1] >= 100:
            line["solved at"] = median_and_range(map(solved_at, scores))
    if np.isfinite(evaluations).any():
        last = np.flatnonzero(np.isfinite(evaluations[0]))[-1]
        line["last evaluation (95 %)"] = mean_and_interval(evaluations[:, last])
    return line


def is_whole(variant: Variant) -> bool:
    """Whether all episodes are stored; of the study only those with an evaluation are."""
    return variant["episode"][0, -1] == variant["episode"].shape[1]


def is_early(variant: Variant) -> bool:
    """Whether there is an evaluation after every episode."""
    return is_whole(variant) and bool(np.isfinite(variant["evaluation"]).all())


def effects_of(plan: Plan, variants: Variants) -> list[Effect]:
    """What a plan tests, as far as it is stored."""
    found: list[Effect] = []
    pairs = plan.differences()
    for one, other in pairs:
        if one in variants and other in variants:
            groups = plan.values(one, variants[one]), plan.values(other, variants[other])
            found.append({"title": f"{one} - {other}", **difference(*groups, plan.margin)})
            family = {other} | {name for name, base in pairs if base == other}
            spread = [plan.values(name, variants[name]) for name in family & variants.keys()]
            found[-1]["finds"] = detectable(spread), detectable(spread, len(pairs))
            if is_early(variants[one]) and is_early(variants[other]):
                found[-1]["early"] = difference(EARLY(variants[one]), EARLY(variants[other]))
    return found + contrasts_of(plan, variants, plan.contrasts)


def contrasts_of(plan: Plan, variants: Variants, weights: Mapping[str, Weights]) -> list[Effect]:
    """Sums of variants within each seed, as far as they are stored."""
    found = []
    for title, shares in weights.items():
        if all(name in variants for name in shares):
            sums = [share * plan.values(name, variants[name]) for name, share in shares.items()]
            found.append({"title": title, **effect_of_seeds(np.sum(sums, axis=0), plan.margin)})
    return found


def effects_table(effects: Sequence[Effect], planned: str) -> str:
    """Effects and their tests; then what they change early, which no plan asked."""
    lines = []
    for effect in effects:
        line = {"effect": effect["title"], "points (95 %)": told(effect), "p": f"{effect['p']:.2g}"}
        if "holm" in effect:
            line |= {"p, Holm": f"{effect['holm']:.2g}", "verdict": effect["verdict"]}
        line["planned"] = planned
        if "finds" in effect:
            sizes = ", ".join(f"{size:.2g}" for size in effect["finds"])
            line["finds in 80 %: one test, first of Holm's"] = sizes
        if early := effect.get("early"):
            line["points lost in episodes 1 to 3 (95 %), not planned"] = told(early)
            line["its p"] = f"{early['p']:.2g}"
        lines.append(line)
    return table_of(lines)


def bugs_table(variants: Variants) -> str:
    """What each bug does to the scores, and the number that betrays it; medians and ranges."""
    with open(plan_folder("bugs") / "numbers.csv", newline="") as file:
        numbers = [*csv.DictReader(file)]

    def betraying(who: str, column: str, episode: int) -> str:
        if column == "worst_arm":  # the lowest one in the second half
            half = variants[who][column].shape[1] // 2
            return median_and_range(np.nanmin(variants[who][column][:, half:], axis=1))
        by_seed = {}
        for line in numbers:  # in order; without an episode it is the last one of learning
            if line["variant"] == who and episode in (0, int(line["episode"])):
                by_seed[line["seed"]] = float(line[column])
        return median_and_range([*by_seed.values()])

    lines = []
    for name, bug in BUGS.items():
        variant = variants[name]
        ends = [row[np.isfinite(row)][-3:].mean() for row in variant["evaluation"]]
        line = {
            "variant": bug.title,
            "first 30, episode": median_and_range(map(first_at, variant["score"])),
            "mean of 1-20": median_and_range(Measure("score", 20)(variant)),
            "without noise at the end": median_and_range(ends),
        }
        if bug.number:
            line["number that betrays it"] = f"`{bug.number}`"
            line["with the bug"] = betraying(name, bug.number, bug.episode)
            line["without"] = betraying(bug.base, bug.number, bug.episode)
        lines.append(line)
    return table_of(lines)


def baselines_table(variants: Variants) -> str:
    """Seconds of the comparison."""
    lines = []
    for agent, variant in variants.items():
        times = variant["seconds"]
        firsts = [first_at(row) for row in variant["evaluation"]]
        until = [row[one - 1] if one else None for one, row in zip(firsts, times, strict=True)]
        mean = mean_and_interval(Measure()(variant))
        line = {"agent": agent, "mean of all evaluations (95 %)": mean}
        line["seconds until the first evaluation of 30"] = median_and_range(until)
        lines.append(line | {"of all episodes, median": f"{np.median(times[:, -1]):.0f}"})
    return table_of(lines)


MORE = {"bugs": bugs_table, "baselines": baselines_table}
