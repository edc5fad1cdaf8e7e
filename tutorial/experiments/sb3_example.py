"""Stable-Baselines3's SAC on twenty arms through Gymnasium, until a score of 30.

    python -m tutorial.experiments.sb3_example [--seed 0]

Nothing here knows this project but for the name of the environment. The score is that of the
project: the mean over the twenty arms of an episode's rewards, with SAC's own exploration.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from stable_baselines3 import SAC
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

import reacher  # noqa: F401  registers reacher/Reacher-v0

NUM_AGENTS, GOAL, MAX_EPISODES, DISCOUNT = 20, 30.0, 100, 0.97


class StopAtGoal(BaseCallback):
    """Print the mean score whenever all arms have ended an episode; stop at `GOAL`."""

    def __init__(self) -> None:
        super().__init__()
        self.scores: list[float] = []
        self.start = time.perf_counter()

    def _on_step(self) -> bool:
        ended = [info["episode"]["r"] for info in self.locals["infos"] if "episode" in info]
        if not ended:
            return True
        self.scores.append(float(np.mean(ended)))
        print(
            f"episode {len(self.scores)}: score {self.scores[-1]:.2f}, "
            f"{time.perf_counter() - self.start:.0f} s",
            flush=True,
        )
        return self.scores[-1] < GOAL and len(self.scores) < MAX_EPISODES


def train(seed: int) -> list[float]:
    """Scores of the episodes until one reaches `GOAL`."""
    envs = make_vec_env("reacher/Reacher-v0", n_envs=NUM_AGENTS, seed=seed)
    envs = VecNormalize(envs, gamma=DISCOUNT)  # of observations and rewards
    model = SAC(
        "MlpPolicy",
        envs,
        learning_rate=1e-3,
        gamma=DISCOUNT,
        batch_size=128,
        tau=0.01,
        learning_starts=1_000,
        gradient_steps=2,
        seed=seed,
        device="cpu",
        policy_kwargs={"net_arch": [128, 128]},
    )
    stop = StopAtGoal()
    model.learn(total_timesteps=NUM_AGENTS * 1001 * MAX_EPISODES, callback=stop)
    envs.close()
    return stop.scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    scores = train(parser.parse_args().seed)
    print(
        f"{'reached' if scores[-1] >= GOAL else 'did not reach'} {GOAL:g} "
        f"within {len(scores)} episodes"
    )


if __name__ == "__main__":
    main()
