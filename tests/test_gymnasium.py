"""The Reacher for Gymnasium: registration, spaces, episodes, seeds, wrappers and pictures."""

from __future__ import annotations

import copy
import importlib.util
import os
import pickle
import subprocess
import sys
import types
import warnings

import gymnasium
import matplotlib.pyplot as plt
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import NormalizeObservation, RecordEpisodeStatistics
from matplotlib.backend_bases import FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg

from reacher import ReacherEnvironment, drawing
from reacher.gymnasium import DelayedRewards
from reacher.gymnasium import arms as gymnasium_env
from reacher.physics import Physics
from reacher.task import Task
from tutorial.paths import PROJECT

ENV_ID = "reacher/Reacher-v0"
BRAIN = "ReacherBrain"
DECISIONS = 1001  # of an episode


def make(**options):
    return gymnasium.make(ENV_ID, **options)


def make_vec(num_envs, **options):
    return gymnasium.make_vec(ENV_ID, num_envs=num_envs, **options)


def random_actions(decisions, arms, seed=0):
    """Uniform torques, (decisions, arms, 4) float32."""
    return np.random.default_rng(seed).uniform(-1, 1, (decisions, arms, 4)).astype(np.float32)


def assert_same(answer, expected):
    """Two answers of Gymnasium agree in every number, bit for bit, and in every type."""
    assert type(answer) is type(expected)
    if isinstance(answer, dict):
        assert answer.keys() == expected.keys()
        answer, expected = list(answer.values()), [expected[key] for key in answer]
    if isinstance(answer, (tuple, list)) or getattr(answer, "dtype", 0) == np.dtype(object):
        assert len(answer) == len(expected)
        for one, other in zip(answer, expected, strict=True):
            assert_same(one, other)
    else:
        assert getattr(answer, "dtype", None) == getattr(expected, "dtype", None)
        np.testing.assert_array_equal(answer, expected)


@pytest.fixture
def no_display(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)


# ------------------------------------------------------------------------------------ registration


def test_both_kinds_are_registered():
    env = make()
    assert isinstance(env.unwrapped, gymnasium_env.ReacherEnv)
    assert env.spec.max_episode_steps == DECISIONS and env.spec.reward_threshold == 30
    assert env.metadata["render_fps"] == 12.5
    assert type(env.unwrapped).metadata["render_modes"] == ["human", "rgb_array"]
    envs = make_vec(3)
    assert isinstance(envs, gymnasium_env.ReacherVectorEnv) and envs.unwrapped is envs
    assert envs.num_envs == 3 and envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert envs.observation_space.shape == (3, 33) and envs.action_space.shape == (3, 4)
    assert "autoreset_mode" not in gymnasium_env.METADATA
    for space in (env.action_space, envs.single_action_space):
        assert space == gymnasium.spaces.Box(-1, 1, (4,), np.float32)
    assert env.observation_space == envs.single_observation_space
    assert env.observation_space.dtype == np.float32


def run_elsewhere(script, folder):
    """Run a script in a fresh Python, in a folder that holds nothing of ours."""
    subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        check=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
    )


FRESH = """
import sys
import reacher
assert not {"matplotlib", "torch", "IPython", "grpc"} & set(sys.modules)
import gymnasium
gymnasium.make("reacher/Reacher-v0").reset(seed=0)
assert "matplotlib" not in sys.modules
"""


def test_importing_the_package_is_cheap(tmp_path):
    run_elsewhere(FRESH, tmp_path)


@pytest.mark.parametrize(
    "script",
    [
        """env = gymnasium.make("reacher:reacher/Reacher-v0")""",
        """env = gymnasium.make_vec("reacher:reacher/Reacher-v0", num_envs=1)""",
        """import reacher; env = gymnasium.make("reacher/Reacher-v0")""",
    ],
)
def test_the_names_work_from_any_folder(script, tmp_path):
    run_elsewhere(
        f"import gymnasium; {script}; env.reset(seed=0); spec = env.spec\n"
        "assert spec.id == 'reacher/Reacher-v0' and spec.max_episode_steps == 1001",
        tmp_path,
    )


ALONE = """
import importlib, pkgutil, sys
for name in ("helpers", "tutorial", "torch", "matplotlib", "jax"):
    sys.modules[name] = None  # importing it is an error
import reacher
for module in pkgutil.walk_packages(reacher.__path__, "reacher."):
    importlib.import_module(module.name)
"""


