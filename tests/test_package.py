"""Packages import one another in one direction; cells import `helpers` alone; one version.

Tests are collected where there is nothing that only Unix has, as on Windows.
"""

import ast
import os
import re
import subprocess
import sys

import pytest

import reacher
from small_training import code_cells
from tutorial.paths import PROJECT

MAY_IMPORT = {  # of our own packages; research may import all, and nobody imports research
    "reacher": set(),
    "torch_phases": set(),
    "reacher_page": {"reacher", "torch_phases"},
    "tutorial": {"reacher", "torch_phases", "reacher_page"},
    "helpers.py": {"reacher", "torch_phases", "reacher_page", "tutorial"},
    "research": {"reacher", "torch_phases", "reacher_page", "tutorial", "helpers"},
}


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_run_one_way(package):
    own = {name.removesuffix(".py") for name in MAY_IMPORT}
    places = [PROJECT / package, PROJECT / "packages" / package / package]
    [place] = filter(os.path.exists, places)
    for path in [place] if place.is_file() else place.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            found = {name.split(".")[0] for name in names} & own - {package}
            assert found <= MAY_IMPORT[package], f"{path.relative_to(PROJECT)} imports {found}"


def test_there_is_one_version():
    """In the package and in the citation."""
    cited = re.search(r"^version: (\S+)", (PROJECT / "CITATION.cff").read_text(), re.MULTILINE)[1]
    assert cited == reacher.__version__


def test_the_cells_import_what_is_ours_from_helpers_alone():
    source = "\n".join(code_cells())
    imported = re.findall(r"^\s*(?:from|import) (\w+)", source, re.MULTILINE)
    assert {*imported} & {name.removesuffix(".py") for name in MAY_IMPORT} == {"helpers"}


# Libraries have other code for Windows, so only the project's own files miss these modules.
WITHOUT_UNIX = """
import builtins, multiprocessing.context, os, signal, sys
import pytest

MODULES = "resource termios tty pty fcntl syslog grp pwd".split()
import_anything = builtins.__import__

def import_windows(name, names=None, *others, **options):
    file = (names or {}).get("__file__") or ""
    if name in MODULES and "-packages" not in file and file.startswith(os.getcwd()):
        raise ModuleNotFoundError(f"{name} is Unix's")
    return import_anything(name, names, *others, **options)

class Plugin:
    def pytest_collection(self):
        builtins.__import__ = import_windows
        for name in "SIGKILL SIGSTOP SIGCONT SIGXFSZ SIGALRM setitimer ITIMER_VIRTUAL".split():
            delattr(signal, name)
        for name in "fork", "forkserver":
            del multiprocessing.context._concrete_contexts[name]

code = pytest.main([*"-q --collect-only -p no:cacheprovider tests packages".split()], [Plugin()])
print("ended with", int(code), flush=True)
os._exit(0)  # libraries may need what is hidden to clean up
"""


def test_nothing_that_only_unix_has_is_needed_to_collect():
    place = {"cwd": PROJECT, "env": os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}}
    command = [sys.executable, "-c", WITHOUT_UNIX]
    done = subprocess.run(command, capture_output=True, text=True, **place)
    assert "ended with 0" in done.stdout, done.stdout[-2_000:] + done.stderr[-2_000:]
    for name in ("test_training.py", "test_commands.py"):
        assert name in done.stdout
