"""One agent that learns from arms on many machines: RLlib's PPO.

    python -m tutorial.experiments.rllib_example --runners 2 --iterations 200
    python -m tutorial.experiments.rllib_example --address auto --runners 64

Each runner is a process, somewhere in the cluster, that plays ten arms with the newest weights; the
learner collects what they saw. The score is the mean return of the last 100 episodes of an arm.
"""

from __future__ import annotations

import argparse
import time

import gymnasium
import ray
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.connectors.env_to_module import MeanStdFilter
from ray.tune import register_env

from tutorial.paths import PROJECT

GOAL, ARMS_PER_RUNNER = 30.0, 10


def make_arm(config: dict) -> gymnasium.Env:
    """One arm; imported here because this runs on other machines too."""
    import reacher  # noqa: F401  registers it

    return gymnasium.make("reacher/Reacher-v0")


def build(runners: int) -> Algorithm:
    """PPO with observations scaled by their running mean and deviation."""
    register_env("arm", make_arm)
    config = (
        PPOConfig()
        .environment("arm")
        .env_runners(
            num_env_runners=runners,
            num_envs_per_env_runner=ARMS_PER_RUNNER,
            rollout_fragment_length="auto",
            env_to_module_connector=lambda *_, **__: MeanStdFilter(),
        )
        .training(
            gamma=0.97,
            lr=3e-4,
            train_batch_size_per_learner=20_000,
            minibatch_size=1_000,
            num_epochs=10,
            vf_clip_param=float("inf"),
            entropy_coeff=0.0,
        )
    )
    return config.build_algo()


def train(runners: int, iterations: int) -> list[dict]:
    """Score, decisions of an arm, and seconds so far, after each iteration; ends at `GOAL`."""
    algorithm, records, start = build(runners), [], time.perf_counter()
    for iteration in range(1, iterations + 1):
        result = algorithm.train()["env_runners"]
        records.append(
            {
                "score": result.get("episode_return_mean", float("nan")),
                "decisions": int(result["num_env_steps_sampled_lifetime"]),
                "seconds": time.perf_counter() - start,
            }
        )
        print(
            f"iteration {iteration}: score {records[-1]['score']:.2f}, "
            f"{records[-1]['decisions']} decisions of an arm, "
            f"{records[-1]['seconds']:.0f} s",
            flush=True,
        )
        if records[-1]["score"] >= GOAL:
            break
    algorithm.stop()
    return records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--address", default="local", help="of a Ray cluster; local starts one")
    parser.add_argument("--runners", type=int, default=2, help="processes that play arms")
    parser.add_argument("--iterations", type=int, default=200)
    options = parser.parse_args()
    ray.init(
        options.address,
        log_to_driver=False,
        runtime_env={
            "working_dir": str(PROJECT),
            "excludes": ["/.venv", "/.git", "/runs", "/doc", "/tests"],
        },
    )
    try:
        train(options.runners, options.iterations)
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main()
