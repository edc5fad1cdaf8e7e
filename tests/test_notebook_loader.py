"""The loader of the notebook's definitions, on which the other tests stand."""

from __future__ import annotations

import base64
import io

import nbformat
import pytest
from PIL import Image

from tutorial.notebook import describe_pictures, load_definitions, shrink_pictures


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
        )
    )
    assert module.area(1) == module.math.pi and (module.LIMIT, module.LIMIT_OF_ALL) == (3, 4)
    with pytest.raises(AttributeError):
        module.value


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


def test_a_broken_definition_is_not_passed_over(tmp_path):
    with pytest.raises(NameError, match="missing_base"):
        load_definitions(write(tmp_path / "broken.ipynb", "class Thing(missing_base):\n    pass"))


def test_figures_shrink_get_words_and_keep_their_colors():
    figure, file = Image.new("RGBA", (300, 200), "white"), io.BytesIO()
    figure.paste((0, 114, 178, 255), (20, 20, 200, 60))
    figure.save(file, "PNG")
    data = {"image/png": base64.b64encode(file.getvalue()).decode()}
    code = nbformat.v4.new_code_cell(outputs=[nbformat.v4.new_output("display_data", data)])
    text = nbformat.v4.new_markdown_cell("*Figure 3: a `curve` that rises. One seed.*")
    notebook = nbformat.v4.new_notebook(cells=[code, text])
    describe_pictures(notebook)
    shrink_pictures(notebook)
    [output] = notebook.cells[0].outputs
    shown = Image.open(io.BytesIO(base64.b64decode(output.data["image/png"])))
    assert shown.mode == "P" and shown.convert("RGBA").tobytes() == figure.tobytes()
    assert output.metadata["image/png"]["alt"] == "Figure 3: a curve that rises."
