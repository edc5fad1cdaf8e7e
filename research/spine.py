"""What n-step returns, prioritized replay and NoisyNet bring where the notebook builds them.

python -m research.spine    trains what is missing into research/results/spine, two at a time

Agents are put together from the notebook's cells. The words of the plan are in plans.md.
"""

from __future__ import annotations

import itertools
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from reacher.episode import evaluate_policy
from research import runner, store
from tutorial import notebook
from tutorial.environments import open_environment
from tutorial.paths import plan_folder
from tutorial.randomness import seed_everything

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


def make(variant: str, seed: int) -> Any:
    """The agent of a variant; its generator is seeded first, as in the notebook."""
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
    sigma = 0.0 if variant.endswith("instead") else 0.3
    ingredients = {"n_step": 3 if "n" in parts else 1, "noisy_layers": "x" in parts}
    settings = cells.NoisySettings(gaussian_sigma=sigma, **ingredients)
    generator = seed_everything(seed)
    if variant == "plain":
        settings = cells.PlainSettings()
        learner = cells.PlainDDPG(*cells.plain_networks(settings), settings)
        memory = cells.UniformReplay(settings, generator)
        return cells.PlainAgent(learner, memory, generator, settings)
    learners = {"": cells.PlainDDPG, "p": cells.WeightedDDPG, "x": cells.NoisyDDPG}
    learner_class = learners["x" if "x" in parts else "p" if "p" in parts else ""]
    agents = {
        "": cells.FastAgent,
        "n": cells.NStepAgent,
        "p": cells.PrioritizedAgent,
        "np": cells.PrioritizedAgent,
        "x": WithNoise,
        "nx": WithNoiseAndWindows,
        "px": cells.NoisyAgent,
        "npx": cells.NoisyAgent,
    }
    learner = learner_class(*networks(cells, kind, settings), settings)
    replay = cells.PrioritizedReplay if "p" in parts else cells.UniformReplay
    return agents[parts](learner, replay(settings, generator), generator, settings)


def noise_at_work(agent: Any, first_poses: np.ndarray) -> list[float]:
    """What NOISE names, by 50 draws in each of 200 states of the last episode.

    Mean |sigma| of both layers; the mean standard deviation of the torques by weight noise, in
    these states and in the first poses (arms, 33) of an episode; the share of torques without
    noise beyond 0.99.
    """
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
        return [*sigmas, spread(seen), spread(torch.from_numpy(first_poses)), saturated]


def train(job: Job) -> list[store.Row]:
    """The rows of one training: scores with noise, and without after some episodes."""
    torch.set_num_threads(1)
    cells: Any = notebook.definitions()
    agent, rows, began = make(job.variant, job.seed), [], time.perf_counter()
    environment = open_environment(seed=job.seed)
    for episode in range(1, EPISODES + 1):
        score = cells.run_episode(environment, agent).mean()
        seconds = time.perf_counter() - began
        row = [str(job.seed), str(episode), f"{score:.3f}", "", "", "", f"{seconds:.2f}"]
        if episode in EVALUATED:
            judges = open_environment(seed=10_000_000 + episode)
            found = evaluate_policy(judges, agent.policy)
            row[3:5] = f"{found.mean():.3f}", f"{found.min():.2f}"
        if getattr(agent.learner, "noise_size", 0):
            poses = open_environment(seed=job.seed + episode).reset()[0]
            row += [f"{number:.4f}" for number in noise_at_work(agent, poses)]
        rows.append(row)
    return rows


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
