"""A recorded step as a function of JAX's arrays, and many steps as one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.func import functionalize
from torch.fx import Interpreter, Node

from torch_phases import private, to_jax, words
from torch_phases.phases import stacked
from torch_phases.private import make_fx, memory_of, name_of, traceback
from torch_phases.to_jax import OPERATIONS, jax, jnp, number_type
from torch_phases.words import Refused

ROOM = 64  # steps for which a phase has room, or a power of two above
DRAWS = set(  # random operations that need no numbers of a tensor, but at most its shape
    "aten.randn.default aten.rand.default aten.randint.default aten.randint.low "
    "aten.randn_like.default aten.rand_like.default aten.normal_functional.default "
    "aten.normal.float_float aten.bernoulli.p aten.uniform.default".split()
)


class Step:
    """A graph of Dynamo without backward passes, operations in place and rare operations.

    Args:
        module: the graph.
        examples: its inputs.

    Attributes:
        inputs, results: nodes; a result may be None.
        changed: which inputs the step writes into, by number.
        draws: nodes of random numbers, in their order.
        outputs: tensors that stand for the results, to find out what a method returns.
    """

    def __init__(self, module: Any, examples: Sequence[torch.Tensor]):
        numbers_to_tensors(module.graph)
        module.recompile()
        copies = [x.detach().clone().requires_grad_(x.requires_grad) for x in examples]
        with torch.random.fork_rng(devices=()), traceback.preserve_node_meta():
            with torch.enable_grad():  # the backward passes become operations
                whole = make_fx(Interpreter(module).run)(*copies)
            with torch.no_grad():  # and those in place become pure
                pure = functionalize(Interpreter(whole).run, remove="mutations")
                table = private.decompositions(OPERATIONS.__contains__)
                self.graph = make_fx(pure, table)(*(x.detach().clone() for x in copies))
        nodes = self.graph.graph.nodes
        self.calls = [n for n in nodes if n.op == "call_function"]
        self.inputs = [n for n in nodes if n.op == "placeholder"]
        self.draws = [n for n in self.calls if private.is_random(n.target)]
        for n in self.draws:
            if str(n.target) not in DRAWS or n.kwargs.get("generator"):
                raise Refused(*words.RANDOM, code_of(n))
        others = [n for n in self.calls if n not in self.draws and not is_of_python(n)]
        if missing := [n for n in others if name_of(n.target) not in OPERATIONS]:
            names = ", ".join(dict.fromkeys(name_of(n.target) for n in missing))
            what = f"uses {names}, not translated", ""
            raise Refused(*(words.PLACES if "index" in names else what), code_of(missing[0]))
        written = {written_into(n) for n in self.calls if is_written(n)}
        self.changed = [k for k, n in enumerate(self.inputs) if n in written]
        end = next(iter(reversed(nodes)))
        self.used = [k for k, n in enumerate(self.inputs) if n.users.keys() - {end}]
        self.results: list[Any] = [*end.args[0]]
        kinds = [x if x is None else x.meta["val"] for x in self.results]
        self.outputs = [x if x is None else torch.zeros(x.shape, dtype=x.dtype) for x in kinds]
        self.places = {id(x): k for k, x in enumerate(self.outputs) if x is not None}
        self.phases: dict[tuple, Any] = {}

    def run(self, given: Sequence[Node], numbers: Sequence, wanted: Sequence[int]) -> tuple:
        """One step in JAX: some of its results, and what it writes into inputs, by these.

        Args:
            given: all inputs that are used.
            numbers: theirs, and those of the draws.
        """
        values, new = dict(zip((*given, *self.draws), numbers, strict=True)), {}
        for n in self.graph.graph.nodes:
            if n.op in ("call_function", "get_attr") and n not in values:
                values[n] = value_of(n, values)
            if is_written(n):
                into = written_into(n)
                new[into] = values[n].astype(values[into].dtype)
        return [values[self.results[k]] for k in wanted], new

    def compiled(self, given: Sequence[Node], wanted: Sequence[int], room: int):
        """The phase of at most `room` steps, with some results, by what is given to it.

        Args:
            given: inputs that it changes, others, and those with rows.
        """

        def phase(before, others, stacks, draws, steps):
            def body(k, carried):
                before, results = carried
                rows = [jax.lax.dynamic_index_in_dim(x, k, 0, False) for x in (*stacks, *draws)]
                found, new = self.run(given, (*before, *others, *rows), wanted)
                results = [
                    jax.lax.dynamic_update_index_in_dim(x, y.astype(x.dtype), k, 0)
                    for x, y in zip(results, found, strict=True)
                ]
                return [new[n] for n in given[: len(before)]], results

            empty = [self.outputs[k] for k in wanted]
            results = [jnp.zeros((room, *x.shape), number_type(x.dtype)) for x in empty]
            return jax.lax.fori_loop(0, steps, body, (before, results))

        return jax.jit(phase, compiler_options=dict(to_jax.COMPILER_OPTIONS))


class Phase:
    """Steps of a recorded method for some tensors.

    Args:
        step: of which there are many.
        inputs: the tensors that the graph takes.
        stacks: rows of those of them that each step has its own of, by their id.
        leaves: what the recorded call returned.

    Attributes:
        state: tensors that the phase changes.
    """

    def __init__(self, step: Step, inputs: Sequence, stacks: dict, leaves: Sequence, steps: int):
        self.step, self.stacks, self.leaves = step, stacks, leaves
        wanted = sorted({step.places[id(x)] for x in leaves if id(x) in step.places})
        own = {id(x) for x in leaves if isinstance(x, torch.Tensor)} - {*step.places, *stacks}
        if own or any(step.results[k] in step.inputs for k in wanted):
            raise Refused(*words.RETURNED)
        given = [k for k, x in enumerate(inputs) if id(x) in stacks]
        state = [k for k in step.changed if k not in given]
        fixed = sorted({*step.used} - {*given, *state})
        self.state, self.fixed = [inputs[k] for k in state], [inputs[k] for k in fixed]
        written, read = (set(map(memory_of, x)) for x in (self.state, self.fixed))
        if len(written) < len(state) or written & read:  # which no guard of Dynamo sees
            raise Refused(*words.SHARED)
        room = max(ROOM, 1 << (steps - 1).bit_length())
        key = (*given,), (*wanted,), room
        if key not in step.phases:
            nodes = [step.inputs[k] for k in (*state, *fixed, *given)]
            step.phases[key] = step.compiled(nodes, wanted, room)
        self.function = step.phases[key]
        self.given, self.wanted, self.room = [stacks[id(inputs[k])] for k in given], wanted, room

    def run(self, steps: int) -> list:
        """Compute the first steps; what the method returns in them, leaf by leaf."""
        drawn = zip(*([draw(n) for n in self.step.draws] for _ in range(steps)), strict=True)
        draws = [room_for(torch.stack(each), self.room) for each in drawn]
        rows = [room_for(stack[:steps], self.room) for stack in self.given]
        before = [x.detach().numpy() for x in self.state]
        fixed = [x.detach().numpy() for x in self.fixed]
        with jax.enable_x64(True):
            given = before, fixed, rows, draws, np.int32(steps)
            after, found = self.function(*given)
        for memory, new in zip(before, after, strict=True):
            memory[...] = np.asarray(new)
        torch.autograd.graph.increment_version(self.state)
        results = dict(zip(self.wanted, found, strict=True))

        def leaf(x: Any) -> Any:
            if id(x) in self.step.places:
                return np.array(np.asarray(results[self.step.places[id(x)]])[:steps])
            stack = self.stacks.get(id(x))
            return stacked(*[x] * steps) if stack is None else stack[:steps].numpy().copy()

        return [*map(leaf, self.leaves)]


def value_of(n: Any, values: dict) -> Any:
    """The value of an operation, or of a constant.

    What PyTorch's optimizers do with single numbers, they do in double precision, such as
    1 - beta**t. So does this, until a number meets an array.
    """
    if n.op == "get_attr":
        return jnp.asarray(constant_of(n).numpy())
    kind = n.meta.get("val")
    alone = is_number(kind) and all(is_number(x.meta.get("val")) for x in n.all_input_nodes)

    def argument(x: Any) -> Any:
        known = x.meta.get("val")
        if not is_number(known):
            return values[x]
        met = kind if isinstance(kind, torch.Tensor) and kind.is_floating_point() else known
        return values[x].astype(np.float64 if alone else number_type(met.dtype))

    args, kwargs = torch.fx.map_arg((n.args, n.kwargs), argument)
    if is_of_python(n):
        return n.target(*args)
    try:
        found = OPERATIONS[name_of(n.target)](*args, **kwargs)
    except Exception as error:
        told = str(error).strip().partition("\n")[0]
        what = f"uses {name_of(n.target)}, not translated for its arguments ({told})"
        raise Refused(what, "", code_of(n)) from None
    if not isinstance(kind, torch.Tensor):
        return found
    found = jnp.asarray(found, np.float64 if alone else number_type(kind.dtype))
    if found.size != kind.numel():
        return jnp.broadcast_to(found, kind.shape)
    return found.reshape(kind.shape)


def is_number(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.ndim == 0 and x.is_floating_point()


def is_of_python(n: Node) -> bool:
    """Whether a node only takes a value of several, or computes with numbers of Python."""
    return isinstance(n.target, type(len))


def is_written(n: Node) -> bool:
    """Whether it is what is written into an input."""
    return name_of(n.target) == "copy_"


def written_into(n: Node) -> Node:
    """The input: a second write, such as of batch normalization, goes into what the first left."""
    into: Any = n
    while into.op == "call_function":
        into = into.args[0]
    return into


def constant_of(n: Any) -> torch.Tensor:
    return getattr(n.graph.owning_module, n.target)


def shape_of(n: Node) -> Any:
    return getattr(n.meta.get("val"), "shape", None)


def code_of(n: Node) -> str:
    """The function and the line of code of a node, as far as they are known."""
    return words.place_in(n.meta.get("stack_trace") or "")


def numbers_to_tensors(graph: Any) -> None:
    """Numbers of Python that have changed, such as learning rates, are inputs of a graph."""
    for n in graph.find_nodes(op="call_method", target="item"):
        if n.args[0].op != "placeholder":
            raise Refused(*words.LOOKS, code_of(n))
        with graph.inserting_before(n):
            n.replace_all_uses_with(graph.call_method("to", (n.args[0], torch.float32)))
        graph.erase_node(n)
    for n in graph.nodes:  # x.add_(y, alpha=rate) takes no tensor as a rate
        if isinstance(factor := n.kwargs.get("alpha"), Node):
            with graph.inserting_before(n):
                product = graph.call_function(torch.mul, (n.args[1], factor))
            n.args, n.kwargs = (n.args[0], product), {}


def draw(n: Any) -> torch.Tensor:
    """New random numbers of a node, from PyTorch's generator."""
    args = torch.fx.map_arg(
        n.args, lambda x: torch.empty(x.meta["val"].shape, dtype=x.meta["val"].dtype)
    )
    return n.target(*args, **{k: v for k, v in n.kwargs.items() if k != "device"})


def room_for(stack: torch.Tensor, room: int) -> np.ndarray:
    """Rows and room for more, from a multiple of 64 bytes on, so that JAX takes it as it is."""
    memory = torch.zeros((room, *stack.shape[1:]), dtype=stack.dtype)
    memory[: len(stack)] = stack[:room]
    return memory.numpy()
