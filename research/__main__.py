"""`python -m research`."""

import sys

from research.runner import interrupt_on_termination, main

interrupt_on_termination()
sys.exit(main())
