"""Arms that move beside the training: what goes to the browser, and what stays in the notebook."""

from __future__ import annotations

import json
import re

import nbformat
import numpy as np
import pytest
import torch
from nbconvert.preprocessors import ExecutePreprocessor

from tutorial.environments import open_environment
from tutorial.notebook import load_definitions
from tutorial.paths import NOTEBOOK, PROJECT
from tutorial.run import training_run, why_not_shown
from web import live
from web.actor import EDITED, actor_of, load_actor
from web.packed import pack_actor

CELL = """
import numpy as np
import helpers
from tutorial import notebook

definitions = notebook.definitions()
settings = definitions.make_hyperparameters("default", {})
agent = definitions.Agent(definitions.OBSERVATION_SCALE, 4, settings, np.random.default_rng(0))
with helpers.live_arms(True, 3, goal_size=6.0) as after_episode:
    for scores in ([1.0], [1.0, 2.5]):
        after_episode(agent, scores)
        WAIT
"""


class Handle:
    """A display that keeps what it was told to show."""

    def __init__(self, *shown):
        self.shown = list(shown)

    def update(self, what):
        self.shown.append(what)


def messages(channel):
    """What was posted to the page."""
    found = [re.search(r"postMessage\((.*), '\*'\)", html.data) for html in channel.shown]
    return [json.loads(match[1]) for match in found if match]


def test_the_page_gets_the_newest_actor_after_each_episode(notebook, defaults, monkeypatch):
    displays, others = [], []
    monkeypatch.setattr(live, "in_notebook", lambda: True)
    monkeypatch.setattr(
        live, "display", lambda shown, display_id: displays.append(Handle(shown)) or displays[-1]
    )
    agent = notebook.Agent(notebook.OBSERVATION_SCALE, 4, defaults(), np.random.default_rng(0))

    def other(agent, scores):
        others.append(scores[-1])

    with live.live_arms(True, 2, other) as after_episode:
        after_episode(agent, [3.0])
        agent.ddpg.actor.layers[-2].bias.data += 1
        after_episode(agent, [3.0, 5.123456])
        shown, channel = displays
        name = re.search('name="(live-[0-9a-f]+)"', shown.shown[0].data)[1]
        assert all(name in html.data for html in channel.shown[1:])
    first, second = messages(channel)
    assert (first["scores"], second["scores"], others) == ([3.0], [3.0, 5.123], [3.0, 5.123456])
    assert first["network"]["numbers"] != second["network"]["numbers"]
    weights = {name: value.numpy() for name, value in agent.ddpg.actor.state_dict().items()}
    assert second["network"] == pack_actor(weights, defaults().model_dump(), "test")
    assert "<iframe" in shown.shown[0].data and channel.shown[-1].data == ""
    assert shown.shown[-1].data.startswith(b"\x89PNG") and "2 episodes" in shown.shown[-1].alt
    assert callable(actor_of(weights, defaults().model_dump(), "test"))


def test_nothing_is_shown_unless_wanted_and_in_a_notebook(monkeypatch):
    def other(agent, scores):
        pass

    for wanted, in_notebook in ((False, True), (True, False)):
        monkeypatch.setattr(live, "in_notebook", lambda value=in_notebook: value)
        monkeypatch.setattr(live, "display", None)  # which would fail
        with live.live_arms(wanted, 20, other) as after_episode:
            assert after_episode is other


def test_what_stays_in_the_notebook_is_a_picture():
    """As papermill, nbconvert and GitHub see it: no page, no script, no weights."""
    content = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL.replace("WAIT", ""))])
    ExecutePreprocessor(timeout=300).preprocess(content, {"metadata": {"path": str(PROJECT)}})
    [cell] = content.cells
    shown = [output.data for output in cell.outputs if output.output_type == "display_data"]
    assert sum("image/png" in data for data in shown) == 1
    assert not any(data.get("text/html") for data in shown)
    assert "iframe" not in str(cell.outputs) and len(str(cell.outputs)) < 200_000


@pytest.mark.parametrize(
    "edit",
    [
        ("nn.LayerNorm(outputs), nn.ReLU()", "nn.LayerNorm(outputs), nn.SiLU()"),  # same weights
        ("nn.LayerNorm(outputs)", "nn.BatchNorm1d(outputs)"),
    ],
)
def test_an_edited_actor_is_told_in_a_line_and_never_shown_as_another(
    edit, monkeypatch, capsys, tmp_path
):
    """Pages compute the notebook's own kind of network: another one would move like a stranger."""
    cells, displays = load_definitions(NOTEBOOK, [edit]), []
    settings = cells.make_hyperparameters("default", {})
    agent = cells.Agent(cells.OBSERVATION_SCALE, 4, settings, np.random.default_rng(0))
    monkeypatch.setattr(live, "in_notebook", lambda: True)
    monkeypatch.setattr(
        live, "display", lambda shown, display_id: displays.append(Handle(shown)) or displays[-1]
    )
    with live.live_arms(True, 2) as after_episode:
        after_episode(agent, [3.0])
        after_episode(agent, [3.0, 5.0])
    assert not messages(displays[1])
    assert capsys.readouterr().out.count(EDITED) == 1
    live.show_arms(tmp_path, agent, 2)
    assert EDITED in capsys.readouterr().out and len(displays) == 2
    with (
        open_environment("", 2, 0, {}) as environment,
        training_run(tmp_path / "run", agent, environment, 1) as run,
    ):
        run.scores.append(0.0)
        run.record_episode(np.zeros(2))
    with pytest.raises(ValueError, match="was edited"):
        load_actor(tmp_path / "run")


def test_looking_at_an_edited_actor_draws_none_of_the_numbers_that_training_draws():
    """Else a training would depend on whether somebody watches it."""
    edit = (
        "return action_signs * self.layers(signs * observations)",
        "return action_signs * self.layers(signs * observations) * torch.rand(1)",
    )
    cells = load_definitions(NOTEBOOK, [edit])
    settings = cells.make_hyperparameters("default", {})
    agent = cells.Agent(cells.OBSERVATION_SCALE, 4, settings, np.random.default_rng(0))
    before = torch.get_rng_state()
    assert EDITED in why_not_shown(agent)
    assert torch.equal(torch.get_rng_state(), before)
