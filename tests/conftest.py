"""Fixtures: the notebook's definitions without its training, and a browser."""

from __future__ import annotations

import shutil
import signal

import hypothesis
import matplotlib
import numpy as np
import pytest
import torch

from tutorial.notebook import definitions
from tutorial.settings import make_settings

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


def assert_same(answer, expected):
    """Two answers of environments agree in every number and type, bit for bit."""
    for one, other in zip(answer.values(), expected.values(), strict=True):
        for name, value in vars(other).items():
            found = getattr(one, name)
            assert type(found) is type(value), name
            assert getattr(found, "dtype", None) == getattr(value, "dtype", None), name
            np.testing.assert_array_equal(found, value, err_msg=name)


@pytest.fixture(scope="session")
def notebook():
    """The notebook's definitions; a missing name is an AttributeError that says which."""
    return definitions()


@pytest.fixture(scope="session")
def defaults(notebook):
    """`defaults(n_step=5, ...)`: the default hyperparameters with overrides.

    Mirrors are off where they are not named, because most networks here see less than arms do.
    """
    return lambda **overrides: make_settings(
        notebook.Hyperparameters, "default", overrides, has_mirrors="mirrors" in overrides
    )


@pytest.fixture(scope="session")
def driver():
    """Headless Chromium without a network, by Selenium; its tests are skipped where one lacks."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is an extra")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    chromedriver = shutil.which("chromedriver")
    if not (chromium and chromedriver):
        pytest.skip("no Chromium with chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    network = "host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
    for option in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", network):
        options.add_argument(f"--{option}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(chromedriver))
    yield driver
    driver.quit()
