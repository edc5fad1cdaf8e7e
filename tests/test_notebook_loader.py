"""The loader of the notebook's definitions, on which the other tests stand."""

from __future__ import annotations

import os
import subprocess
import sys

import nbformat
import pytest

from tutorial.notebook import definitions, load_definitions
from tutorial.paths import PROJECT


def write(path, *cells):
    cells = [nbformat.v4.new_code_cell(source) for source in cells]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


def test_only_definitions_are_executed(tmp_path):
    module = load_definitions(
        write(
            tmp_path / "tiny.ipynb",
            "import math\nLIMIT = 3\nvalue = 1 / 0\nLIMIT_OF_ALL: int = 4",
            "def area(r):\n    return math.pi * r * r\n\n\nassert False\nprint(area(1))",
            "class Thing:\n    limit = LIMIT\n\n\nthing = Thing()\nThing.limit = 5\n",
            "for _ in [0]:\n    1 / 0",
        )
    )
    assert module.area(1) == module.math.pi
    assert (module.Thing.limit, module.LIMIT_OF_ALL) == (3, 4)
    for name in ("value", "thing"):
        with pytest.raises(AttributeError):
            getattr(module, name)


def test_edits_change_a_copy_and_must_match_exactly_once(tmp_path):
    path = write(
        tmp_path / "tiny.ipynb", "LIMIT = 3\n\n\ndef area(r):\n    return r * r", "OTHER = 3"
    )
    before = path.read_bytes()
    edited = load_definitions(path, [("r * r", "r * r * LIMIT"), ("LIMIT = 3", "LIMIT = 4")])
    assert edited.area(2) == 16 and load_definitions(path).area(2) == 4
    assert path.read_bytes() == before
    for old, times in (("= 3", 2), ("no such text", 0)):
        with pytest.raises(ValueError, match=rf"(?s){times} times.*{old}"):
            load_definitions(path, [(old, "new")])


def test_a_missing_name_and_the_notebook_are_named(notebook):
    with pytest.raises(AttributeError, match=r"Continuous_Control\.ipynb.*'NoSuchClass'"):
        notebook.NoSuchClass


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="annotations are lazy from 3.14 on")
def test_an_undefined_name_in_an_annotation_is_not_passed_over(tmp_path):
    with pytest.raises(NameError, match="Nowhere"):
        load_definitions(write(tmp_path / "broken.ipynb", "def area(r: Nowhere):\n    return r"))


def test_there_is_one_copy(notebook):
    assert definitions() is notebook


def test_a_broken_definition_is_not_passed_over(tmp_path):
    with pytest.raises(NameError, match="missing_base"):
        load_definitions(write(tmp_path / "broken.ipynb", "class Thing(missing_base):\n    pass"))


COMPILED = """
import os
import subprocess
import sys
from pathlib import Path
from tutorial.notebook import load_definitions

function = load_definitions(Path(sys.argv[1])).double
assert function(2) == 4
print("found" if function.stats.cache_hits else "compiled")
"""


def test_compiled_functions_of_a_notebook_are_cached(tmp_path):
    """By the next process that loads it, as by the next kernel; a changed cell is compiled anew."""

    def loaded(number):
        write(
            tmp_path / "nb.ipynb",
            "from reacher.compiling import njit",
            f"@njit\ndef double(number):\n    return {number}",
        )
        environment = os.environ | {"IPYTHONDIR": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
        return subprocess.run(
            [sys.executable, "-c", COMPILED, tmp_path / "nb.ipynb"],
            cwd=PROJECT,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    assert [loaded(text).strip() for text in ("2 * number", "2 * number", "number + number")] == [
        "compiled",
        "found",
        "compiled",
    ]
