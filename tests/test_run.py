"""What `make run`, `make demo` and `make lab` do around the notebook."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import nbformat
import psutil
import pytest
from nbformat.sign import NotebookNotary
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tutorial import print as printing
from tutorial import report_run as run
from tutorial import tasks
from tutorial.notebook import cell_with_tag, copy_notebook, link_pictures
from tutorial.paths import DOC, NOTEBOOK, PROJECT
from tutorial.run import locked

PICTURE = DOC / "scores.png"
LARGEST = 2_500_000  # bytes of the notebook: half of what GitHub shows as text

EXECUTE = (
    "import sys; from pathlib import Path; from tutorial import report_run as run;"
    "run.execute(Path(sys.argv[1]), Path(sys.argv[2]), [])"
)


def small_notebook(path, *cells):
    """The notebook's parameters, results beside the notebook, and these cells."""
    given = nbformat.read(NOTEBOOK, as_version=4)
    parameters = given.cells[cell_with_tag(given, "parameters")]
    parameters.source = parameters.source.replace(
        '\nout_dir = "runs"', f"\nout_dir = {str(path.parent / 'trained')!r}"
    )
    language = {"language_info": {"name": "python"}}
    cells = [parameters, *map(new_code_cell, cells)]
    nbformat.write(new_notebook(cells=cells, metadata=language), path)
    return path


@pytest.fixture
def make_run(tmp_path, monkeypatch):
    """`make_run(cells, *arguments)`: what `make run` returns for a notebook with these cells."""
    monkeypatch.setattr(run, "RUNS", tmp_path / "runs")
    watched = []
    monkeypatch.setattr(run.subprocess, "call", lambda command, cwd: watched.append(command) or 1)

    def result(cells, *arguments):
        monkeypatch.setattr(run, "NOTEBOOK", small_notebook(tmp_path / "in.ipynb", *cells))
        return run.main([*map(str, arguments)])

    return result


TRAINS = """
from pathlib import Path
folder = Path(out_dir) / preset / f"seed{seed}"
folder.mkdir(parents=True, exist_ok=True)
(folder / "scores.csv").write_text("episode,score,min,max,seconds\\n1,1.0,1.0,1.0,1.0\\n")
(folder / "actor_best.safetensors").touch()
"""


def printed(path):
    """What the cells printed."""
    return "".join(
        output.get("text", "")
        for cell in nbformat.read(path, as_version=4).cells
        for output in cell.get("outputs", [])
    )


def test_a_notebook_is_not_saved_at_every_cell(tmp_path, monkeypatch):
    """At its start, and at its end by papermill; in between after some seconds, not after cells."""
    saved = []
    monkeypatch.setattr(run, "write_whole", lambda path, content: saved.append(path))
    notebook = small_notebook(tmp_path / "in.ipynb", *(f"print({k})" for k in range(20)))
    monkeypatch.setattr(run, "SAVE_EVERY", 1e9)
    run.execute(notebook, tmp_path / "out.ipynb", [])
    assert len(saved) == 1
    assert printed(tmp_path / "out.ipynb").split() == [str(k) for k in range(20)]


def test_an_error_leaves_a_readable_notebook_and_page(make_run, tmp_path, capsys):
    """An older run in the folder is not said to be of this one."""
    assert make_run([TRAINS], "older") == 0
    assert "scores, weights" in capsys.readouterr().out
    assert make_run(["print('before')", "1 / 0", "print('after')"], "mine") == 1
    said = capsys.readouterr().out
    assert "mine.html" in said and "ZeroDivisionError: division by zero" in said
    assert "scores, weights" not in said
    assert "before" in printed(tmp_path / "runs" / "mine.ipynb")
    assert "ZeroDivisionError" in (tmp_path / "runs" / "mine.html").read_text()


