"""Recordings as programs of a small machine (machine/machine.c), which runs as WebAssembly.

So a learner goes on learning where there is no Python, such as in a browser.
"""

from __future__ import annotations

import base64
import contextlib
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from tapejit.compiled import Learner, NotNow, given
from tapejit.private import tree_leaves
from tapejit.reading import Reading, Saved
from tapejit.recording import CannotRecord
from tapejit.to_machine import DECOMPOSED, MATH, Memory, Missing, Program, Value, empty

FROM_ZERO = ("Adam", "AdamW", "Adamax", "Adadelta", "RAdam", "RMSprop", "SGD")  # optimizers


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
        ValueError: something cannot be recorded, or the machine does not have it; all that is
            missing is named.
    """
    recorder, memory = Learner(learner, "compiled"), Memory()
    recorder.decomposed = DECOMPOSED
    read = [Reading(learner, method) for method in calls]
    with contextlib.ExitStack() as undone:
        for reading in read:
            undone.enter_context(Saved(reading).undone())
        made = {name: program(recorder, name, given, memory) for name, given in calls.items()}
    if memory.missing:
        raise Missing("the machine does not have " + ", ".join(dict.fromkeys(memory.missing)))
    things = [thing for reading in read for _, thing in reading.seen.values()]
    optimizers = [x for x in things if isinstance(x, torch.optim.Optimizer)]
    before = {id(each) for reading in read for each in reading.tensors.values()}
    for _, tensor, value in memory.state.values():
        if id(tensor) in before:
            numbers = tensor.detach().T if tensor.ndim == 2 else tensor.detach()
            memory.first[value.place] = numbers.to(torch.float32).numpy().ravel().copy()
        elif fresh := [x for x in optimizers if type(x).__name__ not in FROM_ZERO]:
            raise Missing(f"a fresh {type(fresh[0]).__name__}: let the learner learn once before")
    first, end = first_numbers(memory, things, exact), memory.top
    for made_program, told in made.values():
        words, top = made_program.words(memory.top)
        told["words"], end = packed(np.array(words, np.int32)), max(end, top)
    return {
        "programs": {name: told for name, (_, told) in made.items()},
        "math": MATH,
        "top": end,
        "rates": [[value.place, float(group["lr"])] for group, value in memory.rates.values()],
        "state": {path: lies(value) for path, _, value in memory.state.values()},
        "first": first,
    }


def program(recorder: Learner, method: str, arguments: tuple, memory: Memory) -> tuple:
    """A method's program, and where its arguments and results lie."""
    call = given(arguments, scan=False)
    try:
        while True:
            try:
                entry = recorder.entry((method,), method, call)
                break
            except NotNow as reason:  # such as an optimizer before its first step
                if reason.__cause__:
                    raise reason.__cause__ from None
                recorder.by_torch(method, call)
    except CannotRecord as reason:
        raise Missing(f"{method} cannot be recorded: {reason}") from None
    reading, recorded = entry.reading, entry.recorded
    parameters = inspect.signature(getattr(recorder.learner, method)).parameters
    names = [
        name
        for name, argument in zip(parameters, arguments, strict=False)
        for _ in tree_leaves(argument)
    ]
    data = {k: memory.kept(empty(*call.leaves[k].shape)) for k in call.numbers}
    inputs: dict[tuple, Value] = {("argument", k): value for k, value in data.items()}
    needed = {*recorded.used("state"), *dict(recorded.state)}
    for path, tensor in reading.tensors.items():
        if path in needed:
            inputs["state", path] = memory.tensor(path, tensor)
    for k in sorted(recorded.used("rate")):
        inputs["rate", k] = memory.rate(reading.rates[k])
    made = Program(recorded, inputs, memory)
    return made, {
        "inputs": [{"name": names[k], **lies(value)} for k, value in data.items()],
        "outputs": [lies(value) for value in made.outputs],
        "reads": [lies(inputs["state", path]) for path in sorted(recorded.used("state"))],
    }


def lies(value: Value) -> dict:
    """Where a value lies; of a matrix of the learner, by columns."""
    return {"place": value.place, "shape": list(value.shape)}


def packed(numbers: np.ndarray) -> str:
    return base64.b64encode(numbers.tobytes()).decode()


def first_numbers(memory: Memory, things: Sequence, exact: bool) -> list[list]:
    """What is in the memory at first, where it is not 0: places, sizes, kinds and numbers."""
    layers = [x for x in things if isinstance(x, torch.nn.Linear) and not exact]
    bounds = {id(x): k.in_features**-0.5 for k in layers for x in (k.weight, k.bias)}
    drawn = {value.place: bounds.get(key) for key, (_, _, value) in memory.state.items()}
    found: list[list] = []
    known: dict[bytes, int] = {}
    for place, numbers in sorted(memory.first.items()):
        key, bound = numbers.tobytes(), drawn.get(place)
        if key in known:
            found.append([place, len(numbers), "copy", known[key]])
        elif bound and is_uniform(numbers, bound):
            found.append([place, len(numbers), "uniform", bound])
        elif numbers.any():
            some = numbers[:1] if (numbers == numbers[0]).all() else numbers  # repeated there
            found.append([place, len(numbers), "numbers", packed(some)])
        else:
            continue
        known[key] = place
    return found


def is_uniform(numbers: np.ndarray, bound: float) -> bool:
    """Whether they may be uniform in +- bound: five standard errors of their mean square."""
    share, is_one = (numbers**2).mean() / bound**2, len(numbers) > 1 and np.ptp(numbers) == 0
    near = abs(share - 1 / 3) < 5 * (4 / 45 / len(numbers)) ** 0.5
    return bool(numbers.any() and not is_one and abs(numbers).max() <= 1.001 * bound and near)
