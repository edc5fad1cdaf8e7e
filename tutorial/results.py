"""Stored results that the notebook shows, from the tables in `checkpoints/`.

A plan of trainings has a folder there, and in it a table for each variant of the agent, with a line
for each seed and episode. `research` writes them, and has the tests of the pages in `doc/`.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from tutorial.paths import CHECKPOINTS

Variant = Mapping[str, np.ndarray]  # column to (seeds, episodes), NaN where there is no number
NOT_VARIANTS = "lost_arms", "numbers", "summary"  # tables of other things in a plan's folder

TASKS = {  # of the study, by its tables
    "standard": "standard task",
    "small_goals": "small goals",
    "delayed_rewards": "delayed rewards",
    "one_arm": "one arm",
}
LEVELS = {  # off and on, as the study's tables have them
    "n_step": ("1", "3"),
    "replay": ("uniform", "prioritized"),
    "noisy_layers": ("False", "True"),
}
INGREDIENTS = "n-step returns", "prioritized replay", "NoisyNet"  # what they are called
LEFT_OUT = {
    "n_step_1": "n = 1",
    "uniform_replay": "uniform replay",
    "no_noisy_layers": "no NoisyNet",
    "none_of_three": "none of the three",
    "no_mirrors": "no mirrors",
}
QUIZ = (  # variants of the plan `bugs`, in the order of the quiz
    "broadcast biased_noise no_end terminal_at_limit training_targets batch_normalization "
    "saturated_actor weighted_priorities gamma_power stale_gradients one_noise"
).split()


class Effect(NamedTuple):
    """A difference in the mean, in points of score, and what supports it."""

    mean: float
    low: float  # of its 95 % interval
    high: float
    verdict: str  # shown, suggested or not shown; alike
    runs: np.ndarray  # the difference of each seed, or each run's from the others' mean

    def __str__(self) -> str:
        return f"{self.mean:+.1f} ({self.low:+.1f} to {self.high:+.1f}), {self.verdict}"


def read_plan(plan: str) -> dict[str, Variant]:
    """All variants of a plan by name; of each the columns, (seeds, episodes), seeds in order.

    Raises:
        FileNotFoundError: there is no such plan; names those there are.
    """
    paths = sorted((CHECKPOINTS / plan).glob("*.csv"))
    if not paths:
        plans = sorted({path.parent.name for path in CHECKPOINTS.glob("*/*.csv")})
        raise FileNotFoundError(f"no tables of a plan {plan!r} in {CHECKPOINTS}: there are {plans}")
    variants: dict[str, Variant] = {}
    for path in paths:
        if path.stem not in NOT_VARIANTS:
            table = np.genfromtxt(path, delimiter=",", names=True)
            seeds = len(np.unique(table["seed"]))
            variants[path.stem] = {
                name: table[name].reshape(seeds, -1) for name in table.dtype.names or ()
            }
    return variants


def study_cells(task: str) -> tuple[np.ndarray, dict[tuple[str, ...], np.ndarray]]:
    """Evaluations without noise in a task of the study.

    Returns:
        Episodes (k,), and scores (seeds, k) by the levels of n_step, replay and noisy_layers, as
        text.
    """
    runs: dict = {}
    with open(CHECKPOINTS / "study" / f"{task}.csv", newline="") as file:
        for line in csv.DictReader(file):
            run = runs.setdefault(tuple(line[name] for name in LEVELS), {})
            point = int(line["episode"]), float(line["score"])
            run.setdefault(int(line["seed"]), []).append(point)
    cells = {
        cell: np.array([sorted(points) for _, points in sorted(by_seed.items())])
        for cell, by_seed in runs.items()
    }
    episodes = next(iter(cells.values()))[0, :, 0]
    return episodes, {cell: points[..., 1] for cell, points in cells.items()}


def study_curve(task: str, *cell: object) -> tuple[np.ndarray, np.ndarray]:
    """Episodes (k,) and scores (seeds, k) of one cell: n_step, replay, noisy_layers."""
    episodes, cells = study_cells(task)
    return episodes, cells[tuple(map(str, cell))]


def study_effects(margin: float = 2.0) -> dict[str, dict[str, Effect]]:
    """What each ingredient adds to a run's mean evaluation, by task and ingredient.

    Args:
        margin: points within which agents with and without it are alike, by the 90 % interval.

    A seed is one observation. Holm's correction is over all main effects and interactions of pairs
    in all tasks, as planned.
    """
    by_seed = {}
    for task in TASKS:
        _, cells = study_cells(task)
        ordered = [cells[cell].mean(axis=1) for cell in itertools.product(*LEVELS.values())]
        values = np.reshape(ordered, (2, 2, 2, -1))  # an axis for each ingredient, off and on
        seeds = values.shape[-1]
        for axis, name in enumerate(INGREDIENTS):
            differences = np.diff(values, axis=axis)
            by_seed[task, name] = differences.reshape(-1, seeds).mean(axis=0)
        for one, other in itertools.combinations(range(3), 2):
            twice = np.diff(np.diff(values, axis=one), axis=other)
            by_seed[task, f"{one} x {other}"] = twice.reshape(-1, seeds).mean(axis=0)
    p = {effect: permutation_p(runs) for effect, runs in by_seed.items()}
    corrected = dict(zip(p, holm(list(p.values())), strict=True))
    return {
        task: {
            name: _effect(
                runs := by_seed[task, name],
                stats.ttest_1samp(runs, 0),
                p[task, name],
                corrected[task, name],
                margin,
            )
            for name in INGREDIENTS
        }
        for task in TASKS
    }


def left_out_effects(episodes: int = 20, margin: float = 1.0) -> dict[str, Effect]:
    """What leaving a part out of `default` changes in the mean of the first evaluations.

    Args:
        margin: points within which two agents are alike, by the 90 % interval.
    """
    variants = read_plan("leave_one_out")
    means = {
        name: np.nanmean(variant["evaluation"][:, :episodes], axis=1)
        for name, variant in variants.items()
    }
    base = means["default"]
    p = [permutation_p(means[name], base) for name in LEFT_OUT]
    effects = {}
    for (name, title), raw, corrected in zip(LEFT_OUT.items(), p, holm(p), strict=True):
        test = stats.ttest_ind(means[name], base, equal_var=False)
        effects[title] = _effect(means[name] - base.mean(), test, raw, corrected, margin)
    return effects


def _effect(runs: np.ndarray, test: Any, p: float, corrected: float, margin: float) -> Effect:
    """The mean of (seeds,) with the intervals of SciPy's t-test of it, and what its p supports."""
    found = ["shown"] * bool(corrected < 0.05)
    found += ["alike"] * bool(np.abs(test.confidence_interval(0.9)).max() < margin)
    verdict = ", ".join(found) or ("suggested" if p < 0.05 else "not shown")
    ends = test.confidence_interval()
    return Effect(runs.mean(), ends.low, ends.high, verdict, runs)


def permutation_p(one: np.ndarray, other: np.ndarray | None = None) -> float:
    """p, two-sided, of a permutation test of equal means.

    Exact up to 13 seeds of one group; else with 9,999 permutations at random.

    Args:
        one: (seeds,) of one group, or differences whose mean may be 0, of which signs are flipped.
        other: (seeds,) of another group, or None.
    """
    one_group = other is None
    test = stats.permutation_test(
        (one,) if one_group else (one, other),
        np.mean if one_group else lambda x, y, axis: np.mean(x, axis=axis) - np.mean(y, axis=axis),
        permutation_type="samples" if one_group else "independent",
        vectorized=True,
        n_resamples=9_999,
        rng=np.random.default_rng(0),
    )
    return float(test.pvalue)


def holm(p: Sequence[float]) -> np.ndarray:
    """p-values corrected for testing all of them at once (Holm, 1979)."""
    order = np.argsort(p)
    stepped = np.maximum.accumulate(np.sort(p) * np.arange(len(p), 0, -1))
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(stepped, 1)
    return corrected
