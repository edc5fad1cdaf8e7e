"""Trained actors as ONNX files: the same actions as the notebook's networks.

What runs them and what writes them are an extra, `onnx`; the tests are
skipped without.
"""

from __future__ import annotations

import re
import shutil
import sys

import numpy as np
import pytest
import torch

import helpers
from tutorial.experiments import export
from tutorial.paths import PROJECT

KEPT = [PROJECT / "checkpoints" / preset / "seed0" for preset in ("default", "fast")]


def some_observations(number=500):
    """Observations that a random policy meets, (number, 33), float32."""
    generator, found = np.random.default_rng(0), []
    with helpers.open_environment("", 5, 0) as environment:
        [name] = environment.brain_names
        environment.reset()
        while 5 * len(found) < number:
            answer = environment.step(generator.uniform(-1, 1, (5, 4)))[name]
            found.append(answer.vector_observations.astype(np.float32))
    return np.concatenate(found)


def assert_acts_alike(path, folder):
    onnxruntime = pytest.importorskip("onnxruntime", reason="an extra: onnx")
    session, observations = onnxruntime.InferenceSession(path), some_observations()
    actor = export.trained_actor(folder)
    with torch.no_grad():
        single = actor(torch.from_numpy(observations)).numpy()
        double = actor.double()(torch.from_numpy(observations).double()).numpy()
    # Both compute in single precision, in different orders: errors of one size, the largest of all
    # 2,000 actions. (That of a single row's four actions can be far below by luck.)
    rounding = np.abs(single - double).max()
    for number in (len(observations), 1):
        [actions] = session.run(None, {"observations": observations[:number]})
        assert actions.dtype == np.float32 and np.abs(double[:number]).max() > 0.1
        assert np.abs(actions - double[:number]).max() <= 4 * rounding < 1e-3


@pytest.mark.parametrize("folder", KEPT, ids=lambda folder: folder.parent.name)
def test_the_committed_file_acts_like_the_committed_weights(folder):
    assert_acts_alike(folder / "actor_best.onnx", folder)


def test_an_exported_actor_acts_like_its_weights(tmp_path):
    pytest.importorskip("onnxscript", reason="an extra: onnx")
    folder = tmp_path / "seed0"
    shutil.copytree(PROJECT / "checkpoints" / "deeprl" / "seed0", folder)
    assert export.main([str(folder)]) == 0
    assert_acts_alike(folder / "actor_best.onnx", folder)
    assert bytes(PROJECT) not in (folder / "actor_best.onnx").read_bytes()  # no paths of ours


def test_three_lines_load_it(monkeypatch):
    """Those of the module's docstring, which know nothing of PyTorch."""
    pytest.importorskip("onnxruntime", reason="an extra: onnx")
    lines = re.findall(r"^    ((?:import|actor|actions).*)$", export.__doc__, re.MULTILINE)
    assert len(lines) == 3
    monkeypatch.chdir(PROJECT)
    names = {"observations": some_observations(5)}
    exec("\n".join(lines), names)
    assert names["actions"].shape == (5, 4) and np.abs(names["actions"]).max() <= 1


def test_what_is_missing_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(ModuleNotFoundError, match=r"\.\[onnx\]"):
        export.export(tmp_path)
