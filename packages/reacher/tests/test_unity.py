"""The Unity side: the real `unityagents` client against real processes, no mocks."""

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from reacher import ReacherVectorEnv

if importlib.util.find_spec("unityagents") is None:
    pytest.skip("unityagents is not installed", allow_module_level=True)
if sys.platform != "linux":
    pytest.skip("the fake builds are Linux ones", allow_module_level=True)

from reacher.unity import UnityError, UnityVectorEnv, open_unity, unity_launcher, unityagents
from reacher.unity.player import find_player

BRAIN = "ReacherBrain"
PROJECT = Path(__file__).parents[1]  # of the package
GUARD = 60  # s; nothing here takes as long unless it hangs


@pytest.fixture(scope="module")
def launcher(tmp_path_factory):
    """Path of a launcher for 20 arms; its folder has a space, as many on Windows and macOS."""
    return unity_launcher(20, folder=tmp_path_factory.mktemp("my builds"))


@pytest.fixture(scope="module")
def one_arm(tmp_path_factory):
    return unity_launcher(num_agents=1, folder=tmp_path_factory.mktemp("one_agent"))


@pytest.fixture
def build(tmp_path):
    """Write a fake build, run by sh: `build(script)` gives its path."""

    class Build:
        path = tmp_path / "Reacher.x86_64"

        def __call__(self, script):
            started = f"echo $$ \"$@\" > '{tmp_path}/started'; cd '{PROJECT}'"
            self.path.write_text(f"#!/bin/sh\n{started}\n{script}\n")
            self.path.chmod(0o755)
            return self.path

        def assert_gone(self):
            """The process has ended and its port is free."""
            arguments = (tmp_path / "started").read_text().split()
            with pytest.raises(ProcessLookupError):
                os.kill(int(arguments[0]), 0)
            free_port(int(arguments[arguments.index("--port") + 1]))

    return Build()


def free_port(port=0):
    """This port, which is free, or any one."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("localhost", port))
        return listener.getsockname()[1]


def test_a_build_is_one_of_gymnasiums_environments(launcher):
    """Equal to the arms in one process over an episode's end; a first reset is not lost."""
    arms = ReacherVectorEnv(20, 7, goals="unity")
    unity = UnityVectorEnv(open_unity(launcher, seed=7))
    assert unity.num_envs == 20
    assert unity.metadata["autoreset_mode"] == arms.metadata["autoreset_mode"]
    rng = np.random.default_rng(0)
    for options in (None, {"goal_size": 12.0}):
        first, expected = (env.reset(options=options)[0] for env in (unity, arms))
        np.testing.assert_array_equal(first, expected)
        for _ in range(1003 if options else 3):
            actions = rng.normal(size=(20, 4)).astype(np.float32)
            for one, other in zip(unity.step(actions), arms.step(actions), strict=True):
                assert getattr(one, "dtype", 0) == getattr(other, "dtype", 0)
                np.testing.assert_array_equal(one, other)
    with pytest.raises(ValueError, match="takes its seed when it is opened"):
        unity.reset(seed=1)
    unity.close(), unity.close()


def test_interrupted_step_does_not_shift_the_answers(one_arm):
    """Stop button in the middle of a step: the late answer must not pass for the next one's."""
    arms = ReacherVectorEnv(1, 0, goals="unity")
    with closing(open_unity(one_arm)) as env:
        env.reset(), arms.reset()
        os.kill(env.proc1.pid, signal.SIGSTOP)
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            env.step(np.zeros(4))
        os.kill(env.proc1.pid, signal.SIGCONT)
        arms.step(np.zeros((1, 4)))
        for actions in np.random.default_rng(0).uniform(-1, 1, (10, 1, 4)):
            answer = env.step(actions)[BRAIN]
            np.testing.assert_array_equal(answer.vector_observations, arms.step(actions)[0])


