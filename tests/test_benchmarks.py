"""The pure pieces of the benchmarks: records, results, reports. Nothing here is timed."""

from __future__ import annotations

import importlib
import json
import timeit
import types

import numpy as np
import pytest

from research.benchmarks import learning_step, measure, report, solving

COMMAND = importlib.import_module("research.benchmarks.__main__")


@pytest.mark.parametrize(
    "overrides, edits",
    [({}, ()), (learning_step.PLAIN_SETTINGS, learning_step.WITHOUT_NORMALIZATION)],
    ids=["whole", "plain"],
)
def test_an_update_phase_is_the_notebooks(overrides, edits):
    """Its edits of the cells match, and it learns."""
    rows = np.random.default_rng(0).standard_normal((200, 72), dtype=np.float32)
    phase, steps = learning_step.this_project(
        dict(overrides) | {"gradient_steps": 2}, edits, rows, np.ones(200), "torch"
    )
    phase()
    assert steps == 2


# ----------------------------------------------------------------------------- timing and results


def test_candidates_take_turns_and_the_order_alternates(monkeypatch):
    monkeypatch.setattr(timeit.Timer, "autorange", lambda timer: (1, 0.2))
    order = []
    calls = {name: lambda name=name: order.append(name) for name in "ab"}
    seconds = measure.time_in_turn(calls, repetitions=3)
    assert "".join(order) == "abbaab"
    assert [len(values) for values in seconds.values()] == [3, 3]


def test_results_of_other_rows_stay(tmp_path, monkeypatch):
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"learning_step": a_row({"a": {"seconds": [1.0]}})}))
    monkeypatch.setattr(measure, "RESULTS", path)
    monkeypatch.setattr(COMMAND, "PAGE", tmp_path / "benchmarks.md")
    monkeypatch.setattr(solving, "run", dict)
    monkeypatch.setattr("sys.argv", ["benchmarks", "--only", "solve"])
    COMMAND.main()
    held = json.loads(path.read_text())
    assert held["learning_step"]["measured"] == {"a": {"seconds": [1.0]}}
    assert held["solve"]["measured"] == {} and "Gradient step" in COMMAND.PAGE.read_text()


# ------------------------------------------------------------------------------------------- report

HERE = {
    "machine": {"processor": "P", "cores": "2", "memory": "4 GiB", "system": "S"},
    "versions": {"python": "3"},
}


def a_row(measured, here=HERE):
    return {"here": here, "date": "2026-01-01", "measured": measured}


def a_module():
    return types.SimpleNamespace(
        TITLE="Some row", EXPLANATION="What it is.", table=learning_step.table
    )


def test_the_page_has_times_and_names_missing_baselines():
    page = report.render(
        {
            "row": a_row(
                {
                    "ours": {"seconds": [1e-6, 2e-6, 6e-6]},
                    "baseline": {"missing": "baseline is not installed"},
                }
            )
        },
        {"row": a_module(), "late": a_module()},
    )
    assert "| ours | 2.0 | 1.5 to 4.0 | 3 |" in page
    assert "| baseline | baseline is not installed | - | - |" in page
    assert "Not measured yet: Some row." in page
    assert page.count("Machine: P, 2 cores, 4 GiB, S.") == 1


def test_the_page_says_what_was_measured_elsewhere():
    modules = {"one": a_module(), "two": a_module()}
    other = {**HERE, "versions": {"python": "4"}}
    rows = {
        "one": a_row({"a": {"seconds": [1.0]}}),
        "two": a_row({"a": {"seconds": [1.0]}}, here=other),
    }
    page = report.render(rows, modules)
    assert page.count("Versions: python 3.") == 1 and page.count("Versions: python 4.") == 1


def test_the_committed_page_is_that_of_the_committed_results():
    rows = json.loads(measure.RESULTS.read_text())
    assert COMMAND.PAGE.read_text() == report.render(rows, COMMAND.ROWS)


def test_a_median_of_solving_needs_every_seed():
    def run(training, first=5, solved=100):
        return {
            "training": training,
            "floor": 20.0,
            "floor, PyTorch": 30.0,
            "to 30": 5.0,
            "whole notebook": 99.0,
            "solved at": solved,
            "first at 30": first,
            "mean of 1-100": 38.0,
        }

    measured = {f"fast, seed {seed}": run(seconds) for seed, seconds in enumerate((50.0, 59, 70))}
    assert solving.medians(measured, "fast")["training"] == 59
    measured["fast, seed 1"] = run(None, first=None, solved=None)
    assert solving.medians(measured, "fast")["training"] is None
    line = "| fast, seed 1 | - | - | 38.00 | 5.0 | - | 20.0 | 30.0 | 99.0 |"
    assert line in solving.table(measured)


def test_an_unknown_row_is_an_error_that_names_the_known_ones(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["benchmarks", "--only", "solve", "nothing"])
    with pytest.raises(SystemExit):
        COMMAND.main()
    error = capsys.readouterr().err
    assert "'nothing'" in error and "solve" in error and "learning_step" in error
