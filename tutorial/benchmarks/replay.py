"""Prioritized replay: draw a batch from a full memory, then set its new priorities."""

from __future__ import annotations

import itertools

import numpy as np
import torch

from tutorial import notebook
from tutorial.benchmarks import measure
from tutorial.benchmarks.measure import Options, Recorder, Target

TITLE = "Prioritized replay"
OURS = "this notebook"
BASELINES = ("cpprb", "tianshou, tree", "tianshou, buffer")
EXPLANATION = """\
Draw 128 transitions out of 1,000,000 in proportion to their priorities, gather their 72 numbers
(two observations, action, return, discount), compute the importance weights, and set 128 new
priorities from TD errors: what every gradient step needs of its memory. All have the same
transitions and priorities with exponent 0.6; beta is 0.4. One thread.

- *cpprb*: `PrioritizedReplayBuffer`, `sample` and `update_priorities`. Compiled C++.
- *tianshou, tree*: its `SegmentTree`, compiled by numba, inside the notebook's own strata, gather
  and weights.
- *tianshou, buffer*: its `PrioritizedReplayBuffer`, with the row as the observation."""

BATCH = 128
BETA = 0.4
ALPHA = 0.6
EPSILON = 1e-4
OBSERVATION, ACTION = 33, 4
WIDTH = 2 * OBSERVATION + ACTION + 2


def transitions(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows (number, 72) and TD errors (number,), float32, of nothing in particular."""
    generator = np.random.default_rng(0)
    rows = generator.standard_normal((number, WIDTH), dtype=np.float32)
    return rows, 0.1 * generator.standard_normal(number, dtype=np.float32)


def new_errors():
    """A function that returns other TD errors (128,) at every call."""
    pool = 0.1 * np.random.default_rng(1).standard_normal((64, BATCH), dtype=np.float32)
    turn = itertools.cycle(pool)
    return lambda: next(turn)


def to_priorities(td_errors: np.ndarray) -> np.ndarray:
    """(|delta| + epsilon)^alpha, shape (k,)."""
    return (np.abs(td_errors).astype(np.float64) + EPSILON) ** ALPHA


def importance_weights(size: int, probabilities: np.ndarray) -> np.ndarray:
    """(N P)^-beta, divided by the largest, shape (k,) float32."""
    weights = (size * probabilities) ** -BETA
    return (weights / weights.max()).astype(np.float32)


def strata(generator: np.random.Generator, total: float) -> np.ndarray:
    """One value in each of 128 equal pieces of [0, total)."""
    return (np.arange(BATCH) + generator.random(BATCH)) / BATCH * total


def this_project(rows, td_errors, definitions=None):
    """The notebook's PrioritizedReplay, and its rows as a Batch of tensors."""
    definitions = definitions or notebook.definitions()
    replay = definitions.PrioritizedReplay(
        len(rows), WIDTH, np.random.default_rng(0), alpha=ALPHA, epsilon=EPSILON
    )
    replay.add(rows, td_errors)
    errors = new_errors()

    def call():
        indices, drawn, weights = replay.sample(BATCH, BETA)
        batch = definitions.split_rows(torch.from_numpy(drawn), OBSERVATION, ACTION)
        replay.update(indices, errors())
        return indices, batch, weights

    return call


def cpprb(rows, td_errors):
    """cpprb's buffer, filled in pieces."""
    from cpprb import PrioritizedReplayBuffer

    fields = {
        "obs": {"shape": OBSERVATION},
        "act": {"shape": ACTION},
        "ret": {},
        "discount": {},
        "next_obs": {"shape": OBSERVATION},
    }
    buffer = PrioritizedReplayBuffer(len(rows), fields, alpha=ALPHA, eps=EPSILON)
    parts = np.split(rows, np.cumsum([OBSERVATION, ACTION, 1, 1]), axis=1)
    for first in range(0, len(rows), 10_000):
        piece = slice(first, first + 10_000)
        buffer.add(
            **{name: part[piece] for name, part in zip(fields, parts, strict=True)},
            priorities=np.abs(td_errors[piece]),
        )
    errors = new_errors()

    def call():
        sample = buffer.sample(BATCH, beta=BETA)
        buffer.update_priorities(sample["indexes"], np.abs(errors()))
        return sample["indexes"], sample, sample["weights"]

    return call


def tianshou_tree(rows, td_errors):
    """tianshou's tree; everything else as in the notebook."""
    from tianshou.data import SegmentTree

    tree = SegmentTree(len(rows))
    tree[np.arange(len(rows))] = to_priorities(td_errors)
    generator, errors = np.random.default_rng(0), new_errors()

    def call():
        indices = tree.get_prefix_sum_idx(strata(generator, tree.reduce()))
        weights = importance_weights(len(rows), tree[indices] / tree.reduce())
        drawn = rows.take(indices, axis=0)
        tree[indices] = to_priorities(errors())
        return indices, drawn, weights

    return call


def tianshou_buffer(rows, td_errors):
    """tianshou's buffer; it wants the fields of a Gymnasium step, of which `obs` holds the row."""
    from tianshou.data import Batch, PrioritizedReplayBuffer

    buffer = PrioritizedReplayBuffer(len(rows), alpha=ALPHA, beta=BETA, ignore_obs_next=True)
    one = Batch(obs=rows[0], act=0, rew=0.0, terminated=False, truncated=False, info={})
    buffer.add(one)  # makes the arrays; they are filled as a whole, one row a call takes minutes
    buffer._meta.obs[:] = rows
    buffer._size, buffer._insertion_idx = len(rows), 0
    buffer.update_weight(np.arange(len(rows)), td_errors)
    errors = new_errors()

    def call():
        batch, indices = buffer.sample(BATCH)
        buffer.update_weight(indices, errors())
        return indices, batch.obs, batch.weight

    return call


BUILDERS = dict(zip(BASELINES, (cpprb, tianshou_tree, tianshou_buffer), strict=True))


def run(options: Options, recorder: Recorder) -> None:
    """Measure all in turn."""
    rows, td_errors = transitions(options.size(1_000_000, 2_000))
    with measure.torch_threads(1):
        baselines, missing = measure.build_baselines(
            {name: lambda build=build: build(rows, td_errors) for name, build in BUILDERS.items()}
        )
        calls = {OURS: this_project(rows, td_errors)} | baselines
        recorder.put_seconds(measure.time_in_turn(calls, options), missing)


def targets(measured) -> list[Target]:
    best = measure.fastest(measured, BASELINES)
    value = measure.ratio(measured, best, OURS) if best else None
    what = (
        f"Draw and update 128 of 1,000,000: at least 2 times as fast as the best baseline ({best})"
    )
    return [measure.at_least(what, value, 2.0)]
