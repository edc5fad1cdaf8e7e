"""Environments of Gymnasium, as the notebook opens them."""

import gymnasium
import numpy as np
import pytest

from lines import Line
from reacher import DelayedRewards, ReacherVectorEnv
from reacher.episode import evaluate_policy
from small_training import make_plain_agent
from tutorial.environments import (
    open_environment,
    task_of,
    what_followed,
)


def opened(name="Pendulum-v1", copies=1, seed=0):
    return open_environment(f"gymnasium:{name}", copies, seed)


def answers(env, steps):
    """The observations of a reset, and the answers to random actions."""
    actions = np.random.default_rng(0).uniform(-1, 1, (steps, *env.action_space.shape))
    return [env.reset()[0], *(env.step(action.astype(np.float32)) for action in actions)]


def test_copies_differ_and_do_not_depend_on_their_number():
    def observations(copies, seed):
        env = opened(copies=copies, seed=seed)
        return np.stack([env.reset()[0] for _ in range(2)])

    first = observations(3, 4)
    np.testing.assert_array_equal(observations(5, 4)[:, :3], first)
    assert len(np.unique(np.concatenate([*first, *observations(3, 5)]), axis=0)) == 12


def test_actions_are_scaled_to_the_bounds(register):
    low, high = np.float32([-2, 0, 1e-3]), np.float32([2, 10, 7])
    space = gymnasium.spaces.Box(low, high)
    env = opened(register(action_space=space, end=99))
    env.reset()
    for action in ([-1, -1, -1], [1, 1, 1], [0, 0, 0]):
        env.step(np.float32([action]))
    for action, wanted in zip(Line.made[0].actions, [low, high, [0, 5, 3.5005]], strict=True):
        # Rounding to float32 is of the size of the range.
        np.testing.assert_allclose(action, wanted, atol=2.0**-23 * 10)


@pytest.mark.parametrize("how", ["terminated", "truncated"])
def test_what_followed_the_last_decision_is_known(how, register):
    env = opened(register(end=3, how=how), copies=2)
    _, *steps = answers(env, 4)
    for t, (observations, _, terminated, truncated, infos) in enumerate(steps, 1):
        followed, known = what_followed(observations, truncated, infos)
        assert known.all() and followed[:, 1].tolist() == [1 if t == 4 else t] * 2
        assert (terminated | truncated).tolist() == [t == 3] * 2
    assert steps[2][0][0, 1] == 0  # of the next episode


def test_what_followed_the_last_decision_of_the_arms_is_not():
    env = ReacherVectorEnv(2, max_episode_steps=3)
    _, *steps = answers(env, 3)
    known = [what_followed(answer[0], *answer[3:])[1].tolist() for answer in steps]
    assert known == [[True] * 2] * 2 + [[False] * 2]


def test_copies_that_end_apart_count_with_their_first_episode(register):
    env = opened(register(end=-1), copies=3)  # copy k ends after k + 1 steps
    scores = evaluate_policy(env, lambda seen: np.zeros((3, 1), np.float32))
    np.testing.assert_array_equal(scores, [0.5, 1.5, 3.0])


def test_copies_that_end_apart_are_remembered_by_copy(notebook, register):
    """Copy k ends after k + 1 steps, by a time limit whose last observation is told."""

    def networks(settings):
        actor, critic = notebook.mlp(2, 8, 1), notebook.mlp(3, 8, 1)
        scale = np.ones(2, np.float32)
        return notebook.PlainActor(scale, actor), notebook.PlainCritic(scale, critic)

    agent = make_plain_agent(networks, agent=notebook.NStepAgent, n_step=2)
    scores = notebook.run_episode(opened(register(end=-1), copies=3), agent)
    np.testing.assert_array_equal(scores, [0.5, 1.5, 3.0])
    stored = agent.memory.at(slice(agent.memory.size))
    # From step s of a copy that ends after e: to s + 2 or e; rewards are 5, 10, 15.
    columns = stored.observations[:, 1], stored.next_observations[:, 1], stored.rewards
    found = sorted(zip(*(np.round(column.tolist(), 4) for column in columns), strict=True))
    one, two = [(0, 1, 5.0)], [(0, 2, 14.7), (1, 2, 10.0)]
    three = [(0, 2, 14.7), (1, 3, 24.55), (2, 3, 15.0)]
    # The third copy ends last. By then the first has played thrice, and the second begun again.
    assert found == sorted(3 * one + two + three)


@pytest.mark.parametrize(
    ("spaces", "message"),
    [
        ({"action_space": gymnasium.spaces.Discrete(2)}, r"Discrete\(2\); only continuous actions"),
        ({"action_space": gymnasium.spaces.Box(-np.inf, 1, (1,))}, r"\(1,\), float32\); only"),
        ({"action_space": gymnasium.spaces.Box(1, 1, (1,))}, "finite bounds that differ"),
        ({"observation_space": gymnasium.spaces.Box(0, 1, (4, 4))}, r"\(4, 4\), float32\); only"),
    ],
)
def test_an_unknown_environment_or_spaces_that_do_not_fit_are_named(register, spaces, message):
    with pytest.raises(ValueError, match=message):
        opened(register(**spaces))
    with pytest.raises(ValueError, match="Gymnasium cannot make Pendulum-v7"):
        opened("Pendulum-v7")


@pytest.mark.parametrize(
    ("what", "part", "value"),
    [("observation", 0, np.nan), ("observation", 0, 1e39), ("reward", 1, np.inf)],
)  # 1e39 is infinite in float32
@pytest.mark.parametrize("at", [2, 3])  # the last step of an episode is the third
def test_numbers_that_are_none_name_the_environment(register, monkeypatch, what, part, value, at):
    step = Line.step

    def spoiled(line, action):
        answer = [*step(line, action)]
        if line is Line.made[1] and line.steps == at:
            answer[part] = answer[part] + value
        return tuple(answer)

    monkeypatch.setattr(Line, "step", spoiled)
    env = opened(register(end=3), copies=2)
    with pytest.raises(FloatingPointError, match=rf"test/Line-v3: the {what} is not .*(inf|nan)"):
        answers(env, at)
    assert len(Line.made[1].actions) == at


def test_rewards_of_copies_that_end_apart_can_be_delayed(register):
    env = DelayedRewards(opened(register(end=-1), copies=3), every=2)
    _, *steps = answers(env, 4)
    found = np.array([rewards for _, rewards, *_ in steps]).T.tolist()
    assert found == [[0.5] * 4, [0, 1.5, 0, 1.5], [0, 1.5, 1.5, 0]]
    with pytest.raises(ValueError, match="every must be from 1"):
        DelayedRewards(env, every=0)


def test_an_environment_that_breaks_the_interface_is_named(register, monkeypatch, capsys):
    for value in ("no", 0):
        monkeypatch.setattr(Line, "step", lambda line, _: (line.observe(), 0.0, value, False, {}))
        env = opened(register())
        env.reset()
        with pytest.raises(TypeError, match=rf"test/Line-v3: terminated is {value!r}, neither"):
            env.step(env.action_space.sample())
    assert "test/Line-v3 has no time limit" in capsys.readouterr().out
    for threshold in ("30", np.nan):
        env.spec.reward_threshold = threshold
        with pytest.raises(ValueError, match="reward_threshold of test/Line-v3 must be a number"):
            task_of(env, None)
