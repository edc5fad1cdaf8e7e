"""The pure pieces of the benchmarks: trees, records, results, reports. Nothing here is timed."""

from __future__ import annotations

import importlib
import json
import types

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from reacher import ReacherEnvironment
from tutorial.benchmarks import (
    baseline_training,
    cleanrl_style_ddpg,
    environment_speed,
    measure,
    replay,
    report,
    scaling,
    solving,
)
from tutorial.benchmarks.baseline_environment import Arms, progress
from tutorial.benchmarks.measure import Options, Recorder, Results, Target
from tutorial.benchmarks.trees import NumpyTree, linked_tree

whole_numbers = st.lists(st.integers(0, 2**20), min_size=1, max_size=40)


# ------------------------------------------------------------------------------------------- trees


@given(data=st.data(), priorities=whole_numbers)
def test_numpy_tree_finds_leaves_like_a_cumulative_sum(data, priorities):
    """Whole-numbered priorities add up exactly; of two updates of a leaf the later one counts."""
    tree, size = NumpyTree(len(priorities)), len(priorities)
    tree.update(np.arange(size), np.array(priorities, dtype=float))
    leaves = data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=10))
    for number, leaf in enumerate(leaves):
        priorities[leaf] = number
    tree.update(np.array(leaves), np.arange(len(leaves), dtype=float))
    np.testing.assert_array_equal(tree.priorities(np.arange(size)), priorities)
    assert tree.total == sum(priorities)
    if tree.total:
        shares = data.draw(st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=10))
        values = tree.total * np.array(shares)
        expected = np.searchsorted(np.cumsum(priorities), values, side="right")
        np.testing.assert_array_equal(tree.find(values), expected)


@given(priorities=whole_numbers.map(lambda numbers: [number % 8 for number in numbers]))
def test_linked_tree_finds_each_leaf_in_its_share(priorities):
    """Every whole value in [0, sum) belongs to one leaf: as many values as its priority says."""
    priorities[0] += 1
    root = linked_tree(np.array(priorities, dtype=float), np.arange(len(priorities)))
    assert root.priority == sum(priorities)
    found = [root.find(float(value)).data for value in range(sum(priorities))]
    np.testing.assert_array_equal(np.bincount(found, minlength=len(priorities)), priorities)


def test_linked_tree_carries_changes_to_the_root():
    root = linked_tree(np.array([1.0, 2.0, 3.0]), np.arange(3))
    leaf = root.find(0.5)
    leaf.change(7.0)
    assert root.priority == 13.0
    found = [root.find(float(value)).data for value in range(13)]
    assert np.bincount(found)[leaf.data] == leaf.priority


# ----------------------------------------------------------------------------- replay baselines


def test_the_notebooks_replay_and_its_like_gather_the_rows_that_they_drew(notebook):
    rows, td_errors = replay.transitions(300)
    indices, batch, weights = replay.ours(rows, td_errors, notebook)()
    np.testing.assert_array_equal(
        np.column_stack(
            [
                batch.observations,
                batch.actions,
                batch.returns,
                batch.discounts,
                batch.next_observations,
            ]
        ),
        rows[indices],
    )
    assert weights.max() == 1 and len(weights) == replay.BATCH
    indices, drawn, weights = replay.numpy_tree(rows, td_errors)()
    np.testing.assert_array_equal(drawn, rows[indices])
    assert weights.max() == 1 and len(weights) == replay.BATCH
    leaves, drawn, weights = replay.linked_nodes(rows, td_errors)()
    np.testing.assert_array_equal(drawn, np.stack([leaf.data for leaf in leaves]))
    assert weights.max() == 1 and len(weights) == replay.BATCH


def test_cpprb_gathers_the_rows_that_it_drew():
    pytest.importorskip("cpprb")
    rows, td_errors = replay.transitions(300)
    indices, sample, weights = replay.cpprb(rows, td_errors)()
    drawn = np.column_stack(
        [sample[name] for name in ("obs", "act", "ret", "discount", "next_obs")]
    )
    np.testing.assert_array_equal(drawn, rows[indices])
    assert len(weights) == replay.BATCH