def test_no_module_of_the_package_needs_the_rest_of_the_project(tmp_path):
    """Nor PyTorch, nor matplotlib unless something is drawn."""
    if importlib.util.find_spec("unityagents") is None:
        pytest.skip("unityagents is not installed")
    run_elsewhere(ALONE, tmp_path)


@pytest.mark.parametrize(
    "options",
    [{}, {"render_mode": "rgb_array"}, {"goal_speed": 0.0}, {"goal_speed": 9, "goal_size": 12}],
    ids=str,
)
def test_gymnasiums_checker_finds_nothing(options, no_display):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make(**options).unwrapped)


def test_specs_make_the_same_environment_again():
    env = make(goal_size=7.0, render_mode="rgb_array", max_episode_steps=9)
    envs = make_vec(2, goal_speed=3.0, autoreset_mode="SameStep", max_episode_steps=9)
    for spec in (
        env.spec,
        gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json()),
        pickle.loads(pickle.dumps(env.spec)),
    ):
        again = gymnasium.make(spec)
        assert again.spec == env.spec and again.render_mode == "rgb_array"
        assert_same(again.reset(seed=1), env.reset(seed=1))
    for spec in (
        envs.spec,
        gymnasium.envs.registration.EnvSpec.from_json(envs.spec.to_json()),
        pickle.loads(pickle.dumps(envs.spec)),
    ):
        again = gymnasium.make_vec(spec)
        assert again.spec == envs.spec and again.num_envs == 2
        assert again.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
        assert_same(again.reset(seed=1), envs.reset(seed=1))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_goes_on_where_the_original_is(copied):
    """In the middle of an episode, and over its end."""
    for env in (make(goal_size=30.0).unwrapped, make_vec(2, goal_size=30.0, max_episode_steps=9)):
        env.reset(seed=5)
        for _ in range(4):
            env.step(env.action_space.sample())
        other = copied(env)
        for _ in range(8):
            action = env.action_space.sample()
            assert_same(other.step(action), env.step(action))
        assert_same(other.reset(), env.reset())
        assert_same(other.reset(seed=7), env.reset(seed=7))
        other.step(env.action_space.sample())  # moves the copy alone
        action = env.action_space.sample()
        assert (other.step(action)[0] != env.step(action)[0]).any()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_of_the_unity_shaped_environment_goes_on_too(copied):
    for goals in ("own", "unity"):
        with ReacherEnvironment(3, seed=1, goals=goals) as env:
            env.reset()
            for actions in random_actions(4, 3):
                env.step(actions)
            other = copied(env)
            for actions in random_actions(3, 3, seed=1):
                one, expected = (e.step(actions)[BRAIN].vector_observations for e in (other, env))
                np.testing.assert_array_equal(one, expected)
            one, expected = (e.reset()[BRAIN].vector_observations for e in (other, env))
            np.testing.assert_array_equal(one, expected)


def test_a_copy_draws_its_own_pictures(monkeypatch):
    env = make(render_mode="rgb_array").unwrapped
    env.reset(seed=0)
    picture = env.render()
    other = copy.deepcopy(env)
    env.close()
    assert_alike([other.render()], [picture])


# ------------------------------------------------------------------------------------------ infos


@pytest.mark.parametrize("goal_size", [5.0, 16.0])
def test_infos_are_those_that_observations_and_rewards_imply(goal_size):
    """The hand hangs 3 m below the forearm's centre, along the forearm's own y."""
    env, total, seen = make(goal_size=goal_size), 0.0, set()
    observation, info = env.reset(seed=2)
    for (action,) in [[None], *random_actions(DECISIONS, 1)]:
        if action is not None:
            observation, reward, _, truncated, info = env.step(action)
            total += reward
        x, y, z, w = observation[16:20].astype(float)
        along = np.array([2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)])
        distance = np.linalg.norm(observation[13:16] + 3 * along - observation[26:29])
        assert type(info["distance"]) is float and type(info["touching"]) is bool
        assert abs(info["distance"] - distance) < 1e-5  # single precision of 14 m
        if abs(distance - 1 - goal_size / 2) > 1e-5:
            assert info["touching"] == (distance < 1 + goal_size / 2)
        assert info["is_success"] is (total >= 30 - 1e-3)
        seen.add(info["touching"])
    assert truncated and (goal_size == 5.0 or seen == {True, False})


def test_success_is_a_score_of_thirty_in_this_episode():
    env = make(goal_size=1000.0)  # every decision pays 0.04
    for _ in range(2):
        assert env.reset(seed=0)[1]["is_success"] is False
        successes = [env.step(np.zeros(4))[4]["is_success"] for _ in range(DECISIONS)]
        assert successes.index(True) == 749 and all(successes[749:])


