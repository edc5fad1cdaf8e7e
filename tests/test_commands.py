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
from tutorial import execute
from tutorial.paths import PROJECT


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
def test_ctrl_c_and_sigterm_leave_what_was_printed(make_run, tmp_path, capsys, number):
    before = signal.getsignal(signal.SIGTERM)
    cells = [
        "import os, signal, time; print('now')",
        # Again as a reader would: one that arrives in a destructor or a callback may get lost.
        f"for _ in range(20): os.kill(os.getppid(), signal.{number}); time.sleep(15)",
    ]
    assert make_run(cells) == ("Stopped.", "now\n")
    assert "scores and weights" not in capsys.readouterr().out  # there may be none
    signal.signal(signal.SIGTERM, before)
    assert "now" in next(tmp_path.glob("run_*.html")).read_text()


def make(words, **options):
    of_make = re.compile("MAKE|^OPTIONS$")  # of one that runs the tests
    outside = {name: os.environ[name] for name in os.environ if not of_make.search(name)}
    options = {"cwd": PROJECT, "capture_output": True, "text": True, "env": outside} | options
    return subprocess.run(["make", *shlex.split(words)], **options)


needs_make = pytest.mark.skipif(
    os.name == "nt" or not shutil.which("make"), reason="commands are for Linux and macOS"
)


@needs_make
@pytest.mark.parametrize(
    "words, told",
    [
        ("-n run OPTIONS='-p seed 3'", "python -m tutorial.execute -p seed 3\n"),
        ("-n demo OPTIONS='--arms 3'", "python -m reacher_page.watch --arms 3\n"),
        ("", "options of the program behind a command: make run"),
        ("-n run -p seed 3", 'make run OPTIONS="-p NAME VALUE"'),
        ("run SEED=3", 'SEED is no option of make: try OPTIONS="-p NAME VALUE"'),
        ("-B -n lab", "cp Continuous_Control.ipynb my_copy.ipynb"),
    ],
)
def test_make_hands_on_what_follows_a_command_or_says_how(words, told):
    done = make(words)
    assert told.lower() in (done.stdout + done.stderr).lower() and len(done.stdout) < 3_000
    assert (done.returncode == 0) == ("OPTIONS" in words or words in ("", "-B -n lab"))


@needs_make
def test_make_installs_what_has_changed_and_names_an_unsuitable_python(tmp_path):
    for name in "Makefile", "requirements.txt":
        shutil.copy(PROJECT / name, tmp_path)
    script = "import sys; sys.version_info = (3, 10); exec(sys.argv[2])"
    (tmp_path / "old").write_text(f'#!/bin/sh\n{sys.executable} -c "{script}" "$@"\n')
    (tmp_path / "old").chmod(0o755)
    done = make("run PYTHON=./old", cwd=tmp_path)
    assert "Python 3.10 found, 3.11 to 3.14 needed" in done.stderr and done.returncode
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "requirements.ready").touch()
    assert "pip" not in make("-n run", cwd=tmp_path).stdout
    (tmp_path / ".venv" / "bin" / "python").write_text("#!/bin/sh\necho Python 3.9.1\n")
    (tmp_path / ".venv" / "bin" / "python").chmod(0o755)
    done = make("-n run PYTHON=python3", cwd=tmp_path)
    assert ".venv has Python 3.9.1: remove the folder" in done.stderr and done.returncode
    os.utime(tmp_path / "requirements.txt", (2**32, 2**32))
    assert "install -r requirements.txt" in make("-n run", cwd=tmp_path).stdout
