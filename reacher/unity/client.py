"""The client: `open_unity`, and what takes the place of `unityagents`' side of the connection.

Importing it changes two methods of the original `UnityEnvironment`: how it connects, and the type
of the numbers in its answers.
"""

from __future__ import annotations

import atexit
import itertools
import os
import queue
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from concurrent import futures
from pathlib import Path
from typing import IO, Any

import grpc
import numpy as np

from reacher.checks import MAX_TIMEOUT, integer, number
from reacher.display import has_display
from reacher.task import SOLVED_SCORE, checked_parameters
from reacher.unity.player import find_player
from reacher.unity.protocol import (
    API_VERSION,
    EXCHANGE,
    OK,
    PACKAGE,
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
    **goals: float,
) -> unityagents.UnityEnvironment:
    """Start the Unity build of Reacher (or `reacher.unity_launcher`'s stand-in) and connect to it.

    Args:
        location: the `.x86_64`, `.x86`, `.app` or `.exe`, or the folder it was unpacked into.
        seed: of the build's random numbers, 0 to 2**31 - 1.
        no_graphics: no window; None means True on Linux without a display, False elsewhere.
        timeout: s to wait for the build to start and connect, and later for each of its answers;
            at most a day.
        goals: `goal_size` (diameter, m) and `goal_speed` (largest, degrees per physics step), which
            the first reset sends unless its `config` says otherwise; the build's own by default.

    Returns:
        A `unityagents.UnityEnvironment` on a free port of its own. Close it with `close()`, which
        may be called twice, or use it in a `with` statement. If the player dies, `reset` and
        `step` raise UnityError, and so they do if it does not answer in time.

    Raises:
        TypeError: `seed` is no integer.
        ValueError: no build at `location` that this system can run, or a bad value of another
            argument.
        UnityError: the build ends at once, does not connect in time, or speaks another version.
            Its process has ended and its port is free then.
    """
    player = find_player(location)
    seed = integer("seed", seed, 0, 2**31 - 1)  # the protocol sends it as an int32
    timeout = number("timeout", timeout, 0, MAX_TIMEOUT)
    goals = checked_parameters(goals)
    if no_graphics is None:
        no_graphics = not has_display()
    return _UnityEnvironment(player, seed, no_graphics, timeout, **goals)


class _UnityEnvironment(unityagents.UnityEnvironment):
    """The original, with another way to start the player's process and to end it."""

    reward_threshold = SOLVED_SCORE  # as `ReacherEnvironment` has it

    def __init__(
        self, player: Path, seed: int, no_graphics: bool, timeout: float, **goals: float
    ) -> None:
        self._timeout, self._goals = timeout, goals
        self._log = tempfile.TemporaryFile()  # what the player prints, for error messages
        try:
            super().__init__(str(player), base_port=0, seed=seed, no_graphics=no_graphics)
        except BaseException:
            self._close()
            raise

    def __enter__(self) -> _UnityEnvironment:
        return self

    def __exit__(self, *exception: object) -> None:
        self._close()

    def reset(
        self,
        train_mode: bool = True,
        config: Mapping[str, float] | None = None,
        lesson: int | None = None,
    ) -> dict[str, unityagents.BrainInfo]:
        answer = super().reset(train_mode, {**self._goals, **(config or {})} or None, lesson)
        self._goals = {}  # they stay in the player
        return answer

    def get_communicator(self, worker_id: int, base_port: int) -> _Communicator:
        return _Communicator(self, base_port + worker_id, self._timeout, self._log)

    def executable_launcher(self, file_name: str, docker_training: bool, no_graphics: bool) -> None:
        # The original cuts every ".app", ".exe" and ".x86" out of the path, not only at its end.
        self.port = self.communicator.listen()
        flags = ["-nographics", "-batchmode"] if no_graphics else []
        try:
            # A session of its own: Jupyter's interrupt goes to the kernel's whole process group.
            self.proc1 = subprocess.Popen(
                [file_name, *flags, "--port", str(self.port)],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                start_new_session=True,
            )
        except OSError as error:
            raise UnityError(
                f"{file_name} cannot be started: {error.strerror}. It is damaged or made for "
                "another processor (an Apple silicon Mac needs Rosetta: softwareupdate "
                "--install-rosetta)"
            ) from error

    def close(self) -> None:
        self._close()

    def _close(self):
        super()._close()
        if self.proc1 is not None:
            self.proc1.wait()
        self._log.close()
        atexit.unregister(self._close)  # else every closed environment stays in memory


