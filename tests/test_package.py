"""Packages import one another in one direction; cells import `helpers` alone; one version."""

import ast
import os
import re

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
