"""Planned comparisons: variants of the agent, each trained on the same seeds.

    python -m tutorial.experiments.trials mirrors            train what is missing
    python -m tutorial.experiments.trials mirrors --list     what is done

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
`lost_arms.csv` there, with the decision at which they lost their goal and where it was.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import dataclasses
import io
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import filelock
import numpy as np

from reacher.files import write_whole
from reacher.gymnasium.delayed_rewards import UnityDelayedRewards
from reacher.task import MAX_DECISION_REWARD
from tutorial import notebook
from tutorial.experiments import runner
from tutorial.paths import CHECKPOINTS, PROJECT
from tutorial.training.environments import open_environment
from tutorial.training.evaluation import open_evaluation
from tutorial.training.randomness import seed_everything
from tutorial.training.scores import SOLVED_SCORE

COLUMNS = ("seed", "episode", "score", "evaluation", "worst_arm", "num_updates", "seconds")
LOST_COLUMNS = ("variant", "seed", "episode", "arm", "score", "decision", "angle", "speed")
LOST_SCORE = 38.5  # of an arm in an evaluation, below which it counts as lost
EVALUATION_ARMS = 20
CLOCK = 29  # x of the hand as the forearm sees it, which is always 0


@dataclass(frozen=True)
class Trial:
    """One training of a plan: a variant and a seed."""

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

    def __str__(self) -> str:
        return f"{self.plan}: {self.variant}, seed {self.seed}"

    def done(self, results: Path) -> bool:
        lines = read_lines(results / f"{self.variant}.csv", COLUMNS)
        return str(self.seed) in {line[0] for line in lines}

    def train(self, out: Path, call: Callable[..., int] = subprocess.call) -> dict[str, bytes]:
        """Train in a process of its own; return its lines as the content of tables.

        Args:
            call: as `runner.Run.train` has it.

        Raises:
            RuntimeError: it failed; with the end of what it said.
        """
        out.mkdir(parents=True, exist_ok=True)
        log = out / f"{self.file_name}.log"
        order = json.dumps(dataclasses.asdict(self))
        command = [sys.executable, "-m", "tutorial.experiments.trials", self.plan, "--train", order]
        with tempfile.TemporaryFile() as lines, open(log, "wb") as told:
            failed = call(
                command,
                cwd=PROJECT,
                stdout=lines,
                stderr=told,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
            )
            lines.seek(0)
            content = lines.read()
        if failed:
            raise RuntimeError(f"{self}: {log.read_text()[-2000:]}")
        return {name: text.encode() for name, text in json.loads(content).items()}

    @property
    def file_name(self) -> str:
        return f"{self.variant}_seed{self.seed}"

    def store(self, files: dict[str, bytes], results: Path) -> None:
        """Add the lines to the tables, in order, one process or thread at a time."""
        results.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(results / ".lock"):
            for name, content in files.items():
                columns = LOST_COLUMNS if name.startswith("lost") else COLUMNS
                new = list(csv.reader(content.decode().splitlines()))
                lines = read_lines(results / name, columns) + new
                lines.sort(key=lambda line: [int(each) if each.isdigit() else 0 for each in line])
                lines.sort(key=lambda line: line[0] if columns is LOST_COLUMNS else "")
                write_whole(results / name, as_csv([columns, *lines]).encode())


def read_lines(path: Path, columns: tuple[str, ...]) -> list[list[str]]:
    """Lines of a table, without its head; none where there is no table yet."""
    if not path.exists():
        return []
    head, *lines = csv.reader(path.read_text().splitlines())
    if tuple(head) != columns:
        raise ValueError(f"{path} does not begin with the columns {','.join(columns)}")
    return lines


def as_csv(lines: Iterable[Iterable]) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(lines)
    return file.getvalue()


def train(trial: Trial) -> dict[str, str]:
    """Train as the notebook does, with evaluations beside; return the lines of the tables."""
    definitions = notebook.definitions()
    settings = definitions.make_hyperparameters(trial.preset, dict(trial.overrides))
    goals = {"goal_size": trial.goal_size}
    evaluation = open_evaluation("", EVALUATION_ARMS, goals, trial.evaluate_every)
    lines, lost, spent = [], [], 0.0
    with (
        tempfile.TemporaryDirectory() as folder,
        open_environment("", trial.arms, trial.seed, goals) as environment,
    ):
        generator = seed_everything(trial.seed)
        agent = definitions.Agent(
            definitions.OBSERVATION_SCALE,
            4,
            trial.arms,
            settings,
            generator,
            SOLVED_SCORE,
            engine="compiled",
        )
        start = time.perf_counter()

        def after_episode(agent, scores):
            nonlocal spent
            began = time.perf_counter()
            seconds, arms = began - start - spent, None
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
            spent += time.perf_counter() - began

        definitions.train_agent(
            delayed(environment, trial.reward_every, trial.clock),
            agent,
            Path(folder),
            trial.episodes,
            stop_when_solved=False,
            save_every=10**6,
            after_episode=after_episode,
        )
    if len(lines) < trial.episodes:  # by Ctrl-C, which only ends a training
        raise KeyboardInterrupt(f"after {len(lines)} of {trial.episodes} episodes")
    return {f"{trial.variant}.csv": as_csv(lines), "lost_arms.csv": as_csv(lost)}


class Clock(UnityDelayedRewards):
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
            answer.vector_observations[:, CLOCK] = (
                self.since % self._delay.every / self._delay.every
            )
        return answers


def delayed(environment, every: int, clock: bool):
    """The environment, or its rewards in lumps, with a clock or without."""
    if every == 1:
        return environment
    return (Clock if clock else UnityDelayedRewards)(environment, every)


def lost_arms(trial: Trial, episode: int, observations, rewards) -> list[list]:
    """Lines of the arms below LOST_SCORE, from observations and rewards (decisions, arms, ...).

    An arm loses its goal when it has been paid in full for a second, and then nothing for one. The
    angle is that of the goal on its circle, degrees; without a loss it never reached its goal.
    """
    lines, second = [], 12  # decisions
    for arm in np.flatnonzero(rewards.sum(axis=0) < LOST_SCORE):
        paid = np.round(rewards[:, arm] / MAX_DECISION_REWARD, 6)
        windows = np.lib.stride_tricks.sliding_window_view(paid, 2 * second)
        lost = (windows[:, :second] == 1).all(axis=1) & (windows[:, second:] == 0).all(axis=1)
        decision = int(lost.argmax()) + second if lost.any() else ""
        x, z = observations[decision or 0, arm, [26, 28]]
        angle, speed = np.degrees(np.arctan2(x, z)) % 360, observations[0, arm, 32]
        score = f"{rewards[:, arm].sum():.2f}"
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


def trials_of_the_mirrors() -> list[Trial]:
    """Those of doc/mirrors.md."""
    steps = {"gradient_steps": 30}  # as it was before the tuning; `fast` had 40
    agents: dict[str, dict[str, Any]] = {
        "default": {"overrides": steps},
        "fast": {"preset": "fast", "overrides": {"gradient_steps": 40}},
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


def trials_of_the_tuning() -> list[Trial]:
    """Settings that may have to change with a canonical frame: doc/mirrors.md."""
    before = {"default": {"gradient_steps": 30}, "fast": {"gradient_steps": 40}}
    default: dict[str, dict[str, Any]] = {
        "default": {},
        "gradient_steps_20": {"gradient_steps": 20},
        "gradient_steps_40": {"gradient_steps": 40},
        "anneal_gradient_steps_30": {"anneal_gradient_steps": 30},
        "anneal_episodes_4": {"anneal_episodes": 4},
        "anneal_episodes_12": {"anneal_episodes": 12},
        "anneal_score_39": {"anneal_score": 39.0},
        "gradient_steps_60": {"gradient_steps": 60},
        "gradient_steps_40_score_39": {"gradient_steps": 40, "anneal_score": 39.0},
        "gradient_steps_60_score_39": {"gradient_steps": 60, "anneal_score": 39.0},
        "gradient_steps_40_10": {"gradient_steps": 40, "anneal_gradient_steps": 10},
    }
    fast: dict[str, dict[str, Any]] = {
        "fast": {},
        "fast_anneal_episodes_4": {"anneal_episodes": 4},
        "fast_gradient_steps_60": {"gradient_steps": 60},
        "fast_n_step_3": {"n_step": 3},
        "fast_gradient_steps_80": {"gradient_steps": 80},
        "fast_gradient_steps_60_score_39": {"gradient_steps": 60, "anneal_score": 39.0},
        "fast_gradient_steps_60_anneal_episodes_4": {"gradient_steps": 60, "anneal_episodes": 4},
    }
    return [
        Trial(
            "mirrors_tuning",
            name,
            seed,
            "fast" if variants is fast else "default",
            {"mirrors": "canonical"}
            | before["fast" if variants is fast else "default"]
            | overrides,
            episodes=60,
        )
        for seed in range(8100, 8104)
        for variants in (default, fast)
        for name, overrides in variants.items()
    ]


def trials_of_the_second_tuning() -> list[Trial]:
    """What may keep the lowest arm high: doc/mirrors.md."""
    default: dict[str, dict[str, Any]] = {
        "default": {},
        "anneal_episodes_16": {"anneal_episodes": 16},
        "anneal_gradient_steps_40": {"anneal_gradient_steps": 40},
        "policy_delay_1": {"policy_delay": 1},
        "batch_size_128": {"batch_size": 128},
        "discount_0.95": {"discount": 0.95},
    }
    fast: dict[str, dict[str, Any]] = {
        "fast": {},
        "fast_policy_delay_1": {"policy_delay": 1},
        "fast_batch_size_128": {"batch_size": 128},
        "fast_anneal_gradient_steps_30": {"anneal_gradient_steps": 30},
        "fast_n_step_2": {"n_step": 2},
    }
    return [
        Trial(
            "mirrors_tuning_2",
            name,
            seed,
            "fast" if variants is fast else "default",
            overrides,
            episodes=60,
        )
        for seed in range(8104, 8110)
        for variants in (default, fast)
        for name, overrides in variants.items()
    ]


def trials_of_the_choice() -> list[Trial]:
    """Both presets as the tuning left them, on seeds of their own."""
    return [
        Trial("mirrors_confirmed", preset, seed, preset)
        for seed in range(8200, 8210)
        for preset in ("default", "fast")
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


PLANS: dict[str, Callable[[], list[Trial]]] = {
    "mirrors": trials_of_the_mirrors,
    "mirrors_tuning": trials_of_the_tuning,
    "mirrors_tuning_2": trials_of_the_second_tuning,
    "mirrors_confirmed": trials_of_the_choice,
    "pilot": trials_of_the_pilot,
    "leave_one_out": trials_of_leaving_one_out,
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
        with contextlib.redirect_stdout(sys.stderr):  # what a training says is no table
            files = train(Trial(**json.loads(options.train)))
        json.dump(files, sys.stdout)
        return 0
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
    return min(1, runner.report_all(outcomes, len(missing), results))


if __name__ == "__main__":
    runner.interrupt_on_termination()
    sys.exit(main())
