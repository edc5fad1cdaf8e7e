"""All plans: what each asks, what it trains on which seeds, and what it tests.

    python -m research plan              the plans, and how much of each is stored
    python -m research plan NAME         train what is missing

A variant is what differs from `default` on the standard task: hyperparameters of the notebook and
fields of `research.training.Training`, by name. Plans say what was decided before their trainings;
doc/plans.md has their words. A plan without variants is finished: its trainings were of an agent or
a program that is gone (commit 6ee81e9), and their results are stored.
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
    """One number a seed: the mean of a column over some episodes.

    Attributes:
        column: `score` or `evaluation`.
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
        question: in one sentence.
        seeds: of every variant.
        variants: by name, what each changes.
        shared: what all variants change.
        measure: the primary one, one number a seed.
        measures: instead of it for variants whose names begin so.
        pairs: two variants each, of which the difference is tested, all in one family.
        contrasts: by title weights of variants, whose sum within each seed is tested, too.
        secondary: the same, without a correction.
        margin: within which two variants are alike; None: no test of equivalence.
        planned: whether question, measure and tests were fixed before the trainings.
    """

    question: str
    seeds: Sequence[int] = ()
    variants: Mapping[str, Changes] = field(default_factory=dict)
    shared: Changes = field(default_factory=dict)
    measure: Measure = Measure()
    measures: Mapping[str, Measure] = field(default_factory=dict)
    pairs: Sequence[tuple[str, str]] = ()
    contrasts: Mapping[str, Weights] = field(default_factory=dict)
    secondary: Mapping[str, Weights] = field(default_factory=dict)
    margin: float | None = None
    planned: str = "yes"

    def values(self, name: str, variant: Variant) -> np.ndarray:
        """The primary measure of a variant, (seeds,)."""
        for beginning, measure in self.measures.items():
            if name.startswith(beginning):
                return measure(variant)
        return self.measure(variant)

    def trainings(self, name: str) -> list[Training]:
        """All of them, a seed of every variant before the next seed."""
        return [
            make_training(name, variant, seed, {**self.shared, **changes})
            for seed in self.seeds
            for variant, changes in self.variants.items()
        ]


def against(base: str, *variants: str) -> list[tuple[str, str]]:
    """Pairs of each variant and their base."""
    return [(variant, base) for variant in variants]


def grid(**values: Sequence[Any]) -> dict[str, Changes]:
    """All combinations of values by name; a variant's name says its values."""
    combined = itertools.product(*values.values())
    return {
        "_".join(f"{name}_{value}" for name, value in zip(values, one, strict=True)): (
            dict(zip(values, one, strict=True))
        )
        for one in combined
    }


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


def each(tasks: Mapping[str, Changes], variants: Mapping[str, Changes]) -> dict[str, Changes]:
    """All variants on all tasks, as `<task>_<variant>`."""
    return {
        f"{task}_{name}": {**options, **changes}
        for task, options in tasks.items()
        for name, changes in variants.items()
    }


NONE_OF_THREE = {"n_step": 1, "replay": "uniform", "noisy_layers": False}
FIXED_SCHEDULES = {  # nothing depends on the score
    "noise_schedule": "constant",
    "gaussian_sigma": 0.2,
    "anneal_episodes": None,
    "anneal_gradient_steps": None,
}
TASKS: dict[str, Changes] = {
    "small_goals": {"goal_size": 1.3, "episodes": 24, "evaluate_every": 2},
    "delayed_rewards": {"reward_every": 30, "episodes": 24, "evaluate_every": 2},
    "one_arm": {"arms": 1, "episodes": 40, "evaluate_every": 2},
}
FACTORS = ("1", "3"), ("uniform", "prioritized"), ("plain", "noisy")  # off and on
INGREDIENTS = "n-step returns", "prioritized replay", "NoisyNet"
STUDY = ("standard", "small_goals", "delayed_rewards", "one_arm")  # its tasks
MARGIN = 0.05 * MAX_SCORE  # of the means of all evaluations: smaller effects are called small

