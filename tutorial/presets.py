"""Named sets of hyperparameters: what differs from the notebook's defaults.

`default` differs in nothing. `fast` leaves NoisyNet out and stops learning sooner, so it takes less
time.
"""

from __future__ import annotations

from typing import Any

PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    "fast": {"noisy_layers": False, "anneal_episodes": 4},
}
