"""Tables of planned comparisons, from the files of `research.trials`.

python -m research.report.trials mirrors
"""

from __future__ import annotations

import argparse
import csv
import functools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from scipy import stats

from reacher.task import MAX_SCORE
from research.report import statistics
from tutorial.figures import BLUE
from tutorial.paths import CHECKPOINTS
from tutorial.scores import first_at, solved_at
from tutorial.tables import as_markdown, mean_and_interval, median_and_range

EVALUATION_ARMS = 20
LOW_SCORE = 38.5  # of an arm in an evaluation, below which it counts as low
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
        lines = csv.DictReader(file)  # of which the older ones have some of exactly 38.50, too
        return Counter(line["variant"] for line in lines if float(line["score"]) < LOW_SCORE)


def mean_score(episodes: int) -> Measure:
    """The mean training score of the first episodes."""
    return lambda variant: variant["score"][:, :episodes].mean(axis=1)


def mean_evaluation(episodes: int) -> Measure:
    """The mean of the evaluations after the first episodes."""
    return lambda variant: np.nanmean(variant["evaluation"][:, :episodes], axis=1)


def share_of_evaluations(variant: Variant) -> np.ndarray:
    """The mean of all evaluations, as a share of the largest possible score."""
    return np.nanmean(variant["evaluation"], axis=1) / MAX_SCORE


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


Pair = tuple[str, np.ndarray, np.ndarray]  # title, and a measure of both groups, (seeds,) each


def compared(pairs: Sequence[Pair], margin: float | None) -> list[dict[str, Any]]:
    """Differences of two groups of seeds, with Holm's correction over all of them.

    Args:
        margin: within which two variants count as alike; None: no such test.
    """
    raw = [statistics.permutation_of_groups(one, other) for _, one, other in pairs]
    found = []
    for (title, one, other), p, corrected in zip(pairs, raw, statistics.holm(raw), strict=True):
        alike = margin and statistics.equivalence_of_groups(one, other, margin)
        tests = {"title": title, "p": p, "corrected": corrected}
        tests["verdict"] = verdict(p, corrected, alike)
        found.append(tests | statistics.difference(one, other))
    return found


def comparisons_table(pairs: Sequence[Pair], margin: float | None, digits: int = 1) -> str:
    """What `compared` finds, as a table."""
    lines = []
    for found in compared(pairs, margin):
        difference, low, high = (
            f"{found[end]:+.{digits}f}" for end in ("difference", "low", "high")
        )
        interval = f"{difference} ({low} to {high})"
        tests = f"{found['p']:.1g}", f"{found['corrected']:.1g}", found["verdict"]
        lines.append([found["title"], interval, *tests])
    return as_markdown(["comparison", "difference (95 %)", "p", "p, Holm", "verdict"], lines)


def verdict(p: float, corrected: float, equivalent: float | None = None) -> str:
    """What two p-values of a difference support, and that of an equivalence."""
    found = ["shown"] if corrected < 0.05 else []
    if equivalent is not None and equivalent < 0.05:
        found.append("alike")
    return ", ".join(found) or ("suggested" if p < 0.05 else "not shown")


MIRRORS = ("none", "samples", "canonical")
AGENTS = {"default": 20, "fast": 20, "one_arm": 60}  # episodes of the primary measure


def mirrors_report() -> str:
    """The tables of doc/mirrors.md."""
    variants = read_plan("mirrors")
    pairs = [
        (f"{agent}, {mirrors}", measure(variants[f"{agent}_{mirrors}"]), base)
        for agent, episodes in AGENTS.items()
        for measure in [mean_score(episodes)]
        for base in [measure(variants[f"{agent}_none"])]
        for mirrors in MIRRORS[1:]
    ]
    low = low_arms("mirrors")
    one_arm = {name: variant for name, variant in variants.items() if name.startswith("one_arm")}
    others = {name: variant for name, variant in variants.items() if name not in one_arm}
    return "\n\n".join(
        [
            summary_table(others, 20, low),
            summary_table(one_arm, 60, low),
            comparisons_table(pairs, margin=1.0),
        ]
    )


