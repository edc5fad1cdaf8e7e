"""Trainings that are cut and go on: the same numbers, bit for bit, or one clear error."""

from __future__ import annotations

import collections
import itertools
import multiprocessing
import os
import pickle
import random
import sys
import zipfile

import numpy as np
import pytest
import torch

import small_training
from reacher import ReacherVectorEnv
from small_training import ARMS, DECISIONS, KINDS, assert_same, left_by, train
from tutorial.environments import open_environment, task_of
from tutorial.notebook import definitions, extensions
from tutorial.randomness import seed_everything
from tutorial.run import load_run
from tutorial.settings import make_settings
from tutorial.states import pack


@pytest.fixture
def small(monkeypatch):
    small_training.shrink(monkeypatch.setattr)


@pytest.fixture(scope="session")
def apart():
    """`apart(folder, ...)`: a small training in a process of its own; its exit code."""
    if os.name == "nt":
        pytest.skip("Windows starts no process as a copy of another")
    for_the_server = {"PYTHONPATH": os.pathsep.join(sys.path), "WARM_UP": "1"}
    os.environ.update(for_the_server)
    methods = multiprocessing.get_all_start_methods()
    processes = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    processes.set_forkserver_preload(["small_training"])  # without an effect on others

    def run(folder, **options):
        process = processes.Process(
            target=small_training.train_apart, args=(str(folder),), kwargs=options
        )
        process.start()
        process.join()
        return process.exitcode

    return run


@pytest.fixture(scope="session")
def uncut(apart, tmp_path_factory):
    """`uncut(kind, engine)`: what a training in one go leaves."""
    done = {}

    def get(kind="default", engine="torch"):
        if (kind, engine) not in done:
            folder = tmp_path_factory.mktemp("uncut") / "run"
            assert apart(folder, kind=kind, engine=engine, evaluate=True) == 0
            done[kind, engine] = left_by(folder)
        return done[kind, engine]

    return get


@pytest.fixture
def cut(small, tmp_path):
    """The folder of a training that was cut in the fourth of six episodes."""
    train(tmp_path / "cut", environment=Stops(3), evaluate=True)
    return tmp_path / "cut"


class Stops:
    """The real environment, in which somebody presses the stop button after some episodes."""

    def __init__(self, episodes, environment=None):
        self.environment = environment or open_environment("", ARMS, 0)
        self.left = episodes * DECISIONS + 5

    def __getattr__(self, name):
        return getattr(self.environment, name)

    def step(self, actions):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return self.environment.step(actions)


# ------------------------------------------------------------------------------------------- kills

only_unix = pytest.mark.skipif(os.name == "nt", reason="timers, limits and links are Unix's")


@only_unix
@pytest.mark.parametrize("moment, kind", [(4, "default"), *enumerate(KINDS)])
def test_killed_at_random_moments(apart, uncut, tmp_path, kind, moment):
    """Up to three kills in one training, anywhere from playing to the middle of a file."""
    chance = random.Random(f"{kind} {moment}")
    folder, save_every, killed = tmp_path / "run", 1 + 2 * (moment % 2), 0
    options = {"kind": kind, "evaluate": True, "save_every": save_every}
    for _ in range(3):
        killed_at = chance.randint(1, 4 * DECISIONS), chance.uniform(0, 0.01)
        killed += apart(folder, killed_at=killed_at, **options) != 0
    assert killed
    assert apart(folder, **options) == 0
    assert_same(left_by(folder), uncut(kind))


@only_unix
def test_killed_with_the_compiled_engine(apart, uncut, tmp_path):
    whole = uncut(engine="compiled")
    for killed_at in ((1, 1e-4), (40, 0.003)):
        assert apart(tmp_path / "run", engine="compiled", evaluate=True, killed_at=killed_at) != 0
    assert apart(tmp_path / "run", engine="compiled", evaluate=True) == 0
    assert load_run(tmp_path / "run")["engine"] == "compiled"
    assert_same(left_by(tmp_path / "run"), whole)


@only_unix
@pytest.mark.parametrize("limit", [300, 60_000])
def test_a_disk_that_is_full(apart, uncut, tmp_path, limit):
    """No file may grow beyond a limit: an error says so, and with space it goes on."""
    folder = tmp_path / "run"
    assert apart(folder, file_limit=limit, evaluate=True) == 3
    assert "File too large" in (tmp_path / "run.log").read_text()
    assert apart(folder, evaluate=True) == 0
    assert_same(left_by(folder), uncut())


def test_the_stop_button(cut, uncut, capsys):
    agent = train(cut, evaluate=True)
    assert agent.decisions == 6 * DECISIONS
    assert_same(left_by(cut), uncut())
    train(cut, evaluate=True)
    assert "nothing is left to train after 6 episodes" in capsys.readouterr().out
    assert_same(left_by(cut), uncut())


