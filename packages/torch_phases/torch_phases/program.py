"""Methods as programs of a small machine (machine/machine.c), which runs as WebAssembly.

A value is a tensor without numbers (PyTorch's device "meta") whose storage stands for a place in
the machine's memory, so views cost nothing. Tensors of the learner lie with their axes reversed,
since most products then read their matrices in order. What is needed no longer gives its memory
away. All numbers are float32.
"""

from __future__ import annotations

import base64
import copy
import inspect
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.fx import Node, map_arg
from torch.utils._pytree import tree_leaves, tree_map

from torch_phases.private import memory_of, name_of
from torch_phases.reading import Contents
from torch_phases.recording import Recorder
from torch_phases.step import Step, code_of, constant_of, is_of_python, shape_of
from torch_phases.to_jax import SHAPED
from torch_phases.words import Refused, in_a_line

HEAP = 1 << 17  # floats of the machine's own at the beginning of its memory, at most
LONGEST, WIDEST = 2048, 8192  # as in machine.c
VECTORIZED = (  # by their numbers in machine.c
    "copy add sub mul div sqrt lerp addcmul addcdiv relu where threshold_backward neg "
    "rsub tanh_backward sign abs minimum maximum lt le gt ge eq ne reciprocal rsqrt"
).split()
MATH = (  # number by number, by JavaScript's Math or machine.js
    "tanh pow exp expm1 log log1p sin cos atan2 floor ceil trunc round erf sigmoid "
    "logical_and logical_or logical_not normal uniform"
).split()
NUMBERS = {name: k for k, name in enumerate(VECTORIZED)} | {n: 64 + k for k, n in enumerate(MATH)}
NUMBERS |= {"bitwise_and": NUMBERS["logical_and"], "bitwise_or": NUMBERS["logical_or"]}
VIEWS = "t permute transpose expand slice select squeeze unsqueeze split split_with_sizes".split()


def empty(*shape: int) -> Tensor:
    """A new value."""
    return torch.empty(shape, device="meta")


class Memory:
    """What the programs of a learner share: its tensors, constants, and what they are at first."""

    def __init__(self) -> None:
        self.top = HEAP  # in floats, as places
        self.free: dict[int, list[int]] = defaultdict(list)  # places, by sizes in bytes
        self.places: dict[int, tuple[int, Tensor]] = {}  # by memory_of; with the value, to keep it
        self.first: dict[int, tuple[np.ndarray, float]] = {}  # and what may bound others, by place
        self.constants: dict[tuple, Tensor] = {}
        self.state: dict[int, tuple[str, Tensor, Tensor]] = {}  # path, tensor and value, by id
        self.rates: dict[int, tuple[Tensor, float]] = {}  # by id of the group

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

    def number(self, value: Any) -> Tensor:
        """A value, or the constant of a number or of a tensor."""
        if isinstance(value, Tensor) and value.is_meta:
            return value
        numbers = torch.as_tensor(value).detach().to(torch.float32).numpy()
        key = numbers.shape, numbers.tobytes()
        if key not in self.constants:
            self.constants[key] = self.placed(empty(*numbers.shape))
            self.first[self.place(self.constants[key])] = np.ravel(numbers), 0.0
        return self.constants[key]

    def tensor(self, path: str, tensor: Tensor) -> Tensor:
        """The value of one of the learner's tensors, which lies with its axes reversed."""
        if id(tensor) not in self.state:
            value = self.placed(empty(*tensor.shape[::-1])).permute([*range(tensor.ndim)][::-1])
            self.state[id(tensor)] = path, tensor, value
        return self.state[id(tensor)][2]

    def rate(self, group: dict) -> Tensor:
        """The value of the learning rate of an optimizer's group."""
        if id(group) not in self.rates:
            self.rates[id(group)] = self.placed(empty()), float(group["lr"])
        return self.rates[id(group)][0]


