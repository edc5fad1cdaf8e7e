"""`pip install .` gives the environment alone; packages import one another in one direction."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

import reacher
from tutorial.paths import PROJECT

USE = """
import gymnasium
env = gymnasium.make("reacher:reacher/Reacher-v0")
observation, _ = env.reset(seed=0)
observation, reward, terminated, truncated, _ = env.step(env.action_space.sample())
assert observation.shape == (33,) and not terminated and not truncated
import reacher
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


def pip(python: Path | str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess:
    command = [python, "-m", "pip", "--disable-pip-version-check", *arguments]
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=clean)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    found = pip(sys.executable, "download", "-q", "--no-deps", "-d", "i", "hatchling", cwd=folder)
    if found.returncode:
        pytest.skip("no package index can be reached")
    built = pip(sys.executable, "wheel", "-q", "--no-deps", "-w", ".", str(PROJECT), cwd=folder)
    assert not built.returncode, built.stderr
    [wheel] = folder.glob("*.whl")
    return wheel


def test_a_wheel_holds_the_environment_alone(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"reacher"}
    assert {"reacher/reacher.xml", "reacher/py.typed"} <= set(names)
    assert f"-{reacher.__version__}-" in wheel.name


def test_an_installed_wheel_plays_in_an_empty_environment(wheel, tmp_path):
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    installed = pip(python, "install", "-q", str(wheel), cwd=tmp_path)
    assert not installed.returncode, installed.stderr
    freeze = pip(python, "freeze", cwd=tmp_path).stdout.lower()
    for name in ("torch", "jax", "pydantic", "matplotlib", "grpcio", "jupyter"):
        assert f"{name}==" not in freeze
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    played = subprocess.run(
        [python, "-c", USE], cwd=tmp_path, capture_output=True, text=True, env=clean
    )
    assert not played.returncode, played.stderr
    assert str(tmp_path / "venv") in played.stdout
