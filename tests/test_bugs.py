"""The museum of bugs: every edit applies and counts, every probe finds its bug and only that."""

from __future__ import annotations

import functools
import re

import pytest
import torch

import tapejit
from research.bugs import BUGS, cells_with, is_bug, overrides_of
from tutorial.notebook import load_definitions
from tutorial.paths import DOC, NOTEBOOK
from tutorial.randomness import seed_everything
from tutorial.settings import make_settings

PAGE = (DOC / "bugs.md").read_text(encoding="utf-8")
WRONG = [name for name in BUGS if is_bug(name)]
DESCEND = (  # zero_grad after the step and not before
    "    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n",
    "    loss.backward()\n    optimizer.step()\n    optimizer.zero_grad()\n",
)


def section(name):
    """The page's text on a bug."""
    return PAGE.partition(f"## {BUGS[name].title}\n")[2].partition("\n## ")[0]


def probe_of(name):
    return re.search(r"```python\n(.+?)```", section(name), re.DOTALL)[1]


@functools.cache
def cells_of(name):
    return cells_with(name)


def reader(name, preset="default"):
    """What a reader has after section 4 of the notebook with a variant."""
    cells, overrides = cells_of(name), overrides_of(name)
    return dict(vars(cells)) | {
        "hyperparameters": make_settings(cells.Hyperparameters, preset, overrides),
        "observation_scale": cells.OBSERVATION_SCALE,
        "observation_size": 33,
        "action_size": 4,
        "reward_threshold": 30.0,
    }


def gradient_steps(name):
    """The critic's weights after some steps of a variant, and the TD errors."""
    seed_everything(0)
    space = reader(name)
    ddpg = space["DDPG"](space["observation_scale"], 4, space["hyperparameters"])
    for _ in range(4):
        batch = space["split_rows"](torch.randn(64, 72))
        errors, _ = ddpg.learn(batch, torch.rand(64), torch.randn(1, ddpg.noise_size))
    return torch.cat([errors, *(weight.flatten() for weight in ddpg.critic.parameters())])


@pytest.mark.parametrize("name", WRONG)
def test_a_probe_finds_its_bug_and_is_silent_without_it(name):
    probe = probe_of(name)
    assert len(probe.splitlines()) <= 10
    exec(probe, reader(BUGS[name].base))
    with pytest.raises(AssertionError):
        exec(probe, reader(name))


@pytest.mark.parametrize("name", WRONG)
def test_a_probe_is_silent_on_another_correct_agent(name):
    exec(probe_of(name), reader("default", preset="fast"))


@pytest.mark.parametrize("name", BUGS)
def test_every_variant_is_compiled(name):
    space = reader(name)
    ddpg = space["DDPG"](space["observation_scale"], 4, space["hyperparameters"])
    assert tapejit.compile(ddpg, "compiled").engine == "compiled"


def test_what_is_compiled_does_what_the_bug_does(monkeypatch):
    """Stale gradients are written so that they can be compiled. As people make them, bits are
    equal."""
    name = "stale_gradients"
    written, without = gradient_steps(name), gradient_steps(BUGS[name].base)
    made = load_definitions(NOTEBOOK, [DESCEND])
    monkeypatch.setitem(globals(), "cells_of", lambda _: made)
    assert torch.equal(written, gradient_steps(name)) and not torch.equal(written, without)


def test_crossq_asks_its_targets_nothing():
    """Its gradient step is the same whatever the target networks are."""
    found = []
    for scale in (1.0, 100.0):
        seed_everything(0)
        space = reader("crossq")
        ddpg = space["DDPG"](space["observation_scale"], 4, space["hyperparameters"])
        with torch.no_grad():
            for weight in ddpg.target_critic.parameters():
                weight.mul_(scale)
        batch, noise = space["split_rows"](torch.randn(64, 72)), torch.zeros(1, ddpg.noise_size)
        found.append(ddpg.learn(batch, torch.ones(64), noise)[0])
    assert torch.equal(*found)
