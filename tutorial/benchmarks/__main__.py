"""Measure everything, print the tables, and write doc/benchmarks.md.

python -m tutorial.benchmarks                all rows, hours
python -m tutorial.benchmarks --only solve   some rows, by commas; the others stay as they are
python -m tutorial.benchmarks --continue     what a cut run has not measured yet
python -m tutorial.benchmarks --render       only write the page again
python -m tutorial.benchmarks --quick        tiny sizes: does the code run?
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from tutorial.benchmarks import learning_step, measure, report, solving
from tutorial.benchmarks.measure import Options, Recorder
from tutorial.paths import DOC

PAGE = DOC / "benchmarks.md"
ROWS = {"solve": solving, "learning_step": learning_step}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tutorial.benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default=",".join(ROWS), help="rows, by commas")
    parser.add_argument(
        "--continue",
        dest="keep",
        action="store_true",
        help="keep what this machine has measured with these versions",
    )
    parser.add_argument("--render", action="store_true", help="measure nothing")
    parser.add_argument("--quick", action="store_true", help="tiny sizes; writes no page")
    options = parser.parse_args()
    for name in options.only.split(","):
        if name not in ROWS:
            parser.error(f"unknown row {name!r}; known are {', '.join(ROWS)}")
    if options.render and not measure.RESULTS.exists():
        parser.error(f"nothing to render: no {measure.RESULTS}")
    return options


def measure_rows(names: list[str], options: Options, path: Path, keep: bool) -> dict:
    """Measure the rows; return the content of the results file."""
    rows: dict = {}
    here = measure.here()
    for name in names:
        recorder = Recorder(path, name, here, keep)
        print(ROWS[name].TITLE, flush=True)
        ROWS[name].run(options, recorder)
        rows = recorder.rows
    return rows


def main() -> None:
    chosen = arguments()
    options = Options(chosen.quick)
    names = [] if chosen.render else chosen.only.split(",")
    if chosen.quick:
        with tempfile.TemporaryDirectory() as folder:
            rows = measure_rows(names, options, Path(folder) / "results.json", keep=False)
        print(report.render(rows, ROWS, quick=True))
        return
    if chosen.render:
        rows = json.loads(measure.RESULTS.read_text())
    else:
        rows = measure_rows(names, options, measure.RESULTS, chosen.keep)
    page = report.render(rows, ROWS)
    PAGE.write_text(page)
    print(page)


if __name__ == "__main__":
    main()