# ----------------------------------------------------------------------- attributes of many arms


def assert_alike(pictures, expected):
    """But for the rounding of single pixels, which the software renderer does not always repeat."""
    assert len(pictures) == len(expected)
    for one, other in zip(pictures, expected, strict=True):
        assert (np.abs(one.astype(int) - other).max(axis=-1) > 8).mean() < 1e-4


def test_attributes_of_many_arms_are_had_as_of_gymnasiums_own():
    envs = make_vec(3, goal_size=7.0, render_mode="rgb_array")
    twin = SyncVectorEnv([lambda: make(goal_size=7.0, render_mode="rgb_array")] * 3)
    for one in (envs, twin):
        one.reset(seed=[1, 2, 3])
        assert one.get_attr("goal_size") == one.call("goal_size") == (7.0,) * 3
        assert one.get_attr("render_mode") == ("rgb_array",) * 3
        one.set_attr("goal_size", 9.0)
        assert one.get_attr("goal_size") == (9.0,) * 3
        one.set_attr("goal_size", [8, 8, 8])
    assert_alike(envs.call("render"), twin.call("render"))
    assert envs.get_attr("action_space") == twin.get_attr("action_space")
    assert envs.get_attr("observation_space") == twin.get_attr("observation_space")
    numbers = [[one.random() for one in each.get_attr("np_random")] for each in (envs, twin)]
    assert numbers[0] == numbers[1]
    # The new size holds from the next reset on, in pictures too.
    assert_same(envs.reset(seed=[4, 5, 6]), twin.reset(seed=[4, 5, 6]))
    assert_alike(envs.render(), twin.render())
    for actions in random_actions(40, 3):
        assert_same(envs.step(actions), twin.step(actions))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda envs: envs.get_attr("colour"), AttributeError, "colour"),
        (lambda envs: envs.call("step", 0), ValueError, r"call step\(\) of the vector environment"),
        (
            lambda envs: envs.set_attr("goal_speed", 2),
            AttributeError,
            "only goal_size.*'goal_speed'",
        ),
        (lambda envs: envs.set_attr("goal_size", [1, 2]), ValueError, r"same for all 2.*\[1, 2\]"),
        (lambda envs: envs.set_attr("goal_size", [1]), ValueError, r"same for all 2.*\[1\]"),
        (lambda envs: envs.set_attr("goal_size", -1), ValueError, "number from 0 to 1e"),
    ],
)
def test_what_cannot_be_had_of_many_arms_is_said(call, error, message):
    envs = make_vec(2)
    with pytest.raises(error, match=message):
        call(envs)
    assert envs.get_attr("goal_size") == (5.0, 5.0)


# --------------------------------------------------------------------------------------- variants


@pytest.mark.parametrize(
    ("name", "options"), [("SmallGoals", {"goal_size": 2.0}), ("QuickGoals", {"goal_speed": 2.0})]
)
def test_variants_are_the_task_with_other_goals(name, options):
    env_id = f"reacher/Reacher{name}-v0"
    for variant, expected in (
        (gymnasium.make(env_id), make(**options)),
        (gymnasium.make_vec(env_id, num_envs=2), make_vec(2, **options)),
    ):
        assert_same(variant.reset(seed=3), expected.reset(seed=3))
        for _ in range(20):
            action = variant.action_space.sample()
            assert_same(variant.step(action), expected.step(action))
        assert variant.observation_space == expected.observation_space
        assert variant.spec.max_episode_steps == DECISIONS
    assert isinstance(variant, gymnasium_env.ReacherVectorEnv)


def test_delayed_rewards_are_paid_every_fifteen_decisions_and_at_the_end():
    delayed, usual = (
        gymnasium.make(env_id, goal_size=30.0)
        for env_id in ("reacher/ReacherDelayedRewards-v0", ENV_ID)
    )
    for seed in (0, 1):
        assert_same(delayed.reset(seed=seed), usual.reset(seed=seed))
        paid, earned = [], []
        for (action,) in random_actions(DECISIONS, 1, seed):
            answer, expected = delayed.step(action), usual.step(action)
            assert_same(answer[2:], expected[2:])
            paid.append(answer[1])
            earned.append(expected[1])
        assert answer[3] and sum(earned) > 1
        ends = [*range(15, DECISIONS, 15), DECISIONS]
        starts = [0, *ends[:-1]]
        for start, end in zip(starts, ends, strict=True):
            assert paid[start : end - 1] == [0.0] * (end - 1 - start)
            assert abs(paid[end - 1] - sum(earned[start:end])) < 1e-12


