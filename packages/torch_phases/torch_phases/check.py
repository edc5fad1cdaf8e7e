"""Now and then, PyTorch computes the first steps of a phase as well, and both must agree.

That finds what no guard sees, mostly in the first phases after something new. The change of a step
is compared with that by PyTorch, as vectors: a true difference is of the size of the change itself,
and rounding a ten-thousandth of it. But a gradient may consist of rounding, which Adam divides by
its own size; a number before a ReLU may be so close to 0 that the two lie on different sides; a
saturated tanh's slope is rounding. So where they lie apart, PyTorch computes again, with other
roundings of each operation, and as far as that reaches, rounding does.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from torch_phases.step import Phase

FIRST = 5  # phases after something new are all checked; then the n-th with (FIRST / n)^2
EVERY = 7000  # steps from one check to the next in the end, on average
SHARE = 1e-2  # of a change: rounding is far below, an edit that is not seen far above
ROUNDING = 2.0**-24  # relative, of float32
ROOM = 32  # roundings, one after the other in a step; and times what other ones have reached
TIMES = 8  # about half of which lie on the other side of a kink that is met


class Schedule:
    """When to check the phases of a method."""

    def __init__(self) -> None:
        self.random, self.known, self.phases = random.Random(0), (0, 0), 0

    def due(self, recording: int, steps: int) -> int:
        """How many of the steps are checked in this phase, or 0."""
        shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        cells = getattr(shell, "execution_count", 0)  # each may have changed something
        if (recording, cells) != self.known:
            self.known, self.phases = (recording, cells), 0
        self.phases += 1
        is_due = self.random.random() < max((FIRST / self.phases) ** 2, steps / EVERY)
        return min(steps, self.random.randint(1, 3)) if is_due else 0


def difference(
    phase: Phase, by_torch: Callable, tensors: Mapping[str, torch.Tensor], steps: int
) -> str | None:
    """The name of what is not PyTorch's after some steps, or None. Nothing else is left of it.

    `by_torch` computes these steps; the tensors are the learner's, by name.
    """
    named, chance = {*map(id, tensors.values())}, torch.get_rng_state()
    others = {k: x for k, x in phase.state.items() if id(x) not in named}
    tensors = {**tensors, **{f"tensor {k} of {tuple(x.shape)}": x for k, x in others.items()}}
    before = {name: x.detach().clone() for name, x in tensors.items()}

    def after(run: Callable) -> dict[str, np.ndarray]:
        """All numbers of the results and of the learner, which begins as it was."""
        torch.set_rng_state(chance)
        for name, x in tensors.items():
            x.data.copy_(before[name])
        found = {f"result {k}": x for k, x in enumerate(tree_leaves(run())) if x is not None}
        found |= {name: x.detach().numpy() for name, x in tensors.items()}
        return {name: np.array(x, np.float64).ravel() for name, x in found.items()}

    try:
        old, mine, right = after(list), after(lambda: phase.run(steps)), after(by_torch)
        far = {}  # how far rounding reaches
        for name, value in right.items():
            nothing = np.zeros_like(value)
            size, change = distance(value, nothing), distance(value, old.get(name, nothing))
            if not distance(mine[name], value) <= SHARE * change + ROOM * ROUNDING * size:
                far[name] = 0.0
        for seed in range(TIMES if far else 0):
            with OtherRoundings(seed):
                other = after(by_torch)
            far = {x: max(size, distance(other[x], right[x])) for x, size in far.items()}
    finally:
        after(list)
    wrong = (name for name, x in far.items() if not distance(mine[name], right[name]) <= ROOM * x)
    return next(wrong, None)


def distance(one: np.ndarray, other: np.ndarray) -> float:
    """Length of the difference; equal infinities, and two that are no numbers, are alike."""
    if one.shape != other.shape:
        return math.inf
    alike = (one == other) | (np.isnan(one) & np.isnan(other))
    with np.errstate(invalid="ignore"):  # infinity minus infinity, where they are alike
        length = math.sqrt(np.square(np.where(alike, 0.0, one - other)).sum())  # BLAS would spin
    return math.inf if math.isnan(length) else length


class OtherRoundings(TorchDispatchMode):
    """Each number that an operation computes moves to a neighbouring one, by chance; 0 stays."""

    def __init__(self, seed: int):
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        found = operation(*args, **(kwargs or {}))
        for x in [] if operation.is_view else tree_leaves(found):
            if isinstance(x, torch.Tensor) and x.is_floating_point():
                side = torch.rand(x.shape, generator=self.generator) - 0.5
                x.mul_(1 + 2 * ROUNDING * side.sign())
        return found
