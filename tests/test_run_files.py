"""Files that outlive a new setting: what an earlier or a newer version wrote, read by this one."""

from __future__ import annotations

import json
import warnings

import pytest
from pydantic import create_model

import small_training
from small_training import assert_same, left_by
from tutorial import protocols, run_files, settings
from tutorial.environments import open_environment
from tutorial.paths import CHECKPOINTS
from tutorial.run_file import REMOVED, RENAMED
from tutorial.run_files import (
    load_about,
    load_hyperparameters,
    run_folder,
    save_hyperparameters,
)

KEPT = sorted(path.parent for path in CHECKPOINTS.glob("**/hyperparameters.json"))


def recorded_in(folder):
    """The settings that a file names, by their names of today."""
    recorded = json.loads((folder / "hyperparameters.json").read_text())["hyperparameters"]
    return {RENAMED.get(name, name): value for name, value in recorded.items()}


def others_in(folder):
    """Those that are no more, if their value is another than what the notebook does now."""
    return {k: v for k, v in recorded_in(folder).items() if k in REMOVED and v != REMOVED[k]}


READ = [folder for folder in KEPT if not others_in(folder)]


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch):
    monkeypatch.setattr(run_files, "WARNED", set())


@pytest.fixture
def later(notebook, monkeypatch):
    """The notebook as it may be later: `momentum` was added, and means 0 where it is not named."""
    model = create_model(
        "Hyperparameters",
        __base__=notebook.Hyperparameters,
        momentum=(float, settings.setting(0.9, "later", before=0.0, ge=0)),
    )
    monkeypatch.setattr(notebook, "Hyperparameters", model)
    return notebook


def without(model, *names):
    """The model as it may be when these fields are gone."""
    return {name: field for name, field in model.model_fields.items() if name not in names}


def test_all_kept_runs_are_read_or_refused_with_the_settings_that_are_no_more(notebook):
    fields, refused = notebook.Hyperparameters.model_fields, set()
    for folder in KEPT:
        if folder in READ:
            notebook.Hyperparameters(**load_hyperparameters(folder, fields))
        else:
            with pytest.raises(ValueError, match="an earlier version") as error:
                load_hyperparameters(folder, fields)
            for name, value in others_in(folder).items():
                assert f"{name} = {value!r}" in str(error.value)
            refused.add(folder.relative_to(CHECKPOINTS).parts[0])
    references = {"deeprl", "reacher_arm", "reacher_arm_changed", "walkthrough"}
    assert READ and references <= refused <= references | {"pendulum"}


def test_a_setting_that_is_no_more_is_read_at_the_value_of_today_and_else_refused(
    notebook, tmp_path
):
    """Where a run is shown, and where it goes on."""
    fields = notebook.Hyperparameters.model_fields
    settings = notebook.make_hyperparameters("default", {"n_step": 5})
    save_hyperparameters(tmp_path, settings.model_dump() | REMOVED, seed=0)
    assert notebook.Hyperparameters(**load_hyperparameters(tmp_path, fields)) == settings
    run_files.require_same_run(tmp_path, settings, seed=0)
    for name, value in {"weight_decay": 1e-4, "action_noise": "ou", "replay_lifetime": 7}.items():
        save_hyperparameters(tmp_path, settings.model_dump() | REMOVED | {name: value}, seed=0)
        told = f"the settings {name} = {value!r}: get that version, or edit the notebook's cells"
        with pytest.raises(ValueError, match=told):
            load_hyperparameters(tmp_path, fields)
        with pytest.raises(ValueError, match=told):
            run_files.require_same_run(tmp_path, settings, seed=0)


def test_all_kept_runs_are_read_after_a_field_was_added(later, capsys):
    """With what was before, and not with the default of today; said in one line."""
    for folder in READ:
        fields = later.Hyperparameters.model_fields
        settings = later.Hyperparameters(**load_hyperparameters(folder, fields))
        assert settings.momentum == 0.0
        recorded = {k: v for k, v in recorded_in(folder).items() if k not in REMOVED}
        assert json.loads(settings.model_dump_json(include=recorded.keys())) == recorded
    first, *_ = capsys.readouterr().out.splitlines()
    assert str(READ[0]) in first and "momentum: read with" in first and "momentum = 0.0" in first


def test_what_has_the_field_is_read_as_it_is(later, tmp_path, capsys):
    settings = later.make_hyperparameters("default", {"momentum": 0.5})
    save_hyperparameters(tmp_path, settings.model_dump())
    fields = later.Hyperparameters.model_fields
    assert later.Hyperparameters(**load_hyperparameters(tmp_path, fields)) == settings
    assert capsys.readouterr().out == ""


def test_an_unknown_field_is_of_a_newer_version(notebook, later, tmp_path):
    save_hyperparameters(tmp_path, later.make_hyperparameters("default", {}).model_dump())
    with pytest.raises(ValueError, match="newer version of this project.*momentum") as error:
        load_hyperparameters(tmp_path, without(later.Hyperparameters, "momentum"))
    assert str(tmp_path) in str(error.value)