def test_delayed_rewards_of_many_arms_and_other_environments():
    envs = gymnasium.make_vec("reacher/ReacherDelayedRewards-v0", num_envs=2)
    envs.reset(seed=0)
    rewards = [envs.step(envs.action_space.sample())[1] for _ in range(15)]
    assert np.shape(rewards) == (15, 2) and not np.any(rewards[:14])
    again = gymnasium.make(gymnasium.make("reacher/ReacherDelayedRewards-v0").spec)
    assert again.spec.additional_wrappers[0].kwargs == {"every": 15}
    pendulum = DelayedRewards(gymnasium.make("Pendulum-v1"), every=2)
    pendulum.reset(seed=0)
    assert [pendulum.step(np.zeros(1))[1] < 0 for _ in range(4)] == [False, True, False, True]
    with pytest.raises(ValueError, match="every must be from 1"):
        DelayedRewards(pendulum, every=0)


# ------------------------------------------------------------------------------- spaces and rewards


def test_the_bounds_on_speeds_are_those_that_energy_allows():
    """The derivation in `observation_space`, with masses and inertia of the model."""
    model = Physics(1).model
    across, along = model.body_inertia[1:, 0], model.body_inertia[1:, 1]
    np.testing.assert_array_equal(across, model.body_inertia[1:, 2])
    assert (model.body_mass[1:] == 1).all()
    to_center, to_elbow, beyond = 4.02, 7.02, 3 + model.body_ipos[2, 1]
    # |v| of the centres of mass in terms of the speeds across, where both arms lie in one line.
    moves = np.array([[to_center, 0], [to_elbow, beyond]])
    ratio = max(np.linalg.eigvals(np.linalg.solve(np.diag(across), moves.T @ moves)).real)
    push = 0.02 * 9.81 * np.sqrt(model.body_mass[1:].sum() / 2)
    energy = 0.0
    for _ in range(2000):
        energy = 49 / 2 * across.sum() + (np.sqrt(energy * ratio / (1 + ratio)) + push) ** 2
    assert energy == pytest.approx(5497.2, abs=0.1)  # it has converged
    easiest = np.linalg.inv(np.diag(across) + moves.T @ moves)
    speed = np.sqrt(2 * energy * np.diag(moves @ easiest @ moves.T))
    turn_across = np.sqrt(2 * energy * np.diag(easiest))
    turn_along = 3.5 + np.sqrt(49 + 2 * energy / along) / 2
    turn = np.hypot(turn_across, turn_along)
    derived = [turn[0], *[turn_across[0]] * 2, *[speed[0]] * 3, *[turn[1]] * 3, *[speed[1]] * 3]
    high = make().observation_space.high[[*range(7, 13), *range(20, 26)]]
    assert (high > derived).all() and (high < 1.05 * np.array(derived)).all()


def held_at_random(arms, generator, hold):
    """Full torques, each turned with a probability of 1 / hold."""
    signs = generator.choice([-1.0, 1.0], (arms, 4))
    while True:
        signs = np.where(generator.random((arms, 4)) < 1 / hold, -signs, signs)
        yield signs


def corners(arms, generator):
    signs = 1.0 - 2.0 * (np.arange(arms)[:, None] >> np.arange(4) & 1)
    while True:
        yield signs


def uniform(arms, generator):
    while True:
        yield generator.uniform(-1, 1, (arms, 4))


POLICIES = {
    "uniform": uniform,
    "corners": corners,
    "turned often": lambda arms, generator: held_at_random(arms, generator, 4),
    "turned seldom": lambda arms, generator: held_at_random(arms, generator, 40),
}


@pytest.mark.parametrize("policy", POLICIES)
def test_spaces_and_pay_hold_every_step(policy):
    arms, decisions = 100, 400
    envs = make_vec(arms, max_episode_steps=-1, goal_speed=2.5, goal_size=12)
    source = POLICIES[policy](arms, np.random.default_rng(3))
    observations, _ = envs.reset(seed=3)
    low, high = observations.min(axis=0), observations.max(axis=0)
    paid = set()
    for _ in range(decisions):
        observations, rewards, terminations, truncations, _ = envs.step(next(source))
        assert observations.dtype == np.float32 and rewards.dtype == np.float64
        assert not terminations.any() and not truncations.any()
        low = np.minimum(low, observations.min(axis=0))
        high = np.maximum(high, observations.max(axis=0))
        paid |= set(rewards)
    space = envs.single_observation_space
    assert (low >= space.low).all() and (high <= space.high).all()
    assert paid <= {float(np.float32(pay)) for pay in (0, 0.01, 0.02, 0.03, 0.04)}
    # The bounds are no larger than they must be where they can be reached.
    assert (high[[0, 13]] > [3.9, 9]).all() or policy == "corners"
    assert np.abs([low[32], high[32]]).min() > 2.3 and space.high[32] == 2.5
    if policy == "turned seldom":
        assert high[7] > 10  # rad/s: more than the 7 of the cut


