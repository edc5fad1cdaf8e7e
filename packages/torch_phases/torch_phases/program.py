"""Methods as programs of a small machine (machine/machine.c), which runs as WebAssembly.

JAX's primitives of a recorded step become instructions. A value is a tensor without numbers
(PyTorch's device "meta") whose storage stands for a place in the machine's memory, so views cost
nothing. Tensors of the learner lie with their axes reversed, since most products then read their
matrices in order. What is needed no longer gives its memory away. All numbers are float32.
"""

from __future__ import annotations

import copy
import inspect
import math
from base64 import b64encode
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jax.extend.core import Literal
from jax.interpreters.partial_eval import dce_jaxpr
from torch import Tensor
from torch.utils._pytree import tree_leaves

from torch_phases.phases import copied
from torch_phases.private import memory_of, name_of
from torch_phases.reading import Contents
from torch_phases.recording import Recorder
from torch_phases.step import Phase, zeros
from torch_phases.to_jax import jax
from torch_phases.words import Refused, in_a_line

HEAP = 1 << 17  # floats of the machine's own at the beginning of its memory, at most
LONGEST = 2048  # as in machine.c
VECTORIZED = (  # by their numbers in machine.c
    "copy add sub mul div sqrt rsqrt neg abs max min lt le gt ge eq ne select_n fma"
).split()
MATH = (  # number by number, by JavaScript's Math or machine.js
    "tanh pow exp expm1 log log1p sin cos atan2 floor ceil round erf logistic rem "
    "and or normal uniform"
).split()
NUMBERS = {name: k for k, name in enumerate(VECTORIZED)} | {n: 64 + k for k, n in enumerate(MATH)}


def empty(*shape: int) -> Tensor:
    """A new value."""
    return torch.empty(shape, device="meta")


