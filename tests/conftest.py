"""Fixtures: the notebook's definitions without its training, an environment, and a browser."""

import signal

import hypothesis
import matplotlib
import pytest
import torch

import small_training
from browser import driver
from lines import register
from tutorial.notebook import definitions

matplotlib.use("Agg")  # no windows; in this process only, for kernels draw into their notebooks
torch.set_num_threads(1)  # as in the notebook: so small networks lose time by more

# A shell starts its background jobs with Ctrl-C ignored, and all that they start ignores it too;
# tests of Ctrl-C must not depend on how they were started.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in every run; no deadline, since the first example waits for numba.
hypothesis.settings.register_profile("suite", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("suite")


def pytest_collection_modifyitems(items):
    """Cells of the notebook train for five episodes here, among which is an evaluation."""
    for item in items:
        if cell := getattr(item, "cell", None):
            cell.source = cell.source.replace("\nmax_episodes = 150 ", "\nmax_episodes = 5 ")


@pytest.fixture(scope="session")
def notebook():
    """The notebook's definitions; a missing name is an AttributeError that says which."""
    return definitions()


@pytest.fixture
def small(monkeypatch):
    """Episodes are short."""
    small_training.shrink(monkeypatch.setattr)
