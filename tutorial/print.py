"""The notebook with its outputs as a PDF of plain pages.

    python -m tutorial.print [NOTEBOOK [PDF]]

prints the notebook of the last run in `runs/`, or the repository's if there is none, into
`runs/NAME.pdf`, with page numbers, bookmarks, and the answers to the exercises open. It
needs Chromium or Chrome; without them, any browser prints what `tutorial.page` makes.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat

from tutorial.page import write_page
from tutorial.paths import NOTEBOOK, RUNS

BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "chrome",
    "msedge",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)


def browser() -> str:
    """Path of a browser that prints.

    Raises:
        FileNotFoundError: none is installed; names those that would do.
    """
    for name in BROWSERS:
        if path := shutil.which(name):
            return path
    raise FileNotFoundError(f"none of {', '.join(BROWSERS)} is installed")


def without_sandbox() -> list[str]:
    """Chromium's option for where its sandbox cannot start: for root, and on machines of CI."""
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    return ["--no-sandbox"] if root or os.environ.get("CI") else []


def print_notebook(notebook: Path, pdf: Path) -> None:
    """Write a PDF of a notebook as it is; nothing is executed."""
    program = browser()
    pdf.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        html = Path(scratch) / "page.html"
        write_page(notebook, html)
        page = html.read_text(encoding="utf-8")
        html.write_text(page.replace("<details", "<details open"), encoding="utf-8")
        done = subprocess.run(
            [
                program,
                "--headless",
                *without_sandbox(),
                "--disable-gpu",
                "--no-first-run",
                "--no-pdf-header-footer",
                "--generate-pdf-document-outline",
                f"--user-data-dir={scratch}/profile",
                f"--print-to-pdf={pdf.resolve()}",
                html.as_uri(),
            ],
            capture_output=True,
            text=True,
            timeout=300,
        )
    if done.returncode or not pdf.exists():
        raise RuntimeError(f"{program} did not print: {done.stderr[-2000:]}")


def last_run() -> Path:
    """The notebook that was executed last into `runs/`; the repository's if there is none."""
    runs = [path for path in RUNS.glob("*.ipynb") if path.name != "lab.ipynb"]
    return max(runs, key=lambda path: path.stat().st_mtime, default=NOTEBOOK)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make pdf", description=__doc__.splitlines()[0])
    parser.add_argument("notebook", nargs="?", type=Path, help="which one (that of the last run)")
    parser.add_argument("pdf", nargs="?", type=Path, help="the file (runs/NAME.pdf)")
    options = parser.parse_args(arguments)
    notebook = options.notebook or last_run()
    if not notebook.is_file():
        parser.error(f"no notebook {notebook}")
    pdf = options.pdf or RUNS / f"{notebook.stem}.pdf"
    try:
        print_notebook(notebook, pdf)
    except (OSError, RuntimeError, nbformat.reader.NotJSONError) as error:
        parser.error(str(error))
    print(f"{notebook} printed into {pdf}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
