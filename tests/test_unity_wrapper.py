"""Gymnasium's environments in Unity's shape, and saved states of both kinds of environment."""

from __future__ import annotations

import json
import sys

import gymnasium
import numpy as np
import pytest
import torch

from reacher import ReacherEnvironment
from reacher.gymnasium import unity_wrapper
from reacher.gymnasium.unity_wrapper import UnityWrapper

PENDULUM = "PendulumBrain"
STEPS = 200  # of a Pendulum's episode


def make_reacher(num_agents=3, seed=0):
    return ReacherEnvironment(num_agents, seed)


def make_pendulum(num_agents=3, seed=0):
    return UnityWrapper("Pendulum-v1", num_agents, seed)


def answers(env, steps, seed=0, config=None):
    """The answer to a reset, and those to random actions."""
    (brain,) = env.brain_names
    shape = (steps, env.num_agents, env.brains[brain].vector_action_space_size)
    actions = np.random.default_rng(seed).uniform(-1.2, 1.2, shape)
    return [env.reset(config=config)[brain], *(env.step(action)[brain] for action in actions)]


def assert_same(first, second):
    """Two lists of answers agree in every number, bit for bit."""
    for one, other in zip(first, second, strict=True):
        for name, value in vars(one).items():
            np.testing.assert_array_equal(value, vars(other)[name], err_msg=name)


# ------------------------------------------------------------------- an environment for the tests


class Line(gymnasium.Env):
    """Keeps the actions it gets. An episode ends as its `ends` say: at a step, and in which way.

    Its observation is how many episodes began before, a random number, and the steps so far.
    """

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (3,), np.float64)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
    made = []  # of all Lines since the test began

    def __init__(self, ends=((5, "terminated"),), **spaces):
        vars(self).update(spaces)
        self.ends, self.actions, self.seeds, self.episodes = ends, [], [], -1
        self.is_closed = False
        Line.made.append(self)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seeds.append(seed)
        self.episodes, self.steps, self.drawn = self.episodes + 1, 0, self.np_random.random()
        return self.observe(), {}

    def observe(self):
        numbers = np.array([self.episodes, self.drawn, self.steps])
        return np.resize(numbers, self.observation_space.shape)

    def step(self, action):
        self.actions.append(action)
        self.steps += 1
        step, how = self.ends[self.episodes % len(self.ends)]
        is_last = self.steps == step
        return (
            self.observe(),
            0.5 * self.steps,
            is_last and "terminated" in how,
            is_last and "truncated" in how,
            {},
        )

    def close(self):
        self.is_closed = True


@pytest.fixture
def register(monkeypatch):
    """`register(ends=..., action_space=..., ...)` registers a Line and returns its name."""
    known = dict(gymnasium.registry)
    monkeypatch.setattr(Line, "made", [])

    def add(limit=None, **options):
        name = f"Line{len(gymnasium.registry)}-v3"
        gymnasium.register(
            f"test/{name}",
            entry_point=lambda: Line(**options),
            max_episode_steps=limit,
            disable_env_checker=True,
        )
        return f"test/{name}"

    yield add
    for name in set(gymnasium.registry) - set(known):
        del gymnasium.registry[name]


# --------------------------------------------------------------------------------------- interface


def test_it_describes_itself_as_unity_environments_do():
    with make_pendulum(2) as env:
        assert env.brain_names == env.external_brain_names == [PENDULUM]
        assert env.academy_name == "Pendulum-v1" and env.num_agents == 2
        assert env.number_brains == env.number_external_brains == 1
        brain = env.brains[PENDULUM]
        assert brain.brain_name == PENDULUM
        assert (brain.vector_observation_space_size, brain.vector_action_space_size) == (3, 1)
        assert brain.vector_action_space_type == "continuous"
        assert list(brain.vector_action_descriptions) == [""]
        for line in (
            "Unity Academy name: Pendulum-v1",
            f"Unity brain name: {PENDULUM}",
            "Vector Observation space size (per agent): 3",
            "Vector Action space size (per agent): 1",
        ):
            assert line in str(env)
        assert env.global_done is None
        env.reset()
        assert env.global_done is False


