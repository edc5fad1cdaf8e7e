"""A small learner of the notebook with an edit, trained for a few phases by an engine."""

from __future__ import annotations

import random
import sys
import types

import numpy as np
import torch

OBSERVATIONS, ACTIONS, BATCH, STEPS, PHASES = 3, 2, 16, 3, 7
SMALL = {"actor_hidden": (8,), "critic_hidden": (8,), "batch_size": BATCH, "noisy_layers": False}


class Counted:
    """The engine, and how often it was called."""

    def __init__(self, fast):
        self.fast, self.calls = fast, []

    def scan(self, *arguments):
        self.calls.append(arguments[0])
        return self.fast.scan(*arguments)

    def call(self, *arguments):
        self.calls.append(arguments[0])
        return self.fast.call(*arguments)


def tensors_in(value, known=None):
    """All tensors of a learner, whatever holds them."""
    known = {} if known is None else known
    if id(value) in known:
        return
    known[id(value)] = value  # kept, or another object could get its id
    if isinstance(value, torch.Tensor):
        yield value.detach()
    elif isinstance(value, torch.nn.Module):
        yield from value.state_dict().values()
    elif isinstance(value, torch.optim.Optimizer):
        yield from tensors_in(list(value.state.values()), known)
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()), known)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from tensors_in(each, known)
    elif hasattr(value, "__dict__") and not isinstance(value, type):
        yield from tensors_in(vars(value), known)


def make(notebook, code, **overrides):
    """The namespace of an edit, and its learner."""
    module = sys.modules["the_edit"] = types.ModuleType("the_edit")  # where a dataclass looks
    space = vars(module)
    space |= {name: value for name, value in vars(notebook).items() if name[:2] != "__"}
    exec(compile(code, "the edit", "exec"), space)
    torch.manual_seed(0), np.random.seed(0), random.seed(0)
    settings = notebook.make_hyperparameters("default", SMALL | overrides, has_mirrors=False)
    d = space.get("Edited", notebook.DDPG)(np.ones(OBSERVATIONS, np.float32), ACTIONS, settings)
    for value in vars(d).values():
        if isinstance(value, torch.optim.Optimizer):
            for group in value.param_groups:
                if "eps" in group:
                    group["eps"] = 1e-2  # so that no rounding grows
    return space, d


def train(notebook, code, start):
    """All numbers that come out: results, actions, and the state in the end; or the error."""
    space, d = make(notebook, code)
    fast, found = Counted(start(d)), []
    chance = np.random.default_rng(0)
    try:
        for k in range(PHASES):
            rows = chance.uniform(-1, 1, (STEPS, BATCH, 2 * OBSERVATIONS + ACTIONS + 2))
            rows = rows.astype(np.float32) * (1 if k < PHASES - 1 else 5)
            weights = chance.uniform(0.5, 1, (STEPS, BATCH)).astype(np.float32)
            noise = np.zeros((STEPS, 1, d.noise_size), np.float32)
            space.get("before", lambda d, k: None)(d, k)
            learn = space.get("learn", lambda d, fast, *given: fast.scan("learn", *given))
            result = learn(d, fast, rows, weights, noise)
            found += [
                np.array(x) for x in (result if isinstance(result, (list, tuple)) else [result])
            ]
            space.get("after", lambda d, k: None)(d, k)
            act = space.get("act", lambda d, fast, seen: fast.call("act", seen, None))
            found.append(np.array(act(d, fast, rows[0, :, :OBSERVATIONS].copy())))
    except Exception as error:
        found.append(error)
    return fast.fast, found + [tensor.clone().numpy() for tensor in tensors_in(d)]
