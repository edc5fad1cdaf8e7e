"""The loader of the notebook's definitions, on which the other tests stand."""

import nbformat
import pytest

from tutorial.notebook import load_definitions


def write(path, *cells):
    cells = [nbformat.v4.new_code_cell(source) for source in cells]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


def test_only_definitions_are_executed(tmp_path):
    first = "import math\nLIMIT = 3\nvalue = 1 / 0\nLIMIT_OF_ALL: int = 4"
    second = "def area(r):\n    return math.pi * r * r\n\n\nassert False\nprint(area(1))"
    module = load_definitions(write(tmp_path / "tiny.ipynb", first, second))
    assert module.area(1) == module.math.pi and (module.LIMIT, module.LIMIT_OF_ALL) == (3, 4)
    with pytest.raises(AttributeError, match="no attribute 'value'"):
        module.value


FIRST = "LIMITS = {'a': 3}\n\n\ndef area(r):\n    return r * r\n\n\nclass Circle:\n    pass"


@pytest.mark.parametrize(
    "line", ["LIMITS |= {'b': 4}", "LIMITS['b'] = 4", "Circle.area = LIMITS['b'] = 4", "area = 4"]
)
def test_a_change_of_a_definition_is_one(tmp_path, line):
    module = load_definitions(write(tmp_path / "tiny.ipynb", FIRST, f"value = 3\n{line}"))
    changed = module.LIMITS.get("b"), getattr(module.Circle, "area", None), module.area
    assert 4 in changed and not hasattr(module, "value")


CHANGES = """LIMITS.update(b=4)
value = LIMITS.pop('a')
del LIMITS
LIMITS = value = {}
setattr(Circle, 'area', 3)
if value: pass
else: LIMITS['b'] = 4
for area in (1, 2): pass
with open('x') as file: LIMITS = file.read()
try:@    def area(r): return 0@finally: pass"""


@pytest.mark.parametrize("line", CHANGES.replace("\nelse", "@else").splitlines())
def test_no_change_of_a_definition_is_passed_over(tmp_path, line):
    path = write(tmp_path / "tiny.ipynb", FIRST, "value = 3\n" + line.replace("@", "\n"))
    changed = next(name for name in ("LIMITS", "Circle", "area") if name in line)
    with pytest.raises(ValueError, match=f"^tiny.ipynb, code cell 2, line .*changes {changed}, a"):
        load_definitions(path)


def test_code_that_only_runs_is_passed_over(tmp_path):
    """Also where it names definitions."""
    definitions = "import sys\nLIMITS = {'a': 3}\nA, B = 1, 2"
    runs = "sys.path.append('x')\nseen = []\nseen.append(LIMITS)\nseen[0] = 1 / 0\ndel seen"
    runs += "\ncopy = LIMITS.copy()\nsys.stdout.x = 3\nseen: list = []"
    module = load_definitions(write(tmp_path / "tiny.ipynb", definitions, runs))
    assert (module.LIMITS, module.A, module.B) == ({"a": 3}, 1, 2)
    assert not hasattr(module, "seen")


def test_edits_change_a_copy_and_must_match_exactly_once(tmp_path):
    first = "LIMIT = 3\n\n\ndef area(r):\n    return r * r"
    path = write(tmp_path / "tiny.ipynb", first, "OTHER = 3")
    before = path.read_bytes()
    edited = load_definitions(path, [("r * r", "r * r * LIMIT"), ("LIMIT = 3", "LIMIT = 4")])
    assert edited.area(2) == 16 and load_definitions(path).area(2) == 4
    assert path.read_bytes() == before
    for old, times in (("= 3", 2), ("no such text", 0)):
        with pytest.raises(ValueError, match=rf"(?s){times} times.*{old}"):
            load_definitions(path, [(old, "new")])
