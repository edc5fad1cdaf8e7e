"""Tests are collected where there is nothing that only Unix has, as on Windows."""

import os
import subprocess
import sys

from tutorial.paths import PROJECT

# Libraries have other code for Windows, so only the project's own files miss these modules.
WITHOUT_UNIX = """
import builtins, multiprocessing.context, os, signal, sys
import pytest

MODULES = "resource termios tty pty fcntl syslog grp pwd".split()
import_anything = builtins.__import__

def import_windows(name, names=None, *others, **options):
    file = (names or {}).get("__file__") or ""
    if name in MODULES and "-packages" not in file and file.startswith(os.getcwd()):
        raise ModuleNotFoundError(f"{name} is Unix's")
    return import_anything(name, names, *others, **options)

class Plugin:
    def pytest_collection(self):
        builtins.__import__ = import_windows
        for name in "SIGKILL SIGSTOP SIGCONT SIGXFSZ SIGALRM setitimer ITIMER_VIRTUAL".split():
            delattr(signal, name)
        for name in "fork", "forkserver":
            del multiprocessing.context._concrete_contexts[name]

code = pytest.main([*"-q --collect-only -p no:cacheprovider tests packages".split()], [Plugin()])
print("ended with", int(code), flush=True)
os._exit(0)  # libraries may need what is hidden to clean up
"""


def test_nothing_that_only_unix_has_is_needed_to_collect():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_UNIX],
        cwd=PROJECT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert "ended with 0" in done.stdout, done.stdout[-2_000:] + done.stderr[-2_000:]
    for name in ("test_resume.py", "test_training.py", "test_commands.py"):
        assert name in done.stdout
