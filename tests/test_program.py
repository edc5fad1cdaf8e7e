"""Learners as programs of the WebAssembly machine, in Node beside PyTorch."""

from __future__ import annotations

import base64
import copy
import functools
import importlib.util
import json
import shutil
import subprocess
from unittest import mock

import numpy as np
import pytest
import torch
from torch import nn

from tapejit.machine import build
from tapejit.program import Missing, export
from tutorial.notebook import extensions
from web.learn import MACHINE

NODE = shutil.which("node")
FLAG = "--experimental-wasm-relaxed-simd"  # which Node 20 needs, and later ones do not know
needs_node = pytest.mark.skipif(not NODE, reason="no Node")
WIDTH, BATCH = 72, 64
RANDOM = "const random = { uniform: () => 0.5, normal: () => 0 };"


@functools.cache
def knows_flag():
    return subprocess.run([NODE, FLAG, "-e", "0"], capture_output=True).returncode == 0


def node(statements, **given):
    """What statements leave in `result`, with machine.js; they may wait, and see `given`."""
    program = (
        f'"use strict"; {(MACHINE / "machine.js").read_text()} {RANDOM} (async () => {{'
        f'const given = JSON.parse(require("fs").readFileSync(0)); let result; {statements}\n'
        "console.log(JSON.stringify(result)); })();"
    )
    given = json.dumps(given, default=np.ndarray.tolist)
    command = [NODE, *([FLAG] if knows_flag() else []), "-e", program]
    done = subprocess.run(command, input=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


CALLS = """
    const machine = await Machine.load(given.exported, given.modules, random);
    const calls = given.calls.map(([name, leaves]) => {
        machine.programs[name].inputs.forEach(({ numbers }, k) => numbers.set(leaves[k].flat(9)));
        return machine.call(name).map((room) => Array.from(room));
    });
    const state = Object.entries(machine.learner.state);
    result = [calls, Object.fromEntries(state.map(([path, place]) => [path, Array.from(machine.room(place))]))];
"""


def leaves(arguments):
    found = [x for x in torch.utils._pytree.tree_leaves(arguments) if x is not None]
    return [np.asarray(x.detach() if isinstance(x, torch.Tensor) else x).copy() for x in found]


def beside_pytorch(learner, calls, variants=("machine.wasm", "machine_relaxed.wasm"), tolerance=1e-5, names=None):
    """Calls (method, arguments) in Node and with PyTorch agree, in their results and in the state."""
    learner = copy.deepcopy(learner)
    examples = {}
    for method, arguments in calls:
        examples.setdefault(method, arguments)
    exported = export(learner, examples, exact=True)
    arrays = [
        (names or {}).get(k, method) for k, (method, _) in enumerate(calls)
    ]
    told = [
        [name, [x for x in leaves(arguments) if x.dtype != bool or x.ndim]]
        for name, (_, arguments) in zip(arrays, calls, strict=True)
    ]
    expected = []
    for method, arguments in calls:
        tensors = torch.utils._pytree.tree_map(
            lambda x: torch.from_numpy(x) if isinstance(x, np.ndarray) else x, arguments
        )
        with mock.patch("torch.randn_like", torch.zeros_like):  # as `random` in Node
            expected.append(leaves([getattr(learner, method)(*tensors)]))
    largest = 0.0
    for variant in variants:
        module = base64.b64encode((MACHINE / variant).read_bytes()).decode()
        found, state = node(CALLS, exported=exported, modules={"simd": module}, calls=told)
        for mine, theirs in zip(found, expected, strict=True):
            assert len(mine) == len(theirs)
            for one, other in zip(mine, theirs, strict=True):
                largest = max(largest, close(one, other.ravel(), tolerance))
        for path, numbers in state.items():
            tensor = tensor_at(learner, path)
            if tensor is not None:
                tensor = tensor.detach().T if tensor.ndim == 2 else tensor.detach()
                # where a gradient is 0 but for rounding, Adam makes a whole step of it
                error = abs(np.array(numbers, float) - tensor.numpy().ravel())[np.isfinite(tensor.numpy().ravel())]
                assert (error > tolerance).mean() < 2e-3 and error.max(initial=0) < 3e-3, (path, error.max(), (error>tolerance).mean())
    return largest


def close(mine, theirs, tolerance, what=""):
    mine = np.array([np.nan if x is None else x for x in mine], float)  # JSON has no infinity
    there = np.isfinite(theirs)
    error = np.abs(mine - theirs)[there] / np.maximum(1, np.abs(theirs[there]))
    assert error.max(initial=0) < tolerance, (what, error.max())
    return error.max(initial=0)


def tensor_at(learner, path):
    """The tensor of a path such as "self.actor.hidden.0.weight"; None: of an optimizer."""
    if "[" in path:
        return None
    for name in path.removeprefix("self.").split("."):
        if hasattr(learner, name):
            learner = getattr(learner, name)
        else:
            learner = learner[int(name)]
    return learner if isinstance(learner, torch.Tensor) else None


def batch_rows(seed=0):
    """Rows of transitions: all observations differ, or some gradients are 0 but for rounding."""
    generator = np.random.default_rng(seed)
    rows = generator.uniform(-1, 1, (BATCH, WIDTH)).astype(np.float32)
    rows[:, 38] = 0.97**3
    return rows


@pytest.fixture(scope="module")
def make(notebook):
    """`make(name)`: a learner of the notebook or its extensions, and what makes its batches."""

    def make(name):
        torch.manual_seed(0)
        scale = notebook.OBSERVATION_SCALE
        if name in ("plain", "mirrors"):
            networks = (
                (notebook.PlainActor, notebook.PlainCritic)
                if name == "plain"
                else (notebook.Actor, notebook.Critic)
            )
            return notebook.PlainDDPG(*(kind(scale, 4) for kind in networks)), notebook
        if hasattr(notebook, "make_hyperparameters"):
            kind = notebook.DDPG if name in ("default", "fast") else getattr(extensions(), name)
            preset = name if name == "fast" else "default"
            return kind(scale, 4, notebook.make_hyperparameters(preset, {})), None
        settings = notebook.Hyperparameters(noisy_sigma=float(name != "fast"))
        return notebook.DDPG(scale, 4, settings), notebook

    return make
