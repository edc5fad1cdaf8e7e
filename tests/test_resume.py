"""A training that is cut, by whatever and whenever, and goes on, ends as if it had not been cut."""

from __future__ import annotations

import ast
import errno
import io
import json
import pickle
import random
import re
import shutil
import signal
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest
import torch
from safetensors.torch import load as load_tensors
from torch.utils._pytree import tree_leaves

import reacher.files
import small_training
from small_training import ARMS, KINDS, WEIGHTS, assert_same, left_by
from tutorial import progress, randomness, run, run_file, run_files, saving, scores, states
from tutorial.environments import open_environment
from tutorial.notebook import cell_with_tag
from tutorial.paths import NOTEBOOK
from tutorial.progress import tensorboard_curves
from tutorial.randomness import seed_everything
from tutorial.run_files import load_hyperparameters, load_network, save_hyperparameters
from tutorial.scores import read_scores
from tutorial.states import TrainingState

EPISODES = 6


@pytest.fixture(scope="session")
def forks():
    if sys.platform != "linux":
        pytest.skip("forks a process that has loaded PyTorch, which is safe on Linux only")
    server = small_training.Forks()
    yield server
    server.close()


@pytest.fixture
def small(notebook, monkeypatch):
    """`small(folder, ...)` trains in this process, as `small_training.train` says."""
    small_training.shrink(monkeypatch.setattr)

    def train(folder, *arguments, **options):
        return small_training.train(notebook, folder, *arguments, **options)

    return train


@pytest.fixture(scope="session")
def uncut(notebook, tmp_path_factory):
    """`uncut(kind, episodes)`: what a training leaves that runs in one go."""
    known = {}

    def train(kind="default", episodes=EPISODES):
        if (kind, episodes) not in known:
            folder = tmp_path_factory.mktemp("uncut") / "run"
            with pytest.MonkeyPatch.context() as patch:
                small_training.shrink(patch.setattr)
                small_training.train(notebook, folder, kind, episodes)
            known[kind, episodes] = left_by(folder)
        return known[kind, episodes]

    return train


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def require_whole_files(folder, killed=False):
    """Every file that is there can be read, and all are there once there is a state of an episode.

    Beside them may lie what a killed process had begun to write.
    """
    if any(int(path.stem.split("_")[1]) for path in TrainingState(folder).paths()):
        assert {"scores.csv", "hyperparameters.json", *WEIGHTS} <= set(files_in(folder))
    for path in map(folder.joinpath, files_in(folder)):
        if killed and path.suffix == ".tmp":
            continue
        assert path.suffix in (".safetensors", ".pt", ".json", ".csv"), path
        if path.suffix == ".safetensors":
            load_tensors(path.read_bytes())
        elif path.suffix == ".pt":
            states.unpacked(path.read_bytes())
        elif path.suffix == ".json":
            json.loads(path.read_text())
        else:
            assert path.read_text().endswith("\n"), path
            lines = path.read_text().splitlines()[1:]
            assert [int(line.split(",")[0]) for line in lines] == list(range(1, len(lines) + 1))


# ------------------------------------------------------------------------------- cut from outside

LAST = EPISODES * small_training.DECISIONS // 2  # decision after which no cut begins