def test_the_space_of_one_arm_holds_its_observations():
    env = make()
    observation, _ = env.reset(seed=0)
    source = corners(1, None)
    for _ in range(50):
        assert observation in env.observation_space and observation.shape == (33,)
        observation, reward, *_ = env.step(next(source)[0])
        assert type(reward) is float


# ------------------------------------------------------------------------- episodes and their ends


def test_one_arm_is_truncated_after_1001_decisions_with_its_true_last_observation():
    env, task = make(), Task(1, seed=11)
    assert_same(env.reset(seed=11)[0], task.reset()[0])
    for decision, action in enumerate(random_actions(DECISIONS, 1)[:, 0], start=1):
        observation, reward, terminated, truncated, _ = env.step(action)
        expected, pay, _ = task.step(action[None].astype(np.float64))
        np.testing.assert_array_equal(observation, expected[0])
        assert reward == np.float32(pay[0])
        assert terminated is False and truncated is (decision == DECISIONS)
    assert abs(observation[1] + 4) > 1e-3  # the arm does not hang, as after a reset
    assert_same(env.reset()[0], task.reset()[0])


@pytest.mark.parametrize("arms", [1, 20])
def test_the_vector_environment_is_the_unity_shaped_one(arms):
    """The same seed and actions: every number of two episodes, bit for bit."""
    envs = make_vec(arms)
    with ReacherEnvironment(arms, seed=2**33 + 5) as unity:
        observations, _ = envs.reset(seed=2**33 + 5)
        np.testing.assert_array_equal(observations, unity.reset()[BRAIN].vector_observations)
        for decision, actions in enumerate(random_actions(DECISIONS + 200, arms), start=1):
            observations, rewards, _, truncations, _ = envs.step(actions)
            answer = unity.step(actions)[BRAIN]
            np.testing.assert_array_equal(rewards, answer.rewards)
            assert truncations.tolist() == answer.local_done
            if decision == DECISIONS:  # Unity resets at once, Gymnasium in a step of its own
                assert truncations.all() and np.abs(observations[:, 1] + 4).max() > 1e-3
                observations, rewards, _, truncations, _ = envs.step(actions)
                assert not rewards.any() and not truncations.any()
            np.testing.assert_array_equal(observations, answer.vector_observations)


@pytest.mark.parametrize(
    "mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED]
)
def test_the_vector_environment_answers_as_gymnasiums_own_of_single_arms(mode):
    """All five parts of the answers, over ends of episodes and resets, with a seed for each arm."""
    arms, options = 3, {"goal_size": 12.0}
    envs = make_vec(arms, max_episode_steps=5, autoreset_mode=mode, **options)
    twin = SyncVectorEnv([lambda: make(max_episode_steps=5, **options)] * arms, autoreset_mode=mode)
    assert envs.metadata["autoreset_mode"] is twin.metadata["autoreset_mode"] is mode
    for seed in ([7, 3, 2**40], None, [None, 8, None]):
        assert_same(envs.reset(seed=seed), twin.reset(seed=seed))
        for actions in random_actions(17, arms):
            answer = envs.step(actions)
            assert_same(answer, twin.step(actions))
            if answer[3].all() and mode is AutoresetMode.DISABLED:
                with pytest.raises(ResetNeeded, match="end of an episode"):
                    envs.step(actions)
                mask = {"reset_mask": np.ones(arms, dtype=bool)}
                assert_same(envs.reset(options=mask), twin.reset(options=dict(mask)))


def test_no_array_is_handed_out_twice():
    envs = make_vec(2, max_episode_steps=3, autoreset_mode="SameStep")
    answers = [envs.reset(seed=0)[0]]
    for actions in random_actions(7, 2):
        answers += envs.step(actions)[:4]
    for index, array in enumerate(answers):
        assert not any(np.shares_memory(array, other) for other in answers[:index])


# ------------------------------------------------------------------------------------------- seeds


def episode(env, seed, steps=20):
    """First observation and the answers of a few steps."""
    shape = env.action_space.shape
    actions = np.random.default_rng(1).uniform(-1, 1, (steps, *shape)).astype(np.float32)
    return [env.reset(seed=seed), *map(env.step, actions)]


