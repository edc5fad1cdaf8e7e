"""The notebook's interactive figures in headless Chromium with the network off.

Skipped without the extra `browser`, Chromium and chromedriver.
"""

from __future__ import annotations

import io
import json
import math
import time

import matplotlib.pyplot as plt
import numpy as np
import pytest
import test_page
from PIL import Image
from test_page import WAIT, text, value

from research.report import study
from tutorial import diagrams, interactive
from tutorial.paths import CHECKPOINTS

browser, show, pytestmark = test_page.browser, test_page.show, test_page.pytestmark
PRIORITIES = np.array([1.0, 2, 3, 4, 2, 1, 5, 2])
FOLDER = CHECKPOINTS / "study"
FULLEST = {  # the states in which the figures are tallest
    "chain": "figure.set({n: 1, sweeps: 20})",
    "tree": "document.getElementById('play').click()",
    "study": "figure.set({replay: 1, runs: true})",
}


@pytest.fixture(scope="module")
def figures(notebook):
    tree = np.zeros(16)
    notebook.tree_update(tree, np.arange(8), PRIORITIES)
    made = {
        "chain": interactive.value_chain(),
        "tree": interactive.sum_tree(tree, 4.5),
        "study": interactive.study_curves(FOLDER),
    }
    return {name: figure.data for name, figure in made.items()}


@pytest.fixture
def inside(show, figures):
    """Opens a figure as a notebook shows it, and goes into its frame."""

    def inside(name, before="<body>", **options):
        driver = show(f"<!DOCTYPE html>{before}{figures[name]}", **options)
        driver.switch_to.frame(0)
        return driver

    yield inside


@pytest.fixture
def width(browser):
    """Sets the window's width; afterwards it is as before."""

    def width(pixels):
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": pixels, "height": 844, "deviceScaleFactor": 1, "mobile": False},
        )

    yield width
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def picture(driver):
    return np.asarray(Image.open(io.BytesIO(driver.get_screenshot_as_png())).convert("RGB"))


# ----------------------------------------------------------------------------------- all of them


@pytest.mark.parametrize("name", FULLEST)
def test_it_fits_a_phone_and_asks_for_nothing(inside, width, name):
    width(390)
    driver = inside(
        name, '<body style="margin: 0 31px">', width=390
    )  # as the notebook's page has them
    driver.execute_script(FULLEST[name])
    across, down = value(driver, "[innerWidth, innerHeight]")
    page = "document.documentElement"
    assert value(driver, f"[{page}.scrollWidth, {page}.scrollHeight]") == [across, down]
    assert across == 390 - 62
    assert value(driver, "performance.getEntriesByType('resource').length") == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_follows_the_readers_scheme_or_that_of_the_site(inside, scheme):
    other = "dark" if scheme == "light" else "light"
    back = "getComputedStyle(document.body).backgroundColor"
    wanted = {"light": "rgb(255, 255, 255)", "dark": "rgb(14, 18, 27)"}[scheme]
    assert value(inside("tree", scheme=scheme), back) == wanted
    site = f'<body style="color-scheme: {scheme}">'
    assert value(inside("tree", site, scheme=other), back) == wanted


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_without_scripts_the_drawing_is_seen(show, figures, scheme):
    """Not the page's colours, either, where the reader's scheme is not that of the notebook."""
    page = figures["tree"].replace('sandbox="allow-scripts"', "sandbox", 1)
    alone = picture(show(page.split("<iframe")[0] + "</div>", scheme=scheme))
    below = picture(show(page, scheme=scheme))
    assert alone.std() > 10
    np.testing.assert_array_equal(alone, below)


# ------------------------------------------------------------------------------- the value chain


@pytest.mark.parametrize("n", range(1, 11))
def test_value_reaches_the_first_cell_after_20_over_n_sweeps(inside, n):
    driver = inside("chain")
    driver.execute_script("figure.set({n: arguments[0]})", n)
    button, sweeps = driver.find_element("id", "sweep"), 0
    while button.is_enabled() and sweeps < 21:
        assert "does not know" in text(driver, "#said")
        driver.execute_script("arguments[0].click()", button)
        sweeps += 1
        reached = value(driver, "document.querySelectorAll('#chain i[data-reached]').length")
        assert reached == sum(min(20, n * sweep) for sweep in range(sweeps + 1))  # of all rows
    assert sweeps == math.ceil(20 / n)
    assert text(driver, "#said").startswith(f"After {sweeps} sweep")


def test_the_chains_values_are_those_of_the_drawing(inside):
    driver = inside("chain")
    drawing = diagrams.draw_value_chain(20, (0, 1, 2), (1, 3, 10), discount=0.8)
    for axes, n in zip(drawing.axes, (1, 3, 10), strict=True):
        mine = value(driver, f"figure.history({{n: {n}, discount: 0.8, sweeps: 2}})")
        drawn = np.asarray(axes.images[0].get_array())[: len(mine)]
        np.testing.assert_allclose(mine, drawn, rtol=1e-12)  # powers, rounded once or twice
    plt.close(drawing)


def test_the_chain_plays_from_the_keyboard(inside):
    driver = inside("chain")
    driver.find_element("id", "n").send_keys("\ue014" * 9)  # right arrow
    assert value(driver, "figure.state.n") == 10
    driver.find_element("id", "play").send_keys("\n")
    assert text(driver, "#play") == "Pause"
    end = time.monotonic() + WAIT
    while text(driver, "#play") == "Pause" and time.monotonic() < end:
        time.sleep(0.05)
    assert value(driver, "figure.state.sweeps") == 2 and text(driver, "#play") == "Play"


# --------------------------------------------------------------------------------- the sum tree


