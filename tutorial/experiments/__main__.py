"""`python -m tutorial.experiments`."""

import signal
import sys

from tutorial.experiments.runner import main

for name in ("SIGTERM", "SIGHUP"):  # an end from outside is as orderly as Ctrl-C
    if hasattr(signal, name):
        signal.signal(getattr(signal, name), signal.default_int_handler)
sys.exit(main())