@pytest.mark.parametrize("moment", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_random_moments(forks, uncut, tmp_path, kind, moment):
    """Twenty trainings, each killed twice, with a state after every or every third episode.

    Half of the decisions, or more, are left to each when its clock starts; they take several times
    as long as the longest clock runs.
    """
    chance = random.Random(f"{kind} {moment}")
    options = {"kind": kind, "episodes": EPISODES, "save_every": 1 + 2 * (moment % 2)}
    longest = 0.003 if kind == "an end of learning" else 0.02  # playing alone is quick
    for last in (LAST, 10):
        cut = forks.train(
            tmp_path / "run",
            **options,
            cut=(None, chance.randint(1, last), chance.uniform(1e-6, longest)),
        )
        assert cut["ended"] == -signal.SIGVTALRM, cut
        assert TrainingState(tmp_path / "run").exists()
    assert forks.train(tmp_path / "run", **options)["ended"] == 0
    assert_same(left_by(tmp_path / "run"), uncut(kind))


@pytest.mark.parametrize("moment", range(3))
@pytest.mark.parametrize("send", ["SIGTERM", "SIGINT"])
def test_ended_by_a_shutdown_or_the_stop_button(forks, uncut, tmp_path, send, moment):
    chance = random.Random(f"{send} {moment}")
    cut = forks.train(
        tmp_path / "run", cut=(send, chance.randint(1, LAST), chance.uniform(1e-6, 0.02))
    )
    if send == "SIGINT":
        assert cut["ended"] == 0 and "interrupted in episode" in cut["output"], cut
    else:
        assert cut["ended"] == -signal.SIGTERM, cut
    newest = TrainingState(tmp_path / "run").paths()[0]
    assert int(newest.stem.split("_")[1]) < EPISODES
    assert forks.train(tmp_path / "run")["ended"] == 0
    assert_same(left_by(tmp_path / "run"), uncut())


class WritesHalf:
    """A file; what is written is announced first, and half of it is written if that raises."""

    def __init__(self, file, announce):
        self.file, self.announce = file, announce

    def __getattr__(self, name):
        return getattr(self.file, name)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.file.close()

    def write(self, content):
        try:
            self.announce()
        except BaseException:
            self.file.write(content[: len(content) // 2])
            raise
        return self.file.write(content)


def announce_writes(announce, monkeypatch):
    """Call `announce` before everything that reacher.files writes."""

    def opened(path, mode="r", *arguments, **options):
        file = open(path, mode, *arguments, **options)
        return file if "r" in mode else WritesHalf(file, announce)

    monkeypatch.setattr(reacher.files, "open", opened, raising=False)


class Killed(BaseException):
    """Stands for the end of the process."""


def kill_at(operation, monkeypatch):
    """Raise Killed before or in this file operation, and let nothing happen to files afterwards.

    Returns:
        a list with the number of operations so far.
    """
    count = [0]

    def announce():
        count[0] += 1
        if operation is not None and count[0] >= operation:
            raise Killed

    def counted(call):
        def operate(*arguments, **options):
            announce()
            return call(*arguments, **options)

        return operate

    for name in ("replace", "unlink", "rename", "mkdir"):
        monkeypatch.setattr(reacher.files.os, name, counted(getattr(reacher.files.os, name)))
    announce_writes(announce, monkeypatch)
    return count


def test_killed_at_every_file_operation(small, uncut, tmp_path):
    """No file operation leaves a state that resuming trips over."""
    expected = uncut(episodes=2)  # first, since libraries write files when they are first used
    with pytest.MonkeyPatch.context() as patch:
        count = kill_at(None, patch)
        small(tmp_path / "counted", episodes=2)
    assert count[0] >= 2 * len(files_in(tmp_path / "counted"))  # each is opened, and takes its name
    for operation in range(1, count[0] + 1):
        folder = tmp_path / str(operation)
        with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
            kill_at(operation, patch)
            small(folder, episodes=2)
        require_whole_files(folder, killed=True)
        small(folder, episodes=2)
        assert_same(left_by(folder), expected)


# -------------------------------------------------------------------------------- the stop button


def interrupted(train, numbers, within=None):
    """Call `train`, and press Ctrl-C before the lines of these numbers; return the lines so far.

    Lines count in tutorial/ and the notebook, or only while the function `within` runs.
    """
    count = [0]

    def is_within(frame):
        while frame and frame.f_code.co_name != within:
            frame = frame.f_back
        return frame is not None

    def trace(frame, event, argument):
        file = frame.f_code.co_filename
        ours = "tutorial/" in file or "Continuous_Control" in file
        if event == "call" and not (ours and (within is None or is_within(frame))):
            return None
        if event == "line":
            count[0] += 1
            if count[0] in numbers:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        train()
    except KeyboardInterrupt:
        pass  # outside of the training loop
    finally:
        sys.settrace(before)
    return count[0]


@pytest.mark.parametrize("within", [None, "save_state"], ids=["anywhere", "while saving"])
def test_interrupted_at_any_line(small, uncut, tmp_path, within):
    lines = interrupted(lambda: small(tmp_path / "counted", episodes=2), (), within)
    chance = random.Random(lines)
    for number in chance.sample(range(1, lines + 1), 16):
        folder = tmp_path / str(number)
        interrupted(lambda: small(folder, episodes=2), (number,), within)
        if folder.exists():
            require_whole_files(folder)
        small(folder, episodes=2)
        assert_same(left_by(folder), uncut(episodes=2))


# ---------------------------------------------------------------------------------------- full disk


def fail_at(write, monkeypatch):
    """Let this write, and all after it, do half of its work and then find no space.

    Returns:
        a list with the number of writes so far.
    """
    count = [0]

    def announce():
        count[0] += 1
        if write is not None and count[0] >= write:
            raise OSError(errno.ENOSPC, "No space left on device")

    announce_writes(announce, monkeypatch)
    return count


def test_a_disk_that_is_full_at_any_write(small, uncut, tmp_path):
    """A clear error, whole files only, and the training goes on when there is space again."""
    with pytest.MonkeyPatch.context() as patch:
        count = fail_at(None, patch)
        small(tmp_path / "counted", episodes=2)
    assert count[0] >= len(files_in(tmp_path / "counted"))
    for write in range(1, count[0] + 1):
        folder = tmp_path / str(write)
        with pytest.MonkeyPatch.context() as patch:
            fail_at(write, patch)
            with pytest.raises((OSError, ValueError), match="No space left on device") as error:
                small(folder, episodes=2)
        message = str(error.value)
        assert str(folder) in message
        if TrainingState(folder).exists():
            assert "resume = True goes on" in message
        else:
            assert "begin again with resume = False" in message or "choose another" in message
        require_whole_files(folder)
        small(folder, episodes=2)
        assert_same(left_by(folder), uncut(episodes=2))


@pytest.mark.parametrize("limit", [3_000, 20_000, 36_000])
def test_a_file_that_the_system_does_not_let_grow(forks, uncut, tmp_path, limit):
    """Weights, or a state, do not fit."""
    stopped = forks.train(tmp_path / "run", file_limit=limit)
    assert stopped["ended"] == 1 and "File too large" in stopped["output"], stopped
    require_whole_files(tmp_path / "run")
    assert forks.train(tmp_path / "run")["ended"] == 0
    assert_same(left_by(tmp_path / "run"), uncut())


# ------------------------------------------------------------------------------ what stays on disk


def require_tidy(folder):
    """Two states, and nothing beside them."""
    left = sorted(path.name for path in (folder / "state").iterdir())
    assert len(left) == 2 and all(re.fullmatch(r"state_\d{7}\.pt", name) for name in left)
    assert not list(folder.rglob("*.tmp"))


@pytest.mark.parametrize("kind", ["default", "ring that wraps around"])
def test_the_last_two_states_are_kept_and_nothing_else(small, tmp_path, kind):
    for episodes in (2, 4, 12):
        small(tmp_path / "run", kind, episodes)
        require_tidy(tmp_path / "run")


def test_remains_of_a_kill_go(small, uncut, tmp_path):
    small(tmp_path / "run", episodes=2)
    (tmp_path / "run" / "state" / "state_0000003.pt.tmp").write_bytes(b"half")
    small(tmp_path / "run")
    require_tidy(tmp_path / "run")
    assert_same(left_by(tmp_path / "run"), uncut())


def test_states_follow_by_number_and_not_by_letters(tmp_path):
    states = TrainingState(tmp_path)
    for episode in (999_980, 999_990, 1_000_000):
        states.save(episode, {"episode": episode})
    assert TrainingState(tmp_path).load()["episode"] == 1_000_000


# ---------------------------------------------------------------------------------------- damage


@pytest.fixture(scope="session")
def prepared(notebook, tmp_path_factory):
    """A training of six episodes that was cut after four, with the states of the last two."""
    folder = tmp_path_factory.mktemp("prepared") / "run"
    with pytest.MonkeyPatch.context() as patch:
        small_training.shrink(patch.setattr)
        small_training.train(notebook, folder, episodes=4)
    require_tidy(folder)
    return folder


@pytest.fixture
def cut(prepared, tmp_path):
    """A copy of it, somewhere else."""
    return shutil.copytree(prepared, tmp_path / "elsewhere")


def newest(folder):
    """The file of the newest state."""
    return TrainingState(folder).paths()[0]


class Malicious:
    """Unpickling it makes a file."""

    def __init__(self, marker):
        self.marker = str(marker)

    def __reduce__(self):
        return open, (self.marker, "w")


HARMS = {
    "a stretch in the middle": lambda content, marker: (
        content[: len(content) // 2]
        + bytes(byte ^ 16 for byte in content[len(content) // 2 :][:200])
        + content[len(content) // 2 + 200 :]
    ),
    "cut": lambda content, marker: content[: len(content) // 2],
    "empty": lambda content, marker: b"",
    "zeros": lambda content, marker: bytes(len(content)),
    "pickle": lambda content, marker: pickle.dumps(Malicious(marker)),
    "gone": None,
}


def harm(path, how, marker=None):
    if HARMS[how] is None:
        path.unlink()
    else:
        path.write_bytes(HARMS[how](path.read_bytes(), marker))


@pytest.mark.parametrize("how", HARMS)
def test_a_damaged_state_is_named_and_the_one_before_used(small, uncut, cut, tmp_path, how):
    path = newest(cut)
    harm(path, how, tmp_path / "marker")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        state = TrainingState(cut).load()
    assert not (tmp_path / "marker").exists()
    assert len(json.loads(state["facts"])["scores"]) == 3
    if how != "gone":  # as if it had never been
        (message,) = [str(warning.message) for warning in caught]
        assert f"{path} is damaged" in message and "the state before is used" in message
    small(cut)
    assert_same(left_by(cut), uncut())
    for left in (cut / "state").glob("*.damaged"):
        left.unlink()
    require_tidy(cut)


def test_a_flipped_bit_anywhere_is_found_or_means_nothing(cut):
    """In each of the first and last 300 bytes, and in 300 others: dates of parts mean nothing."""
    chance = random.Random(0)
    whole = newest(cut).read_bytes()
    numbers = tree_leaves(states.unpacked(whole))
    ends = (*range(300), *range(len(whole) - 300, len(whole)))
    found = 0
    for place in (*ends, *(chance.randrange(len(whole)) for _ in range(300))):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << chance.choice((0, 1, 3, 5, 7))
        try:
            now = tree_leaves(states.unpacked(bytes(damaged)))
        except states.Damaged:
            found += 1
        else:
            for one, other in zip(now, numbers, strict=True):
                same = torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other
                assert same, place
    assert found > 300


def test_no_whole_state_is_a_clear_error(small, cut):
    for path in TrainingState(cut).paths():
        harm(path, "cut")
    before = files_in(cut)
    with (
        pytest.warns(UserWarning, match="is damaged"),
        pytest.raises(ValueError, match="no whole training state.*resume = False") as error,
    ):
        small(cut)
    assert str(cut / "state") in str(error.value)
    assert files_in(cut) == before  # where a disk is back later, all is as it was


def test_a_state_that_is_damaged_during_training_stops_nothing(small, uncut, cut):
    """Damage to the state before the last is found when that is no longer needed."""
    harm(TrainingState(cut).paths()[-1], "zeros")
    small(cut)
    assert_same(left_by(cut), uncut())
    require_tidy(cut)


# ------------------------------------------------------------------------------- files from others


def test_pickles_in_place_of_files_are_not_opened(small, notebook, cut, tmp_path):
    malicious = pickle.dumps(Malicious(tmp_path / "marker"))
    for path in cut.rglob("*.*"):
        path.write_bytes(malicious)
    agent = small_training.make_agent(notebook)
    with pytest.warns(UserWarning), pytest.raises(ValueError, match="no whole training state"):
        TrainingState(cut).load()
    with pytest.raises(ValueError, match="damaged"):
        load_hyperparameters(cut)
    with pytest.raises(ValueError, match="damaged"):
        run_files.require_same_run(cut, agent.settings)
    for name in WEIGHTS:
        network = agent.ddpg.actor if "actor" in name else agent.ddpg.critic
        with pytest.raises(ValueError, match=f"{name} is damaged"):
            load_network(cut / name, network)
    with pytest.raises(ValueError, match="scores.csv"):
        read_scores(cut / "scores.csv")
    assert not (tmp_path / "marker").exists()


@pytest.mark.parametrize("number", [3, states.STATE_FORMAT + 1])
def test_a_state_of_another_format_is_a_clear_error(small, cut, number):
    torch.save(torch.load(newest(cut)) | {"format": number}, newest(cut))
    before = files_in(cut)
    with pytest.raises(ValueError, match=f"format {number}.*the version .* that wrote it"):
        small(cut)
    assert files_in(cut) == before


@pytest.mark.parametrize(
    "other",
    [
        {"actor_hidden": (8, 9)},
        {"critic_hidden": (8,)},
        {"noisy_layers": False},
        {"replay": "uniform"},
        {"replay_capacity": 70},
        {"kind": "batch normalization"},
    ],
    ids=str,
)
def test_a_state_of_another_training_is_a_clear_error(forks, cut, tmp_path, other):
    """As where folders were mixed up. In a process of its own: it must not crash either."""
    forks.train(tmp_path / "other", episodes=1, **other)
    shutil.rmtree(tmp_path / "other" / "state")
    shutil.copytree(cut / "state", tmp_path / "other" / "state")
    result = forks.train(tmp_path / "other", **other)
    assert result["ended"] == 1
    told = result["output"].rpartition("\nValueError: ")[2]  # the last error, whatever its lines
    assert str(tmp_path / "other") in told and "Traceback" not in told, result["output"]


WRONG = {  # what a whole state lacks, or holds instead
    "learner": {"actor": {}},
    "replay": {"size": 1},
    "facts": "{}",
    "randomness": {"python": 3},
}


@pytest.mark.parametrize("part", WRONG)
def test_a_whole_state_that_holds_something_else_is_a_clear_error(small, cut, part):
    torch.save(torch.load(newest(cut)) | {part: WRONG[part]}, newest(cut))
    before = {name: (cut / name).read_bytes() for name in files_in(cut)}
    with pytest.raises(ValueError, match="holds no state of this training") as error:
        small(cut)
    assert str(cut / "state") in str(error.value)
    assert {name: (cut / name).read_bytes() for name in files_in(cut)} == before


@pytest.mark.parametrize(
    "change",
    [{"best_score": 99.0}, {"env_steps": 0}, {"evaluations": ["900,1,1,1,1,1"]}, {"scores": []}],
    ids=str,
)
def test_a_state_whose_numbers_contradict_each_other_is_a_clear_error(small, cut, change):
    state = torch.load(newest(cut))
    forged = state | {"facts": json.dumps(json.loads(state["facts"]) | change)}
    torch.save(forged, newest(cut))
    with pytest.raises(ValueError, match="holds no state of this training"):
        small(cut)


# ---------------------------------------------------------------------- reading fails for a while


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.EIO, "Input/output error"),
        PermissionError(errno.EACCES, "Permission denied"),
    ],
    ids=str,
)
def test_an_error_of_reading_is_no_damage(small, uncut, cut, monkeypatch, error):
    """Nothing is set aside, and no older state is used; a second later all may be well."""
    path, read = newest(cut), Path.read_bytes

    def fail(self):
        if self == path:
            raise error
        return read(self)

    before = files_in(cut)
    with monkeypatch.context() as patch, pytest.raises(type(error)):
        patch.setattr(Path, "read_bytes", fail)
        small(cut)
    assert files_in(cut) == before
    small(cut)
    assert_same(left_by(cut), uncut())


def test_unpacking_without_memory_is_no_damage(small, cut, monkeypatch):
    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr(states.torch, "load", fail)
    before = files_in(cut)
    with pytest.raises(MemoryError):
        small(cut)
    assert files_in(cut) == before


def hyperparameters_in(folder):
    return json.loads((folder / "hyperparameters.json").read_text())


def write_hyperparameters(folder, content):
    (folder / "hyperparameters.json").write_text(json.dumps(content))


def other_versions(content):
    """Contents of hyperparameters.json that another version may have written; what is wrong."""
    settings = content["hyperparameters"]
    yield content | {"hyperparameters": settings | {"momentum": 0.9}}, "momentum"
    for name in ("n_step", "train_freq", "tau"):
        less = {key: value for key, value in settings.items() if key != name}
        yield content | {"hyperparameters": less}, name
    yield content | {"format": run_file.RUN_FORMAT + 1}, f"format {run_file.RUN_FORMAT + 1}"
    for damaged in ({}, [], None, {"hyperparameters": 3}, content | {"format": "new"}):
        yield damaged, "damaged"


@pytest.mark.parametrize("number", range(10))
def test_hyperparameters_of_another_version_are_a_clear_error(small, notebook, cut, number):
    """Both where the notebook shows a trained agent, and where it resumes a training."""
    content, wrong = list(other_versions(hyperparameters_in(cut)))[number]
    write_hyperparameters(cut, content)
    with pytest.raises(ValueError, match=wrong):
        small(cut)
    with pytest.raises(ValueError, match=wrong):
        notebook_value(notebook, "stored", folder=cut)


def notebook_value(notebook, variable, **names):
    """What the notebook's cell assigns to this variable, with these names for others."""
    for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
        if cell.cell_type == "code":
            for statement in ast.parse(cell.source).body:
                if (
                    isinstance(statement, ast.Assign)
                    and ast.unparse(statement.targets[0]) == variable
                ):
                    return eval(ast.unparse(statement.value), notebook.__dict__ | names)
    raise LookupError(variable)


def test_a_run_without_its_hyperparameters_is_a_clear_error(small, cut):
    (cut / "hyperparameters.json").unlink()
    with pytest.raises((ValueError, FileNotFoundError), match=r"hyperparameters\.json"):
        small(cut)


# ------------------------------------------------------------------------- resuming in other ways


def test_a_folder_goes_on_elsewhere(small, uncut, cut):
    small(cut)
    assert_same(left_by(cut), uncut())


def test_a_state_and_the_settings_are_all_that_is_needed(small, uncut, cut):
    """Scores and weights, of the best episode too, come back where somebody deleted them."""
    for name in ("scores.csv", *WEIGHTS):
        (cut / name).unlink()
    small(cut)
    assert_same(left_by(cut), uncut())


def test_other_environments_go_on_as_well(notebook, small, tmp_path):
    """Gymnasium's, through the same interface."""
    pytest.importorskip("gymnasium")
    settings = notebook.make_hyperparameters(
        "default", small_training.SMALL | {"train_freq": 50}, has_mirrors=False
    )

    def train(name, episodes, resume=False):
        with open_environment("gymnasium:Pendulum-v1", ARMS, 3) as environment:
            agent = notebook.Agent(environment.observation_scale, 1, settings, seed_everything(3))
            notebook.train_agent(
                environment, agent, tmp_path / name, episodes, resume=resume, keep_state=True
            )
        return left_by(tmp_path / name)

    once = train("once", 3)
    train("twice", 1)
    assert_same(train("twice", 3, resume=True), once)


@pytest.mark.parametrize("kind", ["Unity", "Gymnasium"])
def test_an_environment_that_cannot_save_itself_begins_anew(small, tmp_path, capsys, kind):
    """As a Unity build does, or one of Gymnasium with a counter. What was learned goes on."""

    class Closed:
        if kind == "Gymnasium":

            def state(self):
                raise RuntimeError("no state to save")

        brain_names = ["ReacherBrain"]

        def __init__(self):
            environment = open_environment("", ARMS, 0)
            self.reset, self.step = environment.reset, environment.step

    small(tmp_path / "run", episodes=3, environment=Closed())
    lines = (tmp_path / "run" / "scores.csv").read_text()
    assert "begins anew" not in capsys.readouterr().out
    agent = small(tmp_path / "run", environment=Closed())
    assert "cannot be saved, so it begins anew" in capsys.readouterr().out
    assert agent.episodes == EPISODES and agent.env_steps == EPISODES * small_training.DECISIONS
    assert (tmp_path / "run" / "scores.csv").read_text().startswith(lines)


def test_resuming_what_is_finished_changes_nothing(small, cut):
    before = {name: (cut / name).read_bytes() for name in files_in(cut)}
    small(cut, episodes=4)
    assert {name: (cut / name).read_bytes() for name in files_in(cut)} == before


@pytest.mark.parametrize("steps", [(1, 2, 3, 6), (3, 5)], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_a_finished_training_can_be_made_longer(small, uncut, tmp_path, kind, steps):
    for save_every, episodes in enumerate((*steps, EPISODES), start=1):
        small(tmp_path / "run", kind, episodes, save_every)
    assert_same(left_by(tmp_path / "run"), uncut(kind))


def test_once_learning_has_ended_states_are_without_the_memory(small, tmp_path):
    """Learning ends after two of six episodes."""

    def sizes(episodes):
        small(tmp_path / "run", "an end of learning", episodes)
        paths = reversed(TrainingState(tmp_path / "run").paths())
        return [len(states.unpacked(path.read_bytes())["replay"]["rows"]) for path in paths]

    with_memory, without = sizes(2)
    assert with_memory > 0 == without
    assert sizes(6) == [0, 0]


def test_fewer_episodes_than_were_played_before_the_cut(small, uncut, tmp_path):
    """Played five, saved after three, then told to end after four: nothing of the fifth is left."""
    environment = Stopped(episode=6)
    small(tmp_path / "run", "uniform replay and OU noise", save_every=3, environment=environment)
    assert len(read_scores(tmp_path / "run" / "scores.csv")["score"]) == 5
    small(tmp_path / "run", "uniform replay and OU noise", episodes=4)
    assert_same(left_by(tmp_path / "run"), uncut("uniform replay and OU noise", 4))


def test_no_more_episodes_than_the_state_has(small, uncut, tmp_path):
    """Played five, saved after three, then told to end after three."""
    small(tmp_path / "run", save_every=3, environment=Stopped(episode=6))
    small(tmp_path / "run", episodes=3)
    expected, result = uncut(episodes=3), left_by(tmp_path / "run")
    for name in ("scores", *WEIGHTS):
        assert result[name] == expected[name], name


class Stopped:
    """The real environment; in the middle of an episode somebody presses the stop button."""

    def __init__(self, episode):
        self.environment, self.left = open_environment("", ARMS, 0), episode

    def __getattr__(self, name):
        return getattr(self.environment, name)

    def reset(self, **options):
        self.left -= 1
        return self.environment.reset(**options)

    def step(self, actions):
        if not self.left:
            raise KeyboardInterrupt
        return self.environment.step(actions)


def test_the_stop_button_and_going_on_in_the_same_process(small, uncut, tmp_path):
    """Agent, environment and generators have other pasts then."""
    small(tmp_path / "run", save_every=2, environment=Stopped(episode=4))
    np.random.random(5), torch.rand(5), random.random()
    small(tmp_path / "run")
    assert_same(left_by(tmp_path / "run"), uncut())


def test_going_on_with_an_agent_that_did_something_else(notebook, small, uncut, cut):
    """Restoring leaves nothing of what the agent was before."""
    with open_environment("", ARMS, 7) as environment:
        agent = small_training.make_agent(notebook)
        agent.settings = agent.settings.model_copy(update={"train_freq": 3})
        for _ in range(4):
            notebook.run_episode(environment, agent)
        agent.settings = small_training.make_agent(notebook).settings
        environment.reset()
        agent.act(np.zeros((ARMS, 33), np.float32))
        notebook.train_agent(
            environment,
            agent,
            cut,
            EPISODES,
            resume=True,
            save_every=1,
            keep_state=True,
            metadata={"seed": 0},
        )
    assert_same(left_by(cut), uncut())


def test_training_again_with_the_same_agent_is_no_crash(notebook, small, tmp_path):
    """Whoever calls train_agent twice, without resume, gets a run that can be resumed."""
    agent = small(tmp_path / "first", episodes=3)
    with open_environment("", ARMS, 0) as environment:
        notebook.train_agent(
            environment, agent, tmp_path / "second", 2, save_every=1, keep_state=True
        )
    state = TrainingState(tmp_path / "second").load()
    assert json.loads(state["facts"])["episodes"] == 5
    rows = agent.replay.rows[: len(agent.replay)]
    np.testing.assert_array_equal(state["replay"]["rows"], rows)


def test_stopping_when_solved_can_be_changed(small, tmp_path, monkeypatch):
    """A training that was told to go on once solved ends at once when told to stop there."""
    monkeypatch.setattr(scores, "AVERAGE_WINDOW", 2)
    assert (
        small(tmp_path / "run", stop_when_solved=False, reward_threshold=0.01, episodes=4).episodes
        == 4
    )
    assert small(tmp_path / "run", stop_when_solved=True, reward_threshold=0.01).episodes == 4
    assert small(tmp_path / "run", stop_when_solved=False, reward_threshold=0.01).episodes == 6
    small(tmp_path / "stopped", stop_when_solved=True, reward_threshold=0.01)
    small(
        tmp_path / "stopped", stop_when_solved=True, reward_threshold=None
    )  # nothing counts as solved
    assert_same(left_by(tmp_path / "run"), left_by(tmp_path / "stopped"))


@pytest.mark.parametrize(
    "changed",
    [{"n_step": 2}, {"discount": 0.9, "train_freq": 4}, {"actor_hidden": (8, 9)}],
    ids=str,
)
def test_other_settings_do_not_go_on(small, cut, changed):
    before = {name: (cut / name).read_bytes() for name in files_in(cut)}
    with pytest.raises(ValueError, match="began with other settings") as error:
        small(cut, **changed)
    for name, value in changed.items():
        assert f"{name} is {list(value) if isinstance(value, tuple) else value!r} and was" in str(
            error.value
        )
    assert {name: (cut / name).read_bytes() for name in files_in(cut)} == before


def test_another_seed_number_of_arms_or_environment_does_not_go_on(notebook, cut):
    settings = small_training.make_agent(notebook).settings
    save_hyperparameters(cut, settings.model_dump(), seed=0, num_agents=2, env_location="")
    same = {"seed": 0, "num_agents": 2, "env_location": ""}
    run_files.require_same_run(cut, settings, **same)
    for name, value in (("seed", 1), ("num_agents", 3), ("env_location", "gymnasium:Pendulum-v1")):
        with pytest.raises(ValueError, match=f"{name} is {value!r} and was {same[name]!r}"):
            run_files.require_same_run(cut, settings, **same | {name: value})


def test_other_versions_of_packages_are_named(notebook, cut, monkeypatch):
    settings = small_training.make_agent(notebook).settings
    monkeypatch.setattr(run_files, "versions", lambda: {"torch": "99"})
    with pytest.warns(UserWarning, match="may not give the same numbers"):
        run_files.require_same_run(cut, settings, seed=0)


def test_every_generator_goes_on(tmp_path):
    """Python's, NumPy's, PyTorch's, with a number left over from a pair of normal ones."""
    seed_everything(5)
    draws = (random.gauss, np.random.normal, np.random.standard_normal, torch.randn)
    arguments = ((0, 1), (), (), (1,))
    for draw, values in zip(draws, arguments, strict=True):
        draw(*values)
    file = io.BytesIO()
    torch.save(randomness.random_states(), file)
    expected = [
        float(draw(*values))
        for draw, values in zip(draws, arguments, strict=True)
        for _ in range(3)
    ]
    seed_everything(6)
    randomness.restore_random_states(torch.load(io.BytesIO(file.getvalue()), weights_only=True))
    assert [
        float(draw(*values))
        for draw, values in zip(draws, arguments, strict=True)
        for _ in range(3)
    ] == expected


def test_a_large_uniform_memory_is_counted_exactly(notebook):
    """2^24 + 1 is the first number that single precision does not have."""
    replay = notebook.UniformReplay(2**24 + 8, 1, np.random.default_rng(0))
    replay.size = replay.position = 2**24 + 1
    saving.restore_replay(replay, saving.replay_state(replay))
    assert len(replay) == replay.position == 2**24 + 1


def test_the_sums_of_a_restored_tree_are_the_same_to_the_last_bit(notebook, defaults):
    chance = np.random.default_rng(0)
    replay = notebook.PrioritizedReplay(1_000, 1, chance)
    for _ in range(50):
        replay.add(chance.random((30, 1)), chance.exponential(size=30))
        replay.update(chance.integers(len(replay), size=20), chance.exponential(size=20))
    twin = notebook.PrioritizedReplay(1_000, 1, np.random.default_rng(0))
    twin.add(chance.random((700, 1)), chance.random(700))  # something to forget
    saving.restore_replay(twin, saving.replay_state(replay))
    np.testing.assert_array_equal(twin.rows, replay.rows)
    np.testing.assert_array_equal(twin.tree, replay.tree)
    assert (twin.size, twin.position) == (replay.size, replay.position)


def test_the_run_file_names_the_engine_that_took_over(small, tmp_path):
    """A learner may give way to another engine in mid-run; here the fake one is the compiled."""

    def take_over(agent, scores):
        agent.learner.engine = "compiled"

    with pytest.warns(UserWarning, match="'torch' and goes on with 'compiled'"):
        agent = small(tmp_path, episodes=2, after_episode=take_over)
    content = json.loads((tmp_path / "hyperparameters.json").read_text())
    assert agent.engine == content["engine"] == "compiled"


def training_cell():
    """The notebook's cell that trains, as a function of the names that it uses."""
    content = nbformat.read(NOTEBOOK, as_version=4)
    cell = content.cells[cell_with_tag(content, "training")]
    return compile(cell.source, "the training cell", "exec")


def test_the_notebooks_cell_resumes(notebook, small, tmp_path):
    """Three episodes, then six with resume: as six at once. Without resume it begins anew."""

    def run_cell(name, max_episodes, resume=False, **changes):
        names = {
            "preset": "default",
            "seed": 0,
            "num_agents": ARMS,
            "max_episodes": max_episodes,
            "stop_when_solved": True,
            "env_location": "",
            "goals": {},
            "reward_threshold": 30.0,
            "engine": "torch",
            "evaluate_every": 0,
            "train": True,
            "resume": resume,
            "save_every": 2,
            "keep_state": True,
            "tensorboard": False,
            "live": True,
            "is_reacher": True,
            "folder": tmp_path / name,
            "first": SimpleNamespace(agents=[0, 1]),
            "observation_scale": notebook.OBSERVATION_SCALE,
            "action_size": 4,
            "environment": open_environment("", ARMS, 5),
            "hyperparameters": notebook.make_hyperparameters("default", small_training.SMALL),
        } | changes
        exec(training_cell(), notebook.__dict__ | names)
        return left_by(tmp_path / name)

    once = run_cell("once", 6)
    run_cell("twice", 3)
    with pytest.raises(ValueError, match="began with other settings: seed is 1 and was 0"):
        run_cell("twice", 6, resume=True, seed=1)
    assert_same(run_cell("twice", 6, resume=True), once)
    assert_same(run_cell("twice", 6), once)
    assert (tmp_path / "twice.1" / "scores.csv").exists()


# ------------------------------------------------------------------------------ the end of a run


def test_a_training_that_ends_by_itself_leaves_no_state(small, uncut, tmp_path):
    """States are large, and nobody needs them then. The rest is as with a state."""
    small(tmp_path / "run", keep_state=False)
    assert set(files_in(tmp_path / "run")) == {"scores.csv", "hyperparameters.json", *WEIGHTS}
    for name in WEIGHTS:
        assert (tmp_path / "run" / name).read_bytes() == uncut()[name]


def test_a_training_that_was_cut_keeps_its_state_until_it_ends(small, uncut, tmp_path):
    small(tmp_path / "run", keep_state=False, environment=Stopped(episode=4))
    assert TrainingState(tmp_path / "run").exists()
    small(tmp_path / "run", keep_state=False)
    assert not (tmp_path / "run" / "state").exists()
    for name in WEIGHTS:
        assert (tmp_path / "run" / name).read_bytes() == uncut()[name]


def test_a_training_that_left_no_state_cannot_be_made_longer(notebook, small, tmp_path):
    """And says how it could have been."""
    small(tmp_path / "run", episodes=2, keep_state=False)
    before = files_in(tmp_path / "run")
    with pytest.raises(ValueError, match="holds no training state.*keep_state = True"):
        notebook.train_agent(
            None,
            small_training.make_agent(notebook),
            tmp_path / "run",
            4,
            resume=True,
            metadata={"seed": 0},
        )
    assert files_in(tmp_path / "run") == before


# -------------------------------------------------------------------------- before the first state


def test_what_an_error_in_the_first_episode_says_is_true(small, uncut, tmp_path):
    """There is a state to go on from, ten episodes before the next."""

    def fail():
        raise FloatingPointError("no number")

    with pytest.raises(FloatingPointError, match="episode 1, .*resume = True goes on"):
        small(tmp_path / "run", save_every=10, environment=Company(1, fail))
    assert TrainingState(tmp_path / "run").exists()
    small(tmp_path / "run")
    assert_same(left_by(tmp_path / "run"), uncut())


def test_without_any_state_an_error_does_not_promise_one(small, uncut, tmp_path, monkeypatch):
    """The disk is full when the first is written."""

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(run, "save_state", fail)
        with pytest.raises(OSError, match="No space.*no state yet.*with resume = False"):
            small(tmp_path / "run")
    small(tmp_path / "run")
    assert_same(left_by(tmp_path / "run"), uncut())


@pytest.mark.parametrize("name", ["hyperparameters.json", "scores.csv"])
def test_a_disk_that_is_full_at_the_first_files(small, tmp_path, monkeypatch, name):
    """The error names the file, the folder, and what helps."""

    def opened(path, mode="r", *arguments, **options):
        if path.name == f"{name}.tmp":
            raise OSError(errno.ENOSPC, "No space left on device")
        return open(path, mode, *arguments, **options)

    monkeypatch.setattr(reacher.files, "open", opened, raising=False)
    with pytest.raises((OSError, ValueError), match="No space left on device") as error:
        small(tmp_path / "run")
    message = str(error.value)
    assert name in message and str(tmp_path / "run") in message
    assert "choose another out_dir" in message or "begin again with resume = False" in message


def test_a_disk_that_is_full_after_the_last_episode(small, tmp_path, monkeypatch):
    """The error is not said to be in an episode that never was."""
    save_state = run.save_state

    def fail_at_the_end(states, agent, *others):
        if agent.episodes == EPISODES:
            raise OSError(errno.ENOSPC, "No space left on device")
        save_state(states, agent, *others)

    monkeypatch.setattr(run, "save_state", fail_at_the_end)
    with pytest.raises(OSError, match=f"No space .*after episode {EPISODES}, decision"):
        small(tmp_path / "run")


@pytest.mark.parametrize("save_every", [1, 10])
def test_a_run_folder_that_is_removed_in_the_middle(small, tmp_path, save_every):
    """Training stops instead of writing half of a run into a new folder."""

    def remove(agent, scores):
        if len(scores) == 3:
            shutil.rmtree(tmp_path / "run")

    with pytest.raises(FileNotFoundError, match="run was removed meanwhile: begin again"):
        small(tmp_path / "run", save_every=save_every, after_episode=remove)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["exp_avg", "exp_avg_sq"])
@pytest.mark.parametrize("network", ["actor", "critic"])
def test_what_could_never_be_resumed_is_not_saved(small, uncut, tmp_path, network, name):
    """Adam's squares overflow while all weights are finite: the states before stay."""

    def overflow(agent, scores):
        if len(scores) == 3:
            optimizer = getattr(agent.ddpg, f"{network}_optimizer")
            next(iter(optimizer.state.values()))[name][0, 0] = np.inf

    words = (
        rf"learner\.{network}_optimizer\.0\.{name} is not finite.*no state is saved.*reward_scale"
    )
    with pytest.raises(FloatingPointError, match=f"{words}.*after episode 3, .*resume = True"):
        small(tmp_path / "run", after_episode=overflow)
    assert TrainingState(tmp_path / "run").paths()[0].stem == "state_0000002"
    small(tmp_path / "run")
    assert_same(left_by(tmp_path / "run"), uncut())


def test_rows_that_are_not_finite_are_not_saved(notebook, small, tmp_path):
    agent, training_states = small(tmp_path / "run"), states.TrainingState(tmp_path / "run")
    before = files_in(tmp_path / "run")
    agent.replay.rows[3, 3] = np.nan
    with pytest.raises(FloatingPointError, match="replay.rows is not finite"):
        saving.save_state(training_states, agent, None)
    assert files_in(tmp_path / "run") == before


def test_a_training_that_is_too_short_to_learn_is_named(small, tmp_path):
    with pytest.warns(UserWarning, match="will not learn: max_episodes = 2 .*train_freq = 1,000,0"):
        small(tmp_path / "one", episodes=2, train_freq=1_000_000)
    with pytest.warns(UserWarning, match="will not learn.* needs 4,500 transitions"):
        small(tmp_path / "other", episodes=2, learning_starts=4_500)


def test_a_folder_in_the_place_of_the_scores(small, uncut, cut):
    (cut / "scores.csv").unlink()
    (cut / "scores.csv").mkdir()
    with pytest.raises(OSError, match="resume = True goes on") as error:
        small(cut)
    assert "irectory" in str(error.value) and str(cut / "scores.csv") in str(error.value)
    (cut / "scores.csv").rmdir()
    small(cut)
    assert_same(left_by(cut), uncut())


# ------------------------------------------------------------------------------ what is seen of it


def curves(folder):
    """The curves that TensorBoard shows: steps and values by name."""
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(folder / "tensorboard"))
    events.Reload()
    return {
        name: [(event.step, event.value) for event in events.Scalars(name)]
        for name in events.Tags()["scalars"]
    }


def test_curves_of_a_resumed_training_do_not_overlap(small, tmp_path):
    """Cut in episode 6, with a state after three: episodes 4 and 5 are played twice."""
    folder = tmp_path / "run"
    for environment in (Stopped(episode=6), None):
        with tensorboard_curves(folder) as after_episode:
            small(folder, save_every=3, environment=environment, after_episode=after_episode)
    found, scores = curves(folder), read_scores(folder / "scores.csv")["score"]
    assert [step for step, _ in found["score/episode"]] == list(range(1, EPISODES + 1))
    np.testing.assert_allclose([value for _, value in found["score/episode"]], scores, atol=1e-6)
    assert {
        "noise/sigma, hidden",
        "noise/sigma, output",
        "replay/mean of p^alpha",
        "Q/of the policy",
        "gradient steps a second",
    } <= found.keys()
    assert all(len({step for step, _ in curve}) == len(curve) for curve in found.values())


def test_without_noisy_layers_there_is_no_curve_of_sigma(notebook, defaults):
    for settings in (defaults(), defaults(noisy_layers=False)):
        agent = notebook.Agent(notebook.OBSERVATION_SCALE, 4, settings, np.random.default_rng(0))
        sigmas = [name for name in progress.scalars(agent, [1.0]) if "sigma" in name]
        assert len(sigmas) == (2 if settings.noisy_layers else 0)


def test_no_curves_unless_wanted(tmp_path):
    with tensorboard_curves(tmp_path, wanted=False) as after_episode:
        assert after_episode is None
    assert files_in(tmp_path) == []


def test_the_bar_of_a_solved_training_ends_full(small, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(scores, "AVERAGE_WINDOW", 2)
    small(tmp_path / "run", episodes=150, reward_threshold=0.01)
    last = capsys.readouterr().err.strip().split("\r")[-1]
    assert last.startswith("2/2 episodes |") and "<00:00" in last
    small(tmp_path / "cut", episodes=150, environment=Stopped(episode=3))
    assert capsys.readouterr().err.strip().split("\r")[-1].startswith("2/150 episodes |")


# ------------------------------------------------------------------------------------- a new run


def test_an_earlier_run_moves_aside(cut, capsys):
    before = {name: (cut / name).read_bytes() for name in files_in(cut)}
    run_files.begin_run(cut, {"n_step": 1})
    moved = cut.with_name(f"{cut.name}.1")
    assert files_in(cut) == ["hyperparameters.json"]
    assert f"moves to {moved.name}" in capsys.readouterr().out
    assert {name: (moved / name).read_bytes() for name in files_in(moved)} == before
    (cut / "note.txt").write_text("mine")
    run_files.begin_run(cut, {"n_step": 1})
    assert files_in(cut.with_name(f"{cut.name}.2")) == ["hyperparameters.json", "note.txt"]


def test_an_unfinished_run_moves_with_its_state_and_can_go_on(small, uncut, tmp_path):
    small(tmp_path / "run", save_every=2, environment=Stopped(episode=6))
    run_files.begin_run(tmp_path / "run", {})  # somebody forgot to set resume
    small(tmp_path / "run.1")
    assert_same(left_by(tmp_path / "run.1"), uncut())


def test_a_run_that_cannot_move_keeps_its_state(cut, monkeypatch):
    before = files_in(cut)

    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(ValueError, match="cannot write into"):
        run_files.begin_run(cut, {})
    assert files_in(cut) == before


def test_resuming_where_nothing_is_to_resume_is_a_clear_error(notebook, tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ValueError, match="holds no training state.* with resume = False"):
            notebook.train_agent(None, small_training.make_agent(notebook), folder, 2, resume=True)
    assert files_in(tmp_path) == ["nowhere.lock"]


class Company(Stopped):
    """The real environment; in the middle of an episode somebody does something else."""

    def __init__(self, episode, meanwhile):
        super().__init__(episode)
        self.meanwhile = meanwhile

    def step(self, actions):
        if not self.left:
            self.left = -1
            self.meanwhile()
        return self.environment.step(actions)


@pytest.mark.parametrize("resume", [True, False])
def test_a_second_training_in_one_folder_is_refused(notebook, small, uncut, tmp_path, resume):
    """Before anything is moved or written; the first goes on, and may then be followed."""
    folder = tmp_path / "run"

    def second():
        before = files_in(folder)
        with pytest.raises(ValueError, match="another training runs in") as error:
            notebook.train_agent(None, agent, folder, 6, resume=resume, metadata={"seed": 0})
        assert str(folder) in str(error.value) and files_in(folder) == before
        assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["run"]
        refused.append(True)

    agent, refused = small_training.make_agent(notebook), []  # which seeds the generators
    small(folder, episodes=4, environment=Company(3, second))
    assert refused
    small(folder)
    assert_same(left_by(folder), uncut())
