"""tapejit: its interface, its operations, its check, and the edits of strangers."""

from __future__ import annotations

import copy
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from tapejit_training import make
from torch import nn

import tapejit
from small_training import split_rows
from tapejit import checking, jax_setup
from tapejit.recording import Node, Recorded, record

PACKAGE = Path(tapejit.__file__).parent
ROUNDING = 2.0**-24  # relative, of float32


class Pair(NamedTuple):
    x: object
    y: object


class Small:
    """A regression with some randomness and an odd interface."""

    def __init__(self, seed=0):
        torch.manual_seed(seed)
        self.parts = {"network": [nn.Linear(3, 4), nn.ReLU(), nn.Dropout(0.2), nn.Linear(4, 1)]}
        self.optimizer = torch.optim.Adam(nn.Sequential(*self.parts["network"]).parameters(), 1e-2)

    def value(self, x):
        for layer in self.parts["network"]:
            x = layer(x)
        return x[:, 0]

    def learn(self, pair, weight):
        loss = weight * (self.value(pair.x) - pair.y).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return {"loss": loss.detach(), "none": None, "both": (pair.y.mean(), 3)}

    @torch.no_grad()
    def rate(self, x):
        return self.value(x)

    def tensors(self):
        networks = [t for layer in self.parts["network"] for t in layer.state_dict().values()]
        averages = [t for each in self.optimizer.state.values() for t in each.values()]
        return [t.clone() for t in networks + averages]


def batches(steps, seed=0, size=8):
    numbers = np.random.default_rng(seed).standard_normal((steps, size, 4), np.float32)
    return Pair(numbers[..., :3], numbers[..., 3])


def learn(fast, phases=4, begin=0):
    """Phases of different lengths."""
    return [fast.scan("learn", batches(3 + k % 2, k), 0.5) for k in range(begin, begin + phases)]


def test_any_structure_goes_in_and_comes_out_alike():
    found = {}
    for engine in ("torch", "compiled"):
        fast = tapejit.compile(Small(), engine)
        found[engine] = learn(fast), fast.call("rate", batches(1).x[0]), fast.learner.tensors()
        assert fast.engine == engine and fast.reason is None
    for one, other in zip(*(each[0] for each in found.values()), strict=True):
        assert other["none"] is None and other["both"][1].tolist() == [3] * len(other["loss"])
        for x, y in ((one["loss"], other["loss"]), (one["both"][0], other["both"][0])):
            assert x.dtype == y.dtype and x.shape == y.shape
            np.testing.assert_allclose(y, x, rtol=1e-4, atol=1e-5)
    for one, other in zip(*(each[2] for each in found.values()), strict=True):
        np.testing.assert_allclose(other, one, rtol=0, atol=1e-3)  # a tenth of a rate
    found["compiled"][1][:] = 0  # one's own to write into


def test_arguments_are_refused_with_a_reason():
    fast = tapejit.compile(Small())
    with pytest.raises(ValueError, match=r"one number of steps, at least 1, not \[\(0, 2, 3\)\]"):
        fast.scan("rate", np.zeros((0, 2, 3), np.float32))
    with pytest.raises(ValueError, match="one number of steps"):
        fast.scan("learn", batches(3), np.ones(2, np.float32))
    with pytest.raises(ValueError, match="'auto', 'compiled' or 'torch', not 'fast'"):
        tapejit.compile(Small(), "fast")
    with pytest.raises(AttributeError, match="lern"):
        fast.call("lern")
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):  # in PyTorch's words
        fast.call("rate", np.zeros((2, 5), np.float32))
    assert fast.engine == "compiled"


def test_a_resumed_learner_goes_on_bit_for_bit():
    """Whatever was checked, recorded and drawn before it was saved."""
    whole = tapejit.compile(Small())
    learn(whole, 9)
    saved = tapejit.compile(Small())
    learn(saved, 5)
    state, chance = copy.deepcopy(saved.learner.__dict__), torch.get_rng_state()
    resumed = Small(seed=1)
    for old, new in zip(resumed.parts["network"], state["parts"]["network"], strict=True):
        old.load_state_dict(new.state_dict())
    resumed.optimizer.load_state_dict(state["optimizer"].state_dict())
    torch.set_rng_state(chance)
    resumed = tapejit.compile(resumed)
    learn(resumed, 4, begin=5)
    assert whole.engine == resumed.engine == "compiled" and resumed.current
    for one, other in zip(whole.learner.tensors(), resumed.learner.tensors(), strict=True):
        assert torch.equal(one, other)


def test_a_graph_from_before_a_compiled_call_is_refused_as_pytorch_does(monkeypatch):
    learner = Small()
    fast = tapejit.compile(learner, "compiled")
    learn(fast)
    monkeypatch.setattr(fast.schedule, "due", lambda *_: 0)  # a check computes by PyTorch
    loss = learner.value(torch.ones(2, 3)).square().sum()
    learn(fast)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_checks_leave_no_trace(monkeypatch):
    found = []
    for steps in (0, 3):
        monkeypatch.setattr(checking.Schedule, "due", lambda *_, steps=steps: steps)
        fast = tapejit.compile(Small())
        learn(fast)
        assert fast.engine == "compiled"
        found.append([*fast.learner.tensors(), torch.get_rng_state()])
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


