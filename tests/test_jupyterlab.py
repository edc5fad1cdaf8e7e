"""The notebook in JupyterLab, in headless Chromium: Run All with train = False.

Skipped without the extra `browser`, Chromium and chromedriver.
"""

from __future__ import annotations

import base64
import shutil
import socket
import subprocess
import sys
import time

import nbformat
import pytest
from test_live import CELL

from tutorial import tasks
from tutorial.paths import NOTEBOOK, PROJECT
from tutorial.print import without_sandbox

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is an extra")
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="no Chromium with chromedriver")
TIMEOUT = 300  # seconds, of anything that is waited for
PANEL = (
    "const panel = [...window.jupyterapp?.shell.widgets('main') ?? []]"
    ".find(widget => widget.content?.widgets); "
)
PICTURES = """
    const node = panel.content.widgets[arguments[0]].node;
    return [...node.querySelectorAll('.jp-OutputArea-output img')].map(
        image => [image.src.slice(0, 22), image.complete && image.naturalWidth])"""


def wait_for(condition, what, timeout=TIMEOUT):
    """The first true value of the condition."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.5)
    pytest.fail(f"waited {timeout} s for {what}")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project, in its runs/ a notebook without outputs and with train = False."""
    folder = tmp_path_factory.mktemp("lab") / "project"
    shutil.copytree(
        PROJECT,
        folder,
        ignore=shutil.ignore_patterns(".git", ".venv", "runs", "tests", "__pycache__", ".*_cache"),
    )
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        if "parameters" in cell.metadata.get("tags", []):
            assert cell.source.count("\ntrain = True") == 1
            cell.source = cell.source.replace("\ntrain = True", "\ntrain = False")
    (folder / "runs").mkdir()
    nbformat.write(notebook, folder / "runs" / "lab.ipynb")
    return folder


