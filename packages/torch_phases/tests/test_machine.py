"""Methods as programs of the WebAssembly machine, in Node beside PyTorch."""

from __future__ import annotations

import base64
import copy
import functools
import importlib.util
import json
import operator
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace as Learner
from unittest import mock

import numpy as np
import pytest
import torch
from test_operations import EACH, Several, given
from torch import nn

from torch_phases.machine import build
from torch_phases.program import export

HERE = Path(__file__).parent
NODE = shutil.which("node")
TOLERANCE = 1e-5  # between two ways of computing
needs_node = pytest.mark.skipif(not NODE, reason="no Node")
FLAG = 'require("v8").setFlagsFromString("--experimental-wasm-relaxed-simd");'  # for Node 20
RANDOM = "const random = { uniform: () => 0.5, normal: () => 0 };"
MODULES = [base64.b64encode((build.HERE / name).read_bytes()).decode() for name in build.VARIANTS]


def node(statements, **given):
    """What statements leave in `result`, with machine.js; they may wait, and see `given`."""
    program = (
        f'"use strict"; {FLAG} {(build.HERE / "machine.js").read_text()} {RANDOM} (async () => {{'
        f'const given = JSON.parse(require("fs").readFileSync(0)); let result; {statements}\n'
        "console.log(JSON.stringify(result)); })();"
    )
    given = json.dumps(given, default=np.ndarray.tolist)
    done = subprocess.run([NODE, "-e", program], input=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


CALLS = """
    const number = (text) => Number(text.replace("inf", "Infinity"));
    const machine = await Machine.load(given.exported, given.modules, random);
    const calls = given.calls.map(([name, leaves]) => {
        const set = ({ numbers }, k) => numbers.set(leaves[k].flat(9).map(number));
        machine.programs[name].inputs.forEach(set);
        return machine.call(name).map((room) => Array.from(room, String));
    });
    const state = Object.entries(machine.learner.state);
    const tensors = state.map(([path, place]) => [path, Array.from(machine.room(place))]);
    result = [calls, Object.fromEntries(tensors)];
"""


def leaves(arguments):
    found = [x for x in torch.utils._pytree.tree_leaves(arguments) if x is not None]
    return [x.numpy(force=True).copy() if isinstance(x, torch.Tensor) else x for x in found]


def beside_pytorch(learner, calls):
    """Calls of methods in Node and with PyTorch agree, in results and tensors.

    Args:
        calls: a method and its arguments each. Their shapes are the same for a method.
    """
    learner = copy.deepcopy(learner)
    with mock.patch("torch_phases.program.is_uniform", lambda *_: False):  # the same weights
        exported = export(learner, dict(reversed(calls)))
    expected, told = [], []
    for method, arguments in calls:
        tensors = torch.utils._pytree.tree_map_only(np.ndarray, torch.from_numpy, arguments)
        expected.append(leaves([getattr(learner, method)(*tensors)]))
        told.append([method, [x.astype(str) for x in leaves(arguments)]])
    for module, variant in zip(MODULES, build.VARIANTS, strict=True):
        found, state = node(CALLS, exported=exported, modules=[module], calls=told)
        for (method, _), mine, theirs in zip(calls, found, expected, strict=True):
            for one, other in zip(mine, theirs, strict=True):
                assert (errors(one, other) < TOLERANCE).all(), (variant, method)
        for path, numbers in state.items():
            if "optimizer" not in path:
                tensor = operator.attrgetter(path.removeprefix("self."))(learner).detach()
                wrong = errors(numbers, tensor.T.numpy() if tensor.ndim == 2 else tensor.numpy())
                # a gradient of 0 but for rounding becomes a whole step of Adam's, 1e-3
                assert (wrong < TOLERANCE).mean() > 0.998 and (wrong < 3e-3).all(), (variant, path)


def errors(mine, theirs):
    """Relative to the larger of 1 and theirs; none where both are the same or no number."""
    mine, theirs = np.array(mine, float), np.ravel(theirs)
    alike = (mine == theirs) | (np.isnan(mine) & np.isnan(theirs))
    return np.where(alike, 0, abs(mine - theirs) / np.maximum(1, abs(theirs)))


class Net(nn.Module):
    """Regression, with clipped gradients."""

    def __init__(self, optimizer):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(6, 7), nn.LayerNorm(7), nn.ReLU(), nn.Linear(7, 3))
        self.optimizer = optimizer(self.layers.parameters(), lr=1e-3)

    def learn(self, x, y):
        found = self.layers(x)
        loss = nn.functional.huber_loss(found, y, delta=0.3)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.layers.parameters(), 0.1)
        self.optimizer.step()
        return loss.detach(), found.detach()


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


