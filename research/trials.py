"""Planned comparisons: variants of the agent, each trained on the same seeds.

    python -m research.trials mirrors            train what is missing
    python -m research.trials mirrors --list     what is done

Each training is a process of its own, as section 6 of the notebook trains, but without a kernel.
Its episodes become lines of `checkpoints/<plan>/<variant>.csv`:

| column | meaning |
|---|---|
| seed | of the environment, the networks and the noise |
| episode | of training, from 1 on |
| score | of that episode, with noise until learning ends: mean over the arms |
| evaluation, worst_arm | an episode without noise after it, on goals of its own; or empty |
| num_updates | gradient steps so far |
| seconds | of training so far, without evaluations |

Arms that score below 38.5 in an evaluation after the end of learning become lines of
`lost_arms.csv` there, with the decision at which they lost their goal and where it was. Numbers of
`research.symptoms`, where a trial wants them, become lines of `numbers.csv`, one for
each episode in which the agent learns.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from reacher.delayed_rewards import DelayedRewards
from reacher.task import MAX_DECISION_REWARD
from research import bugs, runner, symptoms
from research.report import trials as report
from research.training import TableRun, as_csv, print_tables, read_lines, train_agent
from tutorial import notebook
from tutorial.environments import open_environment, reward_threshold_of
from tutorial.evaluation import open_evaluation
from tutorial.paths import CHECKPOINTS, NOTEBOOK, PROJECT

COLUMNS = ("seed", "episode", "score", "evaluation", "worst_arm", "num_updates", "seconds")
LOST_COLUMNS = ("variant", "seed", "episode", "arm", "score", "decision", "angle", "speed")
NUMBER_COLUMNS = ("variant", "seed", "episode", *symptoms.NUMBERS)
OTHER_TABLES = {
    "lost_arms.csv": LOST_COLUMNS,
    "numbers.csv": NUMBER_COLUMNS,
}
EVALUATION_ARMS = 20
CLOCK = 29  # x of the hand as the forearm sees it, which is always 0


@dataclass(frozen=True)
class Trial(TableRun):
    """One training of a plan: a variant and a seed."""

    module = "research.trials"
    plan: str
    variant: str
    seed: int
    preset: str = "default"
    overrides: Mapping[str, Any] = field(default_factory=dict, hash=False)
    arms: int = 20
    episodes: int = 100
    evaluate_every: int = 5
    goal_size: float = 5.0  # m
    reward_every: int = 1  # decisions after which the rewards since the last time are paid
    clock: bool = False  # whether the arms observe how many of these decisions have passed
    edits: list[list[str]] = field(default_factory=list, hash=False)  # of cells, pairs (old, new)
    engine: str = "compiled"
    numbers: bool = False  # whether those of `symptoms` are measured, too
    learner: str = "DDPG"  # or a class of doc/extensions.ipynb
    location: str = ""  # of the environment, as the notebook's parameter

    def __str__(self) -> str:
        return f"{self.plan}: {self.variant}, seed {self.seed}"

    def done(self, results: Path) -> bool:
        lines = read_lines(results / f"{self.variant}.csv", COLUMNS)
        return str(self.seed) in {line[0] for line in lines}

    @property
    def arguments(self) -> tuple[str, ...]:
        return (self.plan,)

    @property
    def file_name(self) -> str:
        return f"{self.variant}_seed{self.seed}"

    def columns(self, table: str) -> tuple[str, ...]:
        return OTHER_TABLES.get(table, COLUMNS)


def train(trial: Trial) -> dict[str, str]:
    """Train as the notebook does, with evaluations beside; return the lines of the tables."""
    definitions = notebook.definitions()
    if trial.plan == "bugs":
        definitions = bugs.cells_with(trial.variant)
    elif trial.edits:
        definitions = notebook.load_definitions(NOTEBOOK, trial.edits)
    owner = definitions if trial.learner == "DDPG" else notebook.extensions()
    goals = {} if trial.location else {"goal_size": trial.goal_size}
    judges = trial.arms if trial.location else EVALUATION_ARMS
    evaluation = open_evaluation(trial.location, judges, goals, trial.evaluate_every)
    lines, lost, measured = [], [], []

    def after_episode(agent, scores, seconds):
        arms = None
        if evaluation.due(len(scores)):
            earlier = len(scores) // evaluation.every - 1
            decisions = itertools.count()

            def mean_policy(seen):
                if trial.clock:
                    seen[:, CLOCK] = next(decisions) % trial.reward_every / trial.reward_every
                return agent.act(seen, explore=False)

            played = evaluation.rollout(mean_policy, earlier)
            seen, _, rewards = (np.array(part) for part in zip(*played, strict=True))
            arms = rewards.sum(axis=0)
            if not agent.learns:
                lost.extend(lost_arms(trial, len(scores), seen, rewards))
        if trial.numbers and agent.learns:
            found = symptoms.numbers_of(agent, trial.arms).values()
            number = [f"{value:.5g}" for value in found]
            measured.append([trial.variant, trial.seed, len(scores), *number])
        lines.append(
            [
                trial.seed,
                len(scores),
                f"{scores[-1]:.3f}",
                "" if arms is None else f"{arms.mean():.3f}",
                "" if arms is None else f"{arms.min():.2f}",
                agent.num_updates,
                f"{seconds:.2f}",
            ]
        )

    with open_environment(trial.location, trial.arms, trial.seed, goals) as environment:
        threshold = reward_threshold_of(environment)
        brain = environment.brains[environment.brain_names[0]]
        train_agent(
            delayed(environment, trial.reward_every, trial.clock),
            definitions.make_hyperparameters(
                trial.preset, dict(trial.overrides), threshold, not trial.location
            ),
            trial.arms,
            trial.seed,
            trial.episodes,
            after_episode,
            scale=getattr(environment, "observation_scale", None),  # the arms' is the notebook's
            reward_threshold=threshold,
            engine=trial.engine,
            definitions=definitions,
            action_size=brain.vector_action_space_size,
            learner=getattr(owner, trial.learner),
        )
    tables = {"lost_arms.csv": lost}
    tables |= {"numbers.csv": measured} if trial.numbers else {}
    tables[f"{trial.variant}.csv"] = lines  # which means done, so it is stored last
    return {name: as_csv(found) for name, found in tables.items()}


class Clock(DelayedRewards):
    """Delayed rewards whose agents observe the share of the time between two payments."""

    def reset(self, *arguments, **options):
        self.since = 0
        return self.seen(super().reset(*arguments, **options))

    def step(self, *arguments, **options):
        self.since += 1
        return self.seen(super().step(*arguments, **options))

    def seen(self, answers):
        """The same answers with the clock in the place of a number that is always 0."""
        for answer in answers.values():
            answer.vector_observations[:, CLOCK] = self.since % self.every / self.every
        return answers


def delayed(environment, every: int, clock: bool):
    """The environment, or its rewards in lumps, with a clock or without."""
    if every == 1:
        return environment
    return (Clock if clock else DelayedRewards)(environment, every)


def lost_arms(trial: Trial, episode: int, observations, rewards) -> list[list]:
    """Lines of the arms below LOW_SCORE, from observations and rewards (decisions, arms, ...).

    An arm loses its goal when it has been paid in full for a second, and then nothing for one. The
    angle is that of the goal on its circle, degrees; without a loss it never reached its goal.
    """
    lines, second = [], 12  # decisions
    scores = rewards.sum(axis=0).round(6)  # of hundredths, whose sums are off by rounding
    for arm in np.flatnonzero(scores < report.LOW_SCORE):
        paid = np.round(rewards[:, arm] / MAX_DECISION_REWARD, 6)
        windows = np.lib.stride_tricks.sliding_window_view(paid, 2 * second)
        lost = (windows[:, :second] == 1).all(axis=1) & (windows[:, second:] == 0).all(axis=1)
        decision = int(lost.argmax()) + second if lost.any() else ""
        x, z = observations[decision or 0, arm, [26, 28]]
        angle, speed = np.degrees(np.arctan2(x, z)) % 360, observations[0, arm, 32]
        score = f"{scores[arm]:.2f}"
        lines.append(
            [
                trial.variant,
                trial.seed,
                episode,
                arm,
                score,
                decision,
                f"{angle:.0f}",
                f"{speed:.3f}",
            ]
        )
    return lines


MIRRORS = ("none", "samples", "canonical")
NONE_OF_THREE = {"n_step": 1, "replay": "uniform", "noisy_layers": False}


FIRST_FAST: dict[str, Any] = {  # what `fast` was before it became what `tuning_fast` chose
    "n_step": 1,
    "discount": 0.95,
    "batch_size": 128,
    "anneal_gradient_steps": 10,
    "anneal_episodes": 7,
}
BEFORE: dict[str, dict[str, Any]] = {  # the tuning
    "default": {"gradient_steps": 30, "policy_delay": 2},
    "fast": FIRST_FAST | {"gradient_steps": 40, "policy_delay": 2, "batch_size": 64},
}


def trials_of_the_mirrors() -> list[Trial]:
    """Those of doc/mirrors.md."""
    steps = BEFORE["default"]
    agents: dict[str, dict[str, Any]] = {
        "default": {"overrides": steps},
        "fast": {"overrides": BEFORE["fast"]},
        "none_of_three": {"overrides": steps | NONE_OF_THREE},
        "one_arm": {"overrides": steps, "arms": 1, "episodes": 150},
    }
    return [
        Trial("mirrors", f"{agent}_{mirrors}", seed, **changed)
        for agent, options in agents.items()
        for mirrors in MIRRORS
        for changed in [options | {"overrides": options["overrides"] | {"mirrors": mirrors}}]
        for seed in range(8000, 8010)
    ]


def trials_of_the_extensions() -> list[Trial]:
    """Those of doc/extensions.ipynb, section 5."""
    learners = {"default": "DDPG"} | {name.lower(): name for name in ("TD3", "D4PG", "CrossQ")}
    return [
        Trial("extensions", variant, seed, overrides=overrides, episodes=40, learner=learner)
        for variant, learner in learners.items()
        for overrides in [{"policy_delay": 2} if learner == "TD3" else {}]
        for seed in range(8500, 8510)
    ]


STEPS = {"default": {"gradient_steps": 40}, "fast": {"gradient_steps": 60}}  # by the first round
TUNED: dict[str, dict[str, Any]] = {"default": {}, "fast": FIRST_FAST}  # by the second


def trials_of_the_choices() -> list[Trial]:
    """Both presets as each round of tuning left them, on seeds of their own."""
    first = [
        Trial("mirrors_tuned", f"{preset}_1", seed, overrides=BEFORE[preset] | STEPS[preset])
        for seed in range(8200, 8210)
        for preset in STEPS
    ]
    return first + [
        Trial("mirrors_tuned", preset, seed, overrides=overrides)
        for seed in range(8210, 8220)
        for preset, overrides in TUNED.items()
    ]


def trials_of_tuning_fast() -> list[Trial]:
    """Ways to solve the task in less time, which doc/mirrors.md tells."""
    shorter = {"anneal_episodes": 4}
    variants: dict[str, dict[str, Any]] = {
        "shorter": shorter,
        "shorter_10": shorter | {"anneal_gradient_steps": 10},
        "shorter_not_noisy": shorter | {"noisy_layers": False},
        "shorter_not_noisy_n_step_1": shorter | {"noisy_layers": False, "n_step": 1},
        "before": FIRST_FAST,
    }
    test = {"test_before": FIRST_FAST, "test": variants["shorter_not_noisy"]}
    return [
        Trial("tuning_fast", name, seed, overrides=overrides, episodes=60)
        for seeds, tried in ((range(8120, 8124), variants), (range(8220, 8230), test))
        for seed in seeds
        for name, overrides in tried.items()
    ]


AVERAGED_ACTOR = (  # once learning has ended, the mean of the actor's weights over four episodes
    (
        "    def begin_episode(self):\n        self.learns = self.schedules.anneal_factor() > 0\n",
        """\
    def begin_episode(self):
        self.learns = self.schedules.anneal_factor() > 0
        if self.learns and self.schedules.is_annealing():
            weights = self.ddpg.actor.state_dict()
            copies = {name: weight.clone() for name, weight in weights.items()}
            self.seen_weights = [*getattr(self, "seen_weights", []), copies][-4:]
        elif self.schedules.is_annealing() and getattr(self, "seen_weights", None):
            last = self.seen_weights
            mean = {name: torch.stack([seen[name] for seen in last]).mean(0) for name in last[0]}
            self.ddpg.actor.load_state_dict(mean)
            self.seen_weights = None
