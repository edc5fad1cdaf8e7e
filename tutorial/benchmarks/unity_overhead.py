"""What one decision costs in-process and through unityagents' gRPC, with the same physics.

    python -m tutorial.benchmarks.unity_overhead

Prints the median over the repetitions, and the smallest and largest, in ms per decision.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import tempfile
import time
from importlib.metadata import version

import numpy as np

from reacher import ReacherEnvironment, unity_launcher
from reacher.unity import open_unity


def decision_time(env, actions: np.ndarray) -> float:
    """Mean time of one decision, ms, over `actions`, (decisions, agents, 4)."""
    env.reset(train_mode=True)
    start = time.perf_counter()
    for action in actions:
        env.step(action)
    return (time.perf_counter() - start) / len(actions) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--num-agents", type=int, default=20)
    parser.add_argument("--decisions", type=int, default=1000, help="in a repetition")
    parser.add_argument("--repetitions", type=int, default=9)
    options = parser.parse_args()

    shape = (options.decisions, options.num_agents, 4)
    actions = np.random.default_rng(0).uniform(-1, 1, shape)
    times = {"in-process": [], "gRPC": []}
    with tempfile.TemporaryDirectory() as folder:
        launcher = unity_launcher(options.num_agents, folder=folder)
        with ReacherEnvironment(options.num_agents) as local, open_unity(launcher) as remote:
            for env in (local, remote):
                decision_time(env, actions[:100])  # warm up
            for _ in range(options.repetitions):  # in turn, so that both meet the same load
                times["in-process"].append(decision_time(local, actions))
                times["gRPC"].append(decision_time(remote, actions))

    print(
        f"{options.num_agents} arms, {options.repetitions} repetitions of {options.decisions} "
        "decisions, ms per decision\n"
    )
    print("| environment | median |  min  |  max  |\n|-------------|--------|-------|-------|")
    medians = {name: statistics.median(values) for name, values in times.items()}
    for name, values in times.items():
        print(f"| {name:11} | {medians[name]:6.3f} | {min(values):5.3f} | {max(values):5.3f} |")
    overhead = medians["gRPC"] - medians["in-process"]
    print(f"\ngRPC adds {overhead:.3f} ms to a decision, {overhead * 1.001:.2f} s to an episode.")
    packages = ("numpy", "mujoco", "grpcio", "protobuf", "unityagents")
    print(
        f"Python {platform.python_version()},",
        ", ".join(f"{name} {version(name)}" for name in packages),
    )


if __name__ == "__main__":
    main()
