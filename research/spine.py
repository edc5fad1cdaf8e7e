"""What n-step returns, prioritized replay and NoisyNet bring where the notebook builds them.

python -m research.spine    trains what is missing into research/results/spine, two at a time

Agents are put together from the notebook's cells. The words of the plan are in plans.md.
"""

from __future__ import annotations

import functools
import itertools
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from research import chapters, runner, store
from tutorial import notebook
from tutorial.environments import open_environment
from tutorial.paths import plan_folder

SEEDS = range(9600, 9630)
EPISODES, EVALUATED = 15, (5, 10, 15)
FOLDER = plan_folder("spine")
NOISE = "sigma_middle", "sigma_last", "weight_spread", "first_pose_spread", "saturated"

# Which of n-step returns (n), prioritized replay (p) and NoisyNet (x); which networks.
LADDER = "plain", "none", "n", "np", "npx"
OTHERS = (
    *("p", "x", "nx", "px", "x_instead", "npx_instead"),
    *("norm_none", "norm_n", "norm_p", "norm_x", "norm_np", "norm_npx"),
    *("mirror_none", "both_none", "both_n", "both_np", "both_npx"),
)


@dataclass(frozen=True)
class Job:
    variant: str
    seed: int

    def __str__(self) -> str:
        return f"{self.variant}, seed {self.seed}"


def networks(cells: Any, kind: str, settings: Any) -> tuple[nn.Module, nn.Module]:
    """Actor and critic, with layer normalization (norm), mirrors (mirror) or both."""
    if kind == "mirror":
        return cells.mirrored_networks(settings, networks=cells.noisy_networks)
    if kind == "both":
        return cells.whole_networks(settings)
    actor, critic = cells.noisy_networks(settings)
    for network in (actor, critic) if kind == "norm" else ():
        network.layers = cells.normalized(network.layers)
    return actor, critic


def make(variant: str) -> chapters.Make:
    """How the agent of a variant is made."""
    if variant == "plain":
        return chapters.maker("plain_networks", "PlainAgent", settings="PlainSettings")
    cells: Any = notebook.definitions()

    class WithNoise(cells.FastAgent):  # NoisyNet without priorities
        weight_noise, act = cells.NoisyAgent.weight_noise, cells.NoisyAgent.act

        def update(self) -> None:
            if self.memory.is_ready():
                shape = self.settings.gradient_steps, self.settings.batch_size
                batches = self.memory.sample(shape)
                ones = np.ones(shape, np.float32)
                self.fast.scan("learn", batches, ones, self.weight_noise(shape[0], 1))

    class WithNoiseAndWindows(WithNoise, cells.NStepAgent):
        pass

    kind, _, parts = variant.rpartition("_") if "_" in variant else ("", "", variant)
    if parts == "instead":
        kind, parts = "", kind
    parts = "" if parts == "none" else parts
    agents = {
        "": "FastAgent",
        "n": "NStepAgent",
        "p": "PrioritizedAgent",
        "np": "PrioritizedAgent",
        "x": WithNoise,
        "nx": WithNoiseAndWindows,
        "px": "NoisyAgent",
        "npx": "NoisyAgent",
    }
    return chapters.maker(
        functools.partial(networks, cells, kind),
        agents[parts],
        "NoisyDDPG" if "x" in parts else "WeightedDDPG" if "p" in parts else "PlainDDPG",
        "PrioritizedReplay" if "p" in parts else "UniformReplay",
        "NoisySettings",
        gaussian_sigma=0.0 if variant.endswith("instead") else 0.3,
        n_step=3 if "n" in parts else 1,
        noisy_layers="x" in parts,
    )


def noise_at_work(agent: Any, seed: int, episode: int) -> list[str]:
    """What NOISE names, by 50 draws in each of 200 states of the last episode; else nothing.

    Mean |sigma| of both layers; the mean standard deviation of the torques by weight noise, in
    these states and in the first poses of an episode; the share of torques without noise beyond
    0.99.
    """
    if not getattr(agent.learner, "noise_size", 0):
        return []
    first_poses = open_environment(seed=seed + episode).reset()[0]
    cells: Any = notebook.definitions()
    own = np.random.default_rng(0)  # the training's generator is left alone
    ring = getattr(agent.memory, "ring", agent.memory)
    places = ring.position - 1 - own.integers(min(ring.size, 20_000), size=200)
    actor = agent.learner.actor

    def spread(seen: torch.Tensor) -> float:
        noise = own.standard_normal((50 * len(seen), agent.learner.noise_size), np.float32)
        actions = actor(seen.repeat(50, 1), torch.from_numpy(noise))
        return float(actions.reshape(50, len(seen), -1).std(dim=0).mean())

    with torch.no_grad():
        seen = ring.at(places % ring.capacity).observations
        layers = [one for one in actor.modules() if isinstance(one, cells.NoisyLinear)]
        sigmas = [float(one.sigma_weight.abs().mean()) for one in layers]
        saturated = float((actor(seen).abs() > 0.99).float().mean())
        found = [*sigmas, spread(seen), spread(torch.from_numpy(first_poses)), saturated]
    return [f"{number:.4f}" for number in found]


def train(job: Job) -> list[store.Row]:
    return chapters.train(make(job.variant), job.seed, EPISODES, EVALUATED, noise_at_work)


def keep(job: Job, rows: list[store.Row]) -> None:
    names = NOISE if len(rows[0]) > len(store.COLUMNS) else ()
    store.store(FOLDER / f"{job.variant}.csv", rows, (*store.COLUMNS, *names))


def jobs(seeds: range = SEEDS) -> list[Job]:
    """Twelve seeds of every variant, those of the ladder first; then the ladder's other seeds."""
    first, later = seeds[:12], seeds[12:]
    wanted = [*itertools.product(first, (*LADDER, "p", "x"))]
    wanted += itertools.product(first, [one for one in OTHERS if one not in ("p", "x")])
    wanted += itertools.product(later, LADDER[1:])
    return [Job(variant, seed) for seed, variant in wanted]


def main(seeds: range = SEEDS) -> int:
    stored = {one: store.stored_seeds(FOLDER / f"{one}.csv") for one in (*LADDER, *OTHERS)}
    missing = [job for job in jobs(seeds) if job.seed not in stored[job.variant]]
    return runner.run(missing, train, keep, workers=2)


if __name__ == "__main__":
    from research import spine  # under a name by which workers find its functions

    sys.exit(spine.main())
