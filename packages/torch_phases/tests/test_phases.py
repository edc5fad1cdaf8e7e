"""The interface, the check, copies and threads, and what happens where something is missing."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
import torch
from learner import DDPG, descend, tensors_in
from torch import nn

import torch_phases
from torch_phases import check, private, recording

PACKAGE = Path(torch_phases.__file__).parents[1]


class Pair(NamedTuple):
    x: object
    y: object


class Small:
    """A regression with some randomness and an odd interface."""

    def __init__(self, seed=0, width=4):
        torch.manual_seed(seed)
        first, last = nn.Linear(3, width), nn.Linear(width, 1)
        self.parts = {"network": [first, nn.ReLU(), nn.Dropout(0.2), last]}
        self.optimizer = torch.optim.Adam(nn.Sequential(*self.parts["network"]).parameters(), 1e-2)

    def value(self, x):
        for layer in self.parts["network"]:
            x = layer(x)
        return x[:, 0]

    def learn(self, pair, weight):
        loss = weight * (self.value(pair.x) - pair.y).square().mean()
        return {"loss": descend(loss, self.optimizer), "none": None, "both": (pair.y.mean(), 3)}

    @torch.no_grad()
    def rate(self, x):
        return self.value(x)

    def tensors(self):
        return [x.clone() for x in tensors_in(self, {})]


def batches(steps, seed=0, size=8):
    numbers = np.random.default_rng(seed).standard_normal((steps, size, 4), np.float32)
    return Pair(numbers[..., :3], numbers[..., 3])


def learn(fast, phases=4, begin=0):
    """Phases of different lengths."""
    return [fast.scan("learn", batches(3 + k % 2, k), 0.5) for k in range(begin, begin + phases)]


def assert_close(some, others):
    for one, other in zip(some, others, strict=True):
        np.testing.assert_allclose(other, one, rtol=0, atol=1e-3)  # a tenth of a rate


def test_any_structure_goes_in_and_comes_out_alike():
    found = {}
    for engine in ("torch", "compiled"):
        fast = torch_phases.compile(Small(), engine)
        found[engine] = learn(fast), fast.call("rate", batches(1).x[0]), fast.learner.tensors()
        assert fast.engine == engine and fast.reason is None
    for one, other in zip(*(each[0] for each in found.values()), strict=True):
        assert other["none"] is None and other["both"][1].tolist() == [3] * len(other["loss"])
        for x, y in ((one["loss"], other["loss"]), (one["both"][0], other["both"][0])):
            assert x.dtype == y.dtype and x.shape == y.shape
            np.testing.assert_allclose(y, x, rtol=1e-4, atol=1e-5)
    assert_close(*(each[2] for each in found.values()))


def test_arguments_are_refused_with_a_reason():
    fast = torch_phases.compile(Small())
    with pytest.raises(ValueError, match=r"one number of steps, at least 1, not \[\(0, 2, 3\)\]"):
        fast.scan("rate", np.zeros((0, 2, 3), np.float32))
    with pytest.raises(ValueError, match="one number of steps"):
        fast.scan("learn", batches(3), np.ones(2, np.float32))
    with pytest.raises(ValueError, match="'auto', 'compiled' or 'torch', not 'fast'"):
        torch_phases.compile(Small(), "fast")
    with pytest.raises(AttributeError, match="lern"):
        fast.call("lern")
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):  # in PyTorch's words
        fast.call("rate", np.zeros((2, 5), np.float32))
    assert fast.engine == "compiled"
    fast = torch_phases.compile(SimpleNamespace(learn=lambda x: print(x)), "compiled")
    with pytest.raises(ValueError, match="learn prints.*use 'torch' or 'auto'"):
        fast.scan("learn", np.ones((2, 3)))


def test_the_first_step_is_compiled_and_checks_leave_no_trace(monkeypatch):
    found, by_torch = [], torch_phases.compile.by_torch
    for steps in (0, 3):
        computed = []
        monkeypatch.setattr(
            torch_phases.compile, "by_torch", lambda *x: [computed.append(x), by_torch(*x)][1]
        )
        monkeypatch.setattr(check.Schedule, "due", lambda *_, steps=steps: steps)
        fast = torch_phases.compile(Small())
        learn(fast)
        assert fast.engine == "compiled" and len(computed) >= 4 * (steps > 0)
        assert steps or not computed
        found.append([*fast.learner.tensors(), torch.get_rng_state()])
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


def test_checks_come_early_and_at_growing_distances():
    schedule = check.Schedule()
    phases = [k for k in range(20_000) if schedule.due(0, 40)]
    assert phases[: check.FIRST] == [*range(check.FIRST)] and sum(k < 99 for k in phases) < 50
    assert 0.7 < np.diff(phases)[-60:].mean() / (check.EVERY / 40) < 1.4
    assert schedule.due(1, 40), "something new"


@pytest.mark.parametrize("kind", ["kink", "slope"])
@pytest.mark.parametrize("seed", range(5))
def test_a_check_knows_where_a_gradient_is_another_one_by_rounding(monkeypatch, capsys, kind, seed):
    """Beside the kink of a ReLU, and where a tanh is flat."""

    class Small:
        def __init__(self):
            torch.manual_seed(seed)
            self.layer = nn.Linear(32, 1, bias=False)
            self.optimizer = torch.optim.SGD(self.layer.parameters(), 1e-3, momentum=0.9)

        def learn(self, x):
            value = self.layer(x)
            flat = torch.tanh(value + torch.sign(value) * 8)
            bent = torch.relu(value) if kind == "kink" else flat
            return descend(bent.sum(), self.optimizer)

    monkeypatch.setattr(check.Schedule, "due", lambda *_: 1)
    fast, x = torch_phases.compile(Small()), np.random.default_rng(seed).normal(size=(8, 32))
    fast.scan("learn", np.float32(x[None]))
    w = fast.learner.layer.weight.detach().double().numpy()[0]
    if kind == "kink":
        x[0] -= x[0] @ w / (w @ w) * w  # whose value is 0 up to rounding
    fast.scan("learn", np.float32(x[None]))
    assert fast.engine == "compiled" and not capsys.readouterr().out, fast.reason


def test_a_copy_and_a_resumed_learner_go_on_bit_for_bit():
    whole = torch_phases.compile(Small())
    learn(whole, 2)
    chance = torch.get_rng_state()
    others = copy.deepcopy(whole), pickle.loads(pickle.dumps(whole))
    learn(whole, 2, begin=2)
    for other in others:
        torch.set_rng_state(chance)
        learn(other, 2, begin=2)
        assert other.engine == "compiled"
        pairs = zip(whole.learner.tensors(), other.learner.tensors(), strict=True)
        assert all(torch.equal(one, another) for one, another in pairs)


def test_one_recording_is_for_all_phases_and_learners_of_a_class(monkeypatch):
    first, other = (torch_phases.compile(Small(seed)) for seed in (0, 1))
    learn(first, 1)
    monkeypatch.setattr(recording, "Step", None)  # what a recording is made with
    for fast in (first, other):
        learn(fast)
        assert fast.engine == "compiled", fast.reason


def test_learners_of_a_class_may_have_networks_of_other_sizes():
    """Dynamo takes a size that has changed for a number to compute with, and JAX has none."""
    for width in (4, 5, 6):
        learn(torch_phases.compile(Small(width=width), "compiled"), 1)


def test_a_fault_of_dynamo_is_there_and_is_mended():
    """Where a gradient is set to None and looked at, its only None becomes this gradient."""

    class Learner:
        def __init__(self):
            self.weight = torch.ones(1, requires_grad=True)

        def learn(self, x):
            loss = (self.weight * x).sum()
            self.weight.grad = None
            loss.backward()

    learner, x = Learner(), torch.ones(4, 3)
    learner.learn(x)
    with torch._dynamo.config.patch(private.SETTINGS):
        found = torch.compile(learner.learn, backend="eager", fullgraph=True)(x)
    assert found is not None, "it is mended: private.py needs no getattr_of_tensor"
    assert torch_phases.compile(learner, "compiled").scan("learn", x) is None


def test_two_learners_in_two_threads():
    expected = torch_phases.compile(DDPG(), "torch")
    rows, weights = np.ones((6, 16, 10), np.float32), np.ones((6, 16), np.float32)
    learners = [copy.deepcopy(expected.learner) for _ in range(2)]
    found = [torch_phases.compile(each) for each in learners]
    threads = [threading.Thread(target=each.scan, args=("learn", rows, weights)) for each in found]
    for each in threads:
        each.start()
    expected.scan("learn", rows, weights)
    for each in threads:
        each.join()
    for each in found:
        assert each.engine == "compiled"
        assert_close(tensors_in(each.learner, {}), tensors_in(expected.learner, {}))


def test_a_graph_from_before_a_phase_is_refused_as_pytorch_does(monkeypatch):
    monkeypatch.setattr(check.Schedule, "due", lambda *_: 0)  # a check computes by PyTorch
    fast = torch_phases.compile(Small(), "compiled")
    loss = fast.learner.value(torch.ones(2, 3)).square().sum()
    learn(fast, 1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def run(code, *options, python=sys.executable, **more):
    command = [python, *options, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, **{"cwd": PACKAGE} | more)
    assert not done.returncode, done.stderr
    return done.stdout


def test_the_page_runs():
    code = "\n".join(re.findall(r"```python\n(.*?)```", (PACKAGE / "README.md").read_text(), re.S))
    first, last, *_, engine = run(code).split()
    assert float(first) > 0.1 > 1e-3 > float(last) and engine == "compiled"


CODE = """
    import numpy as np, torch, torch_phases
    class Learner:
        weight = torch.zeros(3)
        def learn(self, x):
            self.weight.add_(x)
    fast = torch_phases.compile(Learner())
    fast.scan("learn", np.ones((4, 3), np.float32))
    print(fast.engine, fast.learner.weight.tolist())
