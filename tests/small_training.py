"""A whole training made small: what the notebook does, in short episodes."""

from __future__ import annotations

import contextlib
import io
import os
import signal
from pathlib import Path

import numpy as np
import torch

from reacher import task
from reacher.episode import evaluate_policy
from tutorial.environments import open_environment
from tutorial.evaluation import open_evaluation
from tutorial.notebook import definitions
from tutorial.randomness import seed_everything
from tutorial.states import pack

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
KINDS = {  # different things to remember
    "default": {},  # prioritized replay, NoisyNet, noise on the torques
    "course_noise": {"priority_exponent": 0.0, "noisy_layers": False},
    "an end of learning": {"anneal_episodes": 2},  # after two of six episodes
    "ring that wraps around": {"replay_capacity": 70, "n_step": 1},
}


def shrink(patch=setattr) -> None:
    """Make episodes small. Args: patch is `monkeypatch.setattr` where it should end with a test."""
    patch(task, "EPISODE_DECISIONS", DECISIONS)
    patch(task, "RESET_PARAMETERS", task.RESET_PARAMETERS | {"goal_size": 24.0})  # scores vary
    patch(os, "fsync", lambda descriptor: None)  # only a loss of power needs it


def make_agent(kind="default", agent=None, learner=None, **overrides):
    cells = definitions()
    settings = cells.Hyperparameters(**SMALL | KINDS[kind] | overrides)
    made = (agent or cells.Agent)(settings, seed_everything(0), learner or cells.DDPG)
    if kind == "an end of learning":  # from the start, and not once 20 arms have been seen
        made.schedules.scores.append(100.0)
    return made


def make_plain_agent(networks=None, kind=None, agent=None, **options):
    """An agent of an early section. Args: networks, a function of settings; kind of learner."""
    cells, generator = definitions(), seed_everything(0)
    settings = (cells.NStepSettings if "n_step" in options else cells.PlainSettings)(**options)
    learner = (kind or cells.PlainDDPG)(*(networks or cells.plain_networks)(settings), settings)
    memory = cells.UniformReplay(settings, generator)
    return (agent or cells.PlainAgent)(learner, memory, generator, settings)


def train(folder, kind="default", episodes=6, environment=None, evaluate=False, **options):
    """Train as the notebook does, and go on where there is something to go on from."""
    names = "agent", "learner", *definitions().Hyperparameters.model_fields
    chosen = {name: options.pop(name) for name in names if name in options}
    environment = environment or open_environment("", ARMS, 0)
    agent = make_agent(kind, **chosen)
    options = {"save_every": 1, "metadata": {"seed": 0}} | options
    options.setdefault("resume", (Path(folder) / "state.pt").exists())
    options.setdefault("evaluation", open_evaluation("", ARMS, every=2) if evaluate else None)
    definitions().train_agent(environment, agent, folder, episodes, **options)
    return agent


def left_by(folder, agent=None) -> dict:
    """All numbers that a training left but the time that it took; with those of its agent."""
    folder = Path(folder)
    tables = {path.name: path.read_text().splitlines() for path in folder.glob("*.csv")}
    left = {name: [line.rsplit(",", 1)[0] for line in lines] for name, lines in tables.items()}
    left |= {path.name: path.read_bytes() for path in folder.glob("*.safetensors")}
    for name, network in {} if agent is None else vars(agent.learner).items():
        if isinstance(network, torch.nn.Module):
            for key, tensor in network.state_dict().items():
                left[f"{name}.{key}"] = tensor.numpy().tobytes()
    return left


def assert_same(one: dict, other: dict) -> None:
    """Every number of two outcomes is the same, bit for bit."""
    assert one.keys() == other.keys()
    differing = [name for name in one if one[name] != other[name]]
    assert not differing, f"{differing[:5]} differ"


def split_rows(rows, size=33):
    """The notebook's Batch from rows (..., size + actions + 2 + size), such as random numbers."""
    parts = torch.as_tensor(rows).split([size, rows.shape[-1] - 2 * size - 2, 1, 1, size], dim=-1)
    return definitions().Batch(*parts[:2], parts[2][..., 0], parts[3][..., 0], parts[4])


def joined(batches):
    """One Batch of several."""
    return definitions().Batch(*map(torch.cat, zip(*batches, strict=True)))


def outcome(observations, rewards, done=False, by_time_limit=True):
    """What a decision leads to, as an environment's `step` returns it."""
    done = np.full(len(rewards), done)
    terminated = done & ~np.array(by_time_limit)
    return observations, np.array(rewards), terminated, done & ~terminated, {}


class KilledAt:
    """The real environment; some time after a decision the system ends its process.

    The clock counts the processor's time, so a kill cannot come too early or too late, however busy
    the machine is. Nothing in the process handles the signal, which ends it as SIGKILL does.
    """

    def __init__(self, decision, seconds):
        self.environment = open_environment("", ARMS, 0)
        self.left, self.seconds = decision, seconds

    def __getattr__(self, name):
        return getattr(self.environment, name)

    def step(self, actions):
        self.left -= 1
        if not self.left:
            signal.setitimer(signal.ITIMER_VIRTUAL, self.seconds)
        return self.environment.step(actions)


def train_apart(folder, killed_at=None, file_limit=None, **options) -> None:
    """What a process of a test does: a small training.

    Args:
        killed_at: decision and seconds of `KilledAt`, or None.
        file_limit: bytes to which a file may grow, as on a disk that is full.
    """
    torch.set_num_threads(1)
    shrink()
    if file_limit:
        import resource  # which only Unix has

        resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    environment = KilledAt(*killed_at) if killed_at else None
    with open(f"{folder}.log", "a") as log, contextlib.redirect_stdout(log):
        try:
            train(folder, environment=environment, **options)
        except OSError as error:
            print(error, *getattr(error, "__notes__", []), file=log)
            raise SystemExit(3) from None


def warm_up() -> None:
    """Load and compile once, for all processes that begin as copies of this one.

    Gradients would start threads, which such a copy loses.
    """
    agent = make_agent()
    agent.learner.actor_optimizer.step()
    evaluate_policy(open_environment("", ARMS, 0), agent.policy)
    torch.save(pack(agent, "", {}, []), io.BytesIO())


if "WARM_UP" in os.environ:
    warm_up()
