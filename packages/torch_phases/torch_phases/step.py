"""A recorded step as a function of JAX's arrays, and many steps as one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.fx import Node

from torch_phases import private, to_jax, words
from torch_phases.phases import stacked
from torch_phases.private import memory_of, name_of
from torch_phases.to_jax import OPERATIONS, jax, jnp, number_type
from torch_phases.words import Refused

# Random operations that need no numbers of a tensor, but at most its shape, begin so.
DRAWS = "aten.rand", "aten.normal_fun", "aten.normal.float_f", "aten.bernoulli.p", "aten.uniform"


class Step:
    """A graph without backward passes, operations in place and rare operations.

    Attributes:
        inputs, results: nodes; a result may be None.
        writes: which inputs the step writes into, by number, and where.
        counts: inputs that each step adds 1 to, such as an optimizer's for each of its tensors.
        draws: nodes of random numbers, in their order.
        outputs: tensors that stand for the results, to find out what a method returns.
        room: for how many steps a phase is compiled; it has fewer, or is compiled once more.
    """

    def __init__(self, module: Any, examples: Sequence[torch.Tensor]):
        numbers_to_tensors(module.graph)
        module.recompile()
        self.graph = private.pure(module, examples)
        nodes = self.graph.graph.nodes
        self.calls = [n for n in nodes if n.op in ("call_function", "get_attr")]
        self.inputs = [n for n in nodes if n.op == "placeholder"]
        self.draws = [n for n in self.calls if private.is_random(n.target)]
        for n in self.draws:
            if not str(n.target).startswith(DRAWS) or n.kwargs.get("generator"):
                raise Refused(*words.RANDOM, code_of(n))
        others = [n for n in self.calls if n not in self.draws and not is_of_python(n)]
        if missing := [n for n in others if name_of(n.target) not in OPERATIONS]:
            names = ", ".join(dict.fromkeys(name_of(n.target) for n in missing))
            what = f"uses {names}, not translated", ""
            raise Refused(*(words.PLACES if "index" in names else what), code_of(missing[0]))
        writes = [n for n in self.calls if name_of(n.target) == "copy_"]
        self.writes = {n: self.inputs.index(written_into(n)) for n in writes}
        new = {k: n.args[1] for n, k in self.writes.items()}
        sums = [k for k, n in new.items() if name_of(n.target) == "add" and not n.kwargs]
        self.counts = {k for k in sums if new[k].args == (self.inputs[k], 1)}
        *_, end = nodes
        self.used = [k for k, n in enumerate(self.inputs) if n.users.keys() - {end}]
        self.results: list[Any] = [*end.args[0]]
        self.outputs: list[Any] = [n if n is None else zeros(n) for n in self.results]
        self.places = {id(x): k for k, x in enumerate(self.outputs) if x is not None}
        self.room = 0
        # The state is given away: else XLA copies all of it in a second thread, and stays there.
        options: Any = {"donate_argnums": 0, "compiler_options": to_jax.COMPILER_OPTIONS}
        self.phase = jax.jit(self.steps, static_argnums=6, **options)

    def run(self, inputs: Mapping[int, Any], draws: Sequence) -> tuple[list, dict]:
        """One step in JAX: its results, and what it writes into inputs, by their numbers."""
        values = {self.inputs[k]: x for k, x in inputs.items()}
        values |= zip(self.draws, draws, strict=True)
        new = {}
        for n in self.calls:
            if n not in values:
                values[n] = value_of(n, values)
            if n in self.writes:
                k = self.writes[n]
                new[k] = values[n].astype(inputs[k].dtype)
        return [*map(values.get, self.results)], new

    def steps(self, state: dict, results: dict, fixed: dict, rows: dict, draws: list, steps, same):
        """Many steps, with some results: the state in the end, and the results with their rows.

        Inputs and results go by their numbers; `same` has pairs of equal ones.
        """

        def body(k, carried):
            state, results = carried
            own, drawn = jax.tree.map(
                lambda x: jax.lax.dynamic_index_in_dim(x, k, 0, False), (rows, draws)
            )
            found, new = self.run({k: state[j] for k, j in same} | fixed | own, drawn)
            for j, x in results.items():
                row = found[j].astype(x.dtype)
                results[j] = jax.lax.dynamic_update_index_in_dim(x, row, k, 0)
            return {j: new[j] for j in state}, results

        return jax.lax.fori_loop(0, steps, body, (state, results))


class Phase:
    """Many steps for some tensors, the inputs of the graph; `state` has those that they change.

    `stacks` has rows for inputs that each step has its own of, by id; the call returned `leaves`.
    """

    def __init__(self, step: Step, inputs: Sequence, stacks: dict, leaves: Sequence, steps: int):
        self.step, self.stacks, self.leaves = step, stacks, leaves
        self.wanted = sorted({step.places[id(x)] for x in leaves if id(x) in step.places})
        own = {id(x) for x in leaves if isinstance(x, torch.Tensor)} - {*step.places, *stacks}
        if own or any(step.results[k] in step.inputs for k in self.wanted):
            raise Refused(*words.RETURNED)
        self.given = {k: stacks[id(x)] for k, x in enumerate(inputs) if id(x) in stacks}
        self.state = {k: inputs[k] for k in step.writes.values() if k not in self.given}
        self.fixed = {k: inputs[k] for k in {*step.used} - {*self.given, *self.state}}
        written, read = (set(map(memory_of, x.values())) for x in (self.state, self.fixed))
        if len(written) < len(self.state) or written & read:  # which no guard of Dynamo sees
            raise Refused(*words.SHARED)
        first: dict[Any, int] = {}  # of equal counts, which are computed once
        counts = {k for k, x in self.state.items() if k in step.counts and not x.ndim}
        kinds = {k: (x.dtype, x.item()) if k in counts else k for k, x in self.state.items()}
        self.same = tuple((k, first.setdefault(kind, k)) for k, kind in kinds.items())
        if steps > step.room:
            step.room = max(steps, 2 * step.room)

    def run(self, steps: int) -> list:
        """Compute the first steps; what the method returns in them, leaf by leaf."""
        drawn = zip(*([draw(n) for n in self.step.draws] for _ in range(steps)), strict=True)
        draws = [room_for(torch.stack(each), self.step.room) for each in drawn]
        rows = {k: room_for(stack, self.step.room) for k, stack in self.given.items()}
        results = {k: room_for(self.step.outputs[k][None], self.step.room) for k in self.wanted}
        memory = {k: x.detach().numpy() for k, x in self.state.items()}
        state = {k: memory[k] for _, k in self.same}
        fixed = {k: x.detach().numpy() for k, x in self.fixed.items()}
        given = state, results, fixed, rows, draws, np.int32(steps), self.same
        with jax.enable_x64(True):
            after, results = self.step.phase(*given)
        for k, j in self.same:
            memory[k][...] = np.asarray(after[j])
        torch.autograd.graph.increment_version(self.state.values())

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
        return jnp.asarray(getattr(n.graph.owning_module, n.target).numpy())
    kind = n.meta.get("val")
    alone = is_number(kind) and all(is_number(x.meta.get("val")) for x in n.all_input_nodes)

    def argument(x: Any) -> Any:
        known = x.meta.get("val")
        if not is_number(known):
            return values[x]
        met = kind if isinstance(kind, torch.Tensor) and kind.is_floating_point() else known
        return values[x].astype(np.float64 if alone else number_type(met.dtype))

    args, kwargs = torch.fx.map_arg((n.args, n.kwargs), argument)
    try:
        operation = n.target if is_of_python(n) else OPERATIONS[name_of(n.target)]
        with jax.named_scope(code_of(n)):
            found = operation(*args, **kwargs)
    except Exception as error:
        told = str(error).strip().partition("\n")[0]
        what = f"uses {name_of(n.target)}, not translated for its arguments ({told})"
        raise Refused(what, "", code_of(n)) from None
    if not isinstance(kind, torch.Tensor):
        return found
    found = jnp.asarray(found, np.float64 if alone else number_type(kind.dtype))
    fitted = jnp.reshape if found.size == kind.numel() else jnp.broadcast_to
    return fitted(found, kind.shape)


def is_number(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.ndim == 0 and x.is_floating_point()


def is_of_python(n: Node) -> bool:
    """Whether it is a constant, only takes a value of several, or is about numbers of Python."""
    return isinstance(n.target, (str, type(len)))


def written_into(n: Any) -> Node:
    """The input: a second write, such as of batch normalization, goes into what the first left."""
    return written_into(n.args[0]) if n.op == "call_function" else n


def code_of(n: Node) -> str:
    """The function and the line of code of a node, as far as they are known."""
    return words.place_in(n.meta.get("stack_trace") or "")


def numbers_to_tensors(graph: Any) -> None:
    """Numbers of Python that have changed, such as learning rates, are inputs of a graph."""
    for n in graph.find_nodes(op="call_method", target="item"):
        if n.args[0].op != "placeholder":
            raise Refused(*words.LOOKS, code_of(n))
        n.target, n.args = "to", (n.args[0], torch.float32)
    for n in graph.nodes:  # x.add_(y, alpha=rate) takes no tensor as a rate
        if isinstance(factor := n.kwargs.get("alpha"), Node):
            with graph.inserting_before(n):
                product = graph.call_function(torch.mul, (n.args[1], factor))
            n.args, n.kwargs = (n.args[0], product), {}


def zeros(n: Node) -> torch.Tensor:
    """As many as a node has numbers."""
    return torch.zeros(n.meta["val"].shape, dtype=n.meta["val"].dtype)


def draw(n: Any) -> torch.Tensor:
    """New random numbers of a node, from PyTorch's generator."""
    options = {k: v for k, v in n.kwargs.items() if k != "device"}
    return n.target(*torch.fx.map_arg(n.args, zeros), **options)


def room_for(stack: torch.Tensor, room: int) -> np.ndarray:
    """Rows and room for more, as JAX takes them: else it copies them, in a second thread."""
    if len(stack) < room or stack.data_ptr() % 64 or not stack.is_contiguous():
        stack = torch.cat([stack, stack.new_empty((room - len(stack), *stack.shape[1:]))])
    return stack.numpy()