# ------------------------------------------------------------------------- agents with own memory


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

    class Actor(cells.NoisyActor):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            self.register_buffer("gain", torch.ones(()), persistent=False)

        def forward(self, observations, noise=None):
            if noise is not None:
                self.gain *= 0.99
            return self.gain * super().forward(observations, noise)

    class Learner(cells.DDPG):
        steps = 0

        @staticmethod
        def make_networks(settings, task):
            actor, critic = cells.noisy_networks(settings, task)
            return Actor(task.scale, actor.layers), critic

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
            batch = batch._replace(rewards=values[0].detach())
            return super().learn_critic(batch, weights * self.log_alpha.detach().exp())

        def update_targets(self):
            self.steps += 1
            if self.steps % 7 == 0:
                super().update_targets()

    class AgingReplay(cells.PrioritizedReplay):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            self.ages = np.zeros(self.ring.capacity, np.int64)
            self.seen = collections.deque(maxlen=5)

        def sample(self, shape, beta):
            size = self.ring.size
            self.ages[:size] += 1
            self.seen.append(int(self.ages.max()))
            old = self.ages[:size] + sum(self.seen) * self.generator.random(size)
            indices = np.broadcast_to(old.argsort()[: shape[-1]], shape).copy()
            return indices, self.ring.at(indices), np.ones(shape, np.float32)

    class Agent(cells.Agent):
        wandering, epsilon = None, np.float32(1)

        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            self.memory = AgingReplay(self.settings, self.generator)
            self.pair = [Normalizer(), Normalizer()]
            self.chosen = self.pair[0]

        def act(self, observations):
            return super().act(self.chosen(observations))

        def torque_noise(self, shape):
            self.epsilon *= np.float32(0.99)
            before = 0 if self.wandering is None else self.wandering
            self.wandering = np.float32(0.9) * before + self.epsilon * super().torque_noise(shape)
            return self.wandering

        def end_episode(self, scores):
            super().end_episode(scores)
            self.chosen = self.pair[1]

    return {"agent": Agent, "learner": Learner}


def test_an_edited_agent_goes_on_with_its_memory(small, tmp_path, capsys):
    """And with the engine that had given way, because a schedule cannot be compiled."""
    edit = with_memories(definitions()) | {"engine": "auto"}
    one = train(tmp_path / "whole", **edit)
    train(tmp_path / "cut", environment=Stops(3), **edit)
    other = train(tmp_path / "cut", **edit)
    assert_same(left_by(tmp_path / "whole", one), left_by(tmp_path / "cut", other))
    assert one.fast.engine == other.fast.engine == load_run(tmp_path / "cut")["engine"] == "torch"
    for name in ("log_alpha", "steps"):
        assert getattr(one.learner, name) == getattr(other.learner, name)
    assert one.learner.steps > 12 and one.memory.seen == other.memory.seen
    assert other.chosen is other.pair[1] and "not saved" not in capsys.readouterr().out


@pytest.mark.parametrize("name", ["TD3", "D4PG", "CrossQ"])
def test_other_learners_go_on(small, tmp_path, name):
    edit = {"learner": getattr(extensions(), name)}
    one = train(tmp_path / "whole", **edit)
    train(tmp_path / "cut", environment=Stops(3), **edit)
    other = train(tmp_path / "cut", **edit)
    assert_same(left_by(tmp_path / "whole", one), left_by(tmp_path / "cut", other))


def test_what_cannot_be_saved_is_named_once(small, tmp_path, capsys):
    class Agent(definitions().Agent):
        def begin_episode(self):
            super().begin_episode()
            self.numbers, self.by_type = itertools.count(), {int: 0}

    train(tmp_path / "run", agent=Agent)
    told = [line for line in capsys.readouterr().out.splitlines() if "not saved" in line]
    assert len(told) == 1 and told[0].endswith("not saved is: .agent.numbers, .agent.by_type")


def test_what_is_not_yet_filled_takes_no_room(small, tmp_path):
    """A million transitions are 288 MB; their sum tree, which is saved as it is, 17 MB."""
    train(tmp_path / "run", episodes=3, replay_capacity=1_000_000)
    assert (tmp_path / "run" / "state.pt").stat().st_size < 25e6


# ------------------------------------------------------------------------------ other environments


def test_other_environments_go_on_as_well(tmp_path):
    def run(folder, stop=None):
        cells = definitions()
        environment = open_environment("gymnasium:Pendulum-v1", ARMS, 0)
        task = task_of(environment, cells.ARMS)
        settings = make_settings(cells.Hyperparameters, "default", small_training.SMALL, task)
        agent = cells.Agent(settings, seed_everything(0), task=task)
        played = Stops(1, environment) if stop else environment
        resume = (tmp_path / folder / "state.pt").exists()
        options = {"resume": resume, "save_every": 1}
        cells.train_agent(played, agent, tmp_path / folder, 3, **options)
        return left_by(tmp_path / folder, agent)

    whole = run("whole")
    run("cut", stop=True)
    assert_same(run("cut"), whole)


