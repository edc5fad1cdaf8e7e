"""Plans of trainings: what is declared in `plans.yaml`, and what follows from it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from reacher.task import MAX_SCORE
from research.bugs import BUGS, overrides_of
from research.training import Training, make_training
from tutorial.results import Variant

Changes = Mapping[str, Any]
Weights = Mapping[str, float]
FACTORS = ("1", "3"), ("uniform", "prioritized"), ("plain", "noisy")  # off and on
INGREDIENTS = "n-step returns", "prioritized replay", "NoisyNet"
STUDY = ("standard", "small_goals", "delayed_rewards", "one_arm")  # its tasks


@dataclass(frozen=True)
class Measure:
    """One number a seed: the mean of a column, `score` or `evaluation`, over some episodes."""

    column: str = "evaluation"
    last: int | None = None  # None: the training's last one
    first: int = 1
    lost: bool = False  # the points that are missing to the largest score instead

    def __call__(self, variant: Variant) -> np.ndarray:
        episodes = variant["episode"][0]
        last = episodes[-1] if self.last is None else self.last
        values = variant[self.column][:, (episodes >= self.first) & (episodes <= last)]
        found = np.nanmean(values, axis=1)
        return MAX_SCORE - found if self.lost else found

    def __str__(self) -> str:
        what = "training scores" if self.column == "score" else "evaluations"
        return f"{what}, mean of episodes {self.first} to {self.last or 'the last'}"


EARLY = Measure(last=3, lost=True)  # does not dilute what happens before all agents are good


@dataclass(frozen=True)
class Plan:
    """A question, and the trainings that are to answer it."""

    question: str
    seeds: Sequence[int] = (0, 0)  # of every variant, from one to before another
    variants: Mapping[str, Changes] = field(default_factory=dict)  # by name
    one_at_a_time: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # more variants
    tasks: Mapping[str, Changes] = field(default_factory=lambda: {"": {}})  # <task>_<variant>
    shared: Changes = field(default_factory=dict)  # what all change
    measure: Measure = Measure()  # the primary one
    measures: Mapping[str, Measure] = field(default_factory=dict)  # of names that begin so
    # Tested is how the others, or those of `tested`, differ from `base`, on each task but those of
    # `not_tested`; `pairs` and `contrasts`, weights of variants within each seed, are of the same
    # family. `secondary` are contrasts without a correction.
    base: str = ""
    tested: Sequence[str] = ()
    not_tested: Sequence[str] = ()
    pairs: Sequence[Sequence[str]] = ()
    contrasts: Mapping[str, Weights] = field(default_factory=dict)  # by title
    secondary: Mapping[str, Weights] = field(default_factory=dict)
    margin: float | None = None  # within which two variants are alike; None: no such test
    commit: str = ""  # of the agent, if the plan is finished; empty: it can be run

    def changes(self) -> dict[str, Changes]:
        """What each variant on each task changes, by their name."""
        variants = {**self.variants}
        for name, values in self.one_at_a_time.items():
            variants |= {f"{name}_{value}": {name: value} for value in values}
        return {
            f"{task}_{name}".removeprefix("_"): {**self.shared, **options, **changes}
            for task, options in self.tasks.items()
            for name, changes in variants.items()
        }

    def differences(self) -> list[tuple[str, str]]:
        """The two variants of every difference that is tested."""
        others = self.tested or [name for name in self.variants if name != self.base]
        tasks = [task for task in self.tasks if task not in self.not_tested] if self.base else []
        found = itertools.product(tasks, others)
        pairs = [(f"{task}_{name}", f"{task}_{self.base}") for task, name in found]
        return [(a.removeprefix("_"), b.removeprefix("_")) for a, b in [*pairs, *self.pairs]]

    def values(self, name: str, variant: Variant) -> np.ndarray:
        """The primary measure of a variant, (seeds,)."""
        own = [one for beginning, one in self.measures.items() if name.startswith(beginning)]
        return (own or [self.measure])[0](variant)

    def trainings(self, name: str) -> list[Training]:
        """All of them, a seed of every variant before the next seed; none if it is finished."""
        return [
            make_training(name, variant, seed, changes)
            for seed in (range(0) if self.commit else range(*self.seeds))
            for variant, changes in self.changes().items()
        ]


def factorial(name: str, changed: Sequence[int]) -> Weights:
    """Weights of a main effect or an interaction of FACTORS, as a mean over the other factors.

    Args:
        name: of a variant, with `{}` for each factor.
        changed: the factors whose effect it is.
    """
    return {
        name.format(*(pair[on] for pair, on in zip(FACTORS, place, strict=True))): (
            2 ** (len(changed) - 3) * (-1) ** sum(1 - place[factor] for factor in changed)
        )
        for place in itertools.product((0, 1), repeat=3)
    }


def contrasts_of_three() -> dict[str, dict[str, Weights]]:
    """Of plan `three`: the interaction of all three, with a clock, too, and what n = 3 adds."""
    added = {
        f"n = 3, {replay}, {noise}{told}": {
            f"{clock}n_3_{replay}_{noise}": 1,
            f"{clock}n_1_{replay}_{noise}": -1,
        }
        for clock, told in (("", ""), ("clock_", ", with a clock"))
        for replay, noise in itertools.product(*FACTORS[1:])
    }
    clock = {"all three, with a clock": factorial("clock_n_{}_{}_{}", (0, 1, 2))}
    planned = {"all three, without a clock": factorial("n_{}_{}_{}", (0, 1, 2))}
    return {"contrasts": planned, "secondary": clock | added}


def contrasts_of_the_study() -> dict[str, dict[str, Weights]]:
    """Main effects and interactions of two, which were planned, and of all three."""
    one_or_two = [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]
    planned = {
        f"{task}: {' x '.join(INGREDIENTS[factor] for factor in changed)}": (
            factorial(f"{task}_n_{{}}_{{}}_{{}}", changed)
        )
        for task, changed in itertools.product(STUDY, one_or_two)
    }
    all_three = {
        f"{task}: all three": factorial(f"{task}_n_{{}}_{{}}_{{}}", (0, 1, 2)) for task in STUDY
    }
    return {"contrasts": planned, "secondary": all_three}


def read_plans() -> dict[str, Plan]:
    """The plans of `plans.yaml`, with what this module and others add to them."""
    plans = yaml.safe_load(Path(__file__).with_name("plans.yaml").read_text())
    del plans["parts"]
    plans["three"] |= contrasts_of_three()
    plans["study"] |= contrasts_of_the_study()
    plans["bugs"]["variants"] = {name: overrides_of(name) for name in BUGS}
    for plan in plans.values():
        plan["measure"] = Measure(**plan.get("measure", {}))
        plan["measures"] = {name: Measure(**one) for name, one in plan.get("measures", {}).items()}
    return {name: Plan(**plan) for name, plan in plans.items()}


PLANS = read_plans()
