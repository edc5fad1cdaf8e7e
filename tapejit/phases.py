"""Recordings as compiled calls, which read the tensors' own memory and write into it."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import torch

from tapejit.jax_setup import aligned, options
from tapejit.private import copy_all
from tapejit.reading import Tensor
from tapejit.recording import CannotRecord, Node, Recorded, drawn
from tapejit.to_jax import ALLOWED, Column, Group, Translation, check, is_wide, number_type, wide

__all__ = ["ALLOWED", "Phase", "check"]  # what `jax_setup.phases` gives


class Program(NamedTuple):
    """What is compiled; equal ones are compiled once."""

    recordings: tuple[Recorded, ...]
    columns: tuple[Column, ...]  # tensors that change, by their nodes as inputs
    fresh: tuple[bool, ...]  # columns that are not read, and may not be there before
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

    def call(pieces, singles, rates, data, draws, which, steps):
        vectors = [
            jnp.zeros(group.size, number_type(group.dtype)) if new else group.vector(given)
            for (_, group), new, given in zip(program.columns, program.fresh, pieces, strict=True)
        ]
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

    return jax.jit(call, compiler_options=options(bool(program.columns)))


class Phase:
    """A call of a method, or several in succession, compiled for the tensors of one learner.

    Args:
        recordings: of the method, one for each variant.
        places: of all tensors that the recordings read or change, by name.
        shared: all names of tensors that are one number, by the first name.
        replaced: names of tensors in whose place a new one is put.
        rates: groups of parameters with learning rates.
        numbers: which arguments are arrays.
        scan: whether it computes several calls.
    """

    def __init__(
        self,
        recordings: Sequence[Recorded],
        places: dict[str, Tensor],
        shared: dict[str, list[str]],
        replaced: set[str],
        rates: list[dict],
        numbers: Sequence[int],
        scan: bool,
    ):
        self.recordings, self.rates = recordings, rates
        self.replaced = {path: places[path] for path in replaced}
        self.draws = any(recorded.draws for recorded in recordings)
        results = [[(x.shape, x.dtype) for x in recorded.results] for recorded in recordings]
        if any(one != results[0] for one in results):
            raise CannotRecord("a flag decides what is returned")
        used = {path for recorded in recordings for path in recorded.used("state")}
        changed = {path for recorded in recordings for path, _ in recorded.state}
        groups: dict[tuple, list[str]] = {}
        for path in (path for path in places if path in used | changed):
            new = path in replaced and path not in used
            kind = ("new", path) if new else (places[path].group, places[path].tensor.dtype)
            groups.setdefault(kind, []).append(path)
        written = {kind: paths for kind, paths in groups.items() if not changed.isdisjoint(paths)}
        single = [path for kind, paths in groups.items() if kind not in written for path in paths]

        def nodes(paths: list[str]) -> tuple[Node, ...]:
            return tuple(Node("input", ("state", path), places[path].tensor) for path in paths)

        def memory(paths: list[str]) -> list[Callable[[], Any]]:
            return [memory_in_jax(places[path].tensor) for path in paths]

        self.after: dict[str, torch.Tensor] = {}  # where a call leaves new numbers, by name
        self.vectors, columns = [], []
        for paths in written.values():
            tensors = [places[path].tensor for path in paths]
            group = Group(tuple(tuple(x.shape) for x in tensors), tensors[0].dtype)
            columns.append((nodes(paths), group))
            vector = torch.empty(group.size, dtype=group.dtype)
            self.vectors.append(vector.numpy())
            for path, piece in zip(paths, group.pieces(vector), strict=True):
                self.after |= dict.fromkeys(shared.get(path, [path]), piece)
        kept = [path for path in self.after if path not in replaced]
        self.kept = [places[path].tensor for path in kept], [self.after[path] for path in kept]
        fresh = tuple(kind[0] == "new" for kind in written)
        faulty = any([check(recorded) for recorded in recordings])
        program = Program(
            tuple(recordings), tuple(columns), fresh, nodes(single), tuple(numbers), scan, faulty
        )
        self.function, self.wide = compiled(program), is_wide(recordings)
        with wide(self.wide):
            self.pieces = [
                [] if new else memory(paths)
                for paths, new in zip(written.values(), fresh, strict=True)
            ]
            self.singles = memory(single)

    def run(self, leaves: Sequence, which: np.ndarray | None, steps: int) -> list[np.ndarray]:
        """Results; what the tensors would be is then in `after`, and the learner as it was.

        Args:
            leaves: the arrays, of one call or stacked.
            which: recording of each step; its length is the room for steps.

        Raises:
            ArithmeticError: PyTorch would have raised an error.
        """
        rates = np.array([group["lr"] for group in self.rates], np.float32) if self.rates else ()
        draws: list[list[np.ndarray]] = [[] for _ in self.recordings]
        if which is None:
            data = [aligned(x) if x.nbytes > 16_384 else x for x in leaves]
            draws[0] = [drawn(node).numpy() for node in self.recordings[0].draws]
        else:
            data = [aligned(x, len(which)) for x in leaves]
            if self.draws:
                draws = self.draw(which, steps)
        with wide(self.wide):
            pieces = [[one() for one in column] for column in self.pieces]
            singles = [one() for one in self.singles]
            vectors, results, failed = self.function(
                pieces, singles, rates, data, draws, which, np.int32(steps)
            )
        if failed and failed[0]:
            raise ArithmeticError
        for memory, vector in zip(self.vectors, vectors, strict=True):
            memory[...] = np.asarray(vector)
        rows = ... if which is None else slice(steps)
        return [np.array(np.asarray(one)[rows]) for one in results]

    def draw(self, which: np.ndarray, steps: int) -> list[list[np.ndarray]]:
        """All random numbers of a phase, in the order in which PyTorch's steps would draw them."""
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
        for path, place in self.replaced.items():
            assert place.box is not None
            place.box.put(place.key, self.after[path].clone())
        if self.kept[0]:
            copy_all(*self.kept)


def memory_in_jax(tensor: torch.Tensor) -> Callable[[], Any]:
    """What gives JAX's array with the numbers of a tensor: at best the same memory."""
    tensor = tensor.detach()
    with contextlib.suppress(Exception):  # JAX cannot take it as it lies there
        array = jax.dlpack.from_dlpack(tensor)
        if array.unsafe_buffer_pointer() == tensor.data_ptr() and tensor.numel():
            return lambda: array
    return lambda: tensor.numpy().copy()
