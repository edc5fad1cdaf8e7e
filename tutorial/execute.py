"""Execute the notebook into `runs/`, write it as HTML, and say where everything is.

    make run                                   # runs/Continuous_Control.ipynb and .html
    make run mine OPTIONS="-p seed 3"          # runs/mine.ipynb
    make run OPTIONS="-y '{overrides: {n_step: 5}}'"

The options are papermill's: `-p NAME VALUE` and `-y YAML` set parameters of the notebook's second
code cell. An error, Ctrl-C or a kill leaves all that the cells have printed so far.
"""

from __future__ import annotations

import base64
import functools
import html
import logging
import mimetypes
import os
import re
import shlex
import signal
import sys
import time
import types
from pathlib import Path

import click
import nbformat
from nbconvert import HTMLExporter
from nbformat.v4 import new_code_cell, new_markdown_cell
from papermill.cli import papermill
from papermill.engines import NBClientEngine, papermill_engines
from papermill.exceptions import PapermillExecutionError

from tutorial.environments import GYMNASIUM
from tutorial.files import write_whole
from tutorial.notebook import definitions, describe_pictures, parameters_of
from tutorial.paths import CHECKPOINTS, DOC, NOTEBOOK, PROJECT, RUNS
from tutorial.run import run_folder
from tutorial.settings import check_parameters, make_settings, require_known

LOGGED = {"training", "log"}  # tags of the cells whose lines a reader sees while they run
SAVE_EVERY = 10.0  # s between two times that the notebook is written
ANOTHER = """# {name}

The agent of [Continuous_Control](../Continuous_Control.ipynb) learned {name}, an environment of \
[Gymnasium](https://gymnasium.farama.org), from `num_agents` copies of it."""
SETUP = """import helpers
helpers.definitions()  # those of the notebook, whose name can be imported now
from Continuous_Control import *
torch.set_num_threads(1)
helpers.check_parameters(globals())
folder = helpers.run_folder(out_dir if train else helpers.CHECKPOINTS, preset, seed)
environment = helpers.open_environment(env_location, num_agents, seed)"""
CAPTION = """*Figure 1: scores of this run, which include exploration noise until learning ends. \
The band shows the worst and the best copy, and a dashed line a score that counts as solved.*"""
QUIET = ["--IPKernelApp.log_level=50"]  # the kernel's own messages, of its sockets
OPTIONS = "--engine watched --kernel python3 --stdout-file - --no-progress-bar --log-level ERROR"


class Watched(NBClientEngine):
    """Papermill's engine, which knows the parameters' names, writes seldom and prints little."""

    @classmethod
    def execute_notebook(cls, nb, kernel_name, output_path=None, **options):
        """As papermill's.

        Raises:
            ValueError: a parameter is unknown or wrong; nothing is written.
        """
        known, given = parameters_of(nb), nb.metadata.papermill.get("parameters", {})
        for name in given:
            require_known("parameter", name, known)
        values = known | given
        check_parameters(values)
        make_settings(definitions().Hyperparameters, values["preset"], values["overrides"])
        if values["env_location"].startswith(GYMNASIUM):
            tell_another(nb, values["env_location"].removeprefix(GYMNASIUM))
        move_aside(Path(output_path))
        for cell in nb.cells:
            if cell.cell_type == "markdown":  # `runs/` lies beside `doc/`
                cell.source = cell.source.replace("](doc/", "](../doc/")
        return super().execute_notebook(nb, kernel_name, output_path, **options)

    @classmethod
    def execute_managed_notebook(cls, nb_man, kernel_name, stdout_file=None, **options):
        """As papermill's; it prints the headings, and what the cells LOGGED print."""
        start, due, log = nb_man.cell_start, 0.0, types.SimpleNamespace(flush=lambda: None)

        def cell_start(cell, *arguments, **keywords):
            is_shown = LOGGED & set(cell.metadata.get("tags", ()))
            log.write = functools.partial(print, end="", flush=True) if is_shown else len
            if heading := re.match(r"## (.+)", cell.source):
                print(heading[1], flush=True)
            start(cell, *arguments, **keywords)

        def save(**_):  # before and after each cell it would take longer than the cells
            nonlocal due
            if time.monotonic() >= due:
                write_whole(Path(nb_man.output_path), nbformat.writes(nb_man.nb).encode())
                due = time.monotonic() + SAVE_EVERY

        nb_man.cell_start, nb_man.save = cell_start, save
        try:
            super().execute_managed_notebook(
                nb_man, kernel_name, stdout_file=log, extra_arguments=QUIET, **options
            )
        finally:
            due = 0.0
            save()


