"""The Unity side: the real `unityagents` client against real processes, no mocks."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import reacher
from reacher.unity.launcher import PROJECT, _write_launcher

if importlib.util.find_spec("unityagents") is None:
    pytest.skip("unityagents is not installed", allow_module_level=True)
if sys.platform != "linux":
    pytest.skip("the fake builds are Linux ones", allow_module_level=True)

import grpc

from reacher.unity import UnityError, messages, open_unity, server, unityagents
from reacher.unity.client import _UnityEnvironment
from reacher.unity.player import find_player
from reacher.unity.protocol import API_VERSION, EXCHANGE

BRAIN = "ReacherBrain"
GUARD = 60  # s; nothing here takes as long unless it hangs
FIELDS = (
    "vector_observations",
    "rewards",
    "local_done",
    "max_reached",
    "agents",
    "memories",
    "previous_vector_actions",
    "visual_observations",
    "text_observations",
    "previous_text_actions",
)


@pytest.fixture(scope="module")
def launcher(tmp_path_factory):
    """Path of a launcher for 20 arms; its folder has a space, as many on Windows and macOS."""
    return reacher.unity_launcher(20, folder=tmp_path_factory.mktemp("my builds"))


@pytest.fixture(scope="module")
def one_arm(tmp_path_factory):
    return reacher.unity_launcher(num_agents=1, folder=tmp_path_factory.mktemp("one_agent"))


@pytest.fixture
def interruptible():
    """SIGINT is a KeyboardInterrupt; a shell starts its background jobs with the signal ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def build(tmp_path):
    """Write a fake build: `build(script)` gives its path; `build.port()` what it was started with.

    The script is run by sh, or by Python if it says so in its first line.
    """

    class Build:
        path = tmp_path / "Reacher.x86_64"

        def __call__(self, script):
            first, *rest = textwrap.dedent(script).lstrip().splitlines(keepends=True)
            started = f"#!/bin/sh\necho $$ \"$@\" > '{tmp_path}/started'\ncd '{PROJECT}'\n"
            if first.startswith("#!python"):
                (tmp_path / "build.py").write_text("".join(rest))
                body = f"PYTHONPATH=. exec '{sys.executable}' '{tmp_path}/build.py' \"$@\"\n"
            else:
                body = first + "".join(rest)
            self.path.write_text(started + body)
            self.path.chmod(0o755)
            return self.path

        def arguments(self):
            return (tmp_path / "started").read_text().split()

        def assert_gone(self):
            """The process has ended and its port is free."""
            arguments = self.arguments()
            with pytest.raises(ProcessLookupError):
                os.kill(int(arguments[0]), 0)
            assert_free(int(arguments[arguments.index("--port") + 1]))

    return Build()


def assert_free(port):
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("localhost", port))


def free_port():
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return listener.getsockname()[1]


