"""What a training looks like from inside: `python -m benchmarks.inside` writes checkpoints/inside/.

It trains the default preset as section 5 of the notebook does, seed 0, and notes on the way what
the score file does not tell. Nothing of that touches the training: its scores are those of
checkpoints/default/seed0. The notebook draws its figures from the file.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np

import helpers
from benchmarks import measure

KEPT = measure.PROJECT / "checkpoints" / "inside"
ARMS, EPISODES, SEED = 20, 100, 0
GALLERY_EPISODES = (1, 5, 10, 20, 100)
GALLERY_DECISIONS = (0, 6, 12, 18, 24, 48, 96)  # of the episode that is shown
GALLERY_SEED, GALLERY_ARMS = 1_000, 4
PRIORITY_EPISODES = (3, 20, 100)
PRIORITY_EDGES = np.geomspace(1e-4, 10, 51)  # of |TD error| + epsilon, in scaled rewards
MOST_DRAWS = 200  # the last bin of the histogram holds this many and more


class DrawCounter:
    """Counts how often each transition of a replay is drawn until it is overwritten."""

    def __init__(self, replay, agent) -> None:
        self.replay, self.agent = replay, agent
        self.draws = np.zeros(len(replay.rows), dtype=np.int64)
        self.born = np.zeros(len(replay.rows), dtype=np.int64)  # episode
        self.histograms = np.zeros((EPISODES + 1, MOST_DRAWS + 1), dtype=np.int64)
        self.add, self.sample = replay.add, replay.sample
        replay.add, replay.sample = self.counted_add, self.counted_sample

    def counted_add(self, rows, td_errors=None):
        before = len(self.replay)
        places = self.add(rows, td_errors)
        self.bury(places[places < before])  # those that held a transition
        self.draws[places], self.born[places] = 0, self.agent.episodes
        return places

    def counted_sample(self, batch_size, beta):
        drawn = self.sample(batch_size, beta)
        np.add.at(self.draws, drawn[0], 1)
        return drawn

    def bury(self, places) -> None:
        """Take down the draws of transitions that leave, by the episode they came from."""
        np.add.at(self.histograms, (self.born[places], self.draws[places].clip(max=MOST_DRAWS)), 1)

    def finish(self) -> np.ndarray:
        """Numbers of transitions (episodes, 1 + MOST_DRAWS) by episode and number of draws."""
        self.bury(np.arange(len(self.replay)))
        return self.histograms[:EPISODES]


def gallery_frames(agent) -> np.ndarray:
    """Observations (decisions, arms, 33), float32, of an episode without noise, same goals."""
    with helpers.open_environment("", GALLERY_ARMS, GALLERY_SEED) as environment:
        return np.array(helpers.record_frames(
            environment, lambda seen: agent.act(seen.astype(np.float32), explore=False),
            max(GALLERY_DECISIONS) + 1, every=1), dtype=np.float32)


def priority_histogram(replay, settings) -> np.ndarray:
    """Numbers of transitions by priority before the exponent, (len(PRIORITY_EDGES) - 1,)."""
    leaves = replay.tree[len(replay.tree) // 2:][:len(replay)]
    priorities = leaves ** (1 / settings.priority_exponent)
    return np.histogram(priorities.clip(PRIORITY_EDGES[0], PRIORITY_EDGES[-1]), PRIORITY_EDGES)[0]


def record(episodes: int = EPISODES, arms: int = ARMS, **overrides) -> dict[str, np.ndarray]:
    """Train, and return what was noted, array by array."""
    definitions = measure.notebook()
    settings = definitions.make_hyperparameters("default", overrides)
    lines, priorities, frames = [], {}, {}

    def note(agent, folder, arm_scores, scores):
        finish_episode(agent, folder, arm_scores, scores)
        sigmas = [layer.sigma_weight.abs().mean().item() for layer in agent.ddpg.actor.noisy_layers]
        lines.append([scores[-1], *sigmas, *agent.log.values()])
        if len(scores) in GALLERY_EPISODES:
            frames[len(scores)] = gallery_frames(agent)
        if len(scores) in PRIORITY_EPISODES:
            priorities[len(scores)] = priority_histogram(agent.replay, settings)

    finish_episode = definitions.finish_episode
    with (mock.patch.object(definitions, "finish_episode", note), measure.torch_threads(1),
          tempfile.TemporaryDirectory() as folder,
          helpers.open_environment("", arms, SEED) as environment):
        generator = helpers.seed_everything(SEED)
        agent = definitions.Agent(definitions.OBSERVATION_SCALE, 4, arms, settings, generator)
        counter = DrawCounter(agent.replay, agent)
        definitions.train_agent(environment, agent, Path(folder), episodes, save_every=10**6)
    names = ["score", "sigma_hidden", "sigma_output", *(name.replace(" ", "_") for name in
                                                        agent.log)]
    return dict(zip(names, np.array(lines).T)) | {
        "draws": counter.finish().astype(np.int32),
        "priority_edges": PRIORITY_EDGES,
        "priority_episodes": np.array(list(priorities)),
        "priority_histograms": np.array(list(priorities.values())),
        "gallery_episodes": np.array(list(frames)),
        "gallery_decisions": np.array(GALLERY_DECISIONS),
        "gallery_frames": np.array(list(frames.values())),  # (episodes, decisions, arms, 33)
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kept", type=Path, default=KEPT, help="where the file goes")
    folder = parser.parse_args(arguments).kept
    noted = record()
    kept = helpers.read_scores(measure.PROJECT / "checkpoints/default/seed0/scores.csv")["score"]
    same = len(kept) == len(noted["score"]) and np.allclose(kept, noted["score"], atol=1e-6)
    print("scores are those of checkpoints/default/seed0" if same else
          "the scores differ from those of checkpoints/default/seed0: other versions, or that run "
          "is of another notebook")
    noted["gallery_frames"] = noted["gallery_frames"][:, GALLERY_DECISIONS]
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / "seed0.npz", **noted)
    print(f"{folder / 'seed0.npz'}, {(folder / 'seed0.npz').stat().st_size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