def compared_with_default(
    plan: str, titles: Mapping[str, str], measured: str, measure: Measure
) -> str:
    """Tables of a plan that compares variants with `default`: what they reached, and the tests.

    Args:
        titles: of the variants.
        measured: what the primary measure is, in words.
    """
    variants = read_plan(plan)
    titles = {"default": "`default`"} | dict(titles)
    head = [
        "agent",
        f"{measured}, mean (95 %)",
        "first training score of 30: episode, median (range)",
        "seconds until then",
        "seeds that ended learning",
        "without noise after that, mean (95 %)",
    ]
    lines = []
    for name, title in titles.items():
        evaluations = after_learning("evaluation")(variants[name])
        ended = evaluations[np.isfinite(evaluations)]
        lines.append(
            [
                title,
                mean_and_interval(measure(variants[name])),
                median_and_range(first_at_30(variants[name])),
                median_and_range(seconds_until_30(variants[name])),
                f"{len(ended)} of {len(evaluations)}",
                mean_and_interval(ended) if len(ended) > 1 else "-",
            ]
        )
    pairs = [
        (f"{titles[name]} - `default`", measure(variants[name]), measure(variants["default"]))
        for name in list(titles)[1:]
    ]
    return f"{as_markdown(head, lines)}\n\n{comparisons_table(pairs, margin=1.0)}"


def extensions_report() -> str:
    """The tables of doc/extensions.ipynb."""
    titles = {"td3": "TD3", "d4pg": "D4PG", "crossq": "CrossQ"}
    return compared_with_default("extensions", titles, "training scores of 1-20", mean_score(20))


LEFT_OUT = {
    "n_step_1": "n = 1",
    "uniform_replay": "uniform replay",
    "no_noisy_layers": "no NoisyNet",
    "none_of_three": "none of the three",
    "no_mirrors": "no mirrors",
}


def draw_left_out() -> Figure:
    """What each part that is left out of `default` costs, seed by seed (question 1)."""
    variants, measure = read_plan("leave_one_out"), mean_evaluation(20)
    base = measure(variants["default"])
    pairs = [(title, measure(variants[name]), base) for name, title in LEFT_OUT.items()]
    figure, axes = plt.subplots(figsize=(8, 2.4), layout="constrained")
    for row, (found, pair) in enumerate(zip(compared(pairs, 1.0), pairs, strict=True)):
        values = pair[1]
        near = row + np.random.default_rng(0).uniform(-0.25, 0.25, len(values))
        axes.plot(values - base.mean(), near, ".", color="0.75", markersize=4)
        axes.plot([found["low"], found["high"]], [row, row], color=BLUE, linewidth=3)
        axes.plot(found["difference"], row, "o", color=BLUE)
        told = f"{found['difference']:+.1f} ({found['low']:+.1f} to {found['high']:+.1f})"
        axes.annotate(
            f"{told}, {found['verdict']}",
            (1.02, row),
            xycoords=("axes fraction", "data"),
            verticalalignment="center",
        )
    axes.axvline(0, color="0.4", linewidth=1)
    axes.set_yticks(range(len(LEFT_OUT)), LEFT_OUT.values())
    axes.invert_yaxis()
    axes.set_xlabel("points gained or lost, of 40")
    return figure


def leave_one_out_report() -> str:
    """The tables of question 1 of doc/questions.md."""
    return compared_with_default(
        "leave_one_out", LEFT_OUT, "evaluations of 1-20", mean_evaluation(20)
    )


PILOTS = {  # of doc/questions.md: what was tried, by the task
    "delayed rewards": {f"{every} decisions": f"delayed_{every}" for every in (15, 30, 60)},
    "small goals": {f"{size} m": f"goal_size_{size}" for size in (2.0, 1.6, 1.3)},
}


