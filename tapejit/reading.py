"""What a method of a learner reads besides its arguments, as far as it can be seen.

A recording holds numbers of the learner, of its networks and optimizers, and of the variables that
its code names. `Reading` finds them: it takes the names from the bytecode of each function that the
method may call, and follows them through attributes, containers, closures, defaults and classes.

- *Tensors* are inputs of a recording.
- *Facts* are numbers, shapes, lengths, code. A recording is valid as long as they are the same.
- *Boxes* are what can get another content. `Saved` puts the old one back, so that a recording
  leaves no trace, and `Guard` notices a new one in microseconds.

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
import pickle
import random
import re
import sys
import types
import weakref
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from tapejit.private import HOOKS
from tapejit.recording import CannotRecord, is_library

KNOWN = set(  # libraries whose functions depend on their arguments alone, or on generators
    "torch numpy math cmath copy functools itertools operator typing types collections weakref "
    "dataclasses abc enum contextlib warnings numbers string re statistics fractions builtins "
    "_operator _functools _collections _weakref typing_extensions pydantic pydantic_core".split()
)
REFUSED = set("open input exec eval globals locals breakpoint id __import__".split())  # functions
REFUSED_METHODS = set(  # they read or write what nobody sees
    "default_rng SeedSequence fromfile memmap loadtxt genfromtxt load save savez tofile".split()
)
DYNAMIC = {"getattr", "setattr", "delattr", "hasattr", "vars", "__dict__", "attrgetter", "dir"}
IMPLICIT = {"forward", "backward", "setup_context", "jvp"}  # methods that PyTorch calls
MAKING = {"__init__", "__new__", "__post_init__"}  # methods of a class that is called
SHOWING = set(  # what no computation needs of a class
    "__repr__ __str__ __del__ __reduce__ __reduce_ex__ __getstate__ __setstate__ __deepcopy__ "
    "__copy__ __init_subclass__ __set_name__ __dir__ __sizeof__ __dict__ __weakref__ __doc__ "
    "__module__ __annotations__ __slots__ _abc_impl".split()
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
GENERATORS = (random.Random, np.random.Generator, np.random.RandomState, torch.Generator)
LISTS = (list, collections.deque)
MOST, LARGEST = 50_000, 1_000_000  # things that are looked at, and bytes of an array


class Box(NamedTuple):
    """Something with contents, of which perhaps only some names count."""

    target: Any  # a dict, list, deque, set, cell, class, or an object with __slots__
    names: frozenset[str] | None = None

    def contents(self) -> Any:
        """A shallow copy of what counts."""
        target, names = self.target, self.names
        if isinstance(target, (*LISTS, set)) or (isinstance(target, dict) and names is None):
            return target.copy()
        if isinstance(target, (dict, type)):
            held = target if isinstance(target, dict) else vars(target)
            return {key: value for key, value in held.items() if key in names}  # type: ignore
        return {key: getattr(target, key) for key in names or () if hasattr(target, key)}

    def put(self, key: Any, value: Any) -> None:
        if isinstance(self.target, (dict, *LISTS)):
            self.target[key] = value
        else:
            setattr(self.target, key, value)

    def restore(self, contents: Any) -> None:
        """Give it the contents that it had."""
        now = self.contents()
        if not isinstance(now, dict):
            if len(now) != len(contents) or not all(map(operator.is_, now, contents)):
                self.target.clear()
                (self.target.update if isinstance(now, set) else self.target.extend)(contents)
            return
        for key in now.keys() - contents.keys():
            if isinstance(self.target, dict):
                del self.target[key]
            else:
                delattr(self.target, key)
        for key, value in contents.items():
            if now.get(key, self) is not value:
                self.put(key, value)


@dataclasses.dataclass
class Tensor:
    """A tensor that is read, and where it lies."""

    tensor: torch.Tensor
    group: tuple  # those of one network, or one kind of average of an optimizer, are alike
    box: Box | None = None  # that it can be put into; None: in a tuple
    key: Any = None

    def now(self) -> torch.Tensor:
        """What lies there now."""
        held = self.box and self.box.contents()
        return held[self.key] if held else self.tensor


class Reading:
    """All that a method of a learner reads; see above.

    Args: apart, groups of numbers that do not stay equal.

    Raises:
        CannotRecord: it reads something whose state cannot be seen.
    """

    def __init__(self, learner: Any, method: str, apart: Container[tuple] = ()):
        self.apart, self.codes = apart, set[types.CodeType]()
        self.names = {method}  # of attributes
        self.loaded: dict[int, set[str]] = collections.defaultdict(set)  # of a module's variables
        size = 0
        while size != (size := len(self.names) + sum(map(len, self.loaded.values()))):
            self.tensors: dict[str, Tensor] = {}
            self.shared: dict[str, list[str]] = {}  # names of equal numbers, by the first
            self.facts: dict[str, Any] = {}
            self.places: dict[str, tuple[Box | None, Any]] = {}
            self.boxes: list[Box] = []
            self.rates: list[dict] = []  # groups of an optimizer whose rate is a number
            self.arrays: list[np.ndarray] = []
            self.generators: list[Any] = [random._inst, np.random.mtrand._rand]  # type: ignore
            self.seen: dict[int, tuple[str, Any]] = {}
            self.known: set[tuple] = set()  # classes, and modules' variables
            self.dynamic = not DYNAMIC.isdisjoint(self.names)
            self.visit(learner, "self", ())

    # ------------------------------------------------------------------------------- what there is

    def open(self, target: Any, names: frozenset[str] | None = None) -> Box:
        self.boxes.append(Box(target, names))
        return self.boxes[-1]

    def visit(self, value, path: str, group: tuple, box: Box | None = None, key: Any = None):
        """Look at a value, which lies in a box under a key, and perhaps in a group of tensors."""
        self.places[path] = box, key
        if isinstance(value, ATOMS):
            self.facts[path] = type(value), repr(value) if isinstance(value, float) else value
            return
        if isinstance(value, type):
            self.facts[path] = value
            self.see_class(value, path, made=True)
            return
        if id(value) in self.seen:
            self.facts[path] = "same as", self.seen[id(value)][0]
            return
        self.seen[id(value)] = path, value
        if len(self.seen) > MOST:
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
        elif isinstance(value, dict):
            self.facts[path] = type(value), len(value)
            self.see_items(value, path, group)
        elif isinstance(value, (tuple, *LISTS)):
            inside = None if isinstance(value, tuple) else self.open(value)
            self.facts[path] = type(value), len(value)
            for k, one in enumerate(value):
                self.visit(one, f"{path}[{k}]", group, inside, k)
            self.see_attributes(value, path, group)
        elif isinstance(value, (set, frozenset)):
            if not all(isinstance(one, (*ATOMS, types.FunctionType, type)) for one in value):
                raise CannotRecord(f"{path} is a set of objects")
            if isinstance(value, set):
                self.open(value)
            self.facts[path] = type(value), frozenset(value)
        elif isinstance(value, types.CellType):
            with contextlib.suppress(ValueError):  # an empty one
                content, inside = value.cell_contents, Box(value, frozenset(["cell_contents"]))
                self.boxes.append(inside)
                self.visit(content, path, group, inside, "cell_contents")
        elif isinstance(value, types.FunctionType):
            self.see_function(value, path)
        elif isinstance(value, types.ModuleType):
            if not is_library(getattr(value, "__file__", None) or "<frozen"):
                self.see_items(vars(value), path, (), frozenset(self.names))
            elif value.__name__.partition(".")[0] not in KNOWN:
                raise CannotRecord(f"the module {value.__name__} is read, whose state is not seen")
        elif parts := self.parts(value):
            for name, one in parts.items():
                self.visit(one, f"{path}.{name}" if name else path, group)
        elif not isinstance(value, DESCRIPTORS):
            self.see_object(value, path, group)

    def parts(self, value: Any) -> dict[str, Any]:
        """What a method, a property and the like consist of."""
        if isinstance(value, types.MethodType):
            return {"": value.__func__, "__self__": value.__self__}
        if isinstance(value, (staticmethod, classmethod)):
            return {"": value.__func__}
        if isinstance(value, property):
            return {"fget": value.fget, "fset": value.fset, "fdel": value.fdel}
        if isinstance(value, functools.partial):
            more = {"args": value.args, "keywords": value.keywords, "__dict__": vars(value)}
            return {"func": value.func} | more
        if isinstance(value, weakref.ref):
            return {"()": value()}
        if callable(value) and not hasattr(value, "__dict__"):  # written in C
            self.require_known(value, getattr(value, "__name__", "a function"))
            owner = getattr(value, "__self__", None)
            return {"__self__": None if isinstance(owner, types.ModuleType) else owner}
        return {}

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
        for name, value in {"hooks": getattr(tensor, HOOKS), "attributes": vars(tensor)}.items():
            if value:
                self.visit(value, f"{path}.{name}", ())

    def see_items(self, held: dict, path: str, group: tuple, names=None) -> None:
        """The items of a dictionary, or attributes of an object, or those with these names."""
        inside = self.open(held, names)
        for key in [key for key in held if names is None or key in names]:
            if isinstance(key, torch.Tensor):
                where = f"{path}[{self.seen.get(id(key), ('a tensor',))[0]}]"
            elif isinstance(key, (*ATOMS, tuple, type, types.FunctionType)):
                where = f"{path}.{key}" if path and isinstance(key, str) else f"{path}{key}"
            else:
                raise CannotRecord(f"{path} has keys whose state cannot be seen")
            self.visit(held[key], where, group, inside, key)

    def see_module(self, module: torch.nn.Module, path: str, group: tuple) -> None:
        group, inside = group or (path,), self.open(vars(module))
        for name, value in vars(module).items():
            if name not in ("_parameters", "_buffers", "_modules"):
                self.visit(value, f"{path}.{name}", group, inside, name)
                continue
            self.seen[id(value)] = path, value
            held = self.open(value)
            for key, each in value.items():
                kind = group if name == "_modules" else (group[0], name)
                self.visit(each, f"{path}.{key}", kind, held, key)
        self.see_class(type(module), f"{path}.__class__")

    def see_optimizer(self, optimizer: torch.optim.Optimizer, path: str) -> None:
        for k, group in enumerate(optimizer.param_groups):
            where, names = f"{path}.param_groups[{k}]", set(group)
            self.seen[id(group)] = where, group
            if isinstance(group["lr"], float | int):
                names.remove("lr")
                self.rates.append(group)
            self.see_items(group, where, (), frozenset(names))
            for parameter in group["params"]:
                averages = optimizer.state.get(parameter)
                if averages is not None:
                    place = f"{path}.state[{self.seen[id(parameter)][0]}]"
                    inside, self.seen[id(averages)] = self.open(averages), (place, averages)
                    for name, value in averages.items():
                        self.visit(value, f"{place}.{name}", (path, k, name), inside, name)
        groups: dict[tuple, list[str]] = {}  # counts of steps are one number while they are equal
        for place, each in self.tensors.items():
            if not each.tensor.ndim and each.group[0] == path and each.group not in self.apart:
                groups.setdefault(each.group, []).append(place)
        for kind, places in groups.items():
            equal = len({self.tensors[place].tensor.item() for place in places}) == 1
            self.facts[f"{path}: whether all of {kind} are equal"] = equal
            if equal:
                self.shared[places[0]] = places
        self.see_items(vars(optimizer), path, ())
        self.see_class(type(optimizer), f"{path}.__class__")

    def see_object(self, value: Any, path: str, group: tuple) -> None:
        kind = type(value)
        if kind.__module__.partition(".")[0] == "tapejit":
            return
        held = hasattr(value, "__dict__") or any(vars(x).get("__slots__") for x in kind.__mro__)
        if not held or isinstance(value, functools._lru_cache_wrapper):
            raise CannotRecord(f"{path} is a {kind.__name__}, whose state cannot be seen")
        self.see_attributes(value, path, group)

    def see_attributes(self, value: Any, path: str, group: tuple) -> None:
        """Those of an object, by the names that the code has, and its class."""
        kind, own = type(value), not is_of_library(type(value))
        if kind.__module__ in ("builtins", "collections"):
            return
        if not own:
            self.require_known(value, path)
        if hasattr(value, "__dict__"):
            names = frozenset(self.names) if own and not self.dynamic else None
            self.see_items(value.__dict__, path, group, names)
        slots = [name for x in kind.__mro__ for name in np.atleast_1d(vars(x).get("__slots__", ()))]
        names = frozenset(str(x) for x in slots if hasattr(value, x) and x[:2] != "__")
        if names and own:
            inside = self.open(value, names)
            for name in names:
                self.visit(getattr(value, name), f"{path}.{name}", group, inside, name)
        self.see_class(kind, f"{path}.__class__")

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
                if name in self.names | IMPLICIT
                or (isinstance(value, types.FunctionType) if name[:2] == "__" else self.dynamic)
            ) - (SHOWING if made else SHOWING | MAKING)
            inside = self.open(each, names)
            for name in sorted(names):
                self.visit(vars(each)[name], f"{each.__qualname__}.{name}", (), inside, name)

    def see_function(self, function: types.FunctionType, path: str) -> None:
        self.facts[path], name = function.__code__, function.__qualname__
        for variable, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            self.visit(cell, f"{variable} of {name}", ())
        for k, value in enumerate(function.__defaults__ or ()):
            self.visit(value, f"default {k} of {name}", ())
        for key, value in (function.__kwdefaults__ or {}).items():
            self.visit(value, f"default {key} of {name}", ())
        if is_library(function.__code__.co_filename):
            return self.require_known(function, path)
        self.see_items(function.__dict__, name, (), frozenset(self.names))
        space, loaded = function.__globals__, self.loaded[id(function.__globals__)]
        for code in codes_of(function.__code__):
            self.codes.add(code)
            variables, attributes, modules = names_in(code)
            loaded |= variables
            self.names |= attributes | (variables & DYNAMIC)
            if bad := (variables - space.keys()) & REFUSED | attributes & REFUSED_METHODS:
                raise CannotRecord(f"{min(bad)} is called in {code.co_qualname}")
            if modules - KNOWN:
                raise CannotRecord(f"{min(modules - KNOWN)} is imported in {code.co_qualname}")
        if (id(space),) not in self.known:
            self.known.add((id(space),))
            self.see_items(space, "", (), frozenset(loaded))


@functools.cache
def names_in(code: types.CodeType) -> tuple[frozenset, frozenset, frozenset]:
    """Names of variables, of attributes, and of imported modules in a function's code."""
    found: dict[str, set] = {"GLOBAL": set(), "ATTR": set(), "IMPORT": set()}
    for instruction in dis.get_instructions(code):
        name, (_, _, kind) = instruction.argval, instruction.opname.partition("_")
        if instruction.opname == "IMPORT_NAME":
            found["IMPORT"].add(name.partition(".")[0])
        elif kind in ("GLOBAL", "NAME"):
            found["GLOBAL"].add(name)
        elif kind in ("ATTR", "METHOD", "SUPER_ATTR", "FROM"):
            found["ATTR"].add(name)
        elif kind == "CONST" and isinstance(name, str) and name.isidentifier():
            found["ATTR"].add(name)  # as getattr takes it
    return frozenset(found["GLOBAL"]), frozenset(found["ATTR"]), frozenset(found["IMPORT"])


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
    return [x for x in {**one, **other} if one.get(x, differences) != other.get(x, differences)]


