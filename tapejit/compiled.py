"""The learner that `tapejit.compile` returns: methods are recorded, compiled, guarded and checked.

There is one truth, the tensors that the learner holds. A compiled call reads their memory and
writes what has changed back into them; it keeps no numbers of its own between two calls.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import types
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import torch

from tapejit import checking, jax_setup
from tapejit.private import memory_of, tree_flatten, tree_map_only, tree_unflatten
from tapejit.reading import ATOMS, Guard, Reading, Saved, differences
from tapejit.recording import CannotRecord, Node, NotNow, Recorded, drawn, is_library, record

TRIES = 4  # recordings of one kind of call, as something has changed; the first may be too early
ROOM = 64  # steps for which a phase has room, or a power of two above; fewer may be taken
ARRAYS = (np.ndarray, torch.Tensor)
GENERATED = ("<string>", "<_remote_module")  # files of code that libraries write as they run


class Given(NamedTuple):
    """Arguments of a call, or stacked ones of several: the leaves of a structure."""

    leaves: list
    structure: Any
    numbers: list[int]  # which leaves are arrays
    steps: int | None  # None: one call

    def one(self, step: int = 0) -> tuple[list, list]:
        """The leaves of one call, which share no memory with the caller's, and the arguments."""
        leaves = list(self.leaves)
        for k in self.numbers:
            value = leaves[k] if self.steps is None else leaves[k][step]
            known = isinstance(value, torch.Tensor)
            leaves[k] = value.detach().clone() if known else torch.from_numpy(np.array(value))
        return leaves, tree_unflatten(leaves, self.structure)

    def arrays(self) -> list[np.ndarray]:
        found = [self.leaves[k] for k in self.numbers]
        return [x.detach().numpy() if isinstance(x, torch.Tensor) else x for x in found]

    def kind(self) -> tuple:
        """What a recording depends on: structure, shapes, and all that is no array."""
        first = 0 if self.steps is None else 1
        leaves = [
            (x.shape[first:], x.dtype) if isinstance(x, ARRAYS) else (type(x), x)
            for x in self.leaves
        ]
        return repr(self.structure), tuple(leaves), self.room()

    def room(self) -> int | None:
        """For how many steps the compiled call has room."""
        return self.steps and max(ROOM, 1 << (self.steps - 1).bit_length())


@functools.cache
def flat(length: int) -> Any:
    """The structure of so many arguments without a structure of their own."""
    return tree_flatten((0,) * length)[1]


def given(arguments: tuple, scan: bool) -> Given:
    if all(isinstance(each, ARRAYS) for each in arguments):  # soon known, for what acts
        leaves, structure = [*arguments], flat(len(arguments))
    else:
        leaves, structure = tree_flatten(arguments)
    numbers = [k for k, x in enumerate(leaves) if isinstance(x, ARRAYS)]
    if not scan:
        return Given(leaves, structure, numbers, None)
    lengths = {len(leaves[k]) if leaves[k].ndim else 0 for k in numbers}
    if len(lengths) != 1 or 0 in lengths:
        shapes = [tuple(leaves[k].shape) for k in numbers]
        raise ValueError(f"scan needs arrays with one number of steps, at least 1, not {shapes}")
    return Given(leaves, structure, numbers, lengths.pop())


class Entry(NamedTuple):
    """A recording of a method, and what it holds for."""

    recorded: Recorded
    leaves: list  # of its result: the node of a tensor
    structure: Any
    grads: list[str]  # tensors whose gradients it sets
    reading: Reading  # before it

    def result(self, arrays: Sequence[np.ndarray], steps: int | None) -> Any:
        """Arrays in the structure that the method returns."""
        waiting = iter(arrays)
        leaves = [
            next(waiting) if isinstance(leaf, Node) else stacked([leaf] * steps) if steps else leaf
            for leaf in self.leaves
        ]
        return tree_unflatten(leaves, self.structure)