def pilot_report() -> str:
    """The last evaluations of the pilot, and their distance from half of the largest score."""
    variants = read_plan("pilot")
    last = {
        (task, tried): variants[name]["evaluation"][:, -1]
        for task, names in PILOTS.items()
        for tried, name in names.items()
    } | {
        ("one arm", f"{episodes} episodes"): variants["one_arm"]["evaluation"][:, episodes - 1]
        for episodes in (40, 60)
    }
    lines = [
        [task, tried, *(f"{score:.1f}" for score in (*scores, scores.mean())), f"{distance:.1f}"]
        for (task, tried), scores in last.items()
        for distance in [abs(scores.mean() - MAX_SCORE / 2)]
    ]
    head = ["task", "tried", *(f"seed {seed}" for seed in range(8900, 8903)), "mean", "from 20.02"]
    return as_markdown(head, lines)


def means_table(groups: Mapping[str, np.ndarray], measured: str, digits: int = 3) -> str:
    """Means of a measure, (seeds,) by title, with their intervals."""
    return as_markdown(
        ["variant", "seeds", f"{measured}, mean (95 %)"],
        [[name, str(len(one)), mean_and_interval(one, digits)] for name, one in groups.items()],
    )


SHARE = "mean of all evaluations, share of 40.04"
MARGIN = 0.05  # of it


def shares_of(plan: str) -> dict[str, np.ndarray]:
    """The primary measure of questions 2 to 4, (seeds,) by variant."""
    return {name: share_of_evaluations(variant) for name, variant in read_plan(plan).items()}


def more_noise_report() -> str:
    """The tables of question 2 of doc/questions.md."""
    shares = shares_of("more_noise")
    pairs = [
        (f"{task}, {name} - matched", shares[f"{task}_{name}"], shares[f"{task}_gaussian_matched"])
        for task in ("delayed_rewards", "one_arm")
        for name in ("noisy", "noisy_alone_1.0")
    ]
    return f"{means_table(shares, SHARE)}\n\n{comparisons_table(pairs, MARGIN, digits=3)}"


def cell_name(n: int, replay: str, noisy: bool) -> str:
    """How question 3 names a variant."""
    return f"n_{n}_{replay}_{'noisy' if noisy else 'plain'}"


def factorial(shares: Mapping[str, np.ndarray], prefix: str = "") -> np.ndarray:
    """The eight cells of question 3 as (2, 2, 2, seeds): n = 1 and 3, replay, NoisyNet."""
    return np.array(
        [
            [
                [shares[prefix + cell_name(n, replay, noisy)] for noisy in (False, True)]
                for replay in ("uniform", "prioritized")
            ]
            for n in (1, 3)
        ]
    )


def three_way(values: np.ndarray) -> np.ndarray:
    """The contrast of three factors, (seeds,), from (2, 2, 2, seeds).

    What n = 3 adds where both others are on, minus what it adds where one of them is, plus what it
    adds where none is.
    """
    return np.diff(np.diff(np.diff(values, axis=0), axis=1), axis=2).reshape(-1)


CLOCKS = {"without a clock": "", "with a clock": "clock_"}


def three_report() -> str:
    """The tables of question 3 of doc/questions.md."""
    shares = shares_of("three")
    values = {title: factorial(shares, prefix) for title, prefix in CLOCKS.items()}
    lines = []
    for title, cells in values.items():
        contrast = three_way(cells)
        effects = {"three-way contrast": contrast} | {
            f"n = 3 with {replay} replay{', NoisyNet' * noisy}": cells[1, k, noisy]
            - cells[0, k, noisy]
            for k, replay in enumerate(("uniform", "prioritized"))
            for noisy in (0, 1)
        }
        for name, effect in effects.items():
            low, high = stats.ttest_1samp(effect, 0).confidence_interval(0.95)
            p = ""  # the others are secondary
            if effect is contrast:
                p = f"{statistics.sign_flip_test(effect[None], draws=2 ** len(effect)):.2g}"
            lines.append([title, name, f"{effect.mean():+.3f} ({low:+.3f} to {high:+.3f})", p])
    return "\n\n".join(
        [
            means_table(shares, SHARE),
            as_markdown(["observations", "effect", "mean (95 %)", "p, exact flips of sign"], lines),
        ]
    )