def test_an_answer_has_the_fields_and_types_of_the_reacher():
    with make_reacher() as reacher, make_pendulum() as env:
        for answer, expected in zip(answers(env, 1), answers(reacher, 1), strict=True):
            assert vars(answer).keys() == vars(expected).keys()
            for name, value in vars(expected).items():
                assert type(vars(answer)[name]) is type(value)
                if isinstance(value, list):
                    assert list(map(type, vars(answer)[name])) == list(map(type, value))
                elif name != "memories":
                    assert vars(answer)[name].dtype == value.dtype
                    assert len(vars(answer)[name]) == len(value) == 3
            assert answer.vector_observations.shape == (3, 3)
            assert answer.previous_vector_actions.shape == (3, 1)
        assert answer.previous_vector_actions.any()


@pytest.mark.parametrize("env_id", ["Pendulum-v1", "MountainCarContinuous-v0"])
def test_numbers_are_those_of_gymnasium(env_id):
    """Two episodes beside plain environments with the same generators."""
    with UnityWrapper(env_id, num_agents=2, seed=3) as env:
        (brain,) = env.brain_names
        twins = [gymnasium.make(env_id) for _ in range(2)]
        for twin, state in zip(twins, env.state()["generators"], strict=True):
            twin.unwrapped.np_random = np.random.Generator(np.random.PCG64())
            twin.unwrapped.np_random.bit_generator.state = state
        space = twins[0].action_space
        observations = env.reset()[brain].vector_observations
        np.testing.assert_array_equal(observations, [twin.reset()[0] for twin in twins])
        ends = 0
        for action in np.random.default_rng(0).uniform(-1, 1, (2100, 2, 1)):
            answer = env.step(action)[brain]
            steps = [
                twin.step((space.high[0] * one).astype(np.float32))
                for twin, one in zip(twins, action.astype(np.float32), strict=True)
            ]
            assert answer.rewards == [float(step[1]) for step in steps]
            assert answer.local_done == answer.max_reached == [bool(step[3]) for step in steps]
            expected = [step[0] for step in steps]
            if all(answer.local_done):
                ends += 1
                expected = [twin.reset()[0] for twin in twins]
            np.testing.assert_array_equal(answer.vector_observations, expected)
            if ends == 2:
                break
        assert ends == 2


def test_the_reacher_of_gymnasium_in_unitys_shape_is_the_reacher():
    """Both ways around it, from the same generators: every answer, bit for bit."""
    with make_reacher(3, seed=5) as reacher, UnityWrapper("reacher/Reacher-v0", 3) as env:
        env.restore({**env.state(), "generators": reacher.state()["generators"]})
        assert env.brain_names == reacher.brain_names
        assert_same(answers(env, 1010), answers(reacher, 1010))


# ------------------------------------------------------------------------------------------ actions


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_actions_are_cut_and_scaled_to_the_bounds(kind, register):
    space = gymnasium.spaces.Box(
        np.array([-2, 0, 1e-3], kind), np.array([2, 10, 7], kind), dtype=kind
    )
    with UnityWrapper(register(action_space=space)) as env:
        env.reset()
        for action in ([-1, -1, -1], [1, 1, 1], [0, 0, 0], [0.5, -0.5, -3], [1e9, -1e9, 1.001]):
            env.step([action])
    (line,) = Line.made
    for action, expected in zip(
        line.actions,
        [space.low, space.high, [0, 5, 3.5005], [1, 2.5, 1e-3], [2, 0, 7]],
        strict=True,
    ):
        assert action.dtype == kind and action.shape == (3,) and action in space
        np.testing.assert_allclose(action, expected, rtol=1e-6)