def test_an_environment_that_cannot_save_itself_begins_anew(small, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(ReacherVectorEnv, "state", lambda self: None)  # as in a Unity build
    train(tmp_path / "run", environment=Stops(1))
    train(tmp_path / "run")
    assert "this environment cannot be saved" in capsys.readouterr().out
    assert len(left_by(tmp_path / "run")["scores.csv"]) == 7


# -------------------------------------------------------------------------- states that are no good


def rewritten(folder, change):
    """Change what the state holds."""
    state = torch.load(folder / "state.pt", weights_only=True)
    change(state["parts"])
    torch.save(state, folder / "state.pt")


class Code:
    def __reduce__(self):
        return os.mkdir, ("code has run",)


def of_another_learner(parts):
    parts["agent"] = pack(small_training.make_agent(hidden_units=4), "agent", {}, [])


def one_bit(folder):
    """In the middle of the largest record, the numbers of a network or of the memory."""
    path = folder / "state.pt"
    with zipfile.ZipFile(path) as file:
        record = max(file.infolist(), key=lambda record: record.file_size)
    content = bytearray(path.read_bytes())
    content[record.header_offset + record.file_size // 2] ^= 64
    path.write_bytes(content)


def with_part(*names, value):
    """Another content of a part of the agent; without names, of the agent."""

    def harm(folder):
        def change(parts):
            for name in ("agent", *names)[:-1]:
                parts = parts[name]["parts"]
            parts[("agent", *names)[-1]] = value

        rewritten(folder, change)

    return harm


def negative_priority(folder):
    def change(parts):
        memory = parts["agent"]["parts"]["memory"]["parts"]
        numbers = memory["tree"]["parts"]["sums"]["numbers"]
        numbers[len(numbers) // 2 + 3] = -1

    rewritten(folder, change)


NO_LIST = {"kind": "list", "parts": {}}
HARMS = {
    "one bit": one_bit,
    "an empty list for an agent": with_part(value=NO_LIST),
    "an agent without anything": with_part(value={"kind": "object", "parts": {}}),
    "a number for the learner": with_part("learner", value=NO_LIST),
    "a negative priority": negative_priority,
    "a position beyond the ring": with_part("memory", "ring", "position", value=5_000),
    "more in the ring than it holds": with_part("memory", "ring", "size", value=10**9),
    "a thousand million episodes": with_part("schedules", "annealed_episodes", value=10**9),
    "cut": lambda folder: os.truncate(folder / "state.pt", 5_000),
    "gone": lambda folder: (folder / "state.pt").unlink(),
    "a pickle": lambda folder: (folder / "state.pt").write_bytes(pickle.dumps(Code())),
    "code in a state": lambda folder: torch.save({"parts": Code()}, folder / "state.pt"),
    "foreign": lambda folder: torch.save({"model": torch.zeros(3)}, folder / "state.pt"),
    "other networks": lambda folder: rewritten(folder, of_another_learner),
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_state_that_is_no_good_is_one_clear_error(cut, tmp_path, monkeypatch, harm):
    monkeypatch.chdir(tmp_path)
    HARMS[harm](cut)
    told = {"one bit": "damaged", "a position beyond the ring": "ring.position is 5000"}
    expected = r"cut cannot be resumed, begin again with train = True.*" + told.get(harm, "")
    with pytest.raises(ValueError, match=expected):
        train(cut, evaluate=True, resume=True)
    assert not (tmp_path / "code has run").exists()


def test_a_state_writes_no_file_outside_of_its_run(cut, uncut, tmp_path):
    """Names in a state are never names of files."""

    def change(parts):
        tables = parts["tables"]["parts"]
        tables["../evil.csv"] = tables["scores.csv"]
        learner = parts["agent"]["parts"]["learner"]["parts"]
        learner["../../evil"] = learner["actor"]

    rewritten(cut, change)
    before = set(tmp_path.rglob("*"))
    train(cut, evaluate=True)
    after = {path for path in tmp_path.rglob("*") if "tfevents" not in path.name}  # TensorBoard's
    assert after <= before
    assert_same(left_by(cut), uncut())


def test_other_settings_do_not_go_on(cut):
    for changed, told in (
        ({"n_step": 5}, "n_step is 5 and was 3"),
        ({"engine": "compiled"}, "engine is 'compiled' and was 'torch'"),
        ({"metadata": {"seed": 1}}, "seed is 1 and was 0"),
    ):
        with pytest.raises(ValueError, match=told):
            train(cut, **changed)


# ------------------------------------------------------------------------------------- the folder


@only_unix
def test_a_link_in_the_place_of_a_temporary_file_is_not_followed(cut, tmp_path):
    (tmp_path / "other").write_text("of somebody else")
    for name in "scores.csv", "state.pt":
        (cut / f"{name}.tmp").symlink_to(tmp_path / "other")
    train(cut, evaluate=True)
    assert (tmp_path / "other").read_text() == "of somebody else"
    assert not [*cut.glob("*.tmp")]


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
    assert [path.name for path in tmp_path.iterdir()].count("run") == 1