RATES = (0.0005, 0.001, 0.002)  # of question 4, of actor and critic


def at_its_best_rate(values: np.ndarray) -> np.ndarray:
    """A measure (seeds,) at the rate with the best mean over the other half of the seeds.

    Args:
        values: (rates, seeds).
    """
    halves = np.split(values, 2, axis=1)
    chosen = [half.mean(axis=1).argmax() for half in halves]
    return np.concatenate([halves[0][chosen[1]], halves[1][chosen[0]]])


def rates_report() -> str:
    """The tables of question 4 of doc/questions.md."""
    shares = shares_of("rates")
    best = {
        f"{task}, {name}": at_its_best_rate(
            np.array([shares[f"{task}_{name}_{rate}"] for rate in RATES])
        )
        for task in ("small_goals", "delayed_rewards")
        for name in ("none", "prioritized", "prioritized_noisy", "all")
    }
    pairs = [
        (f"{task}, {name} - none", best[f"{task}, {name}"], best[f"{task}, none"])
        for task in ("small_goals", "delayed_rewards")
        for name in ("prioritized", "all")
    ]
    return "\n\n".join(
        [
            means_table(shares, SHARE),
            means_table(best, f"{SHARE}, at its chosen rate"),
            comparisons_table(pairs, MARGIN, digits=3),
        ]
    )


def environments_report() -> str:
    """The tables of question 5 of doc/questions.md."""
    means = {
        name: np.nanmean(variant["evaluation"], axis=1)
        for name, variant in read_plan("environments").items()
    }
    pairs = [
        (f"{name} - none", means[name], means[f"{environment}_none"])
        for environment in ("pendulum_in_lumps", "sparse_reacher", "double_pendulum")
        for added in ("n_step", "prioritized", "noisy", "all")
        for name in [f"{environment}_{added}"]
    ]
    return "\n\n".join(
        [means_table(means, "mean of all evaluations", 1), comparisons_table(pairs, None)]
    )


def tuning_alone_report() -> str:
    """The tables of question 6 of doc/questions.md."""
    variants = read_plan("tuning_alone")
    means = {name: mean_evaluation(10)(variant) for name, variant in variants.items()}
    lines = [
        [
            name,
            mean_and_interval(means[name], 1),
            *(mean_and_interval(variant["evaluation"][:, k - 1], 1) for k in (5, 10)),
        ]
        for name, variant in variants.items()
    ]
    head = ["variant", "evaluations of 1-10, mean (95 %)", "after episode 5", "after episode 10"]
    pairs = [(f"{name} - tuned", means[name], means["tuned"]) for name in means if name != "tuned"]
    return f"{as_markdown(head, lines)}\n\n{comparisons_table(pairs, None)}"


def batches_report() -> str:
    """The tables of question 7 of doc/questions.md."""
    titles = {"batch_128": "batches of 128", "batch_128_half_the_steps": "batches of 128, 20 steps"}
    return compared_with_default("batches", titles, "evaluations of 1-20", mean_evaluation(20))


def summary_report(plan: str, episodes: int = 20) -> str:
    """The table of a plan without tests, such as a round of tuning in doc/mirrors.md."""
    return summary_table(read_plan(plan), episodes, low_arms(plan))


REPORTS = {
    "mirrors": mirrors_report,
    **{
        plan: functools.partial(summary_report, plan)
        for plan in ("mirrors_tuned", "low_arms", "tuning_fast")
    },
    "extensions": extensions_report,
    "leave_one_out": leave_one_out_report,
    "pilot": pilot_report,
    "more_noise": more_noise_report,
    "three": three_report,
    "rates": rates_report,
    "environments": environments_report,
    "tuning_alone": tuning_alone_report,
    "batches": batches_report,
    "one_arm": functools.partial(summary_report, "one_arm", 60),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plan", choices=REPORTS)
    print(REPORTS[parser.parse_args().plan]())


if __name__ == "__main__":
    main()
