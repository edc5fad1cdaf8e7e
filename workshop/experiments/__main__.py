"""`python -m workshop.experiments`."""

import sys

from workshop.experiments.runner import main

sys.exit(main())
