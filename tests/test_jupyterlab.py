"""The notebook in JupyterLab as `make lab` opens it, in headless Chromium, with a live training."""

import os
import re
import socket
import subprocess
import sys

import nbformat
import pytest

from browser import wait_for
from tutorial.paths import NOTEBOOK, PROJECT

PANEL = (
    "const panel = [...window.jupyterapp?.shell.widgets('main') ?? []]"
    ".find(widget => widget.content?.widgets); "
)
LIVE = """
import time
import numpy as np
import helpers
cells = helpers.definitions()
agent = cells.Agent(cells.Hyperparameters(), np.random.default_rng(0))
helpers.show_agent(agent, [1.0], 3)
with helpers.live_arms(3) as after_episode:
    after_episode(agent, [1.0])
    time.sleep(1000)
"""


@pytest.fixture(scope="module")
def lab(driver, tmp_path_factory):
    """A browser that shows the stored notebook, with one more cell at its end."""
    copy = PROJECT / "my_copy_test.ipynb"
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(LIVE))
    nbformat.write(notebook, copy)
    subprocess.run([sys.executable, "-m", "jupyter", "trust", copy], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = f"--no-browser --port={port} --allow-root --IdentityProvider.token=test".split()
    options += ["--ServerApp.port_retries=0", "--expose-app-in-browser"]
    command = [sys.executable, "-m", "jupyterlab", copy.name, *options]
    log = (tmp_path_factory.mktemp("lab") / "log").open("w")
    settings = {"JUPYTER_CONFIG_PATH": str(PROJECT / "tutorial" / "jupyter")}  # as in Makefile
    place = {"cwd": PROJECT, "env": os.environ | settings}
    server = subprocess.Popen(command, stdout=log, stderr=log, **place)

    def up():
        assert server.poll() is None, log.name
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        wait_for(up)
        driver.set_window_size(1400, 1500)
        driver.get(f"http://127.0.0.1:{port}/lab/tree/{copy.name}?token=test&reset")
        ready = "return panel?.sessionContext?.session?.kernel?.status == 'idle'"
        wait_for(lambda: driver.execute_script(PANEL + ready))
        yield driver
    finally:
        driver.get("about:blank")
        server.terminate()
        server.wait(timeout=30)
        copy.unlink()


def test_every_picture_and_figure_is_there(lab):
    pictures = "const pictures = [...document.querySelectorAll('.jp-Notebook img')]; "
    loaded = "return pictures.length > 20 && pictures.every(it => it.complete)"
    wait_for(lambda: lab.execute_script(pictures + loaded))
    missing = "return pictures.filter(it => !it.naturalWidth).map(it => it.alt)"
    assert lab.execute_script(pictures + missing) == []
    assert len(lab.find_elements("css selector", ".jp-OutputArea iframe")) >= 2


def test_arms_are_live_while_the_cell_runs(lab):
    lab.execute_script(
        PANEL + "window.jupyterapp.shell.activateById(panel.id);"
        "panel.content.activeCellIndex = panel.content.widgets.length - 1;"
        "window.jupyterapp.commands.execute('notebook:run-cell')"
    )
    frames = "iframe[name^=live-]"
    busy = "return panel.sessionContext.session.kernel.status == 'busy'"
    wait_for(lambda: lab.execute_script(PANEL + busy))
    wait_for(lambda: lab.find_elements("css selector", frames))
    assert lab.execute_script(PANEL + busy)
    lab.switch_to.frame(lab.find_elements("css selector", frames)[-1])
    drawn = "return Math.max(0, ...[...document.querySelectorAll('canvas')].map(it => it.width))"
    wait_for(lambda: lab.execute_script(drawn) > 100)
    lab.switch_to.default_content()


def test_the_agent_learns_in_a_frame(lab):
    """In the last cell's first one."""
    frames = "panel.content.widgets.at(-1).node.querySelectorAll('iframe')"
    wait_for(lambda: lab.execute_script(f"{PANEL} return {frames}.length") > 1)
    lab.switch_to.frame(lab.execute_script(f"{PANEL} return {frames}[0]"))
    told = "return document.querySelector('#progress').innerText"
    lab.execute_script("document.querySelector('#begin').click()")
    wait_for(lambda: re.search(r"[1-9][\d,]* gradient", lab.execute_script(told)))
    lab.switch_to.default_content()
