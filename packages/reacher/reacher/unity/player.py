"""Finding the Unity build (the "player") by the path that a user gives."""

from __future__ import annotations

import os
import sys
from pathlib import Path

SUFFIXES = {"linux": (".x86_64", ".x86"), "darwin": (".app",), "win32": (".exe",)}
SYSTEMS = {".x86_64": "Linux", ".x86": "Linux", ".app": "macOS", ".exe": "Windows"}


def find_player(location: str | os.PathLike, system: str = sys.platform) -> Path:
    """The file to execute for a player on `system` (a key of SUFFIXES), given in any form.

    Raises:
        ValueError: there is none that this system can run, or more than one.
    """
    path = Path(os.fspath(location).strip()).expanduser().absolute()
    if path.suffix in SYSTEMS and path.exists():
        found = [path]
    elif path.is_dir():
        children = [child for pattern in ("*", "*/*") for child in sorted(path.glob(pattern))]
        found = [child for child in children if child.suffix in SYSTEMS]
    else:  # unityagents takes names without the ending as well
        named = [path.with_name(path.name + end) for end in SYSTEMS]
        found = [child for child in named if child.exists()]
    found = [child for child in found if not child.name.startswith("UnityCrashHandler")]
    if not found:
        problem = "is no Unity build" if path.exists() else "does not exist"
        raise ValueError(
            f"{path} {problem}: give the path of the {', '.join(SYSTEMS)}, or of the folder that "
            "it was unpacked into"
        )
    fits = [child for child in found if child.suffix in SUFFIXES.get(system, ())]
    if not fits:
        raise ValueError(
            f"{found[0]} is a build for {SYSTEMS[found[0].suffix]}, which does not run here: "
            "download the build for this system"
        )
    best = min((child.suffix for child in fits), key=SUFFIXES[system].index)
    player, *others = [child for child in fits if child.suffix == best]
    if others:
        names = "\n    ".join(map(str, [player, *others]))
        raise ValueError(f"{path} holds several builds; give the path of one of them:\n    {names}")
    if best == ".app":
        programs = sorted((player / "Contents" / "MacOS").glob("*"))
        if not programs:
            raise ValueError(f"{player} is incomplete: it holds no program; unpack it again")
        own = player / "Contents" / "MacOS" / player.stem
        player = own if own in programs else programs[0]
    if system != "win32" and not os.access(player, os.X_OK):
        raise ValueError(f"{player} is not executable; run\n    chmod +x '{player}'")
    return player
