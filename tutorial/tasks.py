"""The commands of the README, on every system: `make run` is `python3 -m tutorial.tasks run`.

Each makes `.venv` first and installs into it, unless that is done. What stands after a command goes
to the program behind it: `python -m tutorial.tasks run -p seed 3`, `... test -k noise`. Where make
stands in between, options have to be quoted: make run OPTIONS="-p seed 3", and
make bench OPTIONS=--help shows what a command takes; names need no quotes: make run mine.

    run          run the whole notebook, say where the results are
    demo         the same without training: the kept agent, in under a minute
    test         the tests and the notebook's checked outputs
    test-extras  installs Selenium too, and runs the tests of JupyterLab that need it
    lab          open a copy of the notebook in JupyterLab, runs/lab.ipynb
    lint         check the style of code and notebook, and the types
    experiments  train what the report draws from and is not kept yet
    study        print the results of the study of doc/study.md, and draw its figure
    watch        write runs/watch.html, arms to play with: watch runs/default/seed0
    pdf          print the last run, or any notebook: pdf FILE (needs Chromium or Chrome)
    site         write README, notebooks and pages of doc/ as a web site into _site/html/
    pictures     draw the pictures of README and notebook from kept weights and scores
    bench        measure against other people's code (hours) and write doc/benchmarks.md
    constraints  write tutorial/constraints.txt anew, from the newest versions
    clean        remove .venv
"""

import difflib
import inspect
import os
import shutil
import signal
import subprocess
import sys
import venv

from tutorial.paths import NOTEBOOK, PROJECT, RUNS

OLDEST, NEWEST = (3, 11), (3, 14)
VENV = PROJECT / ".venv"
SITE = PROJECT / "_site" / "html"
CONSTRAINTS = PROJECT / "tutorial" / "constraints.txt"
REQUIREMENTS = PROJECT / "requirements.txt"
UNITY_CLIENT = "unityagents==0.4.0"  # without its pins, which are of 2018
HEAD = """\
# Exact versions of all that the report is made with: `make run` and `make test` install these, so
# that a result of today can be made again. Without this file the lower bounds of requirements.txt
# hold. `make constraints` writes it.
"""


def python(folder=VENV):
    """The interpreter of a virtual environment."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def call(*command, **options):
    """Run a program in the project's folder; stop with its exit status if that is not 0.

    A SIGTERM is handed on, so that the program can end what it has started.
    """
    with subprocess.Popen([*map(str, command)], cwd=PROJECT, **options) as process:
        before = signal.signal(signal.SIGTERM, lambda number, frame: process.terminate())
        while True:
            try:
                status = process.wait()
                break
            except KeyboardInterrupt:  # the program has heard it, too, and says what is kept
                pass
        signal.signal(signal.SIGTERM, before)
    if status:
        sys.exit(status)


def check_version(version=sys.version_info[:2]):
    """Stop where this Python is too old or too new."""
    if not OLDEST <= version <= NEWEST:
        sys.exit(
            "Python {}.{} found, {}.{} to {}.{} needed; choose one by "
            "make PYTHON=python3.12 ...".format(*version, *OLDEST, *NEWEST)
        )


def install(*packages, folder=VENV, constrained=True):
    """Install packages or pip's options into a virtual environment."""
    constraints = ["-c", CONSTRAINTS] if constrained else []
    pip = "-m pip --disable-pip-version-check install -q".split()
    call(python(folder), *pip, *constraints, *packages)


def make_environment(folder=VENV, constrained=True):
    """Make a virtual environment with requirements.txt, unless it is there and up to date."""
    ready = folder / "ready"
    wanted = REQUIREMENTS.read_text() + (CONSTRAINTS.read_text() if constrained else "")
    if ready.exists() and ready.read_text() == wanted:
        return
    check_version()
    print(f"installing into {folder.relative_to(PROJECT)}: some minutes", flush=True)
    if not python(folder).exists():  # else newer requirements go into what is there
        venv.create(folder, with_pip=True)
    install("-r", REQUIREMENTS, folder=folder, constrained=constrained)
    install("--no-deps", UNITY_CLIENT, folder=folder)
    ready.write_text(wanted)


def program(*module):
    """The task that starts a module of this project with options."""
    return lambda *options: call(python(), "-m", *module, *options)


