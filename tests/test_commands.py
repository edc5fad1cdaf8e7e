"""The commands: what `make run` leaves, in good times and bad, and what `make` hands on."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

import small_training
from small_training import code_cells
from tutorial import commands, execute
from tutorial.paths import NOTEBOOK, PROJECT


@pytest.fixture
def make_run(tmp_path, monkeypatch):
    """`make_run(cells, *options)`: what `make run` ends with, and what the notebook then printed.

    The cells come after the notebook's parameters, and are code or Markdown.
    """
    monkeypatch.setattr(execute, "PROJECT", tmp_path)
    monkeypatch.setattr(execute, "NOTEBOOK", tmp_path / "in.ipynb")
    [source] = code_cells("parameters")

    def result(cells, *options):
        made = [new_code_cell(source, metadata={"tags": ["parameters"]})]
        made += [new_code_cell(cell) if isinstance(cell, str) else cell for cell in cells]
        about = {"language_info": {"name": "python"}}
        nbformat.write(new_notebook(cells=made, metadata=about), execute.NOTEBOOK)
        with pytest.raises(SystemExit) as end:
            execute.main(["--cwd", str(tmp_path), *options])
        found = [nbformat.read(path, as_version=4) for path in tmp_path.glob("run_*.ipynb")]
        outputs = [
            output for one in found for cell in one.cells for output in cell.get("outputs", ())
        ]
        return end.value.code, "".join(output.get("text", "") for output in outputs)

    return result


def test_a_run_shows_what_cells_print_and_names_its_files(make_run, tmp_path, capsys):
    assert make_run(["print('trained', seed)"], "-p", "seed", "3") == (None, "trained 3\n")
    said = capsys.readouterr().out
    assert "trained 3" in said and str(tmp_path / "runs" / "default" / "seed3") in said
    [page] = tmp_path.glob("run_*.html")
    assert page.as_uri() in said and "trained 3" in page.read_text()


@pytest.mark.parametrize("terminal", [False, True])
def test_a_bar_moves_in_a_terminal_alone(make_run, tmp_path, capsys, monkeypatch, terminal):
    """Of a run of the notebook, and of a training."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    assert make_run(["print('x')"])[0] is None
    small_training.train(tmp_path / "run", episodes=2)
    told = capsys.readouterr().err
    assert ("Executing" in told, "2/2" in told) == (terminal, terminal)


def test_demo_begins_with_the_trained_agent(monkeypatch):
    called = []
    monkeypatch.setattr(commands, "module", lambda *words: called.append(words))
    commands.demo("--arms", "3")
    assert called == [("reacher_page.watch", "--arms", "3")]  # `watch` adds one that learns


@pytest.mark.parametrize(
    "arguments, wrong",
    [
        (["-p", "sed", "3"], "unknown parameter 'sed': did you mean 'seed'?"),
        (["-y", "{overrides: {n_steps: 5}}"], "unknown setting 'n_steps': did you mean 'n_step'?"),
        (["-p", "env_location", "Pendulum-v1"], "no Unity build: a cell opens it"),
        (["--no-such-option"], "[Nn]o such option.*--no-such-option"),
    ],
)
def test_a_wrong_command_writes_nothing(make_run, tmp_path, arguments, wrong):
    told, printed = make_run(["print('ran')"], *arguments)
    assert re.search(wrong, told) and not printed
    assert not [*tmp_path.glob("run_*")]


def test_an_error_leaves_a_readable_notebook_and_page(make_run, tmp_path):
    told, printed = make_run(["print('before')", "1 / 0", "print('after')"])
    assert "ZeroDivisionError: division by zero" in told and "before" in printed
    [page] = tmp_path.glob("run_*.html")
    assert "ZeroDivisionError" in page.read_text()


def test_the_page_is_written_whatever_a_reader_put_into_the_notebook(make_run, tmp_path):
    """Pictures that are nowhere, formulas that are wrong; and those of doc/ are in it."""
    shutil.copytree(PROJECT / "doc", tmp_path / "doc", ignore=shutil.ignore_patterns("[!a]*"))
    text = "![far](https://example.org/a.png) ![gone](gone.png) $\\frac{a}{$ ![map](doc/arm.svg)"
    assert make_run([new_markdown_cell(text), "print('the end')"])[0] is None
    page = next(tmp_path.glob("run_*.html")).read_text()
    assert all(x in page for x in ("the end", "example.org/a.png", 'src="data:image/svg+xml'))


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT for a process")
@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_ctrl_c_and_sigterm_leave_what_was_printed(make_run, tmp_path, number):
    before = signal.getsignal(signal.SIGTERM)
    cells = [
        "import os, signal, time; print('now')",
        # Again as a reader would: one that arrives in a destructor or a callback may get lost.
        f"for _ in range(20): os.kill(os.getppid(), signal.{number}); time.sleep(15)",
    ]
    assert make_run(cells) == ("Stopped.", "now\n")
    signal.signal(signal.SIGTERM, before)
    assert "now" in next(tmp_path.glob("run_*.html")).read_text()