@pytest.mark.parametrize("builder", [replay.tianshou_tree, replay.tianshou_buffer])
def test_tianshou_gathers_the_rows_that_it_drew(builder):
    pytest.importorskip("tianshou")
    rows, td_errors = replay.transitions(300)
    indices, drawn, weights = builder(rows, td_errors)()
    np.testing.assert_array_equal(drawn, rows[indices])
    assert len(np.unique(indices)) > 30 and len(weights) == replay.BATCH


def test_a_peer_that_fails_is_named_and_no_error():
    def absent():
        import no_such_package  # noqa: F401

    def broken():
        raise OSError("undefined symbol: x\nand more")

    calls, missing = measure.build_baselines({"a": absent, "b": broken, "c": lambda: "call"})
    assert calls == {"c": "call"}
    assert missing["a"] == "no_such_package is not installed"
    assert missing["b"] == "does not load: OSError: undefined symbol: x"


# ---------------------------------------------------------------------------------- the environment


def test_arms_score_like_the_environment_and_report_the_true_last_observation():
    """After the last decision: the next episode's first observation, and the old one's last."""
    actions = np.random.default_rng(0).uniform(-1, 1, (1001, 2, 4)).astype(np.float32)
    arms, total = Arms(2, seed=3), np.zeros(2)
    first = arms.reset()
    with ReacherEnvironment(2, seed=3) as env:
        answer = env.reset()[env.brain_names[0]]
        np.testing.assert_array_equal(first, answer.vector_observations)
        for number, action in enumerate(actions):
            observations, _, done, final = arms.step(action)
            answer = env.step(action)[env.brain_names[0]]
            total += answer.rewards
            np.testing.assert_array_equal(observations, answer.vector_observations)
            assert done == (number == 1000) == answer.local_done[0]
            assert done or observations is final
    assert np.abs(final - observations).max() > 1  # the arms hang again, the last ones did not
    assert arms.scores == [pytest.approx(total.mean(), abs=1e-4)] and len(arms.seconds) == 1


def test_arms_say_when_a_training_may_end():
    arms = Arms(1, max_episodes=2)
    arms.scores = [5.0]
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


def test_sb3_environment_hands_on_truncation_and_last_observation():
    pytest.importorskip("stable_baselines3")
    from tutorial.benchmarks.sb3_training import ArmVecEnv

    arms = Arms(2, seed=0)
    env = ArmVecEnv(arms)
    env.reset()
    arms.task.decisions = 1000  # of 1001
    observations, rewards, dones, infos = env.step(np.ones((2, 4), np.float32))
    assert dones.all() and rewards.dtype == np.float32
    for arm in range(2):
        assert infos[arm]["TimeLimit.truncated"]
        assert not np.array_equal(infos[arm]["terminal_observation"], observations[arm])
    *_, dones, infos = env.step(np.ones((2, 4), np.float32))
    assert not dones.any() and infos == [{}, {}]


# --------------------------------------------------------------------------- the CleanRL-style DDPG


def test_cleanrl_style_update_moves_towards_its_targets():
    """Repeated on one batch with a discount of 0, the critic learns the rewards."""
    torch.manual_seed(0)
    settings = cleanrl_style_ddpg.Settings(hidden=(16, 16), learning_rate=1e-2, gamma=0.0)
    learner = cleanrl_style_ddpg.Learner(3, 2, settings)
    observations, actions = torch.randn(32, 3), torch.rand(32, 2)
    rewards = actions.sum(1)

    def error():
        return (learner.qf1(observations, actions) - rewards).square().mean().item()

    before, first = error(), learner.qf1_target.fc1.weight.clone()
    batch = (observations, observations, actions, rewards, torch.zeros(32))
    learner.update(*batch)
    assert torch.equal(first, learner.qf1_target.fc1.weight)  # only every second update
    learner.update(*batch)
    expected = 0.005 * learner.qf1.fc1.weight + 0.995 * first
    torch.testing.assert_close(learner.qf1_target.fc1.weight, expected)
    for _ in range(200):
        learner.update(*batch)
    assert error() < 0.1 * before
    assert learner.actor(observations).mean() > 0.5  # larger torques were paid more


def test_cleanrl_style_memory_overwrites_the_oldest():
    memory = cleanrl_style_ddpg.UniformReplay(3, 1, 1, seed=0)
    for number in range(5):
        memory.add(*[np.full((1, 1), number)] * 3, np.array([number]), np.zeros(1))
    assert memory.held == 3 and sorted(memory.rewards) == [2, 3, 4]
    assert set(memory.sample(100)[3].tolist()) == {2, 3, 4}


