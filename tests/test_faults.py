"""Numbers that are not numbers, a critic that diverges, sums that drift, memory that grows."""

from __future__ import annotations

import gc
import math
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
import torch

import small_training
from small_training import ARMS, assert_same, left_by
from tapejit import compiled
from tutorial import health, progress
from tutorial.environments import open_environment
from tutorial.notebook import load_definitions
from tutorial.paths import NOTEBOOK
from tutorial.scores import read_scores
from tutorial.states import TrainingState

EPISODES, FAULTY = 5, 3  # of a training; the episode in which something goes wrong
BRAIN = "ReacherBrain"


@pytest.fixture
def small(notebook, monkeypatch):
    """`small(folder, ...)` trains in this process, as `small_training.train` says."""
    small_training.shrink(monkeypatch.setattr)

    def train(folder, *arguments, **options):
        return small_training.train(notebook, folder, *arguments, episodes=EPISODES, **options)

    return train


@pytest.fixture(scope="session")
def uncut(notebook, tmp_path_factory):
    """`uncut(kind)`: a training in which nothing goes wrong.

    It has the `outcome`, and the numbers of learning `steps` and of `updates` of the tree after
    each episode.
    """
    known = {}

    def train(kind="default"):
        if kind not in known:
            folder = tmp_path_factory.mktemp("healthy") / "run"
            run = known[kind] = SimpleNamespace(steps=[], updates=[])
            cells, count = small_training.cells(notebook, kind), [0]
            tree_update = cells.tree_update

            def update(*arguments):
                count[0] += 1
                tree_update(*arguments)

            def after_episode(agent, scores):
                run.steps.append(agent.num_updates)
                run.updates.append(count[0])

            with pytest.MonkeyPatch.context() as patch:
                small_training.shrink(patch.setattr)
                patch.setattr(cells, "tree_update", update)
                small_training.train(notebook, folder, kind, EPISODES, after_episode=after_episode)
            run.outcome = left_by(folder)
        return known[kind]

    return train


def stops_and_goes_on(small, healthy, folder, what, kind="default", repair=None, **options):
    """Training stops with what, where and when; resumed without the fault, it ends as healthy."""
    with pytest.raises(FloatingPointError, match=what) as error:
        small(folder, kind, **options)
    message = str(error.value)
    assert f"episode {FAULTY}, decision " in message and "gradient step " in message
    assert str(folder) in message and "resume = True" in message
    assert TrainingState(folder).paths()[0].stem == f"state_{FAULTY - 1:07d}"
    assert len(read_scores(folder / "scores.csv")["score"]) == FAULTY - 1
    if repair:
        repair()
    small(folder, kind)
    assert_same(left_by(folder), healthy.outcome)
    return message


# --------------------------------------------------------------------- numbers from the environment


class Faulty:
    """The real environment, one of whose answers is spoilt.

    Args:
        decision: of the faulty episode, from 1 on; 0 is the answer to reset.
        spoil: changes that answer.
    """

    def __init__(self, decision, spoil):
        self.environment = open_environment("", ARMS, 0)
        self.decision, self.spoil = decision, spoil
        self.episode = self.calls = 0

    def __getattr__(self, name):
        return getattr(self.environment, name)

    def reset(self, **options):
        self.episode, self.calls = self.episode + 1, -1
        return self.answer(self.environment.reset(**options))

    def step(self, actions):
        return self.answer(self.environment.step(actions))

    def answer(self, answer):
        self.calls += 1
        if (self.episode, self.calls) == (FAULTY, self.decision):
            self.spoil(answer[BRAIN])
        return answer


def observation(value):
    def spoil(answer):
        answer.vector_observations[1, 7] = value

    return spoil


def reward(value):
    def spoil(answer):
        answer.rewards[0] = value

    return spoil


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize("kind", ["default", "uniform replay and OU noise"])
@pytest.mark.parametrize(
    "decision, value",
    [(0, math.nan), (1, math.nan), (5, math.nan), (0, 1e39), (9, math.inf), (4, -math.inf)],
)
def test_an_observation_that_is_no_number(small, uncut, tmp_path, kind, decision, value):
    """It stops before anything acts on it. 1e39 is more than single precision holds."""
    environment = Faulty(decision, observation(value))
    message = stops_and_goes_on(
        small, uncut(kind), tmp_path, "an observation is not finite", kind, environment=environment
    )
    assert environment.calls == decision
    assert f"decision {(FAULTY - 1) * small_training.DECISIONS + decision}" in message


