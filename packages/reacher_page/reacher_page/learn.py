"""What a page needs to let a learner of the notebook learn: programs, and the settings around."""

from __future__ import annotations

import base64
import copy
import inspect
import random
from collections import namedtuple
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from reacher.task import ACTION_SIZE
from reacher_page.page import page
from torch_phases.machine.build import HERE as MACHINE
from torch_phases.machine.build import VARIANTS

SETTINGS = {  # its own, by their names in the notebook's Hyperparameters
    "reward_scale": 10.0,
    "discount": 0.97,
    "learning_starts": 1_000,
    "train_freq": 1,
    "gradient_steps": 1,
    "batch_size": 64,
    "n_step": 1,
    "priority_exponent": 0.0,
    "importance_exponent_start": 1.0,
    "importance_anneal_steps": 1,
    "noisy_layers": False,
    "gaussian_sigma": 0.3,
    "noise_schedule": "constant",
    "anneal_share": 1.0,
    "anneal_episodes": None,
}
NEEDS = {  # parts of an agent without which it does not look at these settings
    "n_step": "windows",
    "priority_exponent": "replay_surprises",
    "noisy_layers": "weight_noise",
    "noise_schedule": "schedules",
    "anneal_episodes": "schedules",
}
CLASSES = (  # the notebook's, whose methods of these names are JavaScript in a page
    "PlainAgent FastAgent NStepAgent PrioritizedAgent NoisyAgent Agent "
    "UniformReplay PrioritizedReplay NStepBuffer Schedules"
).split()
METHODS = (
    "act policy weight_noise remember keep learn_if_due update beta replay_surprises begin_episode "
    "end_episode add sample window progress noise_factor anneal_factor"
).split()
ARMS = 20  # that act at once
MOST_ROWS = 200  # whose TD errors are taken in one call


Batch = namedtuple("Batch", "observations actions rewards discounts next_observations")


def random_batch(count: int) -> Batch:
    """The notebook's Batch, of arrays of numbers from 0 to 1."""
    generator, widths = np.random.default_rng(0), [(33,), (4,), (), (), (33,)]
    return Batch(*(generator.random((count, *width), np.float32) for width in widths))


def learning(learner: Any, settings: Mapping[str, Any] = SETTINGS) -> dict:
    """The learner as programs, and the settings of what is around it: a dictionary for JSON.

    Args:
        learner: with the methods act(observations[, noise]), learn(batch[, weights][, noise]) and,
            for priorities, td_errors(batch). A batch is a `Batch`.
        settings: those of `SETTINGS` that are others; further ones are ignored.

    Raises:
        ValueError: the learner has other arguments, or something cannot become a program.
    """
    from torch_phases.program import export  # which needs Dynamo and JAX

    settings = {name: settings.get(name, value) for name, value in SETTINGS.items()}
    counts = {"act": ARMS, "td_errors": min(ARMS * int(settings["train_freq"]), MOST_ROWS)}
    size = sum(getattr(learner.actor, "noise_sizes", ()))  # how many numbers noisy layers take

    if hasattr(learner, "set_learning_rates"):
        learner.set_learning_rates(1.0)  # as at first; an agent sets them again before it learns
    calls = {}
    for method in (name for name in ("act", "td_errors", "learn") if hasattr(learner, name)):
        batch = random_batch(counts.get(method, settings["batch_size"]))
        known = {"observations": batch.observations, "batch": batch, "weights": batch.discounts}
        rows = ARMS if method == "act" else 1
        known["noise"] = np.zeros((rows, size), np.float32) if size else None
        names = inspect.signature(getattr(learner, method)).parameters
        if odd := [name for name in names if name not in known]:
            raise ValueError(f"a page does not know the argument {odd[0]} of {method}")
        calls[method] = tuple(known[name] for name in names)
    return {
        "programs": export(learner, calls),
        "arms": ARMS,
        "settings": settings,
        "modules": [base64.b64encode((MACHINE / x).read_bytes()).decode() for x in VARIANTS],
        "machine": (MACHINE / "machine.js").read_text(encoding="utf-8"),
    }


def learning_of(agent: Any) -> dict:
    """`learning` of the notebook's agent, also of a plain one, with its settings.

    A training of the agent goes on afterwards as if nothing had been.

    Raises:
        ValueError: as `learning`, or a page would act, remember or learn in another way. Methods
            that were edited within the notebook's own classes are not seen, but for torque_noise.
    """
    settings: dict[str, Any] = {
        name: getattr(agent.settings, name, x) if hasattr(agent, NEEDS.get(name, "act")) else x
        for name, x in SETTINGS.items()
    }
    check_methods(agent)
    check_noise(agent, settings["gaussian_sigma"])
    chance = random.getstate(), np.random.get_state(), torch.get_rng_state()
    try:
        return learning(untrained(agent), settings)
    finally:
        random.setstate(chance[0])
        np.random.set_state(chance[1])
        torch.set_rng_state(chance[2])


def check_methods(agent: Any) -> None:
    """Raise ValueError if a method is of another class than the notebook's."""
    for part in (agent, *map(vars(agent).get, ("memory", "windows", "schedules"))):
        home = type(part).__mro__[-2].__module__  # __main__ in a kernel
        for name in METHODS:
            if method := getattr(part, name, None):
                owner = method.__qualname__.rpartition(".")[0]
                if method.__module__ != home or owner not in CLASSES:
                    raise ValueError(
                        f"a page cannot run {name} of {type(part).__name__}, which is not the "
                        "notebook's"
                    )


def check_noise(agent: Any, sigma: float) -> None:
    """Raise ValueError unless it is normal, with this sigma, and new for each arm and decision."""
    probe, generator = copy.copy(agent), copy.deepcopy(agent.generator)
    probe.generator = copy.deepcopy(generator)
    sigma *= agent.schedules.noise_factor() if hasattr(agent, "schedules") else 1.0
    for _ in range(2):
        drawn = probe.torque_noise((ARMS, ACTION_SIZE))
        expected = sigma * generator.standard_normal((ARMS, ACTION_SIZE), np.float32)
        if not np.allclose(drawn, expected):
            raise ValueError(
                "a page draws normal noise of gaussian_sigma for each arm and torque, and "
                f"torque_noise of {type(agent).__name__} does something else"
            )


def untrained(agent: Any) -> Any:
    """A learner like the agent's, made as the notebook makes it; another kind is copied."""
    learner = agent.learner
    try:
        if hasattr(learner, "settings"):
            return type(learner)(learner.settings)
        networks = copy.deepcopy((learner.actor, learner.critic))
        for module in torch.nn.ModuleList(networks).modules():
            getattr(module, "reset_parameters", int)()
            for name, spread in module.named_parameters(recurse=False):
                if name.startswith("sigma_"):  # of noisy layers, as the notebook begins them
                    spread.data.fill_(agent.settings.noisy_sigma * int(module.in_features) ** -0.5)  # type: ignore[arg-type]
        return type(learner)(*networks, agent.settings)
    except (AttributeError, TypeError):
        return copy.deepcopy(learner)


def learning_page(agent: Any, path: Path | str, **options: Any) -> None:
    """Write the page in which the notebook's agent, perhaps edited, learns from nothing.

    Args:
        agent: of the notebook, also a plain one; its learner and settings count, not its weights.
        path: of the HTML file.
        options: of `reacher_page.page.page`, such as `tutorial`.

    Raises:
        ValueError: as `learning`.
    """
    content = page(learning=learning_of(agent), **options)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(content, encoding="utf-8")