@pytest.mark.parametrize("made", [make, lambda: make_vec(2)], ids=["one", "many"])
def test_seeds(made):
    first = episode(made(), 4)
    env = made()
    second = episode(env, None)  # drawn by chance
    assert_same(episode(env, 4), first)
    goes_on = episode(env, None)
    assert_same(episode(made(), 4), first)
    for other in (second, goes_on, episode(made(), 5), episode(made(), None)):
        assert not np.array_equal(other[0][0], first[0][0])
    env.reset(seed=4)
    assert_same(episode(env, None), goes_on)


def test_an_arm_of_many_with_a_seed_of_its_own_is_one_arm_with_that_seed():
    observations, _ = make_vec(3).reset(seed=[9, 6, 9])
    for arm, seed in enumerate([9, 6, 9]):
        np.testing.assert_array_equal(observations[arm], make().reset(seed=seed)[0])
    envs = make_vec(3)
    together = envs.reset(seed=12)[0]
    alone = [make().reset(seed=seed)[0] for seed in (12, 13, 14)]
    assert (together == alone).all(axis=1).tolist() == [True, False, False]  # seeds do not overlap
    assert envs.np_random_seed == 12 and len(envs.np_random) == 3
    before = envs.np_random[0].bit_generator.state
    envs.reset(seed=[None, 6, None])
    np.testing.assert_array_equal(envs.reset(seed=[None, 6, None])[0][1], make().reset(seed=6)[0])
    assert envs.np_random[0].bit_generator.state != before  # went on


# ---------------------------------------------------------------------------------------- wrappers


def test_episode_statistics_count_the_rewards_of_1001_decisions():
    """A goal so large that every decision pays 0.04."""
    envs = RecordEpisodeStatistics(make_vec(4, goal_size=100.0))
    envs.reset(seed=0)
    lengths = []
    for _ in range(2 * DECISIONS + 1):
        *_, truncations, info = envs.step(np.zeros((4, 4), dtype=np.float32))
        if truncations.any():
            np.testing.assert_allclose(info["episode"]["r"], [40.04] * 4, rtol=1e-6)
            lengths.append(info["episode"]["l"].tolist())
    assert lengths == [[DECISIONS] * 4] * 2


def test_other_wrappers_work():
    envs = NormalizeObservation(make_vec(50))
    envs.reset(seed=0)
    for actions in random_actions(200, 50):
        observations = envs.step(actions)[0]
    assert np.isfinite(observations).all() and 0.2 < observations[:, :26].std() < 5
    env = gymnasium.wrappers.FrameStackObservation(make(), 3)
    assert env.reset(seed=0)[0].shape == (3, 33)
    assert env.step(np.zeros(4, dtype=np.float32))[0].shape == (3, 33)


def test_the_code_of_the_page_runs(capsys):
    page = (PROJECT / "doc" / "gymnasium.md").read_text()
    names = {}
    for block in page.split("```python\n")[1:]:
        exec(block.split("```")[0], names)
    # 1100 steps of 20 arms, of which one only resets.
    assert len(names["transitions"]) == 1099 * 20
    assert capsys.readouterr().out.startswith("mean score 0.")
    observations, _, _, following, _ = zip(*names["transitions"], strict=True)
    hanging = [
        number
        for number, observation in enumerate(observations)
        if observation[1] == -4 and abs(following[number][1] + 4) > 0
    ]
    assert hanging == [*range(20), *range(DECISIONS * 20, (DECISIONS + 1) * 20)]


def test_the_pages_table_of_numbers_has_the_bounds_of_the_space():
    page = (PROJECT / "doc" / "gymnasium.md").read_text()
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line[:3] != "|--"]
    table = [row for row in rows if len(row) == 5 and row[0].isdigit()]
    space = make().observation_space
    assert [int(row[0]) for row in table] == list(range(33))
    np.testing.assert_allclose([float(row[2]) for row in table], space.low, rtol=1e-6)
    np.testing.assert_allclose([float(row[3]) for row in table], space.high, rtol=1e-6)


# ---------------------------------------------------------------------------------------- pictures


