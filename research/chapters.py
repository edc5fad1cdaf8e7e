"""Agents that are made of a notebook's cells and have no settings, each trained from some seeds.

python -m research.chapters [chapter ...]    trains what is missing, of all or of these chapters,
                                             into a folder of checkpoints/ for each

`reports` is of doc/reports.ipynb, and the others are of the notebook's early sections. Their words
are in research/plans.md.
"""

from __future__ import annotations

import functools
import itertools
import sys
import time
from collections.abc import Callable, Container, Sequence
from typing import Any

import torch

from reacher.episode import evaluate_policy
from research import bugs, store
from research.training import Row
from tutorial import notebook
from tutorial.environments import open_environment
from tutorial.paths import DOC, plan_folder
from tutorial.randomness import seed_everything

Make = Callable[[Any], Any]  # of a generator an agent
Watch = Callable[[Any, int, int], list[str]]  # of an agent, a seed and an episode


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
    if agent == "PlainAgent":
        settings = "PlainSettings"

    def cell(one: Any) -> Any:
        return getattr(cells, one) if isinstance(one, str) else one

    def make(generator: Any) -> Any:
        chosen = cell(settings)(**own)
        made = cell(learner)(*cell(networks)(chosen), chosen)
        return cell(agent)(made, cell(memory)(chosen, generator), generator, chosen)

    return make


def act_one() -> dict[str, Make]:
    """Plain DDPG; four gradient steps a decision; mirrors; layer normalization."""
    return {
        "plain": maker("plain_networks", "PlainAgent"),
        "steps": maker("plain_networks", "FastAgent"),
        "mirrors": maker("mirrored_networks", "FastAgent"),
        "mirrors_norm": maker("normalized_networks", "FastAgent"),
    }


class LastDecision:
    """A memory of the last decision of all arms, and of nothing else, as in section 5."""

    def __init__(self, settings: Any, generator: Any) -> None:
        self.batch: Any = None

    def add(self, batch: Any) -> None:
        self.batch = batch

    def is_ready(self) -> bool:  # but for an episode's last decision
        return len(self.batch.rewards) > 0

    def sample(self, batch_size: int) -> Any:
        return self.batch


def first_steps() -> dict[str, Make]:
    """Plain DDPG without slow copies or a replay buffer, with one of them, with small batches."""
    return {
        "neither": maker("plain_networks", "PlainAgent", "ActorCritic", LastDecision),
        "slow_copies": maker("plain_networks", "PlainAgent", memory=LastDecision),
        "buffer": maker("plain_networks", "PlainAgent", "ActorCritic"),
        "both_20": maker("plain_networks", "PlainAgent", batch_size=20),
    }


def normalization() -> dict[str, Make]:
    """Mirrors, with layer normalization in one network."""
    cells: Any = notebook.definitions()

    def networks(which: int, settings: Any) -> tuple[Any, Any]:
        pairs = cells.mirrored_networks(settings), cells.normalized_networks(settings)
        return pairs[which == 0][0], pairs[which == 1][1]

    names = enumerate(("norm_actor", "norm_critic"))
    return {name: maker(functools.partial(networks, which), "FastAgent") for which, name in names}


def quiz() -> dict[str, Make]:
    """The agent with mirrors and layer normalization, without a bug and with each of four."""
    cells: Any = notebook.definitions()

    class Broadcast(cells.PlainDDPG):
        def td_errors(self, batch):  # a matrix
            return self.targets(batch) - self.critic(*batch[:2])[:, None]

    class OneNoise(cells.FastAgent):
        def torque_noise(self, shape):
            return super().torque_noise((1, shape[1]))

    class TerminalAtLimit(bugs.TerminalAtLimit, cells.FastAgent):
        pass

    class StaleGradients(bugs.StaleGradients, cells.NoisyDDPG):
        pass

    pairs = {
        "default": ("FastAgent", "PlainDDPG"),
        "broadcast": ("FastAgent", Broadcast),
        "one_noise": (OneNoise, "PlainDDPG"),
        "terminal_at_limit": (TerminalAtLimit, "PlainDDPG"),
        "stale_gradients": ("FastAgent", StaleGradients),
    }
    return {name: maker("normalized_networks", *pair) for name, pair in pairs.items()}


def reports() -> dict[str, Make]:
    """Those of the chapter on three reports."""
    notebook.definitions()  # which it imports
    return notebook.load_definitions(DOC / "reports.ipynb").AGENTS


# Agents, seeds, episodes of some agents and of the others.
Chapter = tuple[Callable[[], dict[str, Make]], range, dict[str, int], int]
CHAPTERS: dict[str, Chapter] = {
    "act_one": (act_one, range(9400, 9412), {}, 15),
    "first_steps": (first_steps, range(9400, 9412), {}, 10),
    "normalization": (normalization, range(9400, 9412), {}, 10),
    "quiz": (quiz, range(9500, 9512), {}, 30),
    "reports": (reports, range(3), {"a": 16, "c": 150, "b": 420, "b_narrow": 420}, 40),
}


def train(
    make: Make, seed: int, episodes: int, evaluated: Container[int] = (), watch: Watch | None = None
) -> list[Row]:
    """The rows of one training: scores with noise, and without after the `evaluated` episodes.

    `watch` adds numbers to a row, of the agent, the seed and the episode.
    """
    torch.set_num_threads(1)
    cells, began, rows = notebook.definitions(), time.perf_counter(), []
    generator = seed_everything(seed)
    agent, environment = make(generator), open_environment(seed=seed)
    play = cells.train_episode if isinstance(agent, cells.Agent) else cells.run_episode
    for episode in range(1, episodes + 1):
        score, without_noise = play(environment, agent).mean(), ["", ""]
        seconds = f"{time.perf_counter() - began:.2f}"
        if episode in evaluated:
            judges = open_environment(seed=10_000_000 + episode)
            found = evaluate_policy(judges, agent.policy)
            without_noise = [f"{found.mean():.3f}", f"{found.min():.2f}"]
        row = [str(seed), str(episode), f"{score:.3f}", *without_noise, "", seconds]
        rows.append(row + (watch(agent, seed, episode) if watch else []))
    return rows


def main(names: Sequence[str]) -> None:
    if unknown := set(names) - set(CHAPTERS):
        raise SystemExit(
            f"no chapter {', '.join(sorted(unknown))}: there are {', '.join(CHAPTERS)}"
        )
    for chapter in names or CHAPTERS:
        agents, seeds, some, others = CHAPTERS[chapter]
        for seed, (name, make) in itertools.product(seeds, agents().items()):
            path = plan_folder(chapter) / f"{name}.csv"
            if seed not in store.stored_seeds(path):
                store.store(path, train(make, seed, some.get(name, others)))
                print(chapter, name, seed, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
