"""Agents that are made of a notebook's cells and have no settings, each trained from some seeds.

python -m research.chapters reports     trains what is missing of doc/reports.ipynb
python -m research.chapters rounding    trains seeds whose first weights are rounded otherwise

The words of both plans are in research/plans.md. Agents of the notebook's early sections
(`act_one`, `first_steps`, `normalization`, `quiz`) were here until commit ed7e17b, and their runs
are stored.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Container
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from reacher.episode import evaluate_policy
from research import store
from research.training import Row, Watch, rows_of
from tutorial import notebook
from tutorial.environments import open_environment
from tutorial.paths import DOC, plan_folder
from tutorial.randomness import seed_everything

Make = Callable[[Any], Any]  # of a generator an agent


def maker(
    networks: Any,
    agent: Any,
    learner: Any = "PlainDDPG",
    memory: Any = "UniformReplay",
    settings: str = "PhaseSettings",
    **own: Any,
) -> Make:
    """How the notebook makes an agent: cells, by name or changed, and settings of its own."""
    cells = notebook.definitions()

    def cell(one: Any) -> Any:
        return getattr(cells, one) if isinstance(one, str) else one

    def make(generator: Any) -> Any:
        chosen = cell(settings)(**own)
        made = cell(learner)(*cell(networks)(chosen), chosen)
        return cell(agent)(made, cell(memory)(chosen, generator), generator, chosen)

    return make


def reports() -> dict[str, Make]:
    """Those of the chapter on three reports."""
    notebook.definitions()  # which it imports
    return notebook.load_definitions(DOC / "reports.ipynb").AGENTS


def rounded(make: Make, times: int) -> Make:
    """The same agent, with each first weight at one of its two neighbours; 0: as it was."""

    def moved(generator: Any) -> Any:
        agent, chance = make(generator), torch.Generator()
        for network in (one for one in vars(agent.learner).values() if hasattr(one, "parameters")):
            chance.manual_seed(times)  # a target network moves as its own does
            for weight in network.parameters() if times else ():
                ends = torch.rand(weight.shape, generator=chance).round() * 2 - 1  # -1 or 1
                weight.data = torch.nextafter(weight.data, ends * torch.inf)
        return agent

    return moved


EPISODES = {"a": 16, "c": 150, "b": 420, "b_narrow": 420}  # of the other reports 40


def train(
    make: Make, seed: int, episodes: int, evaluated: Container[int] = (), watch: Watch | None = None
) -> list[Row]:
    """The rows of one training, with evaluations after some of its episodes."""
    torch.set_num_threads(1)
    agent = make(seed_everything(seed))

    def evaluate(episode: int) -> np.ndarray | None:
        if episode not in evaluated:
            return None
        return evaluate_policy(open_environment(seed=10_000_000 + episode), agent.policy)

    return rows_of(agent, open_environment(seed=seed), seed, episodes, evaluate, watch)


def main(plan: str = "") -> None:
    if plan == "reports":
        seeds, makers, episodes = range(3), reports(), EPISODES
    elif plan == "rounding":
        seeds, episodes = range(9740, 9746), dict.fromkeys(map("rounding{}".format, range(6)), 6)
        make = maker("normalized_networks", "FastAgent")
        makers = {name: rounded(make, times) for times, name in enumerate(episodes)}
    else:
        sys.exit(f"no plan {plan!r} here: there are reports and rounding")
    jobs = [*itertools.product(seeds, makers.items())]
    for seed, (name, make) in tqdm(jobs, disable=None):
        path = plan_folder(plan) / f"{name}.csv"
        if seed not in store.stored_seeds(path):
            store.store(path, train(make, seed, episodes.get(name, 40)))
            tqdm.write(f"{name} {seed}")


if __name__ == "__main__":
    main(*sys.argv[1:])
