"""The training loop, in the notebook's definitions and in whole runs of the notebook itself."""

import re

import numpy as np
import pytest
import torch
from gymnasium.vector import VectorEnv
from safetensors.torch import load_file

from small_training import (
    DECISIONS,
    Stops,
    code_cells,
    joined,
    left_by,
    make_agent,
    make_plain_agent,
    outcome,
    train,
)
from tutorial.environments import open_environment
from tutorial.notebook import definitions
from tutorial.paths import CHECKPOINTS, DOC
from tutorial.randomness import seed_everything
from tutorial.results import read_scores
from tutorial.run import run_folder


class ShortEnvironment(VectorEnv):
    """Episodes of a few decisions with given rewards, in Gymnasium's interface.

    Observations number the decisions from 0 on, through all episodes, as observed[:, 0].

    Args:
        rewards: one number per episode, the reward of each of its decisions.
    """

    def __init__(self, rewards, arms=2, decisions=5):
        self.rewards, self.num_envs, self.decisions = rewards, arms, decisions
        self.episode = self.number = 0
        self.actions = []

    def answer(self, reward, done=False):
        observations = np.random.default_rng(self.number).normal(size=(self.num_envs, 33))
        observations[:, 0] = self.number
        self.number += 1
        return outcome(observations.astype(np.float32), np.full(self.num_envs, reward), done)

    def reset(self):
        self.episode, self.decision = self.episode + 1, 0
        return self.answer(0.0)[0], {}

    def step(self, actions):
        self.decision += 1
        self.actions.append(np.array(actions))
        reward = self.rewards[(self.episode - 1) % len(self.rewards)]
        return self.answer(reward, done=self.decision == self.decisions)


@pytest.mark.parametrize("kind", ["plain", "n_step", "whole"])
def test_transitions_are_what_happened(notebook, kind):
    """s, a, r and s' belong together, and none reaches over the end of an episode."""
    environment = ShortEnvironment([1.0, 2.0], arms=3, decisions=6)
    if kind == "plain":
        agent = make_plain_agent()
    elif kind == "n_step":
        agent = make_plain_agent(agent=notebook.NStepAgent, n_step=1)
    else:
        agent = make_agent(n_step=1, train_freq=1_000)
    scores = [notebook.run_episode(environment, agent) for _ in range(2)]
    np.testing.assert_array_equal(scores, [[6.0] * 3, [12.0] * 3])
    batch = joined(agent.waiting) if kind == "whole" else agent.memory.at(slice(30))
    # Episodes observe the numbers 0..6 and 7..13. In 6 and 13 the real environment has reset, and
    # the transitions into them are dropped.
    starts, ends = batch.observations[:, 0].tolist(), batch.next_observations[:, 0].tolist()
    expected = [number for number in (*range(0, 5), *range(7, 12)) for _ in range(3)]
    assert starts == expected and ends == [number + 1 for number in expected]
    assert batch.rewards.tolist() == [10.0 if number < 6 else 20.0 for number in expected]  # scaled
    assert set(batch.discounts.tolist()) == {np.float32(0.97).item()}
    for k, number in enumerate(expected):
        taken = environment.actions[number if number < 6 else number - 1]
        np.testing.assert_array_equal(batch.actions[k], taken[k % 3])


@pytest.mark.parametrize("agent, options", [("PlainAgent", {}), ("NStepAgent", {"n_step": 1})])
def test_after_an_end_for_good_nothing_follows(notebook, agent, options):
    """Of two arms the first ends by its time limit, which drops the decision."""
    agent = make_plain_agent(agent=getattr(notebook, agent), **options)
    seen, actions = np.zeros((2, 33), np.float32), np.zeros((2, 4), np.float32)
    agent.remember(seen, actions, *outcome(seen, [1.0, 1.0]))
    agent.remember(seen, actions, *outcome(seen, [1.0, 2.0], True, by_time_limit=[True, False]))
    stored = agent.memory.at(slice(agent.memory.size))
    assert stored.rewards.tolist() == [10.0, 10.0, 20.0]  # scaled
    assert stored.discounts.tolist() == [np.float32(0.97)] * 2 + [0.0]


def test_no_window_reaches_from_an_interrupted_episode_into_the_next(notebook):
    agent = make_agent(n_step=3, train_freq=1_000)
    environment = Stops(4, ShortEnvironment([1, 1]))
    with pytest.raises(KeyboardInterrupt):
        notebook.train_episode(environment, agent)
    notebook.train_episode(environment, agent)
    batch = joined(agent.waiting)  # the environment numbers its observations here
    start, end = batch.observations[:, 0], batch.next_observations[:, 0]
    first_of_second_episode = 4  # after 0 to 3; the fourth decision was interrupted
    is_of_second = start >= first_of_second_episode
    assert (end > start).all() and (end[~is_of_second] < first_of_second_episode).all()
    assert is_of_second.tolist() == [False] * 2 + [True] * 8


