"""The client: `open_unity`, and what takes the place of `unityagents`' side of the connection.

Importing it changes methods of the original `UnityEnvironment`: how it finds and starts the player,
connects to it and ends it, and the type of the numbers in its answers.
"""

from __future__ import annotations

import atexit
import itertools
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent import futures
from typing import Any

import grpc
import numpy as np

from reacher.checks import integer, number
from reacher.goals import MAX_UNITY_SEED
from reacher.unity.player import find_player
from reacher.unity.protocol import (
    API_VERSION,
    EXCHANGE,
    OK,
    QUIT,
    messages,
    unityagents,
)

TIMEOUT = 50.0  # s, for the player to start and connect, and for each of its answers
POLL = 0.2  # s between two looks whether the player is still alive


class UnityError(unityagents.UnityEnvironmentException, RuntimeError):
    """The player did not start, speaks another protocol, or has gone. It is closed by then."""


def open_unity(
    location: str | os.PathLike,
    seed: int = 0,
    no_graphics: bool | None = None,
    timeout: float = TIMEOUT,
) -> unityagents.UnityEnvironment:
    """Start the Unity build of Reacher (or `reacher.unity_launcher`'s stand-in) and connect to it.

    Args:
        location: the `.x86_64`, `.x86`, `.app` or `.exe`, or the folder it was unpacked into.
        seed: of the build's random numbers, 0 to 2**31 - 1.
        no_graphics: no window; None means True on Linux without a display, False elsewhere.
        timeout: s to wait for the build to start and connect, and later for each of its answers.
    Returns:
        A `unityagents.UnityEnvironment` on a free port of its own, to be closed with `close()`. If
        the player dies or does not answer in time, `reset` and `step` raise UnityError.

    Raises:
        TypeError, ValueError: no build at `location` that this system can run, or a bad argument.
        UnityError: the build ends at once, does not connect in time, or speaks another version.
            Its process has ended and its port is free then.
    """
    find_player(location)
    seed = integer("seed", seed, 0, MAX_UNITY_SEED)
    timeout = number("timeout", timeout, 0, 86_400)
    if no_graphics is None:
        has_display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
        no_graphics = sys.platform == "linux" and not has_display
    return _UnityEnvironment(timeout, os.fspath(location), 0, 0, None, seed, False, no_graphics)


class _UnityEnvironment(unityagents.UnityEnvironment):
    """The original, with a timeout, which leaves no process behind if it cannot be made."""

    def __init__(self, timeout: float, *others: Any) -> None:
        self._timeout = timeout
        try:
            super().__init__(*others)
        except BaseException:
            self._close()
            raise


class _Communicator(unityagents.communicator.Communicator, grpc.GenericRpcHandler):
    """Python's side of the connection, in the place of unityagents' RpcCommunicator.

    The player is the caller in this protocol: a call carries its answer to our last message and
    returns with our next one. So it is always inside a call while Python thinks. Messages have
    tickets, because the answer to one that the user interrupted comes late.

    It listens at `port`, 0 for any free one, and watches `environment.proc1`, which prints to
    `environment._log`.
    """

    def __init__(self, environment: unityagents.UnityEnvironment, port: int) -> None:
        self._environment, self._port = environment, port
        self._timeout = getattr(environment, "_timeout", TIMEOUT)
        self._server: grpc.Server | None = None
        self._received: queue.SimpleQueue = queue.SimpleQueue()  # ticket, and the answer to it
        self._to_send: queue.SimpleQueue = queue.SimpleQueue()  # ticket, and a message
        self._tickets, self._answered = itertools.count(), None

    def listen(self) -> int:
        """Take the port and start the server; return the port."""
        # Without this option two servers may share a port, and players reach either.
        server = grpc.server(_DaemonThreads(), options=[("grpc.so_reuseport", 0)])
        server.add_generic_rpc_handlers((self,))
        try:
            self._port = server.add_insecure_port(f"localhost:{self._port}")
        except RuntimeError as error:
            self._fail(
                f"port {self._port} is in use: close the environment that has it, which may be "
                "another process's, or choose another port by worker_id (0, 1, ...) or base_port",
                error,
            )
        server.start()
        self._server = server
        return self._port

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        if details.method != EXCHANGE:
            return None
        message = messages.UnityMessage
        return grpc.unary_unary_rpc_method_handler(
            self._player_calls, message.FromString, message.SerializeToString
        )

    def _player_calls(self, request, context):
        self._received.put((self._answered, request))
        self._answered, reply = self._to_send.get()
        return reply

    def initialize(self, inputs: messages.UnityInput) -> messages.UnityOutput:
        """Wait for the player's academy parameters and answer with the seed."""
        if self._server is None:  # the original launcher has started the player already
            self.listen()
        deadline = time.monotonic() + self._timeout
        academy = self._receive(None, deadline, connecting=True)
        version = academy.rl_initialization_output.version
        if version != API_VERSION:
            self._fail(
                f"the player speaks version {version!r} of ML-Agents, this client {API_VERSION} "
                "(v0.4): download the course's own build, see doc/unity.md"
            )
        ticket = self._send(OK, inputs)
        self._receive(ticket, deadline, connecting=True)  # empty: it waits for a command
        return academy

    def exchange(self, inputs: messages.UnityInput) -> messages.UnityOutput:
        """Send a reset or a step and wait for the player's answer to it."""
        return self._receive(self._send(OK, inputs), time.monotonic() + self._timeout)

    def close(self) -> None:
        """Tell the player to quit and free the port."""
        if self._server is not None:
            self._send(QUIT)
            self._server.stop(grace=1.0).wait()
            self._server = None

    def _send(self, status: int, inputs: messages.UnityInput | None = None) -> int:
        message = messages.UnityMessage(unity_input=inputs)
        message.header.status = status
        ticket = next(self._tickets)
        self._to_send.put((ticket, message))
        return ticket

    def _receive(
        self, ticket: int | None, deadline: float, connecting: bool = False
    ) -> messages.UnityOutput:
        """The answer to message `ticket`; None stands for the player's first call."""
        while True:
            try:
                answered, message = self._received.get(timeout=POLL)
            except queue.Empty:
                self._check_player(deadline, connecting)
                continue
            if message.header.status != OK:
                self._fail("the player was closed (its window, or by itself): reopen it to go on")
            if answered == ticket:
                return message.unity_output

    def _check_player(self, deadline: float, connecting: bool) -> None:
        process, is_late = self._environment.proc1, time.monotonic() > deadline
        has_ended = process is not None and process.poll() is not None
        if process is not None and has_ended:
            code = process.returncode
            how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
            if connecting:
                self._fail(f"{process.args[0]} ended {how} before it connected: start it by hand")
            self._fail(f"the player ended {how} in the middle of an episode: reopen it to go on")
        if is_late and connecting:
            self._fail(
                f"the player did not connect to port {self._port} within {self._timeout:g} s: "
                "is it the Reacher build, does it wait for a click, does a firewall block it?"
            )
        if is_late:
            self._fail(f"the player did not answer within {self._timeout:g} s: reopen it to go on")

    def _fail(self, text: str, cause: Exception | None = None) -> None:
        """Close the environment and raise UnityError with the last lines that the player wrote."""
        log = self._environment._log
        if not log.closed:
            log.seek(0)
            lines = log.read().decode(errors="replace").strip().splitlines()[-10:]
            if lines:
                text += "\nThe last lines that it printed:\n    " + "\n    ".join(lines)
        self._environment._close()
        raise UnityError(text) from cause


