"""The study of doc/study.md: its tasks, the tables that it keeps, and what is made of them."""

from __future__ import annotations

import csv
import dataclasses
import itertools
import json
import math
import re

import matplotlib.pyplot as plt
import numpy as np
import pytest

from reacher.gymnasium.delayed_rewards import UnityDelayedRewards
from reacher.interface import BrainInfo
from tutorial.experiments import study
from tutorial.experiments.study import COLUMNS, StudyRun
from tutorial.experiments.training import as_csv, read_lines
from tutorial.paths import DOC
from tutorial.report import study as report

ALL_OFF = (1, "uniform", False)


class Paying:
    """Two arms that are paid 1, 2, 3, ... and ten times that, for so many decisions."""

    def __init__(self, decisions):
        self.decisions, self.now = decisions, 0

    def reset(self):
        self.now = 0

    def step(self):
        self.now += 1
        done = [self.now == self.decisions] * 2
        return {
            "arms": BrainInfo(
                np.zeros((2, 33)), [self.now, 10 * self.now], done, done, [0, 1], np.zeros((2, 4))
            )
        }


def rewards_of(environment, decisions):
    return np.array([environment.step()["arms"].rewards for _ in range(decisions)])


def test_delayed_rewards_are_held_back_and_all_paid():
    """7 decisions, paid every third: 1+2+3, 4+5+6, and what is left at the end."""
    environment = UnityDelayedRewards(Paying(7), every=3)
    environment.reset()
    paid = rewards_of(environment, 7)
    assert paid[:, 0].tolist() == [0, 0, 6, 0, 0, 15, 7]
    np.testing.assert_array_equal(paid[:, 1], 10 * paid[:, 0])


def test_delayed_rewards_begin_anew_with_an_episode():
    environment = UnityDelayedRewards(Paying(4), every=3)
    environment.reset()
    rewards_of(environment, 2)  # cut in the middle: nothing of it may be paid later
    environment.reset()
    for _ in range(2):  # two episodes, the second without a reset by hand
        assert rewards_of(environment, 4)[:, 0].tolist() == [0, 0, 6, 4]
        environment._environment.reset()


def test_the_study_has_the_runs_of_its_plan():
    runs = study.runs_of_the_study()
    assert len(runs) == len(set(runs)) == 4 * 2**3 * 12
    seeds = {run.seed for run in runs}
    assert len(seeds) == 12
    for table in ("pilot", "sweep"):
        assert not seeds & {
            int(line[4]) for line in read_lines(study.RESULTS / f"{table}.csv", COLUMNS)
        }
    assert [run.seed for run in runs] == sorted(run.seed for run in runs)  # whole seeds first


def test_a_training_gives_a_table_and_nothing_else(capfdbinary, monkeypatch):
    """What a training prints must not get between its lines."""
    monkeypatch.setitem(study.TASKS, "one_arm", study.Task(arms=1, episodes=2, every=1))
    run = StudyRun("one_arm", ALL_OFF, 7)
    assert study.main(["--train", json.dumps(dataclasses.asdict(run))]) == 0
    tables = json.loads(capfdbinary.readouterr().out)
    assert list(tables) == ["one_arm.csv"]
    lines = list(csv.reader(tables["one_arm.csv"].splitlines()))
    assert [tuple(line[:5]) for line in lines] == [run.key] * 2
    assert [line[5] for line in lines] == ["1", "2"] and all(
        len(line) == len(COLUMNS) for line in lines
    )
    assert [int(line[8]) for line in lines] == [1001, 2002]


def lines_of(run, scores):
    """The content of a run's table, from scores of every second episode."""
    return as_csv(
        [
            [*run.key, 2 * k, f"{score:.4f}", "0", 0, 0, "1.0"]
            for k, score in enumerate(scores, start=1)
        ]
    ).encode()