def test_actions_of_several_axes_are_flat_in_unitys_shape(register):
    space = gymnasium.spaces.Box(np.zeros((2, 2), np.float32), np.full((2, 2), 4, np.float32))
    name = register(action_space=space)
    with UnityWrapper(name, 2) as env:
        (brain,) = env.brain_names
        assert env.brains[brain].vector_action_space_size == 4
        env.reset()
        env.step(np.arange(8) / 8)
    np.testing.assert_allclose(
        [line.actions[0] for line in Line.made], 2 + np.arange(8).reshape(2, 2, 2) / 4
    )


def test_all_forms_of_actions_mean_the_same(register):
    name = register(ends=((100, "truncated"),))
    with UnityWrapper(name, 2) as env:
        (brain,) = env.brain_names
        env.reset()
        forms = [
            np.array([[0.25], [-0.5]]),
            [0.25, -0.5],
            torch.tensor([[0.25], [-0.5]]),
            {brain: [0.25, -0.5]},
        ]
        for form in forms:
            sent = env.step(form)[brain].previous_vector_actions
            np.testing.assert_array_equal(sent, [[0.25], [-0.5]])
        for nothing in (None, {}, {brain: None}):
            env.step(nothing)
    for line, action in zip(Line.made, (0.25, -0.5), strict=True):
        assert [float(one[0]) for one in line.actions] == [action] * len(forms) + [0.0] * 3


# -------------------------------------------------------------------------------- ends of episodes


@pytest.mark.parametrize(
    "how, max_reached",
    [("terminated", False), ("truncated", True), ("terminated and truncated", False)],
)
def test_the_last_answer_holds_the_last_reward_and_the_next_first_observation(
    how, max_reached, register
):
    with UnityWrapper(register(ends=((3, how),)), num_agents=2) as env:
        first, *steps = answers(env, 4)
    assert [answer.local_done for answer in steps] == [[False] * 2] * 2 + [[True] * 2, [False] * 2]
    assert [answer.rewards for answer in steps] == [[0.5] * 2, [1.0] * 2, [1.5] * 2, [0.5] * 2]
    assert [answer.max_reached for answer in steps] == [[False] * 2] * 2 + [
        [max_reached] * 2,
        [False] * 2,
    ]
    episode = first.vector_observations[0, 0]
    for answer, (episodes, taken) in zip(steps, [(0, 1), (0, 2), (1, 0), (1, 1)], strict=True):
        np.testing.assert_array_equal(
            answer.vector_observations[:, [0, 2]], [[episode + episodes, taken]] * 2
        )
    last = steps[2]
    assert (last.previous_vector_actions == 0).all() and steps[3].previous_vector_actions.all()


def test_the_way_of_ending_is_told_for_each_copy(register):
    name = register(ends=((2, "truncated"), (2, "truncated"), (2, "terminated")))
    with UnityWrapper(name, num_agents=2) as env:
        Line.made[1].episodes += 1  # this copy's next episode is the third
        answer = answers(env, 2)[-1]
    assert answer.local_done == [True, True] and answer.max_reached == [True, False]


def test_copies_that_end_one_by_one_are_a_clear_error(register):
    name = register(ends=((5, "terminated"), (3, "terminated")))
    with UnityWrapper(name, num_agents=3) as env:
        for line in Line.made[:2]:
            line.episodes += 1
        env.reset()
        env.step(), env.step()
        with pytest.raises(RuntimeError, match=r"(?s)1 of 3 copies.*num_agents = 1"):
            env.step()
        with pytest.raises(RuntimeError, match="reset"):
            env.step()
        for line in Line.made:
            line.episodes = -1
        assert len(answers(env, 5)) == 6  # after a reset they go on
    with UnityWrapper(name, num_agents=1) as env:
        assert [all(answer.local_done) for answer in answers(env, 8)].count(True) == 2


# --------------------------------------------------------------------------------- seeds and scale