def python(script, stream="stdout", **kwargs):
    """Run a script in a fresh Python and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=PROJECT,
        text=True,
        capture_output=True,
        timeout=GUARD,
        **kwargs,
    )
    assert done.returncode == 0, done.stderr
    return getattr(done, stream)


def embedded(*arguments, **options):
    """The embedded environment with the goals that the stand-in has."""
    return reacher.ReacherEnvironment(*arguments, **options, goals="unity")


def assert_same(answer, expected):
    for name in FIELDS:
        one, other = getattr(answer[BRAIN], name), getattr(expected[BRAIN], name)
        assert type(one) is type(other), name
        assert getattr(one, "dtype", None) == getattr(other, "dtype", None), name
        np.testing.assert_array_equal(one, other, err_msg=name)


def assert_same_episodes(env, reference, decisions, config=None, seed=0):
    """Play both with the same random actions and compare every number of every answer."""
    rng = np.random.default_rng(seed)
    assert_same(
        env.reset(train_mode=True, config=config), reference.reset(train_mode=True, config=config)
    )
    for _ in range(decisions):
        actions = rng.normal(size=(reference.num_agents, 4))
        answer, expected = env.step(actions), reference.step(actions)
        assert_same(answer, expected)
    return answer[BRAIN]


def test_three_whole_episodes_are_those_of_the_embedded_environment(launcher):
    with open_unity(launcher, seed=7) as env, embedded(20, seed=7) as reference:
        for episode in range(3):
            last = assert_same_episodes(env, reference, 1001, seed=episode)
            assert all(last.local_done) and all(last.max_reached)
            # The arms go on by themselves after an episode's end, as in the Unity build.
            assert_same(env.step(np.zeros((20, 4))), reference.step(np.zeros((20, 4))))


def test_academy_and_brain_are_those_of_the_embedded_environment(launcher):
    with open_unity(launcher) as env, embedded(20) as reference:
        assert isinstance(env, unityagents.UnityEnvironment)
        lines = str(env).splitlines()
        lines.remove("        Lesson number : 0")  # the embedded environment has no curriculum
        # Sorted, since protobuf has no order for the reset parameters.
        assert sorted(lines) == sorted(str(reference).splitlines())
        for name in (
            "academy_name",
            "brain_names",
            "external_brain_names",
            "number_brains",
            "number_external_brains",
        ):
            assert getattr(env, name) == getattr(reference, name)
        theirs = vars(env.brains[BRAIN])
        for name, value in vars(reference.brains[BRAIN]).items():
            sequence = isinstance(value, tuple)  # protobuf's own kind of list on the other side
            assert (tuple(theirs[name]) if sequence else theirs[name]) == value, name


def test_reset_parameters_reach_the_physics_and_stay(one_arm):
    with open_unity(one_arm) as env, embedded(1) as reference:
        for config in ({"goal_speed": 0.3, "goal_size": 12.0}, None, {"goal_speed": 0}):
            assert_same_episodes(env, reference, 30, config)
        with pytest.raises(unityagents.UnityEnvironmentException, match="goal_color"):
            env.reset(config={"goal_color": 1.0})
        assert_same(env.reset(train_mode=False), reference.reset(train_mode=False))


def test_goals_at_opening_are_sent_by_the_first_reset(one_arm):
    goals = {"goal_size": 12.5, "goal_speed": 0.3}
    with open_unity(one_arm, **goals) as env, embedded(1, **goals) as reference:
        for config in (None, {"goal_size": 3.0}, None):
            assert_same_episodes(env, reference, 30, config)
    with open_unity(one_arm, **goals) as env, embedded(1, **goals) as reference:
        assert_same_episodes(env, reference, 30, {"goal_size": 3.0})
        assert env.reward_threshold == reference.reward_threshold == 30.0
    with pytest.raises(ValueError, match="'goal_size' must be a number"):
        open_unity(one_arm, goal_size=-1)
    with pytest.raises(ValueError, match="unknown reset parameter 'goal_color'"):
        open_unity(one_arm, goal_color=1)


@pytest.mark.parametrize(("ours", "sent", "used"), [(5, 0, 5), (0, 3, 3), (5, 3, 3)])
def test_seed_of_the_client_comes_before_the_launchers(tmp_path, ours, sent, used):
    path = reacher.unity_launcher(1, seed=ours, folder=tmp_path)
    with open_unity(path, seed=sent) as env:
        assert_same(env.reset(), embedded(1, seed=used).reset())


def test_ten_times_open_and_close(one_arm):
    threads, ports = threading.active_count(), []
    for _ in range(10):
        env = open_unity(one_arm)
        env.reset()
        assert len(env.step(np.zeros(4))[BRAIN].rewards) == 1
        env.close()
        env.close()  # a cell that is run twice
        assert env.proc1.poll() is not None
        ports.append(env.port)
        with pytest.raises(unityagents.UnityEnvironmentException):
            env.step(np.zeros(4))
    for port in ports:
        assert_free(port)
    assert threading.active_count() <= threads + 1  # the last one may be on its way out


def test_two_environments_at_once(one_arm):
    with open_unity(one_arm, seed=1) as first, open_unity(one_arm, seed=2) as second:
        assert first.port != second.port
        references = [embedded(1, seed) for seed in (1, 2)]
        for env, reference in zip((first, second), references, strict=True):
            assert_same(env.reset(), reference.reset())
        for _ in range(50):
            for env, reference in zip((first, second), references, strict=True):
                assert_same(env.step(np.ones(4)), reference.step(np.ones(4)))
        first.close()
        assert_same(second.step(np.ones(4)), references[1].step(np.ones(4)))


def test_player_killed_in_mid_episode(launcher):
    env = open_unity(launcher)
    env.reset()
    scores = [sum(env.step(np.ones((20, 4)))[BRAIN].rewards) for _ in range(20)]
    os.kill(env.proc1.pid, signal.SIGKILL)
    start = time.monotonic()
    with pytest.raises(UnityError, match=r"signal 9 .*middle of an episode; reopen"):
        while time.monotonic() < start + GUARD:
            scores.append(sum(env.step(np.ones((20, 4)))[BRAIN].rewards))
    assert len(scores) >= 20
    assert env.proc1.poll() == -signal.SIGKILL
    assert_free(env.port)
    env.close()
    with open_unity(launcher) as env:
        env.reset()


def test_player_killed_while_it_computes(one_arm):
    with open_unity(one_arm) as env:
        env.reset()
        os.kill(env.proc1.pid, signal.SIGSTOP)
        threading.Timer(0.5, os.kill, (env.proc1.pid, signal.SIGKILL)).start()
        with pytest.raises(UnityError, match="signal 9"):
            env.step(np.zeros(4))


def test_a_player_that_is_stopped_is_an_error(one_arm):
    with open_unity(one_arm) as env:
        env.reset()
        os.kill(env.proc1.pid, signal.SIGSTOP)
        guard = threading.Timer(GUARD, env.proc1.kill)
        guard.start()
        env.communicator._timeout = 0.5  # less would do to open it as well, but not surely
        with pytest.raises(UnityError, match=r"did not answer within 0.5 s.*stopped"):
            env.step(np.zeros(4))
        guard.cancel()
        env.proc1.wait(GUARD)


def test_interrupted_step_does_not_shift_the_answers(one_arm, interruptible):
    """Stop button in the middle of a step: the late answer must not pass for the next one's."""
    reference = embedded(1)
    with open_unity(one_arm) as env:
        assert_same(env.reset(), reference.reset())
        os.kill(env.proc1.pid, signal.SIGSTOP)
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            env.step(np.zeros(4))
        os.kill(env.proc1.pid, signal.SIGCONT)
        reference.step(np.zeros(4))
        assert_same_episodes(env, reference, 10)


