"""A file that `unityagents.UnityEnvironment(file_name=...)` can start, for the stand-in server."""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

from reacher.checks import integer
from reacher.goals import MAX_UNITY_SEED
from reacher.physics import MAX_AGENTS

PROJECT = Path(__file__).resolve().parents[2]  # the folder that holds the package

SHELL = """\
#!/bin/sh
# Starts the stand-in for the Unity build of Reacher.
trap '' INT  # Jupyter's interrupt reaches this process as well; Unity's players survive it
PYTHONPATH={project}"${{PYTHONPATH:+:$PYTHONPATH}}"
export PYTHONPATH
exec {python} -m reacher.unity.server {options} "$@"
"""


def unity_launcher(
    num_agents: int = 20, seed: int = 0, folder: str | os.PathLike | None = None
) -> str:
    """Write a small launcher of `reacher.unity.server` in the form of a Unity build.

    It starts with the Python that wrote it and finds this package by its path, so it works from
    every folder, but not on another machine.

    Args:
        num_agents: number of arms, 1 to 2000; the course's builds have 20 and 1.
        seed: of the goals, which are Unity's (`reacher.goals`), unless UnityEnvironment sends
            another seed than 0.
        folder: where to write, made if missing. By default a new temporary folder, which is
            removed when this process ends; name one for a launcher that is to outlive it.

    Returns:
        The path of `Reacher.x86_64` (Linux) or `Reacher.app` (macOS), for
        `UnityEnvironment(file_name=...)` or `open_unity`.

    Raises:
        TypeError, ValueError: an argument is no integer, or out of range.
        RuntimeError: on Windows, which starts no shell script.
    """
    if sys.platform == "win32":
        raise RuntimeError(
            "unity_launcher works on Linux and macOS. On Windows call "
            "unityagents.UnityEnvironment(file_name=None), and start the stand-in beside it: "
            "python -m reacher.unity.server --port 5005"
        )
    options = [
        "--num-agents",
        str(integer("num_agents", num_agents, 1, MAX_AGENTS)),
        "--seed",
        str(integer("seed", seed, 0, MAX_UNITY_SEED)),
    ]
    if not folder:
        folder = tempfile.mkdtemp(prefix="reacher-")
        # Players end before: they are closed in the reverse order. A fork's end removes nothing.
        atexit.register(_remove, folder, os.getpid())
    return str(_write_launcher(Path(folder).absolute(), options, sys.platform))


def _remove(folder: str, process: int) -> None:
    """Remove a temporary folder at the end of the process that made it."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _write_launcher(folder: Path, options: list[str], system: str) -> Path:
    """Write the launcher for `system` (a value of sys.platform) and return its path."""
    launcher = program = folder / "Reacher.x86_64"
    if system == "darwin":
        launcher = folder / "Reacher.app"
        program = launcher / "Contents" / "MacOS" / "Reacher"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(
        SHELL.format(
            project=shlex.quote(str(PROJECT)),
            options=shlex.join(options),
            python=shlex.quote(sys.executable),
        )
    )
    program.chmod(0o755)
    return launcher