# ----------------------------------------------------------------------------- timing and results


def test_candidates_take_turns_and_the_order_alternates(monkeypatch):
    monkeypatch.setattr(measure, "calls_within", lambda call, seconds: 1)
    order = []
    calls = {name: lambda name=name: order.append(name) for name in "ab"}
    seconds = measure.time_in_turn(calls, Options(quick=True, repetitions=3))
    assert "".join(order) == "abbaab"
    assert [len(values) for values in seconds.values()] == [3, 3]


def test_results_of_other_rows_stay(tmp_path):
    path = tmp_path / "results.json"
    for row, value in (("first", 1), ("second", 2), ("first", 3)):
        results = Results(path, {"machine": "x"})
        assert results.begin(row)
        Recorder(results, row).put("entry", value)
        results.finish(row)
    held = json.loads(path.read_text())
    assert held["first"]["measured"] == {"entry": 3} and held["first"]["finished"]
    assert held["second"]["measured"] == {"entry": 2}


def test_a_cut_run_goes_on_where_it_was_cut_on_the_same_machine_only(tmp_path):
    path = tmp_path / "results.json"
    results = Results(path, {"machine": "x"})
    results.begin("row")
    Recorder(results, "row").put("one", 1)  # cut here

    results = Results(path, {"machine": "x"}, keep=True)
    assert results.begin("row")
    recorder = Recorder(results, "row")
    assert recorder.has("one") and not recorder.has("two")
    recorder.put("two", 2)
    results.finish("row")
    assert not Results(path, {"machine": "x"}, keep=True).begin("row")  # nothing left

    results = Results(path, {"machine": "y"}, keep=True)
    assert results.begin("row") and not Recorder(results, "row").has("one")
    results = Results(path, {"machine": "x"})
    assert results.begin("row") and not Recorder(results, "row").has("one")


# ------------------------------------------------------------------------------------------- report

HERE = {
    "machine": {"processor": "P", "cores": "2", "memory": "4 GiB", "system": "S"},
    "versions": {"python": "3"},
}


def a_row(measured, finished=True, here=HERE):
    return {"here": here, "date": "2026-01-01", "finished": finished, "measured": measured}


def a_module(*targets):
    return types.SimpleNamespace(
        TITLE="Some row", EXPLANATION="What it is.", targets=lambda measured: list(targets)
    )


def test_the_page_marks_targets_and_names_missing_peers():
    module = a_module(
        Target("quick", "3 times", True),
        Target("small", "9 MB", False),
        Target("other", "not measured", None),
    )
    page = report.render(
        {
            "row": a_row(
                {
                    "ours": {"seconds": [1e-6, 2e-6, 6e-6]},
                    "baseline": {"missing": "baseline is not installed"},
                }
            )
        },
        {"row": module, "late": a_module()},
    )
    assert "| quick | 3 times | reached |" in page
    assert "| small | 9 MB | **not reached** |" in page
    assert "| other | not measured | not measured |" in page
    assert "| ours | 2.0 | 1.5 to 4.0 | 3 |" in page
    assert "| baseline | baseline is not installed | - | - |" in page
    assert "Not measured yet: Some row." in page and "Cut short" not in page
    assert page.count("Machine: P, 2 cores, 4 GiB, S.") == 1


def test_the_page_says_what_was_cut_quick_or_measured_elsewhere():
    modules = {"one": a_module(), "two": a_module()}
    other = {**HERE, "versions": {"python": "4"}}
    rows = {
        "one": a_row({"a": {"seconds": [1.0]}}, finished=False),
        "two": a_row({"a": {"seconds": [1.0]}}, here=other),
    }
    page = report.render(rows, modules, quick=True)
    assert page.count("Cut short") == 1 and "Quick run" in page
    assert page.count("Versions: python 3.") == 1 and page.count("Versions: python 4.") == 1
    assert "Quick run" not in report.render(rows, modules)


def marks(targets):
    return [target.reached for target in targets]


def timed(**microseconds):
    return {
        name.replace("_", " "): {"seconds": [1e-6 * value]} for name, value in microseconds.items()
    }