def test_a_table_is_stored_in_order_and_says_what_is_done(tmp_path):
    runs = [StudyRun("delayed_rewards", ALL_OFF, seed) for seed in (1002, 1000)]
    for run in runs:
        assert not run.done(tmp_path)
        run.store({run.table_name: lines_of(run, [1.0, 2.0])}, tmp_path)
        assert run.done(tmp_path)
    lines = read_lines(tmp_path / "delayed_rewards.csv", COLUMNS)
    assert [line[4:6] for line in lines] == [
        ["1000", "2"],
        ["1000", "4"],
        ["1002", "2"],
        ["1002", "4"],
    ]
    (tmp_path / "delayed_rewards.csv").write_text("episode,score\n")
    with pytest.raises(ValueError, match="does not begin with the columns setting,n_step"):
        read_lines(tmp_path / "delayed_rewards.csv", COLUMNS)


@pytest.mark.parametrize("table", ["standard", "small_goals", "one_arm", "pilot", "sweep"])
def test_a_table_that_is_stored_again_stays_as_it_is(tmp_path, table):
    """The order of lines, of which the committed tables hold every kind."""
    content = (study.RESULTS / f"{table}.csv").read_bytes()
    _head, *lines = content.decode().splitlines()
    run = study.runs_of_the_study()[0]
    for part in (lines[1::2], lines[::2]):
        run.store({f"{table}.csv": "\n".join(part).encode()}, tmp_path)
    assert (tmp_path / f"{table}.csv").read_bytes() == content


def test_the_list_of_the_kept_study_is_printed(capsys):
    # The folder holds a table with other columns, too: diagnostics.csv.
    assert study.main(["--list"]) == 0
    number = len(study.SEEDS) * len(study.TASKS) * math.prod(map(len, study.LEVELS.values()))
    assert f"{number} of {number} runs done" in capsys.readouterr().out


def test_measures_by_hand():
    found = report.measures(np.array([2, 4, 6, 8]), np.array([0.0, 10.01, 20.02, 40.04]))
    assert found == pytest.approx({"area": 70.07 / 4 / 40.04, "end": 1.0, "half": 6})
    never = report.measures(np.array([5, 10]), np.array([0.0, 20.0]))
    assert never["half"] == 15


def store_study(folder, effect, seeds=12, spread=0.5):
    """Tables of one task in which NoisyNet adds so many points, and nothing else anything."""
    generator = np.random.default_rng(0)
    for cell in itertools.product(*study.LEVELS.values()):
        for seed in range(seeds):
            run = StudyRun("standard", cell, seed)
            score = 15 + effect * cell[2] + spread * generator.standard_normal()
            run.store({run.table_name: lines_of(run, [score, score])}, folder)


def test_an_effect_is_shown_and_what_is_none_is_small(tmp_path):
    store_study(tmp_path, effect=4.0)
    found = report.results(tmp_path)["standard"]
    noisy = found["noisy_layers"]
    assert noisy["verdict"] == "shown" and noisy["p_holm"] < 0.05
    assert noisy["low"] < 4 / 40.04 < noisy["high"] and noisy["improvement"] > 0.9
    for name in ("n_step", "replay", "n_step x replay"):
        assert found[name]["verdict"] == "shown to be small"
        assert abs(found[name]["effect"]) < report.MARGIN
    assert len(report.effects_table({"standard": found}).splitlines()) == 2 + 6


def test_noise_alone_shows_nothing(tmp_path):
    store_study(tmp_path, effect=0.0, spread=8.0)
    verdicts = {effect["verdict"] for effect in report.results(tmp_path)["standard"].values()}
    assert "shown" not in verdicts


def test_only_whole_seeds_count(tmp_path):
    store_study(tmp_path, effect=1.0, seeds=3)
    run = StudyRun("standard", ALL_OFF, 99)
    run.store({run.table_name: lines_of(run, [40.0, 40.0])}, tmp_path)
    assert report.table(tmp_path / "standard.csv")["area"].shape == (2, 2, 2, 3)


