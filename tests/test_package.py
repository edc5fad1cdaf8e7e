"""`pip install .` gives the environment alone, with its files, in any folder."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import nbformat
import pytest
from packaging.requirements import Requirement

import reacher
from tutorial.parameters import Parameters
from tutorial.paths import NOTEBOOK, PROJECT

SETTINGS = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = SETTINGS["optional-dependencies"]
USE = """
import gymnasium
env = gymnasium.make("reacher:reacher/Reacher-v0")
observation, _ = env.reset(seed=0)
observation, reward, terminated, truncated, _ = env.step(env.action_space.sample())
assert observation.shape == (33,) and not terminated and not truncated
import reacher
print(reacher.__file__)
"""


def lines(path: Path) -> list[str]:
    """A requirements file without its comments."""
    return [
        line
        for line in path.read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    ]


def pip(python: Path | str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess:
    return subprocess.run(
        [python, "-m", "pip", "--disable-pip-version-check", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a copy of the tree, without what a developer has lying about in it."""
    folder = tmp_path_factory.mktemp("wheel")
    if pip(
        sys.executable, "download", "-q", "--no-deps", "-d", "index", "hatchling", cwd=folder
    ).returncode:
        pytest.skip("no package index can be reached")
    built = pip(sys.executable, "wheel", "-q", "--no-deps", "-w", ".", str(PROJECT), cwd=folder)
    assert not built.returncode, built.stderr
    [wheel] = folder.glob("*.whl")
    return wheel


def test_a_wheel_holds_the_environment_alone(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"reacher"}
    tracked = subprocess.run(
        ["git", "ls-files", "reacher"], cwd=PROJECT, capture_output=True, text=True
    ).stdout.split()
    assert set(tracked) <= set(names), "a file of the package stays behind"
    assert {"reacher/reacher.xml", "reacher/py.typed"} <= set(names)
    assert f"-{reacher.__version__}-" in wheel.name


def test_an_installed_wheel_plays_in_an_empty_environment(wheel, tmp_path):
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    installed = pip(python, "install", "-q", str(wheel), cwd=tmp_path)
    assert not installed.returncode, installed.stderr
    freeze = pip(python, "freeze", cwd=tmp_path).stdout.lower()
    assert "mujoco==" in freeze
    for name in ("torch", "jax", "pydantic", "matplotlib", "grpcio", "jupyter"):
        assert f"{name}==" not in freeze
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    played = subprocess.run(
        [python, "-c", USE], cwd=tmp_path, capture_output=True, text=True, env=environment
    )
    assert not played.returncode, played.stderr
    assert str(tmp_path / "venv") in played.stdout


def test_requirements_are_the_extras_that_the_reader_needs():
    expected = [
        *SETTINGS["dependencies"],
        *(line for name in ("report", "draw", "unity", "test") for line in EXTRAS[name]),
    ]
    assert sorted(lines(PROJECT / "requirements.txt")) == sorted(set(expected))


PAGES = ["README.md", "CONTRIBUTING.md", *(f"doc/{path.name}" for path in PROJECT.glob("doc/*.md"))]


@pytest.mark.parametrize("page", PAGES)
def test_paths_that_a_page_names_exist(page):
    """Links to the repository's own pages on its host, which begin with ../../, are left out."""
    text = (PROJECT / page).read_text(encoding="utf-8")
    named = re.findall(r"`((?:reacher|tutorial|tests|doc|checkpoints|\.ci)/[\w./]*)`", text)
    links = re.findall(r"\]\((?!https?:|#|\.\./\.\./)([^)#]+)", text)
    linked = [Path(page).parent / link for link in links]
    assert [path for path in (*named, *linked) if not (PROJECT / path).exists()] == []


