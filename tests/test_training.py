"""The training loop, in the notebook's definitions and in whole runs of the notebook itself."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import nbformat
import numpy as np
import papermill
import pytest
import torch

from tutorial.environments import open_environment
from tutorial.paths import NOTEBOOK, PROJECT
from tutorial.progress import show_progress
from tutorial.randomness import seed_everything
from tutorial.run import load_network
from tutorial.scores import read_scores

BRAIN = "ReacherBrain"
SMALL = {
    "actor_hidden": (16,),
    "critic_hidden": (16,),
    "batch_size": 16,
    "learning_starts": 20,
    "replay_capacity": 20_000,
    "gradient_steps": 2,
    "train_freq": 50,
}


class ShortEnvironment:
    """Episodes of a few decisions with given rewards, in the interface of the real one.

    Observations number the decisions from 0 on, through all episodes, as observed[:, 0].

    Args:
        rewards: one number per episode, the reward of each of its decisions.
        by_time_limit: whether an episode ends as the real ones do, or in a terminal state.
        interrupt: (episode, decision), from 1 on, in which the user presses Ctrl-C.
    """

    brain_names = [BRAIN]

    def __init__(self, rewards, arms=2, decisions=5, by_time_limit=True, interrupt=None):
        self.rewards, self.arms, self.decisions = list(rewards), arms, decisions
        self.by_time_limit, self.interrupt = by_time_limit, interrupt
        self.episode = self.number = 0
        self.actions = []

    def answer(self, reward, done=False):
        observations = np.random.default_rng(self.number).normal(size=(self.arms, 33))
        observations[:, 0] = self.number
        self.number += 1
        return {
            BRAIN: SimpleNamespace(
                vector_observations=observations,
                rewards=[reward] * self.arms,
                local_done=[done] * self.arms,
                max_reached=[done and self.by_time_limit] * self.arms,
                agents=list(range(self.arms)),
            )
        }

    def reset(self, train_mode=True, config=None):
        self.episode, self.decision = self.episode + 1, 0
        return self.answer(0.0)

    def step(self, actions):
        self.decision += 1
        if (self.episode, self.decision) == self.interrupt:
            raise KeyboardInterrupt
        self.actions.append(np.array(actions))
        reward = self.rewards[(self.episode - 1) % len(self.rewards)]
        return self.answer(reward, done=self.decision == self.decisions)


def make_agent(notebook, defaults, arms=2, seed=0, **overrides):
    generator = seed_everything(seed)
    return notebook.Agent(
        notebook.OBSERVATION_SCALE, 4, defaults(**{**SMALL, **overrides}), generator
    )


def train(
    notebook, defaults, folder, environment, max_episodes, stop_when_solved=True, **overrides
):
    agent = make_agent(notebook, defaults, environment.arms, **overrides)
    try:
        options = {"stop_when_solved": stop_when_solved}
        return notebook.train_agent(environment, agent, folder, max_episodes, **options)
    except KeyboardInterrupt:  # would end the whole test session
        pytest.fail("train_agent let an interrupt through")


def actor_in(notebook, defaults, path, **overrides):
    """Weights of a saved actor, once loaded into a network."""
    network = notebook.Actor(notebook.OBSERVATION_SCALE, 4, defaults(**{**SMALL, **overrides}))
    load_network(path, network)
    return [tensor.clone() for tensor in network.state_dict().values()]


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


# ------------------------------------------------------------------------------ what is remembered


def test_transitions_are_what_happened(notebook, defaults):
    """s, a, r and s' belong together, and none reaches over the end of an episode."""
    environment = ShortEnvironment([1.0, 2.0], arms=3, decisions=6)
    agent = make_agent(notebook, defaults, arms=3, n_step=1, train_freq=1, learning_starts=1_000)
    scores = [notebook.run_episode(environment, agent) for _ in range(2)]
    np.testing.assert_array_equal(scores, [[6.0] * 3, [12.0] * 3])
    notebook.store_new_transitions(agent)
    batch = notebook.split_rows(agent.replay.rows[: len(agent.replay)], 33, 4)
    # Episodes observe the numbers 0..6 and 7..13. In 6 and 13 the real environment has reset, and
    # the transitions into them are dropped.
    starts, ends = batch.observations[:, 0].tolist(), batch.next_observations[:, 0].tolist()
    expected = [number for number in (*range(0, 5), *range(7, 12)) for _ in range(3)]
    assert starts == expected and ends == [number + 1 for number in expected]
    assert batch.returns.tolist() == [10.0 if number < 6 else 20.0 for number in expected]  # scaled
    assert set(batch.discounts.tolist()) == {np.float32(agent.settings.discount).item()}
    taken = {
        number: environment.actions[number if number < 6 else number - 1]
        for number in set(expected)
    }
    for k, number in enumerate(expected):
        np.testing.assert_array_equal(batch.actions[k], taken[number][k % 3])


