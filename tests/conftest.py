"""Fixtures: the notebook's definitions without its training, an environment, and a browser."""

from __future__ import annotations

import shutil
import signal

import gymnasium
import hypothesis
import matplotlib
import numpy as np
import pytest
import torch

from tutorial.environments import Task
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
    kind, other = notebook.Hyperparameters, Task(np.ones(3, np.float32), 2, 30.0, "other")
    return lambda **overrides: make_settings(
        kind, "default", overrides, None if "mirrors" in overrides else other
    )


class Line(gymnasium.Env):
    """Keeps the actions it gets; an episode ends at a step and in a way.

    Its observation is a random number, and the steps so far.
    """

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
    made = []  # of all Lines since the test began

    def __init__(self, end=5, how="truncated", **spaces):
        vars(self).update(spaces)
        self.end, self.how, self.actions = end, how, []
        Line.made.append(self)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.observe(), {}

    def observe(self):
        return np.resize([self.np_random.random(), self.steps], self.observation_space.shape)

    def step(self, action):
        self.actions.append(action)
        self.steps += 1
        is_last = self.steps == (self.end if self.end > 0 else Line.made.index(self) + 1)
        ends = [is_last and name in self.how for name in ("terminated", "truncated")]
        return self.observe(), 0.5 * self.steps, *ends, {}


@pytest.fixture
def register(monkeypatch):
    """`register(end=..., action_space=..., ...)` registers a Line and returns its name."""
    monkeypatch.setattr(Line, "made", [])
    known = dict(gymnasium.registry)

    def add(**options):
        gymnasium.register("test/Line-v3", lambda: Line(**options), disable_env_checker=True)
        return "test/Line-v3"

    yield add
    for name in set(gymnasium.registry) - set(known):
        del gymnasium.registry[name]


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