""",
    ),
)


def trials_of_the_low_arms() -> list[Trial]:
    """Ways to have fewer arms below 38.5, which doc/mirrors.md tells."""
    larger = {"actor_hidden": [256, 256], "critic_hidden": [256, 256]}
    variants: dict[str, dict[str, Any]] = {
        "default": {},
        "larger": {"overrides": larger},
        "averaged": {"edits": [list(edit) for edit in AVERAGED_ACTOR]},
        "larger_not_noisy": {"overrides": larger | {"noisy_layers": False}},
        "larger_not_noisy_16": {
            "overrides": larger | {"noisy_layers": False, "anneal_episodes": 16}
        },
    }
    return [
        Trial("low_arms", name, seed, **options)
        for seed in range(8110, 8116)
        for name, options in variants.items()
    ]


FIXED_SCHEDULES = {  # nothing depends on the score
    "noise_schedule": "constant",
    "gaussian_sigma": 0.2,
    "anneal_episodes": None,
    "anneal_gradient_steps": None,
}


def trials_of_leaving_one_out() -> list[Trial]:
    """Question 1 of doc/questions.md."""
    variants: dict[str, dict[str, Any]] = {
        "default": {},
        "n_step_1": {"n_step": 1},
        "uniform_replay": {"replay": "uniform"},
        "no_noisy_layers": {"noisy_layers": False},
        "none_of_three": NONE_OF_THREE,
        "no_mirrors": {"mirrors": "none"},
    }
    return [
        Trial("leave_one_out", name, seed, overrides=overrides, episodes=40, evaluate_every=1)
        for seed in range(7000, 7030)
        for name, overrides in variants.items()
    ]


def trials_of_the_pilot() -> list[Trial]:
    """What decides the difficulty of the tasks of doc/questions.md."""
    tasks: dict[str, dict[str, Any]] = {
        f"delayed_{every}": {"reward_every": every} for every in (15, 30, 60)
    }
    tasks |= {f"goal_size_{size}": {"goal_size": size} for size in (2.0, 1.6, 1.3)}
    tasks |= {"one_arm": {"arms": 1, "episodes": 60}}
    return [
        Trial(
            "pilot",
            name,
            seed,
            overrides=FIXED_SCHEDULES | NONE_OF_THREE,
            **{"episodes": 24, "evaluate_every": 2} | task,
        )
        for seed in range(8900, 8903)
        for name, task in tasks.items()
    ]


TASKS: dict[str, dict[str, Any]] = {  # as the pilot decided, by the rule of doc/questions.md
    "delayed_rewards": {"reward_every": 30, "episodes": 24, "evaluate_every": 2},
    "small_goals": {"goal_size": 1.3, "episodes": 24, "evaluate_every": 2},
    "one_arm": {"arms": 1, "episodes": 40, "evaluate_every": 2},
}
MATCHED_SIGMAS = {"delayed_rewards": 0.273, "one_arm": 0.324}  # as measured for question 2
WITHOUT_ADDED_NOISE = {
    "anneal_episodes": None,
    "anneal_gradient_steps": None,
    "gaussian_sigma": 0.0,
}


def only_gaussian(sigma: float) -> dict[str, Any]:
    """The agent of question 2 with Gaussian noise of this sigma, and without NoisyNet."""
    return FIXED_SCHEDULES | {"n_step": 1, "noisy_layers": False, "gaussian_sigma": sigma}


NOISY_AND_GAUSSIAN = FIXED_SCHEDULES | {"n_step": 1}


def trials_of_more_noise() -> list[Trial]:
    """Question 2 of doc/questions.md."""
    variants: dict[str, Callable[[str], dict[str, Any]]] = {
        "gaussian_0.2": lambda task: only_gaussian(0.2),
        "gaussian_matched": lambda task: only_gaussian(MATCHED_SIGMAS[task]),
        "gaussian_0.4": lambda task: only_gaussian(0.4),
        "noisy": lambda task: NOISY_AND_GAUSSIAN,
        "noisy_alone_1.0": lambda task: WITHOUT_ADDED_NOISE | {"n_step": 1, "noisy_sigma": 1.0},
        "noisy_alone_0.5": lambda task: WITHOUT_ADDED_NOISE | {"n_step": 1, "noisy_sigma": 0.5},
    }
    return [
        Trial("more_noise", f"{task}_{name}", seed, overrides=overrides(task), **TASKS[task])
        for seed in range(8400, 8416)
        for task in ("delayed_rewards", "one_arm")
        for name, overrides in variants.items()
    ]


def trials_of_the_three() -> list[Trial]:
    """Question 3 of doc/questions.md."""
    cells = itertools.product((1, 3), ("uniform", "prioritized"), (False, True))
    variants = {report.cell_name(*cell): cell for cell in cells}
    more = {report.cell_name(n, "prioritized", True): (n, "prioritized", True) for n in (2, 5, 10)}
    return [
        Trial(
            "three",
            f"clock_{name}" if clock else name,
            seed,
            overrides=FIXED_SCHEDULES | dict(zip(NONE_OF_THREE, cell, strict=True)),
            clock=clock,
            **TASKS["delayed_rewards"],
        )
        for seed in range(8500, 8516)
        for clock, named in ((False, variants | more), (True, variants))
        for name, cell in named.items()
    ]


def trials_of_the_rates() -> list[Trial]:
    """Question 4 of doc/questions.md."""
    variants: dict[str, dict[str, Any]] = {
        "none": NONE_OF_THREE,
        "prioritized": {"n_step": 1, "noisy_layers": False},
        "prioritized_noisy": {"n_step": 1},
        "all": {},
    }
    return [
        Trial(
            "rates",
            f"{task}_{name}_{rate}",
            seed,
            overrides=FIXED_SCHEDULES
            | overrides
            | {"actor_learning_rate": rate, "critic_learning_rate": rate},
            **TASKS[task],
        )
        for seed in range(8600, 8612)
        for task in ("small_goals", "delayed_rewards")
        for name, overrides in variants.items()
        for rate in report.RATES
    ]


ENVIRONMENTS: dict[str, dict[str, Any]] = {  # of question 5
    "pendulum_in_lumps": {
        "location": "gymnasium:Pendulum-v1",
        "arms": 10,
        "reward_every": 20,
        "episodes": 40,
        "evaluate_every": 2,
    },
    "sparse_reacher": {
        "location": "gymnasium:research.sparse:SparseReacher-v0",
        "arms": 20,
        "episodes": 100,
        "evaluate_every": 5,
    },
    "double_pendulum": {
        "location": "gymnasium:InvertedDoublePendulum-v5",
        "arms": 1,
        "episodes": 300,
        "evaluate_every": 10,
    },
}


def trials_of_other_environments() -> list[Trial]:
    """Question 5 of doc/questions.md."""
    variants: dict[str, dict[str, Any]] = {
        "none": NONE_OF_THREE,
        "n_step": {"replay": "uniform", "noisy_layers": False},
        "prioritized": {"n_step": 1, "noisy_layers": False},
        "noisy": {"n_step": 1, "replay": "uniform"},
        "all": {},
    }
    return [
        Trial(
            "environments",
            f"{environment}_{name}",
            seed,
            overrides=FIXED_SCHEDULES | {"reward_scale": 1.0} | overrides,
            **options,
        )
        for seed in range(8700, 8710)
        for environment, options in ENVIRONMENTS.items()
        for name, overrides in variants.items()
    ]


NO_LAYER_NORM = (
    "return nn.Sequential(linear(inputs, outputs, sigma), nn.LayerNorm(outputs), nn.ReLU())",
    "return nn.Sequential(linear(inputs, outputs, sigma), nn.ReLU())",
)


def trials_of_tuning_alone() -> list[Trial]:
    """Question 6 of doc/questions.md."""
    tuned: dict[str, Any] = NONE_OF_THREE | {"mirrors": "none"}
    changes: dict[str, dict[str, Any]] = {
        "fewer_steps": {"gradient_steps": 10},
        "no_layer_norm": {},
        "batch_128": {"batch_size": 128},
        "constant_noise": {"noise_schedule": "constant", "gaussian_sigma": 0.3},
    }
    everything = {name: value for change in changes.values() for name, value in change.items()}
    return [
        Trial(
            "tuning_alone",
            name,
            seed,
            overrides=tuned | change,
            edits=[list(NO_LAYER_NORM)] if name in ("no_layer_norm", "all_four") else [],
            episodes=10,
            evaluate_every=1,
        )
        for seed in range(8800, 8810)
        for name, change in {"tuned": {}, **changes, "all_four": everything}.items()
    ]


def trials_of_larger_batches() -> list[Trial]:
    """Question 7 of doc/questions.md."""
    variants: dict[str, dict[str, Any]] = {
        "default": {},
        "batch_128": {"batch_size": 128},
        "batch_128_half_the_steps": {"batch_size": 128, "gradient_steps": 20},
    }
    return [
        Trial("batches", name, seed, overrides=overrides, episodes=20, evaluate_every=1)
        for seed in range(7100, 7120)
        for name, overrides in variants.items()
    ]


def trials_of_one_arm() -> list[Trial]:
    """Question 8 of doc/questions.md."""
    return [Trial("one_arm", "default", seed, arms=1) for seed in range(7200, 7210)]


def trials_of_the_bugs() -> list[Trial]:
    """Those of doc/bugs.md."""
    return [
        Trial(
            "bugs",
            name,
            seed,
            overrides=bugs.overrides_of(name),
            episodes=60,
            numbers=True,
        )
        for seed in range(8300, 8305)
        for name in bugs.BUGS
    ]


PLANS: dict[str, Callable[[], list[Trial]]] = {
    "mirrors": trials_of_the_mirrors,
    "mirrors_tuned": trials_of_the_choices,
    "low_arms": trials_of_the_low_arms,
    "tuning_fast": trials_of_tuning_fast,
    "bugs": trials_of_the_bugs,
    "pilot": trials_of_the_pilot,
    "leave_one_out": trials_of_leaving_one_out,
    "extensions": trials_of_the_extensions,
    "more_noise": trials_of_more_noise,
    "three": trials_of_the_three,
    "rates": trials_of_the_rates,
    "environments": trials_of_other_environments,
    "tuning_alone": trials_of_tuning_alone,
    "batches": trials_of_larger_batches,
    "one_arm": trials_of_one_arm,
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plan", choices=PLANS)
    parser.add_argument("--train", metavar="TRIAL", help="one trial; this is how processes begin")
    parser.add_argument("--only", nargs="*", help="variants; all where none is named")
    parser.add_argument("--list", action="store_true", help="say what is done, and run nothing")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="trials at a time")
    options = parser.parse_args(arguments)
    if options.train:
        return print_tables(lambda: train(Trial(**json.loads(options.train))))
    results = CHECKPOINTS / options.plan
    trials = [
        trial
        for trial in PLANS[options.plan]()
        if not options.only or trial.variant in options.only
    ]
    missing = [trial for trial in trials if not trial.done(results)]
    print(f"{len(trials) - len(missing)} of {len(trials)} trials done")
    if options.list:
        return 0
    outcomes = runner.train_here(missing, PROJECT / "runs" / options.plan, options.workers, results)
    return runner.report_all(outcomes, len(missing), results)


if __name__ == "__main__":
    runner.interrupt_on_termination()
    sys.exit(main())
