"""Processor seconds and episodes until an evaluation is 30, ours beside a library's.

    python -m research benchmark --seeds 3

All agents train in this process, with one thread, a seed of each before the next seed, so that the
machine's moods meet them all. The seeds are those of the comparison with other libraries.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from research.baselines import chosen
from research.tables import as_markdown, median_and_range
from research.training import COLUMNS, make_training, train
from tutorial.scores import first_at

FIRST_SEED, EPISODES = 3400, 12
AGENTS: dict[str, Mapping[str, Any]] = {
    "default": {},
    "default, engine torch": {"engine": "torch"},
    "fast": {"preset": "fast"},
    "sbx_td3": {"library": "sbx_td3", "overrides": chosen().get("sbx_td3", {})},
}


def measured(agent: str, seed: int) -> tuple[int | None, float | None, float]:
    """Episodes and processor seconds until an evaluation is 30 or None, and seconds of all."""
    options = {"episodes": EPISODES, "evaluate_every": 1, **AGENTS[agent]}
    rows = train(make_training("benchmark", agent, seed, options), time.process_time)
    columns = dict(zip(COLUMNS, np.array(rows).T, strict=True))
    seconds = columns["seconds"].astype(float)
    first = first_at(columns["evaluation"].astype(float))
    return first, None if first is None else float(seconds[first - 1]), float(seconds[-1])


def table(seeds: int) -> str:
    """Train all agents, and say what they needed."""
    found: dict[str, list] = {agent: [] for agent in AGENTS}
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        for agent in [*found]:
            try:
                found[agent].append(measured(agent, seed))
            except ModuleNotFoundError as error:
                print(f"{agent} is left out: {error}; pip install '.[research]'")
                del found[agent]
    titles = (
        "first evaluation of 30: episode, median (range)",
        "processor seconds until then",
        f"of {EPISODES} episodes",
    )
    return as_markdown(
        [
            {"agent": agent}
            | dict(zip(titles, map(median_and_range, zip(*numbers, strict=True)), strict=True))
            for agent, numbers in found.items()
        ]
    )
