"""Trainings that are cut and go on: the same numbers, bit for bit, or one clear error."""

import itertools
import multiprocessing
import os
import random
import zipfile
from unittest import mock

import numpy as np
import pytest
import torch

import small_training
from reacher import ReacherVectorEnv
from small_training import DECISIONS, KINDS, Stops, assert_same, left_by, train
from tutorial.notebook import definitions
from tutorial.run import load_run


@pytest.fixture(scope="session")
def uncut(tmp_path_factory):
    """`uncut(kind, engine)`: what a training in one go leaves."""
    done = {}

    def get(kind="default", engine="torch"):
        if (kind, engine) not in done:
            folder = tmp_path_factory.mktemp("uncut") / "run"
            with pytest.MonkeyPatch.context() as patch:
                small_training.shrink(patch.setattr)
                train(folder, kind=kind, engine=engine, evaluate=True)
            done[kind, engine] = left_by(folder)
        return done[kind, engine]

    return get


@pytest.fixture
def cut(small, tmp_path):
    """The folder of a training that was cut in the fourth of six episodes."""
    train(tmp_path / "cut", environment=Stops(3 * DECISIONS + 5), evaluate=True)
    return tmp_path / "cut"


class Killed(BaseException):
    """What nothing in a training handles."""


@pytest.mark.parametrize("kind, save_every", [*zip(KINDS, [1, 3, 3, 1], strict=True)])
def test_killed_at_random_moments(small, uncut, tmp_path, kind, save_every):
    """Twice in the middle of a file, where `os.fsync` is called, and once while the arms play."""
    chance = random.Random(f"{kind} {save_every}")
    options = {"kind": kind, "save_every": save_every, "evaluate": True}
    for moment in chance.randint(1, 14), None, chance.randint(1, 14):
        playing = Stops(chance.randint(1, 28), what=Killed) if moment is None else None
        killed = [None] * (moment - 1 if moment else 10_000) + [Killed] * 99
        with mock.patch("os.fsync", side_effect=killed), pytest.raises(Killed):
            train(tmp_path / "run", environment=playing, **options)
    train(tmp_path / "run", **options)
    assert_same(left_by(tmp_path / "run"), uncut(kind))


def die(folder):
    small_training.shrink()
    calls = itertools.count(1)
    os.fsync = lambda _: next(calls) == 23 and os._exit(9)
    train(folder, evaluate=True)


def test_a_process_that_dies_leaves_no_lock(small, uncut, tmp_path):
    """And half a file, which nobody takes for a whole one."""
    process = multiprocessing.get_context("spawn").Process(target=die, args=[tmp_path / "cut"])
    process.start(), process.join()
    assert process.exitcode == 9 and [*(tmp_path / "cut").glob("*.tmp")]
    train(tmp_path / "cut", evaluate=True)
    assert_same(left_by(tmp_path / "cut"), uncut())
    assert not [*(tmp_path / "cut").glob("*.tmp")]


def test_the_compiled_engine_goes_on(small, uncut, tmp_path):
    options = {"engine": "compiled", "evaluate": True}
    train(tmp_path / "run", environment=Stops(40), **options)
    train(tmp_path / "run", **options)
    assert load_run(tmp_path / "run")["engine"] == "compiled"
    assert_same(left_by(tmp_path / "run"), uncut(engine="compiled"))


def test_the_stop_button(cut, uncut, capsys):
    agent = train(cut, evaluate=True)
    assert agent.decisions == 6 * DECISIONS
    train(cut, evaluate=True)
    assert "nothing is left to train after 6 episodes" in capsys.readouterr().out
    assert_same(left_by(cut), uncut())


class Normalizer:
    """A running mean of what is observed; an object of the user's own."""

    def __init__(self):
        self.mean, self.count = np.zeros(33, np.float32), 0

    def __call__(self, observations):
        self.count += 1
        self.mean += (observations.mean(axis=0) - self.mean) / self.count
        return observations - self.mean


def with_memories(cells):
    """Edits that readers make, all at once: each remembers something that later numbers need."""

    class Learner(cells.DDPG):
        steps = 0

        def __init__(self, settings, task):
            super().__init__(settings, task)
            self.log_alpha = torch.zeros((), requires_grad=True)
            self.others = [self.make_networks(settings, task)[1] for _ in range(2)]
            others = [weight for critic in self.others for weight in critic.parameters()]
            self.others_optimizer = torch.optim.Adam([self.log_alpha, *others], lr=0.01)
            schedule = torch.optim.lr_scheduler.StepLR
            self.schedule = schedule(self.others_optimizer, 5, gamma=0.9)

        def learn_critic(self, batch, weights=1.0):
            values = [critic(batch.observations, batch.actions) for critic in self.others]
            losses = [(batch.rewards - value).square().mean() for value in values]
            cells.descend(self.log_alpha.exp() * sum(losses), self.others_optimizer)
            self.schedule.step()
            self.steps += 1
            weight = self.steps % 7 * self.log_alpha.detach().exp()
            return super().learn_critic(batch._replace(rewards=values[0].detach()), weight)

    class Agent(cells.Agent):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            self.pair = [Normalizer(), Normalizer()]
            self.chosen = self.pair[0]

        def act(self, observations):
            return super().act(self.chosen(observations))

        def end_episode(self, scores):
            super().end_episode(scores)
            self.chosen = self.pair[1]

    for kind in (Learner, Agent):  # which are found by their names, as those of cells are
        kind.__qualname__ = kind.__name__
        globals()[kind.__name__] = kind
    return {"agent": Agent, "learner": Learner}


