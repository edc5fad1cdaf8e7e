"""What the notebook's cells call: environments, settings, a training's files, and figures.

The agent itself (replay, networks, losses, training loop) is defined in the notebook. Here are the
names that its cells use: what stands in `reacher` and `tutorial` under the same name, and below
small functions that only cells need. Figures, results and exercises keep their modules:
`helpers.figures`, `helpers.results`, `helpers.exercises` and so on.
"""

# ruff: noqa: F401

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import signal

# The engine
import torch_phases

# The environment, and policies that play in it
from reacher import DelayedRewards, columns
from reacher.episode import evaluate_policy, rollout
from reacher.task import SOLVED_SCORE
from reacher_page import interactive
from reacher_page.learn import learning_page
from reacher_page.live import live_arms, show_agent

# Figures, tables and exercises
from tutorial import exercises, figures, results

# Settings, the training and its files
from tutorial.environments import Task, open_environment, require_finite, task_of, what_followed
from tutorial.notebook import definitions, learner_with
from tutorial.paths import CHECKPOINTS, PROJECT
from tutorial.randomness import seed_everything, versions
from tutorial.results import moving_average, read_scores, solved_at
from tutorial.run import load_network, load_run, run_folder, training_options, training_run
from tutorial.settings import Settings, check_parameters, make_settings, setting


def quick_agent() -> Any:
    """An untrained agent of the cells, with mirrors and layer normalization: it learns soon."""
    cells = definitions()
    settings = cells.Hyperparameters(engine="torch")
    return cells.Agent(settings, seed_everything(0), learner_with("whole_networks"))


def share_of_threshold(scores: Sequence[float], threshold: float | None) -> float:
    """How far the best of some scores has come on the way to a threshold, of which 1 is the whole.

    The way begins at 0, or at a first score below 0. A score that has reached its threshold has a
    share of at least 1. Without a score or a threshold it is minus infinity.
    """
    if not scores or threshold is None:
        return -math.inf
    best, begin = max(scores), min(0.0, scores[0])
    share = (best - begin) / abs(threshold - begin) if threshold != begin else math.inf
    return max(1.0, share) if best >= threshold else share


def returns_that_followed(rewards: np.ndarray, discount: float) -> np.ndarray:
    """Discounted sums of the rewards to come, without the end, whose future is cut off.

    Args:
        rewards: (decisions, agents) of one episode.

    Returns:
        (decisions - k, agents), with the smallest k after which less than 1 % of a reward counts.
    """
    returns = signal.lfilter([1], [1, -discount], rewards[::-1], axis=0)[::-1]
    return returns[: -math.ceil(math.log(0.01, discount))]
