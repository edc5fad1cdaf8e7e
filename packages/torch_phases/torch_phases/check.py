"""Now and then, PyTorch computes the first steps of a phase as well, and both must agree.

That finds what no guard sees. It comes with each of the first phases after something new, then at
growing distances, and by chance.

How far may two float32 computations of the same formulas lie apart? Each rounds its sums in its own
order. What a step changes is therefore compared with the change by PyTorch, as vectors: a true
difference is of the size of the change itself, and rounding a ten-thousandth of it. But a gradient
may consist of rounding, which Adam divides by its own size, and a number before a ReLU may be so
close to 0 that the two lie on different sides. So where they lie apart, PyTorch computes again from
neighbouring numbers, and what one rounding at the start grows to is how far rounding reaches.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from torch_phases.step import Phase

FIRST = 10  # phases after something new that are all checked
EVERY = 7000  # steps from one check to the next, at most
SHARE = 1e-2  # of a change: rounding is far below, an edit that is not seen far above
ROUNDING = 2.0**-24  # relative, of float32
ROOM = 32  # roundings, one after the other in a step; and growths of one, as several meet
NEIGHBOURS = 8  # about half of which lie on the other side of a kink that is met


class Schedule:
    """When to check the phases of a method."""

    def __init__(self) -> None:
        self.random = random.Random(0)
        self.known: Any = None
        self.left, self.distance, self.phases = 0, 1, 0

    def due(self, recording: int, steps: int) -> int:
        """How many of the steps are checked in this phase, or 0."""
        if (now := (recording, cells_run())) != self.known:
            self.known, self.left, self.distance, self.phases = now, 0, 1, 0
        self.phases += 1
        if self.left:
            self.left -= 1
            return 0
        if self.phases >= FIRST:
            self.distance = min(2 * self.distance, max(1, EVERY // steps))
            self.left = self.random.randint(self.distance // 2, self.distance)
        return min(steps, self.random.randint(1, 3))


def cells_run() -> int:
    """How many cells of a notebook have been run: each may have changed something."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "execution_count", 0)


def difference(
    phase: Phase,
    by_torch: Callable[[Callable], Any],
    tensors: Mapping[str, torch.Tensor],
    steps: int,
) -> str | None:
    """The name of what is not PyTorch's after some steps, or None. Nothing else is left of it.

    Args:
        by_torch: computes these steps of the learner; it takes a function by which the arrays
            that are given to the learner are changed before.
        tensors: of the learner, by name.
    """
    chance, before = torch.get_rng_state(), {}
    known = {*map(id, tensors.values())}
    others = [x for x in phase.state if id(x) not in known]
    tensors = {**tensors, **{f"a tensor {tuple(x.shape)}": x for x in others}}
    before = {name: x.detach().clone() for name, x in tensors.items()}

    def numbers(result: list) -> dict[str, np.ndarray]:
        """All numbers of a result and of the learner."""
        found = {f"result {k}": x for k, x in enumerate(result) if x is not None}
        found |= {name: x.detach().numpy() for name, x in tensors.items()}
        return {name: np.array(x, np.float64).ravel() for name, x in found.items()}

    def restore(change: Callable = lambda x: x) -> None:
        torch.set_rng_state(chance)
        for name, x in tensors.items():
            x.data.copy_(change(before[name]))

    def expected(change: Callable) -> dict[str, np.ndarray]:
        restore(change)
        return numbers(by_torch(change))

    old = numbers([])
    mine = numbers(phase.result(phase.run(steps), steps))
    names = {id(x): name for name, x in tensors.items()}
    for x, new in zip(phase.state, phase.after, strict=True):
        mine[names[id(x)]] = new.double().numpy().ravel()
    right = expected(lambda x: x)
    far = {
        name: 0.0  # how far rounding reaches
        for name, value in right.items()
        if not distance(mine[name], value)
        <= SHARE * distance(value, old.get(name, np.zeros_like(value)))
        + ROOM * ROUNDING * distance(value, np.zeros_like(value))
    }
    for seed in range(NEIGHBOURS if far else 0):
        generator = torch.Generator().manual_seed(seed)
        other = expected(lambda x, generator=generator: beside(x, generator))
        far = {x: max(size, distance(other[x], right[x])) for x, size in far.items()}
    restore()
    for name, size in far.items():
        if not distance(mine[name], right[name]) <= ROOM * size:
            return name
    return None


def distance(one: np.ndarray, other: np.ndarray) -> float:
    """Length of the difference; equal infinities, and two that are no numbers, are alike."""
    if one.shape != other.shape:
        return math.inf
    alike = (one == other) | (np.isnan(one) & np.isnan(other))
    with np.errstate(invalid="ignore"):  # infinity minus infinity, where they are alike
        length = float(np.linalg.norm(np.where(alike, 0.0, one - other)))
    return math.inf if math.isnan(length) else length


def beside(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Each number moved to a neighbouring one; 0 stays, or a root of it could be none."""
    if not x.is_floating_point():
        return x
    up = torch.rand(x.shape, generator=generator) < 0.5
    near = torch.nextafter(x, torch.where(up, torch.inf, -torch.inf).to(x.dtype))
    return torch.where(x == 0, x, near)