def test_every_episode_is_written_and_the_best_is_kept(notebook, tmp_path, capsys):
    """Episodes score 5, 15 and 10: the best weights are those after the second."""
    for name, rewards in (("three", [1, 3, 2]), ("two", [1, 3])):
        agent = make_agent(learning_starts=16, train_freq=2)
        environment = ShortEnvironment(rewards)
        scores = notebook.train_agent(environment, agent, tmp_path / name, len(rewards))
        assert scores == [5 * reward for reward in rewards]
    table = read_scores(tmp_path / "three" / "scores.csv")
    assert table["episode"].tolist() == [1, 2, 3] and table["score"].tolist() == [5, 15, 10]
    assert (np.diff(table["seconds"]) >= 0).all() and table["seconds"][0] >= 0
    files = {path.name for path in (tmp_path / "three").iterdir() if path.is_file()}
    weights = {f"{x}_{y}.safetensors" for x in ("actor", "critic") for y in ("best", "last")}
    assert files == weights | {"hyperparameters.json", "scores.csv"}
    shown = capsys.readouterr().out
    for word in ("episode   3: score 10, average 10", "Q ", "TD error "):
        assert word in shown
    paths = "three/actor_best", "three/actor_last", "two/actor_last"
    actors = (load_file(tmp_path / f"{path}.safetensors") for path in paths)
    best, last, second = (actor["layers.0.weight"] for actor in actors)
    assert torch.equal(best, second) and not torch.equal(best, last)


@pytest.mark.parametrize("stop_when_solved, episodes", [(True, 100), (False, 103)])
def test_training_stops_when_solved(notebook, tmp_path, stop_when_solved, episodes):
    environment = ShortEnvironment([6.0])  # 30 an episode: just enough
    agent = make_agent(learning_starts=5_000)
    options = {"stop_when_solved": stop_when_solved}
    scores = notebook.train_agent(environment, agent, tmp_path / "run", 103, **options)
    assert len(scores) == len(read_scores(tmp_path / "run" / "scores.csv")["score"]) == episodes


def test_both_agents_learn(notebook):
    """In their second episodes, with 20 arms, the whole agent has 4.9 and the plain one 3.2.

    Random torques score 0.13, and without learning NoisyNet's own wandering stays near 1. A wrong
    sign or a target without a future fails here.
    """
    whole = notebook.Agent(notebook.Hyperparameters(hidden_units=64), seed_everything(0))
    plain = make_plain_agent(agent=notebook.FastAgent, train_freq=10, gradient_steps=20)
    for agent in (whole, plain):
        environment = open_environment("", 20, 0)
        scores = [notebook.run_episode(environment, agent).mean() for _ in range(2)]
        assert scores[-1] > 2, scores


def test_the_stop_button_keeps_what_was_trained(small, tmp_path, capsys):
    """It is what a training of as many episodes leaves, bit for bit."""
    train(tmp_path / "cut", environment=Stops(3 * DECISIONS + 5))
    assert "interrupted after 3 episodes, which are kept in" in capsys.readouterr().out
    train(tmp_path / "three", episodes=3)
    assert left_by(tmp_path / "cut") == left_by(tmp_path / "three")


def test_an_earlier_run_moves_aside(small, tmp_path, capsys):
    train(tmp_path / "run", episodes=2)
    before = left_by(tmp_path / "run")
    train(tmp_path / "run", episodes=1)
    assert "an earlier run moves to run.20" in capsys.readouterr().out
    [aside] = tmp_path.glob("run.2*")
    assert left_by(aside) == before != left_by(tmp_path / "run")


def test_a_second_training_in_one_folder_is_refused(small, tmp_path):
    """While the first runs, which goes on."""

    def disturb(agent, scores):
        if len(scores) == 2:
            with pytest.raises(ValueError, match="another training runs in"):
                train(tmp_path / "run")

    train(tmp_path / "run", episodes=3, after_episode=disturb)
    train(tmp_path / "alone", episodes=3)
    assert left_by(tmp_path / "run") == left_by(tmp_path / "alone")


@pytest.mark.parametrize("place", ["observation", "reward", "weight"])
def test_a_number_that_is_not_finite_ends_it(notebook, tmp_path, place):
    """With its name, and before weights with it are written."""
    environment, agent = ShortEnvironment([1.0], decisions=12), make_agent()
    answer, update = environment.answer, agent.learner.update_targets

    def spoiled(*arguments, **options):
        found = answer(*arguments, **options)
        if environment.number > 30:
            found[0 if place == "observation" else 1][0] *= np.nan
        return found

    def spoil_a_weight():
        update()
        with torch.no_grad():
            agent.learner.critic.layers[2].bias.fill_(torch.nan)

    if place == "weight":
        agent.learner.update_targets = spoil_a_weight
    else:
        environment.answer = spoiled
    with pytest.raises(FloatingPointError, match="is not finite") as error:
        notebook.train_agent(environment, agent, tmp_path / "run", 9)
    assert "which are kept in" in error.value.__notes__[0]
    for path in (tmp_path / "run").glob("*.safetensors"):
        assert all(tensor.isfinite().all() for tensor in load_file(path).values())


def test_another_environment_is_learned_as_the_page_of_parameters_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (DOC / "parameters.md").read_text()
    [code] = re.findall(r"```python\n(.+?)```", page, re.DOTALL)
    names = vars(definitions()) | {"num_agents": 2, "seed": 0}
    exec(code.replace("max_episodes=20", "max_episodes=1"), names)
    assert names["scores"][0] < -100 and (tmp_path / "runs" / "pendulums" / "scores.csv").exists()


def test_the_notebook_shows_the_stored_agent_without_training(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    [parameters] = code_cells("parameters")
    names = {**vars(definitions()), "environment": open_environment("", 3, 0)}
    exec(f"{parameters}\ntrain, num_agents = False, 3", names)
    names["folder"] = run_folder(CHECKPOINTS, names["preset"], names["seed"])
    for text in "def train_agent", "training_summary", "actor_best.safetensors":
        [source] = code_cells(text=text)
        exec(source, names)
    told = capsys.readouterr().out
    assert not [*tmp_path.iterdir()]
    assert "solved at episode: 100" in told
    assert re.search(r"an episode without noise: mean 3\d\.", told)
