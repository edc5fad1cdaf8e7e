"""Measure everything, print the tables, and write doc/benchmarks.md.

python -m research.benchmarks                all rows, half an hour
python -m research.benchmarks --only solve   some rows; the others stay as they are
python -m research.benchmarks --render       only write the page again
"""

from __future__ import annotations

import argparse
import json
from datetime import date

from reacher.files import write_whole
from research.benchmarks import learning_step, measure, report, solving
from tutorial.paths import DOC

PAGE = DOC / "benchmarks.md"
ROWS = {"solve": solving, "learning_step": learning_step}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m research.benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="*", choices=ROWS, default=list(ROWS), help="rows")
    parser.add_argument("--render", action="store_true", help="measure nothing")
    options = parser.parse_args()
    path = measure.RESULTS
    rows = json.loads(path.read_text()) if path.exists() else {}
    for name in [] if options.render else options.only:
        print(ROWS[name].TITLE, flush=True)
        when = {"here": measure.here(), "date": date.today().isoformat()}
        rows[name] = when | {"measured": ROWS[name].run()}
        write_whole(path, (json.dumps(rows, indent=1) + "\n").encode())
    page = report.render(rows, ROWS)
    PAGE.write_text(page)
    print(page)


if __name__ == "__main__":
    main()
