"""The study of doc/study.md: its tasks, the tables that it keeps, and what is made of them."""

from __future__ import annotations

import re

import matplotlib.pyplot as plt
import numpy as np
import pytest

from reacher.delayed_rewards import DelayedRewards
from reacher.environment import BrainInfo
from research.report import study as report
from research.report import trials
from research.training import as_csv
from tutorial.paths import DOC

COLUMNS = "setting n_step replay noisy_layers seed episode score training_score decisions".split()
COLUMNS += ["num_updates", "seconds"]


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
    environment = DelayedRewards(Paying(7), every=3)
    environment.reset()
    paid = rewards_of(environment, 7)
    assert paid[:, 0].tolist() == [0, 0, 6, 0, 0, 15, 7]
    np.testing.assert_array_equal(paid[:, 1], 10 * paid[:, 0])


def test_delayed_rewards_begin_anew_with_an_episode():
    environment = DelayedRewards(Paying(4), every=3)
    environment.reset()
    rewards_of(environment, 2)  # cut in the middle: nothing of it may be paid later
    environment.reset()
    for _ in range(2):  # two episodes, the second without a reset by hand
        assert rewards_of(environment, 4)[:, 0].tolist() == [0, 0, 6, 4]
        environment._environment.reset()


def test_measures_by_hand():
    found = report.measures(np.array([2, 4, 6, 8]), np.array([0.0, 10.01, 20.02, 40.04]))
    assert found == pytest.approx({"area": 70.07 / 4 / 40.04, "end": 1.0, "half": 6})
    never = report.measures(np.array([5, 10]), np.array([0.0, 20.0]))
    assert never["half"] == 15


def store(folder, scores):
    """A table of the standard task, with the same score in two evaluations of (cell, seed)."""
    lines = [
        ["", *cell, seed, episode, score, 0, 0, 0, 1.0]
        for (cell, seed), score in scores.items()
        for episode in (2, 4)
    ]
    (folder / "standard.csv").write_text(as_csv([COLUMNS, *lines]))


def study_with(effect, seeds=12, spread=0.5):
    """Scores of a study in which NoisyNet adds so many points, and nothing else anything."""
    generator = np.random.default_rng(0)
    return {
        (cell, seed): 15 + effect * (cell[2] == "True") + spread * generator.standard_normal()
        for cell in report.CELLS
        for seed in range(seeds)
    }


def test_an_effect_is_shown_and_what_is_none_is_small(tmp_path):
    store(tmp_path, study_with(effect=4.0))
    found = report.results(tmp_path)["standard"]
    noisy = found["noisy_layers"]
    assert noisy["verdict"] == "shown" and noisy["p_holm"] < 0.05
    assert noisy["low"] < 4 / 40.04 < noisy["high"] and noisy["improvement"] > 0.9
    for name in ("n_step", "replay", "n_step x replay"):
        assert found[name]["verdict"] == "shown to be small"
        assert abs(found[name]["effect"]) < report.MARGIN
    assert len(report.effects_table({"standard": found}).splitlines()) == 2 + 6


def test_noise_alone_shows_nothing(tmp_path):
    store(tmp_path, study_with(effect=0.0, spread=8.0))
    verdicts = {effect["verdict"] for effect in report.results(tmp_path)["standard"].values()}
    assert "shown" not in verdicts


def test_only_whole_seeds_count(tmp_path):
    store(tmp_path, study_with(effect=1.0, seeds=3) | {(report.CELLS[0], 99): 40.0})
    assert report.table(tmp_path / "standard.csv")["area"].shape == (2, 2, 2, 3)


def test_the_kept_tables_are_whole():
    """Twelve seeds of each of the eight cells, every run with all its evaluations."""
    for task in report.TASKS:
        cells = report.curves(report.RESULTS / f"{task}.csv")
        assert sorted(cells) == sorted(report.CELLS)
        seeds = {tuple(sorted(runs)) for runs in cells.values()}
        assert seeds == {tuple(range(1_000, 1_012))}
        episodes = {tuple(run[0]) for runs in cells.values() for run in runs.values()}
        assert len(episodes) == 1 and len(*episodes) >= 8


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
    shares = zip(report.CELLS, area.reshape(8, -1), strict=True)
    scores = {
        (cell, seed): 40.04 * share
        for cell, of_cell in shares
        for seed, share in enumerate(of_cell)
    }
    store(tmp_path, scores)
    line = report.three_way_table(tmp_path).splitlines()[-1]
    assert line.startswith("| standard task | -0.300 (-0.300 to -0.300) |")


def test_the_figure_has_every_run():
    figure = report.draw_cells(report.RESULTS)
    points = [
        line.get_ydata() for axes in figure.axes for line in axes.lines if line.get_marker() == "o"
    ]
    areas = [values["area"] for values in report.tables(report.RESULTS).values()]
    np.testing.assert_allclose(np.ravel(points), np.ravel(areas))
    below = [axes for axes in figure.axes if axes.get_ylim()[1] < 1]
    assert len(below) == len(report.TASKS) and np.max(areas) < below[0].get_ylim()[1]
    plt.close(figure)


def test_the_report_is_printed_and_drawn(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(report, "DOC", tmp_path)
    monkeypatch.setattr(report, "results_text", lambda folder: "the tables")  # tested below
    report.main()
    assert capsys.readouterr().out == "the tables\n"
    picture = (tmp_path / "study.png").read_bytes()
    assert picture.startswith(b"\x89PNG") and len(picture) < 200_000


def test_the_page_says_what_the_tables_say():
    """Every line of `make study` is there or in the appendix.

    All other numbers of the page are of these tables, too, or of the later runs at each agent's
    best learning rate, which section 3.3 reports.
    """
    page, appendix = ((DOC / name).read_text() for name in ("study.md", "study_appendix.md"))
    printed = report.results_text(report.RESULTS)
    lines = printed.splitlines()
    assert len(lines) > 100 and set(filter(None, lines)) <= set((page + appendix).splitlines())
    text = page.split("## References")[0]
    numbers = re.findall(r"[+-]?\b\d\.\d{3,}(?: \(.*? to [^ ]*?\d(?=[;)]))?|\d+ of \d+", text)
    known = printed + trials.rates_report()
    assert len(numbers) > 50 and [number for number in numbers if number not in known] == []
