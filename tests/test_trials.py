"""The runner of planned comparisons, and its kept tables."""

import csv
import dataclasses
import json

import numpy as np
import pytest

from tutorial.experiments import trials
from tutorial.experiments.trials import PLANS, Trial
from tutorial.paths import CHECKPOINTS, PROJECT
from tutorial.report import trials as report

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


@pytest.mark.parametrize("plan", ["mirrors", "mirrors_tuned"])
def test_the_page_of_the_mirrors_has_the_tables_of_the_runs(plan):
    page = (PROJECT / "doc" / "mirrors.md").read_text()
    for line in report.REPORTS[plan]().splitlines():
        assert line in page
