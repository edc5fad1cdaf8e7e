"""Operations and their gradients are PyTorch's, also of what is no number."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from learner import One
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
x.remainder(0.3) | n ** 0.5 | n ** -0.5 | F.smooth_l1_loss(n, y)
F.gelu(x) | F.silu(x) | F.mish(x) | F.elu(x) | F.selu(x) | F.softplus(x) | F.hardtanh(x)
F.leaky_relu(x) | n.relu() | n.clamp(0, 1) | n.sign() | n.abs() | n.maximum(x) | n.amax(1)
n.detach().max(1).values | n > 0 | F.hardtanh(n) | F.leaky_relu(n)
n.tanh() | n.sigmoid() | n.isnan() * 1.0 | F.elu(n.detach()) | F.gelu(n.clamp(-9, 9))
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
        self.function = eval(f"lambda x, y, n: [{', '.join(expressions)}]", space)

    def learn(self, x, y, n):
        given = x.clone().requires_grad_(), n.clone().requires_grad_()
        values = self.function(given[0], y, given[1])
        sums = [x.sum() for x in values if x.requires_grad]
        slopes = [torch.autograd.grad(x, given, allow_unused=True) for x in sums]
        return [x.detach() for x in values], slopes


def given():
    chance = np.random.default_rng(0)
    x, y = (chance.standard_normal((1, 4, 6), np.float32) for _ in "xy")
    n = np.float32([[[np.nan, np.inf, -np.inf, 0.0, -0.5, 2.0], *3 * [[-1, 3, 3, 0.5, 0, np.inf]]]])
    return x, abs(y) + np.float32(0.1), n


@pytest.mark.parametrize("first", range(0, len(EACH), 12))
def test_operations_are_pytorchs(monkeypatch, first):
    """To a few roundings of sums of 24 numbers, and powers up to 20. PyTorch's gelu(inf) varies."""
    monkeypatch.setattr(check.Schedule, "due", lambda *_: 0)
    some, found = EACH[first : first + 12], []
    for engine in ("compiled", "torch"):
        found.append(torch_phases.compile(Several(some), engine).scan("learn", *given()))
    atol = 64 * 20 * ROUNDING
    torch.testing.assert_close(*found, rtol=64 * ROUNDING, atol=atol, equal_nan=True)


def test_adams_corrections_are_those_of_double_precision():
    """1 - 0.999**t of float32 is off by 2e-5 at first, and so would be the step."""
    ends = []
    for engine in ("compiled", "torch"):
        one = One(torch.zeros(3), lambda w, x: (w * x).sum(), torch.optim.Adam, lr=0.125, eps=0.0)
        torch_phases.compile(one, engine).scan("learn", np.ones((1, 3), np.float32))
        ends.append(one.weight)
    torch.testing.assert_close(*ends, rtol=8 * ROUNDING, atol=0.0)
