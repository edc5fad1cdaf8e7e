"""`pip install .` gives the arms alone; packages import one another in one direction."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import zipfile

import nbformat
import pytest

import reacher
from tutorial.paths import NOTEBOOK, PROJECT

USE = """
import importlib, pkgutil, sys
for name in ("torch", "jax", "scipy", "pydantic", "matplotlib", "PIL", "grpc", "IPython"):
    sys.modules[name] = None  # importing it is an error
import gymnasium
env = gymnasium.make("reacher:reacher/Reacher-v0")
assert env.spec.id == "reacher/Reacher-v0" and env.spec.max_episode_steps == 1001
for env in (env, gymnasium.make_vec("reacher/Reacher-v0", num_envs=1)):
    env.reset(seed=0)
    env.step(env.action_space.sample())
import reacher
for module in pkgutil.walk_packages(reacher.__path__, "reacher."):
    if not module.name.startswith("reacher.unity"):
        importlib.import_module(module.name)
print(reacher.__file__)
"""
MAY_IMPORT = {  # of our own packages; research may import all, and nobody imports research
    "reacher": set(),
    "tapejit": set(),
    "web": {"reacher", "tapejit"},
    "tutorial": {"reacher", "tapejit"},
    "helpers.py": {"reacher", "tapejit", "tutorial", "web"},
    "research": {"reacher", "tapejit", "tutorial", "web", "helpers"},
}


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_run_one_way(package):
    own = {name.removesuffix(".py") for name in MAY_IMPORT}
    files = [PROJECT / package] if package.endswith(".py") else (PROJECT / package).rglob("*.py")
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            found = {name.split(".")[0] for name in names} & own - {package}
            assert found <= MAY_IMPORT[package], f"{path.relative_to(PROJECT)} imports {found}"


def test_there_is_one_version():
    """In the package, the citation, and the first entry of the changelog."""
    for name, line in (("CITATION.cff", r"^version: (\S+)"), ("CHANGELOG.md", r"^## (\S+)")):
        found = re.search(line, (PROJECT / name).read_text(), re.MULTILINE)[1]
        assert found == reacher.__version__, name


def test_the_cells_import_what_is_ours_from_helpers_alone():
    found = {
        name.split(".")[0]
        for cell in nbformat.read(NOTEBOOK, as_version=4).cells
        if cell.cell_type == "code"
        for name in re.findall(r"^\s*(?:from|import) (\S+)", cell.source, re.MULTILINE)
    }
    assert found & {name.removesuffix(".py") for name in MAY_IMPORT} == {"helpers"}


def test_a_wheel_holds_the_arms_alone_and_they_play_from_any_folder(tmp_path):
    """Without the packages that the rest of the project needs."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run = {"cwd": tmp_path, "capture_output": True, "text": True}
    command = [sys.executable, *"-m pip wheel -q --no-deps -w .".split(), PROJECT]
    built = subprocess.run(command, env=clean, **run)
    if "No matching distribution found for hatchling" in built.stderr:
        pytest.skip("no package index can be reached")
    assert not built.returncode, built.stderr
    [wheel] = tmp_path.glob(f"*-{reacher.__version__}-*.whl")
    archive = zipfile.ZipFile(wheel)
    [metadata] = (name for name in archive.namelist() if name.endswith("/METADATA"))
    needed = re.findall(r"^Requires-Dist: (\w+)(?!.*extra)", archive.read(metadata).decode(), re.M)
    assert sorted(needed) == ["gymnasium", "mujoco", "numba", "numpy"]
    tops = {name.split("/")[0] for name in archive.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"reacher"}

    archive.extractall(tmp_path)
    played = subprocess.run([sys.executable, "-c", USE], env=clean | {"PYTHONPATH": "."}, **run)
    assert not played.returncode, played.stderr
    assert played.stdout.startswith(str(tmp_path))
