"""The notebook's definitions as a module, without its training."""

import ast
import functools
import linecache
import sys
import types
from pathlib import Path

import nbformat

from tutorial.paths import NOTEBOOK


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


def load_definitions(path: Path) -> NotebookDefinitions:
    """Execute the definitions of a notebook, cell by cell, and nothing else.

    Raises:
        Exception: whatever a definition raises, an undefined name in an annotation included.
    """
    module = NotebookDefinitions(path.stem)
    sys.modules[module.__name__] = module  # where numba's cached functions look for theirs
    for number, cell in enumerate(nbformat.read(path, as_version=4).cells):
        if cell.cell_type != "code":
            continue
        name = f"ipykernel_definitions/{path.name}, cell {number}"  # numba caches cells so named
        linecache.cache[name] = (len(cell.source), None, cell.source.splitlines(True), name)
        tree = ast.parse(cell.source, filename=name)
        tree.body = [statement for statement in tree.body if is_definition(statement)]
        exec(compile(tree, name, "exec", dont_inherit=True), module.__dict__)
    return module


@functools.cache
def definitions() -> NotebookDefinitions:
    """Those of `Continuous_Control.ipynb`: one copy in a process, so that all is compiled once."""
    return load_definitions(NOTEBOOK)
