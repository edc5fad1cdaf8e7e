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

# -P: no reacher.py or random.py in the reader's folder takes the place of a module.
SHELL = """\
#!/bin/sh
# Starts the stand-in for the Unity build of Reacher.
trap '' INT  # Jupyter's interrupt reaches this process as well; Unity's players survive it
PYTHONPATH={project}"${{PYTHONPATH:+:$PYTHONPATH}}"
export PYTHONPATH
exec {python} -P -m reacher.unity.server {options} "$@"
"""


def unity_launcher(
    num_agents: int = 20, seed: int = 0, folder: str | os.PathLike | None = None
) -> str:
    """Write a small launcher of `reacher.unity.server` in the form of a Unity build.

    Args:
        num_agents: number of arms, 1 to 2000; the course's builds have 20 and 1.
        seed: of the goals, unless UnityEnvironment sends another seed than 0.
        folder: where to write, made if missing; by default a temporary folder, which is removed
            when this process ends.

    Returns:
        The path of `Reacher.x86_64` (Linux) or `Reacher.app` (macOS).

    Raises:
        TypeError, ValueError: an argument is no integer, or out of range.
        RuntimeError: on Windows, which starts no shell script.
    """
    if sys.platform == "win32":
        raise RuntimeError(
            "on Windows call UnityEnvironment(file_name=None), and beside it run "
            "python -P -m reacher.unity.server --port 5005"
        )
    num_agents = integer("num_agents", num_agents, 1, MAX_AGENTS)
    seed = integer("seed", seed, 0, MAX_UNITY_SEED)
    if not folder:
        folder = tempfile.mkdtemp(prefix="reacher-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    launcher = program = Path(folder).absolute() / "Reacher.x86_64"
    if sys.platform == "darwin":
        launcher = launcher.with_name("Reacher.app")
        program = launcher / "Contents" / "MacOS" / "Reacher"
    program.parent.mkdir(parents=True, exist_ok=True)
    python, project = shlex.quote(sys.executable), shlex.quote(str(PROJECT))
    options = f"--num-agents {num_agents} --seed {seed}"
    program.write_text(SHELL.format(project=project, python=python, options=options))
    program.chmod(0o755)
    return str(launcher)
