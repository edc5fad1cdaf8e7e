"""What the methods of a learner read besides their arguments, as far as it can be seen.

A recording holds numbers of the learner, of its networks and optimizers, and of the variables that
its code names. `Reading` finds them all: it begins at a method, looks into the bytecode of each
function for the names that it reads, and follows these through attributes, containers, closures,
defaults and classes. What it finds are

- *tensors*: they are inputs of a recording;
- *facts*: numbers, shapes, lengths, code. A recording is valid as long as they are the same;
- *boxes*: whatever can be given another content, so that a recording leaves no trace (`Saved`), and
  so that a change is noticed in microseconds (`Guard`).

What keeps a state that cannot be seen, such as an iterator, a file or a clock, ends the reading.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import dis
import functools
import itertools
import operator
import random
import re
import sys
import types
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from tapejit.recording import CannotRecord, is_library

KNOWN = set(  # libraries whose functions depend on their arguments alone, but for generators
    "torch numpy math cmath copy functools itertools operator typing types collections "
    "dataclasses abc enum contextlib warnings numbers string re statistics fractions builtins "
    "_operator _functools _collections typing_extensions pydantic pydantic_core".split()
)
REFUSED = set("open input exec eval globals locals breakpoint id __import__".split())  # functions
REFUSED_METHODS = set(  # that read or write what nobody sees
    "default_rng SeedSequence fromfile memmap loadtxt genfromtxt load save savez tofile "
    "set_default_dtype".split()
)
DYNAMIC = {"getattr", "setattr", "delattr", "hasattr", "vars", "__dict__", "attrgetter", "dir"}
IMPLICIT = {"forward", "backward", "setup_context", "jvp"}  # methods that PyTorch calls
MAKING = {"__init__", "__new__", "__post_init__"}  # methods of a class whose objects are made
SHOWING = set(  # methods that no computation calls
    "__repr__ __str__ __del__ __reduce__ __reduce_ex__ __getstate__ __setstate__ __deepcopy__ "
    "__copy__ __init_subclass__ __set_name__ __dir__ __sizeof__".split()
)
ATOMS = (
    *(bool, int, float, complex, str, bytes, type(None), type(...), type(NotImplemented)),
    *(torch.dtype, torch.device, torch.Size, torch.layout, torch.memory_format, np.dtype),
    *(np.generic, range, slice, re.Pattern),
)
DESCRIPTORS = (
    *(types.GetSetDescriptorType, types.MemberDescriptorType, types.WrapperDescriptorType),
    type(collections.namedtuple("Any", "field").field),  # type: ignore[attr-defined]
)
MOST, LARGEST = 50_000, 1_000_000  # things that are looked at, and bytes of an array


class Box(NamedTuple):
    """Something with contents, of which only some names may count."""

    path: str
    target: Any  # a dict, list, set, deque, cell, class, or an object with __slots__
    names: frozenset[str] | None = None

    def contents(self) -> Any:
        """A shallow copy of what counts."""
        target, names = self.target, self.names
        if isinstance(target, dict):
            return dict(target) if names is None else {k: target[k] for k in target if k in names}
        if isinstance(target, (list, collections.deque)):
            return list(target)
        if isinstance(target, set):
            return set(target)
        if isinstance(target, type):
            return {k: value for k, value in vars(target).items() if k in (names or ())}
        return {k: getattr(target, k) for k in names or () if hasattr(target, k)}

    def get(self, key: Any) -> Any:
        plain = isinstance(self.target, (dict, list, collections.deque))
        return self.target[key] if plain else getattr(self.target, key)

    def put(self, key: Any, value: Any) -> None:
        if isinstance(self.target, (dict, list, collections.deque)):
            self.target[key] = value
        else:
            setattr(self.target, key, value)

    def restore(self, contents: Any) -> None:
        """Give it the contents that it had."""
        if same(now := self.contents(), contents):
            return
        if isinstance(now, dict):
            for key in now.keys() - contents.keys():
                if isinstance(self.target, dict):
                    del self.target[key]
                else:
                    delattr(self.target, key)
            for key, value in contents.items():
                if now.get(key, self) is not value:
                    self.put(key, value)
        else:
            self.target.clear()
            (self.target.update if isinstance(now, set) else self.target.extend)(contents)


def same(one: Any, other: Any) -> bool:
    """Whether two shallow copies hold the same objects."""
    if isinstance(one, set):
        return one == other
    if len(one) != len(other):
        return False
    if isinstance(one, dict):
        return all(other.get(key, same) is value for key, value in one.items())
    return all(map(operator.is_, one, other))


@dataclasses.dataclass
class Tensor:
    """A tensor that is read, and where it lies."""

    tensor: torch.Tensor
    group: tuple  # those of one network, or one kind of average of an optimizer, are alike
    box: Box | None = None  # that it can be put into; None: in a tuple
    key: Any = None

    def now(self) -> torch.Tensor:
        """What lies there now."""
        return self.tensor if self.box is None else self.box.get(self.key)


class Reading:
    """All that a method of a learner reads; see above.

    Raises:
        CannotRecord: it reads something whose state cannot be seen.
    """

    def __init__(self, learner: Any, method: str, apart: Container[tuple] = ()):
        self.apart = apart  # groups of numbers that do not stay equal
        self.names: set[str] = set()
        self.loaded: dict[int, set[str]] = collections.defaultdict(set)  # of each module's globals
        self.codes: set[types.CodeType] = set()
        self.rates: list[dict] = []  # groups of optimizers whose learning rate is a number
        size = -1
        while size != (size := len(self.names) + sum(map(len, self.loaded.values()))):
            self.begin(learner, method)

    def begin(self, learner: Any, method: str) -> None:
        self.tensors: dict[str, Tensor] = {}
        self.shared: dict[str, list[str]] = {}
        self.facts: dict[str, Any] = {}
        self.boxes: list[Box] = []
        self.arrays: list[np.ndarray] = []
        self.generators: list[Any] = [random._inst, np.random.mtrand._rand]  # type: ignore
        self.rates = []
        self.seen: dict[int, str] = {}
        self.kept: list[Any] = []  # or an id might be that of another object
        self.known: set[tuple] = set()  # classes, and spaces of global variables
        self.dynamic = not DYNAMIC.isdisjoint(self.names)
        self.names.add(method)
        self.visit(learner, "self", ())

    # ------------------------------------------------------------------------------- what there is

    def visit(self, value, path: str, group: tuple, box: Box | None = None, key: Any = None):
        """Look at a value, which lies in a box under a key, and perhaps in a group of tensors."""
        if isinstance(value, ATOMS):
            self.facts[path] = type(value), repr(value) if isinstance(value, float) else value
            return
        if isinstance(value, type):
            self.facts[path] = value
            self.see_class(value, path, made=True)
            return
        if id(value) in self.seen:
            self.facts[path] = "same as", self.seen[id(value)]
            return
        self.seen[id(value)] = path
        self.kept.append(value)
        if len(self.kept) > MOST:
            raise CannotRecord(f"{path} holds more than can be looked at")
        self.facts[path] = type(value)
        if isinstance(value, torch.Tensor):
            self.see_tensor(value, path, group, box, key)
        elif isinstance(value, np.ndarray):
            if value.dtype.hasobject or value.nbytes > LARGEST:
                raise CannotRecord(f"{path} is too large an array, or one of objects")
            self.arrays.append(value)
            self.facts[path] = value.shape, value.dtype, value.tobytes()
        elif isinstance(value, GENERATORS):
            self.generators.append(value)
        elif isinstance(value, torch.optim.Optimizer):
            self.see_optimizer(value, path)
        elif isinstance(value, torch.nn.Module):
            self.see_module(value, path, group)
        elif isinstance(value, (dict, types.MappingProxyType)):
            self.see_dict(value, path, group)
        elif isinstance(value, (list, tuple, collections.deque)):
            inside = None if isinstance(value, tuple) else self.open(path, value)
            self.facts[path] = type(value), len(value)
            for k, one in enumerate(value):
                self.visit(one, f"{path}[{k}]", group, inside, k)
            self.see_attributes(value, path, group)
        elif isinstance(value, (set, frozenset)):
            if not all(isinstance(one, (*ATOMS, types.FunctionType, type)) for one in value):
                raise CannotRecord(f"{path} is a set of objects")
            if isinstance(value, set):
                self.open(path, value)
            self.facts[path] = type(value), frozenset(value)
        elif isinstance(value, types.CellType):
            with contextlib.suppress(ValueError):  # an empty one
                content = value.cell_contents
                inside = self.open(path, value, frozenset(["cell_contents"]))
                self.visit(content, path, group, inside, "cell_contents")
        elif isinstance(value, types.FunctionType):
            self.see_function(value, path)
        elif isinstance(value, types.MethodType):
            self.visit(value.__func__, path, group)
            self.visit(value.__self__, f"{path}.__self__", group)
        elif isinstance(value, (staticmethod, classmethod)):
            self.visit(value.__func__, path, group)
        elif isinstance(value, property):
            for each in (value.fget, value.fset, value.fdel):
                self.visit(each, f"{path}.{getattr(each, '__name__', None)}", group)
        elif isinstance(value, functools.partial):
            parts = value.func, value.args, value.keywords
            for k, one in enumerate(parts):
                self.visit(one, f"{path}.{('func', 'args', 'keywords')[k]}", group)
            self.see_attributes(value, path, group)
        elif isinstance(value, types.ModuleType):
            self.see_module_of_python(value, path)
        elif isinstance(value, DESCRIPTORS):
            pass
        elif callable(value) and not hasattr(value, "__dict__"):  # written in C
            self.require_known(value, path)
            if not isinstance(owner := getattr(value, "__self__", None), types.ModuleType):
                self.visit(owner, f"{path}.__self__", group)
        else:
            self.see_object(value, path, group)

    def open(self, path: str, target: Any, names: frozenset[str] | None = None) -> Box:
        self.boxes.append(Box(path, target, names))
        return self.boxes[-1]

    def require_known(self, value: Any, path: str) -> None:
        home = getattr(value, "__module__", None) or getattr(type(value), "__module__", None)
        if isinstance(value, types.FunctionType):  # whatever it wraps
            home = value.__globals__.get("__name__")
        if not isinstance(home, str) or home.partition(".")[0] not in KNOWN:
            raise CannotRecord(f"{path} is read, and what it does depends on more than can be seen")

    def see_tensor(self, tensor, path: str, group: tuple, box: Box | None, key: Any) -> None:
        if tensor.device.type != "cpu" or tensor.layout != torch.strided or tensor.is_inference():
            raise CannotRecord(f"{path} is not a usual tensor of the processor")
        if tensor.grad_fn is not None:
            raise CannotRecord(f"{path} remembers how it was computed: detach it")
        self.facts[path] = tensor.shape, tensor.dtype, tensor.requires_grad
        self.tensors[path] = Tensor(tensor, group or (path,), box, key)
        if vars(tensor):
            self.see_dict(vars(tensor), path, group, ".")

    def see_dict(self, value: Mapping, path: str, group: tuple, mark: str = "", names=None) -> None:
        """The values of a dictionary, or with "." as mark the attributes of an object."""
        inside = self.open(path, value, names)
        for k in tuple(value) if isinstance(value, dict) else ():
            if names is not None and k not in names:
                continue
            if isinstance(k, torch.Tensor):
                where = f"{path}[{self.seen.get(id(k), 'a tensor')}]"
            elif isinstance(k, (*ATOMS, tuple, type, types.FunctionType)):
                where = f"{path}.{k}" if mark or isinstance(k, str) else f"{path}[{k!r}]"
            else:
                raise CannotRecord(f"{path} has keys whose state cannot be seen")
            self.visit(value[k], where, group, inside, k)
        if not mark:
            self.facts[path] = type(value), len(value)

    def see_module(self, module: torch.nn.Module, path: str, group: tuple) -> None:
        root = group or (path,)
        attributes = vars(module)
        inside = self.open(path, attributes)
        for name, value in attributes.items():
            if name in ("_parameters", "_buffers", "_modules"):
                self.seen[id(value)] = path
                held = self.open(path, value)
                kind = root if name == "_modules" else (root[0], name)
                for key, each in value.items():
                    if isinstance(each, torch.Tensor):
                        kind = (root[0], name, each.dtype)
                    self.visit(each, f"{path}.{key}", kind, held, key)
            else:
                self.visit(value, f"{path}.{name}", root, inside, name)
        self.see_class(type(module), f"{path}.__class__")

    def see_optimizer(self, optimizer: torch.optim.Optimizer, path: str) -> None:
        for k, group in enumerate(optimizer.param_groups):
            where, names = f"{path}.param_groups[{k}]", set(group)
            self.seen[id(group)] = where
            if isinstance(group["lr"], float | int):
                names.remove("lr")
                self.rates.append(group)
            self.see_dict(group, where, (), ".", frozenset(names))
            for parameter in group["params"]:
                averages = optimizer.state.get(parameter)
                if averages is not None:
                    place = f"{path}.state[{self.seen[id(parameter)]}]"
                    inside = self.open(place, averages)
                    self.seen[id(averages)] = place
                    for name, value in averages.items():
                        kind = getattr(value, "dtype", None)
                        self.visit(value, f"{place}.{name}", (path, k, name, kind), inside, name)
        self.share(path)
        self.see_dict(vars(optimizer), path, (), ".")
        self.see_class(type(optimizer), f"{path}.__class__")

    def share(self, path: str) -> None:
        """Counts of steps of an optimizer are one number, as long as they are equal."""
        groups: dict[tuple, list[str]] = {}
        for place, each in self.tensors.items():
            if not each.tensor.ndim and each.group[0] == path and each.group not in self.apart:
                groups.setdefault(each.group, []).append(place)
        for group, places in groups.items():
            values = {self.tensors[place].tensor.item() for place in places}
            self.facts[f"{path}: whether all of {group[1:3]} are equal"] = len(values) == 1
            if len(values) == 1:
                self.shared[places[0]] = places

    def see_attributes(self, value: Any, path: str, group: tuple) -> None:
        """Those of an object, by the names that the code has, and its class."""
        kind = type(value)
        if kind.__module__ in ("builtins", "collections", "functools"):
            return
        own = not is_of_library(kind)
        if not own:
            self.require_known(value, path)
        names = frozenset(self.names) if own and not self.dynamic else None
        if hasattr(value, "__dict__"):
            self.see_dict(value.__dict__, path, group, ".", names)
        for each in kind.__mro__:
            slots = vars(each).get("__slots__", ())
            slots = [slots] if isinstance(slots, str) else slots
            held = [name for name in slots if hasattr(value, name) and name[:2] != "__"]
            if held and own:
                inside = self.open(path, value, frozenset(held))
                for name in held:
                    self.visit(getattr(value, name), f"{path}.{name}", group, inside, name)
        self.see_class(kind, f"{path}.__class__")

    def see_object(self, value: Any, path: str, group: tuple) -> None:
        kind = type(value)
        if kind.__module__.partition(".")[0] == "tapejit":
            return
        slotted = any(vars(each).get("__slots__") for each in kind.__mro__)
        if isinstance(value, functools._lru_cache_wrapper) or not (
            hasattr(value, "__dict__") or slotted
        ):
            raise CannotRecord(f"{path} is a {kind.__name__}, whose state cannot be seen")
        self.see_attributes(value, path, group)

    def see_class(self, kind: type, path: str, made: bool = False) -> None:
        """The functions of a class that the code names, and its attributes likewise."""
        if made and is_of_library(kind):
            self.require_known(kind, path)
        for each in kind.__mro__:
            if (each, made) in self.known or is_of_library(each):
                continue
            self.known.add((each, made))
            names = frozenset(
                name
                for name, value in vars(each).items()
                if name in self.names
                or self.dynamic
                or name in IMPLICIT
                or (isinstance(value, types.FunctionType) and name[:2] == "__")
            )
            names -= SHOWING if made else SHOWING | MAKING
            names -= {"__dict__", "__weakref__", "__doc__", "__module__", "__annotations__"}
            inside = self.open(f"{each.__qualname__}", each, names)
            for name in sorted(names & vars(each).keys()):
                value = vars(each)[name]
                if isinstance(value, types.MemberDescriptorType):
                    continue
                self.visit(value, f"{each.__qualname__}.{name}", (), inside, name)

    def see_module_of_python(self, module: types.ModuleType, path: str) -> None:
        file = getattr(module, "__file__", None) or "<frozen"
        if is_library(file):
            if module.__name__.partition(".")[0] not in KNOWN:
                raise CannotRecord(f"the module {module.__name__} is read, whose state is not seen")
            return
        self.see_dict(vars(module), path, (), ".", frozenset(self.names))

    # ---------------------------------------------------------------------------------- its code

    def see_function(self, function: types.FunctionType, path: str) -> None:
        self.facts[path] = function.__code__
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            self.visit(cell, f"{name} of {function.__qualname__}", ())
        for k, value in enumerate(function.__defaults__ or ()):
            self.visit(value, f"default {k} of {function.__qualname__}", ())
        for name, value in (function.__kwdefaults__ or {}).items():
            self.visit(value, f"default {name} of {function.__qualname__}", ())
        if is_library(function.__code__.co_filename):
            self.require_known(function, path)
            return
        names = frozenset(self.names)
        self.see_dict(function.__dict__, function.__qualname__, (), ".", names)
        space, loaded = function.__globals__, self.loaded[id(function.__globals__)]
        for code in codes_of(function.__code__):
            self.codes.add(code)
            variables, attributes, modules = names_in(code)
            loaded |= variables
            self.names |= attributes | (variables & DYNAMIC)
            unseen = (variables - space.keys()) & REFUSED | attributes & REFUSED_METHODS
            if unseen:
                raise CannotRecord(f"{min(unseen)} is called in {code.co_qualname}")
            for name in modules - KNOWN:
                raise CannotRecord(f"the module {name} is imported in {code.co_qualname}")
        if (id(space),) not in self.known:
            self.known.add((id(space),))
            inside = self.open("", space, frozenset(loaded))
            for name in sorted(loaded & space.keys()):
                self.visit(space[name], name, (), inside, name)


NAMING = {
    f"{action}_{kind}"
    for action in ("LOAD", "STORE", "DELETE")
    for kind in ("ATTR", "METHOD", "SUPER_ATTR")
} | {"IMPORT_FROM"}
GENERATORS = (random.Random, np.random.Generator, np.random.RandomState, torch.Generator)


@functools.cache
def names_in(code: types.CodeType) -> tuple[frozenset, frozenset, frozenset]:
    """Global variables, attributes, and imported modules whose names are in the code."""
    variables, attributes, modules = set(), set(), set()
    for instruction in dis.get_instructions(code):
        kind, name = instruction.opname, instruction.argval
        if kind in ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL"):
            variables.add(name)
        elif kind in NAMING:
            attributes.add(name)
        elif kind == "IMPORT_NAME":
            modules.add(name.partition(".")[0])
        elif kind == "LOAD_CONST" and isinstance(name, str) and name.isidentifier():
            attributes.add(name)  # as getattr takes it
    return frozenset(variables), frozenset(attributes), frozenset(modules)


@functools.cache
def is_of_library(kind: type) -> bool:
    """Whether a class comes from a library."""
    home = kind.__module__
    if home == "builtins":  # or from code without a module
        return not kind.__flags__ & 1 << 9  # Py_TPFLAGS_HEAPTYPE, which classes of Python have
    file = getattr(sys.modules.get(home), "__file__", None)
    return home in sys.builtin_module_names if file is None else is_library(file)


def codes_of(code: types.CodeType) -> Iterator[types.CodeType]:
    """A function's code and that of the functions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes_of(constant)


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Names of facts that are not the same."""
    return [name for name in {**one, **other} if one.get(name, differences) != other.get(name, one)]


def chance(generator: Any) -> Any:
    """The state of a generator, as a value that can be compared."""
    if isinstance(generator, np.random.Generator):
        return repr(generator.bit_generator.state)
    if isinstance(generator, np.random.RandomState):
        name, key, *others = generator.get_state(legacy=True)
        return name, key.tobytes(), *others
    if isinstance(generator, torch.Generator):
        return generator.get_state().numpy().tobytes()
    return generator.getstate()


# ----------------------------------------------------------------------------- leaving no trace


class Saved:
    """All that a reading found, as it was, and PyTorch's generator; `restore` brings it back."""

    def __init__(self, reading: Reading):
        self.reading = reading
        self.boxes = [box.contents() for box in reading.boxes]
        self.rates = [group["lr"] for group in reading.rates]
        self.arrays = [array.copy() for array in reading.arrays]
        self.torch = torch.get_rng_state()
        self.chance = [
            each.bit_generator.state
            if isinstance(each, np.random.Generator)
            else each.getstate()
            if isinstance(each, random.Random)
            else each.get_state()
            for each in reading.generators
        ]
        self.tensors = []
        for each in reading.tensors.values():
            tensor, grad = each.tensor, each.tensor.grad
            told = tensor.requires_grad, grad, None if grad is None else grad.clone()
            self.tensors.append((tensor, tensor.detach(), tensor.detach().clone(), *told))
        self.before = list(map(chance, reading.generators))

    def chance_is_used(self) -> bool:
        """Whether a generator other than PyTorch's own has moved since."""
        return list(map(chance, self.reading.generators)) != self.before

    @contextlib.contextmanager
    def undone(self) -> Iterator[None]:
        """Undo afterwards whatever happens in a context."""
        try:
            yield
        finally:
            self.restore()

    @torch.no_grad()
    def restore(self) -> None:
        for group, rate in zip(self.reading.rates, self.rates, strict=True):
            group["lr"] = rate
        for box, contents in zip(self.reading.boxes, self.boxes, strict=True):
            box.restore(contents)
        for array, copied in zip(self.reading.arrays, self.arrays, strict=True):
            if array.flags.writeable:
                array[...] = copied
        for tensor, memory, copied, wanted, grad, numbers in self.tensors:
            if tensor.data_ptr() != memory.data_ptr():
                tensor.data = memory
            tensor.copy_(copied)
            tensor.requires_grad_(wanted)
            tensor.grad = grad
            if grad is not None:
                grad.copy_(numbers)
        for each, state in zip(self.reading.generators, self.chance, strict=True):
            if isinstance(each, np.random.Generator):
                each.bit_generator.state = state
            elif isinstance(each, random.Random):
                each.setstate(state)
            else:
                each.set_state(state)
        torch.set_rng_state(self.torch)