@pytest.mark.parametrize("decision, value", [(0, 1e25), (5, -1e25), (9, 1.1e15)])
def test_an_observation_that_is_too_large(small, uncut, tmp_path, decision, value):
    """The networks would make NaN of it, or 0: with what, where, and what helps."""
    environment = Faulty(decision, observation(value))
    what = r"observation 7 of arm 1 is .*must not exceed 1e\+15.*RescaleObservation"
    stops_and_goes_on(small, uncut(), tmp_path, what, environment=environment)
    assert environment.calls == decision


@pytest.mark.parametrize("engine", ["torch", "compiled"])
def test_observations_are_checked_for_every_engine(notebook, engine):
    agent = small_training.make_agent(notebook)
    agent.learner = compiled.learner(agent.ddpg, engine)
    largest = np.full((ARMS, 33), health.LARGEST_OBSERVATION, np.float32)
    assert np.isfinite(agent.act(largest)).all()
    with pytest.raises(FloatingPointError, match="observation 0 of arm 0 is 1e"):
        agent.act(1e10 * largest)


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize("kind", ["default", "uniform replay and OU noise"])
@pytest.mark.parametrize(
    "decision, value",
    [
        (1, math.nan),
        (6, math.nan),
        (small_training.DECISIONS, math.nan),
        (1, 1e39),
        (6, math.inf),
        (small_training.DECISIONS, -math.inf),
    ],
)
def test_a_reward_that_is_no_number(small, uncut, tmp_path, kind, decision, value):
    environment = Faulty(decision, reward(value))
    stops_and_goes_on(
        small, uncut(kind), tmp_path, "a reward is not finite", kind, environment=environment
    )
    assert environment.calls == decision


# --------------------------------------------------------------------------- numbers of the learner


class AtStep:
    """Does something in the course of one gradient step of the faulty episode.

    Each of these is called by that step, after `DDPG.learn` has begun.
    """

    def __init__(self, notebook, monkeypatch, number):
        self.notebook, self.monkeypatch = notebook, monkeypatch
        self.number, self.ddpg, self.learn = number, None, notebook.DDPG.learn
        self.steps = 0

        def learn(ddpg, *arguments):
            self.steps += 1
            self.ddpg = ddpg
            if self.now():
                self.before_step()
            result = self.learn(ddpg, *arguments)
            if self.now():
                self.after_step()
            return result

        monkeypatch.setattr(notebook.DDPG, "learn", learn)

    def now(self):
        return self.steps == self.number

    def before_step(self):
        pass

    def after_step(self):
        pass

    def replace(self, name, change):
        """Change what this function of the notebook returns during that step."""
        function = getattr(self.notebook, name)

        def changed(*arguments):
            result = function(*arguments)
            return change(result) if self.now() else result

        self.monkeypatch.setattr(self.notebook, name, changed)

    def gradient(self, network, index, value):
        """Spoil one element of a gradient in that step."""

        def spoil():
            parameter = list(getattr(self.ddpg, network).parameters())[index]

            def spoilt(gradient):
                gradient = gradient.clone()
                gradient.view(-1)[0] = value
                return gradient

            self.handle = parameter.register_hook(spoilt)

        self.before_step, self.after_step = spoil, lambda: self.handle.remove()

    def tensor(self, network, key, value):
        """Spoil one element of a network's state after that step."""

        def spoil():
            with torch.no_grad():
                getattr(self.ddpg, network).state_dict()[key].view(-1)[-1] = value

        self.after_step = spoil


LOSSES = ["critic_loss", "actor_loss"]
GRADIENTS = [("critic", 0), ("critic", -1), ("actor", 0), ("actor", -1)]
TENSORS = [
    ("critic", "output.bias"),
    ("critic", "blocks.0.1.weight"),
    ("actor", "layers.3.bias"),
    ("actor", "layers.2.0.sigma_weight"),
    ("target_actor", "layers.3.weight"),
    ("target_critic", "output.weight"),
]
STATISTICS = [
    ("actor", "layers.1.1.running_var"),
    ("critic", "blocks.1.1.running_mean"),
    ("actor", "layers.2.1.running_mean"),
    ("target_critic", "blocks.0.1.running_var"),
]


