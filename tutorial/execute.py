"""Execute the notebook, write it as HTML beside it, and say where everything is.

    make run                                   # run_<time>.ipynb and run_<time>.html
    make run OPTIONS="-p seed 3"
    make run OPTIONS="-y '{overrides: {n_step: 5}}'"

The options are papermill's: `-p NAME VALUE` and `-y YAML` set parameters of the notebook's second
code cell. An error, Ctrl-C or a kill leaves all that the cells have printed so far.
"""

from __future__ import annotations

import logging
import signal
import sys
import time
from pathlib import Path
from typing import Any

import click
from nbconvert import HTMLExporter
from papermill.cli import papermill
from papermill.engines import NBClientEngine, papermill_engines
from papermill.exceptions import PapermillExecutionError

from tutorial.notebook import definitions, parameters_of
from tutorial.paths import CHECKPOINTS, NOTEBOOK, PROJECT
from tutorial.run import run_folder
from tutorial.settings import check_parameters, make_settings, require_known

OPTIONS = "--engine checked --kernel python3 --stdout-file - --progress-bar --log-level ERROR"


class Checked(NBClientEngine):
    """Papermill's engine, which knows the parameters' names and values."""

    folder: Path  # where scores and weights go

    @classmethod
    def execute_notebook(cls, nb: Any, *others: Any, **options: Any) -> Any:
        """As papermill's.

        Raises:
            ValueError: a parameter is unknown or wrong; nothing is written.
        """
        values = parameters_of(nb)
        for name, value in nb.metadata.papermill.get("parameters", {}).items():
            values[require_known("parameter", name, values)] = value
        check_parameters(values)
        make_settings(definitions().Hyperparameters, values["preset"], values["overrides"])
        place = PROJECT / values["out_dir"] if values["train"] else CHECKPOINTS
        cls.folder = run_folder(place, values["preset"], values["seed"])
        options["progress_bar"] = {"disable": None}  # in a terminal alone
        quiet = ["--IPKernelApp.log_level=50"]
        return super().execute_notebook(nb, *others, extra_arguments=quiet, **options)


def main(arguments: list[str]) -> None:
    output = PROJECT / time.strftime("run_%Y%m%d-%H%M%S.ipynb")
    papermill_engines.register("checked", Checked)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # of tasks that Ctrl-C cuts off
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # it ends a run as Ctrl-C does
    stopped = None
    try:
        papermill([str(NOTEBOOK), str(output), *OPTIONS.split(), *arguments], standalone_mode=False)
    except click.exceptions.Abort:
        stopped = "Stopped."
    except PapermillExecutionError as error:
        stopped = f"It stopped at an error, {error.ename}: {error.evalue}"
    except (click.ClickException, ImportError, OSError, ValueError) as error:
        stopped = f"make run: {getattr(error, 'message', None) or error}"
    if output.exists():
        page, _ = HTMLExporter(embed_images=True).from_filename(str(output))
        output.with_suffix(".html").write_text(page, encoding="utf-8")
        print("" if stopped else f"\nscores and weights: {Checked.folder}")
        print(f"executed notebook:  {output}")
        print(f"the same as a page: {output.with_suffix('.html').as_uri()}")
    sys.exit(stopped)


if __name__ == "__main__":
    main(sys.argv[1:])