@pytest.mark.parametrize(
    "arguments, wrong",
    [
        (("-p", "presett", "fast"), "unknown parameter 'presett': did you mean 'preset'?"),
        (("-p", "preset", "fasst"), "preset = 'fasst': .*'fast'"),
        (("-p", "seed", "-1"), "seed = -1: .*greater than or equal to 0"),
        (("-y", "{overrides: {n_stepp: 5}}"), "unknown hyperparameter 'n_stepp'"),
        (("-y", "{overrides: {tau: 2.0}}"), "tau = 2.0: .*less than or equal to 1"),
        (("-p", "train", "False", "-p", "seed", "77"), "no trained agent in .*default seed0"),
        (("-p", "resume", "True"), "resume = True, but .* holds no training state"),
        (("--no-such-option",), "[Nn]o such option.*--no-such-option"),
        (("second",), "unexpected extra argument"),
    ],
)
def test_what_can_be_checked_is_refused_before_a_kernel_starts(
    make_run, tmp_path, capsys, arguments, wrong
):
    assert make_run(["print('ran')"], "mine") == 0
    before = (tmp_path / "runs" / "mine.ipynb").read_bytes()
    assert make_run([], "mine", *arguments) == 2
    told = capsys.readouterr().err
    assert re.search(wrong, told) and "Traceback" not in told
    assert (tmp_path / "runs" / "mine.ipynb").read_bytes() == before


def test_what_follows_a_training_can_be_made_again(make_run, tmp_path, capsys):
    """A cut after the last episode, before the report: resume = True reports."""
    one = ("-p", "max_episodes", "1")
    assert make_run([TRAINS, "1 / 0"], *one) == 1
    assert "The training is done: the same command with -p resume True" in capsys.readouterr().out
    assert make_run(["print('reported')"], *one, "-p", "resume", "True") == 0
    assert make_run([], "-p", "max_episodes", "2", "-p", "resume", "True") == 2


def test_two_runs_of_one_name_do_not_write_over_each_other(make_run, tmp_path, capsys):
    (tmp_path / "runs").mkdir()
    with run.only_one(tmp_path / "runs" / "mine.ipynb"):
        assert make_run(["print('ran')"], "mine") == 2
        assert re.search("another run writes .*mine.ipynb: .*name", capsys.readouterr().err)
        assert not (tmp_path / "runs" / "mine.ipynb").exists()
    assert make_run(["print('ran')"], "mine") == 0


def test_two_runs_do_not_train_into_one_folder(make_run, tmp_path, capsys):
    with locked(tmp_path / "trained" / "default" / "seed0"):
        assert make_run(["print('ran')"], "mine") == 2
    assert "another training runs in" in capsys.readouterr().err
    assert not (tmp_path / "runs" / "mine.ipynb").exists()


def test_help_and_a_version_run_nothing(make_run, tmp_path, capsys):
    assert make_run(["print('ran')"], "--help") == 0
    assert "OPTIONS OF PAPERMILL" in capsys.readouterr().out
    assert make_run(["print('ran')"], "--version") == 0
    assert not list((tmp_path / "runs").glob("*.ipynb"))


