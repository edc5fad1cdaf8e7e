"""The learner that `tapejit.compile` returns: methods are recorded, compiled, guarded and checked.

There is one truth, the tensors that the learner holds. A compiled call reads their memory and
writes what has changed back into them; it keeps no numbers of its own between two calls.
"""

from __future__ import annotations

import sys
import types
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from tapejit import checking, jax_setup
from tapejit.private import memory_of, tree_flatten, tree_map, tree_unflatten
from tapejit.reading import ATOMS, Guard, Reading, Saved, Tensor, differences, told
from tapejit.recording import CannotRecord, Node, Recorded, drawn, is_library, record

TRIES = 5  # calls until two in succession must have been the same
RENEWALS = 3  # recordings made anew because something has changed
ROOM = 64  # steps for which a phase has room, or a power of two above; fewer may be taken


class NotNow(Exception):
    """PyTorch computes this call: the next one begins otherwise, or this one fails."""


class Given(NamedTuple):
    """Arguments of a call, or stacked ones of several: the leaves of a structure."""

    leaves: list
    structure: Any
    numbers: list[int]  # which leaves are arrays
    flags: list[int]  # and which are a Python bool in each call
    steps: int | None  # None: one call

    def leaves_of(self, step: int) -> list:
        """The leaves of one call, with tensors that share no memory with the caller's arrays."""
        leaves = list(self.leaves)
        for k in self.numbers:
            value = leaves[k] if self.steps is None else leaves[k][step]
            known = isinstance(value, torch.Tensor)
            leaves[k] = value.detach().clone() if known else torch.from_numpy(np.array(value))
        for k in self.flags:
            leaves[k] = bool(leaves[k][step])
        return leaves

    def arguments(self, leaves: list) -> Sequence:
        return leaves if self.structure is None else tree_unflatten(leaves, self.structure)

    def arrays(self) -> list[np.ndarray]:
        found = [self.leaves[k] for k in self.numbers]
        return [x.detach().numpy() if isinstance(x, torch.Tensor) else x for x in found]

    def variants(self) -> list[tuple[bool, ...]]:
        """What the flags are in each call."""
        flags = [self.leaves[k].tolist() for k in self.flags]
        return list(zip(*flags, strict=True)) if flags else [()] * (self.steps or 1)


def given(arguments: tuple, scan: bool) -> Given:
    plain = all([isinstance(x, (np.ndarray, torch.Tensor, *ATOMS)) for x in arguments])
    leaves, structure = (list(arguments), None) if plain else tree_flatten(arguments)
    numbers = [k for k, x in enumerate(leaves) if isinstance(x, (np.ndarray, torch.Tensor))]
    if not scan:
        return Given(leaves, structure, numbers, [], None)
    lengths = {len(leaves[k]) if leaves[k].ndim else 0 for k in numbers}
    if len(lengths) != 1 or 0 in lengths:
        told = [tuple(leaves[k].shape) for k in numbers]
        raise ValueError(f"scan needs arrays with one number of steps, at least 1, not {told}")
    flags = [
        k
        for k in numbers
        if isinstance(leaves[k], np.ndarray) and leaves[k].dtype == bool and leaves[k].ndim == 1
    ]
    numbers = [k for k in numbers if k not in flags]
    return Given(leaves, structure, numbers, flags, lengths.pop())


class Trial(NamedTuple):
    """One recorded call."""

    recorded: Recorded
    reading: Reading  # before it
    replaced: dict[str, Tensor]  # in whose places it puts new tensors
    grads: list[torch.Tensor]  # tensors whose gradients it sets
    leaves: list  # of its result: None for a tensor
    structure: Any


class Entry(NamedTuple):
    """A recording of a method, and what it holds for."""

    trial: Trial
    free: dict[str, Tensor]  # that it replaces without reading them
    guard: Guard

    def bound(self, reading: Reading) -> Entry:
        """The same for a learner that has other objects in its places."""
        trial, free = self.trial._replace(reading=reading), dict(self.free)
        for path in free.keys() & reading.places.keys():
            free[path] = Tensor(free[path].tensor, free[path].group, *reading.places[path])
        return Entry(trial, free, Guard(reading, free))


