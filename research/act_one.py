"""The four agents of the notebook's first act, each trained from twelve seeds: `doc/plans.md`.

python -m research.act_one    trains what is missing, into checkpoints/act_one/
"""

from __future__ import annotations

import time

import torch
from torch import nn

from research import results
from research.training import Row
from tutorial import notebook
from tutorial.environments import open_environment
from tutorial.paths import CHECKPOINTS
from tutorial.randomness import seed_everything

SEEDS, EPISODES = range(9300, 9312), 15
FOLDER = CHECKPOINTS / "act_one"


def agents() -> dict[str, tuple]:
    """Actor, critic, decisions from one update to the next, and its gradient steps, by name."""
    cells = notebook.definitions()

    def without_norm(kind: type) -> type:
        class WithoutNorm(kind):  # type: ignore[misc]
            def __init__(self, *arguments: object) -> None:
                super().__init__(*arguments)
                for block in self.layers:
                    if isinstance(block, nn.Sequential):
                        block[1] = nn.Identity()

        return WithoutNorm

    mirrors = cells.MirrorActor, cells.MirrorCritic
    return {
        "plain": (cells.PlainActor, cells.PlainCritic, 1, 1),
        "steps": (cells.PlainActor, cells.PlainCritic, 10, 40),
        "mirrors": (*map(without_norm, mirrors), 10, 40),
        "mirrors_norm": (*mirrors, 10, 40),
    }


def train(agent: str, seed: int) -> list[Row]:
    """The lines of one training, of which all seconds are those of the whole."""
    cells, (actor, critic, *often) = notebook.definitions(), agents()[agent]
    generator, scale, start = seed_everything(seed), cells.OBSERVATION_SCALE, time.perf_counter()
    ddpg = cells.PlainDDPG(actor(scale, 4), critic(scale, 4))
    engine = "torch" if agent == "plain" else "compiled"
    environment = open_environment(seed=seed)
    scores = cells.train_plain(environment, ddpg, generator, EPISODES, *often, engine)
    seconds = f"{time.perf_counter() - start:.2f}"
    numbered = enumerate(scores, 1)
    return [[str(seed), str(k), f"{score:.3f}", "", "", "", seconds] for k, score in numbered]


def main() -> None:
    torch.set_num_threads(1)
    for seed in SEEDS:
        for agent in agents():
            path = FOLDER / f"{agent}.csv"
            if seed not in results.stored_seeds(path):
                results.store(path, train(agent, seed))
                print(agent, seed, flush=True)


if __name__ == "__main__":
    main()
