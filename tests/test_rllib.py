"""RLlib learns on the registered environment. Needs the extra `rllib`."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("ray.rllib", reason="RLlib is an extra")


def test_an_iteration_plays_whole_episodes_and_learns():
    import ray

    from tutorial.experiments import rllib_example

    ray.init("local", num_cpus=2, log_to_driver=False)
    try:
        [record] = rllib_example.train(runners=1, iterations=1)
    finally:
        ray.shutdown()
    assert record["decisions"] >= 20_000
    # Untrained: a random arm scores 0.13 on average, and no arm can score above 40.04.
    assert np.isfinite(record["score"]) and 0 <= record["score"] < 5
