"""Recordings as compiled calls, which read the tensors' own memory and write into it."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import torch

from tapejit.jax_setup import aligned, options
from tapejit.private import copy_all
from tapejit.reading import Reading
from tapejit.recording import CannotRecord, Node, Recorded, drawn
from tapejit.to_jax import ALLOWED, Column, Group, Translation, check, is_wide, number_type, wide

__all__ = ["ALLOWED", "Phase", "check"]  # what `jax_setup.phases` gives


class Program(NamedTuple):
    """What is compiled; equal ones are compiled once."""

    recordings: tuple[Recorded, ...]
    columns: tuple[Column, ...]  # tensors that change, by their nodes as inputs
    singles: tuple[Node, ...]  # other tensors that are read
    numbers: tuple[int, ...]  # which arguments are arrays
    scan: bool
    faulty: bool  # whether an operation may fail, where PyTorch raises an error

    def step(self, recorded: Recorded, vectors, singles, rates, data, draws):
        """Vectors after one call, its results, and whether it failed."""
        given = dict(zip(self.numbers, data, strict=True))
        values = {
            node: (rates if node.args[0] == "rate" else given)[node.args[1]]
            for node in recorded.nodes()
            if node.target == "input" and node.args[0] != "state"
        }
        values |= zip(self.singles + recorded.draws, (*singles, *draws), strict=True)
        changed = dict(recorded.state)
        after = [
            (tuple(changed.get(node.args[1], node) for node in nodes), group)
            for nodes, group in self.columns
        ]
        before = list(zip(self.columns, vectors, strict=True))
        *found, failed = Translation(values, before).outputs(after, recorded.results)
        return *found, [failed] if self.faulty else []


@functools.cache
def compiled(program: Program) -> Any:
    """The program as a call of JAX."""

    def call(vectors, singles, rates, data, draws, which, steps):
        if not program.scan:
            return program.step(program.recordings[0], vectors, singles, rates, data, draws[0])

        def body(k, carried):
            vectors, stacks, failed = carried

            def row(arrays):
                return [jax.lax.dynamic_index_in_dim(each, k, 0, False) for each in arrays]

            branches = [
                lambda r=recorded, d=drawn: program.step(
                    r, vectors, singles, rates, row(data), row(d)
                )
                for recorded, drawn in zip(program.recordings, draws, strict=True)
            ]
            one = len(branches) == 1
            vectors, found, faults = branches[0]() if one else jax.lax.switch(which[k], branches)
            stacks = [
                jax.lax.dynamic_update_index_in_dim(stack, result, k, 0)
                for stack, result in zip(stacks, found, strict=True)
            ]
            return vectors, stacks, [a | b for a, b in zip(failed, faults, strict=True)]

        stacks = [
            jnp.zeros((len(which), *node.shape), number_type(node.dtype))
            for node in program.recordings[0].results
        ]
        failed = [jnp.bool_(False)] * program.faulty
        return jax.lax.fori_loop(0, steps, body, (vectors, stacks, failed))

    # Vectors are given away: else XLA copies them all at once, in a second thread, and stays there.
    chosen = options(bool(program.columns))
    return jax.jit(call, donate_argnums=0, compiler_options=chosen)


class Phase:
    """A call of a method, or several in succession, compiled for the tensors of one learner.

    Args:
        recordings: of the method, one for each variant.
        reading: what the learner has.
        replaced: names of tensors in whose place a new one is put.
        numbers: which arguments are arrays.
        scan: whether it computes several calls.
    """

    def __init__(
        self,
        recordings: Sequence[Recorded],
        reading: Reading,
        replaced: Collection[str],
        numbers: Sequence[int],
        scan: bool,
    ):
        self.recordings, self.rates, places = recordings, reading.rates, reading.tensors
        self.draws = any(recorded.draws for recorded in recordings)
        results = [[(x.shape, x.dtype) for x in recorded.results] for recorded in recordings]
        if any(one != results[0] for one in results):
            raise CannotRecord("a flag decides what is returned")
        used = {path for recorded in recordings for path in recorded.used("state")}
        changed = {path for recorded in recordings for path, _ in recorded.state}
        groups: dict[tuple, list[str]] = {}
        for path in (path for path in places if path in used | changed):
            kind = places[path].group, places[path].tensor.dtype
            groups.setdefault(kind, []).append(path)
        written = [paths for paths in groups.values() if not changed.isdisjoint(paths)]
        single = [path for paths in groups.values() if paths not in written for path in paths]

        def nodes(paths: list[str]) -> tuple[Node, ...]:
            return tuple(Node("input", ("state", path), places[path].tensor) for path in paths)

        self.after: dict[str, torch.Tensor] = {}  # where a call leaves new numbers, by name
        self.vectors, columns = [], []
        for paths in written:
            tensors = [places[path].tensor for path in paths]
            group = Group(tuple(tuple(x.shape) for x in tensors), tensors[0].dtype)
            columns.append((nodes(paths), group))
            vector = torch.zeros(group.size, dtype=group.dtype)
            self.vectors.append(vector.numpy())
            for path, piece in zip(paths, group.pieces(vector), strict=True):
                self.after |= dict.fromkeys(reading.shared.get(path, [path]), piece)
        self.replaced = [(places[path], self.after[path]) for path in replaced]
        kept = [path for path in self.after if path not in replaced]
        first = [path for paths in written for path in paths if path not in replaced]
        self.loaded = [self.after[path] for path in first], [places[x].tensor for x in first]
        self.kept = [places[path].tensor for path in kept], [self.after[path] for path in kept]
        faulty = any([check(recorded) for recorded in recordings])
        program = Program(
            tuple(recordings), tuple(columns), nodes(single), tuple(numbers), scan, faulty
        )
        self.function = compiled(program)
        self.context = functools.partial(wide, is_wide(recordings))
        self.singles: list[Any] = []  # of JAX, at best in PyTorch's memory
        self.copied: list[tuple[int, torch.Tensor]] = []  # where it is not
        with self.context():
            for k, path in enumerate(single):
                self.singles.append(same_memory(tensor := places[path].tensor.detach()))
                if self.singles[k] is None:
                    self.copied.append((k, tensor))

    def run(self, leaves: Sequence, which: np.ndarray | None, steps: int) -> list[np.ndarray]:
        """Results; what the tensors would be is then in `after`, and the learner as it was.

        Args:
            leaves: the arrays, of one call or stacked.
            which: recording of each step; its length is the room for steps.

        Raises:
            ArithmeticError: PyTorch would have raised an error.
        """
        rates = np.array([group["lr"] for group in self.rates], np.float32) if self.rates else ()
        if which is None:
            data = [aligned(x) if x.nbytes > 16_384 else x for x in leaves]
        else:
            data = [aligned(x, len(which)) for x in leaves]
        draws = self.draw(which, steps) if self.draws else [()] * len(self.recordings)
        for k, tensor in self.copied:
            self.singles[k] = tensor.numpy().copy()
        for place, piece in self.replaced:
            piece.copy_(place.now())
        if self.loaded[0]:
            copy_all(*self.loaded)
        last = None if which is None else np.int32(steps)
        with self.context():
            vectors, results, failed = self.function(
                self.vectors, self.singles, rates, data, draws, which, last
            )
        if failed and failed[0]:
            raise ArithmeticError
        for numbers, vector in zip(self.vectors, vectors, strict=True):
            numbers[...] = np.asarray(vector)
        rows = ... if which is None else slice(steps)
        return [np.array(np.asarray(one)[rows]) for one in results]

    def draw(self, which: np.ndarray | None, steps: int) -> list[list[np.ndarray]]:
        """All random numbers of a phase, in the order in which PyTorch's steps would draw them."""
        if which is None:
            return [[drawn(node).numpy() for node in self.recordings[0].draws]]
        draws = [
            [torch.empty((len(which), *x.shape), dtype=x.dtype).numpy() for x in recorded.draws]
            for recorded in self.recordings
        ]
        for k in range(steps):
            nodes = self.recordings[which[k]].draws
            for array, node in zip(draws[which[k]], nodes, strict=True):
                array[k] = drawn(node).numpy()
        return draws

    @torch.no_grad()
    def write(self) -> None:
        """Let the learner's tensors have the numbers that the last run has left."""
        for place, piece in self.replaced:
            place.holder.put(place.key, piece.clone())
        if self.kept[0]:
            copy_all(*self.kept)


def same_memory(tensor: torch.Tensor) -> Any:
    """JAX's array in the memory of a tensor, or None where JAX cannot take it as it lies there."""
    with contextlib.suppress(Exception):
        array = jax.dlpack.from_dlpack(tensor)
        if array.unsafe_buffer_pointer() == tensor.data_ptr() and tensor.numel():
            return array
    return None