def test_no_warning_is_untrue(make_run, tmp_path):
    """Of pictures whose words come later, of sockets of this machine's own."""
    notebook = small_notebook(
        tmp_path / "in.ipynb", "from IPython.display import Image", f"Image({str(PICTURE)!r})"
    )
    command = f"{EXECUTE}; from tutorial.page import write_page;"
    command += "write_page(Path(sys.argv[2]), Path(sys.argv[2] + '.html'))"
    said = subprocess.run(
        [sys.executable, "-c", command, notebook, tmp_path / "out.ipynb"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    ).stderr
    assert "Alternative text" not in said and "encryption" not in said


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT for a process")
def test_ctrl_c_says_what_is_kept_and_how_to_go_on(tmp_path):
    notebook = small_notebook(
        tmp_path / "in.ipynb",
        "print('before')",
        "from pathlib import Path; state = Path(out_dir) / preset / f'seed{seed}' / 'state'",
        "state.mkdir(parents=True); (state / 'state_0000040.pt').touch()",
        "print('now')",
        "import time; time.sleep(600)",
    )
    runs = tmp_path / "runs"
    command = (
        "import sys; from pathlib import Path; from tutorial import report_run as run;"
        "run.NOTEBOOK, run.RUNS, run.SAVE_EVERY = Path(sys.argv[1]), Path(sys.argv[2]), 0;"
        "sys.exit(run.main([]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", command, notebook, runs],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    output, end = runs / "in.ipynb", time.monotonic() + 60
    while not (output.exists() and "now" in printed(output)):
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    said, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in said + errors
    assert "Stopped by Ctrl-C." in said and "-p resume True goes on from there" in said
    assert "after episode 40" in said
    assert "before" in output.with_suffix(".html").read_text()


@pytest.mark.skipif(os.name == "nt", reason="no SIGKILL")
def test_a_kill_leaves_a_readable_notebook(tmp_path):
    notebook = small_notebook(
        tmp_path / "in.ipynb", "print('before')", "import time; time.sleep(600)"
    )
    output, end = tmp_path / "out.ipynb", time.monotonic() + 60
    command = EXECUTE.replace("run.execute", "run.SAVE_EVERY = 0; run.execute")
    process = subprocess.Popen([sys.executable, "-c", command, notebook, output], cwd=PROJECT)
    while not (output.exists() and "before" in printed(output)):
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.1)
    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGKILL)
    process.wait()
    for kernel in family:
        kernel.kill()
    assert "before" in printed(output)


def test_options_reach_the_notebook_and_its_own_folder_is_named(make_run, tmp_path, capsys):
    """Not the newest of any run: another one writes its scores later."""
    other = "from pathlib import Path; Path(out_dir, 'other').mkdir(); Path(out_dir, 'x').touch()"
    assert make_run([TRAINS, other], "-p", "seed", "3") == 0
    folder = re.search(r"scores, weights +(.+)$", capsys.readouterr().out, re.MULTILINE)[1]
    assert folder == str(tmp_path / "trained" / "default" / "seed3")


def test_copies_show_the_pictures_that_the_notebook_links(tmp_path):
    """Those of make run and make lab, in another folder; the notebook itself stays small."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    links = re.findall(r"!\[.+?\]\((.+?)\)", "".join(cell.source for cell in notebook.cells))
    assert links and all((PROJECT / link).is_file() for link in links)
    copy_notebook(tmp_path / "lab.ipynb")
    copy = nbformat.read(tmp_path / "lab.ipynb", as_version=4)
    found = [name for cell in copy.cells for name in cell.get("attachments", {})]
    assert sorted(found) == sorted(link.removeprefix("doc/") for link in links)
    assert "](doc/" not in "".join(cell.source for cell in copy.cells)
    link_pictures(copy)  # for whoever copies it back
    assert copy == notebook
    copy = nbformat.read(tmp_path / "lab.ipynb", as_version=4)
    assert NotebookNotary().check_signature(copy)  # so Jupyter runs the scripts of its pages
    assert NOTEBOOK.stat().st_size < LARGEST


def test_the_lab_s_kernel_runs_in_the_project_and_its_notebook_is_a_copy(tmp_path):
    """So `import helpers` works there, and results go to the project's runs/."""
    copy = tmp_path / "elsewhere" / "lab.ipynb"
    copy.parent.mkdir()
    nbformat.write(new_notebook(cells=[new_markdown_cell("a copy")]), copy)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "jupyterlab",
            *tasks.lab_arguments(copy),
            "--no-browser",
            "--allow-root",
            f"--port={port}",
            "--ServerApp.port_retries=0",
            "--IdentityProvider.token=test",
        ],
        cwd=tmp_path,
        stderr=subprocess.DEVNULL,
    )
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/api/sessions?token=test",
        method="POST",
        data=json.dumps(
            {"path": "lab.ipynb", "type": "notebook", "name": "lab", "kernel": {"name": "python3"}}
        ).encode(),
    )
    try:
        end = time.monotonic() + 120
        while True:
            try:
                session = json.load(urllib.request.urlopen(request, timeout=60))
                break
            except OSError:
                assert server.poll() is None and time.monotonic() < end
                time.sleep(0.2)
        assert session["path"] == "lab.ipynb"
        kernels = [
            process
            for process in psutil.Process(server.pid).children()
            if "ipykernel_launcher" in process.cmdline()
        ]
        assert [kernel.cwd() for kernel in kernels] == [str(PROJECT)]
    finally:
        server.terminate()
        server.wait(timeout=60)


