"""Compiled functions are kept on disk, and work where they cannot be."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tutorial.paths import PROJECT

MODULE = """
from reacher.compiling import njit

@njit
def double(number):
    return 2 * number
"""
PROGRAM = """
import sys
if sys.argv[1:]:  # no file may grow beyond so many bytes, as on a full disk
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
from doubling import double
assert double(2) == 4
print("kept" if double.stats.cache_hits else "compiled")
"""


@pytest.fixture
def start(tmp_path):
    """`start(*arguments, **environment)`: what a new process does, and what it warns of."""
    (tmp_path / "doubling.py").write_text(MODULE)
    paths = os.pathsep.join([str(tmp_path), str(PROJECT)])
    known = {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    known["NUMBA_CACHE_DIR"] = str(tmp_path / "cache")

    def run(*arguments, **environment):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *arguments],
            env=os.environ | known | environment,
            capture_output=True,
            text=True,
        )
        assert not done.returncode, done.stderr
        return done.stdout.strip(), done.stderr

    return run


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
@pytest.mark.parametrize("share", [0, 0.5])
def test_a_damaged_file_is_written_anew(start, tmp_path, kind, share):
    """Emptied or cut, the index or the code."""
    assert start() == ("compiled", "") and start() == ("kept", "")
    (file,) = (tmp_path / "cache").rglob(f"*.{kind}")
    content = file.read_bytes()
    file.write_bytes(content[: int(share * len(content))])
    assert start() == ("compiled", "") and start() == ("kept", "")


def test_without_a_folder_that_can_be_written(start, tmp_path):
    """No folder given, none beside the module, no home. The superuser may write into all others."""
    (tmp_path / "file").touch()
    (tmp_path / "__pycache__").touch()
    nowhere = str(tmp_path / "file" / "below")
    names = ("NUMBA_CACHE_DIR", "HOME", "XDG_CACHE_HOME", "LOCALAPPDATA")
    said, warned = start(**dict.fromkeys(names, nowhere))
    assert said == "compiled" and warned.count("set NUMBA_CACHE_DIR") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="the module resource is Unix's")
def test_on_a_full_disk(start, tmp_path):
    said, warned = start("100")
    assert said == "compiled" and "File too large" in warned and "NUMBA_CACHE_DIR" in warned
    assert start() == ("compiled", "") and start() == ("kept", "")
