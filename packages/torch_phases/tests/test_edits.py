"""Edits that people make to a learner train the same with either engine, or a line says why not.

How far may the engines lie apart? Optimizers get a large epsilon, so that no rounding of a gradient
grows; then all numbers agree to some ten roundings of each of 18 steps.
"""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path

import learner
import numpy as np
import pytest

import torch_phases
from torch_phases import to_jax

NUMBER = itertools.count()


def fresh():
    """The module of edits as if nothing had run."""
    place = Path(__file__).with_name("edits.py")
    spec = importlib.util.spec_from_file_location(f"edits_{next(NUMBER)}", place)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def edits(module):
    """Its edits by name."""
    for name, kind in vars(module).items():
        if isinstance(kind, type) and kind.__module__ == module.__name__:
            if issubclass(kind, learner.DDPG) and name not in ("Told", "Louder"):
                yield name, kind
    for method in ("edit", "begin", "scale"):
        for name, function in vars(getattr(module, method.title())).items():
            if callable(function):
                more = {method: function, "line": function.__doc__ or ""}
                yield name, type(name, (module.Told,), more)


@pytest.mark.parametrize("name", dict(edits(fresh())))
def test_an_edit_counts_in_either_engine(monkeypatch, capsys, name):
    quick = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
    monkeypatch.setattr(to_jax, "COMPILER_OPTIONS", to_jax.COMPILER_OPTIONS | quick)
    kind = dict(edits(fresh()))[name]
    _, expected = learner.train(kind, lambda one: torch_phases.compile(one, "torch"))
    capsys.readouterr()
    fast, found = learner.train(dict(edits(fresh()))[name], torch_phases.compile)
    told = capsys.readouterr().out.splitlines()
    for one, other in zip(expected, found, strict=True):
        if isinstance(one, Exception):
            assert type(other) is type(one) and str(other) == str(one)
            assert kind.outcome == type(one).__name__
        else:
            np.testing.assert_allclose(other, one, rtol=2e-5, atol=2e-5)
    lines = [x for x in told if x.startswith("engine: torch, ")]
    if kind.outcome in ("compiled", "torch"):
        assert fast.engine == kind.outcome, fast.reason
    assert bool(lines) == (fast.engine == "torch") == (fast.reason is not None)
    assert not kind.line or lines[0].startswith(f"engine: torch, because learn {kind.line}")
    assert any("is recorded anew" in x for x in told) == kind.note