def test_copies_differ_and_do_not_depend_on_their_number():
    def observations(num_agents, seed):  # (answers, agents, 3)
        with make_pendulum(num_agents, seed) as env:
            all_answers = [env.reset(), *(env.step() for _ in range(STEPS + 20))]
        return np.stack([answer[PENDULUM].vector_observations for answer in all_answers])

    first = observations(3, seed=4)
    np.testing.assert_array_equal(observations(3, seed=4), first)
    more = observations(5, seed=4)
    np.testing.assert_array_equal(more[:, :3], first)
    for observation in (more[0], more[-1], np.concatenate([first[0], observations(3, 5)[0]])):
        assert len(np.unique(observation, axis=0)) == len(observation)


def test_every_copy_gets_one_seed_of_32_bits(register):
    name = register()
    for count in (3, 4):
        with UnityWrapper(name, count, seed=2**63 - 1) as env:
            env.reset(), env.reset()
    seeds = [line.seeds for line in Line.made]
    assert all(later == [None, None] for _, *later in seeds)
    given = [seed for seed, *_ in seeds]
    assert all(type(seed) is int and 0 <= seed < 2**32 for seed in given)
    assert given[:3] == given[3:6] and len(set(given[3:])) == 4


def test_the_scale_is_the_larger_bound_where_there_is_one(register):
    most = np.finfo(np.float32).max
    low = np.array([-3, -1, 0, -np.inf, -np.inf, -most, -1e-3, 0])
    high = np.array([2, 4, 0.5, np.inf, 1, most, 0, 0])
    space = gymnasium.spaces.Box(low, high, dtype=np.float64)
    with UnityWrapper(register(observation_space=space)) as env:
        scale = env.observation_scale
    assert scale.dtype == np.float32 and scale.shape == (8,)
    np.testing.assert_array_equal(scale, np.float32([3, 4, 0.5, 1, 1, 1, 1e-3, 1]))
    np.testing.assert_array_equal(make_pendulum().observation_scale, [1, 1, 8])


def test_the_mark_is_the_specs():
    for env_id, reward_threshold in (
        ("Pendulum-v1", None),
        ("MountainCarContinuous-v0", 90.0),
        ("reacher/Reacher-v0", 30.0),
    ):
        with UnityWrapper(env_id) as env:
            assert (
                env.reward_threshold == gymnasium.spec(env_id).reward_threshold == reward_threshold
            )
    assert ReacherEnvironment.reward_threshold == 30.0


# ------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    "env_id, kind, message",
    [
        ("Nowhere-v1", ValueError, r"such as 'Pendulum-v1', not 'Nowhere-v1'"),
        ("nowhere/Reacher-v0", ValueError, "nowhere"),
        ("Pendulum-v7", ValueError, "such as 'Pendulum-v1'"),
        ("", ValueError, "such as 'Pendulum-v1'"),
        ("two words", ValueError, "such as 'Pendulum-v1'"),
        ("CartPole-v1", ValueError, r"action space Discrete\(2\); only continuous actions"),
        ("Hopper-v2", ValueError, "gymnasium-robotics"),
        (None, TypeError, "env_id must be the name"),
        (gymnasium.spec("Pendulum-v1"), TypeError, "env_id must be the name"),
    ],
)
def test_an_environment_that_does_not_fit_is_a_clear_error(env_id, kind, message):
    with pytest.raises(kind, match=message):
        UnityWrapper(env_id)


