"""A whole training made small: what the notebook does, in short episodes."""

import nbformat
import numpy as np
import papermill
import torch

from reacher import task
from tutorial.environments import open_environment
from tutorial.notebook import definitions
from tutorial.paths import NOTEBOOK
from tutorial.randomness import seed_everything
from tutorial.run import EVALUATION_SEED, Evaluation

ARMS, DECISIONS = 2, 14  # of an episode
SMALL = {
    "hidden_units": 8,
    "batch_size": 16,
    "learning_starts": 20,
    "replay_capacity": 5_000,
    "train_freq": 5,
    "gradient_steps": 2,
    "engine": "torch",
}


def shrink(patch=setattr) -> None:
    """Make episodes small. Args: patch is `monkeypatch.setattr` where it should end with a test."""
    patch(task, "EPISODE_DECISIONS", DECISIONS)
    patch(task, "RESET_PARAMETERS", task.RESET_PARAMETERS | {"goal_size": 24.0})  # scores vary


def make_agent(agent=None, learner=None, task=None, **overrides):
    cells = definitions()
    settings = cells.Hyperparameters(**SMALL | overrides)
    options = {"learner_class": learner or cells.DDPG, "task": task or cells.ARMS}
    return (agent or cells.Agent)(settings, seed_everything(0), **options)


def make_plain_agent(networks=None, kind=None, agent=None, **options):
    """An agent of an early section. Args: networks, a function of settings; kind of learner."""
    cells, generator = definitions(), seed_everything(0)
    settings = (cells.NStepSettings if "n_step" in options else cells.PlainSettings)(**options)
    learner = (kind or cells.PlainDDPG)(*(networks or cells.plain_networks)(settings), settings)
    memory = cells.UniformReplay(settings, generator)
    return (agent or cells.PlainAgent)(learner, memory, generator, settings)


def train(folder, episodes=6, environment=None, evaluate=False, **options):
    """Train as the notebook does."""
    names = "agent", "learner", *definitions().Hyperparameters.model_fields
    chosen = {name: options.pop(name) for name in names if name in options}
    environment = environment or open_environment("", ARMS, 0)
    agent = make_agent(**chosen)
    if evaluate:
        options["evaluation"] = Evaluation(open_environment("", ARMS, EVALUATION_SEED), 2)
    definitions().train_agent(environment, agent, folder, episodes, **options)
    return agent


class Stops:
    """The real environment, and the stop button at a decision."""

    def __init__(self, decision, environment=None):
        self.environment = environment or open_environment("", ARMS, 0)
        self.left = decision

    def __getattr__(self, name):
        return getattr(self.environment, name)

    def step(self, actions):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return self.environment.step(actions)


def code_cells(tag="", text="", path=NOTEBOOK):
    """Sources of the code cells that have this tag and text, in order."""
    return [
        cell.source
        for cell in nbformat.read(path, as_version=4).cells
        if cell.cell_type == "code" and tag in ["", *cell.metadata.get("tags", ())]
        if text in cell.source
    ]


def execute(path, output, **parameters):
    """What the cells of a notebook show, which papermill executes in its own folder."""
    options = {"kernel_name": "python3", "cwd": str(path.parent), "progress_bar": False}
    options["request_save_on_cell_execute"] = False
    cells = papermill.execute_notebook(path, output, parameters, **options).cells
    return [shown for cell in cells for shown in cell.get("outputs", ())]


def left_by(folder) -> dict:
    """All numbers that a training left but the time that it took."""
    tables = {path.name: path.read_text().splitlines() for path in folder.glob("*.csv")}
    left = {name: [line.rsplit(",", 1)[0] for line in lines] for name, lines in tables.items()}
    return left | {path.name: path.read_bytes() for path in folder.glob("*.safetensors")}


def split_rows(rows, size=33):
    """The notebook's Batch from rows (..., size + actions + 2 + size), such as random numbers."""
    parts = torch.as_tensor(rows).split([size, rows.shape[-1] - 2 * size - 2, 1, 1, size], dim=-1)
    return definitions().Batch(*parts[:2], parts[2][..., 0], parts[3][..., 0], parts[4])


def make_batch(size=16, seed=0):
    """Random transitions of three observations and two actions."""
    rows = np.random.default_rng(seed).standard_normal((size, 10), np.float32)
    rows[:, 3:5], rows[:, 6] = np.tanh(rows[:, 3:5]), 0.9
    return split_rows(rows, 3)


def joined(batches):
    """One Batch of several."""
    return definitions().Batch(*map(torch.cat, zip(*batches, strict=True)))


def outcome(observations, rewards, done=False, by_time_limit=True):
    """What a decision leads to, as an environment's `step` returns it."""
    done = np.full(len(rewards), done)
    terminated = done & ~np.array(by_time_limit)
    return observations, np.array(rewards), terminated, done & ~terminated, {}