@pytest.fixture(scope="module")
def address(project):
    """Of JupyterLab with that notebook, as `make lab` opens it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = open(project.parent / "lab.log", "w")
    server = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "jupyterlab",
            *tasks.lab_arguments(project / "runs" / "lab.ipynb", project),
            "--no-browser",
            f"--port={port}",
            "--allow-root",
            "--ServerApp.port_retries=0",
            "--IdentityProvider.token=test",
            "--expose-app-in-browser",
        ],
        cwd=project,
        env=tasks.lab_environment(),
        stdout=log,
        stderr=log,
    )

    def up():
        assert server.poll() is None, (project.parent / "lab.log").read_text()[-2000:]
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        wait_for(up, "JupyterLab")
        yield f"http://127.0.0.1:{port}/lab/tree/lab.ipynb?token=test&reset"
    finally:
        server.terminate()
        server.wait(timeout=30)
        log.close()


@pytest.fixture(scope="module")
def lab(address, tmp_path_factory):
    """A browser in which all cells have run."""
    options = webdriver.ChromeOptions()
    for argument in (
        "--headless=new",
        *without_sandbox(),
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--window-size=1400,1500",
        f"--user-data-dir={tmp_path_factory.mktemp('chromium')}",
    ):
        options.add_argument(argument)
    options.binary_location = CHROMIUM
    browser = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    browser.set_script_timeout(TIMEOUT)
    try:
        browser.get(address)
        wait_for(
            lambda: browser.execute_script(
                PANEL + "if (panel) window.jupyterapp.shell.activateById(panel.id);"
                "return panel?.content?.widgets?.length > 100 &&"
                " panel.sessionContext?.session?.kernel?.status == 'idle'"
            ),
            "the notebook's kernel",
        )
        browser.execute_script(  # without waiting for its promise, which a slow machine keeps late
            "window.jupyterapp.commands.execute('notebook:run-all-cells')"
        )
        wait_for(
            lambda: browser.execute_script(  # the last cell, or one that failed
                PANEL
                + "const code = panel.content.widgets.filter(cell => cell.model.type == 'code');"
                "return code.every(cell => cell.model.executionCount) || code.some(cell =>"
                " cell.model.outputs.toJSON().some(output => output.output_type == 'error'))"
            ),
            "the last cell",
        )
        yield browser
    finally:
        browser.quit()


def cells_of(lab):
    """Type, execution count, kinds of outputs and of pictures of each cell."""
    return lab.execute_script(
        PANEL
        + """
        return panel.content.widgets.map(cell => {
            const outputs = cell.model.outputs?.toJSON() ?? [];
            return {type: cell.model.type, source: cell.model.sharedModel.source,
                    count: cell.model.executionCount ?? null,
                    kinds: outputs.map(output => output.output_type),
                    pictures: outputs.map(output => output.data?.['image/png']).filter(Boolean)}})
        """
    )


def shown_pictures(lab, index):
    """Start and true width of each picture of a cell, after scrolling there."""
    lab.execute_script(PANEL + "panel.content.scrollToItem(arguments[0], 'center')", index)

    def pictures():
        found = lab.execute_script(PANEL + PICTURES, index)
        return found if found and all(width for _, width in found) else None

    return wait_for(pictures, f"the pictures of cell {index}", 60)


def test_no_cell_failed(lab):
    code = [cell for cell in cells_of(lab) if cell["type"] == "code"]
    assert not [cell["source"] for cell in code if "error" in cell["kinds"]]
    assert [cell["count"] for cell in code] == list(range(1, len(code) + 1))


def test_result_figure_and_animation_are_on_the_page(lab):
    """The animation is a PNG with the chunk acTL, which says that it moves."""
    cells = cells_of(lab)
    with_pictures = [index for index, cell in enumerate(cells) if cell["pictures"]]
    moving = [
        index
        for index in with_pictures
        if any(b"acTL" in base64.b64decode(picture)[:2000] for picture in cells[index]["pictures"])
    ]
    assert moving and len(with_pictures) - len(moving) >= 3  # and figures 1 to 3
    for index in with_pictures:
        assert all(
            start.startswith(("data:image/png", "data:image/svg")) and width > 300
            for start, width in shown_pictures(lab, index)
        )


def test_the_table_of_contents_follows_the_headings(lab):
    headings = [
        line.lstrip("# ").strip()
        for cell in cells_of(lab)
        if cell["type"] == "markdown"
        for line in cell["source"].splitlines()
        if line.startswith("#")
    ]
    lab.execute_script("window.jupyterapp.shell.activateById('table-of-contents')")
    lab.find_element("css selector", ".jp-NotebookPanel-toolbar").click()  # it follows the focus

    def shown():
        return lab.execute_script(
            "return [...document.querySelectorAll('.jp-tocItem-content')].map("
            "item => item.textContent.trim())"
        )

    wait_for(lambda: len(shown()) == len(headings), "the table of contents", 60)
    plain = [heading.replace("`", "").replace("*", "") for heading in headings]
    assert [item.lstrip("0123456789. ") for item in shown()] == [
        heading.lstrip("0123456789. ") for heading in plain
    ]


def test_a_link_of_the_contents_lands_on_its_heading(lab):
    """At the first click, past cells that were not in sight before."""
    for heading in ("Break it", "The whole agent"):
        lab.execute_script(PANEL + "panel.content.scrollToItem(0, 'start')")
        lab.execute_script(
            "[...document.querySelectorAll('.jp-RenderedMarkdown a')].find("
            "link => link.textContent == arguments[0]).click()",
            heading,
        )

        def lands(heading=heading):
            return lab.execute_script(
                PANEL + "const panels = panel.content.node.getBoundingClientRect();"
                "const heads = [...panel.content.node.querySelectorAll('h2')].filter("
                "head => head.textContent.includes(arguments[0]));"
                "return heads.length &&"
                " Math.abs(heads[0].getBoundingClientRect().top - panels.top) < 100",
                heading,
            )

        wait_for(lands, f"the heading {heading}", 30)


def test_arms_learn_while_the_cell_runs(lab, address, project):
    """The page in the output gets new actors before the cell has ended; one with the last stays."""
    go_on = project / "runs" / "go_on"
    wait = f"while not Path({str(go_on)!r}).exists(): after_episode(agent, scores); time.sleep(0.5)"
    cell = nbformat.v4.new_code_cell(
        "import time\nfrom pathlib import Path\n" + CELL.replace("WAIT", wait)
    )
    content = nbformat.v4.new_notebook(
        cells=[cell],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )
    nbformat.write(content, project / "runs" / "live.ipynb")
    lab.get(address.replace("lab.ipynb", "live.ipynb"))
    wait_for(
        lambda: lab.execute_script(
            PANEL + "return panel?.context.path.endsWith('live.ipynb') &&"
            " panel.sessionContext?.session?.kernel?.status == 'idle'"
        ),
        "the notebook's kernel",
    )
    lab.execute_script("window.jupyterapp.commands.execute('notebook:run-all-cells')")

    def actors():
        frames = lab.find_elements("css selector", "iframe[name^=live-]")
        if not frames:
            return None
        lab.switch_to.frame(frames[0])
        found = lab.execute_script(
            "return window.page && [page.actors.length, page.frames.rate > 0]"
        )
        lab.switch_to.default_content()
        return found

    wait_for(lambda: actors() and actors()[0] > 2 and actors()[1], "the newest actor in the page")
    assert lab.execute_script(PANEL + "return panel.sessionContext.session.kernel.status") == "busy"
    go_on.touch()
    wait_for(lambda: actors() and actors()[0] == 2, "the page that stays")
