"""Which of OpenGL's ways to draw works on this machine: GLFW, EGL, OSMesa (or macOS's CGL)."""

from __future__ import annotations

import functools
import importlib
import os
import subprocess
import sys
import warnings

from reacher.display import has_display

ADVICE = (
    "the arms are drawn flat, since no OpenGL works here ({why}): on Debian and Ubuntu "
    "'apt-get install libosmesa6' is enough, elsewhere OSMesa, EGL or a display"
)
SWITCHED_OFF = "the arms are drawn flat, since MUJOCO_GL={value} switches OpenGL off"
OFF = ("disable", "disabled", "off", "false", "0")  # what MuJoCo takes for MUJOCO_GL
AUTOMATIC = ("", "enable", "enabled", "on", "true", "1")
LONGEST_TRIAL = 60.0  # s

# In a process of its own, since a bad driver may end the process that calls it.
TRIAL = """
import importlib, sys, mujoco
context = importlib.import_module("mujoco." + sys.argv[1]).GLContext(64, 64)
context.make_current()
drawing = mujoco.MjrContext(mujoco.MjModel.from_xml_string("<mujoco/>"), 100)
mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, drawing)
assert drawing.currentBuffer == mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value
drawing.free()
context.free()
"""


def candidates() -> list[str]:
    """Backends to try, best first; what the environment variable MUJOCO_GL names is the only one.

    Once PyOpenGL has been imported for one platform, a process can use no other.
    """
    asked = os.environ.get("MUJOCO_GL", "").lower().strip()
    if asked in OFF:
        return []
    if asked not in AUTOMATIC:
        return [{"glx": "glfw", "wgl": "glfw"}.get(asked, asked)]
    if sys.platform == "darwin":
        return ["cgl", "glfw"]
    if sys.platform == "win32":
        return ["glfw"]
    names = [*(["glfw"] if has_display() else []), "egl", "osmesa"]
    platform = os.environ.get("PYOPENGL_PLATFORM", "").lower()
    return [name for name in names if name == "glfw" or platform in ("", name)]


@functools.cache
def works(name: str) -> bool:
    """Whether a backend draws, tried in a process of its own: half a second the first time."""
    own = os.environ | {"MUJOCO_GL": name}
    own.pop("PYOPENGL_PLATFORM", None)
    command = [sys.executable, "-c", TRIAL, name]
    try:
        return not subprocess.run(
            command, env=own, capture_output=True, timeout=LONGEST_TRIAL
        ).returncode
    except (OSError, subprocess.SubprocessError):
        return False


def working_backend() -> str | None:
    """The first candidate that works, or None."""
    return next((name for name in candidates() if works(name)), None)


def context(name: str, width: int, height: int):
    """A new OpenGL context of a backend, made current.

    Raises:
        Exception: whatever the backend raises; libraries differ.
    """
    new = importlib.import_module(f"mujoco.{name}").GLContext(width, height)
    new.make_current()
    return new


def warn_of_flat(why: str = "") -> None:
    """Say once, in one line, why the arms are flat and what to install."""
    tried = candidates()
    if tried:
        _warn(ADVICE.format(why=why or f"tried {', '.join(tried)}"))
    else:
        _warn(SWITCHED_OFF.format(value=os.environ.get("MUJOCO_GL")))


@functools.lru_cache(maxsize=8)
def _warn(line: str) -> None:
    warnings.warn(line, stacklevel=4)