# Others who call at the port.


def academy(version=API_VERSION):
    """What a player says first."""
    message = messages.UnityMessage()
    message.header.status = 200
    message.unity_output.rl_initialization_output.name = "Academy"
    message.unity_output.rl_initialization_output.version = version
    return message


def empty():
    """What a player says next, and an answer without a brain."""
    message = messages.UnityMessage()
    message.header.status = 200
    return message


def call(port, message, method=EXCHANGE):
    """Call as a stranger, from a connection of its own; return the status."""
    with grpc.insecure_channel(f"localhost:{port}", [("grpc.enable_http_proxy", 0)]) as channel:
        exchange = channel.unary_unary(
            method, messages.UnityMessage.SerializeToString, messages.UnityMessage.FromString
        )
        with pytest.raises(grpc.RpcError) as error:
            exchange(message, timeout=GUARD)
    return error.value.code()


STRANGERS = {
    "empty": (empty, EXCHANGE, grpc.StatusCode.PERMISSION_DENIED),
    "a second player": (academy, EXCHANGE, grpc.StatusCode.PERMISSION_DENIED),
    "a later player": (lambda: academy("API-5"), EXCHANGE, grpc.StatusCode.PERMISSION_DENIED),
    "a later protocol": (
        empty,
        "/communicator_objects.UnityToExternalProto/Exchange",
        grpc.StatusCode.UNIMPLEMENTED,
    ),
    "something else": (empty, "/grpc.health.v1.Health/Check", grpc.StatusCode.UNIMPLEMENTED),
}


