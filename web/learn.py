"""What a page needs to let a learner of the notebook learn: programs, and the settings around."""

from __future__ import annotations

import base64
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tapejit
from reacher.files import write_whole
from reacher.task import ACTION_SIZE, OBSERVATION_SIZE
from web.page import page

MACHINE = Path(tapejit.__file__).parent / "machine"
SETTINGS = {  # by their names in the notebook's Hyperparameters; here: plain DDPG's
    "reward_scale": 10.0,
    "discount": 0.97,
    "torque_noise": 0.3,
    "learning_starts": 1_000,
    "train_freq": 10,
    "gradient_steps": 40,
    "batch_size": 128,
    "max_samples_per_insert": 1e9,
    "n_step": 1,
    "policy_delay": 1,
    "priority_exponent": 0.0,
    "importance_exponent": 1.0,
    "importance_steps": 1,
    "noisy_sigma": 0.0,
    "fading": False,
    "anneal_score": 1e9,
    "anneal_episodes": None,
}
MOST_ROWS = 200  # whose TD errors are taken in one call


class Batch(NamedTuple):
    """A batch, by the names that the notebook's has."""

    observations: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    discounts: np.ndarray
    next_observations: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray) -> Batch:
        """That of rows (batch, 72) of the replay buffer."""
        ends = np.cumsum([OBSERVATION_SIZE, ACTION_SIZE, 1, 1])
        seen, actions, rewards, discounts, following = np.split(rows, ends, axis=1)
        return cls(seen, actions, rewards[:, 0], discounts[:, 0], following)


def learning(
    learner: Any,
    settings: Mapping[str, Any] = SETTINGS,
    arms: int = 20,
    exact: bool = False,
) -> dict:
    """The learner as programs, and the settings of what is around it: a dictionary for JSON.

    Args:
        learner: with the methods act(observations[, noise]), learn(batch[, weights][, noise]
            [, with_actor]) and, for priorities, td_errors(batch). A batch is a `Batch`, or where
            the argument is called `rows`, an array (batch, 72).
        settings: those of `SETTINGS` that are others; further ones are ignored.
        arms: that act at once.
        exact: with the learner's weights as they are; see `tapejit.program.export`.

    Raises:
        ValueError: the learner has other arguments, or something cannot become a program.
    """
    settings = {name: settings.get(name, value) for name, value in SETTINGS.items()}
    width, rows = 2 * OBSERVATION_SIZE + ACTION_SIZE + 2, arms * int(settings["train_freq"])
    noise = noise_size(learner)

    def example(name: str, method: str) -> Any:
        count = {"act": arms, "learn": settings["batch_size"]}.get(method, min(rows, MOST_ROWS))
        drawn = np.random.default_rng(0).uniform(-1, 1, (count, width)).astype(np.float32)
        if name == "noise":
            shape = (1 if method == "learn" else arms), noise
            return np.zeros(shape, np.float32) if noise else None
        given = {
            "observations": drawn[:, :OBSERVATION_SIZE],
            "batch": Batch.of(drawn),
            "rows": drawn,
            "weights": np.ones(count, np.float32),
            "with_actor": True,
        }
        if name not in given:
            raise ValueError(f"a page does not know the argument {name} of {method}")
        return given[name]

    calls = {}
    for method in ("act", "td_errors", "learn"):
        if hasattr(learner, method):
            parameters = inspect.signature(getattr(learner, method)).parameters
            calls[method] = tuple(example(name, method) for name in parameters)
    modules = {"simd": "machine.wasm", "relaxed": "machine_relaxed.wasm"}
    return {
        "programs": tapejit.export(learner, calls, exact),
        "arms": arms,
        "settings": settings,
        "modules": {
            name: base64.b64encode((MACHINE / file).read_bytes()).decode()
            for name, file in modules.items()
        },
        "machine": (MACHINE / "machine.js").read_text(encoding="utf-8"),
    }


def learning_page(agent: Any, path: Path | str, **options: Any) -> None:
    """Write the page in which the notebook's agent, perhaps edited, learns from nothing.

    Args:
        agent: of the notebook; its learner and settings count, and its weights do not.
        path: of the HTML file.
        options: of `web.page.page`, such as `arms` and `tutorial`.

    Raises:
        ValueError: as `learning`.
    """
    settings = dict(getattr(agent, "settings", ()))
    if not settings:  # the plain agent
        steps, batch = agent.batches
        settings = dict(train_freq=agent.learn_every, gradient_steps=steps, batch_size=batch)
    about = learning(agent.learner, settings)
    untrained = {"label": "0", "network": None, "episode": 0}
    write_whole(Path(path), page([untrained], learning=about, **options).encode())


def noise_size(learner: Any) -> int:
    """How many random numbers the actor's weights take."""
    found = getattr(learner, "noise_size", getattr(learner.actor, "noise_sizes", 0))
    return found if isinstance(found, int) else sum(found)
