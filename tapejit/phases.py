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
from tapejit.to_jax import (
    ALLOWED,
    Column,
    Group,
    Translation,
    check,
    is_wide,
    may_fail,
    number_type,
    wide,
)

__all__ = ["ALLOWED", "Phase", "check"]  # what `jax_setup.phases` gives


class Program(NamedTuple):
    """What is compiled; equal ones are compiled once."""

    recordings: tuple[Recorded, ...]
    columns: tuple[Column, ...]  # tensors that change, by their nodes as inputs
    fresh: tuple[bool, ...]  # which of them no recording reads, and that may not be there before
    singles: tuple[Node, ...]  # other tensors that are read
    numbers: tuple[int, ...]  # which arguments are arrays
    scan: bool
    faulty: bool  # whether an operation may fail, where PyTorch raises an error


@functools.cache
def compiled(program: Program) -> Any:
    """The program as a call of JAX."""

    def step(recorded: Recorded, vectors, singles, rates, data, draws):
        nodes = {node.args: node for node in recorded.nodes() if node.target == "input"}
        values = dict(zip(program.singles, singles, strict=True))
        for kind, given in (
            ("rate", enumerate(rates)),
            ("argument", zip(program.numbers, data, strict=True)),
        ):
            values |= {nodes[kind, k]: one for k, one in given if (kind, k) in nodes}
        values |= zip(recorded.draws, draws, strict=True)
        changed = dict(recorded.state)
        after = [
            (tuple(changed.get(node.args[1], node) for node in column), group)
            for column, group in program.columns
        ]
        given = [(column, vector) for column, vector in zip(program.columns, vectors, strict=True)]
        *found, failed = Translation(values, given).outputs(after, recorded.results)
        return *found, [failed] if program.faulty else []

    def call(pieces, singles, rates, data, draws, which, steps):
        vectors = [
            jnp.zeros(group.size, number_type(group.dtype)) if new else group.vector(given)
            for (_, group), new, given in zip(program.columns, program.fresh, pieces, strict=True)
        ]
        if not program.scan:
            return step(program.recordings[0], vectors, singles, rates, data, draws[0])

        def body(k, carried):
            vectors, results, failed = carried

            def row(arrays):
                return [jax.lax.dynamic_index_in_dim(each, k, 0, False) for each in arrays]

            branches = [
                lambda recorded=recorded, drawn=drawn: step(
                    recorded, vectors, singles, rates, row(data), row(drawn)
                )
                for recorded, drawn in zip(program.recordings, draws, strict=True)
            ]
            new, found, fault = (
                branches[0]() if len(branches) == 1 else jax.lax.switch(which[k], branches)
            )
            results = [
                jax.lax.dynamic_update_index_in_dim(stack, one, k, 0)
                for stack, one in zip(results, found, strict=True)
            ]
            return new, results, [a | b for a, b in zip(failed, fault, strict=True)]

        length = len(which)
        results = [
            jnp.zeros((length, *node.shape), number_type(node.dtype))
            for node in program.recordings[0].results
        ]
        failed = [jnp.bool_(False)] if program.faulty else []
        return jax.lax.fori_loop(0, steps, body, (vectors, results, failed))

    return jax.jit(call, compiler_options=options())


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
        self.places, self.shared, self.replaced, self.rates = places, shared, replaced, rates
        self.recordings, self.numbers = recordings, numbers
        self.draws = any(recorded.draws for recorded in recordings)
        results = [[(x.shape, x.dtype) for x in recorded.results] for recorded in recordings]
        if any(one != results[0] for one in results):
            raise CannotRecord("it returns different things with and without a flag")
        used = {path for recorded in recordings for path in recorded.used("state")}
        changed = {path for recorded in recordings for path, _ in recorded.state}
        nodes = {
            path: Node("input", ("state", path), places[path].tensor) for path in used | changed
        }
        groups: dict[tuple, list[str]] = {}
        for path in (path for path in places if path in nodes):
            new = path in replaced and path not in used
            kind = ("new", path) if new else (places[path].group, places[path].tensor.dtype)
            groups.setdefault(kind, []).append(path)
        written = {kind: paths for kind, paths in groups.items() if not changed.isdisjoint(paths)}
        self.written = list(written.values())
        self.groups = [
            Group(tuple(tuple(nodes[path].shape) for path in paths), nodes[paths[0]].dtype)
            for paths in self.written
        ]
        columns = [
            (tuple(nodes[path] for path in paths), group)
            for paths, group in zip(self.written, self.groups, strict=True)
        ]
        singles = [path for kind, paths in groups.items() if kind not in written for path in paths]
        self.program = Program(
            tuple(recordings),
            tuple(columns),
            tuple(kind[0] == "new" for kind in written),
            tuple(nodes[path] for path in singles),
            tuple(numbers),
            scan,
            any(map(may_fail, recordings)),
        )
        self.function = compiled(self.program)
        self.wide = is_wide(recordings)
        with wide(self.wide):
            self.pieces = [
                [] if new else [memory_in_jax(places[path].tensor) for path in paths]
                for paths, new in zip(self.written, self.program.fresh, strict=True)
            ]
            self.singles = [memory_in_jax(places[path].tensor) for path in singles]

    def run(self, leaves: Sequence, which: np.ndarray | None, steps: int) -> tuple[list, list]:
        """Results, and a vector for each group that changes; nothing is written.

        Args:
            leaves: the arrays, of one call or stacked.
            which: recording of each step; its length is the room for steps.

        Raises:
            ArithmeticError: PyTorch would have raised an error.
        """
        rates = np.array([group["lr"] for group in self.rates], np.float32) if self.rates else ()
        draws: list[list[Any]] = [[] for _ in self.recordings]
        if which is None:
            data = [aligned(x) if x.nbytes > 16_384 else x for x in leaves]
            if self.draws:
                draws = [[drawn(node).numpy() for node in self.recordings[0].draws]]
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
        return [np.array(one if which is None else one[:steps]) for one in results], vectors

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

    def numbers_of(self, vectors: Sequence) -> dict[str, torch.Tensor]:
        """What the tensors that change would be afterwards, by name."""
        found = {}
        for paths, group, vector in zip(self.written, self.groups, vectors, strict=True):
            pieces = group.pieces(torch.from_dlpack(vector))
            for path, piece in zip(paths, pieces, strict=True):
                found |= dict.fromkeys(self.shared.get(path, [path]), piece)
        return found

    @torch.no_grad()
    def write(self, vectors: Sequence) -> None:
        """Let the learner's tensors have these numbers."""
        found = self.numbers_of(vectors)
        for path in self.replaced & found.keys():
            place = self.places[path]
            place.tensor = found.pop(path).clone()
            place.box.put(place.key, place.tensor)
        if found:
            copy_all([self.places[path].tensor for path in found], list(found.values()))


def memory_in_jax(tensor: torch.Tensor) -> Callable[[], Any]:
    """What gives JAX's array with the numbers of a tensor: at best the same memory."""
    tensor = tensor.detach()
    with contextlib.suppress(Exception):  # JAX cannot take it as it lies there
        array = jax.dlpack.from_dlpack(tensor)
        if array.unsafe_buffer_pointer() == tensor.data_ptr() and tensor.numel():
            return lambda: array
    return lambda: tensor.numpy().copy()