def test_every_dependency_has_a_reason():
    """The table of doc/layout.md names all packages of pyproject.toml, and no other."""
    text = (PROJECT / "doc" / "layout.md").read_text(encoding="utf-8")
    table = text.partition("| package | why we need it |")[2]
    named = {
        name
        for cell in re.findall(r"^\| ([^|*]+) \|", table, re.MULTILINE)
        for name in re.sub(r"`\w+`: ", "", cell).split(", ")
    } - {"---"}
    declared = {
        Requirement(line).name
        for part in (SETTINGS["dependencies"], *EXTRAS.values())
        for line in part
    }
    assert named == declared | {"unityagents"}  # which is installed without its pins


def test_every_parameter_is_explained():
    """The table of doc/parameters.md names all parameters of the notebook, and no other."""
    text = (PROJECT / "doc" / "parameters.md").read_text(encoding="utf-8")
    table = text.partition("| parameter | what it does |")[2].partition("\n\n")[0]
    cells = re.findall(r"^\| (`[^|]+`) \|", table, re.MULTILINE)
    named = {name for cell in cells for name in re.findall(r"`(\w+)", cell)}
    assert named == set(Parameters.model_fields)


def test_the_settings_of_section_5_are_those_of_default(notebook):
    """The table names and values settings as the folded cell below it defines them."""
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    [text] = [cell.source for cell in cells if "| setting | ours |" in cell.source]
    rows = re.findall(r"^\| `(\w+)` \| (\S+) \|", text, re.MULTILINE)
    assert len(rows) == 12
    settings = notebook.make_hyperparameters("default", {})
    assert dict(rows) == {name: f"{getattr(settings, name)}" for name, _ in rows}


def test_one_version():
    """The package, from which pyproject.toml has it, the changelog and the citation agree."""
    changes = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
    version, date = re.search(r"^## (\d[\w.]*) \(([\d-]+)\)$", changes, re.MULTILINE).groups()
    citation = (PROJECT / "CITATION.cff").read_text(encoding="utf-8")
    assert version == reacher.__version__
    assert f"version: {version}\n" in citation and f"date-released: {date}\n" in citation


def test_constraints_fit_the_requirements():
    """Each requirement has one exact version, and a version that it allows."""
    exact = {
        pin.name.lower(): pin.specifier
        for pin in map(Requirement, lines(PROJECT / "tutorial" / "constraints.txt"))
    }
    for requirement in map(Requirement, lines(PROJECT / "requirements.txt")):
        [pin] = exact[requirement.name]
        assert pin.operator == "==" and requirement.specifier.contains(pin.version), requirement


def test_what_is_imported_is_declared():
    """Every import of ours is of the standard library, our own, or a declared requirement."""
    declared = [Requirement(line).name for lines_ in EXTRAS.values() for line in lines_]
    declared += [Requirement(line).name for line in SETTINGS["dependencies"]]
    known = {
        *declared,
        "unityagents",  # on top, without its pins
        "nbformat",
        "nbclient",
        "nbconvert",
        "ipython",
        "jinja2",
        "beautifulsoup4",  # of jupyter
        "click",  # of papermill
        "packaging",
        "annotated-types",  # of pytest and pydantic
        "docutils",  # of sphinx
        "no-such-package",
    }  # a test wants it missing
    distributions = packages_distributions()
    ours = {"helpers", "reacher", "tutorial", *(path.stem for path in PROJECT.glob("tests/*.py"))}
    undeclared = set()
    for folder in ("reacher", "tutorial", "tests"):
        for path in (PROJECT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = (
                    [alias.name for alias in node.names]
                    if isinstance(node, ast.Import)
                    else [node.module]
                    if isinstance(node, ast.ImportFrom) and not node.level
                    else []
                )
                for name in (name.split(".")[0] for name in names):
                    if name in ours or name in sys.stdlib_module_names:
                        continue
                    if not known & {
                        found.lower().replace("_", "-") for found in distributions.get(name, [name])
                    }:
                        undeclared.add(f"{path.relative_to(PROJECT)}: {name}")
    assert not undeclared
