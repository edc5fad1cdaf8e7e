"""One gradient step: critic, actor and target networks, at equal networks and batch."""

from __future__ import annotations

import importlib

import numpy as np
import torch

from reacher.task import ACTION_SIZE, OBSERVATION_SIZE
from research.benchmarks import measure
from tutorial import notebook
from tutorial.paths import NOTEBOOK
from tutorial.tables import as_markdown

TITLE = "Gradient step"
PLAIN = "this notebook, plain, with its draw"
DEFAULT = "this notebook, default, with draw and update"
COMPILED = ", compiled"  # after each of these two
SB3, SBX = "Stable-Baselines3 DDPG, with its draw", "SBX DDPG, with its draw"
EXPLANATION = """\
A step of critic, actor and both target networks on a batch of 64, networks with two hidden layers
of 128 units, ReLU, Adam, tau 0.005, one critic; time per step, its draw included.

- *this notebook, plain*: mirrors, normalization and NoisyNet left out, which are the same networks
  as the baselines have; uniform replay; phases of 100 steps.
- *this notebook, default*: the canonical frame, layer normalization, NoisyNet, the fixed input
  scale, prioritized replay of 1,000,000 and its update; phases of 40 steps.
- *compiled*: the same by `tapejit.compiled`, a phase in one call.
- *Stable-Baselines3* and *SBX*: `DDPG("MlpPolicy", net_arch=[128, 128]).train(100, 64)` on a filled
  `ReplayBuffer` of 100,000 transitions of 20 environments. SBX runs the 100 steps in one call.

All memories are filled with 100,000 transitions. One thread, which is quickest for networks of this
size."""

HELD = 100_000
BATCH = 64  # of the presets default and fast
MANY = 100  # steps of a call, where the batches of several are drawn first
PLAIN_SETTINGS = {
    "mirrors": "none",
    "noisy_layers": False,
    "actor_hidden": (128, 128),
    "critic_hidden": (128, 128),
    "batch_size": BATCH,
    "tau": 5e-3,
    "policy_delay": 1,
    "replay": "uniform",
    "gradient_steps": MANY,
}
WITHOUT_NORMALIZATION = (  # edits of cells
    ("nn.LayerNorm(outputs), nn.ReLU()", "nn.ReLU()"),
    ("FixedScale(observation_scale),", "nn.Identity(),"),
    ("self.scaling = FixedScale(scale)", "self.scaling = nn.Identity()"),
)


def this_project(overrides: dict, edits: tuple, rows, td_errors, engine: str):
    """An update phase of the notebook with edits of its cells, and its number of steps."""
    definitions = notebook.load_definitions(NOTEBOOK, edits)
    settings = definitions.make_hyperparameters("default", overrides)
    generator = np.random.default_rng(0)
    agent = definitions.Agent(
        definitions.OBSERVATION_SCALE, ACTION_SIZE, settings, generator, engine=engine
    )
    agent.replay.add(rows, td_errors if settings.replay == "prioritized" else None)
    return lambda: definitions.learning_phase(
        agent, settings.gradient_steps
    ), settings.gradient_steps


def library_calls(library: str, rows):
    """100 steps of a library's DDPG on a filled buffer of 20 environments."""
    from stable_baselines3.common.logger import Logger

    from research.libraries import ArmVecEnv

    arms = 20
    kind = importlib.import_module(library).DDPG
    model = kind(
        "MlpPolicy",
        ArmVecEnv(arms, seed=0),
        device="cpu",
        batch_size=BATCH,
        buffer_size=len(rows),
        policy_kwargs={"net_arch": [128, 128]},
        seed=0,
    )
    model.set_logger(Logger(folder=None, output_formats=[]))
    buffer = model.replay_buffer
    shape = (buffer.buffer_size, arms, -1)
    observations, actions, rewards, _, next_observations = np.split(
        rows[: buffer.buffer_size * arms], np.cumsum([OBSERVATION_SIZE, ACTION_SIZE, 1, 1]), 1
    )
    buffer.observations[:] = observations.reshape(shape)
    buffer.next_observations[:] = next_observations.reshape(shape)
    buffer.actions[:] = actions.reshape(shape)
    buffer.rewards[:] = rewards.reshape(shape[:2])
    buffer.full = True
    return lambda: model.train(MANY, BATCH)


def run() -> dict[str, dict]:
    """Measure all in turn: by name, seconds of a step in each repetition, or why it is missing."""
    generator = np.random.default_rng(0)
    width = 2 * OBSERVATION_SIZE + ACTION_SIZE + 2
    rows = generator.standard_normal((HELD, width), dtype=np.float32)
    td_errors = 0.1 * generator.standard_normal(len(rows), dtype=np.float32)
    calls, steps, missing = {}, {SB3: MANY, SBX: MANY}, {}
    with measure.torch_threads(1):
        torch.manual_seed(0)
        for name, overrides, edits in (
            (PLAIN, PLAIN_SETTINGS, WITHOUT_NORMALIZATION),
            (DEFAULT, {}, ()),
        ):
            for engine, more in (("torch", ""), ("compiled", COMPILED)):
                calls[name + more], steps[name + more] = this_project(
                    overrides, edits, rows, td_errors, engine
                )
        for name, library in ((SB3, "stable_baselines3"), (SBX, "sbx")):
            try:
                calls[name] = library_calls(library, rows)
            except Exception as error:  # whatever a baseline fails with is a finding
                missing[name] = {"missing": f"{type(error).__name__}: {error}"[:160]}
        seconds = measure.time_in_turn(calls)
    return missing | {
        name: {"seconds": [value / steps[name] for value in values]}
        for name, values in seconds.items()
    }


def table(measured) -> str:
    """Median, quartiles and number of repetitions of every candidate, in µs."""
    lines = []
    for name, entry in measured.items():
        if "missing" in entry:
            lines.append([name, entry["missing"], "-", "-"])
            continue
        values = 1e6 * np.array(entry["seconds"])
        low, middle, high = np.percentile(values, [25, 50, 75])
        lines.append([name, f"{middle:,.1f}", f"{low:,.1f} to {high:,.1f}", str(len(values))])
    return as_markdown(["", "median, µs", "quartiles, µs", "repetitions"], lines)
