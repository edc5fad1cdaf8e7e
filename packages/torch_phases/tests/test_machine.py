"""Methods as programs of the WebAssembly machine, in Node beside PyTorch."""

from __future__ import annotations

import base64
import importlib.util
import json
import operator
import os
import re
import shutil
import subprocess
import sys
from types import SimpleNamespace as Learner
from unittest import mock

import numpy as np
import pytest
import torch
from edits import Gradients
from learner import batches
from test_operations import EACH, Several, given
from torch.nn import functional as F
from torch.utils._pytree import tree_leaves, tree_map

from torch_phases.machine import build
from torch_phases.program import export

NODE = shutil.which("node")
needs_node = pytestmark = pytest.mark.skipif(not NODE, reason="no Node")
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
    const entries = Object.entries(machine.learner.state);
    result = [calls, entries.map(([path, place]) => [path, [...machine.room(place)]])];
"""


def arrays(tree):
    return [x.numpy(force=True).copy() for x in tree_leaves(tree) if isinstance(x, torch.Tensor)]


def beside_pytorch(learner, calls):
    """Calls of methods, whose arguments keep their shapes, leave the same in Node and PyTorch."""
    with mock.patch("torch_phases.program.is_uniform", lambda *_: False):  # the same weights
        exported = export(learner, dict(reversed(calls)))
    expected, told = [], []
    for method, arguments in calls:
        tensors = tree_map(torch.from_numpy, arguments)
        told.append([method, [x.astype(str) for x in arrays(tensors)]])
        expected += arrays(getattr(learner, method)(*tensors))
    for module in MODULES:
        found, state = node(CALLS, exported=exported, modules=[module], calls=told)
        for mine, theirs in zip((x for each in found for x in each), expected, strict=True):
            mine = np.reshape(mine, theirs.shape).astype(float)
            np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)
        for path, mine in (each for each in state if "optimizer" not in each[0]):
            tensor = operator.attrgetter(path.removeprefix("self."))(learner).numpy(force=True)
            theirs = tensor.T.ravel()
            # a gradient of 0 but for rounding becomes a whole step of Adam's, 1e-3
            assert np.isclose(mine, theirs, 1e-5, 1e-5).mean() > 0.998, path
            np.testing.assert_allclose(mine, theirs, rtol=0, atol=3e-3)


@pytest.mark.parametrize("name", "Adam AdamW RMSprop Adagrad SGD".split())
def test_optimizers_take_the_same_steps(name):
    learner, options = Gradients(), {"momentum": 0.9} if name == "SGD" else {"eps": 1e-2}
    parameters = learner.critic.parameters()
    learner.critic_optimizer = getattr(torch.optim, name)(parameters, lr=1e-2, **options)
    beside_pytorch(learner, 3 * [("learn", (batches(16),)), ("act", (batches(8).observations,))])


@pytest.mark.parametrize("first", range(0, len(EACH), 24))
def test_operations_are_pytorchs(first):
    """Those that the machine has."""
    some = [x for x in EACH[first : first + 24] if not re.search("flip|indices|::2", x)]
    beside_pytorch(Several(some), [("learn", tuple(x[0] for x in given()))])


def test_random_numbers_are_drawn_anew():
    """Uniform ones are 0.5 here, and normal ones 0."""

    def draw(x):
        return torch.rand_like(x), torch.randn_like(x), F.dropout(x, 0.3)

    exported = export(Learner(learn=draw), {"learn": (np.ones(2, np.float32),)})
    given = {"exported": exported, "modules": MODULES, "calls": [["learn", [["0.7", "1.4"]]]]}
    [drawn], _ = node(CALLS, **given)
    np.testing.assert_allclose(np.array(drawn, float), [[0.5] * 2, [0] * 2, [1, 2]], rtol=1e-6)


def test_what_is_missing_is_named_at_once():
    for function, told in (
        (lambda x: x.sort(1)[0] + x.cumsum(1), r"sort.*cumsum|cumsum.*sort"),
        (lambda x: 2 * x.flip(1), r"the machine has no rev, in <lambda> \(.*x.flip\(1\)"),
    ):
        with pytest.raises(ValueError, match=told):
            export(Learner(learn=function), {"learn": (np.ones((8, 6), np.float32),)})


def test_an_export_is_the_same_in_every_process():
    """Whatever it has recorded: else a seed would draw other first weights, and learn otherwise."""
    code = "export(Gradients(), {'learn': [batches(8)]})"
    code += ", export(Learner(learn=lambda x, y: x.exp() + y.sin()), dict(learn=2 * [np.ones(8)]))"
    eval(code.replace("x.exp() + y.sin()", "y.sin() - x.exp()"))  # in another order
    command = [sys.executable, "-c", f"from test_machine import *; print(json.dumps(({code})))"]
    other = os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    told = subprocess.check_output(command, env=other)
    assert json.loads(told) == json.loads(json.dumps(eval(code)))


@pytest.mark.skipif(not importlib.util.find_spec("ziglang"), reason="no ziglang")
def test_the_committed_machines_are_those_of_their_source(tmp_path):
    build.build(tmp_path)
    for name in build.VARIANTS:
        assert (tmp_path / name).read_bytes() == (build.HERE / name).read_bytes()