def without(monkeypatch, *modules):
    """As if these modules, and what needs them, were not installed or not imported yet."""
    for name in [
        name
        for name in sys.modules
        if name.startswith(("gymnasium.envs.mujoco", "gymnasium.envs.box2d"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    for name in modules:
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.parametrize(
    "env_id, module, extra",
    [
        ("Hopper-v5", "mujoco", "mujoco"),
        ("LunarLanderContinuous-v3", "Box2D", "box2d"),
    ],
)
def test_a_missing_extra_of_gymnasium_is_named(monkeypatch, env_id, module, extra):
    without(monkeypatch, module)
    with pytest.raises(ModuleNotFoundError) as error:
        UnityWrapper(env_id)
    assert str(error.value).startswith(f"{env_id} needs a package that is not installed: ")
    assert module.lower() in str(error.value).lower()
    assert f'pip install "gymnasium[{extra}]"' in str(error.value)


def test_a_missing_package_of_others_is_named():
    with pytest.raises(ModuleNotFoundError, match="nowhere:Arm-v0 needs .*'nowhere'"):
        UnityWrapper("nowhere:Arm-v0")


BOX = gymnasium.spaces.Box
BAD_SPACES = {
    "integers as actions": ("action", BOX(0, 9, (2,), np.int64), "only continuous actions"),
    "half open": ("action", BOX(np.float32([-1, 0]), np.float32([1, np.inf])), "not all finite"),
    "no action": ("action", BOX(-1, 1, (0,)), "nothing to choose"),
    "discrete": ("observation", gymnasium.spaces.Discrete(16), "Box of one axis"),
    "a dictionary": ("observation", gymnasium.spaces.Dict(a=BOX(0, 1, (2,))), "Box of one axis"),
    "a picture": ("observation", BOX(0, 255, (8, 8, 3), np.uint8), "Box of one axis"),
}


@pytest.mark.parametrize("name", BAD_SPACES)
def test_other_spaces_are_a_clear_error(name, register):
    which, space, message = BAD_SPACES[name]
    with pytest.raises(ValueError, match=message):
        UnityWrapper(register(**{f"{which}_space": space}))


@pytest.mark.parametrize(
    "options, kind, message",
    [
        ({"num_agents": 0}, ValueError, "num_agents must be from 1 to 2000"),
        ({"num_agents": 1.0}, TypeError, "num_agents must be an integer"),
        ({"seed": -1}, ValueError, "seed must be from 0"),
        ({"seed": None}, TypeError, "seed must be an integer"),
    ],
)
def test_a_bad_number_is_a_clear_error(options, kind, message):
    with pytest.raises(kind, match=message):
        UnityWrapper("Pendulum-v1", **options)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda env: env.step(np.zeros((2, 1))), r"\(3, 1\)"),
        (lambda env: env.step([0.0, np.nan, 0.0]), "action 0 of copy 1 is nan"),
        (lambda env: env.step({"ReacherBrain": np.zeros(3)}), "ReacherBrain"),
        (lambda env: env.reset(config={"goal_size": 5.0}), "no reset parameters"),
        (lambda env: env.reset(config=5), "mapping of reset parameters"),
    ],
)
def test_a_bad_call_is_a_clear_error_and_moves_nothing(call, message):
    with make_pendulum() as env, make_pendulum() as twin:
        env.reset(config={}), twin.reset()
        with pytest.raises(ValueError, match=message):
            call(env)
        assert_same([env.step(np.ones(3))[PENDULUM]], [twin.step(np.ones(3))[PENDULUM]])
        assert_same(answers(env, 2), answers(twin, 2))


BAD_ANSWERS = {  # what an environment returns from reset or step, and what the error names
    "an observation unlike its space": ("observe", np.zeros(2), "observation of Box"),
    "None as an observation": ("observe", None, "observation of Box"),
    "rows of several lengths": ("observe", [[0.0], [0.0, 1.0]], "observation of Box"),
    "text as an observation": ("observe", np.array(["a", "b", "c"]), "observation of Box"),
    "reset as in old Gym": ("reset", np.zeros(3), "reset.* must return a tuple"),
    "no reset": ("reset", None, "reset.* must return a tuple"),
    "step as in old Gym": ("step", (np.zeros(3), 0.0, False, {}), "five values"),
    "no step": ("step", None, "five values"),
    "text as a reward": ("step", (np.zeros(3), "1.0", False, False, {}), "reward .*number"),
    "rewards": ("step", (np.zeros(3), np.zeros(2), False, False, {}), "reward .*number"),
    "text as terminated": ("step", (np.zeros(3), 0.0, "False", False, {}), "terminated .*True or"),
    "no truncated": ("step", (np.zeros(3), 0.0, False, None, {}), "truncated .*True or"),
}