def tell_another(notebook: nbformat.NotebookNode, name: str) -> None:
    """Keep of a notebook on arms what trains on another environment, and say at its top which."""

    def tagged(*tags: str) -> list[nbformat.NotebookNode]:
        return [cell for cell in notebook.cells if {*tags} & {*cell.metadata.get("tags", ())}]

    training, scores, *others = tagged(*LOGGED)
    told = [new_markdown_cell(ANOTHER.format(name=name))]
    told += [*tagged("parameters", "injected-parameters"), new_code_cell(SETUP), training, scores]
    notebook.cells = [*told, new_markdown_cell(CAPTION), *others]


def move_aside(output: Path) -> None:
    """Give an earlier result of the same name another one: a reader may have worked in it."""
    if output.exists():
        stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(output.stat().st_mtime))
        for path in (output, output.with_suffix(".html")):
            if path.exists():
                path.replace(path.with_stem(f"{path.stem}_{stamp}"))
        print(f"the earlier {shown(output)} is now {output.stem}_{stamp}.ipynb")


def closed(cell: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A solution as text that a click opens, in one line, because a blank one ends HTML."""
    if "solution" not in cell.metadata.get("tags", ()):
        return cell
    code = html.escape(cell.source).replace("\n", "&#10;")
    return new_markdown_cell(f"<details><summary>Solution</summary><pre>{code}</pre></details>")


def write_html(notebook: Path) -> Path:
    """Write a notebook of `runs/` as one HTML file.

    Pictures are in it; its formulas come from the network.
    """

    def picture(found: re.Match) -> str:
        if not (file := DOC / found[1]).is_file():
            return found[0]
        content = base64.b64encode(file.read_bytes()).decode()
        return f'src="data:{mimetypes.guess_type(file)[0]};base64,{content}"'

    content = nbformat.read(notebook, as_version=4)
    describe_pictures(content)
    content.cells = [closed(cell) for cell in content.cells]
    for output in (one for cell in content.cells for one in cell.get("outputs", [])):
        if words := output.get("metadata", {}).get("image/png", {}).get("alt"):  # lost otherwise
            address = f"data:image/png;base64,{output.data['image/png']}"
            output.data["text/html"] = f'<img alt="{html.escape(words)}" src="{address}">'
    page, _ = HTMLExporter().from_notebook_node(content, {"metadata": {"name": notebook.stem}})
    page = re.sub(r'src="\.\./doc/([^"]+)"', picture, page)
    path = notebook.with_suffix(".html")
    path.write_text(page, encoding="utf-8")
    return path


def shown(path: Path) -> Path:
    """A path as seen from the project's folder."""
    return path.relative_to(PROJECT) if path.is_relative_to(PROJECT) else path


def main(arguments: list[str]) -> int:
    if {"-h", "--help"} & set(arguments):
        print(__doc__)
        return 0
    is_named = arguments and not arguments[0].startswith("-")
    name = Path(arguments.pop(0) if is_named else NOTEBOOK).stem
    output = RUNS / f"{name}.ipynb"
    RUNS.mkdir(exist_ok=True)
    papermill_engines.register("watched", Watched)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # of tasks that Ctrl-C cuts off
    command = [str(NOTEBOOK), str(output), *OPTIONS.split(), "--cwd", str(PROJECT), *arguments]
    status, stopped, started = 0, "", time.time()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # it ends a run as Ctrl-C does
    try:
        papermill(command, standalone_mode=False)
    except click.exceptions.Abort:
        status, stopped = 130, "Stopped."
    except PapermillExecutionError as error:
        stopped = f"It stopped at an error, {error.ename}: {error.evalue}"
        status = 1
    except (click.ClickException, ImportError, OSError, ValueError) as error:
        print(f"make run: {getattr(error, 'message', None) or error}", file=sys.stderr)
        return 2
    if not output.exists() or output.stat().st_mtime < started:  # papermill's version, say
        return status
    notebook = nbformat.read(output, as_version=4)
    given = parameters_of(notebook) | notebook.metadata.papermill.get("parameters", {})
    place = PROJECT / given["out_dir"] if given["train"] else CHECKPOINTS
    folder = run_folder(place, given["preset"], given["seed"])
    print(f"\nexecuted notebook    {shown(output)}")
    print(f"the same as a page   {write_html(output).as_uri()}")
    if stopped:
        print(f"\n{stopped}")
    elif given["env_location"].startswith(GYMNASIUM):
        print(f"scores, weights      {shown(folder)}")
    else:
        print(f"scores, weights      {shown(folder)} (make watch {shown(folder)}: play with them)")
    if stopped and (folder / "state.pt").exists():
        python = "py" if os.name == "nt" else "python3"
        words = [python, "-m", "tutorial.commands", "run", name, *arguments, "-p", "train"]
        print("To go on from the last saved state, and train again what came after it:")
        print(f"  {shlex.join([*words, 'resume'])}")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