def test_a_check_finds_what_no_guard_sees(monkeypatch, capsys):
    """A setting of NumPy, which is a library's own; then PyTorch's result counts."""

    class Hidden(Small):
        def rate(self, x):
            return super().rate(x) * (2.0 if np.geterr()["under"] == "raise" else 1.0)

    monkeypatch.setattr(checking.Schedule, "due", lambda *_: 1)
    fast, x = tapejit.compile(Hidden()), batches(1).x[0]
    fast.learner.parts["network"][2].eval()
    before = fast.call("rate", x)
    with np.errstate(under="raise"):
        np.testing.assert_allclose(fast.call("rate", x), 2 * before, rtol=1e-5)
    assert fast.engine == "torch" and "result 0 is not PyTorch's" in capsys.readouterr().out


def test_a_check_finds_it_beside_the_root_of_a_zero(monkeypatch, capsys):
    """A root of 0 has no neighbour below, and that is no rounding that could excuse anything."""

    class Rooted(Small):
        def rate(self, x):
            scale = 2.0 if np.geterr()["under"] == "raise" else 1.0
            return super().rate(x) * scale + x[:, 1].sqrt()

    monkeypatch.setattr(checking.Schedule, "due", lambda *_: 1)
    fast, x = tapejit.compile(Rooted()), np.zeros_like(batches(1).x[0])
    x[:, 0] = 1
    fast.learner.parts["network"][2].eval()
    fast.call("rate", x)
    with np.errstate(under="raise"):
        fast.call("rate", x)
    assert fast.engine == "torch" and "result 0 is not PyTorch's" in capsys.readouterr().out


@pytest.mark.parametrize("seed", [0, 12, 14])
def test_a_check_knows_that_rounding_can_cross_the_kink_of_a_relu(monkeypatch, seed):
    """Then all numbers are right, and a gradient is another one: with these seeds."""

    class Kink:
        def __init__(self):
            torch.manual_seed(seed)
            self.layer = nn.Linear(32, 1, bias=False)
            self.optimizer = torch.optim.SGD(self.layer.parameters(), 1e-3)

        def learn(self, x):
            loss = torch.relu(self.layer(x)).sum()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            return loss.detach()

    monkeypatch.setattr(checking.Schedule, "due", lambda *_: 1)
    fast, x = tapejit.compile(Kink()), np.random.default_rng(seed).standard_normal((8, 32))
    fast.call("learn", np.float32(x))
    w = fast.learner.layer.weight.detach().double().numpy()[0]
    x[0] -= x[0] @ w / (w @ w) * w  # whose value is 0 up to rounding
    fast.call("learn", np.float32(x))
    assert fast.engine == "compiled", fast.reason


def test_the_learner_of_the_notebook_is_compiled(notebook):
    """With noise, in all variants, and that of section 6 on batches."""
    outcomes = []
    for engine in ("torch", "compiled"):
        _, d = make(notebook, "DDPG = DDPG.__base__", noisy_layers=True)
        fast, chance = tapejit.compile(d, engine), np.random.default_rng(0)
        found = []
        for _ in range(3):
            rows = chance.uniform(-1, 1, (5, 16, 10)).astype(np.float32)
            noise = chance.standard_normal((5, 1, d.noise_size), np.float32)
            batches = split_rows(rows, 3)
            found += fast.scan("learn", batches, np.ones((5, 16), np.float32), noise)
            found.append(fast.call("act", rows[0, :, :3], noise[0]))
            found.append(fast.call("td_errors", notebook.Batch(*(x[0] for x in batches))))
        scale = np.ones(3, np.float32)
        torch.manual_seed(0)
        actor = notebook.PlainActor(scale, notebook.mlp(3, 128, 128, 2))
        critic = notebook.PlainCritic(scale, notebook.mlp(3 + 2, 128, 128, 1))
        plain = notebook.PlainDDPG(actor, critic, notebook.PlainSettings())
        plain = tapejit.compile(plain, engine)
        for _ in range(4):
            batch = split_rows(rows[0], 3)
            plain.call("learn", batch)
            found.append(plain.call("act", rows[0, :, :3]))
        assert fast.engine == plain.engine == engine
        outcomes.append(found)
    for one, other in zip(*outcomes, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-4)


def test_a_namespace_is_never_empty_while_its_names_are_put_back():  # an interrupt would lose it
    names, old = type("Names", (dict,), {"clear": None})(a=2, new=3), {"a": 1, "gone": 0}
    tapejit.reading.Holder(names, {}).restore(old)
    assert names == old


