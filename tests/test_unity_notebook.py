"""The notebook on the Unity side: trained against a real player process, by its path."""

from __future__ import annotations

import importlib.util
import sys

import nbformat
import papermill
import pytest

from tutorial.environments import open_environment
from tutorial.paths import NOTEBOOK, PROJECT
from tutorial.randomness import seed_everything
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


@pytest.fixture(scope="module")
def launcher(tmp_path_factory):
    from reacher.unity import unity_launcher

    return unity_launcher(num_agents=4, folder=tmp_path_factory.mktemp("build"))


def test_notebook_trains_against_a_unity_player(launcher, tmp_path):
    """And cells that play can be run again after the last one, as section 6 advises."""
    copy = nbformat.read(NOTEBOOK, 4)
    plays = ("helpers.evaluate_policy(environment", "environment.reset(", "helpers.rollout(")
    again = [
        cell for cell in copy.cells if cell.source.startswith(("rng", "# vector_obs", "played"))
    ]
    assert all(part in cell.source for part, cell in zip(plays, again, strict=True))
    copy.cells += [nbformat.v4.new_code_cell(cell.source) for cell in again]
    nbformat.write(copy, tmp_path / "copy.ipynb")
    papermill.execute_notebook(
        tmp_path / "copy.ipynb",
        tmp_path / "executed.ipynb",
        cwd=PROJECT,
        kernel_name="python3",
        parameters={
            "env_location": launcher,
            "max_episodes": 3,
            "overrides": SMALL,
            "out_dir": str(tmp_path),
        },
        progress_bar=False,
        request_save_on_cell_execute=False,
    )
    scores = read_scores(tmp_path / "default" / "seed0" / "scores.csv")
    assert scores["episode"].tolist() == [1, 2, 3]


def test_scores_survive_the_death_of_the_player(launcher, notebook, tmp_path):
    from reacher.unity import UnityError

    environment = open_environment(launcher, seed=0)
    player, step, calls = environment.proc1, environment.step, 0

    def step_until_killed(*arguments):
        nonlocal calls
        calls += 1
        if calls == 1500:  # in the middle of the second episode
            player.kill()
        return step(*arguments)

    environment.step = step_until_killed
    settings = notebook.make_hyperparameters("default", SMALL)
    agent = notebook.Agent(notebook.OBSERVATION_SCALE, 4, settings, seed_everything(0))
    with pytest.raises(UnityError):
        notebook.train_agent(environment, agent, tmp_path / "run", max_episodes=3)
    assert read_scores(tmp_path / "run" / "scores.csv")["episode"].tolist() == [1]
    assert (tmp_path / "run" / "actor_last.safetensors").exists()
