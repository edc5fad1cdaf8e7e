"""The museum of bugs: every edit applies and counts, every probe finds its bug and only that."""

import re

import pytest

from research.bugs import BUGS, cells_with, overrides_of
from tutorial.paths import DOC
from tutorial.settings import make_settings

PAGE = (DOC / "bugs.md").read_text(encoding="utf-8")
WRONG = [name for name, bug in BUGS.items() if bug.number]


def probe_of(name):
    """The first code in the page's section on a bug."""
    section = PAGE.partition(f"## {BUGS[name].title}\n")[2].partition("\n## ")[0]
    return re.search(r"```python\n(.+?)```", section, re.DOTALL)[1]


def reader(name, **others):
    """What a reader has after section 12 of the notebook with a variant."""
    cells, overrides = cells_with(name), overrides_of(name) | others
    names = dict(vars(cells))
    names["settings"] = make_settings(cells.Hyperparameters, "default", overrides)
    exec(re.search(r"```python\n(.+?)```", PAGE, re.DOTALL)[1], names)  # what stands above all
    return names


@pytest.mark.parametrize("name", WRONG)
def test_a_probe_finds_its_bug_and_is_silent_without_it(name):
    probe = probe_of(name)
    assert len(probe.splitlines()) <= 10
    exec(probe, reader(BUGS[name].base))
    exec(probe, reader("default", noisy_layers=False))  # another agent without bugs
    with pytest.raises(AssertionError):
        exec(probe, reader(name))