def test_the_kept_tables_are_those_of_the_list():
    """Every line belongs to a run of the study, and every run has all its evaluations."""
    keys = {(run.task, run.key) for run in study.runs_of_the_study()}
    for name, task in study.TASKS.items():
        found: dict = {}
        for line in read_lines(study.RESULTS / f"{name}.csv", COLUMNS):
            found.setdefault((name, tuple(line[:5])), []).append(int(line[5]))
        assert found.keys() == keys & found.keys()
        for episodes in found.values():
            assert episodes == list(range(task.every, task.episodes + 1, task.every))


def areas_of(**effects):
    """Areas (2, 2, 2, 3 seeds) of 0.1 plus effects of factors, by the letters n, p and N."""
    area = np.full((2, 2, 2, 3), 0.1) + np.array([-0.01, 0.0, 0.01])
    for letters, effect in effects.items():
        on = tuple(1 if letter in letters else slice(None) for letter in "npN")
        area[on] += effect
    return area


@pytest.mark.filterwarnings("ignore:Precision loss")  # all seeds have the same effect
def test_simple_effects_by_hand():
    """n adds 0.2, and 0.3 less where both others are on."""
    effects = report.simple_effects(areas_of(n=0.2, npN=-0.3))
    of_n = {on: effect["effect"] for on, effect in effects["n_step"].items()}
    others = "replay", "noisy_layers"
    assert of_n == pytest.approx(
        {(): 0.2, others[:1]: 0.2, others[1:]: 0.2, others: -0.1}, abs=1e-12
    )
    of_replay = {on: effect["effect"] for on, effect in effects["replay"].items()}
    assert of_replay == pytest.approx(
        {(): 0, ("n_step",): 0, ("noisy_layers",): 0, ("n_step", "noisy_layers"): -0.3}, abs=1e-12
    )


@pytest.mark.filterwarnings("ignore:Precision loss")  # all seeds have the same effect
def test_the_three_way_interaction_by_hand(tmp_path):
    """Also where all other effects are there, and larger."""
    area = areas_of(n=0.1, p=0.2, N=0.05, np=0.1, pN=-0.1, npN=-0.3)
    for place in np.ndindex(2, 2, 2):
        cell = tuple(levels[k] for levels, k in zip(study.LEVELS.values(), place, strict=True))
        for seed, share in enumerate(area[place]):
            run = StudyRun("standard", cell, seed)
            run.store({run.table_name: lines_of(run, [40.04 * share] * 2)}, tmp_path)
    line = report.three_way_table(tmp_path).splitlines()[-1]
    assert line.startswith("| standard task | -0.300 (-0.300 to -0.300) |")


def test_the_figure_has_every_run():
    figure = report.draw_cells(study.RESULTS)
    points = [
        line.get_ydata() for axes in figure.axes for line in axes.lines if line.get_marker() == "o"
    ]
    areas = [values["area"] for values in report.tables(study.RESULTS).values()]
    np.testing.assert_allclose(np.ravel(points), np.ravel(areas))
    below = [axes for axes in figure.axes if axes.get_ylim()[1] < 1]
    assert len(below) == len(study.TASKS) and np.max(areas) < below[0].get_ylim()[1]
    plt.close(figure)


def test_the_report_is_printed_and_drawn(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(study, "DOC", tmp_path)
    monkeypatch.setattr(report, "results_text", lambda folder: "the tables")  # tested below
    assert study.main(["--report"]) == 0 and capsys.readouterr().out == "the tables\n"
    picture = (tmp_path / "study.png").read_bytes()
    assert picture.startswith(b"\x89PNG") and len(picture) < 200_000


def test_the_page_says_what_the_tables_say():
    """Every line that `--report` prints is in doc/study.md, and its other numbers are of these."""
    page = (DOC / "study.md").read_text()
    printed = report.results_text(study.RESULTS)
    lines = printed.splitlines()
    assert len(lines) > 100 and set(filter(None, lines)) <= set(page.splitlines())
    text = page.split("## References")[0]
    numbers = re.findall(r"[+-]?\b\d\.\d{3,}(?: \(.*? to [^ ]*?\d(?=[;)]))?|\d+ of \d+", text)
    assert len(numbers) > 50 and [number for number in numbers if number not in printed] == []