def test_an_unsuitable_python_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(commands, "VENV", tmp_path)
    for name, version in (("OLDEST", (99, 0)), ("NEWEST", (3, 10))):
        with monkeypatch.context() as patch:
            patch.setattr(commands, name, version)
            with pytest.raises(SystemExit, match=r"Python 3.\d+ found, .* needed"):
                commands.make_environment()
    (tmp_path / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.7\n")
    commands.check_environment("python3.11", (3, 11))
    commands.check_environment(None, (3, 10))  # only make is asked by name
    with pytest.raises(SystemExit, match="has Python 3.11: remove the folder"):
        commands.check_environment("python3.12", (3, 12))


def test_a_changed_bound_of_a_package_is_installed(tmp_path, monkeypatch):
    installed = []
    monkeypatch.setattr(commands, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(commands, "PYTHON", tmp_path / "requirements.txt")  # it exists
    monkeypatch.setattr(commands, "PROJECT", tmp_path)
    monkeypatch.setattr(commands, "REQUIREMENTS", tmp_path / "requirements.txt")
    monkeypatch.setattr(commands, "module", lambda *words: installed.append(words))
    monkeypatch.setattr(commands.subprocess, "call", lambda *command, **options: 0)
    for folder in tmp_path / ".venv", tmp_path / "packages" / "arms":
        folder.mkdir(parents=True)
    (tmp_path / "requirements.txt").write_text("torch==2.13.0\n")
    for bound, times in ("numpy>=2", 2), ("numpy>=2", 2), ("numpy>=3", 4):
        (tmp_path / "packages" / "arms" / "pyproject.toml").write_text(f"{bound}\n")
        commands.make_environment(tmp_path / "requirements.txt")
        assert len(installed) == times


def test_an_unknown_command_lists_those_there_are(capsys):
    with pytest.raises(SystemExit, match="no command 'wach': there are.*demo, lab"):
        commands.main("wach")
    commands.main()
    told = capsys.readouterr().out
    assert all(f"\n    {name} " in told for name in commands.COMMANDS)


@pytest.mark.skipif(not shutil.which("make"), reason="no make")
@pytest.mark.parametrize(
    "command, called",
    [
        ("demo mine OPTIONS='--arms 3'", ["demo", "mine", "--arms", "3"]),
        ("", ["help"]),
        ("run -p seed 3", []),
    ],
)
def test_make_hands_on_what_follows_a_command(command, called):
    of_make = re.compile("MAKE|^OPTIONS$")  # of one that runs the tests
    outside = {name: os.environ[name] for name in os.environ if not of_make.search(name)}
    options = {"cwd": PROJECT, "capture_output": True, "text": True, "env": outside}
    done = subprocess.run(["make", "-n", *shlex.split(command)], **options)
    found = [line.split()[3:] for line in done.stdout.splitlines() if "commands" in line]
    assert found == ([called] if called else [])
    assert (done.returncode == 0) == bool(called)
    assert called or 'OPTIONS="-p' in done.stderr + done.stdout
    assert len(done.stdout) < 1_000


def test_a_copy_is_opened_as_it_was_left(tmp_path, monkeypatch, capsys):
    called = []
    monkeypatch.setattr(commands, "module", lambda *words, **options: called.append(words))
    monkeypatch.setattr(commands, "COPY", tmp_path / "copy.ipynb")
    monkeypatch.setattr(commands, "PROJECT", tmp_path)
    commands.lab()
    assert (tmp_path / "copy.ipynb").read_bytes() == NOTEBOOK.read_bytes()
    (tmp_path / "copy.ipynb").write_text("mine")
    commands.lab("--no-browser")
    assert (tmp_path / "copy.ipynb").read_text() == "mine"
    assert "as it was left" in capsys.readouterr().out
    opened = [words for words in called if words[0] == "jupyterlab"]
    assert len(opened) == 2 and "--no-browser" in opened[1]
    assert "--LabApp.default_url=/lab/tree/copy.ipynb" in opened[0]