def test_replay_is_held_against_the_best_peer():
    measured = timed(this_notebook=10, cpprb=50, NumPy_tree=21)
    assert marks(replay.targets(measured)) == [True]
    assert "NumPy tree" in replay.targets(measured)[0].what
    assert marks(replay.targets(measured | timed(TorchRL=19))) == [False]
    absent = {name: {"missing": "why"} for name in replay.BASELINES}
    assert marks(replay.targets(timed(this_notebook=10) | absent)) == [None]


def test_environment_targets():
    seconds = {"environment": 2.0, "bare MuJoCo": 0.9, "bare MuJoCo, swinging": 1.7}
    measured = {
        f"{arms} arms, {name}": {"seconds": [value]}
        for arms in (20, 1000)
        for name, value in seconds.items()
    }
    assert marks(environment_speed.targets(measured)) == [True, True, False, True]


def test_solving_targets_need_every_seed():
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

    measured = {
        f"{preset}, seed {seed}": run(seconds)
        for preset, values in (("fast", (50.0, 59.0, 70.0)), ("default", (60.0, 100.0, 61.0)))
        for seed, seconds in enumerate(values)
    }
    assert marks(solving.targets(measured)) == [True] * 5  # 59 s, 61 s, floors 20 and 30 s
    measured["default, seed 0"] = run(200.0)
    assert marks(solving.targets(measured)) == [True, False, True, True, True]
    measured["fast, seed 1"] = run(None, first=None, solved=None)
    assert marks(solving.targets(measured)) == [False] * 5
    assert (
        "| fast, seed 1 | - | - | 38.00 | 5.0 | - | 20.0 | 30.0 | 99.0 |"
        in solving.tables(measured)[0]
    )
    assert marks(solving.targets({})) == [None] * 5


def test_peers_are_compared_by_their_median_seconds():
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
    measured = records("this notebook, fast", 8.0, 10.0, 12.0)
    assert marks(baseline_training.targets(measured)) == [None]  # no baseline was tried
    measured |= records(baselines[0], 60.0, None, 45.0) | records(baselines[1], None, None, 20.0)
    measured |= {f"{baselines[2]}/0": {"missing": "stable_baselines3 is not installed"}}
    assert marks(baseline_training.targets(measured)) == [True]  # 10 s against a median of 60 s
    assert marks(baseline_training.targets(measured | records(baselines[0], 15.0, 19.0, 19.0))) == [
        False
    ]
    table = baseline_training.tables(measured)[0]
    assert f"| {baselines[0]} | 60.0, not within, 45.0 | 60.0 | 1,001, not within, 1,001 |" in table
    assert f"| {baselines[1]} | not within, not within, 20.0 | not within |" in table
    assert "stable_baselines3 is not installed" in table


def test_a_failed_peer_says_why():
    assert baseline_training.failure(-15, "") == "ended by signal 15"
    absent = "Traceback\nModuleNotFoundError: No module named 'gone'\n"
    assert baseline_training.failure(1, absent) == "gone is not installed"
    assert baseline_training.failure(1, "Traceback\nValueError: no") == "failed: ValueError: no"


def test_scaling_targets_and_figure(tmp_path):
    measured = {
        f"{n} transitions": {"seconds": [1e-6 * value], "rows MB": 1.0, "tree MB": 1.0}
        for n, value in zip(scaling.TRANSITIONS, (10, 12, 14, 17), strict=True)
    }
    for arms, value in zip(scaling.ARMS, (1, 2, 10, 190), strict=True):
        measured |= {
            f"{arms} arms, environment": {"seconds": [value]},
            f"{arms} arms, environment and agent": {"seconds": [value * arms**0.1]},
            f"{arms} arms, memory": {"MB": 1.0},
        }
    assert marks(scaling.targets(measured)) == [True, True, False]
    scaling.draw(measured, tmp_path / "scaling.png")
    assert (tmp_path / "scaling.png").stat().st_size > 5_000
    assert len(scaling.tables(measured)) == 2


def test_an_unknown_row_is_an_error_that_names_the_known_ones(monkeypatch, capsys):
    command = importlib.import_module("tutorial.benchmarks.__main__")
    monkeypatch.setattr("sys.argv", ["benchmarks", "--only", "replay,nothing"])
    with pytest.raises(SystemExit):
        command.arguments()
    assert "unknown row 'nothing'; known are solve, " in capsys.readouterr().err
