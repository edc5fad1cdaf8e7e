"""An environment of Gymnasium whose ends a test chooses."""

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec


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

    def add(name="test/Line-v3", **options):
        spec = EnvSpec(name, lambda: Line(**options), disable_env_checker=True)
        monkeypatch.setitem(gymnasium.registry, name, spec)
        return name

    return add