def test_an_unsuitable_python_is_named():
    for version in ((3, 10), (3, 15)):
        with pytest.raises(SystemExit, match=f"Python 3.{version[1]} found, 3.11 to 3.14 needed"):
            tasks.check_version(version)
    for minor in range(11, 15):
        tasks.check_version((3, minor))


def test_an_unknown_task_lists_those_there_are(capsys):
    with pytest.raises(SystemExit, match="no command 'wach': did you mean watch.*study, watch"):
        tasks.main("wach")
    with pytest.raises(SystemExit, match="clean takes no options, and found --help"):
        tasks.main("clean", "--help")
    tasks.main()
    told = capsys.readouterr().out
    assert "run the whole notebook" in told and "OPTIONS=" in told
    assert all(f"    {name} " in tasks.__doc__ for name in tasks.TASKS)
    makefile = (PROJECT / "Makefile").read_text()
    assert set(re.search(r"^TASKS := (.*)$", makefile, re.MULTILINE)[1].split()) == set(tasks.TASKS)


@pytest.mark.skipif(not shutil.which("make"), reason="no make")
@pytest.mark.parametrize(
    "command, called",
    [
        ("watch runs/default/seed0", ["watch runs/default/seed0"]),
        ("pdf Continuous_Control.ipynb", ["pdf Continuous_Control.ipynb"]),
        ("bench OPTIONS=--help", ["bench --help"]),
        ("lint test", ["lint", "test"]),
        ("bogus", ["bogus"]),
        ("", ["help"]),
    ],
)
def test_make_hands_on_what_follows_a_command(command, called):
    said = subprocess.run(
        ["make", "-n", *command.split()], cwd=PROJECT, capture_output=True, text=True, check=True
    ).stdout
    found = [" ".join(line.split()[3:]) for line in said.splitlines() if "tutorial.tasks" in line]
    assert found == called


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT for a process")
def test_ctrl_c_waits_for_the_program_s_last_words(tmp_path):
    """Else it is killed a quarter of a second later."""
    program = (
        "import time\ntry:\n    print('up', flush=True); time.sleep(60)\n"
        "except KeyboardInterrupt:\n    time.sleep(1); print('last words', flush=True)"
    )
    command = (
        f"import sys; from tutorial import tasks; tasks.call(sys.executable, '-c', {program!r})"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", command],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout.readline() == "up\n"
    os.killpg(process.pid, signal.SIGINT)  # as a terminal sends it: to both
    assert process.communicate(timeout=60)[0] == "last words\n"


def test_the_last_run_is_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(printing, "RUNS", tmp_path)
    assert printing.last_run() == NOTEBOOK
    for k, name in enumerate(("old", "mine", "lab")):
        (tmp_path / f"{name}.ipynb").touch()
        os.utime(tmp_path / f"{name}.ipynb", (k, k))
    assert printing.last_run() == tmp_path / "mine.ipynb"
    with pytest.raises(SystemExit):
        printing.main(["nothing.ipynb"])
    assert "no notebook nothing.ipynb" in capsys.readouterr().err


def test_the_first_cell_fetches_the_project_on_colab_only(tmp_path, monkeypatch):
    source = nbformat.read(NOTEBOOK, as_version=4).cells[2].source
    called = []

    def call(command, check):
        called.append(command[:2])
        if command[0] == "git":
            (tmp_path / command[-1]).mkdir()

    monkeypatch.setattr(subprocess, "run", call)
    monkeypatch.chdir(tmp_path)
    exec(source, {})
    assert not called
    monkeypatch.setitem(sys.modules, "google.colab", sys)
    exec(source, {})
    assert called == [["git", "clone"], [sys.executable, "-m"]] and os.getcwd() != str(tmp_path)
    monkeypatch.chdir(PROJECT)
    exec(source, {})
    assert len(called) == 2
