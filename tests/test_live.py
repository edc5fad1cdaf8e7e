"""Arms that move beside the training: what goes to the browser, and what stays in the notebook."""

import json
import re
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest
from nbconvert.preprocessors import ExecutePreprocessor

from reacher_page import live
from reacher_page.actor import network_of
from tutorial.notebook import load_definitions
from tutorial.paths import NOTEBOOK, PROJECT

CELL = """
import helpers

agent = helpers.quick_agent()
with helpers.live_arms(3) as after_episode:
    for scores in ([1.0], [1.0, 2.5]):
        after_episode(agent, scores)
"""


class Handle:
    """A display that keeps what it was told to show."""

    def __init__(self, *shown):
        self.shown = list(shown)

    def update(self, what):
        self.shown.append(what)


@pytest.fixture
def displays(monkeypatch):
    """What a notebook shows: `live` believes that it runs in one."""
    found = []
    monkeypatch.setattr(live, "get_ipython", lambda: SimpleNamespace(kernel=True))
    monkeypatch.setattr(
        live, "display", lambda shown, **_: found.append(Handle(shown)) or found[-1]
    )
    return found


def agent_of(cells):
    return cells.Agent(cells.Hyperparameters(engine="torch"), np.random.default_rng(0))


def messages(channel):
    """What was posted to the page."""
    found = [re.search(r"postMessage\((.*), '\*'\)", each.data) for each in channel.shown]
    return [json.loads(match[1]) for match in found if match]


def test_the_page_gets_the_newest_actor_after_each_episode(notebook, displays):
    agent = agent_of(notebook)
    with live.live_arms(2) as after_episode:
        after_episode(agent, [3.0])
        agent.learner.actor.layers[-1].bias.data += 1
        after_episode(agent, [3.0, 5.5])
        shown, channel = displays
        name = re.search('name="(live-[0-9a-f]+)"', shown.shown[0].data)[1]
        assert all(name in each.data for each in channel.shown[1:])
    first, second = messages(channel)
    assert (first["scores"], second["scores"]) == ([3.0], [3.0, 5.5])
    assert first["network"]["numbers"] != second["network"]["numbers"]
    weights = {name: value.numpy() for name, value in agent.learner.actor.state_dict().items()}
    assert second["network"] == network_of(weights, "test").packed()
    assert channel.shown[-1].data == ""  # the last actor is in the page that stays
    stays = shown.shown[-1].data
    assert second["network"]["numbers"] in stays and first["network"]["numbers"] not in stays


def test_nothing_is_shown_outside_of_a_notebook(displays, monkeypatch):
    monkeypatch.setattr(live, "get_ipython", lambda: None)
    with live.live_arms(20) as after_episode:
        assert after_episode is None
    assert not displays


def test_one_page_stays_in_the_notebook_with_a_picture_for_where_scripts_do_not_run():
    content = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    ExecutePreprocessor(timeout=300).preprocess(content, {"metadata": {"path": str(PROJECT)}})
    [cell] = content.cells
    pages = [output.data["text/html"] for output in cell.outputs if "data" in output]
    [stays] = filter(None, pages)
    assert stays.count("<iframe") == 1 and 'src="data:image/png;base64,' in stays
    assert len(str(cell.outputs)) < 400_000


def test_an_edited_actor_is_never_shown_as_another(displays, capsys):
    """Pages compute the notebook's own kind of network: another one would move like a stranger."""
    edit = "return x.tanh()", "return x.clip(-1, 1)"  # with the same weights
    agent = agent_of(load_definitions(NOTEBOOK, [edit]))
    with live.live_arms(2) as after_episode:
        after_episode(agent, [3.0])
        after_episode(agent, [3.0, 5.0])
    assert not messages(displays[1]) and displays[0].shown[-1].data == ""
    assert capsys.readouterr().out.count("pages") == 1
    live.show_agent(agent, [3.0], 2)
    assert capsys.readouterr().out.count("pages") == 1 and len(displays) == 2
