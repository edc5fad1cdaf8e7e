"""The notebook with its outputs as a PDF of plain pages.

    python -m tutorial.report.print [NOTEBOOK [PDF]]

It needs Chromium or Chrome; without them, any browser prints what `tutorial.report.page` makes.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tutorial.paths import PROJECT
from tutorial.report.page import write_page

BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "chrome",
    "msedge",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
STYLE = """<style>
@page { size: A4; margin: 14mm }
@media print {
  body { zoom: 0.8 }
  pre { white-space: pre-wrap !important }
  h2, h3 { break-after: avoid }
  img { break-inside: avoid; max-width: 100% }
}
</style></head>"""


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
        html.write_text(page.replace("</head>", STYLE, 1), encoding="utf-8")
        done = subprocess.run(
            [
                program,
                "--headless",
                *without_sandbox(),
                "--disable-gpu",
                "--no-first-run",
                "--no-pdf-header-footer",
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


if __name__ == "__main__":
    paths = [*map(Path, sys.argv[1:]), PROJECT / "Continuous_Control.ipynb"][:2]
    if len(sys.argv) < 3:
        paths[1:] = [PROJECT / "runs" / f"{paths[0].stem}.pdf"]
    print_notebook(*paths)
    print(paths[1])