def test_it_finds_the_leaves_that_the_notebook_finds(inside, notebook):
    """A hundred trees with a number each, a third of the priorities 0.

    Half of the numbers are the sum itself, where rounding may carry them.
    """
    driver, generator = inside("tree"), np.random.default_rng(0)
    priorities = generator.uniform(0, 9, (100, 8)) * (generator.random((100, 8)) > 1 / 3)
    numbers, expected = generator.random(100) * priorities.sum(1), []
    numbers[:50] = priorities[:50].sum(1)
    for row, number in zip(priorities, numbers, strict=True):
        tree = np.zeros(16)
        notebook.tree_update(tree, np.arange(8), row)
        expected += notebook.tree_find(tree, np.array([number])).tolist()
    found = driver.execute_script(
        """return arguments[0].map((priorities, k) =>
            figure.find(figure.sums(priorities), arguments[1][k]).leaf)""",
        priorities.tolist(),
        numbers.tolist(),
    )
    assert found == expected and set(found) == set(range(8))


def test_the_path_lights_up_with_its_comparisons(inside):
    driver = inside("tree")

    def shown():
        steps = value(
            driver, "[...document.querySelectorAll('#tree .step')].map(e => e.textContent)"
        )
        lit = value(
            driver,
            "[...document.querySelectorAll('#leaves label')]"
            ".flatMap((leaf, k) => leaf.hasAttribute('data-lit') ? [k] : [])",
        )
        return steps, lit

    assert shown() == (["4.5 < 10: left", "4.5 ≥ 3: right, 4.5 - 3 = 1.5", "1.5 < 3: left"], [2])
    assert value(driver, "document.querySelectorAll('#tree circle[data-lit]').length") == 4
    driver.find_element("id", "number").send_keys("\ue014" * 3)  # right arrow: to 6
    assert shown()[1] == [3]
    [leaf] = driver.find_elements("css selector", "#leaves label:nth-child(3) input")
    leaf.send_keys("\ue013")  # up arrow: leaf 2 has 4 then
    assert value(driver, "figure.state.priorities") == [1, 2, 4, 4, 2, 1, 5, 2]
    assert shown()[1] == [2]
    driver.find_element("id", "number").send_keys("\ue010")  # its largest
    assert value(driver, "figure.state.number") == 20.5 and shown()[1] == [7]


def test_a_thousand_draws_agree_with_the_shares(inside):
    """Within five standard deviations of a binomial: wrong in one of 200,000 tests."""
    driver = inside("tree")
    priorities = PRIORITIES * [1, 0, 1, 1, 1, 1, 1, 1]
    driver.execute_script("figure.set({priorities: arguments[0]})", priorities.tolist())
    driver.find_element("id", "play").click()
    counts, shares = np.array(value(driver, "figure.state.counts")), priorities / priorities.sum()
    assert counts.sum() == 1000
    assert (np.abs(counts - 1000 * shares) <= 5 * np.sqrt(1000 * shares * (1 - shares))).all()
    assert text(driver, "#leaves label:nth-child(7) .share") == "27.8%"  # 5 of 18
    assert text(driver, "#leaves label:nth-child(7) .drawn") == f"{counts[6] / 10:.1f}%"
    driver.execute_script("figure.set({priorities: new Array(8).fill(0), counts: null})")
    assert text(driver, "#said").startswith("All priorities are 0")
    assert not driver.find_element("id", "play").is_enabled()


# ---------------------------------------------------------------------------- the study's curves


def test_it_prints_the_numbers_of_the_studys_table(inside):
    """Area and end of all 32 cells, as doc/study.md has them."""
    driver, tasks = inside("study"), {title: name for name, title in study.TASKS.items()}
    lines = [
        [field.strip() for field in line.strip("|").split("|")]
        for line in study.cells_table(FOLDER).splitlines()[2:]
    ]
    assert len(lines) == 32
    for title, n, replay, noisy, _, area, end, _ in lines:
        state = {
            "task": tasks[title],
            "n_step": int(n == "3"),
            "replay": int(replay == "prioritized"),
            "noisy_layers": int(noisy == "on"),
        }
        driver.execute_script("figure.set(arguments[0])", state)
        assert text(driver, "#said tr:first-child").split() == [
            "chosen",
            n,
            replay,
            noisy,
            area,
            end,
        ]


def test_a_switch_keeps_what_was_chosen_before_it(inside):
    driver = inside("study")
    assert len(driver.find_elements("css selector", "#said tr")) == 1
    driver.find_element("css selector", "input[name=replay][value='1']").click()
    rows = [row.text.split() for row in driver.find_elements("css selector", "#said tr")]
    assert [row[:4] for row in rows] == [
        ["chosen", "1", "prioritized", "off"],
        ["before", "1", "uniform", "off"],
    ]
    lines = "document.querySelectorAll('#curves path:not(.band)').length"
    assert value(driver, lines) == 8
    driver.find_element("name", "runs").click()
    assert value(driver, lines) == 8 + 12
    driver.find_element("name", "others").click()
    assert value(driver, lines) == 2 + 12


def test_its_scores_are_those_of_the_tables(inside):
    """Exactly: with twenty arms a score is a multiple of half a thousandth."""
    driver = inside("study")
    data = json.loads(value(driver, "document.getElementById('data').textContent"))
    for task, held in data["tasks"].items():
        cells = study.curves(FOLDER / f"{task}.csv")
        for cell, runs in zip(study.CELLS, held["scores"], strict=True):
            scores = [scores for _, scores in cells[cell].values()]
            np.testing.assert_allclose(np.array(runs) * data["unit"], scores, rtol=1e-12)
