"""Decisions per second of the embedded environment, beside bare MuJoCo steps of the same model.

    python -m benchmarks.environment_speed
"""

from __future__ import annotations

import statistics
import sys
import time

import mujoco
import numpy as np

from reacher import ReacherEnvironment
from reacher.physics import Physics
from reacher.task import STEPS_PER_DECISION

REPETITIONS = 7


def rate(decide, decisions: int) -> float:
    """Median over repetitions of decisions per second."""
    decide()
    rates = []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        for _ in range(decisions):
            decide()
        rates.append(decisions / (time.perf_counter() - start))
    return statistics.median(rates)


def main() -> None:
    print(f"Python {sys.version.split()[0]}, numpy {np.__version__}, mujoco {mujoco.__version__}, "
          f"medians of {REPETITIONS} repetitions")
    print(f"{'arms':>5} {'environment':>12} {'bare MuJoCo':>12} {'share':>6}   decisions a second")
    for arms, decisions in ((1, 5000), (20, 3000), (1000, 100)):
        environment = ReacherEnvironment(arms, seed=0)
        environment.reset()
        actions = np.random.default_rng(0).uniform(-1, 1, (arms, 4))
        physics = Physics(arms)  # without torques: nothing but MuJoCo, and nothing that diverges
        whole = rate(lambda: environment.step(actions), decisions)
        bare = rate(lambda: mujoco.mj_step(physics.model, physics.data, STEPS_PER_DECISION),
                    decisions)
        print(f"{arms:5} {whole:12.0f} {bare:12.0f} {whole / bare:6.2f}")


if __name__ == "__main__":
    main()