"""


@pytest.mark.parametrize(
    "missing, told",
    [
        ("import sys; sys.modules['jax'] = None", "import of jax halted"),
        ("import torch._decomp as d; del d.decomposition_table", "decomposition_table"),
        (
            "import torch._dynamo as d; del d.side_effects.SideEffects._get_modified_vars",
            "modified",
        ),
    ],
)
def test_where_something_is_missing_pytorch_computes_and_a_line_says_so(missing, told):
    out = run(f"{missing}\n{textwrap.dedent(CODE)}").splitlines()
    assert len(out) == 2 and out[0].startswith("engine: torch, because ") and told in out[0]
    assert out[1] == "torch [4.0, 4.0, 4.0]"


def test_packages_may_lie_anywhere(tmp_path):
    """As with `pip install --user` or a .pth file: outside of where this Python has its own."""
    places = [PACKAGE, *(x for x in sys.path if x.endswith("-packages"))]
    code = f"import site; [site.addsitedir(x) for x in {[*map(str, places)]}]; import mine"
    (tmp_path / "mine.py").write_text(textwrap.dedent(CODE))
    base = getattr(sys, "_base_executable", sys.executable)
    found = run(code, "-S", python=base, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})
    assert found == "compiled [4.0, 4.0, 4.0]\n"