# ------------------------------------------------------------------------------ mirrors and tuning

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
        {
            f"{agent}_{mirrors}": {**changes, "mirrors": mirrors}
            for agent, changes in {
                "default": BEFORE,
                "fast": FIRST_FAST | {"gradient_steps": 40, "policy_delay": 2, "batch_size": 64},
                "none_of_three": BEFORE | NONE_OF_THREE,
                "one_arm": BEFORE | {"arms": 1, "episodes": 150},
            }.items()
            for mirrors in ("none", "samples", "canonical")
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
        "How good are both presets after the tuning, on seeds that chose nothing? (*_1: first round)",
        range(8210, 8220),
        {"default": {}, "fast": FIRST_FAST},
        measure=Measure("score", 20),
        planned="no",
    ),
    "low_arms": Plan(
        "Which change leaves fewer arms below 38.5 after learning?",
        measure=Measure("score", 20),
        planned="no",
    ),
    "tuning_fast": Plan(
        "Which preset solves the task in less time?", measure=Measure("score", 20), planned="no"
    ),
    "engines": Plan(
        "Do the two engines train equally good agents (seeds 0 to 9)?",
        measure=Measure("score", 100),
        pairs=against("torch", "compiled"),
        margin=1.0,
    ),
    # ------------------------------------------------------------------------------- ingredients
    "study": Plan(  # of an older agent, without mirrors
        "When do n-step returns, prioritized replay and NoisyNet help?",
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
        {"episodes": 40, "evaluate_every": 1},
        Measure(last=20),
        pairs=against(
            "default",
            "n_step_1",
            "uniform_replay",
            "no_noisy_layers",
            "none_of_three",
            "no_mirrors",
        ),
        margin=1.0,
    ),
    "pilot": Plan(
        "How difficult are the tasks of the next plans for an agent with none of the three?",
        range(8900, 8903),
        {f"delayed_{every}": {"reward_every": every} for every in (15, 30, 60)}
        | {f"goal_size_{size}": {"goal_size": size} for size in (2.0, 1.6, 1.3)}
        | {"one_arm": {"arms": 1, "episodes": 60}},
        {"episodes": 24, "evaluate_every": 2, **FIXED_SCHEDULES, **NONE_OF_THREE},
        planned="no",
    ),
    "more_noise": Plan(
        "Is it NoisyNet, or is it more noise? (Matched noise moves the actions as far.)",
        range(8400, 8416),
        {
            f"{task}_{name}": {**TASKS[task], **FIXED_SCHEDULES, "n_step": 1, **changes}
            for task, matched in (("delayed_rewards", 0.273), ("one_arm", 0.324))
            for name, changes in {
                "gaussian_0.2": {"noisy_layers": False},
                "gaussian_matched": {"noisy_layers": False, "gaussian_sigma": matched},
                "gaussian_0.4": {"noisy_layers": False, "gaussian_sigma": 0.4},
                "noisy": {},
                "noisy_alone_1.0": {"noise_schedule": "best_score", "gaussian_sigma": 0.0},
                "noisy_alone_0.5": {
                    "noise_schedule": "best_score",
                    "gaussian_sigma": 0.0,
                    "noisy_sigma": 0.5,
                },
            }.items()
        },
        pairs=[
            (f"{task}_{name}", f"{task}_gaussian_matched")
            for task in ("delayed_rewards", "one_arm")
            for name in ("noisy", "noisy_alone_1.0")
        ],
        margin=MARGIN,
    ),
    "three": Plan(
        "Do n-step returns, prioritized replay and NoisyNet replace each other?",
        range(8500, 8516),
        {
            f"{'clock_' * clock}n_{n}_{replay}_{'noisy' if noisy else 'plain'}": {
                "n_step": n,
                "replay": replay,
                "noisy_layers": noisy,
                "clock": clock,
            }
            for clock, (n, replay, noisy) in [
                *itertools.product(
                    (False, True),
                    itertools.product((1, 3), ("uniform", "prioritized"), (False, True)),
                ),
                *((False, (n, "prioritized", True)) for n in (2, 5, 10)),
            ]
        },
        {**TASKS["delayed_rewards"], **FIXED_SCHEDULES},
        contrasts={"all three, without a clock": factorial("n_{}_{}_{}", FACTORS, (0, 1, 2))},
        secondary={
            "all three, with a clock": factorial("clock_n_{}_{}_{}", FACTORS, (0, 1, 2)),
            **{
                f"n = 3, {replay}, {noisy}{told}": (
                    factorial(f"{clock}n_{{}}_{replay}_{noisy}", FACTORS[:1], (0,))
                )
                for clock, told in (("", ""), ("clock_", ", with a clock"))
                for replay in FACTORS[1]
                for noisy in FACTORS[2]
            },
        },
    ),
    "rates": Plan(
        "Does prioritized replay help where each agent has its best learning rate?",
        range(8600, 8612),
        {
            f"{task}_{name}_{rate}": {
                **TASKS[task],
                **FIXED_SCHEDULES,
                **changes,
                "actor_learning_rate": rate,
                "critic_learning_rate": rate,
            }
            for task in ("small_goals", "delayed_rewards")
            for name, changes in {
                "none": NONE_OF_THREE,
                "prioritized": {"n_step": 1, "noisy_layers": False},
                "prioritized_noisy": {"n_step": 1},
                "all": {},
            }.items()
            for rate in (0.0005, 0.001, 0.002)
        },
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
        each(
            {
                "pendulum_in_lumps": {
                    "location": "gymnasium:Pendulum-v1",
                    "arms": 10,
                    "reward_every": 20,
                    "episodes": 40,
                    "evaluate_every": 2,
                },
                "sparse_reacher": {
                    "location": "gymnasium:research.environments:SparseReacher-v0",
                    "episodes": 100,
                    "evaluate_every": 5,
                },
                "double_pendulum": {
                    "location": "gymnasium:InvertedDoublePendulum-v5",
                    "arms": 1,
                    "episodes": 300,
                    "evaluate_every": 10,
                },
            },
            {
                "none": NONE_OF_THREE,
                "n_step": {"replay": "uniform", "noisy_layers": False},
                "prioritized": {"n_step": 1, "noisy_layers": False},
                "noisy": {"n_step": 1, "replay": "uniform"},
                "all": {},
            },
        ),
        {**FIXED_SCHEDULES, "reward_scale": 1.0},
        pairs=[
            (f"{environment}_{added}", f"{environment}_none")
            for environment in ("pendulum_in_lumps", "sparse_reacher", "double_pendulum")
            for added in ("n_step", "prioritized", "noisy", "all")
        ],
    ),
    # ------------------------------------------------------------------------------- comparisons
    "extensions": Plan(
        "Are TD3, D4PG and CrossQ better than DDPG here?",
        range(8500, 8510),
        {
            "default": {},
            "td3": {"learner": "TD3", "policy_delay": 2},
            "d4pg": {"learner": "D4PG"},
            "crossq": {"learner": "CrossQ"},
        },
        {"episodes": 40},
        Measure("score", 20),
        pairs=against("default", "td3", "d4pg", "crossq"),
        margin=1.0,
    ),
    "tuning_alone": Plan(
        "How far does tuning alone get, without any of the four improvements?",
        range(8800, 8810),
        {
            "tuned": {},
            "fewer_steps": {"gradient_steps": 10},
            "no_layer_norm": {"learner": "NoLayerNorm"},
            "batch_128": {"batch_size": 128},
            "constant_noise": {"noise_schedule": "constant", "gaussian_sigma": 0.3},
            "all_four": {
                "gradient_steps": 10,
                "learner": "NoLayerNorm",
                "batch_size": 128,
                "noise_schedule": "constant",
                "gaussian_sigma": 0.3,
            },
        },
        {**NONE_OF_THREE, "mirrors": "none", "episodes": 10, "evaluate_every": 1},
        Measure(last=10),
        pairs=against(
            "tuned", "fewer_steps", "no_layer_norm", "batch_128", "constant_noise", "all_four"
        ),
    ),
    "batches": Plan(
        "Does `default` gain from larger batches?",
        range(7100, 7120),
        {
            "default": {},
            "batch_128": {"batch_size": 128},
            "batch_128_half_the_steps": {"batch_size": 128, "gradient_steps": 20},
        },
        {"episodes": 20, "evaluate_every": 1},
        Measure(last=20),
        pairs=against("default", "batch_128", "batch_128_half_the_steps"),
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
        {"episodes": 60},
        Measure("score", 20),
    ),
    "baselines": Plan(
        "How do agents of other libraries do on the arms, each tuned by twenty trainings?",
        range(3400, 3405),
        {
            "default": {},
            "no_mirrors": {"mirrors": "none", **BEFORE},  # an older agent
            "default_no_mirrors": {"mirrors": "none"},  # to run (1)
            **{agent: {"library": agent, **settings} for agent, settings in chosen().items()},
            **{
                f"{agent}_mirrors": {"library": agent, **settings, "mirrors": True}  # to run (1)
                for agent, settings in chosen().items()
                if agent in ("sbx_crossq", "sbx_sac_simba", "sbx_tqc")
            },
        },
        {"episodes": 40, "evaluate_every": 1},
        pairs=[
            (ours, f"{agent}{mirrors}")
            for ours, mirrors in (("default_no_mirrors", ""), ("default", "_mirrors"))
            for agent in ("sbx_crossq", "sbx_sac_simba", "sbx_tqc")
        ],
    ),
    # ------------------------------------------------------- to run; (2) is `research.planner`
    "data_and_thought": Plan(  # (3)
        "What do more gradient steps for a transition bring? (20 arms: 200 transitions a phase)",
        range(9000, 9010),
        {
            f"{steps / 200}_steps_batch_{batch}": {"gradient_steps": steps, "batch_size": batch}
            for steps in (10, 20, 40, 80, 160, 320)
            for batch in (64, 256)
        },
        {
            "max_samples_per_insert": 1000.0,
            "anneal_episodes": None,
            "anneal_gradient_steps": None,
            "episodes": 10,
            "evaluate_every": 1,
        },
        Measure(last=3),
        pairs=[
            (f"{steps / 200}_steps_batch_{batch}", f"0.2_steps_batch_{batch}")
            for batch in (64, 256)
            for steps in (10, 20, 80, 160, 320)
        ],
    ),
    "end_of_learning": Plan(  # (4)
        "Does an end of learning do more than keeping the weights of the best evaluation?",
        range(9020, 9040),
        {
            "default": {},
            "no_end": {"anneal_episodes": None},
            "no_end_best_kept": {"anneal_episodes": None, "keep_best": True},
        },
        {"episodes": 60, "evaluate_every": 1},
        Measure(first=41, last=60),
        pairs=[*against("default", "no_end", "no_end_best_kept"), ("no_end_best_kept", "no_end")],
        margin=0.1,
    ),
    "lumps": Plan(  # (5)
        "Does prioritized replay help with delayed rewards because no clock announces them?",
        range(9040, 9070),
        {
            f"{clock}_{replay}": {"replay": replay, "clock": clock == "clock"}
            for clock in ("none", "clock")
            for replay in FACTORS[1]
        },
        {**TASKS["delayed_rewards"], **FIXED_SCHEDULES},
        pairs=[(f"{clock}_prioritized", f"{clock}_uniform") for clock in ("none", "clock")],
        contrasts={
            "prioritized replay, with a clock minus without": factorial(
                "{}_{}", [("none", "clock"), FACTORS[1]], (0, 1)
            )
        },
        margin=MARGIN,
    ),
    "sensitivity": Plan(  # (6)
        "How much does each setting matter around its default?",
        range(9070, 9080),
        {"default": {}}
        | grid(gradient_steps=(10, 20, 80, 160))
        | grid(batch_size=(32, 128, 256, 512))
        | grid(n_step=(1, 2, 5, 10))
        | grid(discount=(0.9, 0.95, 0.98, 0.99))
        | grid(actor_learning_rate=(0.0001, 0.0003, 0.003, 0.01))
        | grid(critic_learning_rate=(0.0001, 0.0003, 0.003, 0.01))
        | grid(tau=(0.001, 0.003, 0.03, 0.1))
        | grid(gaussian_sigma=(0.0, 0.1, 0.2, 0.8)),
        {"max_samples_per_insert": 1000.0, "episodes": 20, "evaluate_every": 1},
        Measure(last=20),
    ),
    "standard_tasks": Plan(  # (7), 300,000 steps each
        "Do the three help in four standard tasks?",
        range(9080, 9090),
        each(
            {
                "half_cheetah": {"location": "gymnasium:HalfCheetah-v5"},
                "swimmer": {"location": "gymnasium:Swimmer-v5"},
                "pusher": {"location": "gymnasium:Pusher-v5", "arms": 10},
                "mountain_car": {"location": "gymnasium:MountainCarContinuous-v0"},
            },
            {
                "none": NONE_OF_THREE,
                "n_step": {"replay": "uniform", "noisy_layers": False},
                "prioritized": {"n_step": 1, "noisy_layers": False},
                "all": {},
            },
        ),
        {"arms": 1, "episodes": 300, "evaluate_every": 10, "reward_scale": 1.0, **FIXED_SCHEDULES},
        pairs=[
            (f"{task}_{added}", f"{task}_none")
            for task in ("half_cheetah", "swimmer", "pusher", "mountain_car")
            for added in ("n_step", "prioritized", "all")
        ],
    ),
}
