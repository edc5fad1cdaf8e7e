"""All plans: what each asks, what it trains on which seeds, and what it tests.

A variant is what differs from `default` on the standard task: hyperparameters of the notebook and
fields of `research.training.Training`, by name. doc/plans.md has the plans' words, which were
written before the trainings. A plan without seeds is finished: its trainings were of an older agent
(commit 6ee81e9), and their results are stored.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reacher.task import MAX_SCORE
from research.baselines import chosen
from research.bugs import BUGS, overrides_of
from research.results import Variant
from research.training import Training, make_training

Changes = Mapping[str, Any]
Weights = Mapping[str, float]


@dataclass(frozen=True)
class Measure:
    """One number a seed: the mean of a column, `score` or `evaluation`, over some episodes.

    Attributes:
        first, last: episodes, from 1 on; None: the training's last one.
        lost: the points that are missing to the largest score instead.
    """

    column: str = "evaluation"
    last: int | None = None
    first: int = 1
    lost: bool = False

    def __call__(self, variant: Variant) -> np.ndarray:
        episodes = variant["episode"][0]
        last = episodes[-1] if self.last is None else self.last
        values = variant[self.column][:, (episodes >= self.first) & (episodes <= last)]
        found = np.nanmean(values, axis=1)
        return MAX_SCORE - found if self.lost else found

    def __str__(self) -> str:
        what = "training scores" if self.column == "score" else "evaluations"
        where = "all episodes" if self.last is None else f"episodes {self.first} to {self.last}"
        return f"points lost, {where}" if self.lost else f"{what}, mean of {where}"


EARLY = Measure(last=3, lost=True)  # does not dilute what happens before all agents are good


@dataclass(frozen=True)
class Plan:
    """A question, and the trainings that are to answer it.

    Attributes:
        seeds: of every variant.
        variants: by name, what each changes.
        tasks: by name, what each changes; a variant on a task is called `<task>_<variant>`.
        shared: what all change.
        measure: the primary one; `measures` are those of names that begin so.
        base: the variant from which the others differ, or those of `tested`, on each task.
        pairs: further differences that are tested; all are one family.
        contrasts: weights of variants, by title, whose sum within each seed is tested, too.
        secondary: the same, without a correction.
        margin: within which two variants are alike; None: no test of equivalence.
        planned: whether question, measure and tests were fixed before the trainings.
    """

    question: str
    seeds: Sequence[int] = ()
    variants: Mapping[str, Changes] = field(default_factory=dict)
    tasks: Mapping[str, Changes] = field(default_factory=lambda: {"": {}})
    shared: Changes = field(default_factory=dict)
    measure: Measure = Measure()
    measures: Mapping[str, Measure] = field(default_factory=dict)
    base: str = ""
    tested: Sequence[str] = ()
    pairs: Sequence[tuple[str, str]] = ()
    contrasts: Mapping[str, Weights] = field(default_factory=dict)
    secondary: Mapping[str, Weights] = field(default_factory=dict)
    margin: float | None = None
    planned: str = "yes"

    def changes(self) -> dict[str, Changes]:
        """What each variant on each task changes, by their name."""
        return {
            f"{task}_{name}".removeprefix("_"): {**self.shared, **options, **changes}
            for task, options in self.tasks.items()
            for name, changes in self.variants.items()
        }

    def differences(self) -> list[tuple[str, str]]:
        """The two variants of every difference that is tested."""
        others = self.tested or [name for name in self.variants if name != self.base]
        return [
            (f"{task}_{name}".removeprefix("_"), f"{task}_{self.base}".removeprefix("_"))
            for task in self.tasks
            for name in others
            if self.base
        ] + [*self.pairs]

    def values(self, name: str, variant: Variant) -> np.ndarray:
        """The primary measure of a variant, (seeds,)."""
        own = [one for beginning, one in self.measures.items() if name.startswith(beginning)]
        return (own or [self.measure])[0](variant)

    def trainings(self, name: str) -> list[Training]:
        """All of them, a seed of every variant before the next seed."""
        return [
            make_training(name, variant, seed, changes)
            for seed in self.seeds
            for variant, changes in self.changes().items()
        ]


def grid(**values: Sequence[Any]) -> dict[str, Changes]:
    """One change at a time, by names that say it."""
    return {f"{name}_{one}": {name: one} for name, several in values.items() for one in several}


def factorial(name: str, levels: Sequence[Sequence[str]], changed: Sequence[int]) -> Weights:
    """Weights of a main effect or an interaction in a factorial of two levels each.

    Args:
        name: of a variant, with `{}` for each factor.
        levels: of each factor, off and on.
        changed: the factors whose effect it is; the mean is taken over the others.
    """
    share = 2 ** (len(changed) - len(levels))
    return {
        name.format(*(pair[on] for pair, on in zip(levels, place, strict=True))): (
            share * (-1) ** sum(1 - place[factor] for factor in changed)
        )
        for place in itertools.product((0, 1), repeat=len(levels))
    }


NONE_OF_THREE = {"n_step": 1, "replay": "uniform", "noisy_layers": False}
ONE_OF_THREE: dict[str, Changes] = {
    "n_step": {"replay": "uniform", "noisy_layers": False},
    "prioritized": {"n_step": 1, "noisy_layers": False},
    "noisy": {"n_step": 1, "replay": "uniform"},
}
NO_END = {"anneal_episodes": None, "anneal_gradient_steps": None}
CONSTANT_NOISE = {"noise_schedule": "constant"}
FIXED_SCHEDULES = {**CONSTANT_NOISE, "gaussian_sigma": 0.2, **NO_END}  # by no score
UNTUNED: dict[str, Changes] = {  # as in the notebook's section 3.3
    "fewer_steps": {"gradient_steps": 10},
    "no_layer_norm": {"learner": "NoLayerNorm"},
    "batch_128": {"batch_size": 128},
    "constant_noise": {**CONSTANT_NOISE, "gaussian_sigma": 0.3},
}
TRANSITIONS = 200  # of 20 arms from one update phase to the next
SMALL_GOALS = {"goal_size": 1.3, "episodes": 24, "evaluate_every": 2}
DELAYED = {"reward_every": 30, "episodes": 24, "evaluate_every": 2}
ONE_ARM = {"arms": 1, "episodes": 40, "evaluate_every": 2}
FACTORS = ("1", "3"), ("uniform", "prioritized"), ("plain", "noisy")  # off and on
INGREDIENTS = "n-step returns", "prioritized replay", "NoisyNet"
STUDY = ("standard", "small_goals", "delayed_rewards", "one_arm")  # its tasks
BEST_OTHERS = ("sbx_crossq", "sbx_sac_simba", "sbx_tqc")  # of other libraries
MARGIN = 0.05 * MAX_SCORE  # of the means of all evaluations: smaller effects are called small
BEFORE = {"gradient_steps": 30, "policy_delay": 2}  # `default` before it was tuned with mirrors
FIRST_FAST = {  # what `fast` was before plan `tuning_fast`
    "n_step": 1,
    "discount": 0.95,
    "batch_size": 128,
    "anneal_gradient_steps": 10,
    "anneal_episodes": 7,
}

PLANS = {
    "mirrors": Plan(
        "Do the mirrors of the task help, as samples or as a canonical frame?",
        range(8000, 8010),
        {name: {"mirrors": name} for name in ("none", "samples", "canonical")},
        {
            "default": BEFORE,
            "fast": {**FIRST_FAST, "gradient_steps": 40, "policy_delay": 2, "batch_size": 64},
            "none_of_three": {**BEFORE, **NONE_OF_THREE},
            "one_arm": {**BEFORE, "arms": 1, "episodes": 150},
        },
        measure=Measure("score", 20),
        measures={"one_arm": Measure("score", 60)},
        pairs=[
            (f"{agent}_{mirrors}", f"{agent}_none")
            for agent in ("default", "fast", "one_arm")
            for mirrors in ("samples", "canonical")
        ],
        margin=1.0,
    ),
    "mirrors_tuned": Plan(
        "How good are the tuned presets on seeds that chose nothing? (*_1: after one round)",
        range(8210, 8220),
        {"default": {}, "fast": FIRST_FAST},
        measure=Measure("score", 20),
        planned="no",
    ),
    "engines": Plan(
        "Do the two engines train equally good agents (seeds 0 to 9)?",
        measure=Measure("score", 100),
        pairs=[("torch", "compiled")],
        margin=1.0,
    ),
    # ----------------------------------------------------------------------------- ingredients
    "study": Plan(
        "When do n-step returns, prioritized replay and NoisyNet help? (An older agent.)",
        contrasts={
            f"{task}: {' x '.join(INGREDIENTS[factor] for factor in changed)}": (
                factorial(f"{task}_n_{{}}_{{}}_{{}}", FACTORS, changed)
            )
            for task in STUDY
            for changed in [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]
        },
        secondary={
            f"{task}: all three": factorial(f"{task}_n_{{}}_{{}}_{{}}", FACTORS, (0, 1, 2))
            for task in STUDY
        },
        margin=MARGIN,
    ),
    "leave_one_out": Plan(
        "Does `default` need any one of its ingredients?",
        range(7000, 7030),
        {
            "default": {},
            "n_step_1": {"n_step": 1},
            "uniform_replay": {"replay": "uniform"},
            "no_noisy_layers": {"noisy_layers": False},
            "none_of_three": NONE_OF_THREE,
            "no_mirrors": {"mirrors": "none"},
        },
        shared={"episodes": 40, "evaluate_every": 1},
        measure=Measure(last=20),
        base="default",
        margin=1.0,
    ),
    "more_noise": Plan(
        "Is it NoisyNet, or is it more noise? (Matched noise moves the actions as far.)",
        range(8400, 8416),
        {
            "gaussian_matched": {**CONSTANT_NOISE, "noisy_layers": False},
            "gaussian_0.2": {**FIXED_SCHEDULES, "noisy_layers": False},
            "gaussian_0.4": {**CONSTANT_NOISE, "noisy_layers": False, "gaussian_sigma": 0.4},
            "noisy": FIXED_SCHEDULES,
            "noisy_alone_1.0": {"gaussian_sigma": 0.0},
            "noisy_alone_0.5": {"gaussian_sigma": 0.0, "noisy_sigma": 0.5},
        },
        {
            "delayed_rewards": {**DELAYED, "gaussian_sigma": 0.273},
            "one_arm": {**ONE_ARM, "gaussian_sigma": 0.324},
        },
        shared={"n_step": 1, **NO_END},
        base="gaussian_matched",
        tested=("noisy", "noisy_alone_1.0"),
        margin=MARGIN,
    ),
    "three": Plan(
        "Do n-step returns, prioritized replay and NoisyNet replace each other?",
        range(8500, 8516),
        {
            f"{'clock_' * clock}n_{n}_{replay}_{noise}": {
                "n_step": n,
                "replay": replay,
                "noisy_layers": noise == "noisy",
                "clock": clock,
            }
            for clock, n, replay, noise in [
                *itertools.product((False, True), (1, 3), *FACTORS[1:]),
                *((False, n, "prioritized", "noisy") for n in (2, 5, 10)),
            ]
        },
        shared={**DELAYED, **FIXED_SCHEDULES},
        contrasts={"all three, without a clock": factorial("n_{}_{}_{}", FACTORS, (0, 1, 2))},
        secondary={
            "all three, with a clock": factorial("clock_n_{}_{}_{}", FACTORS, (0, 1, 2)),
            **{
                f"n = 3, {replay}, {noise}{told}": (
                    factorial(f"{clock}n_{{}}_{replay}_{noise}", FACTORS[:1], (0,))
                )
                for clock, told in (("", ""), ("clock_", ", with a clock"))
                for replay, noise in itertools.product(*FACTORS[1:])
            },
        },
    ),
    "rates": Plan(
        "Does prioritized replay help where each agent has its best learning rate?",
        range(8600, 8612),
        {
            f"{name}_{rate}": {**changes, "actor_learning_rate": rate, "critic_learning_rate": rate}
            for name, changes in {
                "none": NONE_OF_THREE,
                "prioritized": ONE_OF_THREE["prioritized"],
                "prioritized_noisy": {"n_step": 1},
                "all": {},
            }.items()
            for rate in (0.0005, 0.001, 0.002)
        },
        {"small_goals": SMALL_GOALS, "delayed_rewards": DELAYED},
        shared=FIXED_SCHEDULES,
        pairs=[
            (f"{task}_{name}", f"{task}_none")
            for task in ("small_goals", "delayed_rewards")
            for name in ("prioritized", "all")
        ],
        margin=MARGIN,
    ),
    "environments": Plan(
        "Do the three help in other environments?",
        range(8700, 8710),
        {"none": NONE_OF_THREE, **ONE_OF_THREE, "all": {}},
        {
            "pendulum_in_lumps": {
                "location": "gymnasium:Pendulum-v1",
                "arms": 10,
                "reward_every": 20,
                "episodes": 40,
                "evaluate_every": 2,
            },
            "sparse_reacher": {"location": "gymnasium:research.environments:SparseReacher-v0"},
            "double_pendulum": {
                "location": "gymnasium:InvertedDoublePendulum-v5",
                "arms": 1,
                "episodes": 300,
                "evaluate_every": 10,
            },
        },
        shared={**FIXED_SCHEDULES, "reward_scale": 1.0},
        base="none",
    ),
    # ----------------------------------------------------------------------------- comparisons
    "extensions": Plan(
        "Are TD3, D4PG and CrossQ better than DDPG here?",
        range(8500, 8510),
        {
            "default": {},
            "td3": {"learner": "TD3", "policy_delay": 2},
            "d4pg": {"learner": "D4PG"},
            "crossq": {"learner": "CrossQ"},
        },
        shared={"episodes": 40},
        measure=Measure("score", 20),
        base="default",
        margin=1.0,
    ),
    "tuning_alone": Plan(
        "How far does tuning alone get, without any of the four improvements?",
        range(8800, 8810),
        {
            "tuned": {},
            **UNTUNED,
            "all_four": {k: v for one in UNTUNED.values() for k, v in one.items()},
        },
        shared={**NONE_OF_THREE, "mirrors": "none", "episodes": 10, "evaluate_every": 1},
        measure=Measure(last=10),
        base="tuned",
    ),
    "batches": Plan(
        "Does `default` gain from larger batches?",
        range(7100, 7120),
        {
            "default": {},
            "batch_128": {"batch_size": 128},
            "batch_128_half_the_steps": {"batch_size": 128, "gradient_steps": 20},
        },
        shared={"episodes": 20, "evaluate_every": 1},
        measure=Measure(last=20),
        base="default",
        margin=1.0,
    ),
    "one_arm": Plan(
        "Does today's `default` solve the task with one arm?",
        range(7200, 7210),
        {"default": {"arms": 1}},
        measure=Measure("score", 60),
    ),
    "bugs": Plan(
        "What do eleven bugs and questionable choices do to the scores?",
        range(8300, 8305),
        {name: {**overrides_of(name), "bug": name} for name in BUGS},
        shared={"episodes": 60},
        measure=Measure("score", 20),
    ),
    "baselines": Plan(  # to run (1): the last six of these differences
        "How do agents of other libraries do on the arms, each tuned by twenty trainings?",
        range(3400, 3405),
        {
            "default": {},
            "no_mirrors": {"mirrors": "none", **BEFORE},  # an older agent
            "default_no_mirrors": {"mirrors": "none"},
            **{agent: {"library": agent, **settings} for agent, settings in chosen().items()},
            **{
                f"{agent}_mirrors": {"library": agent, **settings, "mirrors": True}
                for agent, settings in chosen().items()
                if agent in BEST_OTHERS
            },
        },
        shared={"episodes": 40, "evaluate_every": 1},
        pairs=[("default_no_mirrors", agent) for agent in BEST_OTHERS]
        + [("default", f"{agent}_mirrors") for agent in BEST_OTHERS],
    ),
    # ------------------------------------------------------- to run; (2) is `research.planner`
    "planner": Plan(
        "How many points are possible? (Score: of a planner that knows the simulator; evaluation: "
        "of the stored `default` on the same goals.)",
        measure=Measure("score"),
        planned="no",
    ),
    "data_and_thought": Plan(  # (3)
        "What do more gradient steps for each transition bring?",
        range(9000, 9010),
        {
            f"{steps / TRANSITIONS}_steps": {"gradient_steps": steps}
            for steps in (10, 20, 40, 80, 160, 320)
        },
        {f"batch_{size}": {"batch_size": size} for size in (64, 256)},
        shared={"max_samples_per_insert": 1e3, **NO_END, "episodes": 10, "evaluate_every": 1},
        measure=Measure(last=3),
        base="0.2_steps",
    ),
    "end_of_learning": Plan(  # (4)
        "Does an end of learning do more than keeping the weights of the best evaluation?",
        range(9020, 9040),
        {
            "default": {},
            "no_end": {"anneal_episodes": None},
            "no_end_best_kept": {"anneal_episodes": None, "keep_best": True},
        },
        shared={"episodes": 60, "evaluate_every": 1},
        measure=Measure(first=41, last=60),
        base="default",
        pairs=[("no_end_best_kept", "no_end")],
        margin=0.1,
    ),
    "lumps": Plan(  # (5)
        "Does prioritized replay help with delayed rewards because nothing announces them?",
        range(9040, 9070),
        {replay: {"replay": replay} for replay in FACTORS[1]},
        {"no_clock": {"clock": False}, "clock": {"clock": True}},
        shared={**DELAYED, **FIXED_SCHEDULES},
        base="uniform",
        contrasts={
            "prioritized, with a clock minus without": factorial(
                "{}_{}", [("no_clock", "clock"), FACTORS[1]], (0, 1)
            )
        },
        margin=MARGIN,
    ),
    "sensitivity": Plan(  # (6)
        "How much does each setting matter around its default?",
        range(9070, 9080),
        {"default": {}}
        | grid(
            gradient_steps=(10, 20, 80, 160),
            batch_size=(32, 128, 256, 512),
            n_step=(1, 2, 5, 10),
            discount=(0.9, 0.95, 0.98, 0.99),
            actor_learning_rate=(1e-4, 3e-4, 3e-3, 1e-2),
            critic_learning_rate=(1e-4, 3e-4, 3e-3, 1e-2),
            tau=(1e-3, 3e-3, 3e-2, 0.1),
            gaussian_sigma=(0.0, 0.1, 0.2, 0.8),
        ),
        shared={"max_samples_per_insert": 1e3, "episodes": 20, "evaluate_every": 1},
        measure=Measure(last=20),
    ),
    "standard_tasks": Plan(  # (7), 300,000 steps each
        "Do the three help in four standard tasks?",
        range(9080, 9090),
        {"none": NONE_OF_THREE, **ONE_OF_THREE, "all": {}},
        {
            "half_cheetah": {"location": "gymnasium:HalfCheetah-v5"},
            "swimmer": {"location": "gymnasium:Swimmer-v5"},
            "pusher": {"location": "gymnasium:Pusher-v5", "arms": 10},
            "mountain_car": {"location": "gymnasium:MountainCarContinuous-v0"},
        },
        {"arms": 1, "episodes": 300, "evaluate_every": 10, "reward_scale": 1.0, **FIXED_SCHEDULES},
        base="none",
        tested=("n_step", "prioritized", "all"),
    ),
}
