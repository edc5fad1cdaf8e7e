"""Now and then, PyTorch computes the first steps of a compiled call as well, and both must agree.

How far may two float32 computations of the same formulas lie apart? Each rounds its sums in its own
order. What a step changes is therefore compared with the change by PyTorch, as vectors: a true
difference, such as an update that is missing, is of the size of the change itself, and rounding a
ten-thousandth of it. There are two exceptions. A gradient may consist of rounding, which Adam
divides by its own size. And one number before a ReLU may be so close to 0 that the two lie on
different sides. So where they lie apart, PyTorch computes again from neighbouring numbers, and what
one rounding at the start grows to is how far rounding reaches.
"""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import torch

from tapejit.private import tree_leaves
from tapejit.reading import Guard, Reading, Saved
from tapejit.recording import CannotRecord

SHARE = 1e-2  # of a change: rounding is far below, an edit that is not seen far above
ROUNDING = 2.0**-24  # relative, of float32
ROOM = 32  # roundings, one after the other in a step; and growths of one, as several meet
NEIGHBOURS = 8  # about half of which lie on the other side of a kink that is met
EVERY = 7000  # compiled steps for one check at most: together they take one or two hundredths


class Schedule:
    """When to check: at growing distances, and by chance, with a generator of its own."""

    def __init__(self) -> None:
        self.random = random.Random(0)
        self.waits: dict[tuple, tuple[int, int]] = {}  # calls until the next check, and distance

    def due(self, method: str, steps: int) -> int:
        """How many steps are checked in this call, or 0."""
        left, distance = self.waits.get((method, steps), (0, 1))
        if left:
            self.waits[method, steps] = left - 1, distance
            return 0
        distance = min(2 * distance, max(1, EVERY // steps))
        self.waits[method, steps] = self.random.randint(distance // 2, distance), distance
        return self.random.randint(1, 3)


def check(owner: Any, method: str, call: Any, entry: Any, phase: Any, steps: int) -> None:
    """Compute some steps in both ways, and leave no trace.

    Raises:
        CannotRecord: the results differ; says which.
    """
    reading = entry.reading  # a guard has found that it still holds
    saved, guard = Saved(reading), Guard(reading)

    def expected(call: Any) -> dict[str, np.ndarray]:
        """By PyTorch, from what there is."""
        torch.set_rng_state(saved.torch)
        return numbers(owner.by_torch(method, call, steps), reading.tensors)

    with saved.undone():
        old = numbers(None, reading.tensors)
        result = entry.result(phase.run(call.arrays(), steps), call.steps and steps)
        found, right = old | numbers(result, phase.after), expected(call)
        now = reading if guard.holds() else Reading(owner.learner, method)
        saved.refuse_effects(method, reading, now)
        far = {
            name: 0.0  # how far rounding reaches
            for name, value in right.items()
            if distance(found[name], value)
            > SHARE * distance(value, old.get(name, np.zeros_like(value)))
            + ROOM * ROUNDING * distance(value, np.zeros_like(value))
        }
        for seed in range(NEIGHBOURS if far else 0):
            saved.restore()
            chance = torch.Generator().manual_seed(seed)
            leaves = [beside(x, chance) for x in call.leaves]
            for tensor in reading.tensors.values():
                tensor.data.copy_(beside(tensor.data, chance))
            other = expected(call._replace(leaves=leaves))
            far = {x: max(size, distance(other[x], right[x])) for x, size in far.items()}
        for name, size in far.items():
            if not distance(found[name], right[name]) <= ROOM * size:
                raise CannotRecord(
                    f"{name} is not PyTorch's after {steps} steps of {method}, as a check "
                    "shows: it depends on something that was not seen"
                )


def numbers(result: Any, state: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
    """All numbers of a result and of tensors, by name."""
    leaves = {f"result {k}": x for k, x in enumerate(tree_leaves(result)) if x is not None}
    arrays = leaves | {path: tensor.detach().numpy() for path, tensor in state.items()}
    return {name: np.array(x, np.float64).ravel() for name, x in arrays.items()}


def distance(one: np.ndarray, other: np.ndarray) -> float:
    """Length of the difference; equal infinities, and two that are no numbers, are alike."""
    if one.shape != other.shape:
        return math.inf
    alike = (one == other) | (np.isnan(one) & np.isnan(other))
    with np.errstate(invalid="ignore"):  # infinity minus infinity, where they are alike
        length = float(np.linalg.norm(np.where(alike, 0.0, one - other)))
    return math.inf if math.isnan(length) else length


def beside(value: Any, chance: torch.Generator) -> Any:
    """Each number of an array moved to a neighbouring one, up or down; 0, which is exact, stays."""
    if not isinstance(value, (np.ndarray, torch.Tensor)):
        return value
    tensor = torch.as_tensor(value)
    if not tensor.is_floating_point():
        return value
    up = torch.rand(tensor.shape, generator=chance) < 0.5
    moved = torch.nextafter(tensor, torch.where(up, torch.inf, -torch.inf).to(tensor.dtype))
    return torch.where(tensor == 0, tensor, moved)