def test_flat_pictures_show_the_arm_and_its_goal(monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "disable")  # those in three dimensions: tests/test_drawing.py
    env = make(render_mode="rgb_array", goal_speed=0)
    env.reset(seed=0)
    hanging = env.render()
    assert hanging.shape == (480, 480, 3) and hanging.dtype == np.uint8
    np.testing.assert_array_equal(env.render(), hanging)
    for _ in range(8):
        env.step(np.array([1, 0, 0, 0], dtype=np.float32))
    moved = env.render()
    changed = (moved != hanging).any(axis=-1)
    assert 300 < changed.sum() < 0.2 * changed.size
    assert changed[260:].any()  # the arm hung in the lower half
    red, green, _ = np.moveaxis(hanging.astype(int), -1, 0)
    pink = red - green > 20
    assert 4700 < pink.sum() < 5300  # a disk of 5 m, where 30 m have 480 pixels, has 5027
    assert ((green - red) > 20).sum() < 1300  # the hand, of 804, is blue

    touched = make(render_mode="rgb_array", goal_size=28.0)  # the hand hangs 14.4 m from its middle
    touched.reset(seed=0)
    red, green, _ = np.moveaxis(touched.render().astype(int), -1, 0)
    assert (green - red > 20).sum() > 50_000 and not (red - green > 20).any()


def test_pictures_of_many_arms_and_of_whole_episodes():
    envs = make_vec(3, render_mode="rgb_array")
    envs.reset(seed=0)
    pictures = envs.render()
    assert type(pictures) is tuple and [p.shape for p in pictures] == [(480, 480, 3)] * 3
    assert not np.array_equal(pictures[0], pictures[1])
    one = make(render_mode="rgb_array")
    one.reset(seed=0)
    np.testing.assert_array_equal(one.render(), pictures[0])

    env = make(render_mode="rgb_array_list")
    env.reset(seed=0)
    env.step(np.zeros(4, dtype=np.float32))
    assert [picture.shape for picture in env.render()] == [(480, 480, 3)] * 2


@pytest.mark.parametrize("made", [make, lambda: make_vec(2)], ids=["one", "many"])
def test_render_without_a_mode_says_what_to_do(made):
    env = made()
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.unwrapped.render() is None


class WindowManager(FigureManagerBase):
    def show(self):
        WindowCanvas.shown += 1


class WindowCanvas(FigureCanvasAgg):
    """A window as matplotlib sees it, without a screen."""

    required_interactive_framework = "headless"
    manager_class = WindowManager
    shown = drawn = 0

    def draw_idle(self, *arguments):
        WindowCanvas.drawn += 1
        self.draw()


@pytest.fixture
def windows(monkeypatch):
    """A backend of matplotlib that has windows, on a machine with a screen."""
    backend = types.ModuleType("windows_for_tests")
    backend.FigureCanvas = WindowCanvas
    monkeypatch.setitem(sys.modules, backend.__name__, backend)
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(WindowCanvas, "shown", 0)
    monkeypatch.setattr(WindowCanvas, "drawn", 0)
    before = plt.get_backend()
    plt.switch_backend(f"module://{backend.__name__}")
    yield
    plt.close("all")
    plt.switch_backend(before)


@pytest.mark.parametrize(
    "made", [make, lambda **options: make_vec(5, **options)], ids=["one", "many"]
)
def test_a_window_shows_every_step_until_it_is_closed(made, windows, monkeypatch):
    env = made(render_mode="human")
    assert "human" in env.metadata["render_modes"] and not plt.get_fignums()
    env.reset(seed=0)
    for steps in range(3):
        assert WindowCanvas.drawn == 1 + steps and len(plt.get_fignums()) == 1
        env.step(np.ones(env.action_space.shape, dtype=np.float32))
    assert env.render() is None
    assert WindowCanvas.shown == 1  # else it would come to the front again and again
    plt.close("all")  # as the user may
    with monkeypatch.context() as patch:
        patch.setattr(WindowCanvas, "draw_idle", None)  # so that drawing would be an error
        env.step(np.ones(env.action_space.shape, dtype=np.float32))
    assert not plt.get_fignums()
    env.close()

    env = made(render_mode="human")
    env.reset(seed=0)
    env.close()
    env.close()
    assert not plt.get_fignums()


def test_a_window_shows_real_time(windows, monkeypatch):
    waits = []
    monkeypatch.setattr(WindowCanvas, "start_event_loop", lambda self, wait: waits.append(wait))
    monkeypatch.setattr(drawing.window.time, "monotonic", lambda: 100.0)
    window = drawing.ArmWindow(5.0, frames_per_second=12.5)
    for _ in range(3):
        window.show(np.zeros((1, 33)))
    assert waits == [0.001, pytest.approx(0.08), pytest.approx(0.08)]