OPERATIONS = """
x.gather(1, i) | x.scatter(1, i, 0.5) | x.scatter_add(1, i, y) | x.cumsum(1)
x.index_select(0, i[0]) | x[i[0]] | x[:, i[0]] | x.index_put((i[0],), y[0])
x.masked_fill(x > 0, 2) | x.index_add(0, i[0], y[:3]) | torch.cat([x, y], 1)
x.log_softmax(1) | x.std(1) | x.softmax(0) | x.logsumexp(1) | x.var(0) | x.norm(1, 1)
x.sort(1).values | x.max(1).values | x.min(0).indices * 1.0 | x.argmax(1) * 1.0 | x.amin((0, 1))
torch.stack([x, y]).unbind(2)[1] | x.quantile(0.5) | x.repeat(2, 1).split(3, 1)[1] | y.pow(x)
x.remainder(0.3) | x.frac() | x.sinh().atan() | x.hypot(y) | x.atan2(y) | 2**x
x.clamp(-y, y) | x.lerp(y, y) | x.sgn() | torch.where((x > 0).logical_or(y > 0.5), x, y) | x.tril()
F.gelu(x) | F.silu(x) | F.mish(x) | F.elu(x) | F.selu(x) | F.softplus(x) | F.hardtanh(x)
F.leaky_relu(x) | x.cosh().log() | x.round() | n.relu() | n.clamp(0, 1) | n.sign() | n.abs()
n.maximum(x) | n.amax(1) | n.max(1).values | n > 0 | F.hardtanh(n) | F.leaky_relu(n)
n.tanh() | n.sigmoid() | n.isnan() * 1.0
"""


@pytest.mark.parametrize("expression", [x.strip() for x in re.split("[|\n]", OPERATIONS.strip())])
def test_an_operation_is_pytorchs(expression):
    """Also of what is no number (n). A few roundings of sums of 24 numbers, and of powers to 20."""
    chance = np.random.default_rng(0)
    x, y = (torch.from_numpy(chance.standard_normal((4, 6), np.float32)) for _ in "xy")
    n = torch.tensor([[np.nan, np.inf, -np.inf, 0.0, -0.5, 2.0]] * 4)
    space = {"x": x, "y": y.abs() + 0.1, "n": n, "i": torch.tensor([[2, 0, 1]]), "torch": torch}
    space["F"] = nn.functional
    nodes = [Node("input", ("argument", k), space[name]) for k, name in enumerate("xyn")]
    inputs = [(node, space[name]) for node, name in zip(nodes, "xyn", strict=True)]
    library = sys.modules[jax_setup.phases().Translation.__module__]
    expected, tape = record(lambda: eval(expression, space), inputs, library.ALLOWED)
    values = {node: library.jnp.asarray(tensor.numpy()) for node, tensor in inputs}
    with library.jax.enable_x64(True):
        recorded = Recorded((), (tape.read(expected),), ())
        _, [found], failed = library.Translation(values).outputs(recorded)
    assert found.shape == expected.shape and not failed
    np.testing.assert_allclose(found, expected.numpy(), rtol=0, atol=64 * 20 * ROUNDING)


def run(code):
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=PACKAGE.parent)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_page_runs():
    code = "\n".join(re.findall(r"```python\n(.*?)```", (PACKAGE / "README.md").read_text(), re.S))
    first, last, *_, engine = run(code).split()
    assert float(first) > 0.1 > 1e-3 > float(last) and engine == "compiled"


class Scaled:
    def __init__(self, factor):
        self.factor = factor

    def act(self, x):
        return self.factor * x


def test_a_program_is_the_same_wherever_a_tensor_lies():
    """So a new process finds it on the disk. JAX takes tensors as they are at multiples of 64 B."""
    texts = set()
    for first in (0, 1):
        fast = tapejit.compile(Scaled(torch.ones(20)[first : first + 16]), "compiled")
        fast.call("act", np.ones(16, np.float32))
        [(_, _, phase)] = fast.current.values()
        given = phase.vectors, phase.singles, (), phase.given, np.int32(1)
        texts.add(phase.function.lower(*given).as_text())
    assert len(texts) == 1


def test_code_that_pytorch_writes_while_it_records_is_not_the_learners():
    code = """
        import numpy as np
        import tapejit
        class Masked:
            def cut(self, x):
                x[x[:, 1] > 0, 1] = 0
                return x
        fast = tapejit.compile(Masked())
        fast.call("cut", np.ones((4, 3), np.float32))
    """
    assert "the operation index_put.default in Masked.cut has no translation" in run(code)


def test_without_jax_pytorch_computes_and_a_line_says_so():
    code = """
        import sys
        import tapejit
        assert "jax" not in sys.modules
        sys.modules["jax"] = None
        fast = tapejit.compile(object())
        assert fast.engine == "torch" and "pip install jax" in fast.reason
    """
    assert run(code).startswith("engine: torch, because JAX cannot be used")