@pytest.mark.parametrize("stranger", STRANGERS)
def test_strangers_are_refused_and_change_nothing(one_arm, stranger):
    """Also in a step that takes so long that the client looks after its player."""
    message, method, status = STRANGERS[stranger]
    with open_unity(one_arm) as env, embedded(1) as reference:
        assert call(env.port, message(), method) == status
        assert_same_episodes(env, reference, 10)
        os.kill(env.proc1.pid, signal.SIGSTOP)
        callers = [
            threading.Thread(target=call, args=(env.port, message(), method)) for _ in range(3)
        ]
        threading.Timer(1.0, os.kill, (env.proc1.pid, signal.SIGCONT)).start()
        for caller in callers:
            caller.start()
        assert_same(env.step(np.ones(4)), reference.step(np.ones(4)))
        for caller in callers:
            caller.join()
        assert_same_episodes(env, reference, 10)


def test_a_stranger_that_begins_a_call_and_says_nothing_holds_up_nobody(one_arm):
    began, end, is_over = threading.Event(), threading.Event(), threading.Event()

    def silence():
        began.set()
        end.wait(GUARD)
        is_over.set()
        yield from ()

    with (
        open_unity(one_arm) as env,
        embedded(1) as reference,
        grpc.insecure_channel(f"localhost:{env.port}") as channel,
    ):
        open_call = channel.stream_unary(EXCHANGE, bytes, bytes).future(silence())
        assert began.wait(GUARD)
        time.sleep(0.5)  # for the call to arrive
        assert_same_episodes(env, reference, 10)
        assert not is_over.is_set()
        end.set()
        open_call.cancel()


def test_actions_that_the_stand_in_refuses(one_arm):
    with open_unity(one_arm) as env:
        env.reset()
        with pytest.raises(unityagents.UnityActionException, match="expected 4"):
            env.step(np.zeros(3))
        with pytest.raises(UnityError, match="must be finite"):
            env.step(np.full(4, np.nan))


COURSE_NOTEBOOK = """
    from unityagents import UnityEnvironment
    import numpy as np

    env = UnityEnvironment(file_name={path!r}, worker_id={worker_id})
    brain_name = env.brain_names[0]
    brain = env.brains[brain_name]
    env_info = env.reset(train_mode=True)[brain_name]
    num_agents = len(env_info.agents)
    print('Number of agents:', num_agents)
    action_size = brain.vector_action_space_size
    print('Size of each action:', action_size)
    states = env_info.vector_observations
    state_size = states.shape[1]
    print('There are {{}} agents. Each observes a state with length: {{}}'.format(states.shape[0],
                                                                            state_size))
    env_info = env.reset(train_mode=False)[brain_name]     # reset the environment
    states = env_info.vector_observations                  # get the current state (for each agent)
    scores = np.zeros(num_agents)                          # initialize the score (for each agent)
    while True:
        actions = np.random.randn(num_agents, action_size) # select an action (for each agent)
        actions = np.clip(actions, -1, 1)                  # all actions between -1 and 1
        env_info = env.step(actions)[brain_name]           # send all actions to tne environment
        next_states = env_info.vector_observations         # get next state (for each agent)
        rewards = env_info.rewards                         # get reward (for each agent)
        dones = env_info.local_done                        # see if episode finished
        scores += env_info.rewards                         # update the score (for each agent)
        states = next_states                               # roll over states to next time step
        if np.any(dones):                                  # exit loop if episode finished
            break
    print('Total score (averaged over agents) this episode: {{}}'.format(np.mean(scores)))
"""


@pytest.mark.parametrize("ends", ["env.close()", ""], ids=["closed", "not closed"])
def test_course_notebook_with_the_original_class(launcher, ends):
    """It runs unchanged, and Python ends even if the last cell, env.close(), was not run."""
    notebook = COURSE_NOTEBOOK.format(path=launcher, worker_id=free_port() - 5005)
    printed = python("import reacher.unity\n" + textwrap.dedent(notebook) + ends)
    assert "Number of agents: 20\nSize of each action: 4\n" in printed
    assert "There are 20 agents. Each observes a state with length: 33\n" in printed
    score = float(re.search(r"this episode: (\S+)", printed)[1])
    assert 0 <= score < 1  # a random policy's


