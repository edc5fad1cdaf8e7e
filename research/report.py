"""The stored runs of the report's agent, as the notebook's training cell trains it.

python -m research.report [default] [whole]    trains what is missing of both or one, seeds 0 to 9,
                                               into checkpoints/<agent>/seed<N>/

`default` is the preset; `whole` is the same with the networks of the notebook's `whole_networks`.
What was trained for other settings is replaced. A training that is stopped begins again.
"""

from __future__ import annotations

import itertools
import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from research import store
from tutorial import notebook
from tutorial.environments import open_environment
from tutorial.paths import CHECKPOINTS
from tutorial.randomness import seed_everything
from tutorial.run import EVALUATION_SEED, Evaluation, load_run, run_folder
from tutorial.settings import make_settings

NETWORKS = {"default": "noisy_networks", "whole": "whole_networks"}
SEEDS, ARMS, EPISODES = range(10), 20, 150
TABLES = "scores.csv", "evaluation.csv", "hyperparameters.json"
WEIGHTS = "actor_best.safetensors", "critic_best.safetensors"  # of seed 0 alone
SHOWN = 1, 2, 3, 5, 20  # episodes after which the actor of `whole`, seed 0, is kept for the pages


def train(name: str, seed: int, episodes: int = EPISODES, checkpoints: Path = CHECKPOINTS) -> bool:
    """Train an agent until it has solved the task, and keep its files; False: they are there."""
    cells, kept = notebook.definitions(), run_folder(checkpoints, name, seed)
    settings = make_settings(cells.Hyperparameters, "default", {})
    metadata = {"preset": "default", "seed": seed, "env_location": "", "num_agents": ARMS}
    if name != "default":
        metadata["networks"] = NETWORKS[name]
    wanted = {"hyperparameters": settings.model_dump(mode="json"), **metadata}
    if (kept / TABLES[-1]).exists() and wanted.items() <= load_run(kept).items():
        return False
    environment = open_environment("", ARMS, seed)
    generator = seed_everything(seed)
    agent = cells.Agent(settings, generator, notebook.learner_with(NETWORKS[name]))
    evaluation = Evaluation(open_environment("", ARMS, EVALUATION_SEED))
    options = {"metadata": metadata, "evaluation": evaluation}
    with tempfile.TemporaryDirectory() as place:
        run = Path(place) / "run"

        def keep_actor(agent: Any, scores: list[float]) -> None:
            if (name, seed) == ("whole", 0) and len(scores) in SHOWN:
                shown = run / f"actor_episode{len(scores)}.safetensors"
                shutil.copyfile(run / "actor_last.safetensors", shown)

        cells.train_agent(environment, agent, run, episodes, after_episode=keep_actor, **options)
        kept.mkdir(parents=True, exist_ok=True)
        for file in (*TABLES, *(WEIGHTS if seed == 0 else ())):
            shutil.copyfile(run / file, kept / file)
        for path in run.glob("actor_episode*"):
            shutil.copyfile(path, kept / path.name)
    store.note_machine(kept.parent, [f"seed {seed}"])
    return True


def main(names: Iterable[str]) -> None:
    torch.set_num_threads(1)
    for name, seed in itertools.product(names, SEEDS):
        print(f"{name}, seed {seed}", flush=True)
        print("trained" if train(name, seed) else "stored already", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or NETWORKS)
