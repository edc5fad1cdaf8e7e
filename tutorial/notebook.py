"""The notebook as a file: its tagged cells, its definitions as a module, copies of it.

python -m tutorial.notebook COPY    a copy for another folder, which Jupyter trusts
"""

import ast
import base64
import functools
import json
import linecache
import os
import re
import sys
import types
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbformat.sign import NotebookNotary

from tutorial.paths import DOC, EXTENSIONS, NOTEBOOK, PROJECT


def cell_with_tag(notebook: nbformat.NotebookNode, tag: str) -> int:
    """Index of the one cell with this tag.

    Raises:
        ValueError: there is none, or more than one.
    """
    found = [
        number for number, cell in enumerate(notebook.cells) if tag in cell.metadata.get("tags", ())
    ]
    if len(found) != 1:
        raise ValueError(f"{len(found)} cells of the notebook have the tag {tag!r}, not one")
    return found[0]


def parameters_of(notebook: nbformat.NotebookNode) -> dict[str, Any]:
    """The notebook's parameters: those of its cell tagged `parameters`, and papermill's over them.

    Raises:
        ValueError: no such cell, or a value in it that is not a literal.
    """
    source = notebook.cells[cell_with_tag(notebook, "parameters")].source
    defaults = {
        statement.targets[0].id: ast.literal_eval(statement.value)
        for statement in ast.parse(source).body
    }
    return defaults | notebook.metadata.get("papermill", {}).get("parameters", {})


def carry_pictures(notebook: nbformat.NotebookNode, folder: Path) -> None:
    """Make a copy for another folder show what is in `doc/`: pictures go along, links are changed.

    Args:
        folder: of the copy.
    """
    pages = os.path.relpath(DOC, folder).replace(os.sep, "/")
    for cell in notebook.cells:
        for name in set(re.findall(r"\]\(doc/(\S+\.png)\)", cell.source)):
            picture = base64.b64encode((DOC / name).read_bytes()).decode()
            cell.setdefault("attachments", {})[name] = {"image/png": picture}
            cell.source = cell.source.replace(f"](doc/{name})", f"](attachment:{name})")
        cell.source = cell.source.replace("](doc/", f"]({pages}/")


def link_pictures(notebook: nbformat.NotebookNode) -> None:
    """Undo `carry_pictures`, for a copy that becomes the repository's notebook."""
    for cell in notebook.cells:
        for name in list(cell.get("attachments", ())):
            if (DOC / name).is_file():
                del cell.attachments[name]
                cell.source = cell.source.replace(f"](attachment:{name})", f"](doc/{name})")
        if not cell.get("attachments", True):
            del cell["attachments"]
        cell.source = re.sub(r"\]\((?!https?:)[^)\s]*/doc/(?=\w)", "](doc/", cell.source)


def copy_notebook(path: Path) -> None:
    """Write a copy with its pictures, and sign it: Jupyter then runs the scripts of its pages."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    carry_pictures(notebook, path.parent)
    nbformat.write(notebook, path)
    NotebookNotary().sign(notebook)


def papermill_command(source: Path, output: Path, parameters: Mapping[str, Any]) -> list[str]:
    """The command that executes a notebook with parameters in the project's folder."""
    options = "--kernel python3 --no-progress-bar --no-request-save-on-cell-execute --cwd".split()
    given = [str(source), str(output), "-y", json.dumps(parameters)]
    return [sys.executable, "-m", "papermill", *given, *options, str(PROJECT)]


class NotebookDefinitions(types.ModuleType):
    """What a notebook defines, as attributes; a missing name is an error that says which."""

    def __getattr__(self, name: str):  # called for missing names only
        raise AttributeError(f"{self.__name__}.ipynb does not define {name!r}")


def is_definition(statement: ast.stmt) -> bool:
    """Whether a top-level statement defines something instead of running it.

    Definitions are imports, functions, classes, and assignments to names with an initial capital:
    constants such as PRESETS and type aliases such as Units. The notebook's variables are lower
    case, so nothing is opened, trained or drawn.
    """
    if isinstance(statement, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)):
        return True
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return all(isinstance(target, ast.Name) and target.id[0].isupper() for target in targets)
    return False


def edit_cells(notebook: nbformat.NotebookNode, edits: Iterable[Sequence[str]]) -> None:
    """Replace text in the code cells by pairs (old, new), one after the other.

    Raises:
        ValueError: an old text is there no more, or more than once; says which.
    """
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for old, new in edits:
        times = sum(cell.source.count(old) for cell in cells)
        if times != 1:
            raise ValueError(
                f"an edit must match the notebook's code exactly once, and this text is there "
                f"{times} times:\n{old}"
            )
        for cell in cells:
            cell.source = cell.source.replace(old, new)


def load_definitions(path: Path, edits: Iterable[Sequence[str]] = ()) -> NotebookDefinitions:
    """Execute the definitions of a notebook, cell by cell, and nothing else.

    Args: edits, pairs (old, new) as `edit_cells` takes them, made on a copy.

    Raises:
        ValueError: an edit does not match exactly once.
        Exception: whatever a definition raises, an undefined name in an annotation included.
    """
    notebook = nbformat.read(path, as_version=4)
    original = [cell.source for cell in notebook.cells]
    edit_cells(notebook, edits)
    # Edited definitions leave alone what `import Continuous_Control` finds.
    module = NotebookDefinitions(path.stem + "_edited" * bool(edits))
    sys.modules[module.__name__] = module  # where numba's cached functions look for theirs
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            continue
        name = f"ipykernel_definitions/{path.name}, cell {number}"  # numba caches cells so named
        name += "" if cell.source == original[number] else ", edited"
        linecache.cache[name] = (len(cell.source), None, cell.source.splitlines(True), name)
        tree = ast.parse(cell.source, filename=name)
        tree.body = [statement for statement in tree.body if is_definition(statement)]
        exec(compile(tree, name, "exec", dont_inherit=True), module.__dict__)
    return module


@functools.cache
def definitions() -> NotebookDefinitions:
    """Those of `Continuous_Control.ipynb`: one copy in a process, so that all is compiled once."""
    return load_definitions(NOTEBOOK)


@functools.cache
def extensions() -> NotebookDefinitions:
    """Those of `doc/extensions.ipynb`: learners that inherit from the notebook's."""
    definitions()  # which it imports
    return load_definitions(EXTENSIONS)


if __name__ == "__main__":
    copy_notebook(Path(sys.argv[1]))
