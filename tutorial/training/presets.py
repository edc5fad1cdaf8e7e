"""Named sets of hyperparameters: what differs from the notebook's defaults.

`default` differs in nothing. `fast` looks one reward ahead, has a shorter horizon, and learns from
larger batches.
"""

from __future__ import annotations

from typing import Any

PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    "fast": {
        "n_step": 1,
        "discount": 0.95,
        "batch_size": 128,
        "anneal_gradient_steps": 10,
        "anneal_episodes": 7,
    },
}