def test(*options):
    """All tests, on all cores, each file on one; the long ones first."""
    long = [NOTEBOOK.name, *(f"tests/test_{name}.py" for name in ("training", "resume"))]
    cores = "-q -n logical --dist loadfile".split()
    cells = "--nbval-lax --nbval-current-env --nbval-cell-timeout=1800".split()
    call(python(), "-m", "pytest", *cores, *cells, *long, "tests", *options)


def test_extras(*options):
    install("-e", ".[browser]")
    call(python(), "-m", "pytest", "-q", "tests/test_jupyterlab.py", *options)


def lab_arguments(notebook, project=PROJECT):
    """Open this notebook, wherever it lies, with a kernel that runs in the project's folder."""
    return [
        f"--ServerApp.root_dir={notebook.parent}",
        f"--MappingKernelManager.root_dir={project}",
        str(notebook),
    ]


def lab_environment():
    """The environment in which JupyterLab renders all cells, so that links land where they lead.

    These are defaults: what the user has chosen in JupyterLab's settings holds.
    """
    folders = [str(PROJECT / "tutorial" / "jupyter"), os.environ.get("JUPYTER_CONFIG_PATH")]
    return os.environ | {"JUPYTER_CONFIG_PATH": os.pathsep.join(filter(None, folders))}


def lab(*options):
    copy = RUNS / "lab.ipynb"
    if copy.exists():
        print("opening runs/lab.ipynb as it was left; remove it for a new copy of", NOTEBOOK.name)
    else:
        copy.parent.mkdir(exist_ok=True)
        call(python(), "-m", "tutorial.notebook", copy)
    call(python(), "-m", "jupyterlab", *lab_arguments(copy), *options, env=lab_environment())


def lint(*options):
    call(python(), "-m", "ruff", "check", ".", *options)
    call(python(), "-m", "mypy")


def site(*options):
    """Without a network. A link between pages that leads nowhere is an error."""
    call(
        python(),
        "-m",
        "sphinx",
        "-q",
        "-W",
        "-c",
        "doc",
        "-d",
        SITE.parent / "doctrees",
        ".",
        SITE,
        *options,
    )
    shutil.copy(SITE / "README.html", SITE / "index.html")
    call(python(), "-m", "web.watch", "--out", SITE / "play.html")


def bench(*options):
    """In an environment of its own, for its packages want other versions."""
    folder = VENV / "bench"
    make_environment(folder, constrained=False)
    install("-e", ".[bench]", folder=folder, constrained=False)
    call(python(folder), "-m", "research.benchmarks", *options)


def constraints():
    folder = VENV / "newest"
    make_environment(folder, constrained=False)
    frozen = subprocess.check_output([str(python(folder)), "-m", "pip", "freeze"], text=True)
    pins = [
        line.split("+")[0] for line in frozen.splitlines() if not line.startswith("unityagents")
    ]
    CONSTRAINTS.write_text(HEAD + "\n".join(sorted(pins, key=str.lower)) + "\n")


def clean():
    shutil.rmtree(VENV, ignore_errors=True)


TASKS = {
    "run": program("tutorial.report_run"),
    "demo": program("tutorial.report_run", "demo", "-p", "train", "False"),
    "test": test,
    "test-extras": test_extras,
    "lab": lab,
    "lint": lint,
    "experiments": program("research"),
    "study": program("research.report.study"),
    "watch": program("web.watch"),
    "pdf": program("tutorial.print"),
    "site": site,
    "pictures": program("tutorial.pictures"),
    "bench": bench,
    "constraints": constraints,
    "clean": clean,
}


def main(name="help", *options):
    if name in ("help", "-h", "--help"):
        print(__doc__)
        return
    if name not in TASKS:
        near = difflib.get_close_matches(name, TASKS, n=1)
        sys.exit(
            f"no command {name!r}"
            + (f": did you mean {near[0]}?" if near else ".")
            + f" There are {', '.join(TASKS)}; make help says what they do"
        )
    task = TASKS[name]
    if options and not inspect.signature(task).parameters:
        sys.exit(f"{name} takes no options, and found {' '.join(options)}")
    if name != "clean":
        make_environment()
    task(*options)


if __name__ == "__main__":
    main(*sys.argv[1:])
