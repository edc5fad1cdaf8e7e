"""Execute the notebook into `runs/`, write it as HTML, and say where everything is.

    python -m tutorial.report.run [NAME] [OPTIONS OF PAPERMILL]
    python -m tutorial.report.run mine -p seed 3 -y '{overrides: {n_step: 5}}'

writes `runs/NAME.ipynb` and `runs/NAME.html`; the name is that of the notebook if none is given.
What a cell printed is in the file soon after, whole, so that an error or a kill leaves it readable.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import time
from pathlib import Path

import nbformat
from papermill.cli import papermill
from papermill.engines import NBClientEngine, papermill_engines
from papermill.exceptions import PapermillExecutionError

from tutorial.paths import NOTEBOOK, PROJECT, RUNS
from tutorial.report.page import write_page
from tutorial.training.files import write_whole

SAVE_EVERY = 10.0  # s


class SeldomSaving(NBClientEngine):
    """Papermill's engine, but the notebook is not written before and after each cell.

    That took longer than the cells. Here it is written at the start and then once in a while, in
    one piece; papermill itself writes it at the end, and after an error.
    """

    @classmethod
    def execute_managed_notebook(cls, nb_man, kernel_name, **options):
        due = 0.0

        def save(**_):
            nonlocal due
            if time.monotonic() >= due:
                write_whole(Path(nb_man.output_path), nbformat.writes(nb_man.nb).encode())
                due = time.monotonic() + SAVE_EVERY

        nb_man.save = save
        save()
        return super().execute_managed_notebook(nb_man, kernel_name, **options)


def execute(notebook: Path, output: Path, options: list[str]) -> None:
    """Execute a notebook in the project's folder, with papermill's options.

    Raises:
        PapermillExecutionError: a cell failed; the output ends there.
    """
    papermill_engines.register("seldom_saving", SeldomSaving)
    output.parent.mkdir(parents=True, exist_ok=True)
    papermill(
        [
            str(notebook),
            str(output),
            "--engine",
            "seldom_saving",
            "--kernel",
            "python3",
            "--cwd",
            str(PROJECT),
            "--no-progress-bar",
            "--stdout-file",
            "-",
            *options,
        ],
        standalone_mode=False,
    )


def run_folder(notebook: Path) -> Path | None:
    """The folder that an executed notebook says it trains into, or loads from."""
    for cell in nbformat.read(notebook, as_version=4).cells:
        for output in cell.get("outputs", []):
            if found := re.search(
                r"^(?:training into|loading from) (.+)$", output.get("text", ""), re.MULTILINE
            ):
                return PROJECT / found[1]
    return None


def main(arguments: list[str]) -> int:
    name = NOTEBOOK.stem
    if arguments and not arguments[0].startswith("-"):
        name, *arguments = arguments
    output = RUNS / f"{name}.ipynb"
    page, watch = output.with_suffix(".html"), RUNS / f"{name}_watch.html"
    failed = None
    try:
        execute(NOTEBOOK, output, arguments)
    except PapermillExecutionError as error:
        failed = error
    write_page(output, page)
    outputs = [("executed notebook", output), ("the same as HTML", page)]
    folder = run_folder(output)
    if folder and folder.is_dir():
        outputs.append(("scores, weights", folder))
        command = [sys.executable, "-m", "reacher.watch", folder, "--out", watch]
        if (
            importlib.util.find_spec("reacher.watch")
            and not failed
            and not subprocess.call(command, cwd=PROJECT)
        ):
            outputs.append(("arms to play with", watch))
    print()
    for what, path in outputs:
        shown = path.relative_to(PROJECT) if path.is_relative_to(PROJECT) else path
        print(f"{what:24}{shown}")
    if failed:
        print(
            f"\nIt stopped at an error, in cell {failed.exec_count}: {failed.ename}: "
            f"{failed.evalue}"
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
