"""The commands of this project, on every system: `make run` is `python3 -m tutorial.commands run`.

Each first makes `.venv` and installs into it, unless that is done. What follows a command goes to
the program behind it: `python3 -m tutorial.commands run -p seed 3`. Where make stands in between,
options have to be quoted, make run OPTIONS="-p seed 3".

    run       run the whole notebook into run_<time>.ipynb and .html, and say where all results are
    demo      write runs/watch.html, in which a trained agent acts: demo runs/default/seed0
    lab       open a copy of the notebook in JupyterLab, my_copy.ipynb
    watch     the same, and the page begins with an agent that learns
    site      write README, notebooks and pages of doc/ as a web site into _site/html/
    pictures  draw the pictures of README and notebook from stored weights and scores
    test      the tests and the notebook's checked outputs; says why one is skipped
    lint      check the style of code and notebook, and the types
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import venv

from tutorial.paths import NOTEBOOK, PROJECT

OLDEST, NEWEST = (3, 11), (3, 14)
VENV = PROJECT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
REQUIREMENTS = PROJECT / "requirements.txt"
FOR_DEVELOPERS = PROJECT / "requirements-dev.txt"
CPU_INDEX = "https://download.pytorch.org/whl/cpu"  # its torch is 3 GB smaller than PyPI's on Linux
UNITY_CLIENT = "unityagents==0.4.0"  # without its pins, which are of 2018
COPY = PROJECT / "my_copy.ipynb"
SITE = PROJECT / "_site" / "html"


def call(*command, **options):
    """Run a program in the project's folder; stop with its exit status if that is not 0."""
    if status := subprocess.call([*map(str, command)], cwd=PROJECT, **options):
        sys.exit(status)


def module(*words, **options):
    """Run a module of Python in `.venv`."""
    call(PYTHON, "-m", *words, **options)


def check_environment(asked, version=sys.version_info[:2]):
    """Stop where `make PYTHON=...` asks for another Python than the one of `.venv`."""
    about = VENV / "pyvenv.cfg"
    if asked and about.exists():
        found = re.search(r"^version\w* = (\d+\.\d+)", about.read_text(), re.MULTILINE)[1]
        if found != "{}.{}".format(*version):
            sys.exit(f".venv has Python {found}: remove the folder .venv before PYTHON={asked}")


def make_environment(requirements=REQUIREMENTS):
    """Make `.venv` with what a file requires, unless it is there and up to date."""
    check_environment(os.environ.get("PYTHON"))  # which make hands on where it is given
    ready = VENV / f"{requirements.stem}.ready"
    lists = {REQUIREMENTS, requirements, *PROJECT.glob("packages/*/pyproject.toml")}
    wanted = "".join(path.read_text() for path in sorted(lists))
    if ready.exists() and ready.read_text() == wanted:
        return
    if not OLDEST <= (version := sys.version_info[:2]) <= NEWEST:
        found = "Python {}.{} found, {}.{} to {}.{} needed; ".format(*version, *OLDEST, *NEWEST)
        sys.exit(f"{found}choose one by make PYTHON=python3.12 ...")
    print("installing into .venv, 2.4 GB: two to four minutes", flush=True)
    if not PYTHON.exists():  # else newer requirements go into what is there
        venv.create(VENV, with_pip=True)
    if sys.platform == "linux":  # where the index cannot be reached, the usual build comes below
        torch = re.search(r"^torch==\S+", wanted, re.MULTILINE)[0]
        options = "-q --no-deps --retries 0 --timeout 10 --index-url".split()
        subprocess.call(
            [PYTHON, "-m", "pip", "install", *options, CPU_INDEX, torch], stderr=subprocess.DEVNULL
        )
    for words in (["-r", requirements], ["--no-deps", UNITY_CLIENT]):  # pip says what it cannot
        module("pip", "--disable-pip-version-check", "install", *words)
    ready.write_text(wanted)


def lab_options(notebook):
    """JupyterLab's options: the project is what it shows, and it opens this notebook in it."""
    place = notebook.relative_to(PROJECT).as_posix()
    return [f"--ServerApp.root_dir={PROJECT}", f"--LabApp.default_url=/lab/tree/{place}"]


def lab_environment():
    """The environment in which JupyterLab renders all cells, so that links land where they lead.

    These are defaults: what the user has chosen in JupyterLab's settings holds.
    """
    folders = [str(PROJECT / "tutorial" / "jupyter"), os.environ.get("JUPYTER_CONFIG_PATH")]
    return os.environ | {"JUPYTER_CONFIG_PATH": os.pathsep.join(filter(None, folders))}


def lab(*options):
    if COPY.exists():
        print(f"opening {COPY.name} as it was left; remove it for a new copy of {NOTEBOOK.name}")
    else:
        shutil.copy(NOTEBOOK, COPY)
        module("jupyter", "trust", COPY)  # else JupyterLab removes the pages in its outputs
    module("jupyterlab", *lab_options(COPY), *options, env=lab_environment())


def watch(*options):
    module("reacher_page.watch", "--agent", "helpers:quick_agent", *options)


def demo(*options):
    module("reacher_page.watch", *options)


def site(*options):
    """Without a network. A link between pages that leads nowhere is an error."""
    folders = "-d", SITE.parent / "doctrees", ".", SITE
    module("sphinx", "-q", "-W", "-c", "doc", *folders, *options)
    shutil.copy(SITE / "README.html", SITE / "index.html")
    watch("--out", SITE / "play.html", "--tutorial", "index.html")
    print(f"the site begins at {(SITE / 'index.html').as_uri()}")


def test(*options):
    """All tests but those of research, on all cores, each file on one; the notebook first."""
    how = "-q -rs -n logical --dist loadfile --no-loadscope-reorder".split()
    how += "--nbval-lax --nbval-current-env --nbval-cell-timeout=600".split()
    alone = os.environ | {"OMP_NUM_THREADS": "1"}  # threads of tests side by side would only wait
    module("pytest", *how, NOTEBOOK.name, "tests", "packages", *options, env=alone)


def lint(*options):
    module("ruff", "check", ".", *options)
    module("ruff", "format", "--check", "-q", ".")
    module("mypy")


DEVELOPERS = "site", "test", "lint"
COMMANDS = {
    "run": lambda *options: module("tutorial.execute", *options),
    "demo": demo,
    "lab": lab,
    "watch": watch,
    "site": site,
    "pictures": lambda *options: module("doc.pictures", *options),
    "test": test,
    "lint": lint,
}


def main(name="help", *options):
    if name in ("help", "-h", "--help"):
        print(__doc__)
        return
    if name not in COMMANDS:
        sys.exit(f"no command {name!r}: there are {', '.join(COMMANDS)}; make help says more")
    if options and options[0] in COMMANDS:
        sys.exit(f"one command at a time: {name} does not take {options[0]}")
    # The program hears Ctrl-C, too, and says what is kept.
    signal.signal(signal.SIGINT, lambda *_: None)
    make_environment(FOR_DEVELOPERS if name in DEVELOPERS else REQUIREMENTS)
    COMMANDS[name](*options)


if __name__ == "__main__":
    main(*sys.argv[1:])