def learner_faults():
    """Names of faults; how to set each; what the error says; the kind of training."""
    for value in (math.nan, math.inf):
        for name in LOSSES:
            yield (
                f"{name} {value}",
                lambda at, name=name, value=value: at.replace(name, lambda loss: loss * value),
                "is not finite",
                "default",
            )
        for network, index in GRADIENTS:
            yield (
                f"gradient {network} {index} {value}",
                lambda at, network=network, index=index, value=value: at.gradient(
                    network, index, value
                ),
                f"the gradient of .* of the {network}| of the {network} is not finite",
                "default",
            )
        for network, key in TENSORS:
            what = "is not finite" if "target" in network else f"of the {network} is not finite"
            yield (
                f"{network} {key} {value}",
                lambda at, network=network, key=key, value=value: at.tensor(network, key, value),
                what,
                "default",
            )
        for network, key in STATISTICS:
            yield (
                f"{network} {key} {value}",
                lambda at, network=network, key=key, value=value: at.tensor(network, key, value),
                "is not finite",
                "batch normalization",
            )


FAULTS = list(learner_faults())


@pytest.mark.parametrize("name, fault, what, kind", FAULTS, ids=[name for name, *_ in FAULTS])
def test_a_number_of_the_learner(
    small, notebook, uncut, tmp_path, monkeypatch, name, fault, what, kind
):
    """In the middle of a phase, or, if the fault begins with its last step, in the next phase."""
    healthy = uncut(kind)
    assert healthy.steps[FAULTY - 1] - healthy.steps[FAULTY - 2] >= 4
    cells = small_training.cells(notebook, kind)
    poison = AtStep(cells, monkeypatch, healthy.steps[FAULTY - 2] + 2)
    fault(poison)

    def repair():
        poison.number = None

    stops_and_goes_on(small, healthy, tmp_path, what, kind, repair)