class Program:
    """Instructions of a step: lists of numbers and values, the first of which is written.

    Args:
        step: of which `has` knows all operations.
        inputs: values of its inputs, by their numbers.
        wanted: which of its results it computes.
    """

    def __init__(
        self, step: Step, inputs: Mapping[int, Tensor], wanted: Sequence[int], memory: Memory
    ):
        self.memory, self.step = memory, step
        self.code: list[list] = []
        self.known: dict[tuple, Tensor] = {}
        values: dict[Node, Any] = {step.inputs[k]: x for k, x in inputs.items()}
        new = step.run(values, wanted, self.do)
        results = [step.results[k] for k in wanted]
        self.outputs = [memory.placed(empty(*shape_of(x))) for x in results]
        homes = dict(zip(self.outputs, [values[x] for x in results], strict=True))
        homes |= {inputs[k]: new[step.inputs[k]] for k in step.changed}
        old = set(map(memory_of, homes))  # which other homes may need
        moved = {k: self.each("copy", v) if memory_of(v) in old else v for k, v in homes.items()}
        for home, value in moved.items():
            self.each("copy", value, out=home)

    def each(self, name: str, *operands: Any, out: Tensor | None = None) -> Tensor:
        """Number by number, once for each combination. Shapes are broadcast."""
        values: Any = [self.memory.number(operand) for operand in operands]
        key = name, *((memory_of(x), x.storage_offset(), x.shape, x.stride()) for x in values)
        if out is None:
            if key in self.known:
                return self.known[key]
            out = self.known[key] = sum(values)  # no numbers, but shape and order of axes
        values = [x.expand(out.shape) for x in values]
        order = sorted(range(out.ndim), key=out.stride, reverse=True)
        axes: list[list[int]] = []  # sizes, and strides of out and of values
        for k in order:
            size, steps = out.shape[k], [x.stride(k) for x in (out, *values)]
            if axes and axes[-1][1:] == [step * size for step in steps]:
                axes[-1] = [axes[-1][0] * size, *steps]  # they lie in order in all of them
            elif size != 1:
                axes.append([size, *steps])
        if not axes or axes[-1][1] != 1:
            axes.append([1, 1, *(0 for _ in values)])
        if len(axes) > 2:  # the machine does two axes at a time
            axis = next(k for k in order if out.shape[k] > 1)
            for part, *parts in zip(*(x.unbind(axis) for x in (out, *values)), strict=True):
                self.each(name, *parts, out=part)
            return out
        rows, row = axes if len(axes) == 2 else ([1, 0, *(0 for _ in values)], *axes)
        if row[0] > WIDEST and max(row[2:], default=0) > 1:
            raise Refused(f"the machine has no {name} of numbers so far apart, as in {self.where}")
        places = [x for each in zip(values, rows[2:], row[2:], strict=True) for x in each]
        self.code.append([0, NUMBERS[name], rows[0], row[0], out, rows[1], len(values), *places])
        return out

    def product(self, a: Tensor, b: Tensor, bias: Any = -1) -> Tensor:
        (m, k), n = a.shape, b.shape[1]
        if k > LONGEST:
            raise Refused(f"the machine has no product over {k} numbers, as in {self.where}")
        self.code.append([1, out := empty(m, n), m, n, k, a, *a.stride(), b, *b.stride(), bias])
        return out

    def sum(self, x: Tensor, dims: Any, is_mean: bool = False, correction: float = 0) -> Tensor:
        """The sum along axes or its mean, of n - correction numbers; the axes stay."""
        dims = axes_of(x, dims)
        kept = [k for k in range(x.ndim) if k not in dims]
        n = math.prod(x.shape[k] for k in dims)
        rows = self.reshape(x.permute(*kept, *dims), [-1, n])
        out = empty(*(1 if k in dims else size for k, size in enumerate(x.shape)))
        factor = np.float32(1 / (n - correction) if is_mean else 1).view(np.int32)
        self.code.append([2, out, *rows.shape, rows, *rows.stride(), factor])
        return out

    def dense(self, x: Tensor) -> Tensor:
        return x if x.is_contiguous() else self.each("copy", x, out=empty(*x.shape))

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        try:
            return x.view(shape)
        except RuntimeError:  # its numbers lie in another order
            return self.dense(x).view(shape)

    def do(self, node: Any, known: Mapping[Node, Any]) -> Any:
        """The value of a node, or a list of several: views of others, or instructions."""
        self.where = code_of(node)
        if node.op == "get_attr":
            return self.memory.number(constant_of(node))
        args, options = map_arg((node.args, node.kwargs), known.__getitem__)
        if is_of_python(node):
            return node.target(*args)
        name = name_of(node.target)
        if node in self.step.draws:
            return draw(self, node, *args)
        if name in VIEWS:
            return getattr(torch.ops.aten, name)(*args)
        if name not in OPERATIONS:
            return self.each(name, *args, **options)
        found = OPERATIONS[name](self, node, *args, **options)
        if (shape := shape_of(node)) is None:
            return found
        found = self.memory.number(found)
        return self.reshape(found, shape) if found.numel() == shape.numel() else found.expand(shape)

    def words(self) -> list[int]:
        """The instructions; values that only this program needs get places, one after the other."""
        memory, found = self.memory, []
        kept = set(memory.places)
        last = {memory_of(x): words for words in self.code for x in words if isinstance(x, Tensor)}
        for words in self.code:
            values = {memory_of(x): x for x in words if isinstance(x, Tensor)}
            for key, x in values.items():
                if key not in memory.places:
                    memory.placed(x)
            found += [memory.place(x) if isinstance(x, Tensor) else x for x in words]
            for key, x in values.items():
                if last[key] is words and key not in kept:
                    memory.free[x.untyped_storage().nbytes()].append(memory.places[key][0])
        return found


