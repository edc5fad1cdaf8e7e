"""Edits that people make to a learner train the same with either engine, or a line says why not.

How far may the engines lie apart? Optimizers get a large epsilon, so that no rounding of a gradient
grows; then all numbers agree to some ten roundings of each of 18 steps.
"""

from __future__ import annotations

import importlib
import inspect

import pytest
import torch
from learner import DDPG, train

from torch_phases import to_jax


def edits():
    """By name, from a module in which nothing has run."""
    module = importlib.reload(importlib.import_module("edits"))
    kinds = dict(inspect.getmembers(module, lambda x: inspect.isclass(x) and issubclass(x, DDPG)))
    told, _ = (kinds.pop(name) for name in ("Told", "DDPG"))
    for place in (module.Begin, module.Scale):
        for name, function in inspect.getmembers(place, inspect.isfunction):
            more = {place.__name__.lower(): function, "line": function.__doc__ or ""}
            kinds[name] = type(name, (told,), more)
    return kinds


@pytest.mark.parametrize("name", edits())
def test_an_edit_counts_in_either_engine(monkeypatch, capsys, name):
    logged: list = []
    monkeypatch.setattr("logging.Logger.callHandlers", lambda _, x: logged.append(x.levelname))
    quick = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
    monkeypatch.setattr(to_jax, "COMPILER_OPTIONS", to_jax.COMPILER_OPTIONS | quick)
    _, expected, error = train(edits()[name], "torch")
    capsys.readouterr()
    fast, *found = train(kind := edits()[name], "auto")
    told = capsys.readouterr().out.splitlines()
    torch.testing.assert_close(found[0], expected, rtol=2e-5, atol=2e-5, equal_nan=True)
    assert found[1] == error and not {"WARNING", "ERROR"} & {*logged}
    lines = [x for x in told if x.startswith("engine: torch, ")]
    assert (error.partition(":")[0] or fast.engine) == kind.outcome, fast.reason
    assert bool(lines) == (fast.engine == "torch") == (fast.reason is not None)
    assert not kind.line or lines[0].startswith(f"engine: torch, because learn {kind.line}")
    assert sum("is recorded anew" in x for x in told) == kind.notes
