"""A small learner of the notebook with an edit, trained for a few phases by an engine."""

from __future__ import annotations

import random
import sys
import types

import numpy as np
import torch

OBSERVATIONS, ACTIONS, BATCH, STEPS, PHASES = 3, 2, 16, 3, 7
SMALL = {"hidden_units": 8, "batch_size": BATCH, "noisy_layers": False}
ROWS = """
import functools
def split_rows(rows, size):
    parts = rows.split([size, rows.shape[-1] - 2 * size - 2, 1, 1, size], dim=-1)
    return Batch(*parts[:2], parts[2][..., 0], parts[3][..., 0], parts[4])

class DDPG(DDPG):  # with batches as rows, of which edits take columns
    def learn(self, rows, weights, noise=None):
        return super().learn(split_rows(rows, 3), weights, noise)

class Behind(nn.Module):  # a network behind a layer
    def __init__(self, layer, inner):
        super().__init__()
        self.layer, self.inner = layer, inner
    def forward(self, observations, *others):
        return self.inner(self.layer(observations), *others)
"""


def tensors_in(value, known):
    """All tensors of a learner, whatever holds them."""
    if id(value) in known or isinstance(value, type):
        return
    known[id(value)] = value  # kept, or another object could get its id
    if isinstance(value, torch.Tensor):
        yield value.detach()
    elif isinstance(value, (dict, list, tuple)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from tensors_in(each, known)
    elif hasattr(value, "__dict__"):
        yield from tensors_in(vars(value), known)


def make(notebook, code, **overrides):
    """The namespace of an edit, and its learner."""
    module = sys.modules["the_edit"] = types.ModuleType("the_edit")  # where a dataclass looks
    space = vars(module)
    space |= {name: value for name, value in vars(notebook).items() if name[:2] != "__"}
    exec(compile(ROWS + code, "the edit", "exec"), space)
    torch.manual_seed(0), np.random.seed(0), random.seed(0)
    settings = notebook.Hyperparameters(**SMALL | overrides)
    space["TASK"] = notebook.ARMS._replace(
        scale=np.ones(OBSERVATIONS, np.float32), action_size=ACTIONS
    )
    d = space.get("Edited", space["DDPG"])(settings, space["TASK"])
    for value in vars(d).values():
        if isinstance(value, torch.optim.Optimizer):
            for group in value.param_groups:
                if "eps" in group:
                    group["eps"] = 1e-2  # so that no rounding grows
    return space, d


def train(notebook, code, start):
    """All numbers that come out: results, actions, and the state in the end; or the error."""
    space, d = make(notebook, code)
    fast, found = start(d), []
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
    return fast, found + [tensor.clone().numpy() for tensor in tensors_in(d, {})]
