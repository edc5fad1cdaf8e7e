"""Finding the Unity build (the "player") by the path that a user gives."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

from reacher.checks import shown

SUFFIXES = {"linux": (".x86_64", ".x86"), "darwin": (".app",), "win32": (".exe",)}
SYSTEMS = {".x86_64": "Linux", ".x86": "Linux", ".app": "macOS", ".exe": "Windows"}


def find_player(location: str | os.PathLike, system: str = sys.platform) -> Path:
    """The file to execute for a player on `system` (a key of SUFFIXES), given in any form."""
    if not os.fspath(location).strip():
        raise ValueError("the Unity build's location is empty")
    try:
        path = Path(os.fspath(location).strip()).expanduser().absolute()
        path.exists()
    except (OSError, RuntimeError, ValueError) as error:  # too long, no such user, no path at all
        raise ValueError(
            f"no path of a Unity build: {shown(os.fspath(location))} ({error})"[:500]
        ) from None
    if path.suffix in SYSTEMS and (path.is_file() or (path.suffix == ".app" and path.is_dir())):
        found = [path]
    elif path.is_dir():
        found = [
            child
            for pattern in ("*", "*/*")
            for child in sorted(path.glob(pattern))
            if child.suffix in SYSTEMS and not child.name.startswith("UnityCrashHandler")
        ]
    elif not path.exists():  # unityagents takes names without the ending as well
        found = [
            child
            for child in (path.with_name(path.name + end) for end in SYSTEMS)
            if child.exists()
        ]
    else:
        hint = (
            "unpack it first, and give the unpacked folder"
            if path.suffix == ".zip"
            else f"a build's name ends in {', '.join(SYSTEMS)}"
        )
        raise ValueError(f"{path} is not a Unity build: {hint}")

    if not found:
        problem = "holds no Unity build" if path.is_dir() else "does not exist"
        raise ValueError(
            f"{path} {problem}: give the path of the {', '.join(SYSTEMS)}, or of the "
            "folder that it was unpacked into"
        )
    fits = [child for child in found if child.suffix in SUFFIXES.get(system, ())]
    if not fits:
        raise ValueError(
            f"{found[0]} is a build for {SYSTEMS[found[0].suffix]}, which does not "
            f"run on {platform.system()}: download the build for this system"
        )
    best = min((child.suffix for child in fits), key=SUFFIXES[system].index)
    fits = [child for child in fits if child.suffix == best]
    if len(fits) > 1:
        raise ValueError(
            f"{path} holds several builds; give the path of one of them:\n    "
            + "\n    ".join(map(str, fits))
        )
    player = fits[0]
    if best == ".app":
        inside = player / "Contents" / "MacOS"
        programs = sorted(inside.glob("*"))
        if not programs:
            raise ValueError(f"{player} is incomplete: {inside} holds no program; unpack it again")
        player = inside / player.stem if inside / player.stem in programs else programs[0]
    if system != "win32" and not os.access(player, os.X_OK):
        raise ValueError(f"{player} is not executable; run\n    chmod +x '{player}'")
    return player
