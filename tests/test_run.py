"""What `make run`, `make demo` and `make lab` do around the notebook."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import nbformat
import psutil
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tutorial import tasks
from tutorial.paths import NOTEBOOK, PROJECT
from tutorial.report import run

EXECUTE = (
    "import sys; from pathlib import Path; from tutorial.report import run;"
    "run.execute(Path(sys.argv[1]), Path(sys.argv[2]), [])"
)


def small_notebook(path, *cells):
    language = {"language_info": {"name": "python"}}
    nbformat.write(new_notebook(cells=[*map(new_code_cell, cells)], metadata=language), path)
    return path


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


def test_an_error_leaves_a_readable_notebook_and_page(tmp_path, monkeypatch, capsys):
    notebook = small_notebook(tmp_path / "in.ipynb", "print('before')", "1 / 0", "print('after')")
    monkeypatch.setattr(run, "NOTEBOOK", notebook)
    monkeypatch.setattr(run, "RUNS", tmp_path / "runs")
    assert run.main(["mine"]) == 1
    said = capsys.readouterr().out
    assert "mine.html" in said and "ZeroDivisionError: division by zero" in said
    assert "scores, weights" not in said  # nothing was trained
    assert "before" in printed(tmp_path / "runs" / "mine.ipynb")
    assert "ZeroDivisionError" in (tmp_path / "runs" / "mine.html").read_text()


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


def test_options_reach_the_notebook_and_its_own_folder_is_named(tmp_path, monkeypatch, capsys):
    """Not the newest of any run: another one writes its scores later."""
    monkeypatch.setattr(run, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(run, "PROJECT", tmp_path)
    (tmp_path / "runs" / "default" / "seed3").mkdir(parents=True)
    (tmp_path / "runs" / "other").mkdir()
    notebook = small_notebook(
        tmp_path / "in.ipynb",
        "seed = 0",
        "print('training into', f'runs/default/seed{seed}')",
        "from pathlib import Path; Path('runs/other/scores.csv').touch()",
    )
    cells = nbformat.read(notebook, as_version=4)
    cells.cells[0].metadata["tags"] = ["parameters"]
    nbformat.write(cells, notebook)
    monkeypatch.setattr(run, "NOTEBOOK", notebook)
    assert run.main(["-p", "seed", "3"]) == 0
    assert re.search(r"scores, weights +runs/default/seed3$", capsys.readouterr().out, re.MULTILINE)


def test_the_notebook_says_where_it_trains_or_loads():
    """What `run_folder` reads."""
    folder = run.run_folder(NOTEBOOK)
    assert folder is not None and folder.parts[-2:] == ("default", "seed0")


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


def test_an_unknown_task_lists_those_there_are():
    with pytest.raises(SystemExit, match="run the whole notebook"):
        tasks.main("no-such-task")
    assert all(f"    {name} " in tasks.__doc__ for name in tasks.TASKS)
    makefile = (PROJECT / "Makefile").read_text()
    assert set(re.search(r"^TASKS := (.*)$", makefile, re.MULTILINE)[1].split()) == set(tasks.TASKS)