def test_answers_have_the_fields_and_types_of_2018(one_arm, tmp_path, monkeypatch):
    """Also where files have the names of the stand-in's modules."""
    for name in ("reacher", "random", "select"):
        (tmp_path / f"{name}.py").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)  # that of a developer may name the folder
    with closing(open_unity(one_arm)) as env:
        env.reset()
        answer = env.step([0.5, 0.0, 0.0, 0.0])[BRAIN]
    assert answer.vector_observations.dtype == np.float64
    assert answer.vector_observations.shape == (1, 33)
    assert answer.previous_vector_actions.tolist() == [[0.5, 0.0, 0.0, 0.0]]
    assert (answer.rewards, answer.agents) == ([0.0], [0])
    assert (answer.local_done, answer.max_reached) == ([False], [False])
    for bad in ({"seed": -1}, {"timeout": float("nan")}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            open_unity(one_arm, **bad)


def test_a_player_that_dies_is_named(one_arm):
    with closing(open_unity(one_arm)) as env:
        env.reset()
        env.proc1.kill()
        with pytest.raises(UnityError, match="signal 9 .*middle of an episode: reopen"):
            env.step(np.zeros(4))


COURSE_NOTEBOOK = """
from unityagents import UnityEnvironment
import numpy as np

env = UnityEnvironment(file_name={path!r}, worker_id={worker_id})
brain_name = env.brain_names[0]
action_size = env.brains[brain_name].vector_action_space_size
env_info = env.reset(train_mode=False)[brain_name]
num_agents = len(env_info.agents)
print(env_info.vector_observations.shape, action_size)
scores = np.zeros(num_agents)
while True:
    actions = np.clip(np.random.randn(num_agents, action_size), -1, 1)
    env_info = env.step(actions)[brain_name]
    scores += env_info.rewards
    if np.any(env_info.local_done):
        break
print(np.mean(scores))
"""


def test_course_notebook_with_the_original_class(launcher):
    """It runs unchanged, and Python ends even if the last cell, env.close(), was not run."""
    notebook = COURSE_NOTEBOOK.format(path=launcher, worker_id=free_port() - 5005)
    command = [sys.executable, "-c", f"import reacher.unity\n{notebook}"]
    told = subprocess.check_output(command, cwd=PROJECT, text=True, timeout=GUARD)
    shape, score = told.splitlines()[-2:]
    assert shape == "(20, 33) 4" and 0 <= float(score) < 1  # a random policy's


def test_original_class_reopens_takes_tensors_and_sees_a_busy_port(one_arm):
    torch, port, half = pytest.importorskip("torch"), free_port(), [[0.5] * 4]
    message = f"port {port} is in use.*process's.*worker_id.*base_p"
    for actions in torch.tensor(half), {BRAIN: torch.tensor(half)}:
        env = unityagents.UnityEnvironment(file_name=one_arm, base_port=port)
        env.reset()
        with pytest.raises(UnityError, match=message):
            unityagents.UnityEnvironment(file_name=one_arm, base_port=port)
        os.kill(env.proc1.pid, signal.SIGINT)  # Jupyter's stop button reaches the player as well
        assert env.step(actions)[BRAIN].previous_vector_actions.tolist() == half
        env.close(), env.close()
        env.proc1.wait(GUARD)


def place(folder, *names):
    """Make files as they come out of the course's zip files; a name with / is made in folders."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch(0o755)


@pytest.mark.parametrize(
    ("system", "player", "locations"),
    [
        ("linux", "R/Reacher.x86_64", ["", "R", "R/Reacher", "R/Reacher.x86_64"]),
        ("darwin", "Reacher.app/Contents/MacOS/Reacher 20", ["", "Reacher.app", "Reacher"]),
        ("win32", "W/W/Reacher.exe", ["W", "W/W", "W/W/Reacher", " W/W/Reacher.exe "]),
    ],
)
def test_locations(tmp_path, monkeypatch, system, player, locations):
    place(tmp_path, player, "R/Reacher.x86", "W/W/UnityCrashHandler64.exe")
    monkeypatch.chdir(tmp_path)
    for location in locations:
        assert find_player(location or tmp_path, system) == tmp_path / player


@pytest.mark.parametrize(
    ("files", "location", "message"),
    [
        ([], "Reacher.x86_64", "does not exist: give the path"),
        (["Reacher.exe"], "Reacher.exe", "is a build for Windows"),
        (["a/Reacher.x86_64", "b/Reacher.x86_64"], ".", "several builds"),
    ],
)
def test_bad_locations(tmp_path, monkeypatch, files, location, message):
    place(tmp_path, *files)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        find_player(location, "linux")


@pytest.mark.parametrize("original", [False, True])
def test_build_that_exits_at_once(build, original):
    path = build("echo 'error while loading shared libraries: libXcursor.so.1' >&2; exit 127")
    with pytest.raises(UnityError) as error:
        if original:
            unityagents.UnityEnvironment(file_name=str(path), base_port=free_port())
        open_unity(path)
    message = str(error.value)
    assert f"{path} ended with exit code 127 before it connected: start it by hand" in message
    assert "libXcursor.so.1" in message
    build.assert_gone()


def test_build_that_never_connects(build):
    path = build("exec sleep 1000")
    with pytest.raises(UnityError, match=r"did not connect to port \d+ within 1 s"):
        open_unity(path, timeout=1)
    build.assert_gone()
