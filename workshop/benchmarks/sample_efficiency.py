"""How few episodes the preset `fast` needs."""

from __future__ import annotations

import numpy as np

import helpers
from workshop.benchmarks import measure, trainings
from workshop.benchmarks.measure import Options, Recorder, Target

TITLE = "Sample efficiency"
PRESET, ARMS, EPISODES, SEEDS = "fast", 20, 150, 5
FIRST_SEED = 1000  # fresh: nothing was chosen by what these seeds did
EXPLANATION = f"""\
The notebook, executed by papermill, preset {PRESET}, {ARMS} arms, {EPISODES} episodes without an
early stop; seeds {FIRST_SEED} to {FIRST_SEED + SEEDS - 1}, which served no decision about the
agent. The score of an episode is the mean over the arms, with the noise of training. *Plateau* is
the mean of episodes 101 to 150. *Best public* is the best that we found printed for 20 arms of the
Unity build: first episode at 30 by a TD3 with 20 updates a decision, the others by DDPG and TD3
agents with larger batches."""


def run(options: Options, recorder: Recorder) -> None:
    """Train with fresh seeds."""
    for seed in range(FIRST_SEED, FIRST_SEED + options.size(SEEDS, 1)):
        if recorder.has(f"seed {seed}"):
            continue
        with trainings.notebook_run(preset=PRESET, seed=seed, num_agents=options.size(ARMS, 2),
                                    max_episodes=options.size(EPISODES, 1), stop_when_solved=False
                                    ) as (_, scores, _):
            recorder.put(f"seed {seed}", summary(scores["score"]) | {
                "scores": scores["score"].round(3).tolist(),
                "seconds": float(scores["seconds"][-1])})


def summary(scores: np.ndarray) -> dict:
    """First episode at 30, means of 1-100 and 101-150, solving episode; None if not there."""
    return {"first at 30": helpers.first_at(scores),
            "mean of 1-100": float(scores[:100].mean()) if len(scores) >= 100 else None,
            "plateau": float(scores[100:150].mean()) if len(scores) >= 150 else None,
            "solved at": helpers.solved_at(scores)}


def tables(measured) -> list[str]:
    keys = ("first at 30", "mean of 1-100", "plateau", "solved at")
    lines = ["| seed | first episode at 30 | mean of 1-100 | mean of 101-150 | solved at episode |",
             "|---|---|---|---|---|"]
    for name, run in sorted(measured.items()):
        cells = ["-" if run[key] is None else f"{run[key]:.2f}".removesuffix(".00") for key in keys]
        lines.append(" | ".join([f"| {name.removeprefix('seed ')}", *cells]) + " |")
    return ["\n".join(lines)]


def targets(measured) -> list[Target]:
    def values(key):
        return [run[key] for run in measured.values()]

    def target(what, key, holds):
        known = [value for value in values(key) if value is not None]
        if not measured:
            return Target(what, "not measured", None)
        if len(known) < len(measured):  # a seed that never got there
            return Target(what, f"{len(measured) - len(known)} of {len(measured)} seeds never",
                          False)
        middle = measure.median(known)
        low, high = measure.quartiles(known)
        return Target(what, f"{middle:.4g} (quartiles {low:.4g} to {high:.4g})", holds(middle))

    solved = values("solved at")
    return [
        target("First episode at 30: at most 5, median of 5 seeds (best public: 6)",
               "first at 30", lambda value: value <= 5),
        target("Mean of the first 100 episodes: at least 37.3 (best public: 36.2)",
               "mean of 1-100", lambda value: value >= 37.3),
        target("Plateau, mean of episodes 101-150: at least 39.3 (best public: 39.5)",
               "plateau", lambda value: value >= 39.3),
        Target("Every seed solved at episode 100, the first possible",
               f"{solved.count(100)} of {len(solved)}" if solved else "not measured",
               solved.count(100) == len(solved) if solved else None)]