def test_original_class_reopens_on_the_same_port_and_sees_a_busy_one(one_arm):
    port = free_port()
    for _ in range(2):
        env = unityagents.UnityEnvironment(file_name=one_arm, base_port=port)
        env.reset()
        with pytest.raises(UnityError, match=f"port {port} is in use.*worker_id"):
            unityagents.UnityEnvironment(file_name=one_arm, base_port=port)
        os.kill(env.proc1.pid, signal.SIGINT)  # Jupyter's stop button reaches the player as well
        env.step(np.zeros(4))
        env.close()
        env.proc1.wait(GUARD)
    env = unityagents.UnityEnvironment(file_name=one_arm, base_port=port)
    env.reset()
    env.proc1.kill()
    with pytest.raises(UnityError, match="signal 9"):
        env.step(np.zeros(4))


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_port_that_is_taken_at_one_address_is_an_error(one_arm, address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as other:
        try:
            other.bind((address, 0))
        except OSError:
            pytest.skip(f"this machine has no {address}")
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(UnityError, match=f"port {port} is in use"):
            unityagents.UnityEnvironment(file_name=one_arm, base_port=port).close()


def start_server(port, *options):
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "reacher.unity.server",
            "--port",
            str(port),
            "-nographics",
            "-batchmode",
            *options,
        ],
        cwd=PROJECT,
    )


def test_server_started_by_hand_quits_when_told(tmp_path):
    port = free_port()
    server = start_server(port, "--num-agents", "3", "--seed", "4")
    env = unityagents.UnityEnvironment(base_port=port)  # as with the Unity editor: starts nothing
    assert_same(env.reset(), embedded(3, seed=4).reset())
    env.close()
    assert server.wait(GUARD) == 0


def test_server_exits_when_the_client_is_killed():
    port = free_port()
    client = subprocess.Popen(
        [
            sys.executable,
            "-c",
            textwrap.dedent(f"""
        import reacher.unity, time
        env = reacher.unity.unityagents.UnityEnvironment(base_port={port})
        env.reset()
        print("ready", flush=True)
        time.sleep({GUARD})
    """),
        ],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        text=True,
    )
    server = start_server(port, "--num-agents", "1")
    with client:
        assert client.stdout.readline() == "ready\n"
        client.kill()
    assert server.wait(GUARD) == 0


@pytest.mark.parametrize(
    "opened", ["reacher.unity.open_unity", "reacher.unity.unityagents.UnityEnvironment"]
)
def test_the_academys_summary_is_logged_as_by_the_original(one_arm, opened):
    """As `INFO:unityagents:`, on standard error, like the handler that it would set up."""
    printed = python(
        f"""
        import reacher.unity
        env = {opened}({one_arm!r})
        env.reset()
        env.close()
    """,
        stream="stderr",
    )
    first, second, *rest = printed.splitlines()
    assert (first, second) == ("INFO:unityagents:", "'Academy' started successfully!")
    assert rest[0] == "Unity Academy name: Academy"
    assert {"\t\tgoal_size -> 5.0", "\t\tgoal_speed -> 1.0"} <= set(rest)
    assert rest[-8:] == str(embedded(1).brains[BRAIN]).splitlines()


def test_the_academys_summary_goes_to_the_users_own_handler_alone(one_arm):
    printed = python(
        f"""
        import logging
        import reacher.unity
        logging.basicConfig(level=logging.INFO, format="mine %(message)s")
        reacher.unity.open_unity({one_arm!r}).close()
    """,
        stream="stderr",
    )
    assert printed.startswith("mine \n'Academy' started successfully!")
    assert printed.count("started successfully") == 1


@pytest.mark.parametrize("opened", [open_unity, unityagents.UnityEnvironment])
def test_numbers_are_of_double_precision_as_they_were_in_2018(one_arm, opened):
    """Code that mixes them with float64 relies on it; their values are those of the wire."""
    with contextlib.closing(opened(str(one_arm))) as env:
        for answer in (env.reset(), env.step(np.full(4, 0.1))):
            info = answer[BRAIN]
            for name in ("vector_observations", "previous_vector_actions", "memories"):
                assert getattr(info, name).dtype == np.float64, name
    np.testing.assert_array_equal(info.previous_vector_actions, np.full((1, 4), np.float32(0.1)))