def test_a_field_that_was_always_there_must_be_there(notebook, tmp_path):
    settings = notebook.make_hyperparameters("default", {}).model_dump(exclude={"n_step", "tau"})
    save_hyperparameters(tmp_path, settings)
    with pytest.raises(ValueError, match="lacks n_step, tau"):
        load_hyperparameters(tmp_path, notebook.Hyperparameters.model_fields)


def test_facts_of_a_run_have_a_time_before_them_too(capsys):
    for folder in KEPT:
        metadata = load_about(folder)
        assert metadata["seed"] == int(folder.name.removeprefix("seed"))
        written = json.loads((folder / "hyperparameters.json").read_text())
        for name, before in {"engine": "torch", "goal_size": 5.0, "goal_speed": 1.0}.items():
            assert metadata[name] == written.get(name, before)
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_a_run_that_goes_on_with_another_engine_says_so(tmp_path):
    save_hyperparameters(tmp_path, {}, seed=0, engine="torch")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_files.keep_engine(tmp_path, "torch")
    with pytest.warns(UserWarning, match="engine 'torch' and goes on with 'compiled'"):
        run_files.keep_engine(tmp_path, "compiled")
    about = load_about(tmp_path)
    assert (about["engine"], about["seed"]) == ("compiled", 0)


def test_a_run_goes_on_after_facts_were_added(notebook, tmp_path):
    """With the values of the time before; with others it is another run."""
    settings = notebook.make_hyperparameters("default", {})
    save_hyperparameters(tmp_path, settings.model_dump(), seed=0)
    run_files.require_same_run(tmp_path, settings, seed=0, goal_size=5.0, engine="torch")
    with pytest.raises(ValueError, match="goal_size is 3.0 and was 5.0"):
        run_files.require_same_run(tmp_path, settings, seed=0, goal_size=3.0)
    with pytest.raises(ValueError, match="newer version of this project.*seed"):
        run_files.require_same_run(tmp_path, settings)
    with pytest.raises(ValueError, match="lacks num_agents"):
        run_files.require_same_run(tmp_path, settings, seed=0, num_agents=20)


def test_a_training_goes_on_after_a_field_was_added(notebook, tmp_path, monkeypatch, request):
    """Its states, too, are read with the value of the time before."""
    small_training.shrink(monkeypatch.setattr)
    small_training.train(notebook, tmp_path / "uncut", episodes=4)
    small_training.train(notebook, tmp_path / "cut", episodes=2)
    later = request.getfixturevalue("later")
    with pytest.raises(ValueError, match="momentum is 0.9 and was 0.0"):
        small_training.train(later, tmp_path / "cut", episodes=4)
    small_training.train(later, tmp_path / "cut", episodes=4, momentum=0.0)
    expected, found = left_by(tmp_path / "uncut"), left_by(tmp_path / "cut")
    facts = json.loads(found["facts"])
    assert facts["settings"].pop("momentum") == 0.0
    assert_same(expected, found | {"facts": json.dumps(facts)})


def test_old_names_of_hyperparameters(notebook, tmp_path):
    """Files have them and are read; whoever types one is told the new name."""
    settings = notebook.make_hyperparameters("default", {"train_freq": 7}).model_dump()
    old = {new: old for old, new in RENAMED.items()}
    save_hyperparameters(tmp_path, {old.get(k, k): v for k, v in settings.items()})
    fields = notebook.Hyperparameters.model_fields
    assert RENAMED.keys().isdisjoint(fields) and set(RENAMED.values()) <= {*fields, *REMOVED}
    read = notebook.Hyperparameters(**load_hyperparameters(tmp_path, fields))
    assert read.train_freq == 7 and read.model_dump() == settings
    for name, new in RENAMED.items():
        told = "is gone" if new in REMOVED else f"is now called '{new}'"
        with pytest.raises(ValueError, match=f"'{name}' {told}"):
            notebook.make_hyperparameters("default", {name: 1})


def test_the_users_own_folder(monkeypatch, tmp_path):
    """A shell knows what ~ stands for, and the notebook's parameters cell does, too."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))  # of Windows
    assert run_folder("~/runs", "fast", 1) == tmp_path / "runs" / "fast" / "seed1"
    assert run_folder("a~/b", "fast", 1).parts[:2] == ("a~", "b")
    with pytest.raises(ValueError, match="out_dir = '~nobody-is-called-so/runs'"):
        run_folder("~nobody-is-called-so/runs", "fast", 1)


def test_the_notebooks_classes_fit_the_protocols(notebook):
    """By which the package knows them; a name that is gone is seen here and not in a training."""
    for kind, prioritized in (("default", True), ("uniform replay and OU noise", False)):
        agent = small_training.make_agent(notebook, kind)
        assert isinstance(agent, protocols.Agent)
        assert isinstance(agent.ddpg, protocols.DDPG)
        assert isinstance(agent.replay, protocols.Replay)
        assert isinstance(agent.replay, protocols.PrioritizedReplay) == prioritized
    with open_environment("", 2, 0) as environment:
        assert isinstance(environment, protocols.SavedEnvironment)
    del agent.learns
    assert not isinstance(agent, protocols.Agent)
