"""All that this package uses of PyTorch without a promise that it stays; 2.13 was run.

Whatever is missing in another version is an error here or in a recording. Then PyTorch computes,
and a line says so (`phases.py`).
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from unittest import mock

import torch
import torch._dynamo as dynamo
from torch._decomp import decomposition_table
from torch._dynamo.pgo import FrameStateSizeEntry
from torch._dynamo.side_effects import SideEffects
from torch._dynamo.symbolic_convert import InstructionTranslator
from torch._dynamo.variables import TensorVariable
from torch._dynamo.variables.constant import CONSTANT_VARIABLE_NONE
from torch._subclasses.functional_tensor import dispatch_functionalize
from torch.fx import Interpreter, traceback
from torch.fx.experimental import proxy_tensor
from torch.optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks

from torch_phases.to_jax import OPERATIONS

SETTINGS = dynamo.config.patch(
    trace_autograd_ops=True,  # backward() belongs to the graph
    trace_numpy=False,  # NumPy's random numbers would be PyTorch's
    specialize_int=True,  # whole numbers are looked at, not computed with
    skip_nnmodule_hook_guards=False,  # a hook that comes later counts
    run_gc_after_compile=False,  # as phases.py: no garbage is collected in a phase
)
PLAIN = torch._C.DispatchKey.CompositeExplicitAutograd  # of operations on lists
# Ways of giving arguments that make another operation of one.
OTHERS = "max.dim min.dim view.dtype div.Tensor_mode div.Scalar_mode round.decimals".split()
# They tell that names of steps are ignored, and trace what becomes an error or a line anyway.
for name in ("_dynamo.variables.ctx_manager", "_subclasses.fake_tensor", "_guards"):
    logging.getLogger(f"torch.{name}").setLevel(logging.CRITICAL)


def getattr_of_tensor(variable: Any, *args: Any, get: Any = TensorVariable.var_getattr) -> Any:
    """Dynamo 2.13 notes at its only None of all recordings that it is this gradient, once it is."""
    found = get(variable, *args)
    CONSTANT_VARIABLE_NONE.source = None
    return found


@contextlib.contextmanager
def settings() -> Iterator[None]:
    """A context in which Dynamo records as a phase needs it; JAX has no sizes to compute with."""
    mended = mock.patch.object(TensorVariable, "var_getattr", getattr_of_tensor)
    static = mock.patch.object(FrameStateSizeEntry, "make_tensor", lambda *_: FrameStateSizeEntry())
    untold = mock.patch.object(SideEffects, "_format_side_effect_message", lambda *_: "")
    CONSTANT_VARIABLE_NONE.source = None
    with SETTINGS, mended, static, untold:  # messages take a twentieth of a recording
        yield


def random_calls() -> Sequence:  # of Python, which Dynamo would do once a phase
    return InstructionTranslator.current_tx().output.random_calls


def side_effects() -> Iterator[tuple[str, list[str], Any]]:
    """What a method that is recorded changes and is no tensor: its source, attributes, a trace."""
    effects = InstructionTranslator.current_tx().output.side_effects
    for each in effects._get_modified_vars():
        if hasattr(each, "has_new_items") and not each.has_new_items():
            continue  # a dict that was given what it had
        changes = effects.store_attr_mutations.get(each, {})
        attributes = [name for name, new in changes.items() if not is_as_before(each, name, new)]
        if changes and not attributes:
            continue  # such as train() and eval() again
        if each.source is None or each.python_type() in (torch.Tensor, torch.nn.Parameter):
            if {*attributes} <= {"grad"}:
                continue
        stacks = effects.mutation_user_stacks.get(each)
        source = each.source.name if each.source is not None else each.python_type().__name__
        yield source, attributes, stacks and stacks[-1]


def is_as_before(each: Any, name: str, new: Any) -> bool:
    """Whether an attribute that was written has in the end the value that it had."""
    known = vars(each.value).get(name) if hasattr(each.__dict__.get("value"), "__dict__") else None
    return known is not None and new.is_python_constant() and new.as_python_constant() is known


def memory_of(tensor: torch.Tensor) -> int:
    """What is the same for all tensors that share memory."""
    return tensor.untyped_storage()._cdata


def has_hooks(x: torch.Tensor) -> bool:
    return bool(x.requires_grad and (x._backward_hooks or x._post_accumulate_grad_hooks))


def optimizer_has_hooks(optimizer: torch.optim.Optimizer) -> bool:
    own = optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks
    return bool(own or _global_optimizer_pre_hooks or _global_optimizer_post_hooks)


def begin(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """Make the zero state that a kind such as Adam makes in its first step; say of what."""
    make: Any = getattr(optimizer, "_init_group", None)
    state = optimizer.state
    known = {*map(id, state)}
    for group in optimizer.param_groups if make else ():
        new = [x for x in group["params"] if x.grad is not None and id(x) not in known]
        if new:
            make(group, *([] for _ in [*inspect.signature(make).parameters][1:]))
        if isinstance(optimizer, torch.optim.SGD) and group["momentum"] and not group["dampening"]:
            for x in new:  # which begins with a gradient, and so with 0 times a buffer more
                state[x]["momentum_buffer"] = torch.zeros_like(x)
    return [x for x in state if id(x) not in known]


@functools.cache
def plain(kind: type) -> type:
    """A kind of optimizer without what is wrapped around its methods, hiding it from Dynamo."""
    names: dict[str, Any] = {
        name: inspect.unwrap(x) if inspect.isfunction(x) else x
        for base in reversed(kind.__mro__[:-1])
        for name, x in vars(base).items()
        if name not in ("__dict__", "__weakref__")
    }
    return type(kind.__name__, (), names | {"step": torch.no_grad()(names["step"])})


def name_of(operation: Any) -> str:
    """The name of an operation, such as "add": the same for all ways of giving shapes and types."""
    full = str(operation).removeprefix("aten.")
    short = full.rpartition(".")[0].removesuffix("_like").removeprefix("new_")
    return full if full in OTHERS else short


def is_random(operation: Any) -> bool:
    return torch.Tag.nondeterministic_seeded in getattr(operation, "tags", ())


def pure(module: Any, examples: Sequence[torch.Tensor]) -> Any:
    """A graph without backward passes, operations in place and rare operations."""
    copies = [x.detach().clone().requires_grad_(x.requires_grad) for x in examples]
    whole = dispatch_functionalize(lambda *own: (Interpreter(module).run(*own), own))

    def run(*inputs: torch.Tensor) -> Any:
        with torch.enable_grad():  # the backward passes become operations
            found, after = whole(*inputs)
        for x, new in zip(inputs, after, strict=True):
            if new is not x:
                x.copy_(new)
        return found

    def kind_of(x: Any, **_: Any) -> Any:  # of each value; its own way takes a tenth of a recording
        return x.detach().to("meta") if isinstance(x, torch.Tensor) else x

    kinds = mock.patch.object(proxy_tensor, "extract_val", kind_of)
    with kinds, torch.no_grad(), torch.random.fork_rng(()), traceback.preserve_node_meta():
        return proxy_tensor.make_fx(run, decompositions())(*copies)


@functools.cache
def decompositions() -> Mapping[Any, Callable]:
    """How PyTorch makes operations of others; those of JAX and random ones stay as they are."""
    table: dict[Any, Callable] = {**decomposition_table}
    table[torch.ops.prims.fma.default] = lambda a, b, c: a * b + c
    for name in (x for x in dir(torch) if x.startswith("_foreach_")):
        packet = getattr(torch.ops.aten, name.removesuffix("_"))  # on lists: by those on tensors
        for operation in (getattr(packet, overload) for overload in packet.overloads()):
            table[operation] = functools.partial(operation._op_dk, PLAIN)
    return {x: f for x, f in table.items() if not (is_random(x) or name_of(x) in OPERATIONS)}
