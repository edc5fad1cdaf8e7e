"""Recordings as compiled calls, which read the tensors' own memory and write into it."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch.autograd.graph import increment_version

from tapejit import jax_setup
from tapejit.recording import Node, NotNow, Recorded, drawn
from tapejit.to_jax import ALLOWED, Column, Group, Translation, number_type

__all__ = ["ALLOWED", "Phase"]  # what `jax_setup.phases` gives


class Program(NamedTuple):
    """What is compiled; equal ones are compiled once."""

    recorded: Recorded
    columns: tuple[Column, ...]  # tensors that change, by their nodes as inputs
    fixed: tuple[Node, ...]  # other inputs: tensors that are read, and learning rates
    given: tuple[Node, ...]  # what each call has its own of: arguments, and random numbers
    room: int | None

    def step(self, vectors, fixed, given):
        """Vectors after one call, its results, and whether it failed."""
        values = dict(zip(self.fixed + self.given, (*fixed, *given), strict=True))
        changed = dict(self.recorded.state)
        after = [
            (tuple(changed.get(node.args[1], node) for node in nodes), group)
            for nodes, group in self.columns
        ]
        before = list(zip(self.columns, vectors, strict=True))
        return Translation(values, before).outputs(self.recorded, after)


@functools.cache
def compiled(program: Program) -> Any:
    """The program as a call of JAX."""

    def call(vectors, singles, rates, given, steps):
        fixed = *singles, *(rates[node.args[1]] for node in program.fixed[len(singles) :])
        if program.room is None:
            return program.step(vectors, fixed, given)

        def body(k, carried):
            vectors, stacks, failed = carried
            row = [jax.lax.dynamic_index_in_dim(each, k, 0, False) for each in given]
            vectors, found, fault = program.step(vectors, fixed, row)
            stacks = [
                jax.lax.dynamic_update_index_in_dim(stack, result, k, 0)
                for stack, result in zip(stacks, found, strict=True)
            ]
            return vectors, stacks, failed | fault

        stacks = [
            jnp.zeros((program.room, *node.shape), number_type(node.dtype))
            for node in program.recorded.results
        ]
        return jax.lax.fori_loop(0, steps, body, (vectors, stacks, jnp.bool_(False)))

    # Vectors are given away: else XLA copies them all at once, in a second thread, and stays there.
    options = dict(jax_setup.COMPILER_OPTIONS)
    if not program.columns:  # then matrices lie as PyTorch has them
        options.pop("xla_cpu_experimental_ynn_fusion_type", None)
    # Said of all arguments alike: else a program is another one where a tensor cannot be shared.
    place = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    return jax.jit(call, in_shardings=place, donate_argnums=0, compiler_options=options)


class Phase:
    """A call of a method, or several in succession, compiled for the tensors of one learner.

    Args:
        entry: the recording of one call.
        numbers: which arguments are arrays.
        room: for how many calls it has room; None: it computes one.
    """

    def __init__(self, entry: Any, numbers: Sequence[int], room: int | None):
        recorded, reading = entry.recorded, entry.reading
        self.room, self.rates, self.draws = room, reading.rates, recorded.draws
        arguments, rates = recorded.used("argument"), recorded.used("rate")
        self.used = [k for k, number in enumerate(numbers) if number in arguments]
        self.given: list[np.ndarray] = []  # the memory of arguments and random numbers
        changed, needed = dict(recorded.state), {*recorded.used("state"), *dict(recorded.state)}
        places = {path: x for path, x in reading.tensors.items() if path in needed}
        modules = [path for path, x in reading.seen.values() if isinstance(x, torch.nn.Module)]
        groups: dict[tuple, list[str]] = {}  # networks, and averages of an optimizer by their kind
        for path, tensor in places.items():
            network = next((each for each in modules if path.startswith(f"{each}.")), None)
            kind = network or re.sub(r"\[.*\]", "", path), type(tensor), tensor.dtype
            groups.setdefault(kind, []).append(path)
        written = [paths for paths in groups.values() if not changed.keys().isdisjoint(paths)]
        single = [path for paths in groups.values() if paths not in written for path in paths]

        def nodes(paths: list[str]) -> tuple[Node, ...]:
            return tuple(Node("input", ("state", path), places[path]) for path in paths)

        self.after: dict[str, torch.Tensor] = {}  # where a call leaves new numbers, by name
        self.vectors, columns = [], []
        for paths in written:
            tensors = [places[path] for path in paths]
            group = Group(tuple(tuple(x.shape) for x in tensors), tensors[0].dtype)
            columns.append((nodes(paths), group))
            vector = torch.zeros(sum(x.numel() for x in tensors), dtype=group.dtype)
            self.vectors.append(vector.numpy())
            for path, piece in zip(paths, group.pieces(vector), strict=True):
                self.after |= dict.fromkeys(reading.shared.get(path, [path]), piece)
        self.written = [reading.tensors[path] for path in self.after]
        self.memories = [  # of the tensors, and of their pieces
            [each.detach().numpy() for each in tensors]
            for tensors in (self.written, self.after.values())
        ]
        fixed = nodes(single) + tuple(rates.values())
        given = *(arguments[numbers[k]] for k in self.used), *self.draws
        self.function = compiled(Program(recorded, tuple(columns), fixed, given, room))
        with jax.enable_x64(True):
            self.singles = [same_memory(places[path].detach()) for path in single]

    def run(self, leaves: Sequence, steps: int) -> list[np.ndarray]:
        """Results; what the tensors would be is then in `after`, and the learner as it was.

        Args:
            leaves: the arrays, of one call or stacked.
            steps: how many calls, or 1.

        Raises:
            NotNow: PyTorch would have raised an error, such as for an index beyond an axis.
        """
        rates = np.array([group["lr"] for group in self.rates], np.float32) if self.rates else ()
        rows = [[drawn(node).numpy() for node in self.draws] for _ in range(steps)]
        draws = [np.stack(each) if self.room else each[0] for each in zip(*rows, strict=True)]
        arrays = [*(leaves[k] for k in self.used), *draws]
        self.given = self.given or [aligned(x, self.room) for x in arrays]
        for memory, array in zip(self.given, arrays, strict=True):
            memory[slice(len(array)) if self.room else ...] = array
        copy_all(*reversed(self.memories))
        with jax.enable_x64(True):
            vectors, results, failed = self.function(
                self.vectors, self.singles, rates, self.given, np.int32(steps)
            )
        if np.asarray(failed):
            raise NotNow
        for numbers, vector in zip(self.vectors, vectors, strict=True):
            numbers[...] = np.asarray(vector)
        first = slice(steps) if self.room else ...
        return [np.array(np.asarray(one)[first]) for one in results]

    def write(self) -> None:
        """Let the learner's tensors have the numbers that the last run has left."""
        copy_all(*self.memories)
        for tensor in self.written:
            increment_version(tensor)


def copy_all(targets: Sequence[np.ndarray], sources: Sequence[np.ndarray]) -> None:
    for target, source in zip(targets, sources, strict=True):
        target[...] = source


def aligned(array: np.ndarray, length: int | None) -> np.ndarray:
    """Memory for such an array, or for so many rows, which begins at a multiple of 64 bytes.

    JAX takes it as it is. Another one, if it is large, is copied in a second thread, in which the
    computation then goes on, on a core that has none of its numbers in its cache.
    """
    kind = torch.from_numpy(np.empty(0, array.dtype)).dtype
    shape = array.shape if length is None else (length, *array.shape[1:])
    return torch.empty(shape, dtype=kind).numpy()


def same_memory(tensor: torch.Tensor) -> Any:
    """JAX's array in the memory of a tensor; NumPy's where JAX cannot take it as it lies there."""
    with contextlib.suppress(Exception):
        array = jax.dlpack.from_dlpack(tensor)
        if array.unsafe_buffer_pointer() == tensor.data_ptr() and tensor.numel():
            return array
    return tensor.numpy()  # which each call takes anew
