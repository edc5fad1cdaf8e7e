"""Methods as programs of the WebAssembly machine, in Node beside PyTorch."""

from __future__ import annotations

import base64
import copy
import functools
import importlib.util
import json
import operator
import os
import shutil
import subprocess
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import torch
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
    const machine = await Machine.load(given.exported, given.modules, random);
    const calls = given.calls.map(([name, leaves]) => {
        machine.programs[name].inputs.forEach(({ numbers }, k) => numbers.set(leaves[k].flat(9)));
        return machine.call(name).map((room) => Array.from(room));
    });
    const state = Object.entries(machine.learner.state);
    const tensors = state.map(([path, place]) => [path, Array.from(machine.room(place))]);
    result = [calls, Object.fromEntries(tensors)];
"""


def leaves(arguments):
    found = [x for x in torch.utils._pytree.tree_leaves(arguments) if x is not None]
    return [np.asarray(x.detach() if isinstance(x, torch.Tensor) else x).copy() for x in found]


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
        told.append([method, leaves(arguments)])
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
    """Relative to the larger of 1 and theirs."""
    theirs = np.ravel(theirs)
    return abs(np.array(mine, float) - theirs) / np.maximum(1, abs(theirs))


class Net(nn.Module):
    """Regression by a network with some more layers, and what else is to be tested."""

    def __init__(self, *layers, optimizer=torch.optim.SGD, loss=nn.functional.mse_loss, rate=0.1):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(6, 7), *layers, nn.Linear(7, 3))
        self.optimizer, self.loss = optimizer(self.layers.parameters(), lr=rate), loss

    def learn(self, x, y):
        self.optimizer.zero_grad()
        found = self.layers(x)
        loss = self.loss(found, y)
        loss.backward()
        nn.utils.clip_grad_norm_(self.layers.parameters(), 0.1)
        self.optimizer.step()
        return found.detach(), loss.detach()


def losses(x, y):
    huber = nn.functional.huber_loss(x, y, reduction="none", delta=0.3)
    return (huber + (x - y).abs()).mean()


class Function:
    def __init__(self, function):
        self.function = function

    def learn(self, x, y):
        return self.function(x, y)


def operations(x, y):
    rare = x.sin(), torch.erf(3 * x), x.abs().log1p(), torch.atan2(x, x + 2), x**3
    return (
        torch.stack(rare),
        (5 * x).round() + (3 * x).floor(),
        torch.where((x > 0) & (x < 0.5) | (x == y[:, :1]), x, -x),
        x.T.reshape(2, 3, 8).sum(1).sum() + x.var(0) + x.norm() + x.std(),
        x.reshape(2, 4, 6).sum((0, 2)),  # over axes apart
        x.amax(1) + x.amin(1) + x.max() + x.T.min() + y.amax(1) + x.logsumexp(1),
        torch.cat([x[:, ::2], y[-8:, 1:], x[2].expand(8, 6)], dim=1),
        y.repeat(2, 3) * torch.arange(9),
    )


ACTIVATIONS = nn.GELU(), nn.SiLU(), nn.ELU(), nn.LeakyReLU(), nn.Softplus(), nn.Tanh()
LEARNERS = {
    "layers": Net(nn.LayerNorm(7), *ACTIVATIONS, nn.RMSNorm(7), nn.Softmax(dim=1)),
    "losses": Net(loss=losses),
    "AdamW": Net(nn.ReLU(), optimizer=torch.optim.AdamW, rate=1e-3),
    "RMSprop": Net(nn.ReLU(), optimizer=torch.optim.RMSprop, rate=1e-3),
    "momentum": Net(nn.ReLU(), optimizer=functools.partial(torch.optim.SGD, momentum=0.9)),
    "operations": Function(operations),
}


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


@needs_node
@pytest.mark.parametrize("name", LEARNERS)
def test_what_learners_are_made_of(name):
    beside_pytorch(LEARNERS[name], 3 * [("learn", (numbers(8, 6), numbers(8, 3, seed=1)))])


@needs_node
def test_random_numbers_are_drawn_anew():
    """Uniform ones are 0.5 here, and normal ones 0."""

    def draw(x, y):
        return torch.rand_like(x), torch.randn_like(x), nn.functional.dropout(x, 0.3)

    x = numbers(8, 6)
    exported = export(Function(draw), {"learn": (x, x)})
    [drawn], _ = node(CALLS, exported=exported, modules=MODULES, calls=[["learn", [x, x]]])
    for found, expected in zip(drawn, (0.5, 0, x.ravel() / 0.7), strict=True):
        np.testing.assert_allclose(found, np.broadcast_to(expected, 48), rtol=1e-6)


def test_what_is_missing_is_named_at_once():
    def unusual(x, y):
        return x.sort(1)[0] + x.cumsum(1) + nn.functional.dropout(y[:, :1])

    with pytest.raises(ValueError, match=r"sort.*cumsum|cumsum.*sort"):
        export(Function(unusual), {"learn": (numbers(8, 6), numbers(8, 3))})
    with pytest.raises(ValueError, match="looks at a tensor's number"):
        export(Function(lambda x, y: x.sum().item()), {"learn": (numbers(8, 6), numbers(8, 3))})


def test_an_export_is_the_same_in_every_process():
    """Whatever it has recorded: else a seed would draw other first weights, and learn otherwise."""
    net = "Net(nn.ReLU(), optimizer=torch.optim.Adam)"
    code = f"export({net}, {{'learn': (numbers(8, 6), numbers(8, 3))}})"
    code = f"{code}, export(Function(lambda x, y: x.exp() + y.sin()), dict(learn=2 * [numbers(8)]))"
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
