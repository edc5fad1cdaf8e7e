"""The notebook in JupyterLab as `make lab` opens it, in headless Chromium: Run All."""

from __future__ import annotations

import socket
import subprocess
import sys
import time

import nbformat
import pytest

from browser import open_browser
from tutorial import commands
from tutorial.notebook import cell_with_tag
from tutorial.paths import NOTEBOOK, PROJECT

TIMEOUT = 300  # seconds, of anything that is waited for
PANEL = (
    "const panel = [...window.jupyterapp?.shell.widgets('main') ?? []]"
    ".find(widget => widget.content?.widgets); "
)
LIVE = """
import time
import numpy as np
import helpers
definitions = helpers.definitions()
settings = definitions.make_hyperparameters("default", {})
agent = definitions.Agent(definitions.OBSERVATION_SCALE, 4, settings, np.random.default_rng(0))
with helpers.live_arms(True, 3, goal_size=6.0) as after_episode:
    after_episode(agent, [1.0])
    time.sleep(1000)
"""


def wait_for(condition, what, timeout=TIMEOUT):
    """The first true value of the condition."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.5)
    pytest.fail(f"waited {timeout} s for {what}")


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Of JupyterLab, with copies of the notebook (train = False) and of a live training."""
    copies = [PROJECT / "my_copy_test.ipynb", PROJECT / "my_copy_test_live.ipynb"]
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    cell_with_tag(notebook, "parameters").source += "\ntrain = False"
    nbformat.write(notebook, copies[0])
    notebook.cells = [nbformat.v4.new_code_cell(LIVE)]
    nbformat.write(notebook, copies[1])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = f"--no-browser --port={port} --allow-root --IdentityProvider.token=test".split()
    options += ["--ServerApp.port_retries=0", "--expose-app-in-browser"]
    log = (tmp_path_factory.mktemp("lab") / "log").open("w")
    command = [sys.executable, "-m", "jupyterlab", *commands.lab_options(copies[0]), *options]
    server = subprocess.Popen(
        [*map(str, command)], cwd=PROJECT, env=commands.lab_environment(), stdout=log, stderr=log
    )

    def up():
        assert server.poll() is None, log.name
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        wait_for(up, "JupyterLab")
        yield f"http://127.0.0.1:{port}/lab/tree/{copies[0].name}?token=test&reset"
    finally:
        server.terminate()
        server.wait(timeout=30)
        for copy in copies:
            copy.unlink()


def run_all(driver, address):
    driver.get(address)
    name = address.partition("?")[0].rpartition("/")[2]
    wait_for(
        lambda: driver.execute_script(
            PANEL + "if (panel) window.jupyterapp.shell.activateById(panel.id);"
            "return panel?.context.path.endsWith(arguments[0]) &&"
            " panel.sessionContext?.session?.kernel?.status == 'idle'",
            name,
        ),
        "the notebook's kernel",
    )
    driver.execute_script("window.jupyterapp.commands.execute('notebook:run-all-cells')")


@pytest.fixture(scope="module")
def lab(address):
    """A browser in which all cells have run, or one has failed."""
    driver = open_browser(1400, 1500)
    try:
        run_all(driver, address)
        cells = PANEL + "const code = panel.content.widgets.filter(it => it.model.type == 'code');"
        wait_for(
            lambda: driver.execute_script(
                cells + "return code.every(cell => cell.model.executionCount) || code.some(cell =>"
                " cell.model.outputs.toJSON().some(output => output.output_type == 'error'))"
            ),
            "the last cell",
        )
        yield driver
    finally:
        driver.quit()


def click_link(lab, text):
    lab.execute_script(
        "[...document.querySelectorAll('.jp-RenderedMarkdown a')].find("
        "link => link.textContent == arguments[0]).click()",
        text,
    )


def test_no_cell_failed_and_every_picture_is_there(lab):
    cells = lab.execute_script(
        PANEL + "return panel.content.widgets.map(cell => (cell.model.outputs?.toJSON() ?? [])"
        ".map(output => output.output_type))"
    )
    assert len(cells) > 50 and not [k for k, kinds in enumerate(cells) if "error" in kinds]
    missing = lab.execute_script(
        "return [...document.querySelectorAll('.jp-Notebook img')]"
        ".filter(image => image.complete && !image.naturalWidth).map(image => image.alt)"
    )
    assert missing == []


def test_a_link_to_a_page_opens_it(lab):
    click_link(lab, "the museum of bugs")
    opened = "return [...window.jupyterapp.shell.widgets('main')].map(it => it.context?.path)"
    wait_for(lambda: "doc/bugs.md" in lab.execute_script(opened), "the page", 30)


def test_arms_are_live_while_the_cell_runs(lab, address):
    run_all(lab, address.replace("my_copy_test.", "my_copy_test_live."))
    frames = "iframe[name^=live-]"
    wait_for(lambda: lab.find_elements("css selector", frames), "the live arms")
    assert lab.execute_script(PANEL + "return panel.sessionContext.session.kernel.status") == "busy"
    lab.switch_to.frame(lab.find_element("css selector", frames))
    drawn = "return Math.max(0, ...[...document.querySelectorAll('canvas')].map(it => it.width))"
    wait_for(lambda: lab.execute_script(drawn) > 100, "a picture of them")
    lab.switch_to.default_content()