def test_importing_leaves_the_rest_alone():
    printed = python(
        """
        import logging, sys
        import numpy as np
        import reacher
        assert not {"grpc", "google.protobuf", "unityagents"} & sys.modules.keys()
        names = set(vars(np))
        import reacher.unity
        from google.protobuf.internal import api_implementation
        assert set(vars(np)) == names
        assert not logging.getLogger().handlers
        print(api_implementation.Type(), type(reacher.unity.messages.UnityMessage()).__base__)
    """,
        env={
            name: value
            for name, value in os.environ.items()
            if not name.startswith("PROTOCOL_BUFFERS")
        },
    )
    assert printed.startswith("upb")


@pytest.mark.parametrize(
    ("module", "install"),
    [
        ("communicator_objects", "pip install --no-deps unityagents==0.4.0"),
        ("grpc", "pip install grpcio protobuf pillow"),
        ("PIL", "pip install pillow"),
    ],
)
def test_missing_package_names_the_command(module, install):
    printed = python(f"""
        import sys
        sys.modules[{module!r}] = None  # as if it were not installed
        try:
            import reacher.unity
        except ModuleNotFoundError as error:
            print(error)
    """)
    assert install in printed


@pytest.mark.parametrize(
    "location",
    ["~nosuchuser/Reacher.x86_64", 5_000 * "a", "a\0b"],
    ids=["no such user", "too long", "no path"],
)
def test_what_is_no_path_is_named(location):
    with pytest.raises(ValueError, match="no path of a Unity build|does not exist") as error:
        find_player(location)
    assert len(str(error.value)) < 600


# Launchers and places.


def test_launcher_for_macos(tmp_path):
    launcher = _write_launcher(tmp_path, ["--num-agents", "2"], "darwin")
    assert launcher == tmp_path / "Reacher.app"
    for location in (launcher, tmp_path, tmp_path / "Reacher"):
        player = find_player(location, "darwin")
        assert player == launcher / "Contents" / "MacOS" / "Reacher"
    with _UnityEnvironment(player, 0, True, GUARD) as env:
        assert len(env.reset()[BRAIN].agents) == 2


