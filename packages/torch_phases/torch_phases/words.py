"""Why PyTorch computes, in a line: what a method does, in which function, and what to do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any


class Refused(ValueError):
    """Why PyTorch computes, or what the machine cannot do, in one line.

    Args:
        what: the method does, with a verb.
        advice: what to do.
        where: the function and its code.
    """

    def __init__(self, what: str, advice: str = "", where: str = ""):
        place, rest = f", in {where}" if where else "", f": {advice}" if advice else ""
        super().__init__(f"{what}{place}{rest}")


TENSORS = "keep it in a tensor of the learner and write into that, or outside of the method"
OUTSIDE = "do so outside, and give the method what comes out as an argument"

GRADIENT = "uses a gradient of the step before", "set gradients to zero before backward()"
ELSEWHERE = "gives a gradient to a tensor that hangs elsewhere", "let the learner have it"
HOOKS = "meets a hook of a tensor or optimizer", "do in the method what the hook does"
SHARED = "changes a tensor that shares memory with another one", "give it memory of its own (clone)"
RETURNED = "returns a tensor of the learner itself", "return a clone"
RANDOM = "draws random numbers in a way of its own", "draw with torch.rand, randn or randint"
LOOKS = "looks at a tensor's number", "choose with torch.where, or outside of the method"
PLACES = "takes places by a list or tensor", "multiply by a mask, use torch.where, or slice"
SIZES = "makes a tensor whose size depends on numbers", "multiply by a mask, or use torch.where"
DYNAMO: Sequence[tuple[str, tuple[str, str]]] = (  # by what is in Dynamo's words and the code
    (r"\bprint\(", ("prints", "print what scan returns")),
    (r"generator=|qualname: Random\.", RANDOM),
    (r"recompile_limit|RecompileLimit", ("is recorded again and again", TENSORS)),
    (r"numpy|\bnp\.", ("computes with NumPy", f"use PyTorch, or {OUTSIDE}")),
    (r"RNN, GRU", ("uses an RNN, GRU or LSTM", "write its cell with nn.Linear")),
    (r"Dynamic shape|nonzero|_assert_scalar|boolean ind", SIZES),
    (r"module: ([\w.]+)", ("calls the module {}", OUTSIDE)),
    (r"builtin operator `(\w+)`", ("calls {}", OUTSIDE)),
    (r"setattr\(\)|delattr", ("changes something that is no tensor", TENSORS)),
    (r"\.item\(|Data.dependent|scalar_tensor|\bfloat\(", LOOKS),
    (r"Optimizer|optimizer", ("meets an optimizer that is hidden", "let the learner have it")),
)


def in_a_line(error: BaseException) -> str:
    """What an error says, and Dynamo's in other words."""
    error = getattr(error, "inner_exception", error)
    if isinstance(error, Refused):
        return str(error)
    text, _, stack = str(error).strip().partition("from user code:")
    where = place_in(stack)
    for pattern, (what, advice) in DYNAMO:
        if found := re.search(pattern, f"{type(error).__name__} {text} {where}"):
            return str(Refused(what.format(*found.groups()), advice, where))
    told = text.partition("\n")[0]
    return str(Refused(f"cannot be recorded ({type(error).__name__}: {told})", "", where))


def changed(source: str, attributes: Sequence[str], stack: Any) -> Refused:
    """A side effect: Dynamo would have it done once after a call, which has many steps here."""
    name = source
    for old, new in (
        (r"G\['__import_[^']*'\](\.|$)", ""),
        (r"[GL]\['(\w+)'\]", r"\1"),
        (r"function\.__self__", "self"),
        (r"(?:.*\.)?(\w+)\.__closure__.*", r"a variable of \1"),
        (r"\['(\w+)'\]", r".\1"),
    ):
        name = re.sub(old, new, name)
    own = [x for x in attributes if x != "cell_contents"]
    names = " and ".join(f"{name}.{x}" if name else x for x in own) or name
    where = f"{stack[-1].name} ({stack[-1].line})" if stack else ""
    return Refused(f"changes {names}, which is no tensor", TENSORS, where)


def place_in(stack: str) -> str:
    """The function and the line of code at the end of a trace of PyTorch."""
    places = re.findall(r'File ".*?", line \d+, in (\S+)\n *(?!File )(.*)', stack)
    return f"{places[-1][0]} ({places[-1][1].strip()})" if places else ""
