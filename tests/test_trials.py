"""The runner of planned comparisons, and its kept tables."""

import csv
import dataclasses
import json

import gymnasium
import numpy as np
import pytest

from research import trials
from research.report import statistics
from research.report import trials as report
from research.trials import PLANS, Trial
from tutorial.paths import CHECKPOINTS, NOTEBOOK, PROJECT

SHORT = Trial(
    "test",
    "short",
    5,
    overrides={"actor_hidden": [8], "critic_hidden": [8], "gradient_steps": 1},
    arms=1,
    episodes=2,
    evaluate_every=2,
)


@pytest.mark.parametrize("plan", PLANS)
def test_a_plan_names_each_trial_once_and_allowed_settings(notebook, plan):
    listed = PLANS[plan]()
    assert len({(trial.variant, trial.seed) for trial in listed}) == len(listed)
    assert {trial.plan for trial in listed} == {plan}
    for trial in {trial.variant: trial for trial in listed}.values():
        notebook.make_hyperparameters(trial.preset, dict(trial.overrides))
        order = json.loads(json.dumps(dataclasses.asdict(trial)))  # as a process gets it
        assert Trial(**order) == trial


def test_a_trial_gives_a_line_for_each_episode_and_stores_it_in_order(tmp_path):
    files = trials.train(SHORT)
    lines = list(csv.reader(files["short.csv"].splitlines()))
    assert [line[:2] for line in lines] == [["5", "1"], ["5", "2"]]
    assert [bool(line[3]) for line in lines] == [False, True]  # an evaluation every second episode
    assert int(lines[0][5]) < int(lines[1][5])  # gradient steps
    earlier = dataclasses.replace(SHORT, seed=4)
    assert not SHORT.done(tmp_path)
    SHORT.store({"short.csv": files["short.csv"].encode()}, tmp_path)
    assert SHORT.done(tmp_path) and not earlier.done(tmp_path)
    moved = files["short.csv"].replace("5,1", "4,1", 1).replace("\n5,2", "\n4,2", 1)
    earlier.store({"short.csv": moved.encode()}, tmp_path)
    variant = report.read_variant(tmp_path / "short.csv")
    assert variant["seed"].tolist() == [[4, 4], [5, 5]]
    assert variant["episode"].tolist() == [[1, 2], [1, 2]]


def test_a_trial_of_another_environment():
    """The same lumps as the arms', on an environment with one torque."""
    trial = dataclasses.replace(
        SHORT,
        location="gymnasium:Pendulum-v1",
        reward_every=20,
        overrides=SHORT.overrides | trials.only_gaussian(0.2) | {"learning_starts": 64},
    )
    files = trials.train(trial)
    lines = list(csv.reader(files["short.csv"].splitlines()))
    assert all(-2000 < float(line[2]) < 0 for line in lines) and float(lines[1][3]) < 0


def test_the_sparse_reacher_pays_within_the_radius_only():
    pytest.importorskip("imageio", reason="Gymnasium's own MuJoCo environments need imageio")
    environment = gymnasium.make("research.sparse:SparseReacher-v0")
    environment.reset(seed=0)
    arm = environment.unwrapped
    for shift, expected in ((0.01, 1), (0.03, 0)):
        at = arm.get_body_com("fingertip")[:2] + [shift, 0]
        arm.set_state(np.array([*arm.data.qpos[:2], *at]), np.zeros(4))
        observation, reward, *_ = environment.step(np.zeros(2, np.float32))
        assert np.hypot(*observation[-2:]) == pytest.approx(shift, abs=2e-3)
        assert reward == expected
    for _ in range(48):
        *_, truncated, _ = environment.step(np.zeros(2, np.float32))
    assert truncated


def test_a_trial_that_was_stopped_is_not_stored(notebook, monkeypatch):
    """Ctrl-C ends a training in an orderly way, and what it has is not what was planned."""
    played, run_episode = [], notebook.run_episode

    def stopped(*arguments):
        if played:
            raise KeyboardInterrupt
        played.append(run_episode(*arguments))
        return played[-1]

    monkeypatch.setattr(notebook, "run_episode", stopped)
    with pytest.raises(KeyboardInterrupt, match="after 1 of 2 episodes"):
        trials.train(SHORT)