def test_on_windows_the_launcher_says_what_to_do_instead(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(RuntimeError, match="works on Linux and macOS.*reacher.unity.server"):
        reacher.unity_launcher()


def test_launchers_take_new_folders_by_default_that_go_with_the_process(tmp_path):
    """They work as long as it lives, also beyond the end of a process that it forked."""
    printed = python(
        f"""
        import os, reacher
        from reacher.unity import open_unity
        first, second = reacher.unity_launcher(1), reacher.unity_launcher(1)
        named = reacher.unity_launcher(1, folder={str(tmp_path / "named")!r})
        child = os.fork()
        if not child:
            raise SystemExit
        os.waitpid(child, 0)
        for path in (first, second, named):
            with open_unity(path) as env:
                print(len(env.reset()["ReacherBrain"].agents), end=" ")
        env = open_unity(first)  # and is not closed
        print(len(os.listdir({str(tmp_path)!r})))
    """,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert printed == "1 1 1 3\n"
    assert os.listdir(tmp_path) == ["named"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [({"num_agents": 0}, ValueError), ({"num_agents": 2.5}, TypeError), ({"seed": -1}, ValueError)],
)
def test_launcher_refuses_bad_arguments(arguments, error):
    with pytest.raises(error, match=next(iter(arguments))):
        reacher.unity_launcher(**arguments)


def place(folder, *names):
    """Make files as they come out of the course's zip files; a name with / is made in folders."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"")
        (folder / name).chmod(0o755)


@pytest.mark.parametrize(
    ("system", "files", "locations", "player"),
    [
        (
            "linux",
            ["Reacher_Linux/Reacher.x86_64", "Reacher_Linux/Reacher.x86"],
            ["", "Reacher_Linux", "Reacher_Linux/Reacher", "Reacher_Linux/Reacher.x86_64"],
            "Reacher_Linux/Reacher.x86_64",
        ),
        ("linux", ["Reacher.x86_64", "Reacher.x86"], ["Reacher.x86"], "Reacher.x86"),
        ("linux", ["Reacher.x86_64", "Reacher.exe"], ["", "Reacher"], "Reacher.x86_64"),
        (
            "darwin",
            ["Reacher.app/Contents/MacOS/Reacher 20"],
            ["", "Reacher.app", "Reacher"],
            "Reacher.app/Contents/MacOS/Reacher 20",
        ),
        (
            "win32",
            ["W/W/Reacher.exe", "W/W/UnityCrashHandler64.exe"],
            ["W", "W/W", "W/W/Reacher", " W/W/Reacher.exe "],
            "W/W/Reacher.exe",
        ),
    ],
)
def test_locations(tmp_path, monkeypatch, system, files, locations, player):
    place(tmp_path, *files)
    monkeypatch.chdir(tmp_path)
    for location in locations:
        assert find_player(location or tmp_path, system) == tmp_path / player


@pytest.mark.parametrize(
    ("files", "location", "message"),
    [
        ([], "Reacher.x86_64", "does not exist: give the path"),
        ([], ".", "holds no Unity build"),
        ([], " ", "location is empty"),
        (["Reacher_Linux.zip"], "Reacher_Linux.zip", "unpack it first"),
        (["notes.txt"], "notes.txt", "is not a Unity build"),
        (["Reacher.exe"], "Reacher.exe", "is a build for Windows"),
        (["Reacher.app/Contents/MacOS/Reacher"], "Reacher", "is a build for macOS"),
        (["a/Reacher.x86_64", "b/Reacher.x86_64"], ".", "several builds"),
    ],
)
def test_bad_locations(tmp_path, monkeypatch, files, location, message):
    place(tmp_path, *files)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        find_player(location, "linux")


def test_not_executable(build):
    path = build("exit")
    path.chmod(0o644)
    with pytest.raises(ValueError, match=r"not executable; run\n    chmod \+x '.*Reacher.x86_64'"):
        open_unity(path)


@pytest.mark.parametrize(
    ("seed", "error"), [(-1, ValueError), (2**31, ValueError), (0.5, TypeError)]
)
def test_bad_seed(one_arm, seed, error):
    with pytest.raises(error, match="seed"):
        open_unity(one_arm, seed=seed)


# Builds that fail.


def test_damaged_build(tmp_path):
    (tmp_path / "Reacher.x86_64").write_bytes(b"\x7fELF, but not really")
    (tmp_path / "Reacher.x86_64").chmod(0o755)
    with pytest.raises(UnityError, match="cannot be started: Exec format error"):
        open_unity(tmp_path)


def test_build_that_exits_at_once(build):
    path = build("echo 'error while loading shared libraries: libXcursor.so.1' >&2; exit 127")
    with pytest.raises(UnityError) as error:
        open_unity(path)
    message = str(error.value)
    assert f"{path} ended with exit code 127 before it connected. Start it by hand" in message
    assert "libXcursor.so.1" in message
    build.assert_gone()


def test_build_that_never_connects(build):
    path = build("exec sleep 1000")
    with pytest.raises(UnityError, match=r"did not connect to port \d+ within 1 s"):
        open_unity(path, timeout=1)
    build.assert_gone()


def test_interrupt_while_it_starts(build, interruptible):
    path = build("exec sleep 1000")
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        open_unity(path)
    build.assert_gone()


@pytest.mark.parametrize(
    ("call", "version", "message"),
    [
        ("/communicator_objects.UnityToExternal/Exchange", "API-5", "speaks version 'API-5'"),
        ("/communicator_objects.UnityToExternalProto/Exchange", "1.0.0", "speaks the call .*Proto"),
    ],
)
def test_build_of_another_version(build, call, version, message):
    path = build(f"""
        #!python
        import grpc, sys, time
        from reacher.unity import messages
        message = messages.UnityMessage()
        message.header.status = 200
        message.unity_output.rl_initialization_output.version = {version!r}
        with grpc.insecure_channel("localhost:" + sys.argv[-1]) as channel:
            call = channel.unary_unary({call!r}, messages.UnityMessage.SerializeToString,
                                       messages.UnityMessage.FromString)
            try:
                call(message)
            finally:
                time.sleep(1000)
    """)
    with pytest.raises(UnityError, match=message) as error:
        open_unity(path, timeout=5)
    assert "API-4 (v0.4): download the course's own build" in str(error.value)
    build.assert_gone()


def test_a_call_before_the_player_s_does_not_stop_the_opening(build):
    path = build("""
        #!python
        import grpc, sys, time
        from reacher.unity import messages
        from reacher.unity.server import main
        with grpc.insecure_channel("localhost:" + sys.argv[-1]) as channel:
            call = channel.unary_unary("/communicator_objects.UnityToExternalProto/Exchange",
                                       messages.UnityMessage.SerializeToString,
                                       messages.UnityMessage.FromString)
            try:
                call(messages.UnityMessage(), timeout=5)
            except grpc.RpcError:
                pass
        time.sleep(3)  # meanwhile the client looks after its player
        main(["--num-agents", "1", *sys.argv[1:]])
    """)
    with open_unity(path) as env:
        assert len(env.reset()["ReacherBrain"].agents) == 1


def test_player_whose_window_is_closed(build):
    path = build("""
        #!python
        import grpc, sys
        from reacher.unity.protocol import EXCHANGE, API_VERSION, messages
        with grpc.insecure_channel("localhost:" + sys.argv[-1]) as channel:
            call = channel.unary_unary(EXCHANGE, messages.UnityMessage.SerializeToString,
                                       messages.UnityMessage.FromString)
            for status in (200, 200, 400):
                message = messages.UnityMessage()
                message.header.status = status
                message.unity_output.rl_initialization_output.version = API_VERSION
                call(message)
    """)
    env = open_unity(path)
    with pytest.raises(UnityError, match="was closed"):
        env.reset()
    build.assert_gone()


@pytest.mark.parametrize(
    ("display", "wayland", "asked", "flags"),
    [
        ("", "", None, True),
        (":0", "", None, False),
        ("", "wayland-0", None, False),
        ("", "", False, False),
        (":0", "", True, True),
    ],
)
def test_no_graphics(build, monkeypatch, display, wayland, asked, flags):
    monkeypatch.setenv("DISPLAY", display)
    monkeypatch.setenv("WAYLAND_DISPLAY", wayland)
    with pytest.raises(UnityError):
        open_unity(build("exit 1"), no_graphics=asked)
    expected = ["-nographics", "-batchmode"] if flags else []
    assert build.arguments()[1:-2] == expected


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--port", "99999", "port must be from 1 to 65535, not 99999"),
        ("--port", "0", "port must be from 1 to 65535, not 0"),
        ("--port", "-1", "port must be from 1 to 65535, not -1"),
        ("--timeout", "nan", "timeout must be a number from 0 to 86400, not nan"),
        ("--timeout", "inf", "timeout must be a number from 0 to 86400, not inf"),
        ("--timeout", "-1", "timeout must be a number from 0 to 86400, not -1.0"),
        ("--num-agents", "0", "num_agents must be from 1 to 2000, not 0"),
        ("--seed", "-1", "seed must be from 0 to 2147483647, not -1"),
    ],
)
def test_server_checks_its_options_before_it_waits(monkeypatch, option, value, message):
    monkeypatch.setattr(grpc, "insecure_channel", None)  # so that waiting would be another error
    options = {"--port": "1", option: value}
    with pytest.raises(SystemExit, match=f"reacher.unity.server: {message}"):
        server.main([text for pair in options.items() for text in pair])


@pytest.mark.parametrize("timeout", [float("nan"), float("inf"), -1, "10"])
def test_a_timeout_that_is_none_is_an_error_before_anything_starts(build, timeout):
    path = build("exec sleep 1000")
    with pytest.raises(ValueError, match="timeout must be a number from 0 to 86400"):
        open_unity(path, timeout=timeout)
    assert not (path.parent / "started").exists()


def test_server_says_when_nobody_listens():
    server = subprocess.run(
        [sys.executable, "-m", "reacher.unity.server", "--port", "1", "--timeout", "1"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=GUARD,
    )
    assert server.returncode == 1 and "nobody listens at port 1" in server.stderr