def axes_of(x: Tensor, dims: Any) -> list[int]:
    dims = [dims] if isinstance(dims, int) else dims or range(x.ndim)
    return sorted(dim % x.ndim for dim in dims)


# ------------------------------------------------------------------------------ operations by name


def draw(p, node, *args):
    """New random numbers in each call."""
    name = name_of(node.target)
    kind = {"randn": "normal", "rand": "uniform", "bernoulli": "uniform"}.get(name)
    if not kind:
        raise Refused(f"the machine does not have random numbers by {name}")
    drawn = p.each(kind, out=empty(*shape_of(node)))
    return p.each("lt", drawn, args[-1]) if name == "bernoulli" else drawn


def cat(p, node, values, dim=0):
    values = [x for x in values if x.shape != (0,)]
    out = empty(*shape_of(node))
    for x, part in zip(values, out.split([x.shape[dim] for x in values], dim), strict=True):
        p.each("copy", x, out=part)
    return out


def converted(p, node, x, **_):
    if node.meta["val"].dtype is torch.bool:
        return p.each("ne", x, 0.0)
    return x if node.meta["val"].dtype.is_floating_point else p.each("trunc", x)


def plus(p, node, a, b, alpha=1):
    return p.each(name_of(node.target), a, b if alpha == 1 else p.each("mul", b, alpha))


def power(p, node, x, y):
    faster = {2: ("mul", x, x), 0.5: ("sqrt", x)}
    return p.each(*faster.get(y, ("pow", x, y)))


def mm(p, node, a, b):
    is_turned = a.stride(0) == 1 != a.stride(1)  # a gradient of weights: as these lie
    return p.product(b.t(), a.t()).t() if is_turned else p.product(a, b)


def addmm(p, node, c, a, b, beta=1, alpha=1):
    if (beta, alpha) != (1, 1) or c.shape != b.shape[1:]:
        raise Refused(f"the machine has no addmm with factors or a matrix, as in {code_of(node)}")
    return p.product(a, b, p.dense(c))


