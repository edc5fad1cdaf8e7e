"""Wrong formulas that somebody plants in the notebook: lines that nbval compares change.

What runs here is the cell that prints such a line, with definitions as they are and with a mistake.
"""

import nbformat
import pytest

from tutorial import notebook as loader
from tutorial.exercises import WRONG_TRIES
from tutorial.paths import NOTEBOOK

MISTAKES = {  # text of the code, what somebody makes of it, and of the cell that notices
    "gamma for gamma^n": (
        "bootstrap * self.discount ** len(steps)",
        "bootstrap * self.discount",
        "rewards 1, 2, 4",
    ),
    "no root in NoisyLinear": (
        "noise.sign() * noise.abs().sqrt()",
        "noise",
        "outputs scatter by",
    ),
    "weights with +beta": (
        "shares.min(axis=-1, keepdims=True)) ** -beta",
        "shares.min(axis=-1, keepdims=True)) ** beta",
        "weights:",
    ),
    "a tree without subtraction": (
        "values -= right * share",
        "pass",
        "finds leaf",
    ),
    "target minus gamma Q": (
        "return batch.rewards + batch.discounts * next_values",
        "return batch.rewards - batch.discounts * next_values",
        "passed_2 = exercises",
    ),
}


def cell_with(text):
    """The last code cell whose output is compared and that has this text; nbval reads its tag."""
    *_, found = (
        cell
        for cell in nbformat.read(NOTEBOOK, as_version=4).cells
        if cell.cell_type == "code"
        and text in cell.source
        and "nbval-check-output" in cell.metadata.get("tags", ())
    )
    return found


def printed(cell, definitions, edit, capsys):
    """What a cell prints with these definitions, and with an edit of its own text."""
    WRONG_TRIES.clear()
    module = loader.load_definitions(NOTEBOOK, [edit] if edit else [])
    names = {**vars(module), **definitions(module)}
    source = cell.source.replace(*edit) if edit else cell.source
    exec(source, names)
    return capsys.readouterr().out


def memories(module):
    """An agent that remembers, and an exercise that is not solved yet."""
    settings = module.PlainSettings(replay_capacity=8)
    memory = module.UniformReplay(settings, None)
    rows = module.torch.zeros(4, 33), module.torch.zeros(4, 4), *[module.torch.zeros(4)] * 2
    memory.add(module.Batch(*rows, module.torch.zeros(4, 33)))
    return {"plain_agent": module.PlainAgent(None, memory, None, settings), "passed_2": False}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_planted_mistake_changes_a_line_that_nbval_compares(mistake, capsys):
    old, new, text = MISTAKES[mistake]
    cell = cell_with(text)
    stored = "".join(output.get("text", "") for output in cell.outputs)
    assert printed(cell, memories, None, capsys) == stored
    assert printed(cell, memories, (old, new), capsys) != stored
