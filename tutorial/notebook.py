"""The notebook as a file: its definitions as a module, its parameters, its pictures."""

import ast
import base64
import functools
import io
import itertools
import linecache
import re
import sys
import types
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import nbformat
from PIL import Image

from tutorial.paths import EXTENSIONS, NOTEBOOK


def parameters_of(notebook: nbformat.NotebookNode) -> dict[str, Any]:
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

    Definitions are imports, functions, classes, and assignments to names with an initial capital:
    constants such as PRESETS and type aliases such as Units. The notebook's variables are lower
    case, so nothing is opened, trained or drawn. Those in an `if` count: a solution's, which a
    reader's own replace.

    Args: known, names of functions, classes and `from` imports so far, to which it adds its own.

    Raises:
        ValueError: a statement that runs changes a definition, too.
    """
    for statement in statements:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            if isinstance(statement, ast.ImportFrom):
                known.update(alias.asname or alias.name for alias in statement.names)
            yield statement
        elif isinstance(statement, SCOPES):
            known.add(statement.name)
            yield statement
        elif isinstance(statement, ast.If):
            yield from definitions_in(statement.body, known)
            require_no_change(statement.test, known)
            for passed_over in statement.orelse:
                require_no_change(passed_over, known)
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)) and is_definition(statement):
            yield statement
        else:
            require_no_change(statement, known)


SCOPES = ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef
MUTATORS = (  # methods of Python's own containers that change them
    "add append clear discard extend insert pop popitem remove reverse setdefault sort update"
).split()


def is_definition(assignment: ast.Assign | ast.AnnAssign) -> bool:
    """Whether all its targets are names with an initial capital; `A, B = 1, 2` has two."""
    targets = assignment.targets if isinstance(assignment, ast.Assign) else [assignment.target]
    parts = [part for target in targets for part in getattr(target, "elts", [target])]
    return all(isinstance(part, ast.Name) and part.id[0].isupper() for part in parts)


def require_no_change(passed_over: ast.stmt | ast.expr, known: set[str]) -> None:
    """Raise ValueError if code that loading passes over would change a definition.

    What it cannot see: a change by another name, or within a function that is called.
    """
    parts = list(ast.walk(passed_over))
    loops = [part.target for part in parts if isinstance(part, ast.comprehension)]
    own = {id(part) for target in loops for part in ast.walk(target)}  # names that nobody else sees
    for part in parts:
        if id(part) not in own and (changed := changed_by(part, known)):
            instead = f"{changed} = ..."
            if isinstance(passed_over, ast.AugAssign):
                sides = passed_over.target, passed_over.op, passed_over.value
                instead = f"{changed} = {ast.unparse(ast.BinOp(*sides))}"
            raise ValueError(
                f"line {passed_over.lineno}, `{ast.unparse(passed_over).splitlines()[0]}`, changes "
                f"{changed}, a definition, and is passed over where the definitions are loaded "
                f"alone. Define {changed} at the top level of a cell, such as `{instead}`, or "
                "give what only runs a name of its own, in lower case"
            )


def changed_by(part: ast.AST, known: set[str]) -> str | None:
    """The name that a node of code binds, deletes or changes, if it is a definition's."""
    if isinstance(part, SCOPES):
        return part.name
    if isinstance(part, (ast.Import, ast.ImportFrom)):
        return part.names[0].asname or part.names[0].name
    target = part if isinstance(getattr(part, "ctx", ast.Load()), (ast.Store, ast.Del)) else None
    if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
        target = part.func.value if part.func.attr in MUTATORS else None
    elif isinstance(part, ast.Call) and isinstance(part.func, ast.Name):
        target = part.args[0] if part.func.id in ("setattr", "delattr") else None
    names = []  # from the last attribute to the first name
    while isinstance(target, (ast.Attribute, ast.Subscript)):
        names += [target.attr] if isinstance(target, ast.Attribute) else []
        target = target.value
    if isinstance(target, ast.Name):
        names.append(target.id)
        if target.id in known:
            return target.id
    return next((name for name in reversed(names) if name[0].isupper()), None)


def load_definitions(path: Path, edits: Iterable[Sequence[str]] = ()) -> types.ModuleType:
    """Execute the definitions of a notebook, cell by cell, and nothing else.

    Args: edits, pairs (old, new) of text in the code, made one after the other on a copy.

    Raises:
        ValueError: an edit does not match exactly once, or code that is passed over would change a
            definition; says which.
        Exception: whatever a definition raises, an undefined name in an annotation included.
    """
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
    # Edited definitions leave alone what `import Continuous_Control` finds.
    module = types.ModuleType(path.stem + "_edited" * bool(edits))
    sys.modules[module.__name__] = module  # where numba's cached functions look for theirs
    known: set[str] = set()
    for number, cell in enumerate(cells):
        # numba caches cells so named, by what stands before the dot.
        name = f"ipykernel_definitions/{module.__name__}-definitions.ipynb, cell {number}"
        linecache.cache[name] = (len(cell.source), None, cell.source.splitlines(True), name)
        tree = ast.parse(cell.source, filename=name)
        try:
            tree.body = list(definitions_in(tree.body, known))
        except ValueError as error:
            raise ValueError(f"{path.name}, code cell {number + 1}, {error}") from None
        exec(compile(tree, name, "exec", dont_inherit=True), module.__dict__)
    return module


@functools.cache
def definitions() -> types.ModuleType:
    """Those of `Continuous_Control.ipynb`: one copy in a process, so that all is compiled once."""
    return load_definitions(NOTEBOOK)


@functools.cache
def extensions() -> types.ModuleType:
    """Those of `doc/extensions.ipynb`: learners that inherit from the notebook's."""
    sys.modules[NOTEBOOK.stem] = definitions()  # which it imports by this name
    return load_definitions(EXTENSIONS)


@functools.cache
def learner_with(networks: str, learner: str = "DDPG") -> type:
    """The notebook's learner, or one of the extensions, whose networks a function of cells makes.

    Args: networks, its name, such as "whole_networks".
    """
    kind = getattr(definitions() if learner == "DDPG" else extensions(), learner)
    return type(learner, (kind,), {"make_networks": staticmethod(getattr(definitions(), networks))})


def describe_pictures(notebook: nbformat.NotebookNode) -> None:
    """Give every picture in the outputs words for whoever cannot see it.

    They are the first sentence of its caption, *Figure N: ...*, in the next Markdown cell.
    """
    for cell, following in itertools.pairwise(notebook.cells):
        found = re.search(
            r"^\*(Figure \d+.*?[.:])(?=\*?\s+[A-Z]|\*$)", following.source, re.MULTILINE | re.DOTALL
        )
        for output in cell.get("outputs", []):
            if found and "image/png" in output.get("data", {}):
                words = re.sub(r"[`*]", "", found[1])
                output.metadata.setdefault("image/png", {})["alt"] = words


def shrink_pictures(notebook: nbformat.NotebookNode) -> None:
    """Give the figures in the outputs a palette of 128 colors: a quarter of the bytes."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/png" not in data:
                continue
            picture = Image.open(io.BytesIO(base64.b64decode(data["image/png"])))
            if picture.mode == "P":  # as moving pictures are
                continue
            file = io.BytesIO()
            small = picture.convert("RGB").quantize(128, dither=Image.Dither.NONE)
            small.save(file, "PNG", optimize=True)
            data["image/png"] = base64.b64encode(file.getvalue()).decode()