def test_where_there_are_no_windows_is_a_clear_error(no_display, monkeypatch):
    for made in (make, lambda **options: make_vec(2, **options)):
        assert made().metadata["render_modes"] == ["rgb_array"]
        with pytest.raises(RuntimeError, match="needs a screen.*rgb_array"):
            made(render_mode="human")
    monkeypatch.setenv("DISPLAY", ":0")
    env = make(render_mode="human")
    with pytest.raises(RuntimeError, match=r"(?i)backend agg has none.*rgb_array"):
        env.reset()
    assert not plt.get_fignums()


# ------------------------------------------------------------------------------------------ errors

NAN = np.zeros((3, 4), dtype=np.float32)
NAN[1, 2] = np.nan

BAD_CALLS = {
    "one: short action": (1, lambda env: env.step(np.zeros(3)), ValueError, r"\(4,\)"),
    "one: NaN": (1, lambda env: env.step(NAN[1]), ValueError, "action 2 of arm 0 is nan"),
    "one: option": (1, lambda env: env.reset(options={"goal_size": 4}), ValueError, "goal_size"),
    "one: seed": (1, lambda env: env.reset(seed=-1), gymnasium.error.Error, "-1"),
    "many: too few": (3, lambda env: env.step(np.zeros((2, 4))), ValueError, r"\(3, 4\)"),
    "many: NaN": (3, lambda env: env.step(NAN), ValueError, "action 2 of arm 1 is nan"),
    "many: option": (3, lambda env: env.reset(options={"goal": 4}), ValueError, "'goal'"),
    "many: some": (
        3,
        lambda env: env.reset(options={"reset_mask": np.array([True, False, True])}),
        ValueError,
        "reset together",
    ),
    "many: seed": (3, lambda env: env.reset(seed=-1), ValueError, "seed must be from 0"),
    "many: seed 1.5": (3, lambda env: env.reset(seed=1.5), TypeError, "seed must be an integer"),
    "many: two seeds": (3, lambda env: env.reset(seed=[1, 2]), ValueError, "each of the 3 arms"),
    "many: a seed": (3, lambda env: env.reset(seed=[1, -2, 3]), ValueError, "seed of arm 1"),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_a_bad_call_is_a_clear_error_and_moves_nothing(name):
    arms, call, kind, message = BAD_CALLS[name]
    made = (lambda: make().unwrapped) if arms == 1 else (lambda: make_vec(arms))
    env, twin = made(), made()
    assert_same(env.reset(seed=2), twin.reset(seed=2))
    action = np.full(env.action_space.shape, 0.5)
    assert_same(env.step(action), twin.step(action))
    with pytest.raises(kind, match=message):
        call(env)
    assert_same(env.step(action), twin.step(action))
    assert_same(env.reset(), twin.reset())


BAD_SETTINGS = {
    "render_mode": (make, {"render_mode": "ansi"}, ValueError, "'human' or 'rgb_array'"),
    "goal_size": (make, {"goal_size": -1.0}, ValueError, "goal_size"),
    "goal_speed": (make, {"goal_speed": "fast"}, ValueError, "goal_speed"),
    "no arms": (make_vec, {"num_envs": 0}, ValueError, "num_envs must be from 1 to 2000"),
    "half an arm": (make_vec, {"num_envs": 0.5}, TypeError, "num_envs must be an integer"),
    "no steps": (
        make_vec,
        {"num_envs": 1, "max_episode_steps": 0},
        ValueError,
        "max_episode_steps",
    ),
    "mode": (make_vec, {"num_envs": 1, "autoreset_mode": "Sometimes"}, ValueError, "Sometimes"),
}


@pytest.mark.parametrize("name", BAD_SETTINGS)
def test_a_bad_setting_is_a_clear_error(name):
    made, options, kind, message = BAD_SETTINGS[name]
    with warnings.catch_warnings(), pytest.raises(kind, match=message):
        warnings.simplefilter("ignore")  # of Gymnasium, on an unknown render_mode
        made(**options)


@pytest.mark.parametrize(
    "made",
    [lambda: make(render_mode="rgb_array").unwrapped, lambda: make_vec(2, render_mode="rgb_array")],
    ids=["one", "many"],
)
def test_calls_before_the_first_reset_and_after_close_are_clear_errors(made):
    env = made()
    action = np.zeros(env.action_space.shape)
    for call in (lambda: env.step(action), env.render):
        with pytest.raises(ResetNeeded, match=r"before the first reset"):
            call()
    env.reset(seed=0)
    env.step(action)
    env.close()
    env.close()
    for call in (lambda: env.step(action), env.render, env.reset):
        with pytest.raises(ClosedEnvironmentError, match="closed"):
            call()