class _DaemonThreads(futures.Executor):
    """Runs each call in a thread of its own, on which Python does not wait at its exit.

    With ThreadPoolExecutor it would hang on an environment that was not closed.
    """

    def submit(self, function: Callable, /, *args: Any, **kwargs: Any) -> futures.Future:
        future: futures.Future = futures.Future()

        def run():
            try:
                future.set_result(function(*args, **kwargs))
            except Exception as error:
                future.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return future


_original = {
    name: vars(unityagents.UnityEnvironment)[name] for name in ("_close", "_get_state", "step")
}


def _get_communicator(self, worker_id, base_port):
    self._log = tempfile.TemporaryFile()  # what the player prints, for error messages
    return _Communicator(self, base_port + worker_id)


def _start_player(self, file_name, docker_training, no_graphics):
    """In the place of one that cuts every ".app", ".exe" and ".x86" out of the path."""
    self.port = self.communicator.listen()
    try:
        player = find_player(file_name)
    except ValueError as error:
        self._close()
        raise UnityError(str(error)) from None
    command = [str(player), *["-nographics", "-batchmode"] * no_graphics, "--port", str(self.port)]
    options = {"stdin": subprocess.DEVNULL, "stdout": self._log, "stderr": self._log}
    try:
        # A session of its own: Jupyter's interrupt goes to the kernel's whole process group.
        self.proc1 = subprocess.Popen(command, start_new_session=True, **options)
    except OSError as error:
        self._close()
        raise UnityError(
            f"{command[0]} cannot be started: {error.strerror}. It is missing, damaged, or made "
            "for another processor"
        ) from error


def _close(self):
    """It may be called again."""
    _original["_close"](self)
    if self.proc1 is not None:
        self.proc1.wait()
    self._log.close()
    atexit.unregister(self._close)  # else every closed environment stays in memory


def _step(self, vector_action=None, *others, **named):
    """The original refuses all but NumPy's arrays and lists, so also PyTorch's tensors."""
    if isinstance(vector_action, dict):
        vector_action = {name: np.asarray(actions) for name, actions in vector_action.items()}
    elif hasattr(vector_action, "__array__"):
        vector_action = np.asarray(vector_action)
    return _original["step"](self, vector_action, *others, **named)


def _get_double_state(self, output):
    """The answer with numbers in double precision, as with the protobuf of 2018."""
    infos, done = _original["_get_state"](self, output)
    for info in infos.values():
        for name in ("vector_observations", "previous_vector_actions", "memories"):
            setattr(info, name, getattr(info, name).astype(np.float64))
    return infos, done


for _name, _method in {
    "get_communicator": _get_communicator,
    "executable_launcher": _start_player,
    "close": _close,
    "_close": _close,
    "step": _step,
    "_get_state": _get_double_state,
}.items():
    setattr(unityagents.UnityEnvironment, _name, _method)