def test_an_edited_agent_goes_on_with_its_memory(small, tmp_path):
    """And with the engine that had given way, because a schedule cannot be compiled."""
    edit = with_memories(definitions()) | {"engine": "auto"}
    one = train(tmp_path / "whole", **edit)
    train(tmp_path / "cut", environment=Stops(47), **edit)
    other = train(tmp_path / "cut", **edit)
    assert_same(left_by(tmp_path / "whole", one), left_by(tmp_path / "cut", other))
    assert one.fast.engine == other.fast.engine == load_run(tmp_path / "cut")["engine"] == "torch"
    assert other.learner.log_alpha == one.learner.log_alpha
    assert other.learner.steps == one.learner.steps > 12 and other.chosen is other.pair[1]


def test_an_agent_that_cannot_be_saved_is_told_once(small, tmp_path, capsys):
    class Agent(definitions().Agent):
        def begin_episode(self):
            super().begin_episode()
            self.rule = lambda score: score > 30

    train(tmp_path / "run", agent=Agent)
    told = [line for line in capsys.readouterr().out.splitlines() if "cannot be saved" in line]
    assert len(told) == 1 and "lambda" in told[0]


def test_an_environment_that_cannot_save_itself_begins_anew(small, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(ReacherVectorEnv, "state", lambda self: None)  # as in a Unity build
    train(tmp_path / "run", environment=Stops(20))
    train(tmp_path / "run")
    assert "this environment cannot be saved" in capsys.readouterr().out
    assert len(left_by(tmp_path / "run")["scores.csv"]) == 7


def one_bit(path):
    """In the middle of the largest record, the numbers of a network or of the memory."""
    with zipfile.ZipFile(path) as file:
        record = max(file.infolist(), key=lambda record: record.file_size)
    content = bytearray(path.read_bytes())
    content[record.header_offset + record.file_size // 2] ^= 64
    path.write_bytes(content)


HARMS = {
    "damaged": one_bit,
    "RuntimeError|BadZipFile": lambda path: os.truncate(path, 5_000),
    "had no": lambda path: torch.save({"agent": {}}, path),
}


@pytest.mark.parametrize("told", HARMS)
def test_a_state_that_is_no_good_is_one_clear_error(cut, told):
    HARMS[told](cut / "state.pt")
    expected = rf"cut cannot be resumed, begin again with train = True.*({told})"
    with pytest.raises(ValueError, match=expected):
        train(cut, evaluate=True, resume=True)


def test_other_settings_or_networks_do_not_go_on(cut):
    class Learner(definitions().DDPG):
        make_networks = staticmethod(definitions().whole_networks)

    for changed, told in (
        ({"n_step": 5}, "n_step is 5 and was 3"),
        ({"engine": "compiled"}, "engine is 'compiled' and was 'torch'"),
        ({"metadata": {"seed": 1}}, "seed is 1 and was 0"),
        ({"learner": Learner}, "the actor is another network now"),
    ):
        with pytest.raises(ValueError, match=told):
            train(cut, **changed)


def test_an_earlier_run_moves_aside_and_can_go_on(cut, uncut, capsys):
    train(cut, episodes=1, resume=False)
    assert "an earlier run moves to cut.20" in capsys.readouterr().out
    [aside] = cut.parent.glob("cut.2*")
    train(aside, evaluate=True)
    assert_same(left_by(aside), uncut())


@pytest.mark.parametrize("resume", [True, False])
def test_a_second_training_in_one_folder_is_refused(small, uncut, tmp_path, resume):
    """While the first runs; nothing of the first has changed."""

    def disturb(agent, scores):
        if len(scores) == 2:
            with pytest.raises(ValueError, match="another training runs in"):
                train(tmp_path / "run", resume=resume)

    train(tmp_path / "run", evaluate=True, after_episode=disturb)
    assert_same(left_by(tmp_path / "run"), uncut())


@pytest.mark.skipif(os.name == "nt", reason="links are Unix's")
def test_a_link_in_the_place_of_a_temporary_file_is_not_followed(cut, tmp_path):
    (tmp_path / "other").write_text("of somebody else")
    for name in "scores.csv", "state.pt":
        (cut / f"{name}.tmp").symlink_to(tmp_path / "other")
    train(cut, evaluate=True)
    assert (tmp_path / "other").read_text() == "of somebody else"
    assert not [*cut.glob("*.tmp")]