class Memory:
    """What the programs of a learner share: its tensors, constants, and what they are at first."""

    def __init__(self) -> None:
        self.top = HEAP  # in floats, as places
        self.free: dict[int, list[int]] = defaultdict(list)  # places, by sizes in bytes
        self.places: dict[int, tuple[int, Tensor]] = {}  # by memory_of; with the value, to keep it
        self.constants: dict[tuple, tuple[np.ndarray, Tensor]] = {}  # by shape and bytes
        self.state: dict[int, tuple[Tensor, Tensor]] = {}  # tensor of the learner and value, by id

    def placed(self, value: Tensor) -> Tensor:
        """The value, which now has a place."""
        size = value.untyped_storage().nbytes()
        if not self.free[size]:
            self.free[size].append(self.top)
            self.top += max(4, -(-size // 16) * 4)
        self.places[memory_of(value)] = self.free[size].pop(), value
        return value

    def place(self, value: Tensor) -> int:
        return self.places[memory_of(value)][0] + int(value.storage_offset())

    def lies(self, value: Tensor) -> dict:
        """Where a value lies; of a matrix of the learner, by columns."""
        return {"place": self.place(value), "shape": list(value.shape)}

    def value(self, known: Any) -> Tensor:
        """A value, or that of constant numbers."""
        if isinstance(known, Tensor):
            return known
        numbers = np.asarray(known, np.float32)
        key = numbers.shape, numbers.tobytes()
        if key not in self.constants:
            self.constants[key] = numbers.ravel(), self.placed(empty(*numbers.shape))
        return self.constants[key][1]

    def tensor(self, tensor: Tensor) -> Tensor:
        """The value of one of the learner's tensors, which lies with its axes reversed."""
        if id(tensor) not in self.state:
            value = self.placed(empty(*tensor.shape[::-1])).permute([*range(tensor.ndim)][::-1])
            self.state[id(tensor)] = tensor, value
        return self.state[id(tensor)][1]


class Program:
    """A method's instructions: lists of numbers and values, the first of which is written."""

    def __init__(self, learner: Any, method: str, arguments: tuple, memory: Memory):
        self.memory, function, given = memory, getattr(learner, method), copied(arguments)
        self.code: list[list] = []
        self.products: dict[int, tuple] = {}  # values and their factors, by id
        try:
            recorder = Recorder(f"{type(learner).__name__}_{method}")
            step, inputs, result, _ = recorder.note(learner, method, given)
        except Exception as error:
            raise Refused(f"{method} cannot be recorded: {in_a_line(error)}") from None
        named = inspect.signature(function).bind(*given).arguments.items()
        self.inputs = {
            id(x): (name, memory.placed(empty(*x.shape)))
            for name, each in named
            for x in tree_leaves(each)
            if isinstance(x, Tensor)
        }
        places = {key: value for key, (_, value) in self.inputs.items()}
        phase = Phase(step, inputs, places, tree_leaves(result), 1)
        self.reads = {k: memory.tensor(x) for k, x in (phase.fixed | phase.state).items()}
        values = dict(sorted((phase.given | self.reads).items()))
        wanted = [step.places[id(x)] for x in tree_leaves(result) if id(x) in step.places]

        def one(numbers: dict, drawn: list) -> list:
            found, new = step.run(numbers, drawn)
            return [*(found[k] for k in wanted), *new.values()]

        numbers = {k: zeros(step.inputs[k]).numpy() for k in values}
        with jax.enable_x64(True):
            made = jax.make_jaxpr(one)(numbers, [zeros(n).numpy() for n in step.draws])
        jaxpr, _ = dce_jaxpr(made.jaxpr, [True] * len(made.out_avals), instantiate=True)
        own = [*made.consts, *values.values(), *map(self.draw, step.draws)]
        found = [*map(memory.value, self.run(jaxpr, own))]
        self.outputs = [memory.placed(empty(*x.shape)) for x in found[: len(wanted)]]
        homes = [*self.outputs, *(values[k] for k in dict.fromkeys(step.writes.values()))]
        old = set(map(memory_of, homes))  # which other homes may need
        found = [self.each("copy", x) if memory_of(x) in old else x for x in found]
        for home, value in zip(homes, found, strict=True):
            self.each("copy", value, out=home)

    def each(self, name: str, *operands: Any, out: Tensor | None = None) -> Tensor:
        """Number by number, once for each combination. Shapes are broadcast."""
        values: Any = [self.memory.value(operand) for operand in operands]
        if out is None:
            for one, other in (values, values[::-1]) if name == "add" else ():
                if id(other) in self.products:
                    return self.each("fma", one, *self.products[id(other)][1:])
            out = sum(values)  # no numbers, but shape and order of axes
            if name == "mul":
                self.products[id(out)] = out, *values
        values = [x.expand(out.shape) for x in values]
        axes: list[list[int]] = []  # sizes, and strides of out and of values
        for k in sorted(range(out.ndim), key=out.stride, reverse=True):
            size, steps = out.shape[k], [x.stride(k) for x in (out, *values)]
            if axes and axes[-1][1:] == [step * size for step in steps]:
                axes[-1] = [axes[-1][0] * size, *steps]  # they lie in order in all of them
            elif size != 1:
                axes.append([size, *steps])
        if not axes or axes[-1][1] != 1:
            axes.append([1, 1, *(0 for _ in values)])
        numbers = [x for axis in axes for x in axis]
        self.code.append([0, NUMBERS[name], len(values), len(axes), out, *values, *numbers])
        return out

    def product(self, a: Tensor, b: Tensor) -> Tensor:
        (m, k), n = a.shape, b.shape[1]
        if k > LONGEST:
            raise Refused(f"the machine has no product over {k} numbers")
        self.code.append([1, out := empty(m, n), m, n, k, a, *a.stride(), b, *b.stride()])
        return out

    def sum(self, x: Tensor, axes: Sequence[int]) -> Tensor:
        """The sum along axes."""
        kept = [k for k in range(x.ndim) if k not in axes]
        rows = self.reshape(x.permute(*kept, *axes), [-1, math.prod(x.shape[k] for k in axes)])
        self.code.append([2, out := empty(len(rows)), *rows.shape, rows, *rows.stride()])
        return out

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        try:
            return x if x.shape == shape else x.view(shape)
        except RuntimeError:  # its numbers lie in another order
            return self.each("copy", x, out=empty(*x.shape)).view(shape)

    def draw(self, node: Any) -> Tensor:
        """New random numbers in each call."""
        name = name_of(node.target)
        kind = {"randn": "normal", "rand": "uniform", "bernoulli": "uniform"}.get(name)
        if not kind:
            raise Refused(f"the machine does not have random numbers by {name}")
        drawn = self.each(kind, out=empty(*node.meta["val"].shape))
        return self.each("lt", drawn, node.args[-1]) if name == "bernoulli" else drawn

    def run(self, jaxpr: Any, given: Sequence, where: str = "") -> list:
        """The values that primitives of JAX make of those of constants and inputs."""
        values = dict(zip([*jaxpr.constvars, *jaxpr.invars], given, strict=True))

        def value(x: Any) -> Any:
            return x.val if isinstance(x, Literal) else values[x]

        for made in jaxpr.eqns:
            name, args, how = made.primitive.name, [*map(value, made.invars)], made.params
            place = where or str(made.source_info.name_stack)
            if name in ("jit", "pjit"):  # a function of some primitives
                found = self.run(how["jaxpr"].jaxpr, [*how["jaxpr"].consts, *args], place)
            elif name in NUMBERS:
                found = [self.each(name, *args)]
            elif name in OPERATIONS:
                found = OPERATIONS[name](self, *map(self.memory.value, args), **how)
                found = found if made.primitive.multiple_results else [found]
            else:
                raise Refused(f"the machine has no {name}", "", place)
            for x, new in zip(made.outvars, found, strict=True):
                values[x] = self.reshape(self.memory.value(new), x.aval.shape)
        return [*map(value, jaxpr.outvars)]

    def told(self) -> dict:
        """Its instructions, as far as they are needed, and where what goes in and out lies."""
        memory, found = self.memory, list[int]()
        needed, code = set(memory.places), list[tuple]()
        for words in reversed(self.code):
            keys = [memory_of(x) for x in words if isinstance(x, Tensor)]
            if keys[0] in needed:
                code.append((words, dict.fromkeys(k for k in keys if k not in needed)))
                needed.update(keys)
        for words, ended in reversed(code):  # which are not needed any more
            for x in words:
                if isinstance(x, Tensor) and memory_of(x) not in memory.places:
                    memory.placed(x)
            found += [memory.place(x) if isinstance(x, Tensor) else x for x in words]
            for place, value in map(memory.places.__getitem__, ended):
                memory.free[value.untyped_storage().nbytes()].append(place)
        return {
            "words": b64encode(np.array(found, np.int32).tobytes()).decode(),
            "inputs": [{"name": name, **memory.lies(x)} for name, x in self.inputs.values()],
            "outputs": [*map(memory.lies, self.outputs)],
            "reads": [*map(memory.lies, self.reads.values())],
        }


def concatenate(p, *values, dimension):
    out = torch.cat(values, dimension)
    sizes = [x.shape[dimension] for x in values]
    for x, part in zip(values, out.split(sizes, dimension), strict=True):
        p.each("copy", x, out=part)
    return out


def broadcast_in_dim(p, x, shape, broadcast_dimensions, **_):
    sizes = dict(zip(broadcast_dimensions, x.shape, strict=True))
    return p.reshape(x, [sizes.get(k, 1) for k in range(len(shape))]).expand(shape)


def dot_general(p, a, b, dimension_numbers, **_):
    if any(dimension_numbers[1]):  # pairs of matrices
        return p.sum(p.each("mul", a.unsqueeze(3), b.unsqueeze(1)), [2])
    if b.stride(0) == 0:  # all rows are alike, as in a sum
        return p.each("mul", p.sum(a, [a.ndim - 1]).unsqueeze(1), b[:1])
    is_turned = a.stride(0) == 1 != a.stride(1)  # a gradient of weights: as these lie
    return p.product(b.t(), a.t()).t() if is_turned else p.product(a, b)


def extreme(p, name, x, axes):
    for axis in axes:
        while (n := x.shape[axis]) > 1:  # half of them beside the other half
            halves = [x.narrow(axis, first, n - n // 2) for first in (0, n // 2)]
            x = p.each(name, *halves)
    return x


# Of the program, values and parameters. `Program.run` gives what they return its shape.
OPERATIONS: dict[str, Callable] = {
    "concatenate": concatenate,
    "broadcast_in_dim": broadcast_in_dim,
    "dot_general": dot_general,
    "integer_pow": lambda p, x, y: p.each("mul", x, x) if y == 2 else p.each("pow", x, y),
    "not": lambda p, x: p.each("eq", x, 0.0),
    "convert_element_type": lambda p, x, new_dtype, **_: (
        p.each("ne", x, 0.0) if new_dtype.kind == "b" else x
    ),
    "iota": lambda p, dtype, shape, dimension, **_: np.indices(shape)[dimension],
    "reduce_sum": lambda p, x, axes, **_: p.sum(x, axes),
    "reduce_max": lambda p, x, axes, **_: extreme(p, "max", x, axes),
    "reduce_min": lambda p, x, axes, **_: extreme(p, "min", x, axes),
    "split": lambda p, x, sizes, axis: x.split([*map(int, sizes)], axis),
    "slice": lambda p, x, start_indices, limit_indices, strides: x[
        tuple(map(slice, start_indices, limit_indices, strides or [1] * x.ndim))
    ],
    "transpose": lambda p, x, permutation: x.permute(permutation),
    "optimization_barrier": lambda p, *values: values,
}
OPERATIONS |= dict.fromkeys(("reshape", "squeeze"), lambda p, x, **_: x)


def export(learner: Any, calls: Mapping[str, tuple]) -> dict:
    """Methods of a learner as programs for machine/machine.js: a dictionary for JSON.

    Args:
        learner: any object with methods that use PyTorch's networks and optimizers; it is copied.
        calls: example arguments by a method's name, as `Phases.call` takes them: shapes count.

    Weights of layers that look uniformly distributed are drawn anew there, for a small file.

    Raises:
        ValueError: something cannot be recorded, or the machine does not have it.
    """
    learner, memory = copy.deepcopy(learner), Memory()
    contents = Contents(learner)
    groups = [x for each in contents.optimizers for x in each.param_groups if "lr" in x]
    for group in groups:
        group["lr"] = torch.as_tensor(group["lr"], dtype=torch.float64)  # which gets a place
    rates = {id(group["lr"]) for group in groups}
    made = {name: Program(learner, name, given, memory) for name, given in calls.items()}
    layers = [x for x, _ in contents.things if isinstance(x, torch.nn.Linear)]
    drawn = {id(x): k.in_features**-0.5 for k in layers for x in (k.weight, k.bias)}
    first = {memory.place(value): (numbers, 0.0) for numbers, value in memory.constants.values()}
    for key, (tensor, value) in memory.state.items():
        numbers = tensor.detach().to(torch.float32).numpy().T.ravel()
        first[memory.place(value)] = numbers, drawn.get(key, 0.0)
    known = {f"self.{k}": x for k, x in contents.names().items() if id(x) in memory.state}
    return {
        "programs": {name: each.told() for name, each in made.items()},
        "math": MATH,
        "top": memory.top,
        "rates": [(memory.place(y), x.item()) for x, y in memory.state.values() if id(x) in rates],
        "state": {path: memory.lies(memory.tensor(x)) for path, x in known.items()},
        "first": first_numbers(first),
    }


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
            found.append([place, len(numbers), "numbers", b64encode(some.tobytes()).decode()])
        known[key] = place
    return found


def is_uniform(numbers: np.ndarray, bound: float) -> bool:
    """Whether they may be uniform in +- bound: five standard errors of their mean square."""
    away = abs((numbers**2).mean() / bound**2 - 1 / 3) / (4 / 45 / len(numbers)) ** 0.5
    return bool(np.ptp(numbers) and abs(numbers).max() <= 1.001 * bound and away < 5)
