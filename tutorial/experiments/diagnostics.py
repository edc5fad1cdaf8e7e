"""What a training looks like from inside, for checkpoints/diagnostics/ and checkpoints/gallery/.

    python -m tutorial.experiments.diagnostics

It trains the default preset as section 6 of the notebook does, seed 0, records on the way what the
score file does not tell, and saves the actor's weights after some early episodes, for the gallery
and for `python -m reacher.watch`. Nothing of that touches the training: its scores are those of
checkpoints/default/seed0.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tutorial import notebook
from tutorial.benchmarks import measure
from tutorial.experiments.training import train_agent
from tutorial.paths import CHECKPOINTS
from tutorial.training.environments import open_environment
from tutorial.training.progress import sizes_of_noise
from tutorial.training.run_files import save_hyperparameters, save_networks
from tutorial.training.scores import read_scores

RESULTS = CHECKPOINTS / "diagnostics"
GALLERY = CHECKPOINTS / "gallery" / "seed0"
ARMS, EPISODES, SEED = 20, 20, 0  # learning has ended by then
GALLERY_EPISODES = (1, 2, 3, 5, 20)  # after which the actor is saved
PRIORITY_EPISODES = (3, 8, 20)
PRIORITY_EDGES = np.geomspace(1e-4, 10, 51)  # of |TD error| + epsilon, in scaled rewards
MOST_DRAWS = 200  # the last bin of the histogram holds this many and more


def counting_replay(agent):
    """A prioritized memory for this agent that counts how often each transition is drawn."""

    class CountingReplay(notebook.definitions().PrioritizedReplay):
        """Counts the draws of each transition until it is overwritten."""

        def __init__(self, capacity, *rest) -> None:
            super().__init__(capacity, *rest)
            self.draws = np.zeros(capacity, dtype=np.int64)
            self.born = np.zeros(capacity, dtype=np.int64)  # episode
            self.histograms = np.zeros((EPISODES + 1, MOST_DRAWS + 1), dtype=np.int64)

        def add(self, rows, td_errors=None):
            before = len(self)
            indices = super().add(rows, td_errors)
            self.bury(indices[indices < before])  # those that held a transition
            self.draws[indices], self.born[indices] = 0, agent.episodes
            return indices

        def sample(self, batch_size, beta):
            drawn = super().sample(batch_size, beta)
            np.add.at(self.draws, drawn[0], 1)
            return drawn

        def bury(self, indices) -> None:
            """Take down the draws of transitions that leave, by the episode they came from."""
            draws = self.draws[indices].clip(max=MOST_DRAWS)
            np.add.at(self.histograms, (self.born[indices], draws), 1)

        def finish(self) -> np.ndarray:
            """Numbers of transitions (episodes, 1 + MOST_DRAWS) by episode and number of draws."""
            self.bury(np.arange(len(self)))
            return self.histograms[:EPISODES]

    capacity, width = agent.replay.rows.shape
    replay = agent.replay
    return CountingReplay(capacity, width, replay.generator, replay.alpha, replay.epsilon)


def priority_histogram(replay, settings) -> np.ndarray:
    """Numbers of transitions by priority before the exponent, (len(PRIORITY_EDGES) - 1,)."""
    leaves = replay.tree[len(replay.tree) // 2 :][: len(replay)]
    priorities = leaves ** (1 / settings.priority_exponent)
    return np.histogram(priorities.clip(PRIORITY_EDGES[0], PRIORITY_EDGES[-1]), PRIORITY_EDGES)[0]


def record(
    gallery: Path, episodes: int = EPISODES, arms: int = ARMS, engine: str = "compiled", **overrides
) -> dict[str, np.ndarray]:
    """Train, and return what was recorded, array by array; save early actors in a folder."""
    settings = notebook.definitions().make_hyperparameters("default", overrides)
    lines, priorities = [], {}
    gallery.mkdir(parents=True, exist_ok=True)
    for old in gallery.glob("actor_episode*.safetensors"):
        old.unlink()
    save_hyperparameters(
        gallery,
        settings.model_dump(),
        preset="default",
        seed=SEED,
        num_agents=arms,
        env_location="",
        kept_episodes=list(GALLERY_EPISODES),
    )

    def record_episode(agent, scores, seconds):
        actor = agent.learner.synced().actor
        sigmas = sizes_of_noise(actor)
        lines.append(
            {"score": scores[-1]}
            | {f"sigma_{name}": sigma for name, sigma in sigmas.items()}
            | agent.log
        )
        if len(scores) in GALLERY_EPISODES:
            save_networks(gallery, f"_episode{len(scores)}", actor=actor)
        if len(scores) in PRIORITY_EPISODES:
            priorities[len(scores)] = priority_histogram(agent.replay, settings)

    replay: Any = None

    def count_draws(agent):
        nonlocal replay
        agent.replay = replay = counting_replay(agent)

    with measure.torch_threads(1), open_environment("", arms, SEED) as environment:
        train_agent(
            environment,
            settings,
            arms,
            SEED,
            episodes,
            record_episode,
            count_draws,
            engine=engine,
        )
    return {
        name.replace(" ", "_"): np.array([line[name] for line in lines]) for name in lines[0]
    } | {
        "draws": replay.finish().astype(np.int32),
        "priority_edges": PRIORITY_EDGES,
        "priority_episodes": np.array(list(priorities)),
        "priority_histograms": np.array(list(priorities.values())),
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the file goes")
    parser.add_argument("--gallery", type=Path, default=GALLERY, help="where early actors go")
    options = parser.parse_args(arguments)
    folder, recorded = options.results, record(options.gallery)
    stored = read_scores(CHECKPOINTS / "default/seed0/scores.csv")["score"]
    same = np.allclose(stored[:EPISODES], recorded["score"], atol=1e-6)
    print(
        "scores are those of checkpoints/default/seed0"
        if same
        else "the scores differ from those of checkpoints/default/seed0: other versions, or "
        "that run is of another notebook"
    )
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / "seed0.npz", allow_pickle=False, **recorded)
    print(f"{folder / 'seed0.npz'}, {(folder / 'seed0.npz').stat().st_size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