@pytest.mark.parametrize("kind", ["default", "ring that wraps around"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_priority_that_is_no_number(small, notebook, uncut, tmp_path, monkeypatch, kind, value):
    """One that got into the tree."""
    healthy, count, cells = uncut(kind), [0], small_training.cells(notebook, kind)
    tree_update = cells.tree_update

    def update(tree, leaves, priorities):
        count[0] += 1
        if count[0] == healthy.updates[FAULTY - 2] + 2:
            priorities = np.append(priorities[:-1], value)  # the last of a place counts
        tree_update(tree, leaves, priorities)

    def repair():
        monkeypatch.setattr(cells, "tree_update", tree_update)

    monkeypatch.setattr(cells, "tree_update", update)
    stops_and_goes_on(small, healthy, tmp_path, "priorit", kind, repair)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_td_error_that_is_no_number_gets_no_priority(notebook, defaults, value):
    replay = notebook.PrioritizedReplay(8, 1, np.random.default_rng(0))
    replay.add(np.zeros((2, 1)), np.ones(2))
    before = replay.tree.copy()
    for call in (
        lambda: replay.update(np.array([0, 1]), np.array([1.0, value])),
        lambda: replay.add(np.zeros((1, 1)), np.array([value])),
    ):
        with pytest.raises(FloatingPointError, match="a TD error that becomes a priority"):
            call()
        np.testing.assert_array_equal(replay.tree, before)


def test_the_error_says_where(notebook):
    """Of many numbers the first bad one, and not all of them. Large ones are no bad ones."""
    values = np.full((20, 33), 1e38, np.float32)
    health.require_finite("a thing", values)
    values[3, 7] = -math.inf
    with pytest.raises(FloatingPointError) as error:
        health.require_finite("a thing", values)
    assert "a thing is not finite" in str(error.value) and "-inf" in str(error.value)
    assert "[3, 7]" in str(error.value) and len(str(error.value)) < 200


# ------------------------------------------------------------------------- a critic that diverges


def shown_by(agent, capsys):
    with progress.progress_bar(10) as bar:
        progress.show_progress(bar, agent, [1.0])
    return "".join(capsys.readouterr())


@pytest.mark.parametrize(
    "q, reward, said",
    [
        (2.1, 0.03, True),
        (-2.1, 0.03, True),
        (1.9, 0.03, False),
        (-1.9, 0.03, False),
        (0.4, 0.0, False),
    ],
)  # no reward so far: there is nothing to compare with
def test_the_bar_names_a_critic_that_diverges(notebook, capsys, q, reward, said):
    """With gamma 0.97 no value exceeds 0.03 / (1 - 0.97) = 1; twice that is the limit."""
    agent = small_training.make_agent(notebook)
    agent.log["Q"], agent.largest_reward = q, reward
    text = shown_by(agent, capsys)
    assert ("critic diverges" in text) == said
    if said:
        assert "largest possible Q=1" in text


class Paying:
    """Pays 1 for everything, and ends after a few decisions by its time limit."""

    brain_names = [BRAIN]

    def __init__(self, decisions=50):
        self.decisions, self.generator = decisions, np.random.default_rng(0)

    def answer(self, reward=0.0, done=False):
        return {
            BRAIN: SimpleNamespace(
                vector_observations=self.generator.normal(size=(ARMS, 33)),
                rewards=[reward] * ARMS,
                local_done=[done] * ARMS,
                max_reached=[done] * ARMS,
            )
        }

    def reset(self, train_mode=True):
        self.decision = 0
        return self.answer()

    def step(self, actions):
        self.decision += 1
        return self.answer(1.0, self.decision == self.decisions)


@pytest.mark.parametrize("diverging", [True, False])
def test_a_critic_that_diverges_in_training_is_seen(notebook, tmp_path, capsys, diverging):
    """Without normalization and target networks, and with large steps; or as it is."""
    wild = {
        "tau": 1.0,
        "critic_learning_rate": 0.05,
        "actor_learning_rate": 0.05,
        "gradient_steps": 50,
    }
    cells = notebook
    if diverging:
        cells = load_definitions(NOTEBOOK, [("nn.LayerNorm(outputs), nn.ReLU()", "nn.ReLU()")])
    agent = small_training.make_agent(cells, discount=0.99, **(wild if diverging else {}))
    cells.train_agent(Paying(), agent, tmp_path, 4)
    text = "".join(capsys.readouterr())
    assert ("critic diverges" in text) == diverging == (abs(agent.log["Q"]) > 2000)
    assert "largest possible Q=1e+03" in text or not diverging  # rewards of 10 / (1 - 0.99)


# ---------------------------------------------------------------------------------------- long runs


def test_sums_do_not_drift(notebook):
    """Twenty million updates of priorities of all sizes, in the tree of the default settings.

    Each sum is that of its two children to the last bit, so the root differs from the exact sum
    by 16 roundings at most: 16 * 2^-53 = 2e-15.
    """
    leaves, chance = 2**16, np.random.default_rng(0)
    tree = np.zeros(2 * leaves)
    for _ in range(20):
        indices = chance.integers(leaves, size=1_000_000)
        notebook.tree_update(tree, indices, 10.0 ** chance.uniform(-6, 6, len(indices)))
    assert tree[1] == pytest.approx(math.fsum(tree[leaves:]), rel=1e-14)
    np.testing.assert_array_equal(tree[1:leaves], tree[2::2] + tree[3::2])
    assert (tree >= 0).all()


def test_memory_does_not_grow(notebook, tmp_path, monkeypatch):
    """Resident memory after episode 20 and after 60; the replay is full before.

    If a decision left one array behind, say the observations of 100 arms in double precision,
    26 kB, then 40 episodes of 30 decisions would leave 32 MB. Half of that is allowed.
    """
    small_training.shrink(monkeypatch.setattr)
    monkeypatch.setattr(small_training.task, "EPISODE_DECISIONS", 30)
    settings = notebook.make_hyperparameters("default", small_training.SMALL | {"train_freq": 30})
    agent = notebook.Agent(notebook.OBSERVATION_SCALE, 4, settings, np.random.default_rng(0))
    memory = {}

    def measure(agent, scores):
        if len(scores) in (20, 60):
            gc.collect()
            memory[len(scores)] = psutil.Process().memory_info().rss

    with open_environment("", 100, 0) as environment:
        notebook.train_agent(environment, agent, tmp_path, 60, after_episode=measure)
    assert len(agent.replay) == settings.replay_capacity
    assert memory[60] - memory[20] < 16e6, memory
