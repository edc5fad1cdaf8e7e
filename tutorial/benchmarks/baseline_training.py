"""The same task learned by other people's agents.

    python -m tutorial.benchmarks.baseline_training "SBX DDPG, defaults" --seed 0

trains one of them and prints its record as one line of JSON, after its scores.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys

import numpy as np
import torch

from reacher.task import EPISODE_DECISIONS
from tutorial.benchmarks import trainings
from tutorial.benchmarks.measure import SEEDS, Options, Recorder
from tutorial.paths import PROJECT
from tutorial.report.tables import as_markdown
from tutorial.training.scores import first_at

TITLE = "The same task by other agents"
SECONDS = 30  # of a baseline's training: twice what ours took, or nearly
FIRST_SEED = 3100  # fresh: nothing was chosen by what these seeds did
EXPLANATION = f"""\
Seconds and decisions (each one of all 20 arms) until an episode first scores 30, at most 40
episodes (ours: 20) and {SECONDS:g} s (ours: no limit); a training that does not get there says so.
Seeds from {FIRST_SEED} on. All act on the same 20 arms at once, know that the end of an episode is
a time limit, and have one thread, which is quickest for networks of this size. The clock starts
with the training. Ours runs in the notebook by papermill; each training is a process of its own,
and all agents have their turn with a seed before the next seed begins. Between decisions of all 20
arms:

- *Stable-Baselines3* and *SBX*, the same agents on JAX, *defaults*: every setting as it comes (one
  update of 256 transitions; discount 0.99; DDPG and TD3 without noise).
- The same *like ours*: `VecNormalize`, which also scales the rewards, and the settings of `default`
  as far as they have them: thirty updates of 64 transitions every ten decisions, two layers of 128
  units, learning rate 0.001, discount 0.97, 3-step returns, tau 0.01, 1,000 transitions before
  learning, and noise on the actions of DDPG and TD3, of 0.2, since they have no schedule that would
  end a louder one. SBX makes those thirty in one compiled call."""

ARMS, EPISODES = 20, 40
OUR_EPISODES = 20  # of the notebook, which has no stop at the first 30
BASELINES = {
    f"{library} {algorithm}, {kind}": (library, algorithm, kind == "like ours")
    for library in ("SBX", "Stable-Baselines3")
    for kind in ("like ours", "defaults")
    for algorithm in ("DDPG", "TD3", "SAC")
}


def progress(scores, seconds) -> dict:
    """What is recorded of a training: scores, seconds, and the first episode at 30, if any.

    Args:
        scores: (episodes,) mean over the arms.
        seconds: (episodes,) s since the training began.
    """
    first = first_at(scores)
    return {
        "scores": [round(float(score), 3) for score in scores],
        "seconds": [round(float(second), 3) for second in seconds],
        "first episode at 30": first,
        "decisions to 30": first and first * EPISODE_DECISIONS,
        "seconds to 30": first and round(float(seconds[first - 1]), 3),
    }


def in_own_process(name: str, seed: int, options: Options) -> dict:
    """Train a baseline in a new process; return its record, or why there is none."""
    sizes = {
        "seed": seed,
        "num-agents": options.size(ARMS, 2),
        "episodes": options.size(EPISODES, 1),
        "time-limit": options.size(SECONDS, 20),
    }
    command = [sys.executable, "-m", "tutorial.benchmarks.baseline_training", name]
    command += [f"--{option}={value}" for option, value in sizes.items()]
    done = subprocess.run(command, cwd=PROJECT, text=True, capture_output=True)
    if done.returncode:
        return {"missing": failure(done.returncode, done.stderr)}
    return json.loads(done.stdout.splitlines()[-1])


def failure(status: int, stderr: str) -> str:
    """Why a process failed, from its exit status and the last line of its traceback."""
    if status < 0:
        return f"ended by signal {-status}"
    last = (stderr.strip().splitlines() or ["unknown"])[-1]
    if last.startswith("ModuleNotFoundError: No module named "):
        return f"{last.rpartition(' ')[2].strip(chr(39))} is not installed"
    return f"failed: {last}"[:160]


def this_project(preset: str, seed: int, options: Options) -> dict:
    """Train by the notebook; return the record up to the first episode at 30."""
    with trainings.notebook_run(
        preset=preset,
        seed=seed,
        num_agents=options.size(ARMS, 2),
        max_episodes=options.size(OUR_EPISODES, 1),
    ) as (_, scores, _):
        return progress(scores["score"], scores["seconds"])


def run(options: Options, recorder: Recorder) -> None:
    """Train all with one seed after another."""
    for seed in range(FIRST_SEED, FIRST_SEED + options.size(SEEDS, 1)):
        for preset in trainings.PRESETS:
            if not recorder.has(f"this notebook, {preset}/{seed}"):
                recorder.put(f"this notebook, {preset}/{seed}", this_project(preset, seed, options))
        for name in BASELINES:
            if not recorder.has(f"{name}/{seed}"):
                recorder.put(f"{name}/{seed}", in_own_process(name, seed, options))


def by_agent(measured) -> dict[str, list[dict]]:
    """Records of all seeds by agent."""
    agents: dict[str, list[dict]] = {}
    for name, record in sorted(measured.items()):
        agents.setdefault(name.rpartition("/")[0], []).append(record)
    return agents


def median_seconds(records: list[dict]) -> float | None:
    """Median seconds to 30; None if half of the seeds or more did not get there."""
    values = [record.get("seconds to 30") for record in records]
    middle = np.median([float("inf") if value is None else value for value in values])
    return float(middle) if middle < float("inf") else None


def table(measured) -> str:
    def cells(values, form, none="not within"):
        if set(values) == {None}:
            return none
        return ", ".join(none if value is None else form.format(value) for value in values)

    lines = []
    for name, records in by_agent(measured).items():
        reasons = {record["missing"] for record in records if "missing" in record}
        if reasons:
            lines.append([name, "; ".join(sorted(reasons)), "-", "-", "-"])
            continue
        middle = median_seconds(records)
        best = [max(record["scores"], default=None) for record in records]
        lines.append(
            [
                name,
                cells([record["seconds to 30"] for record in records], "{:.1f}"),
                "not within" if middle is None else f"{middle:.1f}",
                cells([record["decisions to 30"] for record in records], "{:,}"),
                cells(best, "{:.1f}", "no whole episode"),
            ]
        )
    head = ["agent", "seconds to 30, each seed", "median"]
    more = ["decisions to 30, each seed", "best score, each seed"]
    return as_markdown([*head, *more], lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=BASELINES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--num-agents", type=int, default=ARMS)
    parser.add_argument("--episodes", type=int, default=EPISODES)
    parser.add_argument("--time-limit", type=float, default=SECONDS, help="s")
    options = parser.parse_args()
    torch.set_num_threads(1)
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")  # so has SBX
    from tutorial.benchmarks import sb3_training  # whose libraries may be missing

    library, algorithm, like_ours = BASELINES[options.name]
    arms = sb3_training.ArmVecEnv(
        options.num_agents, options.seed, options.episodes, options.time_limit
    )
    sb3_training.train(library, algorithm, like_ours, arms, options.seed)
    record = progress(arms.scores, arms.seconds)
    print(record["scores"])
    print(json.dumps(record))


if __name__ == "__main__":
    main()
