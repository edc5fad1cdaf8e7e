"""The pure pieces of the benchmarks: records, results, reports. Nothing here is timed."""

from __future__ import annotations

import importlib
import json
import types

import numpy as np
import pytest

from reacher import ReacherEnvironment
from tutorial.benchmarks import baseline_training, learning_step, measure, report, solving
from tutorial.benchmarks.baseline_training import progress
from tutorial.benchmarks.measure import Options, Recorder

# ---------------------------------------------------------------------------------- the environment


@pytest.fixture
def arms():
    """Two arms of seed 3, ready for Stable-Baselines3."""
    pytest.importorskip("stable_baselines3")
    from tutorial.benchmarks.sb3_training import ArmVecEnv

    return ArmVecEnv(2, seed=3)


def test_arms_score_like_the_environment_and_report_the_true_last_observation(arms):
    """After the last decision: the next episode's first observation, and the old one's last."""
    actions = np.random.default_rng(0).uniform(-1, 1, (1001, 2, 4)).astype(np.float32)
    total = np.zeros(2)
    arms.reset()
    with ReacherEnvironment(2, seed=3) as env:
        env.reset()
        for number, action in enumerate(actions):
            observations, rewards, dones, infos = arms.step(action)
            answer = env.step(action)[env.brain_names[0]]
            total += answer.rewards
            np.testing.assert_array_equal(observations, answer.vector_observations)
            assert rewards.dtype == np.float32 and dones.all() == (number == 1000)
            assert infos == [{}, {}] or number == 1000
    assert all(info["TimeLimit.truncated"] for info in infos)
    last = np.array([info["terminal_observation"] for info in infos])
    assert np.abs(last - observations).max() > 1  # the arms hang again, the last ones did not
    assert arms.scores == [pytest.approx(total.mean(), abs=1e-4)] and len(arms.seconds) == 1


def test_arms_say_when_a_training_may_end(arms):
    arms.max_episodes, arms.scores = 2, [5.0]
    assert not arms.finished
    arms.scores = [5.0, 6.0]
    assert arms.finished
    arms.max_episodes, arms.scores = 10, [31.0]
    assert arms.finished
    arms.scores, arms.max_seconds = [], 0.0
    assert arms.finished


def test_progress_finds_the_first_episode_at_30():
    record = progress([1.0, 29.99, 30.0, 35.0], [1, 2, 3, 4])
    assert record["first episode at 30"] == 3
    assert record["decisions to 30"] == 3 * 1001 and record["seconds to 30"] == 3
    assert progress([1.0], [1.0])["seconds to 30"] is None


@pytest.mark.parametrize("overrides", [{}, learning_step.PLAIN_SETTINGS], ids=["whole", "plain"])
def test_an_update_phase_is_the_notebooks(overrides):
    """Its edits of the cells match, and it learns."""
    rows = np.random.default_rng(0).standard_normal((200, 72), dtype=np.float32)
    phase, steps = learning_step.this_project(
        dict(overrides) | {"gradient_steps": 2}, rows, np.ones(200), "torch"
    )
    phase()
    assert steps == 2


# ----------------------------------------------------------------------------- timing and results


def test_candidates_take_turns_and_the_order_alternates():
    order = []
    calls = {name: lambda name=name: order.append(name) for name in "ab"}
    seconds = measure.time_in_turn(calls, Options(quick=True))
    assert "".join(order) == "abbaab"
    assert [len(values) for values in seconds.values()] == [3, 3]


def test_results_of_other_rows_stay(tmp_path):
    path = tmp_path / "results.json"
    for row, value in (("first", 1), ("second", 2), ("first", 3)):
        recorder = Recorder(path, row, {"machine": "x"})
        recorder.put("entry", value)
    held = json.loads(path.read_text())
    assert held["first"]["measured"] == {"entry": 3}
    assert held["second"]["measured"] == {"entry": 2}


def test_a_cut_run_goes_on_where_it_was_cut_on_the_same_machine_only(tmp_path):
    path = tmp_path / "results.json"
    Recorder(path, "row", {"machine": "x"}).put("one", 1)  # cut here

    recorder = Recorder(path, "row", {"machine": "x"}, keep=True)
    assert recorder.has("one") and not recorder.has("two")
    recorder.put("two", 2)

    for machine, keep in (("y", True), ("x", False)):
        recorder = Recorder(path, "row", {"machine": machine}, keep)
        assert not recorder.has("one")


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


def test_the_page_says_what_was_quick_or_measured_elsewhere():
    modules = {"one": a_module(), "two": a_module()}
    other = {**HERE, "versions": {"python": "4"}}
    rows = {
        "one": a_row({"a": {"seconds": [1.0]}}),
        "two": a_row({"a": {"seconds": [1.0]}}, here=other),
    }
    page = report.render(rows, modules, quick=True)
    assert "Quick run" in page
    assert page.count("Versions: python 3.") == 1 and page.count("Versions: python 4.") == 1
    assert "Quick run" not in report.render(rows, modules)


def test_the_committed_page_is_that_of_the_committed_results():
    command = importlib.import_module("tutorial.benchmarks.__main__")
    rows = json.loads(measure.RESULTS.read_text())
    assert command.PAGE.read_text() == report.render(rows, command.ROWS)


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


def test_a_median_of_baselines_counts_a_seed_that_never_got_there_as_the_slowest():
    def records(name, *seconds):
        return {
            f"{name}/{seed}": {
                "scores": [31.0],
                "seconds to 30": value,
                "decisions to 30": value and 1001,
            }
            for seed, value in enumerate(seconds)
        }

    baselines = list(baseline_training.BASELINES)
    measured = records(baselines[0], 60.0, None, 45.0) | records(baselines[1], None, None, 20.0)
    measured |= {f"{baselines[2]}/0": {"missing": "stable_baselines3 is not installed"}}
    table = baseline_training.table(measured)
    assert f"| {baselines[0]} | 60.0, not within, 45.0 | 60.0 | 1,001, not within, 1,001 |" in table
    assert f"| {baselines[1]} | not within, not within, 20.0 | not within |" in table
    assert "stable_baselines3 is not installed" in table


def test_a_failed_baseline_says_why():
    assert baseline_training.failure(-15, "") == "ended by signal 15"
    absent = "Traceback\nModuleNotFoundError: No module named 'gone'\n"
    assert baseline_training.failure(1, absent) == "gone is not installed"
    assert baseline_training.failure(1, "Traceback\nValueError: no") == "failed: ValueError: no"


def test_an_unknown_row_is_an_error_that_names_the_known_ones(monkeypatch, capsys):
    command = importlib.import_module("tutorial.benchmarks.__main__")
    monkeypatch.setattr("sys.argv", ["benchmarks", "--only", "solve,nothing"])
    with pytest.raises(SystemExit):
        command.arguments()
    assert "unknown row 'nothing'; known are solve, " in capsys.readouterr().err