# ------------------------------------------------------------------------------- leaving no trace


def chance(generator: Any, new: Any = None) -> Any:
    """The state of a generator; sets a new one."""
    if isinstance(generator, np.random.Generator):
        generator = generator.bit_generator
        if new is not None:
            generator.state = new
        return generator.state
    if isinstance(generator, random.Random):
        return generator.getstate() if new is None else generator.setstate(new)
    return generator.get_state() if new is None else generator.set_state(new)


class Saved:
    """All that a reading found, as it was, and PyTorch's generator; `restore` brings it back."""

    def __init__(self, reading: Reading):
        self.boxes = [(box, box.contents()) for box in reading.boxes]
        self.rates = [(group, group["lr"]) for group in reading.rates]
        self.arrays = [(array, array.copy()) for array in reading.arrays]
        self.generators = [(each, chance(each)) for each in reading.generators]
        self.torch = torch.get_rng_state()
        self.tensors = []
        for place in reading.tensors.values():
            tensor, memory, grad = place.tensor, place.tensor.detach(), place.tensor.grad
            numbers = memory.clone(), None if grad is None else grad.clone()
            self.tensors.append((tensor, memory, grad, numbers, tensor.requires_grad))

    def chance_is_used(self) -> bool:
        """Whether a generator other than PyTorch's own has moved since."""
        return any(
            pickle.dumps(chance(each)) != pickle.dumps(state) for each, state in self.generators
        )

    @torch.no_grad()
    def restore(self) -> None:
        for group, rate in self.rates:
            group["lr"] = rate
        for box, contents in self.boxes:
            box.restore(contents)
        for array, numbers in self.arrays:
            if array.flags.writeable:
                array[...] = numbers
        for tensor, memory, grad, (numbers, gradients), wanted in self.tensors:
            if tensor.data_ptr() != memory.data_ptr():
                tensor.data = memory
            tensor.copy_(numbers)
            tensor.requires_grad_(wanted)
            tensor.grad = grad
            if grad is not None:
                grad.copy_(gradients)
        for each, state in self.generators:
            chance(each, state)
        torch.set_rng_state(self.torch)

    @contextlib.contextmanager
    def undone(self) -> Iterator[None]:
        """Undo afterwards whatever happens in a context."""
        try:
            yield
        finally:
            self.restore()