class Learner:
    """Calls methods of a learner with arrays.

    Attributes:
        learner: the object whose methods are called. Its tensors always have the newest numbers.
        engine: "compiled", or "torch" from the first call on that cannot be compiled.
        reason: why PyTorch computes, or None.
    """

    decomposed: frozenset[str] = frozenset()  # operations that recordings make of others

    def __init__(self, learner: Any, engine: str = "auto"):
        if engine not in ("auto", "compiled", "torch"):
            raise ValueError(f"engine must be 'auto', 'compiled' or 'torch', not {engine!r}")
        self.learner, self.strict = learner, engine == "compiled"
        self.engine = "torch" if engine == "torch" else "compiled"
        self.reason: str | None = None
        self.entries: dict[tuple, list[Entry]] = {}
        self.current: dict[tuple, tuple[Entry, Guard, Any]] = {}  # with the compiled call
        self.tried: Counter[tuple] = Counter()  # how often a kind of call was recorded
        self.schedule = checking.Schedule()
        if self.engine == "compiled":
            try:
                jax_setup.phases()
            except Exception as error:  # a broken installation fails in any way
                self.give_way(f"JAX cannot be used ({in_a_line(error)}): pip install jax")

    def call(self, method: str, *arguments: Any) -> Any:
        """What a method returns for arrays (NumPy's or tensors), numbers and None.

        Tuples, lists, dicts and named tuples of these are fine, too. Tensors in the result become
        arrays. The method may change the learner, but not the arguments, of which it gets copies.
        """
        return self.compute(method, given(arguments, scan=False))

    def scan(self, method: str, *arguments: Any) -> Any:
        """The method called once for each row of the arguments' arrays, and the results stacked.

        Numbers and None are the same in all calls.

        Raises:
            ValueError: the arrays differ in the length of their first axis, or it is 0.
        """
        return self.compute(method, given(arguments, scan=True))

    def compute(self, method: str, call: Given) -> Any:
        failed = None
        if self.engine == "compiled":
            try:
                return self.compiled(method, call)
            except NotNow:
                pass
            except CannotRecord as reason:
                self.give_way(str(reason))
            except Exception as error:  # the learner's own, or of the recording: PyTorch will tell
                failed = error
        result = self.by_torch(method, call)
        if failed is not None:  # in the recording alone
            self.give_way(f"{method} cannot be recorded ({in_a_line(failed)})", True)
        return result

    def by_torch(self, method: str, call: Given, steps: int | None = None) -> Any:
        """The result by PyTorch, of all steps or the first ones."""
        function = getattr(self.learner, method)
        results = [
            tree_map_only(torch.Tensor, copied, function(*call.one(k)[1]))
            for k in range(steps or call.steps or 1)
        ]
        if call.steps is None:
            return results[0]
        rows = [tree_flatten(result) for result in results]
        columns = zip(*(leaves for leaves, _ in rows), strict=True)
        return tree_unflatten([stacked(column) for column in columns], rows[0][1])

    def give_way(self, reason: str, late: bool = False) -> None:
        """Leave all to PyTorch from here on, and say why."""
        self.engine, self.reason = "torch", reason
        self.entries, self.current = {}, {}
        if self.strict and not late:
            raise ValueError(f"engine = 'compiled' cannot be: {reason}; choose 'torch' or 'auto'")
        print(f"engine: torch, because {reason}; a compiled step is several times as fast")

    # ------------------------------------------------------------------------------- compiled calls

    def compiled(self, method: str, call: Given) -> Any:
        torchs = torch.is_grad_enabled(), torch.get_default_dtype(), torch.is_autocast_enabled()
        key, steps = (method, call.kind(), torchs), call.steps or 1
        known = self.current.get(key)
        if known is None or not known[1].holds():
            entry = self.entry(key, method, call)
            phase = jax_setup.phases().Phase(entry, call.numbers, call.room())
            known = self.current[key] = entry, Guard(entry.reading), phase
        entry, _, phase = known
        chance = torch.get_rng_state() if phase.draws else None
        try:
            if tried := self.schedule.due(method, steps):
                checking.check(self, method, call, entry, phase, min(tried, steps))
            results = phase.run(call.arrays(), steps)
        except (NotNow, CannotRecord):
            if chance is not None:
                torch.set_rng_state(chance)
            raise
        phase.write()
        for path in entry.grads:
            entry.reading.tensors[path].grad = None  # PyTorch's would be newer
        return entry.result(results, call.steps)

    def entry(self, key: tuple, method: str, call: Given) -> Entry:
        """The recording for such a call; a new one where what it holds has changed."""
        known = self.entries.setdefault(key, [])
        reading, changed = Reading(self.learner, method), []
        for entry in known:
            changed = differences(entry.reading.facts, reading.facts)
            if not changed:  # but there may be other objects
                return entry._replace(reading=reading)
        self.tried[key] += 1
        if self.tried[key] > TRIES:
            what = changed[0] if changed else "what it reads"
            raise CannotRecord(f"{method} would be recorded again and again: {what} changes")
        with (saved := Saved(reading)).undone():
            one, after = self.trial(reading, method, call)
            other, end = self.trial(after, method, call)
            saved.refuse_effects(method, after, end)
        if differences(reading.facts, after.facts):  # such as an optimizer before its first step
            raise NotNow("its next call does something else")
        if one[:3] != other[:3]:
            raise CannotRecord(f"two calls of {method} one after the other do different things")
        known.append(one)
        return one

    def trial(self, before: Reading, method: str, call: Given):
        """Record one call, and read what there is afterwards."""
        first = {path: each[0] for each in before.shared.values() for path in each}
        tensors = before.tensors
        grads = {path: x.grad for path, x in tensors.items()}
        states = {
            path: Node("input", ("state", first.get(path, path)), x) for path, x in tensors.items()
        }
        leaves, arguments = call.one()
        inputs = [(states[path], x) for path, x in tensors.items()]
        inputs += [(Node("input", ("argument", k), leaves[k]), leaves[k]) for k in call.numbers]
        function, chance = getattr(self.learner, method), torch.get_rng_state()
        with rates_as_tensors(before.rates) as rates, watched(before.codes):
            allowed = jax_setup.phases().ALLOWED - self.decomposed
            result, tape = record(lambda: function(*arguments), inputs + rates, allowed)
            for group, (node, rate) in zip(before.rates, rates, strict=True):
                if group["lr"] is not rate or tape.read(rate) is not node:
                    raise CannotRecord(f"{method} itself sets a learning rate")
        after = Reading(self.learner, method)
        state: dict[str, Node] = {}
        shares = Counter(map(memory_of, after.tensors.values()))
        for path, tensor in after.tensors.items():
            node, known = tape.read(tensor), tensors.get(path)
            if known is None:  # the facts will tell
                continue
            if known is not tensor:
                raise CannotRecord(f"{method} makes {path} another tensor: write into it instead")
            if node is states[path]:
                continue
            if shares[memory_of(known)] > 1:
                raise CannotRecord(f"{path} shares memory with another tensor, and is changed")
            if first.get(path, path) == path:
                state[path] = node
            elif node is not state.get(first[path]):
                raise CannotRecord(f"{method} counts the steps of {path} apart")
        end = torch.get_rng_state()
        torch.set_rng_state(chance)
        for node in tape.draws:
            drawn(node)
        if not torch.equal(torch.get_rng_state(), end):
            raise CannotRecord(f"{method} uses PyTorch's generator in a way of its own")
        leaves, structure = tree_flatten(tree_map_only(torch.Tensor, tape.read, result))
        for one in leaves:
            if not isinstance(one, (Node, *ATOMS)):
                raise CannotRecord(f"{method} returns a {type(one).__name__}")
        results = tuple(one for one in leaves if isinstance(one, Node))
        recorded = Recorded(tuple(state.items()), results, tuple(tape.draws))
        new = [path for path, tensor in tensors.items() if tensor.grad is not grads[path]]
        return Entry(recorded, leaves, structure, new, before), after


