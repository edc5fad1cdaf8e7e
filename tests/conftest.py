"""Fixtures: the notebook's definitions without its training, and the folder of reference data."""

from __future__ import annotations

import ast
import linecache
import sys
import types
from pathlib import Path

import hypothesis
import matplotlib
import nbformat
import pytest
import torch

PROJECT = Path(__file__).resolve().parents[1]
NOTEBOOK = PROJECT / "Continuous_Control.ipynb"

sys.path.insert(0, str(PROJECT))  # for `import helpers` and `import reacher`
matplotlib.use("Agg")  # no windows; in this process only, for kernels draw into their notebooks
torch.set_num_threads(1)  # as in the notebook: so small networks lose time by more

# The same examples in every run; no deadline, since the first example waits for numba.
hypothesis.settings.register_profile("suite", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("suite")


class NotebookDefinitions(types.ModuleType):
    """What the notebook defines, as attributes."""

    def __getattr__(self, name):  # called for missing names only
        raise AttributeError(f"{NOTEBOOK.name} does not define {name!r}")


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
    """Execute the definitions of a notebook, cell by cell, and nothing else."""
    module = NotebookDefinitions(path.stem)
    sys.modules[path.stem] = module  # pydantic looks up the names in annotations there
    for number, cell in enumerate(nbformat.read(path, as_version=4).cells):
        if cell.cell_type != "code":
            continue
        name = f"<{path.name}, cell {number}>"
        linecache.cache[name] = (len(cell.source), None, cell.source.splitlines(True), name)
        tree = ast.parse(cell.source, filename=name)
        tree.body = [statement for statement in tree.body if is_definition(statement)]
        exec(compile(tree, name, "exec"), module.__dict__)
    return module


@pytest.fixture(scope="session")
def notebook():
    """The notebook's definitions; a missing name is an AttributeError that says which.

    One copy for the whole session, so that numba compiles each function once.
    """
    return load_definitions(NOTEBOOK)


@pytest.fixture(scope="session")
def unity_policies():
    """Folder with policies that were trained in the Unity build, and with its random scores."""
    folder = PROJECT.parent / "shared" / "unity_policies"
    if not folder.is_dir():
        pytest.skip(f"no reference data in {folder}")
    return folder


@pytest.fixture(scope="session")
def defaults(notebook):
    """`defaults(n_step=5, ...)`: the default hyperparameters with overrides."""
    return lambda **overrides: notebook.make_hyperparameters("default", overrides)
