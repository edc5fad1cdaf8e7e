"""Keep early actors: `python -m benchmarks.gallery` writes checkpoints/gallery/seed0/.

It trains the default preset as section 5 of the notebook does, seed 0, and keeps the actor's
weights after some episodes: what the gallery shows and `python -m reacher.watch` can play.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from unittest import mock

import helpers
from benchmarks import measure

KEPT = measure.PROJECT / "checkpoints" / "gallery" / "seed0"
ARMS, SEED, PRESET = 20, 0, "default"
EPISODES = 1, 2, 3, 5, 100  # after which the actor is kept


def record(folder: Path, episodes=EPISODES, arms: int = ARMS, **overrides) -> list[float]:
    """Train, and write `actor_episode<N>.safetensors` and the settings; return the scores."""
    definitions = measure.notebook()
    settings = definitions.make_hyperparameters(PRESET, overrides)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("actor_episode*.safetensors"):
        old.unlink()
    helpers.save_hyperparameters(
        folder, settings, preset=PRESET, seed=SEED,
        num_agents=arms, env_location="", kept_episodes=list(episodes))
    noted = []

    def note(agent, run, arm_scores, scores):
        finish_episode(agent, run, arm_scores, scores)
        noted.append(scores[-1])
        if len(scores) in episodes:
            helpers.save_networks(folder, f"_episode{len(scores)}", actor=agent.ddpg.actor)

    finish_episode = definitions.finish_episode
    with (mock.patch.object(definitions, "finish_episode", note), measure.torch_threads(1),
          tempfile.TemporaryDirectory() as scratch,
          helpers.open_environment("", arms, SEED) as environment):
        generator = helpers.seed_everything(SEED)
        agent = definitions.Agent(definitions.OBSERVATION_SCALE, 4, arms, settings, generator)
        definitions.train_agent(environment, agent, Path(scratch), max(episodes), save_every=10**6)
    return noted


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kept", type=Path, default=KEPT, help="where the files go")
    folder = parser.parse_args(arguments).kept
    scores = record(folder)
    print("scores in training:", ", ".join(f"{scores[k - 1]:.2f} (episode {k})" for k in EPISODES))
    for path in sorted(folder.glob("*")):
        print(f"{path}, {path.stat().st_size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