def extreme(p, node, x, dims=None, *_):
    for dim in axes_of(x, dims):
        while (n := x.shape[dim]) > 1:  # half of them beside the other half
            halves = [x.narrow(dim, first, n - n // 2) for first in (0, n // 2)]
            x = p.each("maximum" if "max" in name_of(node.target) else "minimum", *halves)
    return x


def var_mean(p, node, x, dims=None, correction=1, keepdim=False):
    mean = p.sum(x, dims, is_mean=True)
    away = p.each("sub", x, mean)
    return [p.sum(p.each("mul", away, away), dims, True, correction), mean]


# By names, if more than a view or one of NUMBERS. They take the program, the node and the arguments
# of the operation. `Program.do` gives what they return the node's shape.
OPERATIONS: dict[str, Callable] = {
    "cat": cat,
    "arange": lambda p, node, *ends, **_: torch.arange(*ends),
    "_to_copy": converted,
    "isnan": lambda p, node, x: p.each("ne", x, x),
    "addcmul": lambda p, node, *x, value=1: p.each("addcmul", *x, value),
    "addcdiv": lambda p, node, *x, value=1: p.each("addcdiv", *x, value),
    "pow": power,
    "mm": mm,
    "addmm": addmm,
    "sum": lambda p, node, x, dims=None, *_, **__: p.sum(x, dims),
    "mean": lambda p, node, x, dims=None, *_, **__: p.sum(x, dims, is_mean=True),
    "var": lambda *args, **how: var_mean(*args, **how)[0],
    "var_mean": var_mean,
}
OPERATIONS |= {
    name: lambda p, node, *args, made=made, **how: made(*args, **how)
    for name, made in SHAPED.items()
}
OPERATIONS |= dict.fromkeys(("add", "sub"), plus)
OPERATIONS |= dict.fromkeys(("amax", "amin", "max", "min"), extreme)
KNOWN = {*NUMBERS, *VIEWS, *OPERATIONS}  # what the machine has, or makes of others


# -------------------------------------------------------------------------- programs of a learner


def exported(learner: Any, calls: Mapping[str, tuple]) -> dict:
    """What `torch_phases.export` returns."""
    learner, memory = copy.deepcopy(learner), Memory()
    made = {name: program(learner, name, given, memory) for name, given in calls.items()}
    layers = [x for x, _ in Contents(learner).things.values() if isinstance(x, torch.nn.Linear)]
    drawn = {id(x): k.in_features**-0.5 for k in layers for x in (k.weight, k.bias)}
    for _, tensor, value in memory.state.values():
        numbers = tensor.detach().to(torch.float32).numpy().T.ravel()
        memory.first[memory.place(value)] = numbers, drawn.get(id(tensor), 0.0)
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


def program(learner: Any, method: str, arguments: tuple, memory: Memory) -> tuple:
    """A method's program, and where its arguments and results lie."""
    contents, function = Contents(learner), getattr(learner, method)
    given = tree_map(lambda x: torch.tensor(x) if isinstance(x, np.ndarray) else x, arguments)
    try:
        recorder = Recorder(f"{type(learner).__name__}_{method}", KNOWN.__contains__)
        step, inputs, result = recorder.note(function, contents, given)
    except Exception as error:
        raise Refused(f"{method} cannot be recorded: {in_a_line(error)}") from None
    named = inspect.signature(function).bind(*given).arguments
    data = [
        (name, x, memory.placed(empty(*x.shape)))
        for name, each in named.items()
        for x in tree_leaves(each)
        if isinstance(x, torch.Tensor)
    ]
    places = {id(x): value for _, x, value in data}
    paths = {id(x): f"self.{name}" for name, x in Contents(learner).names().items()}
    rates = {id(x): group for x, group in recorder.rates}
    wanted = [step.places[id(x)] for x in tree_leaves(result) if id(x) in step.places]
    values, reads = dict(), dict()
    for k, x in enumerate(inputs):
        if id(x) in places:
            values[k] = places[id(x)]
        elif id(x) in rates:
            values[k] = memory.rate(rates[id(x)])
        elif k in step.used or k in step.changed:
            path = paths.get(id(x), f"a tensor {tuple(x.shape)}")
            values[k] = reads[path] = memory.tensor(path, x)
    made = Program(step, values, wanted, memory)
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