def test_acting_and_learning_alternate_as_the_settings_say(notebook, defaults):
    """A phase after every 7 decisions, as soon as 20 transitions are held."""
    agent = make_agent(notebook, defaults, train_freq=7, gradient_steps=3, n_step=1)
    notebook.run_episode(ShortEnvironment([1.0], decisions=50), agent)
    # Of two arms, 2 (k - 1) transitions are complete after k decisions: 12 after 7, 26 after 14.
    assert agent.num_updates == 3 * 6  # after 14, 21, 28, 35, 42 and 49
    assert len(agent.replay) == 2 * 48 and len(agent.new_transitions) > 0


# ---------------------------------------------------------------------------------- what is written


def test_every_episode_is_written_and_the_best_is_kept(notebook, defaults, tmp_path, capsys):
    """Episodes score 5, 15 and 10: the best weights are those after the second."""
    settings = {"train_freq": 2, "learning_starts": 16}
    scores = train(
        notebook, defaults, tmp_path / "three", ShortEnvironment([1, 3, 2]), 3, **settings
    )
    assert scores == [5, 15, 10]
    table = read_scores(tmp_path / "three" / "scores.csv")
    assert table["episode"].tolist() == [1, 2, 3] and table["score"].tolist() == [5, 15, 10]
    assert (np.diff(table["seconds"]) >= 0).all() and table["seconds"][0] >= 0
    names = sorted(path.name for path in (tmp_path / "three").iterdir())
    assert names == [
        "actor_best.safetensors",
        "actor_last.safetensors",
        "critic_best.safetensors",
        "critic_last.safetensors",
        "hyperparameters.json",
        "scores.csv",
    ]
    shown = capsys.readouterr().out.splitlines()[-1]
    for word in ("episode   3: score 10, average 10", "noise ", "critic loss ", "Q ", "TD error "):
        assert word in shown

    train(notebook, defaults, tmp_path / "two", ShortEnvironment([1, 3]), 2, **settings)
    best, last, second = (
        actor_in(notebook, defaults, tmp_path / path, **settings)
        for path in (
            "three/actor_best.safetensors",
            "three/actor_last.safetensors",
            "two/actor_last.safetensors",
        )
    )
    assert same(best, second) and not same(best, last)


def test_no_window_reaches_from_an_interrupted_episode_into_the_next(notebook, defaults):
    agent = make_agent(notebook, defaults, n_step=3)
    environment = ShortEnvironment([1, 1], interrupt=(1, 4))
    with pytest.raises(KeyboardInterrupt):
        notebook.run_episode(environment, agent)
    notebook.run_episode(environment, agent)
    rows = np.concatenate(agent.new_transitions)
    start, end = rows[:, 0], rows[:, -33]  # the environment numbers its observations here
    first_of_second_episode = 4  # after 0 to 3; the fourth decision was interrupted
    assert ((start >= first_of_second_episode) & (end > start)).all() and len(rows) == 2 * 4


@pytest.mark.parametrize("stop_when_solved, episodes", [(True, 100), (False, 103)])
def test_training_stops_when_solved_unless_told_to_go_on(
    notebook, defaults, tmp_path, stop_when_solved, episodes
):
    environment = ShortEnvironment([6.0], decisions=5)  # 30 an episode: just enough
    scores = train(
        notebook, defaults, tmp_path, environment, 103, stop_when_solved, learning_starts=20_000
    )
    assert len(scores) == episodes
    assert len(read_scores(tmp_path / "scores.csv")["score"]) == episodes


def test_it_learns(notebook, defaults):
    """In its first episode, 20 arms reach 2.5.

    Random torques score 0.13, and without learning NoisyNet's own wandering stays near 1. Small
    networks, but otherwise the defaults: a wrong sign or a target without a future fails here.
    """
    agent = notebook.Agent(defaults(mirrors=True, hidden_units=64), seed_everything(0))
    with open_environment("", 20, 0) as environment:
        assert notebook.run_episode(environment, agent).mean() > 2.5