# ------------------------------------------------------------------------------ noticing a change


class Guard:
    """Says in microseconds whether a reading still tells what is there.

    Args: free, the tensors that may be replaced at any time: nothing reads them.
    """

    def __init__(self, reading: Reading, free: Mapping[str, Tensor]):
        apart = {(id(each.box.target), each.key) for each in free.values() if each.box}
        wholes: list[tuple[Any, Any]] = []
        self.parts: list[tuple[Callable, Any]] = []
        self.absent: list[tuple[dict, frozenset]] = []
        self.objects: list[tuple[Callable, Any]] = []
        expected: list[Any] = []
        self.held: list[Any] = []
        for box in reading.boxes:
            contents = box.contents()
            if isinstance(contents, set):
                wholes.append((box.target, contents))
                continue
            items = contents.items() if isinstance(contents, dict) else enumerate(contents)
            keys = [key for key, _ in items if (id(box.target), key) not in apart]
            plain = isinstance(box.target, (dict, list, collections.deque))
            get = (operator.itemgetter if plain else operator.attrgetter)(*keys) if keys else len
            if isinstance(box.target, type):
                get = functools.partial(named, names=tuple(keys))
            if plain and box.names is None and len(keys) == len(contents):
                kind = collections.deque if isinstance(box.target, collections.deque) else None
                wholes.append((box.target, kind(contents) if kind else contents))
            elif keys:
                self.parts.append((get, box.target))
                self.held.append(get(box.target))
            if plain and isinstance(box.target, dict) and box.names is not None:
                known = {key for target, key in apart if target == id(box.target)}
                self.absent.append((box.target, box.names - set(contents) - known))
            special = [key for key in keys if is_special(contents[key])]
            if special and plain:
                self.objects.append((operator.itemgetter(*special, special[0]), box.target))
                expected += [contents[key] for key in (*special, special[0])]
            elif special:
                get = operator.attrgetter(*special, special[0])
                self.objects.append((get, box.target))
                expected += get(box.target)
        self.expected = expected
        self.empty = [target for target, copied in wholes if not copied]
        self.targets = [target for target, copied in wholes if copied]
        self.copies = [copied for _, copied in wholes if copied]
        self.arrays = [(array, array.tobytes()) for array in reading.arrays]
        self.tensors = [each.tensor for path, each in reading.tensors.items() if path not in free]
        self.told = told(self.tensors)
        self.shared = [
            [reading.tensors[place].tensor.detach().numpy() for place in places]
            for places in reading.shared.values()
        ]

    def holds(self) -> bool:
        try:
            return (
                not any(self.empty)
                and all(map(operator.eq, self.targets, self.copies))
                and [get(target) for get, target in self.parts] == self.held
                and all(
                    map(
                        operator.is_,
                        itertools.chain.from_iterable([g(t) for g, t in self.objects]),
                        self.expected,
                    )
                )
                and all(names.isdisjoint(target) for target, names in self.absent)
                and told(self.tensors) == self.told
                and all(array.tobytes() == then for array, then in self.arrays)
                and all(len(set(map(float, equal))) == 1 for equal in self.shared)
            )
        except Exception:  # what is there now cannot even be compared
            return False


def told(tensors: Sequence[torch.Tensor]) -> tuple:
    """Where their numbers lie, and whether they learn."""
    return (
        [tensor.data_ptr() for tensor in tensors],
        [tensor.stride() for tensor in tensors],
        [tensor.numel() for tensor in tensors],
        [tensor.requires_grad for tensor in tensors],
    )


def named(target: Any, names: Sequence[str]) -> list:
    """Attributes of a class as they stand there: a getter would call its descriptors."""
    return [vars(target)[name] for name in names]


def is_special(value: Any) -> bool:
    """Whether two different ones may be equal, so that a comparison by value does not do."""
    if isinstance(value, (*ATOMS, dict, list, tuple, set, frozenset, collections.deque)):
        return False
    return type(value).__eq__ is not object.__eq__