@contextlib.contextmanager
def rates_as_tensors(groups: list[dict]) -> Iterator[list[tuple[Node, torch.Tensor]]]:
    """Learning rates are inputs of a recording; here optimizers have them as tensors."""
    rates = [torch.tensor(float(group["lr"])) for group in groups]
    with contextlib.ExitStack() as changed:
        for group, rate in zip(groups, rates, strict=True):
            slow = {x: False for x in ("foreach", "fused") if x in group}
            changed.enter_context(mock.patch.dict(group, slow, lr=rate))
        yield [(Node("input", ("rate", k), rate), rate) for k, rate in enumerate(rates)]


@contextlib.contextmanager
def watched(codes: set[types.CodeType]) -> Iterator[None]:
    """Afterwards, refuse code that ran and is not among those that were read."""
    ran = set()

    def watch(frame: types.FrameType, event: str, _: Any) -> None:
        if event == "call" and not is_library(frame.f_code.co_filename):
            ran.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        yield
    finally:
        sys.setprofile(before)
    if strange := [x for x in ran - codes if not x.co_filename.startswith(GENERATED)]:
        raise CannotRecord(f"{strange[0].co_qualname} runs, and nothing names it")


def in_a_line(error: Exception) -> str:
    return f"{type(error).__name__}: " + str(error).strip().partition("\n")[0]


def copied(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().numpy().copy()


def stacked(values: Sequence) -> Any:
    return None if all(value is None for value in values) else np.stack(values)
