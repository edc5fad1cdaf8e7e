"""The interface, the check, copies and threads, and what happens where something is missing."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import edits
import numpy as np
import pytest
import torch
from learner import DDPG, One, adam, batches
from torch import nn

import torch_phases
from torch_phases import check, private, recording

BY_TORCH = torch_phases.compile.by_torch
PACKAGE = Path(torch_phases.__file__).parents[1]
EXAMPLE = re.search(r"```python\n(.*?)```", (PACKAGE / "README.md").read_text(), re.S)[1]


def learn(fast, phases=4, begin=0):
    """Phases of different lengths, with a number that changes."""
    for k in range(begin, begin + phases):
        fast.scan("learn", batches(3 + k % 2, 16, seed=k), 0.05 + k / 100)


def test_arguments_are_refused_with_a_reason():
    fast = torch_phases.compile(DDPG())
    with pytest.raises(ValueError, match=r"one number of steps, at least 1, not \[\(0, 2, 3\)\]"):
        fast.scan("act", np.zeros((0, 2, 3), np.float32))
    with pytest.raises(ValueError, match="one number of steps"):
        fast.scan("learn", batches(3, 16), np.ones(2, np.float32))
    with pytest.raises(ValueError, match="'auto', 'compiled' or 'torch', not 'fast'"):
        torch_phases.compile(DDPG(), "fast")
    with pytest.raises(AttributeError, match="lern"):
        fast.call("lern")
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):  # in PyTorch's words
        fast.call("act", np.zeros((2, 5), np.float32))
    there, back = (fast.scan("act", batches(3, 2)[0][::k])[::k] for k in (1, -1))
    assert fast.engine == "compiled" and (there == back).all()
    fast = torch_phases.compile(SimpleNamespace(learn=lambda x: print(x)), "compiled")
    with pytest.raises(ValueError, match="learn prints.*use 'torch' or 'auto'"):
        fast.scan("learn", np.ones((2, 3)))


def test_the_first_step_is_compiled_and_checks_leave_no_trace(monkeypatch):
    by_torch, found = mock.create_autospec(BY_TORCH, side_effect=BY_TORCH), []
    monkeypatch.setattr(torch_phases.compile, "by_torch", by_torch)
    for steps in (0, 3):
        monkeypatch.setattr(check.Schedule, "due", lambda *_, steps=steps: steps)
        fast = torch_phases.compile(edits.RandomNumbers())
        learn(fast)
        assert fast.engine == "compiled" and by_torch.called == (steps > 0)
        found.append([fast.learner.state_dict(), torch.get_rng_state()])
    torch.testing.assert_close(*found, rtol=0, atol=0)


def test_checks_come_early_and_at_growing_distances():
    schedule = check.Schedule()
    phases = [k for k in range(20_000) if schedule.due(0, 40)]
    assert phases[: check.FIRST] == [*range(check.FIRST)] and sum(k < 99 for k in phases) < 50
    assert 0.7 < np.diff(phases)[-30:].mean() / (check.EVERY / 40) < 1.4
    assert schedule.due(1, 40), "something new"


LOSSES = {
    "kink": lambda weight, x: (x @ weight).relu().sum(),
    "slope": lambda weight, x: torch.tanh(x @ weight + torch.sign(x @ weight) * 8).sum(),
}


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("seed", range(5))
def test_a_check_knows_where_a_gradient_is_another_one_by_rounding(monkeypatch, capsys, kind, seed):
    """Beside the kink of a ReLU, and where a tanh is flat."""
    monkeypatch.setattr(check.Schedule, "due", lambda *_: 1)
    chance = np.random.default_rng(seed)
    weight, x = torch.from_numpy(chance.uniform(-0.2, 0.2, 32)).float(), chance.normal(size=(8, 32))
    fast = torch_phases.compile(One(weight, LOSSES[kind], lr=1e-3, momentum=0.9))
    fast.scan("learn", np.float32(x[None]))
    if kind == "kink":
        w = weight.detach().double().numpy()
        x[0] -= x[0] @ w / (w @ w) * w  # whose value is 0 up to rounding
    fast.scan("learn", np.float32(x[None]))
    assert fast.engine == "compiled" and not capsys.readouterr().out, fast.reason


def test_a_copy_and_a_resumed_learner_go_on_bit_for_bit():
    whole = torch_phases.compile(edits.RandomNumbers())
    learn(whole, 2)
    chance = torch.get_rng_state()
    others = copy.deepcopy(whole), pickle.loads(pickle.dumps(whole))
    learn(whole, 2, begin=2)
    for other in others:
        torch.set_rng_state(chance)
        learn(other, 2, begin=2)
        assert other.engine == "compiled"
        states = other.learner.state_dict(), whole.learner.state_dict()
        torch.testing.assert_close(*states, rtol=0, atol=0)


def test_one_recording_is_for_all_phases_and_learners_of_a_class(monkeypatch):
    first, other = (torch_phases.compile(DDPG(seed)) for seed in (0, 1))
    learn(first, 2)  # once with the first number, and once with any
    monkeypatch.setattr(recording, "Step", None)  # what a recording is made with
    for fast in (first, other):
        learn(fast)
        assert fast.engine == "compiled", fast.reason


def test_learners_of_a_class_may_have_networks_of_other_sizes():
    """Dynamo takes a size that has changed for a number to compute with, and JAX has none."""
    for size in (4, 5, 6):
        one = One(torch.ones(size), lambda weight, x: (weight * x).sum() * len(weight), lr=0.1)
        torch_phases.compile(one, "compiled").scan("learn", np.ones((3, size), np.float32))


def test_a_fault_of_dynamo_is_there_and_is_mended():
    """Where a gradient is set to None and looked at, its only None becomes this gradient."""
    weight = torch.ones(1, requires_grad=True)

    def learn(x):
        loss = (weight * x).sum()
        weight.grad = None
        loss.backward()

    learn(torch.ones(4))
    with private.SETTINGS:
        found = torch.compile(learn, backend="eager", fullgraph=True)(torch.ones(4))
    assert found is not None, "it is mended: private.py needs no getattr_of_tensor"
    learner = SimpleNamespace(learn=learn, weight=weight)
    assert torch_phases.compile(learner, "compiled").scan("learn", torch.ones(4, 3)) is None


def test_two_learners_in_two_threads():
    rows = batches(6, 16)
    expected, *found = (torch_phases.compile(DDPG(), engine) for engine in ("torch", *2 * ["auto"]))
    threads = [threading.Thread(target=each.scan, args=("learn", rows)) for each in found]
    for each in threads:
        each.start()
    expected.scan("learn", rows)
    for thread, each in zip(threads, found, strict=True):
        thread.join()
        assert each.engine == "compiled"
        states = each.learner.state_dict(), expected.learner.state_dict()
        torch.testing.assert_close(*states, rtol=0, atol=1e-3)  # a tenth of a rate


def test_a_phase_stays_in_the_thread_that_calls():
    """On another core nothing would be in the cache; and a thread that waits may do so busily."""
    layers = nn.Sequential(*(nn.Linear(128, 128) for _ in range(4)))
    one = One(layers, lambda layers, x: layers(x).square().sum(), lambda own: adam(*own))
    fast, x = torch_phases.compile(one, "compiled"), np.ones((20, 64, 128), np.float32)
    fast.scan("learn", x)
    own, whole = time.thread_time(), time.process_time()
    _ = [fast.scan("learn", x) for _ in range(8)]  # each is checked
    assert time.thread_time() - own > 0.9 * (time.process_time() - whole)


def test_a_graph_from_before_a_phase_is_refused_as_pytorch_does(monkeypatch):
    monkeypatch.setattr(check.Schedule, "due", lambda *_: 0)  # a check computes by PyTorch
    fast = torch_phases.compile(DDPG(), "compiled")
    loss = fast.learner.actor(torch.ones(2, 3)).square().sum()
    learn(fast, 1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def run(code, *options, python=sys.executable, **more):
    """The engine of the page's example, and what was printed before it."""
    command = [python, *options, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, **{"cwd": PACKAGE} | more)
    assert not done.returncode, done.stderr
    *told, losses = done.stdout.splitlines()
    first, last, engine = losses.split()
    assert float(first) > 0.1 > 1e-3 > float(last)
    return engine, told


@pytest.mark.parametrize(
    "missing, reason",
    [
        ("import sys; sys.modules['jax'] = None", "import of jax halted"),
        ("import torch._dynamo.variables.constant as d; del d.CONSTANT_VARIABLE_NONE", "_NONE"),
        ("import torch._dynamo.side_effects as d; del d.SideEffects._get_modified_vars", "vars"),
    ],
)
def test_where_something_is_missing_pytorch_computes_and_a_line_says_so(missing, reason):
    engine, [line] = run(f"{missing}\n{EXAMPLE}")
    assert engine == "torch" and line.startswith("engine: torch, because ") and reason in line


def test_packages_may_lie_anywhere(tmp_path):
    """As with `pip install --user` or a .pth file: outside of where this Python has its own."""
    places = [PACKAGE, *(x for x in sys.path if x.endswith("-packages"))]
    code = f"import site; [site.addsitedir(x) for x in {[*map(str, places)]}]; import mine"
    (tmp_path / "mine.py").write_text(EXAMPLE)
    base = getattr(sys, "_base_executable", sys.executable)
    found = run(code, "-S", python=base, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})
    assert found == ("compiled", [])