# ------------------------------------------------------------------------------ noticing a change


class Guard:
    """Says in microseconds whether a reading still tells what is there.

    Args: free, tensors that may be replaced at any time: nothing reads them.
    """

    def __init__(self, reading: Reading, free: Mapping[str, Tensor]):
        apart = {(id(each.box.target), each.key) for each in free.values() if each.box}
        self.empty: list[Any] = []  # containers of which nothing is held
        self.wholes: list[tuple[Any, Any]] = []  # containers and what they hold
        self.parts: list[tuple[Callable, Any, Any]] = []  # or only some of it
        self.absent: list[tuple[dict, frozenset]] = []  # names that a dictionary does not have
        self.objects: list[tuple[Callable, Any]] = []  # of which others may be equal
        self.held: list[Any] = []
        for box in reading.boxes:
            target, contents = box.target, box.contents()
            if isinstance(contents, set):
                self.wholes.append((target, contents))
                continue
            items = contents.items() if isinstance(contents, dict) else enumerate(contents)
            keys = [key for key, _ in items if (id(target), key) not in apart]
            if (
                isinstance(target, (dict, *LISTS))
                and box.names is None
                and len(keys) == len(contents)
            ):
                if contents:
                    self.wholes.append((target, contents))
                else:
                    self.empty.append(target)
            elif keys:
                get = getter(target, keys)
                self.parts.append((get, target, get(target)))
            if isinstance(target, dict) and box.names is not None:
                known = {key for place, key in apart if place == id(target)}
                self.absent.append((target, box.names - set(contents) - known))
            if special := [key for key in keys if is_special(contents[key])]:
                get = getter(target, [*special, special[0]])
                self.objects.append((get, target))
                self.held += get(target)
        self.arrays = [(array, array.tobytes()) for array in reading.arrays]
        self.tensors = [each.tensor for path, each in reading.tensors.items() if path not in free]
        self.told = told(self.tensors)
        self.shared = [
            [reading.tensors[place].tensor.detach().numpy() for place in places]
            for places in reading.shared.values()
        ]

    def holds(self) -> bool:
        try:
            found = itertools.chain.from_iterable([get(target) for get, target in self.objects])
            return (
                not any(self.empty)
                and all([target == contents for target, contents in self.wholes])
                and all([get(target) == contents for get, target, contents in self.parts])
                and all(map(operator.is_, found, self.held))
                and all([names.isdisjoint(target) for target, names in self.absent])
                and told(self.tensors) == self.told
                and all([array.tobytes() == numbers for array, numbers in self.arrays])
                and all([len(set(map(float, equal))) == 1 for equal in self.shared])
            )
        except Exception:  # what is there now cannot even be compared
            return False


def getter(target: Any, keys: Sequence) -> Callable:
    if isinstance(target, (dict, *LISTS)):
        return operator.itemgetter(*keys)
    if isinstance(target, type):  # attributes as they stand there, without calling descriptors
        return lambda kind: [vars(kind)[key] for key in keys]
    return operator.attrgetter(*keys)


def told(tensors: Sequence[torch.Tensor]) -> tuple:
    """Where the numbers of tensors lie, and how they learn."""
    return (
        list(map(torch.Tensor.data_ptr, tensors)),
        list(map(torch.Tensor.stride, tensors)),
        list(map(torch.Tensor.numel, tensors)),
        list(map(LEARNING, tensors)),
    )


LEARNING = operator.attrgetter("requires_grad", HOOKS)


def is_special(value: Any) -> bool:
    """Whether two different ones may be equal, so that a comparison by value does not do."""
    if isinstance(value, (*ATOMS, dict, tuple, set, frozenset, *LISTS)):
        return False
    return type(value).__eq__ is not object.__eq__
