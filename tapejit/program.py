"""Recordings as programs of a small machine (machine/machine.c), which runs as WebAssembly.

So a learner goes on learning where there is no Python, such as in a browser.
"""

from __future__ import annotations

import base64
import contextlib
import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from tapejit.compiled import Learner, NotNow, given
from tapejit.private import tree_leaves
from tapejit.reading import Reading, Saved
from tapejit.recording import CannotRecord
from tapejit.to_machine import DECOMPOSED, MATH, Memory, Missing, Program, empty

FROM_ZERO = {"Adam", "AdamW", "Adamax", "Adadelta", "RAdam", "RMSprop", "SGD"}  # optimizers


def export(learner: Any, calls: Mapping[str, tuple], exact: bool = False) -> dict:
    """Methods of a learner as programs for machine/machine.js: a dictionary for JSON.

    Args:
        learner: any object with methods that use PyTorch's networks and optimizers. It stays as it
            was.
        calls: example arguments by the name of a method, as `tapejit.Learner.call` takes them:
            arrays of the shapes that the program will be given.
        exact: with the numbers that the learner has now; False: weights that look uniformly
            distributed are drawn anew on the other side, which makes a small file.

    Raises:
        ValueError: something cannot be recorded, or the machine does not have it; all operations
            that a method misses are named.
    """
    recorder, memory = Learner(learner, "compiled"), Memory()
    recorder.decomposed = DECOMPOSED
    read = [Reading(learner, method) for method in calls]
    with contextlib.ExitStack() as undone:
        for reading in read:
            undone.enter_context(Saved(reading).undone())
        made = {name: program(recorder, name, given, memory) for name, given in calls.items()}
    things = [thing for reading in read for _, thing in reading.seen.values()]
    kinds = {type(x).__name__ for x in things if isinstance(x, torch.optim.Optimizer)}
    layers = [x for x in things if isinstance(x, torch.nn.Linear) and not exact]
    drawn = {id(x): k.in_features**-0.5 for k in layers for x in (k.weight, k.bias)}
    before = {id(tensor) for reading in read for tensor in reading.tensors.values()}
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


def program(recorder: Learner, method: str, arguments: tuple, memory: Memory) -> tuple:
    """A method's program, and where its arguments and results lie."""
    call = given(arguments, scan=False)
    recorder.by_torch(method, call)  # an optimizer's first step is another one
    try:
        entry = recorder.entry((method,), method, call)
    except (CannotRecord, NotNow) as reason:
        raise Missing(f"{method} cannot be recorded: {reason}") from None
    reading, recorded = entry.reading, entry.recorded
    named = inspect.signature(getattr(recorder.learner, method)).bind(*arguments).arguments
    names = [name for name, argument in named.items() for _ in tree_leaves(argument)]
    data = {k: memory.placed(empty(*call.leaves[k].shape)) for k in call.numbers}
    needed = {*recorded.used("state"), *dict(recorded.state)}
    state = {path: memory.tensor(path, x) for path, x in reading.tensors.items() if path in needed}
    rates = {k: memory.rate(reading.rates[k]) for k in sorted(recorded.used("rate"))}
    made = Program(recorded, {"argument": data, "state": state, "rate": rates}, memory)
    return made, {
        "inputs": [{"name": names[k], **memory.lies(value)} for k, value in data.items()],
        "outputs": [memory.lies(value) for value in made.outputs],
        "reads": [memory.lies(state[path]) for path in sorted(recorded.used("state"))],
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