class Learner:
    """Calls methods of a learner with arrays.

    Attributes:
        learner: the object whose methods are called. Its tensors always have the newest numbers.
        engine: "compiled", or "torch" from the first call on that cannot be compiled.
        reason: why PyTorch computes, or None.
    """

    def __init__(self, learner: Any, engine: str = "auto"):
        if engine not in ("auto", "compiled", "torch"):
            raise ValueError(f"engine must be 'auto', 'compiled' or 'torch', not {engine!r}")
        self.learner, self.strict = learner, engine == "compiled"
        self.engine = "torch" if engine == "torch" else "compiled"
        self.reason: str | None = None
        self.entries: dict[tuple, list[Entry]] = {}
        self.phases: dict[tuple, tuple[list[Entry], Any]] = {}
        self.renewed: Counter[str] = Counter()
        self.waited: Counter[str] = Counter()
        self.apart: set[tuple] = set()
        self.schedule = checking.Schedule()
        if self.engine == "compiled" and (reason := jax_setup.why_no_jax()):
            self.give_way(reason)

    def call(self, method: str, *arguments: Any) -> Any:
        """What a method returns for arrays (NumPy's or tensors), numbers and None.

        Tuples, lists, dicts and named tuples of these are fine, too. Tensors in the result become
        arrays. The method may change the learner, but not the arguments, of which it gets copies.
        """
        return self.compute(method, given(arguments, scan=False))

    def scan(self, method: str, *arguments: Any) -> Any:
        """The method called once for each row of the arguments' arrays, and the results stacked.

        An array of bool with one axis gives each call a Python bool. Numbers and None are the same
        in all calls.

        Raises:
            ValueError: the arrays differ in the length of their first axis, or it is 0.
        """
        return self.compute(method, given(arguments, scan=True))

    def compute(self, method: str, call: Given) -> Any:
        failed = None
        if self.engine == "compiled":
            try:
                return self.compiled(method, call)
            except NotNow as reason:
                failed = reason.__cause__
            except CannotRecord as reason:
                self.give_way(str(reason))
        result = self.by_torch(method, call)
        if failed is not None:  # in the recording alone
            told = str(failed).strip().partition("\n")[0]
            self.give_way(
                f"{method} cannot be recorded ({type(failed).__name__}: {told})", late=True
            )
        return result

    def by_torch(self, method: str, call: Given, steps: int | None = None) -> Any:
        function = getattr(self.learner, method)
        if call.steps is None:
            return tree_map(array_of, function(*call.arguments(call.leaves_of(0))))
        rows = [
            tree_flatten(tree_map(array_of, function(*call.arguments(call.leaves_of(k)))))
            for k in range(steps or call.steps)
        ]
        columns = zip(*(leaves for leaves, _ in rows), strict=True)
        return tree_unflatten([stacked(column) for column in columns], rows[0][1])

    def give_way(self, reason: str, late: bool = False) -> None:
        """Leave all to PyTorch from here on, and say why."""
        self.engine, self.reason = "torch", reason
        self.entries, self.phases = {}, {}
        if self.strict and not late:
            raise ValueError(f"engine = 'compiled' cannot be: {reason}; choose 'torch' or 'auto'")
        print(f"engine: torch, because {reason}; a compiled step is several times as fast")

    # ------------------------------------------------------------------------------- compiled calls

    def compiled(self, method: str, call: Given) -> Any:
        entries, phase = self.phase(method, call)
        which, steps = None, call.steps or 1
        if call.steps:
            which = np.zeros(capacity(call.steps), np.int32)
            if len(entries) > 1:
                kinds, variants = sorted(set(call.variants())), call.variants()
                which[: call.steps] = [kinds.index(one) for one in variants]
        chance = torch.get_rng_state() if phase.draws else None
        try:
            if tried := self.schedule.due(method, steps):
                checking.check(self, method, call, entries, phase, which, min(tried, steps))
            results = phase.run(call.arrays(), which, steps)
        except ArithmeticError:  # such as an index beyond an axis: PyTorch will tell
            if chance is not None:
                torch.set_rng_state(chance)
            raise NotNow from None
        phase.write()
        for entry in entries:
            for tensor in entry.trial.grads:
                tensor.grad = None  # PyTorch's would be newer
        return self.result(entries[0].trial, results, call.steps)

    def result(self, trial: Trial, results: list, steps: int | None) -> Any:
        if trial.structure is None:
            return results[0]
        arrays = iter(results)
        leaves = [
            next(arrays) if leaf is Tensor else stacked([leaf] * steps) if steps else leaf
            for leaf in trial.leaves
        ]
        return tree_unflatten(leaves, trial.structure)

    def phase(self, method: str, call: Given) -> tuple[list[Entry], Any]:
        """Recordings for such arguments, one for each variant of the flags, as a compiled call."""
        steps, scan = call.steps, call.steps is not None
        torchs = torch.is_grad_enabled(), torch.get_default_dtype(), torch.is_autocast_enabled()
        shapes = [
            (x.shape[scan:], x.dtype) if isinstance(x, (np.ndarray, torch.Tensor)) else (type(x), x)
            for x in call.leaves
        ]
        key = method, call.structure, tuple(shapes), tuple(call.flags), torchs
        kinds = sorted(set(call.variants())) if scan else [()]
        place = key, tuple(kinds), steps and capacity(steps)
        known = self.phases.get(place)
        if known and all([entry.guard.holds() for entry in known[0]]):
            return known
        entries = [self.entry((key, scan, kind), method, call, kind) for kind in kinds]
        self.phases[place] = entries, self.compiled_phase(entries, call)
        return self.phases[place]

    def compiled_phase(self, entries: list[Entry], call: Given) -> Any:
        trials = [entry.trial for entry in entries]
        if any(
            (each.leaves, each.structure) != (trials[0].leaves, trials[0].structure)
            for each in trials
        ):
            raise CannotRecord("a flag decides what is returned")
        reading = trials[0].reading
        return jax_setup.phases().Phase(
            [trial.recorded for trial in trials],
            reading.tensors | {path: x for entry in entries for path, x in entry.free.items()},
            reading.shared,
            {path for each in trials for path in each.replaced},
            reading.rates,
            call.numbers,
            call.steps is not None,
        )

    # ------------------------------------------------------------------------------------ recording

    def entry(self, key: tuple, method: str, call: Given, variant: tuple) -> Entry:
        """The recording for such a call; a new one where what it holds has changed."""
        known = self.entries.setdefault(key, [])
        reading, changed = Reading(self.learner, method, self.apart), [""]
        for k, entry in enumerate(known):
            changed = differences(entry.trial.reading.facts, reading.facts)
            if entry.free.keys() >= set(changed):
                known[k] = entry.bound(reading)
                return known[k]
        if known:
            self.renewed[method] += 1
            if self.renewed[method] > RENEWALS:
                raise CannotRecord(f"{changed[0]}, which {method} reads, changes again and again")
        known.append(self.record(reading, method, call, variant))
        return known[-1]

    def record(self, reading: Reading, method: str, call: Given, variant: tuple) -> Entry:
        """Record calls until two in succession do the same, and undo all that they did."""
        leaves = call.leaves_of(0)
        for k, flag in zip(call.flags, variant, strict=True):
            leaves[k] = flag
        saved, trials, readings = Saved(reading), [], [reading]
        free: dict[str, Tensor] | None = None
        try:
            with saved.undone():
                while free is None:
                    if len(trials) == TRIES:
                        changed = differences(readings[-2].facts, readings[-1].facts)
                        raise CannotRecord(
                            f"{method} changes {changed[0]}"
                            if changed
                            else f"two calls of {method} one after the other do different things"
                        )
                    trial, after = self.trial(readings[-1], method, call, leaves)
                    trials.append(trial)
                    readings.append(after)
                    if saved.chance_is_used():
                        raise CannotRecord(f"{method} draws random numbers of Python or NumPy")
                    free = settled(trials[-2:], readings[-3:])
        except CannotRecord:
            raise
        except Exception as error:  # the learner's own, or that of a recording: PyTorch will tell
            raise NotNow from error
        jax_setup.phases().check(trials[-1].recorded)
        if len(trials) > 2:  # such as an optimizer before its first step
            self.waited[method] += 1
            if self.waited[method] > TRIES:
                raise CannotRecord(f"{method} never ends as it begins")
            raise NotNow
        return Entry(trials[0], free, Guard(reading, free))

    def trial(
        self, before: Reading, method: str, call: Given, leaves: list
    ) -> tuple[Trial, Reading]:
        """Record one call, and read what there is afterwards."""
        first = {path: each[0] for each in before.shared.values() for path in each}
        inputs = [
            (Node("input", ("state", first.get(path, path)), place.tensor), place.tensor)
            for path, place in before.tensors.items()
        ]
        leaves = list(leaves)
        for k in call.numbers:
            leaves[k] = leaves[k].clone()
            inputs.append((Node("input", ("argument", k), leaves[k]), leaves[k]))
        groups = [(group, dict(group)) for group in before.rates]
        tensors = {path: place.tensor for path, place in before.tensors.items()}
        were = {path: (told([x]), x.grad) for path, x in tensors.items()}
        chance, ran = torch.get_rng_state(), set()

        def watch(frame: types.FrameType, event: str, _: Any) -> None:
            if event == "call" and not is_library(frame.f_code.co_filename):
                ran.add(frame.f_code)

        try:
            for k, (group, _) in enumerate(groups):
                rate = torch.tensor(float(group["lr"]))
                group |= {"lr": rate} | {x: False for x in ("foreach", "fused") if x in group}
                inputs.append((Node("input", ("rate", k), rate), rate))
            function = getattr(self.learner, method)
            watched = sys.getprofile()
            sys.setprofile(watch)
            try:
                result, tape = record(
                    lambda: function(*call.arguments(leaves)),
                    inputs,
                    jax_setup.phases().ALLOWED,
                )
            finally:
                sys.setprofile(watched)
            for (group, _), (node, rate) in zip(
                groups, inputs[len(inputs) - len(groups) :], strict=True
            ):
                if group["lr"] is not rate or tape.read(rate) is not node:
                    raise CannotRecord(f"{method} itself sets a learning rate")
        finally:
            for group, were_there in groups:
                group |= {x: were_there[x] for x in ("lr", "foreach", "fused") if x in group}
        if strange := [code for code in ran - before.codes if code.co_filename != "<string>"]:
            raise CannotRecord(f"{strange[0].co_qualname} runs, and nothing names it")
        after = Reading(self.learner, method, self.apart)
        state, replaced = [], {}
        shares = Counter(memory_of(place.tensor) for place in after.tensors.values())
        for path, place in after.tensors.items():
            node, known = tape.read(place.tensor), tensors.get(path)
            old = Node("input", ("state", first.get(path, path)), place.tensor)
            if known is not place.tensor:
                if place.box is None:
                    raise CannotRecord(f"{method} changes {path}")
                replaced[path] = place
            elif told([known]) != were[path][0]:
                raise CannotRecord(f"{method} changes what {path} is")
            elif node is old:
                continue
            elif shares[memory_of(known)] > 1:
                raise CannotRecord(f"{path} shares memory with another tensor, and is changed")
            if first.get(path, path) == path:
                state.append((path, node))
            elif node is not dict(state).get(first[path]):
                self.apart.add(place.group)
        end = torch.get_rng_state()
        torch.set_rng_state(chance)
        for node in tape.draws:
            drawn(node)
        if not torch.equal(torch.get_rng_state(), end):
            raise CannotRecord(f"{method} uses PyTorch's generator in a way of its own")
        alone = isinstance(result, torch.Tensor)
        found, structure = ([result], None) if alone else tree_flatten(result)
        for one in found:
            if not isinstance(one, (torch.Tensor, *ATOMS)):
                raise CannotRecord(f"{method} returns a {type(one).__name__}")
        results = tuple(tape.read(one) for one in found if isinstance(one, torch.Tensor))
        return Trial(
            Recorded(tuple(state), results, tuple(tape.draws)),
            before,
            replaced,
            [tensor for path, tensor in tensors.items() if tensor.grad is not were[path][1]],
            [Tensor if isinstance(one, torch.Tensor) else one for one in found],
            structure,
        ), after


def settled(trials: list[Trial], readings: list[Reading]) -> dict[str, Tensor] | None:
    """Whether two calls did the same: tensors that they replace without reading them, or None."""
    if len(trials) < 2:
        return None
    one, other = trials
    if (one.recorded, one.leaves, one.structure) != (other.recorded, other.leaves, other.structure):
        return None
    read = set(one.recorded.used("state"))
    free = {path: place for path, place in other.replaced.items() if path not in read}
    for before, after in zip(readings, readings[1:], strict=False):
        if not free.keys() >= set(differences(before.facts, after.facts)):
            return None
    return free


def capacity(steps: int) -> int:
    """For how many steps a phase has room."""
    return max(ROOM, 1 << (steps - 1).bit_length())


def array_of(value: Any) -> Any:
    return value.detach().numpy().copy() if isinstance(value, torch.Tensor) else value


def stacked(values: Sequence) -> Any:
    return None if all(value is None for value in values) else np.stack(values)
