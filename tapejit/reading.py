"""What a method of a learner reads besides its arguments, as far as it can be seen.

A recording holds numbers of the learner, of its networks and optimizers, and of the variables that
its code names. `Reading` finds them: it walks from the learner through attributes, containers,
classes and functions, and takes the names that count from the bytecode of each function.

- *Tensors* are inputs of a recording.
- *Facts* are numbers, shapes, lengths, code. A recording is valid as long as they are the same.
- *Holders* are what can get another content. `Saved` puts the old one back, so that a recording
  leaves no trace, and `Guard` notices a new one in microseconds.

What keeps a state that cannot be seen, such as an iterator, a file or a clock, ends the reading.
"""

from __future__ import annotations

import collections
import contextlib
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
from collections.abc import Collection, Container, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from tapejit.private import HOOKS, hooks_so_far
from tapejit.recording import CannotRecord, is_library

KNOWN = set(  # libraries whose functions depend on their arguments alone, or on generators
    "torch numpy math cmath copy functools itertools operator typing types collections weakref "
    "dataclasses abc enum contextlib warnings numbers string re statistics fractions builtins "
    "_operator _functools _collections _weakref typing_extensions pydantic pydantic_core "
    "difflib tapejit".split()
)
REFUSED = set(  # functions: they do or read what nobody sees, or attributes that nobody names
    "open print input exec eval globals locals breakpoint id __import__ "
    "getattr setattr delattr hasattr vars dir".split()
)
REFUSED_METHODS = set(  # they read or write what nobody sees
    "default_rng SeedSequence fromfile memmap loadtxt genfromtxt load save savez tofile "
    "__dict__ attrgetter".split()
)
IMPLICIT = {"forward", "backward", "setup_context", "jvp"}  # methods that PyTorch calls
MAKING = {"__init__", "__new__", "__post_init__"}  # methods of a class that is called
SHOWING = set(  # and those that no computation needs
    "__repr__ __str__ __del__ __reduce__ __reduce_ex__ __getstate__ __setstate__ __deepcopy__ "
    "__copy__ __init_subclass__ __set_name__ __dir__ __sizeof__ _abc_impl".split()
)
ATOMS = (
    *(bool, int, float, complex, str, bytes, type(None), type(...), type(NotImplemented)),
    *(torch.dtype, torch.device, torch.Size, torch.layout, torch.memory_format, np.dtype),
    *(np.generic, range, slice, re.Pattern, operator.itemgetter, frozenset),
)
LISTS = (list, collections.deque)
PARTS: dict[type, tuple[str, ...]] = {  # what things consist of that call something else
    types.MethodType: ("__func__", "__self__"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    property: ("fget", "fset", "fdel"),
    functools.partial: ("func", "args", "keywords"),
    types.CellType: ("cell_contents",),
    types.BuiltinMethodType: ("__self__",),
}
IN_C = (  # by which they are known
    *(types.BuiltinMethodType, types.GetSetDescriptorType, types.MemberDescriptorType, np.ufunc),
    *(types.WrapperDescriptorType, types.MethodDescriptorType),
    type(collections.namedtuple("Any", "field").field),  # type: ignore[attr-defined]
)
GENERATORS = (random.Random, np.random.Generator, np.random.RandomState, torch.Generator)
HEAP = 1 << 9  # the flag of classes that Python's code has made
MOST = 50_000  # things that are looked at


class Holder(NamedTuple):
    """A dict, list, deque or class, and the keys of what counts in it."""

    target: Any
    keys: dict[Any, None]

    @property
    def contents(self) -> Any:
        return vars(self.target) if isinstance(self.target, type) else self.target

    def restore(self, old: Any) -> None:
        """Give it the contents that it had."""
        if not isinstance(old, dict):
            self.target.clear()
            self.target.extend(old)
            return
        is_class, now = isinstance(self.target, type), dict(self.contents)
        for key in now.keys() - old.keys():
            delattr(self.target, key) if is_class else self.target.pop(key)
        for key, value in old.items():  # one by one: an interrupt loses nothing of a namespace
            if now.get(key, self) is not value:
                setattr(self.target, key, value) if is_class else self.target.update({key: value})


class Reading:
    """All that a method of a learner reads; see above.

    Raises:
        CannotRecord: it reads something whose state cannot be seen.
    """

    def __init__(self, learner: Any, method: str):
        self.codes = set[types.CodeType]()
        self.names, size = {method}, 0  # of attributes
        while size != len(self.names):
            size = len(self.names)
            self.tensors: dict[str, torch.Tensor] = {}
            self.shared: dict[str, list[str]] = {}  # names of equal numbers, by the first
            self.facts: dict[str, Any] = {}
            self.holders: dict[int, Holder] = {}
            self.cells: list[types.CellType] = []
            self.rates: list[dict] = []  # groups of an optimizer whose rate is a number
            self.seen: dict[int, tuple[str, Any]] = {}
            self.visit(learner, "self")

    def holder(self, target: Any) -> Holder:
        return self.holders.setdefault(id(target), Holder(target, {}))

    def visit(self, value: Any, path: str, holder: Holder | None = None, key: Any = None):
        """Look at a value, which may be held under a key."""
        if holder:
            holder.keys[key] = None
        name, count = path, 1
        while path in self.facts:  # such as that of two functions with one name
            path, count = f"{name} ({count + 1})", count + 1
        if isinstance(value, ATOMS):
            self.facts[path] = type(value), repr(value) if isinstance(value, float) else value
        elif id(value) in self.seen:
            self.facts[path] = "same as", self.seen[id(value)][0]
        else:
            self.seen[id(value)] = path, value
            self.facts[path] = type(value)
            if len(self.seen) > MOST:
                raise CannotRecord(f"{path} holds more than can be looked at")
            if isinstance(value, torch.Tensor):
                self.see_tensor(value, path)
            else:
                self.see(value, path)

    def see(self, value: Any, path: str) -> None:
        library = library_of(value)
        if library and library not in KNOWN:
            raise CannotRecord(f"{path} is read, and what it does depends on more than can be seen")
        parts = next((PARTS[kind] for kind in PARTS if isinstance(value, kind)), ())
        if isinstance(value, types.CellType):
            self.cells.append(value)
        if isinstance(value, IN_C):
            self.facts[path] = value
        if parts or isinstance(value, IN_C):
            for name in parts:
                with contextlib.suppress(ValueError):  # an empty cell
                    self.visit(getattr(value, name), f"{path}.{name}")
        elif isinstance(value, types.FunctionType):
            self.see_function(value, path, bool(library))
        elif isinstance(value, type):
            self.facts[path] = value
            if not library:
                self.see_class(value, made=True)
        elif isinstance(value, types.ModuleType):
            if not library:
                self.see_items(vars(value), path, self.names)
        elif isinstance(value, weakref.ref):
            self.visit(value(), f"{path}()")
        else:
            self.see_object(value, path, bool(library))

    def see_tensor(self, tensor: torch.Tensor, path: str) -> None:
        if tensor.device.type != "cpu" or tensor.layout != torch.strided or tensor.is_inference():
            raise CannotRecord(f"{path} is not a usual tensor of the processor")
        if tensor.grad_fn is not None:
            raise CannotRecord(f"{path} remembers how it was computed: detach it")
        self.facts[path] = tensor.shape, tensor.dtype, tensor.requires_grad
        self.tensors[path] = tensor
        for name, value in {"hooks": getattr(tensor, HOOKS), "attributes": vars(tensor)}.items():
            if value:
                self.visit(value, f"{path}.{name}")

    def see_items(self, held: dict, path: str, names: Container | None = None) -> None:
        """The items of a dictionary, or attributes of an object, or those with these names."""
        holder = self.holder(held)
        skipped = {"_non_persistent_buffers_set"}
        if any(held is each for each in self.rates):
            skipped.add("lr")
        for key in [x for x in held if (names is None or x in names) and x not in skipped]:
            if isinstance(key, str) and "_hooks" in key and not held[key]:
                continue  # `Guard` notices when a hook is registered
            if isinstance(key, torch.Tensor):
                where = f"{path}[{self.seen.get(id(key), ('a tensor',))[0]}]"
            elif isinstance(key, (*ATOMS, tuple, type, types.FunctionType)):
                where = f"{path}.{key}" if isinstance(key, str) else f"{path}[{key!r}]"
            else:
                raise CannotRecord(f"{path} has keys whose state cannot be seen")
            if key not in ("_parameters", "_buffers", "_modules"):
                self.visit(held[key], where, holder, key)
            else:  # of a module
                holder.keys[key] = None
                self.see_items(held[key], path)

    def see_object(self, value: Any, path: str, library: bool) -> None:
        """What an object or a container holds, and its class."""
        kind: Any = type(value)
        if isinstance(value, dict):
            self.facts[path] = kind, len(value)
            self.see_items(value, path)
        elif isinstance(value, (tuple, *LISTS)):
            self.facts[path] = kind, len(value)
            holder = None if isinstance(value, tuple) else self.holder(value)
            for k, one in enumerate(value):
                self.visit(one, f"{path}[{k}]", holder, k)
        elif (
            not hasattr(value, "__dict__")
            or isinstance(value, (*GENERATORS, functools._lru_cache_wrapper))
            or any(vars(each).get("__slots__") for each in own_classes(kind))
        ):
            raise CannotRecord(f"{path} is a {kind.__name__}, whose state cannot be seen")
        optimizer = isinstance(value, torch.optim.Optimizer)
        if optimizer:  # first, since its averages are named after parameters
            self.rates += [x for x in value.param_groups if isinstance(x["lr"], float | int)]
            self.visit(value.param_groups, f"{path}.param_groups")
        if hasattr(value, "__dict__"):
            every = library or optimizer or isinstance(value, torch.nn.Module)
            self.see_items(vars(value), path, None if every else self.names)
        if optimizer:
            self.see_counts(value, path)
        self.see_class(kind)

    def see_counts(self, optimizer: torch.optim.Optimizer, path: str) -> None:
        """Counts of steps: one number as long as they are equal."""
        for k, group in enumerate(optimizer.param_groups):
            counts: dict[str, list[str]] = {}
            for parameter in group["params"]:
                for name, value in optimizer.state.get(parameter, {}).items():
                    if isinstance(value, torch.Tensor) and not value.ndim:
                        counts.setdefault(name, []).append(self.seen[id(value)][0])
            for name, places in counts.items():
                equal = len({self.tensors[place].item() for place in places}) == 1
                self.facts[f"{path}: whether each {name} of group {k} is equal"] = equal
                if equal:
                    self.shared[places[0]] = places

    def see_class(self, kind: type, made: bool = False) -> None:
        """The functions of a class that the code names, and its attributes likewise."""
        skipped = SHOWING if made else SHOWING | MAKING
        for each in own_classes(kind):
            holder = self.holder(each)
            for name, value in [*vars(each).items()]:
                special = name[:2] == "__" and isinstance(value, types.FunctionType)
                wanted = special or name in self.names | IMPLICIT
                if wanted and name not in holder.keys.keys() | skipped:
                    self.visit(value, f"{each.__qualname__}.{name}", holder, name)

    def see_function(self, function: types.FunctionType, path: str, library: bool) -> None:
        self.facts[path], name = function.__code__, function.__qualname__
        parts = [
            *zip(function.__code__.co_freevars, function.__closure__ or (), strict=True),
            *enumerate(function.__defaults__ or ()),
            *(function.__kwdefaults__ or {}).items(),
        ]
        for key, value in parts:
            if key != "__class__":  # which `super` needs; the object has led to it
                self.visit(value, f"{key} of {name}")
        if library:
            return
        self.see_items(vars(function), name, self.names)
        space = function.__globals__
        for code in codes_of(function.__code__):
            self.codes.add(code)
            variables, attributes = names_in(code)
            self.names |= attributes
            if bad := (variables - space.keys()) & REFUSED | attributes & REFUSED_METHODS:
                raise CannotRecord(f"{min(bad)} is called in {code.co_qualname}")
            self.see_items(space, "", variables - self.holder(space).keys.keys())


@functools.cache
def names_in(code: types.CodeType) -> tuple[frozenset[str], frozenset[str]]:
    """Names of variables, and of all that may be attributes, in a function's code."""
    variables, attributes = set(), set()
    for instruction in dis.get_instructions(code):
        name, kind = instruction.argval, instruction.opname
        if kind == "IMPORT_NAME" and name.partition(".")[0] not in KNOWN:
            raise CannotRecord(f"{name} is imported in {code.co_qualname}")
        if kind.endswith(("_GLOBAL", "_NAME")) and "IMPORT" not in kind:
            variables.add(name)
        elif isinstance(name, str) and name.isidentifier() and "FAST" not in kind:
            attributes.add(name)  # also a constant, as `asdict` may use it
    return frozenset(variables), frozenset(attributes)


def codes_of(code: types.CodeType) -> Iterator[types.CodeType]:
    """A function's code and that of the functions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes_of(constant)


def library_of(value: Any) -> str | None:
    """The library of a module, function, class or object; None: it is somebody's own."""
    name: Any
    file: Any
    if isinstance(value, types.FunctionType):  # whatever it wraps
        name, file = value.__globals__.get("__name__"), value.__code__.co_filename
    else:
        kind = value if isinstance(value, type) else type(value)
        made = isinstance(value, (type, types.BuiltinFunctionType)) and value.__module__
        name = value.__name__ if isinstance(value, types.ModuleType) else made or kind.__module__
        file = getattr(sys.modules.get(name), "__file__", None)
        if name in sys.builtin_module_names and not kind.__flags__ & HEAP:
            file = "<frozen"
    return name.partition(".")[0] if file and is_library(file) else None


@functools.cache
def own_classes(kind: type) -> list[type]:
    """A class and those that it inherits from, without those of libraries."""
    return [each for each in kind.__mro__ if library_of(each) is None]


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Names of facts that are not the same."""
    return [x for x in {**one, **other} if one.get(x, differences) != other.get(x, differences)]


class Saved:
    """All that a reading found, as it was, and the generators; `restore` brings it back."""

    def __init__(self, reading: Reading):
        self.held = [(each, each.contents.copy()) for each in reading.holders.values()]
        self.cells = [(cell, cell.cell_contents) for cell in reading.cells]
        self.chance, self.torch = (random.getstate(), np.random.get_state()), torch.get_rng_state()
        self.tensors = []
        for tensor in reading.tensors.values():
            grad = tensor.grad
            numbers = tensor.detach().clone(), None if grad is None else grad.clone()
            self.tensors.append((tensor, grad, numbers, tensor.requires_grad))

    def refuse_effects(self, method: str, before: Reading, after: Reading) -> None:
        """A method may change tensors and draw PyTorch's random numbers, and nothing else."""
        if changed := differences(before.facts, after.facts):
            raise CannotRecord(f"{method} changes {changed[0]}")
        now = random.getstate(), np.random.get_state()
        if pickle.dumps(now) != pickle.dumps(self.chance):
            raise CannotRecord(f"{method} draws random numbers of Python or NumPy")

    @torch.no_grad()
    def restore(self) -> None:
        for holder, contents in self.held:
            holder.restore(contents)
        for cell, content in self.cells:
            cell.cell_contents = content
        for tensor, grad, (numbers, gradients), wanted in self.tensors:
            tensor.copy_(numbers)
            tensor.requires_grad_(wanted)
            tensor.grad = grad
            if grad is not None and gradients is not None:
                grad.copy_(gradients)
        random.setstate(self.chance[0])
        np.random.set_state(self.chance[1])
        torch.set_rng_state(self.torch)

    @contextlib.contextmanager
    def undone(self) -> Iterator[None]:
        """Undo afterwards whatever happens in a context."""
        try:
            yield
        finally:
            self.restore()


class Guard:
    """Says in microseconds whether a reading still tells what is there."""

    def __init__(self, reading: Reading):
        self.sized = [each.contents for each in reading.holders.values()]
        self.sizes = list(map(len, self.sized))
        self.items = [
            (operator.itemgetter(*each.keys, next(iter(each.keys))), each.contents)
            for each in reading.holders.values()
            if each.keys
        ]
        self.cells = reading.cells
        self.held = list(self.now())
        self.tensors = [*reading.tensors.values()]
        self.told, self.hooks = told(self.tensors), hooks_so_far()
        self.shared = [
            [reading.tensors[place].detach().numpy() for place in places]
            for places in reading.shared.values()
        ]

    def now(self) -> Iterator[Any]:
        """All that is held."""
        cells = [cell.cell_contents for cell in self.cells]
        return itertools.chain(cells, *[get(contents) for get, contents in self.items])

    def holds(self) -> bool:
        try:
            return (
                self.hooks == hooks_so_far()
                and list(map(len, self.sized)) == self.sizes
                and all(map(operator.is_, self.now(), self.held))
                and told(self.tensors) == self.told
                and all([len(set(map(float, equal))) == 1 for equal in self.shared])
            )
        except Exception:  # what is there now cannot even be compared
            return False


def told(tensors: Collection[torch.Tensor]) -> tuple:
    """Where the numbers of tensors lie, and how they learn."""
    return (
        list(map(torch.Tensor.data_ptr, tensors)),
        list(map(torch.Tensor.stride, tensors)),
        list(map(torch.Tensor.numel, tensors)),
        [tensor.requires_grad for tensor in tensors],
    )
