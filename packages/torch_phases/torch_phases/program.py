"""Methods as programs of a small machine (machine/machine.c), which runs as WebAssembly.

So a learner goes on learning where there is no Python, such as in a browser.
"""

from __future__ import annotations

import base64
import copy
import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_leaves, tree_map

from torch_phases.words import Missing, in_a_line

FROM_ZERO = {"Adam", "AdamW", "Adamax", "Adadelta", "RAdam", "RMSprop", "SGD"}  # optimizers


def export(learner: Any, calls: Mapping[str, tuple], exact: bool = False) -> dict:
    """Methods of a learner as programs for machine/machine.js: a dictionary for JSON.

    Args:
        learner: any object with methods that use PyTorch's networks and optimizers. It stays as it
            was.
        calls: example arguments by the name of a method, as `Phases.call` takes them: arrays of the
            shapes that the program will be given.
        exact: with the numbers that the learner has now; False: weights that look uniformly
            distributed are drawn anew on the other side, which makes a small file.

    Raises:
        Missing: something cannot be recorded, or the machine does not have it; all operations that
            a method misses are named.
    """
    from torch_phases.reading import Contents
    from torch_phases.to_machine import MATH, Memory

    learner, memory = copy.deepcopy(learner), Memory()
    before = {id(x): x for x in Contents(learner).tensors}
    made = {name: program(learner, name, given, memory) for name, given in calls.items()}
    things = Contents(learner)
    kinds = {type(x).__name__ for x in things.optimizers}
    layers = [x for x, *_ in things.things.values() if isinstance(x, torch.nn.Linear) and not exact]
    drawn = {id(x): k.in_features**-0.5 for k in layers for x in (k.weight, k.bias)}
    for _, tensor, value in memory.state.values():
        if id(tensor) in before:
            numbers = tensor.detach().to(torch.float32).numpy().T.ravel()
            memory.first[memory.place(value)] = numbers, drawn.get(id(tensor), 0.0)
        elif odd := kinds - FROM_ZERO:
            raise Missing(f"a fresh {min(odd)}: let the learner learn once before")
    for each, told in made.values():
        told["words"] = packed(np.array(each.words(), np.int32))
    return {
        "programs": {name: told for name, (_, told) in made.items()},
        "math": MATH,
        "top": memory.top,
        "rates": [[memory.place(x), rate] for x, rate in memory.rates.values()],
        "state": {path: memory.lies(value) for path, _, value in memory.state.values()},
        "first": first_numbers(memory.first),
    }


def program(learner: Any, method: str, arguments: tuple, memory: Any) -> tuple:
    """A method's program, and where its arguments and results lie."""
    from torch_phases import recording, to_machine
    from torch_phases.reading import Contents

    contents, function = Contents(learner), getattr(learner, method)
    given = tree_map(lambda x: torch.tensor(x) if isinstance(x, np.ndarray) else x, arguments)
    try:
        recorder = recording.Recorder(f"{type(learner).__name__}_{method}", to_machine.has)
        step, inputs, _, leaves = recorder.note(function, contents, given)
    except Exception as error:
        raise Missing(f"{method} cannot be recorded: {in_a_line(error)}") from None
    named = inspect.signature(function).bind(*given).arguments
    given = [(name, x) for name, each in named.items() for x in tree_leaves(each)]
    data = [
        (name, x, memory.placed(to_machine.empty(*x.shape)))
        for name, x in given
        if isinstance(x, torch.Tensor)
    ]
    places = {id(x): value for _, x, value in data}
    paths = {id(x): f"self.{name}" for name, x in Contents(learner).names().items()}
    rates = {id(x): group for x, group in recorder.rates}
    wanted = [k for x in leaves for k, y in enumerate(step.outputs) if x is y is not None]
    values, reads = dict(), dict()
    for k, x in enumerate(inputs):
        if id(x) in places:
            values[k] = places[id(x)]
        elif id(x) in rates:
            values[k] = memory.rate(rates[id(x)])
        elif k in step.used or k in step.changed:
            path = paths.get(id(x), f"a tensor {tuple(x.shape)}")
            values[k] = reads[path] = memory.tensor(path, x)
    made = to_machine.Program(step, values, wanted, memory)
    return made, {
        "inputs": [{"name": name, **memory.lies(value)} for name, _, value in data],
        "outputs": [memory.lies(value) for value in made.outputs],
        "reads": [memory.lies(reads[path]) for path in sorted(reads)],
    }


def packed(numbers: np.ndarray) -> str:
    return base64.b64encode(numbers.tobytes()).decode()


def first_numbers(first: Mapping[int, tuple[np.ndarray, float]]) -> list[list]:
    """What is in the memory at first: places, sizes, kinds and numbers."""
    found, known = list[list](), dict[bytes, int]()
    for place, (numbers, bound) in sorted(first.items()):
        if (key := numbers.tobytes()) in known:
            found.append([place, len(numbers), "copy", known[key]])
        elif bound and is_uniform(numbers, bound):
            found.append([place, len(numbers), "uniform", bound])
        else:
            some = numbers[:1] if len({*numbers}) == 1 else numbers  # repeated there
            found.append([place, len(numbers), "numbers", packed(some)])
        known[key] = place
    return found


def is_uniform(numbers: np.ndarray, bound: float) -> bool:
    """Whether they may be uniform in +- bound: five standard errors of their mean square."""
    share, is_one = (numbers**2).mean() / bound**2, len(numbers) > 1 and np.ptp(numbers) == 0
    near = abs(share - 1 / 3) < 5 * (4 / 45 / len(numbers)) ** 0.5
    return bool(numbers.any() and not is_one and abs(numbers).max() <= 1.001 * bound and near)
