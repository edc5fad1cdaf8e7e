"""The notebook as a file: its definitions as a module, and its parameters."""

import ast
import functools
import linecache
import sys
import types
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tutorial.paths import EXTENSIONS, NOTEBOOK


def parameters_of(notebook: Any) -> dict[str, Any]:
    """The values in the notebook's one cell with the tag `parameters`.

    Raises:
        ValueError: no such cell, or several, or a value in it that is not a literal.
    """
    found = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", ())]
    if len(found) != 1:
        raise ValueError(f"{len(found)} cells of the notebook have the tag 'parameters', not one")
    return {
        statement.targets[0].id: ast.literal_eval(statement.value)
        for statement in ast.parse(found[0].source).body
    }


def definitions_in(statements: Iterable[ast.stmt], known: set[str]) -> Iterator[ast.stmt]:
    """The top-level statements that define something instead of running it.

    Definitions are imports, functions, classes, and assignments to names with an initial capital,
    such as PRESETS and Units, or to what is defined: `PRESETS["mine"] = {}`, `DDPG.act = act`.
    The notebook's variables are lower case, so nothing is opened, trained or drawn. Those in an
    `if` count: a solution's, which a reader's own replace.

    Args: known, names of functions and classes so far, to which it adds its own.

    Raises:
        ValueError: a statement that is passed over changes a definition.
    """
    for statement in statements:
        if isinstance(statement, ast.If):
            yield from definitions_in(statement.body, known)
            for passed_over in (statement.test, *statement.orelse):
                require_no_change(passed_over, known)
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            yield statement
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            known.add(statement.name)
            yield statement
        elif isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            targets = getattr(statement, "targets", None) or [statement.target]  # type: ignore[union-attr]
            names = [root_of(part) for one in targets for part in getattr(one, "elts", [one])]
            if all(name[:1].isupper() or name in known for name in names):
                yield statement
            else:
                require_no_change(statement, known)
        else:
            require_no_change(statement, known)


MUTATORS = (  # methods of Python's own containers that change them
    "add append clear discard extend insert pop popitem remove reverse setdefault sort update"
).split()


def require_no_change(passed_over: Any, known: set[str]) -> None:
    """Raise ValueError if code that is not loaded changes a definition.

    What it cannot see: a change by another name, or within a function that is called.
    """
    for part in ast.walk(passed_over):
        name = ""
        if isinstance(getattr(part, "ctx", None), (ast.Store, ast.Del)):
            name = root_of(part)
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
            name = root_of(part.func) if part.func.attr in MUTATORS else ""
        elif isinstance(part, ast.Call) and root_of(part.func) in ("setattr", "delattr"):
            name = root_of(part.args[0])
        elif isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            name = part.name
        if name[:1].isupper() or name in known:
            raise ValueError(
                f"line {passed_over.lineno}, `{ast.unparse(passed_over).splitlines()[0]}`, changes "
                f"{name}, a definition, and is passed over where the definitions are loaded alone. "
                f"Assign it at the top level of a cell, as in `{name} = ...`, or give what only "
                "runs a name of its own, in lower case"
            )


def root_of(target: Any) -> str:
    """The name that an assignment changes: `PRESETS` of `PRESETS["mine"]`."""
    while isinstance(target, (ast.Attribute, ast.Subscript)):
        target = target.value
    return getattr(target, "id", "")


def load_definitions(
    path: Path, edits: Iterable[Sequence[str]] = (), name: str = ""
) -> types.ModuleType:
    """Execute the definitions of a notebook, cell by cell, and nothing else.

    Args:
        edits: pairs (old, new) of text in the code, made one after the other on a copy.
        name: under which the module can be imported, instead of one for a copy.

    Raises:
        ValueError: an edit does not match exactly once, or code that is passed over would change a
            definition; says which.
        Exception: whatever a definition raises, an undefined name in an annotation included.
    """
    import nbformat  # which takes a second, and is not needed by cells

    notebook = nbformat.read(path, as_version=4)
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
    module = types.ModuleType(name or f"{path.stem}_copy")
    sys.modules[module.__name__] = module  # where numba's cached functions look for theirs
    known: set[str] = set()
    for number, cell in enumerate(cells):
        # numba caches cells so named, by what stands before the dot.
        file = f"ipykernel_definitions/{module.__name__}-definitions.ipynb, cell {number}"
        linecache.cache[file] = (len(cell.source), None, cell.source.splitlines(True), file)
        tree = ast.parse(cell.source, filename=file)
        try:
            tree.body = list(definitions_in(tree.body, known))
        except ValueError as error:
            raise ValueError(f"{path.name}, code cell {number + 1}, {error}") from None
        exec(compile(tree, file, "exec", dont_inherit=True), module.__dict__)
    return module


@functools.cache
def definitions() -> types.ModuleType:
    """Those of `Continuous_Control.ipynb`: one copy in a process, so that all is compiled once."""
    return load_definitions(NOTEBOOK, name=NOTEBOOK.stem)


@functools.cache
def extensions() -> types.ModuleType:
    """Those of `doc/extensions.ipynb`: learners that inherit from the notebook's."""
    definitions()  # which it imports
    return load_definitions(EXTENSIONS, name=EXTENSIONS.stem)


@functools.cache
def learner_with(networks: str, learner: str = "DDPG") -> type:
    """The notebook's learner, or one of the extensions, whose networks a function of cells makes.

    Args: networks, its name, such as "whole_networks".
    """
    kind = getattr(definitions() if learner == "DDPG" else extensions(), learner)
    return type(learner, (kind,), {"make_networks": staticmethod(getattr(definitions(), networks))})
