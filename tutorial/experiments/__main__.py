"""`python -m tutorial.experiments`."""

import sys

from tutorial.experiments.runner import interrupt_on_termination, main

interrupt_on_termination()
sys.exit(main())
