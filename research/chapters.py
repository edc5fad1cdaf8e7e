"""Agents that are made of a notebook's cells and have no settings, each trained from some seeds.

python -m research.chapters    trains what is missing, into a folder of checkpoints/ for each

`act_one` and `first_steps` are of the notebook's first act, `reports` of doc/reports.ipynb. Their
words are in doc/plans.md.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import torch

from research import results
from research.training import Row
from tutorial import notebook
from tutorial.environments import open_environment
from tutorial.paths import CHECKPOINTS, DOC
from tutorial.randomness import seed_everything

Make = Callable[[Any], Any]  # of a generator an agent


def maker(networks: str, agent: str, learner: str = "PlainDDPG", **options: Any) -> Make:
    """How the notebook makes an agent: names of its cells, and settings that are others."""
    cells = notebook.definitions()

    def make(generator: Any) -> Any:
        settings = cells.PlainSettings(**options)
        made = getattr(cells, learner)(*getattr(cells, networks)(), settings)
        return getattr(cells, agent)(made, generator, settings)

    return make


def act_one() -> dict[str, Make]:
    """Plain DDPG; four gradient steps a decision; mirrors; layer normalization."""
    often: dict[str, Any] = {"train_freq": 10, "gradient_steps": 40}
    return {
        "plain": maker("plain_networks", "PlainAgent"),
        "steps": maker("plain_networks", "FastAgent", **often),
        "mirrors": maker("mirrored_networks", "FastAgent", **often),
        "mirrors_norm": maker("normalized_networks", "FastAgent", **often),
    }


def first_steps() -> dict[str, Make]:
    """Plain DDPG without slow copies or a replay buffer, and with one of them."""
    return {
        "neither": maker("plain_networks", "FirstAgent", "ActorCritic"),
        "slow_copies": maker("plain_networks", "FirstAgent"),
        "buffer": maker("plain_networks", "PlainAgent", "ActorCritic"),
    }


def reports() -> dict[str, Make]:
    """Those of the chapter on three reports."""
    notebook.definitions()  # which it imports
    return notebook.load_definitions(DOC / "reports.ipynb").AGENTS


# Agents, seeds, episodes of some agents and of the others.
Chapter = tuple[Callable[[], dict[str, Make]], range, dict[str, int], int]
CHAPTERS: dict[str, Chapter] = {
    "act_one": (act_one, range(9400, 9412), {}, 15),
    "first_steps": (first_steps, range(9400, 9412), {}, 10),
    "reports": (reports, range(3), {"a": 10, "a_fixed_inputs": 20, "b": 100, "c": 100}, 40),
}


def train(make: Make, seed: int, episodes: int) -> list[Row]:
    """The lines of one training, of which all seconds are those of the whole."""
    cells, start = notebook.definitions(), time.perf_counter()
    generator = seed_everything(seed)
    agent, environment = make(generator), open_environment(seed=seed)
    play = cells.train_episode if isinstance(agent, cells.Agent) else cells.run_episode
    scores = [play(environment, agent).mean() for _ in range(episodes)]
    seconds = f"{time.perf_counter() - start:.2f}"
    numbered = enumerate(scores, 1)
    return [[str(seed), str(k), f"{score:.3f}", "", "", "", seconds] for k, score in numbered]


def main() -> None:
    torch.set_num_threads(1)
    for chapter, (agents, seeds, some, others) in CHAPTERS.items():
        for seed, (name, make) in itertools.product(seeds, agents().items()):
            path = CHECKPOINTS / chapter / f"{name}.csv"
            if seed not in results.stored_seeds(path):
                results.store(path, train(make, seed, some.get(name, others)))
                print(chapter, name, seed, flush=True)


if __name__ == "__main__":
    main()