@pytest.mark.parametrize("limit", [None, 5], ids=["no limit", "time limit"])
@pytest.mark.parametrize("name", BAD_ANSWERS)
def test_a_bad_answer_of_an_environment_is_a_clear_error(register, name, limit):
    """Also where Gymnasium's time limit unpacks the answer first."""
    call, answer, words = BAD_ANSWERS[name]
    env_id = register(limit=limit, **{call: lambda *arguments, **options: answer})
    with pytest.raises((TypeError, ValueError), match=f"(?s){words.replace(' ', '.*')}") as error:
        with UnityWrapper(env_id) as env:
            env.reset(), env.step()
    assert env_id in str(error.value) and "check_env" in str(error.value)


@pytest.mark.parametrize("limit", [None, 20])
def test_an_episode_without_end_is_named(register, monkeypatch, recwarn, limit):
    monkeypatch.setattr(unity_wrapper, "LONG_EPISODE", 10)
    name = register(limit=limit, ends=((10**9, "terminated"),))
    with UnityWrapper(name, num_agents=2) as env:
        assert env.max_episode_steps == limit
        answers(env, 15)
    said = [str(warning.message) for warning in recwarn]
    assert len(said) == (limit is None)
    assert limit or all(word in said[0] for word in (name, "max_episode_steps", "TimeLimit"))


def test_step_before_reset_and_calls_after_close_are_clear_errors(register):
    env = UnityWrapper(register(), num_agents=2)
    with pytest.raises(RuntimeError, match="reset"):
        env.step()
    env.close()
    assert all(line.is_closed for line in Line.made)
    for call in (env.step, env.reset, env.close, env.state, lambda: env.restore({})):
        with pytest.raises(RuntimeError, match="closed environment: make a new UnityWrapper"):
            call()
    with make_pendulum() as env:
        env.close()  # closing it inside is no error at the block's end
    with make_pendulum() as env:
        pass
    with pytest.raises(RuntimeError, match="closed"):
        env.reset()


# ------------------------------------------------------------------------------------ saved states

KINDS = pytest.mark.parametrize(
    "made, steps", [(make_reacher, 1020), (make_pendulum, STEPS + 20)], ids=["reacher", "pendulum"]
)


@KINDS
@pytest.mark.parametrize("before", [None, 0, 7, 1500], ids="before={}".format)
def test_a_restored_environment_goes_on_bit_for_bit(made, steps, before):
    """From before the first reset, from a reset, within an episode, and after some of them."""
    with made(seed=8) as env, made(seed=1) as other:
        if before is not None:
            answers(env, before, seed=2)
        answers(other, 31, seed=3)
        state = json.loads(json.dumps(env.state()))
        other.restore(state)
        assert other.state() == state == env.state()
        assert_same(answers(other, steps), answers(env, steps))
        assert_same(answers(other, 5), answers(env, 5))
        if before is not None:
            with made(seed=8) as untouched:
                answers(untouched, before, seed=2)
                assert_same(answers(untouched, 5), answers_of(made, state))


def answers_of(made, state):
    """The answers of a fresh environment with this state."""
    with made() as env:
        env.restore(state)
        return answers(env, 5)


def test_reset_parameters_are_part_of_the_state():
    with make_reacher() as env, make_reacher() as other:
        env.reset(config={"goal_size": 40.0, "goal_speed": 3.25})
        other.reset(config={"goal_size": 1.0})
        state = json.loads(json.dumps(env.state()))
        assert state["parameters"] == {"goal_size": 40.0, "goal_speed": 3.25}
        other.restore(state)
        same = answers(env, 200)
        assert_same(answers(other, 200), same)
    assert same[-1].rewards == [float(np.float32(0.04))] * 3  # a goal that no arm can miss
    assert np.abs(same[0].vector_observations[:, 32]).max() > 1


@KINDS
def test_restoring_ends_the_episode_that_is_under_way(made, steps):
    with made() as env:
        answers(env, 3)
        env.restore(env.state())
        with pytest.raises(RuntimeError, match="reset"):
            env.step()