def test_lost_arms_by_hand():
    """Arm 0 holds its goal, arm 1 loses it at decision 60, and arm 2 never reaches it."""
    rewards = np.full((1001, 3), 0.04)
    rewards[60:200, 1] = 0
    rewards[:, 2] = 0
    observations = np.zeros((1001, 3, 33), np.float32)
    observations[:, :, 28] = 8  # goals at 0 degrees
    observations[60, 1, [26, 28]] = 8, 0  # at 90
    lines = trials.lost_arms(SHORT, 20, observations, rewards)
    assert [line[3] for line in lines] == [1, 2]
    assert lines[0][4:7] == ["34.44", 60, "90"] and lines[1][4:7] == ["0.00", "", "0"]


@pytest.mark.parametrize("plan", [plan for plan in PLANS if (CHECKPOINTS / plan).is_dir()])
def test_the_kept_tables_are_those_of_the_plan(plan):
    """Whole trainings only, and none that the plan does not have."""
    expected = {(trial.variant, trial.seed): trial.episodes for trial in PLANS[plan]()}
    for name, variant in report.read_plan(plan).items():
        for seed, episodes in zip(variant["seed"], variant["episode"], strict=True):
            assert set(seed) == {seed[0]}
            assert episodes.tolist() == list(range(1, expected[name, int(seed[0])] + 1))


@pytest.mark.parametrize(
    "plan, page",
    [
        ("mirrors", "mirrors"),
        ("mirrors_tuned", "mirrors"),
        ("low_arms", "mirrors"),
        ("tuning_fast", "mirrors"),
        ("pilot", "questions"),
        ("leave_one_out", "questions"),
        ("more_noise", "questions"),
        ("tuning_alone", "questions"),
        ("three", "questions"),
        ("rates", "questions"),
        ("environments", "questions"),
        ("one_arm", "questions"),
        ("batches", "questions"),
    ],
)
def test_a_page_has_the_tables_of_the_runs(plan, page):
    page = (PROJECT / "doc" / f"{page}.md").read_text()
    for line in report.REPORTS[plan]().splitlines():
        assert line in page


# ------------------------------------------------------------------------- doc/questions.md


def test_the_pilot_decided_the_tasks():
    """By the rule of the page: the last evaluation closest to half of the largest score."""
    lines = [line.split("|") for line in report.pilot_report().splitlines()[2:]]
    nearest = {}
    for _, task, tried, *_, distance, _ in lines:
        nearest.setdefault(task.strip(), []).append((float(distance), tried.split()[0]))
    decided = {task: min(found)[1] for task, found in nearest.items()}
    used = trials.TASKS
    assert decided == {
        "delayed rewards": str(used["delayed_rewards"]["reward_every"]),
        "small goals": str(used["small_goals"]["goal_size"]),
        "one arm": str(used["one_arm"]["episodes"]),
    }


def test_the_contrast_of_three_factors_by_hand():
    """n = 3 adds 0.1 everywhere, but where both others are on, where it takes 0.2."""
    values = np.zeros((2, 2, 2, 4)) + np.arange(4)  # of four seeds
    values[:, 1] += 5  # what another factor adds alone changes nothing
    values[1] += 0.1
    values[1, 1, 1] -= 0.3
    np.testing.assert_allclose(report.three_way(values), [-0.3] * 4)


def test_a_rate_is_chosen_on_the_other_half_of_the_seeds():
    values = np.array([[1.0, 2.0, 9.0, 9.0], [3.0, 4.0, 5.0, 6.0]])
    np.testing.assert_array_equal(report.at_its_best_rate(values), [1, 2, 5, 6])


