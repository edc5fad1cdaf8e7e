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
FILES = [path.stem for path in sorted(Path(__file__).parent.glob("edits_*.py"))]
WITHOUT_ANY = {"Told", "Louder", "Unseen"}
END = ". A compiled step is several times as fast"


def fresh(file):
    """A module of edits as if nothing had run."""
    spec = importlib.util.spec_from_file_location(
        f"{file}_{next(NUMBER)}", Path(__file__).with_name(f"{file}.py")
    )
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def edits():
    for file in FILES:
        for name, kind in vars(module := fresh(file)).items():
            own = isinstance(kind, type) and kind.__module__ == module.__name__
            if own and issubclass(kind, learner.DDPG) and name not in WITHOUT_ANY:
                yield pytest.param(file, name, id=name)


@pytest.mark.parametrize("file, name", edits())
def test_an_edit_counts_in_either_engine(monkeypatch, capsys, file, name):
    quick = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
    monkeypatch.setattr(to_jax, "COMPILER_OPTIONS", to_jax.COMPILER_OPTIONS | quick)
    _, expected = learner.train(
        getattr(fresh(file), name), lambda one: torch_phases.compile(one, "torch")
    )
    capsys.readouterr()
    kind = getattr(fresh(file), name)
    fast, found = learner.train(kind, torch_phases.compile)
    told = capsys.readouterr().out.splitlines()
    assert len(found) == len(expected)
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
    assert not kind.line or lines == [f"engine: torch, because {kind.line}{END}"]
    assert any("is recorded anew" in x for x in told) == kind.note