# ------------------------------------------------------------------------ numbers that are no good


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize(
    "what, place",
    [
        ("an observation", "act"),
        ("a reward", "remember"),
        ("a loss of critic or actor", "critic_loss"),
        ("a loss of critic or actor", "actor_loss"),
        ("output.bias of the critic", "learn"),
        ("a TD error that becomes a priority", "td_errors"),
    ],
)
def test_a_number_that_is_not_finite_ends_the_training(
    notebook, defaults, tmp_path, monkeypatch, what, place, value
):
    """With its name, and before a state or weights with it are written."""
    spoil = {"after": 30}

    def spoiled(function):
        def call(*arguments, **options):
            spoil["after"] -= 1
            if place in ("act", "remember") and spoil["after"] <= 0:
                arguments, which = [*arguments], 3 if place == "remember" else 1
                arguments[which] = np.multiply(arguments[which], np.float32(value))
            result = function(*arguments, **options)
            if place == "learn":
                with torch.no_grad():
                    arguments[0].critic.output.bias.fill_(value)
            return result * value if place in ("critic_loss", "actor_loss", "td_errors") else result

        return call

    owner = {"act": notebook.Agent, "remember": notebook.Agent, "learn": notebook.DDPG}
    owner = owner.get(place, notebook.DDPG if place == "td_errors" else notebook)
    monkeypatch.setattr(owner, place, spoiled(getattr(owner, place)))
    overrides = {"train_freq": 10, "gradient_steps": 1} if place == "learn" else {"train_freq": 10}
    environment = ShortEnvironment([1.0], decisions=12)
    with pytest.raises(FloatingPointError, match=f"{what} is not finite") as error:
        train(notebook, defaults, tmp_path / "run", environment, 9, n_step=1, **overrides)
    assert "train = 'resume' goes on" in error.value.__notes__[0]


def test_a_critic_that_diverges_is_named(capsys):
    log, settings = {"Q": -30.0}, SimpleNamespace(discount=0.9, anneal_episodes=8)
    schedules = SimpleNamespace(annealed_episodes=0)
    agent = SimpleNamespace(
        log=log, settings=settings, schedules=schedules, largest_reward=1.0, learns=True
    )
    show_progress(agent, [1.0], 2.0)
    assert "the critic diverges: the largest possible Q is 10" in capsys.readouterr().out
    log["Q"] = 19.0
    show_progress(agent, [1.0], 2.0)
    assert "diverges" not in capsys.readouterr().out


# ------------------------------------------------------------------------- the notebook as a whole


def run_notebook(output, **parameters):
    """Execute the notebook as a user of papermill would."""
    papermill.execute_notebook(
        NOTEBOOK,
        output,
        parameters=parameters,
        kernel_name="python3",
        cwd=str(PROJECT),
        progress_bar=False,
        request_save_on_cell_execute=False,
    )
    return nbformat.read(output, as_version=4)


def output_of(executed):
    outputs = [output for cell in executed.cells for output in cell.get("outputs", [])]
    return "".join(output.get("text", "") for output in outputs)


def test_the_whole_notebook_runs_on_another_environment(notebook, tmp_path):
    """The arms' own run is that of the notebook's checked outputs."""
    parameters = {"env_location": "gymnasium:Pendulum-v1", "num_agents": 2, "max_episodes": 1}
    run_notebook(tmp_path / "run.ipynb", out_dir=str(tmp_path / "runs"), **parameters)
    folder = tmp_path / "runs" / "default" / "seed0"
    assert read_scores(folder / "scores.csv")["episode"].tolist() == [1]
    about = json.loads((folder / "hyperparameters.json").read_text())
    assert about["num_agents"] == 2
    assert not notebook.Hyperparameters(**about["hyperparameters"]).mirrors
    assert (folder / "actor_best.safetensors").exists()


def test_a_bad_parameter_ends_the_notebook_before_anything_is_written(tmp_path):
    with pytest.raises(papermill.PapermillExecutionError, match="did you mean 'default'"):
        run_notebook(tmp_path / "run.ipynb", preset="defalt", out_dir=str(tmp_path / "runs"))
    assert not (tmp_path / "runs").exists()


def test_the_notebook_shows_the_stored_agent_without_training(tmp_path):
    executed = run_notebook(
        tmp_path / "show.ipynb", train=False, num_agents=3, out_dir=str(tmp_path / "runs")
    )
    assert not (tmp_path / "runs").exists()
    assert re.search(r"solved at episode: 100\b", output_of(executed))
    assert re.search(r"an episode without noise: mean 3\d\.", output_of(executed))


@pytest.mark.parametrize("arms, few", [(20, 1), (100, 1), (7, 3), (1, 20)])
def test_the_best_score_is_of_at_least_twenty_arms(notebook, defaults, arms, few):
    """One arm with a slow goal says little: what decides is the mean over successive episodes."""
    schedules = notebook.Schedules(defaults(), 30.0)
    episodes = np.random.default_rng(1).uniform(0, 40, (50, arms))
    scores, best = [], None
    for count, arm_scores in enumerate(episodes, start=1):
        scores.append(arm_scores.mean())
        schedules.update_scores(scores, arms)
        if count >= few:
            last = episodes[count - few : count].mean()
            best = last if best is None else max(best, last)
        assert schedules.best_score == (None if best is None else pytest.approx(best))
    assert len(scores) == 50