class _Communicator(unityagents.communicator.Communicator):
    """Python's side of the connection, in the place of unityagents' RpcCommunicator.

    The player is the caller in this protocol: a call carries its answer to our last message and
    returns with our next one. So it is always inside a call while Python thinks.

    Args:
        environment: whose player this is; its `proc1` is watched.
        port: to listen at, 0 for any free one.
        timeout: s to wait for the player to connect, and for each of its answers.
        log: file with the player's output, for error messages.
    """

    def __init__(
        self,
        environment: unityagents.UnityEnvironment,
        port: int,
        timeout: float,
        log: IO[bytes] | None = None,
    ) -> None:
        self._environment, self._port = environment, port
        self._timeout, self._log = timeout, log
        self._server: grpc.Server | None = None
        self._player = _PlayerCalls()
        self._tickets = itertools.count()

    def listen(self) -> int:
        """Take the port and start the server; return the port."""
        # Without this option two servers may share a port, and players reach either.
        server = grpc.server(_DaemonThreads(), options=[("grpc.so_reuseport", 0)])
        server.add_generic_rpc_handlers((self._player,))
        try:
            # "localhost" would be content with one of the two, and the player may try the other.
            self._port = server.add_insecure_port(f"127.0.0.1:{self._port}")
            if has_ipv6():
                server.add_insecure_port(f"[::1]:{self._port}")
        except RuntimeError as error:
            self._fail(
                f"port {self._port} is in use, maybe by an environment that was not closed: "
                "close it, restart the kernel, or give another worker_id",
                error,
            )
        server.start()
        self._server = server
        return self._port

    def initialize(self, inputs: messages.UnityInput) -> messages.UnityOutput:
        """Wait for the player's academy parameters and answer with the seed."""
        if self._server is None:  # the original launcher has started the player already
            self.listen()
        deadline = time.monotonic() + self._timeout
        academy = self._receive(None, deadline, connecting=True)
        version = academy.rl_initialization_output.version
        if version != API_VERSION:
            self._fail_version(f"version {version!r}")
        self._receive(
            self._send(inputs), deadline, connecting=True
        )  # an empty message: it waits for a command
        return academy

    def exchange(self, inputs: messages.UnityInput) -> messages.UnityOutput:
        """Send a reset or a step and wait for the player's answer to it."""
        return self._receive(self._send(inputs), time.monotonic() + self._timeout)

    def close(self) -> None:
        """Tell the player to quit and free the port."""
        if self._server is not None:
            message = messages.UnityMessage()
            message.header.status = QUIT
            self._player.to_send.put((next(self._tickets), message))
            self._server.stop(grace=1.0).wait()
            self._server = None

    def _send(self, inputs: messages.UnityInput) -> int:
        message = messages.UnityMessage(unity_input=inputs)
        message.header.status = OK
        ticket = next(self._tickets)
        self._player.to_send.put((ticket, message))
        return ticket

    def _receive(
        self, ticket: int | None, deadline: float, connecting: bool = False
    ) -> messages.UnityOutput:
        """The answer to message `ticket`; None stands for the player's first call."""
        while True:
            try:
                answered, message = self._player.received.get(timeout=POLL)
            except queue.Empty:
                self._check_player(deadline, connecting)
                continue
            if message.header.status != OK:
                self._fail(
                    "the player was closed (its window, or by itself); reopen the "
                    "environment to go on"
                )
            # Another ticket: a late answer to a call that the user interrupted.
            if answered == ticket:
                return message.unity_output

    def _check_player(self, deadline: float, connecting: bool) -> None:
        process, unknown = self._environment.proc1, connecting and self._player.unknown_call
        is_over = process is not None and process.poll() is not None
        if unknown and (is_over or time.monotonic() > deadline):  # not before: anybody can call
            self._fail_version(f"the call {unknown}")
        if process is not None and is_over:
            code = process.returncode
            how = (
                f"by signal {-code} ({signal.strsignal(-code)})"
                if code < 0
                else f"with exit code {code}"
            )
            if connecting:
                self._fail(
                    f"{process.args[0]} ended {how} before it connected. Start it by hand "
                    "in a terminal to see why"
                )
            self._fail(
                f"the player ended {how} in the middle of an episode; reopen the "
                "environment to go on"
            )
        if time.monotonic() > deadline:
            if not connecting:
                self._fail(
                    f"the player did not answer within {self._timeout:g} s: it was stopped, or it "
                    "hangs. Reopen the environment to go on"
                )
            self._fail(
                f"the player did not connect to port {self._port} within "
                f"{self._timeout:g} s. Is it the Reacher build, does it wait for a click, "
                "does a firewall block it? On a slow machine, give a longer timeout"
            )

    def _fail_version(self, theirs: str) -> None:
        self._fail(
            f"the player speaks {theirs} of ML-Agents, this client {API_VERSION} (v0.4): "
            "download the course's own build, see doc/unity.md"
        )

    def _fail(self, text: str, cause: Exception | None = None) -> None:
        """Close the environment and raise UnityError with the last lines that the player wrote."""
        if self._log is not None:
            self._log.seek(0)
            lines = self._log.read().decode(errors="replace").strip().splitlines()[-10:]
            if lines:
                text += "\nThe last lines that it printed:\n    " + "\n    ".join(lines)
        self._environment._close()
        raise UnityError(text) from cause


