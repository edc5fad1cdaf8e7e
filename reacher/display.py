"""Whether there is a screen to open a window on."""

import os
import sys


def has_display() -> bool:
    """Whether this machine seems to have a screen: under Linux, one of X11 or of Wayland."""
    if sys.platform in ("win32", "darwin"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
