"""Where the goals' random numbers come from: NumPy's generators, or a copy of Unity's.

The Unity build draws all goals from one stream, which `unityagents`' seed initializes. With
`goals="unity"` reset k of seed s has the goals that it has there. `goals="own"` gives every arm a
stream of its own, as trainings want it: seeds are independent of each other, and what arm 3 sees
does not depend on how many other arms there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reacher.checks import MAX_SEED, integer

MAX_UNITY_SEED = 2**31 - 1  # the protocol sends it as an int32
MASK = 2**32 - 1


class UnityRandom:
    """The numbers of `UnityEngine.Random` after `InitState(seed)`.

    Marsaglia's xorshift128 ("Xorshift RNGs", Journal of Statistical Software 8(14), 2003), whose
    four words are filled from the seed by MT19937's linear congruence. Names are NumPy's.
    """

    def __init__(self, seed: int) -> None:
        self._words = [seed]
        for _ in range(3):
            self._words.append((1812433253 * self._words[-1] + 1) & MASK)

    def integers(self, high: int) -> int:
        """Unity's `Range(0, high)`: a whole number below `high`."""
        return self._next() % high

    def uniform(self, low: float, high: float) -> float:
        """Unity's `Range(low, high)` of floats; both bounds can occur."""
        share = (self._next() & (2**23 - 1)) / (2**23 - 1)
        return share * low + (1 - share) * high

    def _next(self) -> int:
        x, y, z, w = self._words
        x ^= (x << 11) & MASK
        self._words = [y, z, w, w ^ (w >> 19) ^ x ^ (x >> 8)]
        return self._words[-1]


def goal_generators(seed: int, num_agents: int, goals: str = "own") -> list[Any]:
    """One generator for each arm, or one that all share; arm 0's own one is `default_rng(seed)`.

    Raises:
        TypeError, ValueError: no seed from 0 to 2**63 - 1 (Unity: 2**31 - 1), or other `goals`.
    """
    if goals == "unity":
        return [UnityRandom(integer("seed of Unity's goals", seed, 0, MAX_UNITY_SEED))]
    if goals != "own":
        raise ValueError(f"goals must be 'own' or 'unity', not {goals!r}")
    seed = integer("seed", seed, 0, MAX_SEED)
    return [np.random.default_rng([seed, arm]) for arm in range(num_agents)]
