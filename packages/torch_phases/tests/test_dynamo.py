"""A fault of Dynamo 2.13 that is worked around; a failure may say that it is mended.

Where a gradient is set to None and then looked at, Dynamo notes at its None, of which it has one
for all recordings, that it is this gradient. So a None in a result, or of another learner, is too.
"""

from __future__ import annotations

import numpy as np
import torch
import torch._dynamo as dynamo
from torch import nn

import torch_phases
from torch_phases import private


class Learner:
    def __init__(self):
        self.net = nn.Linear(3, 1)
        self.optimizer = torch.optim.Adam(self.net.parameters(), 1e-2)

    def step(self, x):
        loss = self.net(x).square().mean()
        for parameter in self.net.parameters():
            parameter.grad = None
        loss.backward()
        return {"nothing": None}

    def learn(self, x):
        found = self.step(x)
        self.optimizer.step()
        return found


def test_a_none_becomes_a_gradient():
    learner, x = Learner(), torch.ones(2, 3)
    learner.step(x)
    with dynamo.config.patch(private.SETTINGS):
        found = torch.compile(learner.step, backend="eager", fullgraph=True)(x)
    assert found["nothing"] is not None, "Dynamo is mended: private.py needs no getattr_of_tensor"
    fast = torch_phases.compile(learner, "compiled")
    assert fast.scan("learn", np.ones((4, 2, 3), np.float32)) == {"nothing": None}