def changed(state, **changes):
    return {**state, **changes}


def with_generator(state, /, **changes):
    *others, last = state["generators"]
    return {**state, "generators": [*others, {**last, **changes}]}


BAD_STATES = {
    "no mapping": (lambda state: list(state), "no state of this environment"),
    "nothing": (lambda state: {}, "no state of this environment: KeyError"),
    "another environment": (lambda state: changed(state, environment="Hopper-v5"), "'Hopper-v5'"),
    "another number": (
        lambda state: changed(state, num_agents=4),
        "'num_agents': 4.*not of .*'num_agents': 3",
    ),
    "a generator too few": (
        lambda state: changed(state, generators=state["generators"][1:]),
        "zip.. argument 2 is longer",
    ),
    "no list": (lambda state: changed(state, generators=None), "no state"),
    "an empty generator": (lambda state: changed(state, generators=[{}] * 3), "no state"),
    "another kind": (lambda state: with_generator(state, bit_generator="MT19937"), "PCG64"),
    "too large": (
        lambda state: with_generator(state, state={"state": 2**128, "inc": 1}),
        "no state",
    ),
}


@KINDS
@pytest.mark.parametrize("name", BAD_STATES)
def test_a_bad_state_is_a_clear_error_and_changes_nothing(name, made, steps):
    damage, message = BAD_STATES[name]
    with made(seed=3) as env, made(seed=3) as twin, made(seed=4) as source:
        answers(env, 3), answers(twin, 3)
        with pytest.raises(ValueError, match=message):
            env.restore(damage(source.state()))
        assert env.state() == twin.state()
        (brain,) = env.brain_names
        assert_same([env.step()[brain]], [twin.step()[brain]])  # nor did the episode end
        assert_same(answers(env, 3), answers(twin, 3))


def test_a_bad_reset_parameter_in_a_state_changes_nothing():
    with make_reacher(seed=3) as env:
        before = env.state()
        with make_reacher(seed=4) as source:
            state = source.state()
        with pytest.raises(ValueError, match="goal_size"):
            env.restore({**state, "parameters": {"goal_speed": 2.0, "goal_size": -1.0}})
        assert env.state() == before


def test_a_saved_state_does_not_change_with_the_environment():
    with make_reacher() as env:
        state = env.state()
        kept = json.dumps(state)
        env.reset(config={"goal_size": 9.0})
        assert json.dumps(state) == kept
        state["parameters"]["goal_size"] = 1.0
        assert env.state()["parameters"]["goal_size"] == 9.0


def test_an_environment_with_another_generator_has_no_state(register):
    with UnityWrapper(register()) as env:
        Line.made[0].np_random = np.random.Generator(np.random.MT19937(0))
        with pytest.raises(RuntimeError, match="MT19937"):
            env.state()


class Own(Line):
    """Draws from a generator that nobody else knows of."""

    def __init__(self):
        super().__init__(((5, "truncated"),))
        self.own = np.random.default_rng()

    def observe(self):
        return np.array([0.0, 0.0, self.own.random()])


class Global(Own):
    """Draws from NumPy's global generator."""

    def observe(self):
        return np.array([0.0, 0.0, np.random.random()])


class Plain(Own):
    """Draws from the generator that Gymnasium gives."""

    def observe(self):
        return np.array([0.0, 0.0, self.np_random.random()])


@pytest.mark.parametrize("kind, can", [(Line, False), (Own, False), (Global, True), (Plain, True)])
def test_what_cannot_be_restored_has_no_state(register, kind, can):
    """Such as a counter of episodes. The global generators are a training's to save."""
    name = register()
    gymnasium.registry[name].entry_point = kind
    with UnityWrapper(name, num_agents=2) as env:
        np.random.seed(0)
        before = np.random.get_state()[1].copy()
        if can:
            assert env.state()["num_agents"] == 2
        else:
            with pytest.raises(RuntimeError, match="no state to save"):
                env.state()
        np.testing.assert_array_equal(np.random.get_state()[1], before)