OPTIMIZERS = "Adam AdamW RMSprop Adagrad".split()
MOMENTUM = functools.partial(torch.optim.SGD, momentum=0.9)


@needs_node
@pytest.mark.parametrize("kind", [MOMENTUM, *(getattr(torch.optim, x) for x in OPTIMIZERS)])
def test_optimizers_take_the_same_steps(kind):
    beside_pytorch(Net(kind), 3 * [("learn", (numbers(8, 6), numbers(8, 3, seed=1)))])


@needs_node
@pytest.mark.parametrize("first", range(0, len(EACH), 24))
def test_operations_are_pytorchs(first):
    """Those that the machine has."""
    some = [x for x in EACH[first : first + 24] if not re.search("flip|indices|::2", x)]
    beside_pytorch(Several(some), [("learn", tuple(x[0] for x in given()))])


@needs_node
def test_random_numbers_are_drawn_anew():
    """Uniform ones are 0.5 here, and normal ones 0."""

    def draw(x, y):
        return torch.rand_like(x), torch.randn_like(x), nn.functional.dropout(x, 0.3)

    x = numbers(8, 6)
    exported = export(Learner(learn=draw), {"learn": (x, x)})
    calls = [["learn", [x.astype(str)] * 2]]
    [drawn], _ = node(CALLS, exported=exported, modules=MODULES, calls=calls)
    for found, expected in zip(drawn, (0.5, 0, x.ravel() / 0.7), strict=True):
        np.testing.assert_allclose(np.array(found, float), np.broadcast_to(expected, 48), rtol=1e-6)


def test_what_is_missing_is_named_at_once():
    def unusual(x, y):
        return x.sort(1)[0] + x.cumsum(1) + nn.functional.dropout(y[:, :1])

    with pytest.raises(ValueError, match=r"sort.*cumsum|cumsum.*sort"):
        export(Learner(learn=unusual), {"learn": (numbers(8, 6), numbers(8, 3))})
    with pytest.raises(ValueError, match=r"the machine has no rev, in <lambda> \(.*x.flip\(1\)"):
        export(Learner(learn=lambda x: 2 * x.flip(1)), {"learn": (numbers(8, 6),)})
    with pytest.raises(ValueError, match="looks at a tensor's number"):
        export(Learner(learn=lambda x: x.sum().item()), {"learn": (numbers(8, 6),)})


def test_an_export_is_the_same_in_every_process():
    """Whatever it has recorded: else a seed would draw other first weights, and learn otherwise."""
    net = "Net(torch.optim.Adam)"
    code = f"export({net}, {{'learn': (numbers(8, 6), numbers(8, 3))}})"
    code += ", export(Learner(learn=lambda x, y: x.exp() + y.sin()), dict(learn=2 * [numbers(8)]))"
    eval(code.replace("x.exp() + y.sin()", "y.sin() - x.exp()"))  # in another order
    start = "from test_machine import *; "
    command = [sys.executable, "-c", f"{start}print(json.dumps(({code})))"]
    path = os.pathsep.join(map(str, (HERE, HERE.parent)))
    other = os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": path}
    told = subprocess.check_output(command, env=other)
    assert json.loads(told) == json.loads(json.dumps(eval(code)))


@pytest.mark.skipif(not importlib.util.find_spec("ziglang"), reason="no ziglang")
def test_the_committed_machines_are_those_of_their_source(tmp_path):
    build.build(tmp_path)
    for name in build.VARIANTS:
        assert (tmp_path / name).read_bytes() == (build.HERE / name).read_bytes()