def test_verdicts():
    assert report.verdict(0.001, 0.01, 0.5) == "shown"
    assert report.verdict(0.001, 0.01, 0.01) == "shown, alike"
    assert report.verdict(0.03, 0.1, 0.5) == report.verdict(0.03, 0.1) == "suggested"
    assert report.verdict(0.3, 1.0, 0.01) == "alike" and report.verdict(0.3, 1.0) == "not shown"


@pytest.mark.parametrize(
    "plan, tests", [("leave_one_out", 5), ("more_noise", 4), ("rates", 4), ("environments", 12)]
)
def test_a_report_has_the_planned_tests_of_planted_effects(monkeypatch, tmp_path, plan, tests):
    """Odd variants score a point more than even ones, and chance a tenth of that."""
    monkeypatch.setattr(report, "CHECKPOINTS", tmp_path)
    monkeypatch.setattr(statistics, "permutation_of_groups", lambda one, other: 0.001)  # is slow
    listed, chance = PLANS[plan](), np.random.default_rng(0)
    names = list(dict.fromkeys(trial.variant for trial in listed))
    (tmp_path / plan).mkdir()
    for number, name in enumerate(names):
        lines = [
            [trial.seed, episode, score, score, score, min(episode, 20), episode]
            for trial in listed
            if trial.variant == name
            for score in [20 + number % 2 + chance.normal(0, 0.1)]
            for episode in range(1, trial.episodes + 1)
        ]
        path = tmp_path / plan / f"{name}.csv"
        path.write_text(trials.as_csv([trials.COLUMNS, *lines]))
    compared = report.REPORTS[plan]().split("| comparison |")[1].splitlines()[2:]
    assert len(compared) == tests
    if plan == "leave_one_out":  # the figure says the same
        told = [text.get_text().split()[0] for text in report.draw_left_out().axes[0].texts]
        assert told == [line.split("|")[2].split()[0] for line in compared]
    for line in compared:
        _, difference, p, corrected, _ = line.strip("|").split("|")
        scale = report.MAX_SCORE if plan in ("more_noise", "rates") else 1
        assert min(abs(float(difference.split()[0]) * scale - sure) for sure in (-1, 0, 1)) < 0.3
        assert float(p) == 0.001 and float(corrected) == pytest.approx(0.001 * tests, rel=0.5)


def test_the_report_of_question_3_tests_one_contrast(monkeypatch, tmp_path):
    monkeypatch.setattr(report, "CHECKPOINTS", tmp_path)
    chance = np.random.default_rng(0)
    (tmp_path / "three").mkdir()
    for name in {trial.variant: trial for trial in PLANS["three"]()}:
        special = name in ("n_3_prioritized_noisy", "clock_n_3_prioritized_noisy")
        lines = [
            [seed, episode, score, score, score, episode, episode]
            for seed in range(8500, 8516)
            for score in [20 - 8 * special + chance.normal(0, 0.1)]
            for episode in range(1, 25)
        ]
        path = tmp_path / "three" / f"{name}.csv"
        path.write_text(trials.as_csv([trials.COLUMNS, *lines]))
    found = [line for line in report.three_report().splitlines() if "three-way" in line]
    assert len(found) == 2
    for line in found:  # 8 points of 40.04, and every seed has that sign
        _, _, _, effect, p, _ = line.split("|")
        assert float(effect.split()[0]) == pytest.approx(-8 / report.MAX_SCORE, abs=0.01)
        assert float(p) == pytest.approx(2 / 2**16, rel=0.05)


# -------------------------------------------------------------- section 8.2 of the notebook


def test_the_notebook_says_how_much_critics_promise():
    """The means of checkpoints/overestimation.csv after thirty episodes."""
    with open(CHECKPOINTS / "overestimation.csv", newline="") as file:
        lines = [line for line in csv.DictReader(file) if line["episode"] == "30"]
    means = {
        variant: np.mean(
            [float(line["value_minus_return"]) for line in lines if line["variant"] == variant]
        )
        for variant in ("default", "td3")
    }
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert "In three runs of thirty episodes" in text
    assert f"`default` are on average {means['default']:.1f} above the returns" in text
    assert f"in three runs of TD3 they are {-means['td3']:.1f} below" in text