class _PlayerCalls(grpc.GenericRpcHandler):
    """What the player's calls meet: a message in, and out again with the next one for it.

    Any program on this machine can call as well. The player is the one that sends an academy's
    parameters first, and is known by its connection's address from then on. Others are refused, and
    change nothing.

    Attributes:
        received: pairs of the ticket of the message that is answered, and the answer.
        to_send: pairs of a ticket and a message.
        unknown_call: name of a call that this protocol does not have, as later versions of
            ML-Agents make.
    """

    def __init__(self) -> None:
        self.received: queue.SimpleQueue = queue.SimpleQueue()
        self.to_send: queue.SimpleQueue = queue.SimpleQueue()
        self.unknown_call: str | None = None
        self._peer: str | None = None
        self._ticket: int | None = None
        self._lock = threading.Lock()
        self._handler = grpc.unary_unary_rpc_method_handler(
            self._exchange,
            messages.UnityMessage.FromString,
            messages.UnityMessage.SerializeToString,
        )

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler | None:
        method = handler_call_details.method
        if method == EXCHANGE:
            return self._handler
        if self._peer is None and method.startswith(PACKAGE):
            self.unknown_call = method
        return None

    def _exchange(self, request, context):
        if not self._is_player(request, context.peer()):
            context.abort(
                grpc.StatusCode.PERMISSION_DENIED,
                "this port belongs to the player that was started",
            )
        self.received.put((self._ticket, request))
        self._ticket, reply = self.to_send.get()
        return reply

    def _is_player(self, request: messages.UnityMessage, peer: str) -> bool:
        with self._lock:
            first = self._peer is None
            if first and request.unity_output.HasField("rl_initialization_output"):
                self._peer = peer
            return self._peer == peer


class _DaemonThreads(futures.Executor):
    """Runs each call in a thread of its own, so that no stranger's call holds up the player's.

    Python waits for a ThreadPoolExecutor's threads at its exit, and before it runs what atexit
    holds: it would hang on an environment that was not closed.
    """

    def submit(self, function: Callable, /, *args: Any, **kwargs: Any) -> futures.Future:
        future: futures.Future = futures.Future()
        threading.Thread(
            target=self._run, args=(future, function, args, kwargs), daemon=True
        ).start()
        return future

    @staticmethod
    def _run(future, function, args, kwargs):
        try:
            future.set_result(function(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)


def has_ipv6() -> bool:
    """Whether this machine has the address ::1."""
    try:
        with socket.socket(socket.AF_INET6) as one:
            one.bind(("::1", 0))
    except OSError:
        return False
    return True


def _get_communicator(self, worker_id, base_port):
    return _Communicator(self, base_port + worker_id, TIMEOUT)


_get_state = unityagents.UnityEnvironment._get_state


def _get_double_state(self, output):
    """The answer with numbers in double precision, as with the protobuf of 2018.

    NumPy made float64 of its lists of numbers, and makes float32 of today's.
    """
    infos, done = _get_state(self, output)
    for info in infos.values():
        for name in ("vector_observations", "previous_vector_actions", "memories"):
            setattr(info, name, getattr(info, name).astype(np.float64))
    return infos, done


unityagents.UnityEnvironment.get_communicator = _get_communicator
unityagents.UnityEnvironment._get_state = _get_double_state
