"""Operations and their gradients are PyTorch's, also of what is no number."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from learner import descend
from torch.nn import functional as F

import torch_phases
from torch_phases import check

ROUNDING = 2.0**-24  # relative, of float32
OPERATIONS = """
x.masked_fill(x > 0, 2) | torch.cat([x, y], 1) | x.flip(1)
x.log_softmax(1) | x.std(1) | x.softmax(0) | x.logsumexp(1) | x.var(0) | x.norm(1, 1)
y.max(1).values | y.min(0).indices * 1.0 | x.amin((0, 1)) | y.pow(x) | x.atan2(y) | 2**x
torch.stack([x, y]).unbind(2)[1] | x.repeat(2, 1).split(3, 1)[1] | x.clamp(-y, y) | x.lerp(y, y)
x.sgn() | torch.where((x > 0).logical_or(y > 0.5), x, y) | x.tril() | x.round() | x.sin().cos()
x.remainder(0.3) | n ** 0.5 | n ** -0.5
F.gelu(x) | F.silu(x) | F.mish(x) | F.elu(x) | F.selu(x) | F.softplus(x) | F.hardtanh(x)
F.leaky_relu(x) | n.relu() | n.clamp(0, 1) | n.sign() | n.abs() | n.maximum(x) | n.amax(1)
n.detach().max(1).values | n > 0 | F.hardtanh(n) | F.leaky_relu(n)
n.tanh() | n.sigmoid() | n.isnan() * 1.0 | F.elu(n) | F.gelu(n) | F.smooth_l1_loss(n, y)
F.layer_norm(x, [6]) | F.rms_norm(x, [6]) | torch.erf(3 * x) | x.abs().log1p() | (3 * x).floor()
x.T.reshape(2, 3, 4).sum(1) | x.sum(0).sum() | x.reshape(2, 2, 6).sum((0, 2)) | x**3
x[:, ::2] | torch.cat([x[:, 2:], y[-4:, 1:], x[2].expand(4, 6)], 1) | (x > 0).long() % 4 * 1.0
y.repeat(2, 3) * torch.arange(18) | ((x > 0) * 6 & (y > 0.5) * 3) * 1.0
torch.bmm(x.reshape(2, 2, 6), y.reshape(2, 6, 2)) | x.split([2, 4], 1)[1] | x[:, 1] | x.mean(0)
F.smooth_l1_loss(n, x, reduction='none') | F.huber_loss(n, y) | n.amin(0) | F.silu(n) | n.softmax(1)
"""
EACH = [x.strip() for x in re.split("[|\n]", OPERATIONS.strip())]


class Several:
    """All operations in one method, or each would be recorded for itself."""

    def __init__(self, expressions):
        space = {"torch": torch, "F": F}
        self.functions = [eval(f"lambda x, y, n: {each}", space) for each in expressions]

    def learn(self, x, y, n):
        values, slopes = [], []
        for function in self.functions:
            given = x.clone().requires_grad_(), y.clone(), n.clone().requires_grad_()
            value = function(*given)
            values.append(value.detach())
            if value.requires_grad:
                learn = given[0], given[2]
                slopes += torch.autograd.grad(value.sum(), learn, allow_unused=True)
        return values, slopes


def given():
    chance = np.random.default_rng(0)
    x, y = (chance.standard_normal((1, 4, 6), np.float32) for _ in "xy")
    n = np.float32([[[np.nan, np.inf, -np.inf, 0.0, -0.5, 2.0], *3 * [[-1, 3, 3, 0.5, 0, np.inf]]]])
    return x, abs(y) + np.float32(0.1), n


@pytest.mark.parametrize("first", range(0, len(EACH), 12))
def test_operations_are_pytorchs(monkeypatch, first):
    """To a few roundings of sums of 24 numbers, and of powers up to 20."""
    monkeypatch.setattr(check.Schedule, "due", lambda *_: 0)
    some, found = EACH[first : first + 12], []
    for engine in ("torch", "compiled"):
        found.append(torch_phases.compile(Several(some), engine).scan("learn", *given()))
    for kind in (0, 1):
        for one, other in zip(*(each[kind] for each in found), strict=True):
            assert (one is None) == (other is None)
            if one is not None:
                assert one.shape == other.shape and one.dtype == other.dtype
                np.testing.assert_allclose(other, one, rtol=64 * ROUNDING, atol=64 * 20 * ROUNDING)


def test_what_is_no_number_does_not_become_one():
    """JAX makes 0 of it, so PyTorch computes."""
    fast = torch_phases.compile(Several(["n.long() * 1.0"]))
    fast.scan("learn", *given())
    assert fast.engine == "torch" and "makes whole numbers" in fast.reason


def test_adams_corrections_are_those_of_double_precision():
    """1 - 0.999**t of float32 is off by 2e-5 at first, and so would be the step."""

    class One:
        def __init__(self):
            self.weight = torch.zeros(3, requires_grad=True)
            self.optimizer = torch.optim.Adam([self.weight], lr=0.125, eps=0.0)

        def learn(self, x):
            descend((x * self.weight).sum(), self.optimizer)

    ends = []
    for engine in ("torch", "compiled"):
        fast = torch_phases.compile(One(), engine)
        fast.scan("learn", np.ones((1, 3), np.float32))
        ends.append(fast.learner.weight.detach().numpy())
    np.testing.assert_allclose(ends[1], ends[0], rtol=8 * ROUNDING)
