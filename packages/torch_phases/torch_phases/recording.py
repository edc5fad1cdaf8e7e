"""Methods as `torch.compile` sees them: it takes a call into one graph, or says why it cannot.

Before each phase it looks whether its graph still holds. What it then runs is not a step, but this
back end, which only notes the tensors that the graph wants; a phase is computed from them.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.compiler import set_stance

from torch_phases import private
from torch_phases.reading import Contents
from torch_phases.step import Step
from torch_phases.words import ELSEWHERE, GRADIENT, HOOKS, RANDOM, Refused, changed

RECORDINGS = 16  # of one method, as something has changed; then PyTorch computes
COUNT = itertools.count()
RECORDERS: dict[tuple, Recorder] = {}


def recorder_of(kind: type, method: str, anew: bool) -> Recorder:
    """One for all learners of a class: Dynamo looks whether its graphs hold for another one."""
    known = RECORDERS.get((kind, method))
    if anew or known is None or any(f.__code__ is not code for f, code in known.codes.items()):
        known = RECORDERS[kind, method] = Recorder(f"{kind.__name__}_{method}")
    return known


class Recorder:
    """Recordings of one method of a class."""

    def __init__(self, name: str):
        self.wanted: Any = None  # the step, and the inputs of its graph
        self.is_new = False  # whether the call before was recorded
        self.codes: dict = {}  # of functions, as they were recorded

        def one(function: Any, *arguments: Any) -> Any:
            return function(*arguments)

        # Dynamo knows its recordings, and which numbers have changed, by this name.
        one.__code__ = one.__code__.replace(co_name=f"{name}_{next(COUNT)}")
        options: Any = {"backend": self.backend, "recompile_limit": RECORDINGS}
        self.recorded = torch.compile(one, fullgraph=True, **options)

    def backend(self, module: Any, examples: list) -> Any:
        for change in private.side_effects():
            raise changed(*change)
        for function, *_ in private.random_calls():
            raise Refused(*RANDOM, f"random.{function.__name__}")
        step = Step(module, examples)
        grads = {id(x.grad) for x in examples if x.is_leaf and x.grad is not None}
        if any(id(examples[k]) in grads for k in step.used):
            raise Refused(*GRADIENT)
        self.is_new = True

        def note(*inputs: torch.Tensor) -> list:
            self.wanted = step, inputs
            return [*step.outputs]

        return note

    def note(self, learner: Any, method: str, arguments: Any, known: Any = ()) -> tuple:
        """The step, the inputs of its graph, what the call returned, and the learner's contents.

        These stay as they are `known`, its tensors and optimizers, while Dynamo's guards hold so.
        """
        called = getattr(learner, method), *arguments
        if known:
            with contextlib.suppress(Exception):
                return *self.noted(called, lambda: set_stance("fail_on_recompile"), *known), known
        contents = Contents(learner)
        known = contents.tensors, contents.optimizers
        noted = self.noted(called, private.settings, *known)
        self.codes |= contents.codes() if self.is_new else {}
        return *noted, known

    def noted(self, called: tuple, settings: Any, tensors: list, optimizers: list) -> tuple:
        self.is_new = False
        learn = [x for x in tensors if x.requires_grad and x.is_leaf]
        after, begun, inputs = [(x, x.grad) for x in learn], [], ()
        try:
            for x in learn:  # as after a step: whether a graph uses them shows in its inputs
                x.grad = torch.empty_like(x)
            begun = [(each.state, x) for each in optimizers for x in private.begin(each)]
            with settings(), opened(optimizers):
                result = self.recorded(*called)
            if any(map(private.has_hooks, self.wanted[1])):
                raise Refused(*HOOKS)
            (step, inputs), self.wanted = self.wanted, None
            graded = [x for x in inputs if x.requires_grad and x.is_leaf and x.grad is not None]
            after = [(x, None) for x in learn + graded]  # gradients stay inside
            if {*map(id, graded)} - {*map(id, learn)}:
                raise Refused(*ELSEWHERE)
        finally:
            used = {*map(id, inputs)}
            for state, x in begun:
                if used.isdisjoint(map(id, state[x].values())):  # its parameter does not learn
                    del state[x]
            for x, grad in after:
                x.grad = grad
        return step, inputs, result


@contextlib.contextmanager
def opened(optimizers: Sequence[torch.optim.Optimizer]) -> Iterator[None]:
    """Optimizers as objects like any other: PyTorch's hide their steps from Dynamo."""
    with contextlib.ExitStack() as undone:
        for each in optimizers:
            if private.optimizer_has_hooks(each):
                raise Refused(*HOOKS)
            if step := vars(each).pop("step", None):  # a schedule's, which notes that it was called
                undone.callback(vars(each).update, step=step)
            for group in each.param_groups:
                others: dict[str, Any] = dict.fromkeys({"foreach", "fused"} & group.keys(), False)
                if isinstance(group.get("lr"), float):
                    others["lr"] = torch.tensor(group["lr"], dtype=torch.float64)
                undone.callback(group.update, {name: group[name] for name in others})
                group.update(others)
            kind: Any = type(each)
            undone.callback(setattr, each, "__class__", kind)
            each.__class__ = private.plain(kind)
        yield
