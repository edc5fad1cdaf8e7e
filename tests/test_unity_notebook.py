"""The notebook's agent on the Unity side: trained against a real player process, by its path."""

from __future__ import annotations

import importlib.util
import sys

import numpy as np
import pytest

from tutorial.environments import open_environment
from tutorial.scores import read_scores

if importlib.util.find_spec("unityagents") is None:
    pytest.skip("unityagents is not installed", allow_module_level=True)
if sys.platform != "linux":
    pytest.skip("the launcher used here is the Linux one", allow_module_level=True)

SMALL = {
    "actor_hidden": [16],
    "critic_hidden": [16],
    "batch_size": 16,
    "train_freq": 100,
    "gradient_steps": 2,
    "replay_capacity": 100_000,
}


def test_an_agent_trains_against_a_player_and_scores_survive_its_death(notebook, tmp_path):
    from reacher.unity import UnityError, unity_launcher

    launcher = unity_launcher(num_agents=4, folder=tmp_path / "build")
    environment = open_environment(launcher, seed=0)
    player, step, calls = environment.proc1, environment.step, 0

    def step_until_killed(*arguments):
        nonlocal calls
        calls += 1
        if calls == 2500:  # in the middle of the third episode
            player.kill()
        return step(*arguments)

    environment.step = step_until_killed
    settings = notebook.make_hyperparameters("default", SMALL)
    agent = notebook.Agent(notebook.OBSERVATION_SCALE, 4, settings, np.random.default_rng(0))
    with pytest.raises(UnityError):
        notebook.train_agent(environment, agent, tmp_path / "run", max_episodes=3)
    assert read_scores(tmp_path / "run" / "scores.csv")["episode"].tolist() == [1, 2]
    assert (tmp_path / "run" / "actor_last.safetensors").exists() and agent.num_updates > 0
