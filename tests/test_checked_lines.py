"""Wrong formulas that somebody plants in the notebook: lines that nbval compares change.

What runs here is the cell that prints such a line, with definitions as they are and with a mistake.
"""

import pytest
import torch

from small_training import code_cells
from tutorial import notebook as loader
from tutorial.paths import NOTEBOOK

MISTAKES = {  # text of the code, what somebody makes of it, and of the cell that notices
    "targets that subtract what follows": (
        "batch.rewards + batch.discounts * next_values",
        "batch.rewards - batch.discounts * next_values",
        "passed_2 = exercises",
    ),
    "an n-step return that begins with gamma": (
        "for k, reward in enumerate(rewards))",
        "for k, reward in enumerate(rewards, 1))",
        "passed_4 = exercises",
    ),
    "gamma instead of gamma to the power n": (
        "self.discount ** len(steps)",
        "self.discount",
        "windows, arm = NStepBuffer",
    ),
    "parents without their right children": (
        "self.sums[2 * nodes] + self.sums[2 * nodes + 1]",
        "self.sums[2 * nodes]",
        "each leaf gets",
    ),
    "a step down without subtraction": (
        "values - goes_right * tree[left]",
        "values",
        "passed_5 = exercises",
    ),
    "importance weights with +beta": (
        "keepdims=True)) ** -beta",
        "keepdims=True)) ** beta",
        "buffer",
    ),
    "factorized noise without a root": ("x.sign() * x.abs().sqrt()", "x", "spread of both outputs"),
}


def printed(source, edits, capsys):
    """What a cell prints with the definitions, an edit of these and of its own text."""
    names = vars(loader.load_definitions(NOTEBOOK, edits))
    names |= dict.fromkeys(("passed_2", "passed_4", "passed_5"), 0)
    seen, actions, numbers = torch.zeros(4, 33), torch.zeros(4, 4), torch.zeros(4)
    names["memories"] = names["Batch"](seen, actions, numbers, numbers, seen)
    for edit in edits:
        source = source.replace(*edit)
    exec(source, names)
    return capsys.readouterr().out


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_planted_mistake_changes_a_line_that_nbval_compares(mistake, capsys):
    old, new, text = MISTAKES[mistake]
    cell = code_cells("nbval-check-output", text)[-1]
    assert printed(cell, [], capsys) != printed(cell, [(old, new)], capsys)
