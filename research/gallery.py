"""Early actors of one training, for checkpoints/gallery/, the pictures and `web.watch`.

    python -m research.gallery

It trains the default preset as section 6 of the notebook does, seed 0, and saves the actor's
weights after some early episodes. Its scores are those of checkpoints/default/seed0.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from research.benchmarks import measure
from research.training import train_agent
from tutorial import notebook
from tutorial.environments import open_environment
from tutorial.paths import CHECKPOINTS
from tutorial.run_files import save_hyperparameters, save_networks
from tutorial.scores import read_scores

GALLERY = CHECKPOINTS / "gallery" / "seed0"
ARMS, SEED = 20, 0
EPISODES = (1, 2, 3, 5, 20)  # after which the actor is saved


def save_early_actors(
    folder: Path, arms: int = ARMS, engine: str = "compiled", **overrides
) -> list[float]:
    """Train, and save the actors after EPISODES in a folder; return the scores of all episodes."""
    settings = notebook.definitions().make_hyperparameters("default", overrides)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("actor_episode*.safetensors"):
        old.unlink()
    save_hyperparameters(
        folder,
        settings.model_dump(),
        preset="default",
        seed=SEED,
        num_agents=arms,
        env_location="",
        kept_episodes=list(EPISODES),
    )
    found: list[float] = []

    def save(agent, scores, seconds):
        found.append(scores[-1])
        if len(scores) in EPISODES:
            actor = agent.ddpg.actor
            save_networks(folder, f"_episode{len(scores)}", actor=actor)

    with measure.torch_threads(1), open_environment("", arms, SEED) as environment:
        train_agent(environment, settings, arms, SEED, EPISODES[-1], save, engine=engine)
    return found


def main() -> int:
    scores = save_early_actors(GALLERY)
    stored = read_scores(CHECKPOINTS / "default/seed0/scores.csv")["score"]
    same = np.allclose(stored[: len(scores)], scores, atol=1e-6)
    print(
        "scores are those of checkpoints/default/seed0"
        if same
        else "the scores differ from those of checkpoints/default/seed0: other versions, or "
        "that run is of another notebook"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
