"""Execute the notebook into `runs/`, write it as HTML, and say where everything is.

    make run                                   # runs/Continuous_Control.ipynb and .html
    make run mine OPTIONS="-p seed 3"          # runs/mine.ipynb
    make run OPTIONS="-y '{overrides: {n_step: 5}}'"

The options are papermill's: `-p NAME VALUE` and `-y YAML` set parameters of the notebook's second
code cell. An error, Ctrl-C or a kill leaves all that the cells have printed so far.
"""

from __future__ import annotations

import logging
import re
import signal
import sys
import time
from pathlib import Path

import click
import nbformat
from nbconvert import HTMLExporter
from papermill.cli import papermill
from papermill.engines import NBClientEngine, papermill_engines
from papermill.exceptions import PapermillExecutionError

from tutorial.notebook import definitions, parameters_of
from tutorial.paths import CHECKPOINTS, NOTEBOOK, PROJECT, RUNS
from tutorial.run import run_folder
from tutorial.settings import check_parameters, make_settings, require_known

OPTIONS = "--engine checked --kernel python3 --stdout-file - --progress-bar --log-level ERROR"


class Checked(NBClientEngine):
    """Papermill's engine, which knows the parameters' names and values."""

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
        for cell in nb.cells:
            if cell.cell_type == "markdown":  # `runs/` lies beside `doc/`
                cell.source = cell.source.replace("](doc/", "](../doc/")
        move_aside(Path(output_path))
        options["progress_bar"] = {"disable": None}  # in a terminal alone
        return super().execute_notebook(
            nb, kernel_name, output_path, extra_arguments=["--IPKernelApp.log_level=50"], **options
        )


def move_aside(output: Path) -> None:
    """Give an earlier result of the same name another one: a reader may have worked in it."""
    if output.exists():
        stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(output.stat().st_mtime))
        aside = output.replace(output.with_stem(f"{output.stem}_{stamp}"))
        print(f"the earlier {shown(output)} is now {aside.name}")


def write_html(notebook: Path) -> Path:
    """Write a notebook of `runs/` as one HTML file with its pictures."""
    content = nbformat.read(notebook, as_version=4)
    for cell in content.cells:  # nbconvert embeds only what is below a folder
        cell.source = re.sub(r"(!\[[^]]*\]\()\.\./doc/", r"\1doc/", cell.source)
    about = {"metadata": {"name": notebook.stem, "path": str(PROJECT)}}
    page, _ = HTMLExporter(embed_images=True).from_notebook_node(content, about)
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
    papermill_engines.register("checked", Checked)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # of tasks that Ctrl-C cuts off
    command = [str(NOTEBOOK), str(output), *OPTIONS.split(), "--cwd", str(PROJECT), *arguments]
    status, stopped = 0, ""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # it ends a run as Ctrl-C does
    try:
        papermill(command, standalone_mode=False)
    except click.exceptions.Abort:
        status, stopped = 130, "Stopped."
    except PapermillExecutionError as error:
        status, stopped = 1, f"It stopped at an error, {error.ename}: {error.evalue}"
    except (click.ClickException, ImportError, OSError, ValueError) as error:
        print(f"make run: {getattr(error, 'message', None) or error}", file=sys.stderr)
        return 2
    notebook = nbformat.read(output, as_version=4)
    given = parameters_of(notebook) | notebook.metadata.papermill.get("parameters", {})
    place = PROJECT / given["out_dir"] if given["train"] else CHECKPOINTS
    folder = run_folder(place, given["preset"], given["seed"])
    print(f"\nexecuted notebook    {shown(output)}")
    print(f"the same as a page   {write_html(output).as_uri()}")
    print(stopped or f"scores, weights      {shown(folder)}")
    if not stopped:
        print(f"to play with them    make watch {shown(folder)}")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
