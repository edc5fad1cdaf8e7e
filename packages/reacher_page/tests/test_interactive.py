"""The notebook's interactive figure in headless Chromium without a network."""

import numpy as np
import pytest

from reacher_page import interactive


@pytest.fixture
def inside(driver, tmp_path):
    """Opens a figure as a notebook shows it, and goes into its frame; its console stays empty."""

    def inside(figure, width=1000, scripts=True):
        page = figure().data if scripts else figure().data.replace("allow-scripts", "")
        (tmp_path / "page.html").write_text(f"<!DOCTYPE html><body style='margin: 0 31px'>{page}")
        driver.set_window_size(width, 900)
        driver.get((tmp_path / "page.html").as_uri())
        if scripts:
            driver.switch_to.frame(0)
        return driver

    driver.get_log("browser")
    yield inside
    assert not [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]


def value(driver, expression):
    return driver.execute_script(f"return {expression}")


def test_it_fits_a_phone_asks_for_nothing_and_is_drawn_without_scripts(inside):
    driver = inside(interactive.sum_tree, width=500)  # the narrowest window that Chromium makes
    driver.find_element("id", "play").click()
    page = "document.documentElement"
    across, down = value(driver, "[innerWidth, innerHeight]")
    assert value(driver, f"{page}.scrollWidth") == across < 500
    assert value(driver, f"{page}.scrollHeight") == down
    assert value(driver, "performance.getEntriesByType('resource').length") == 0
    driver = inside(interactive.sum_tree, scripts=False)
    assert value(driver, "document.querySelector('img').naturalWidth") > 500
    assert value(driver, "document.querySelector('img').alt").startswith("The path")


def test_the_tree_finds_the_leaves_that_the_notebook_finds(inside, notebook):
    """A hundred trees with a number each, a third of the priorities 0."""
    driver, generator = inside(interactive.sum_tree), np.random.default_rng(0)
    priorities = generator.uniform(0, 9, (100, 4)) * (generator.random((100, 4)) > 1 / 3)
    priorities[:, 0] += 0.5  # never all 0
    numbers, expected = generator.random(100) * priorities.sum(1), []
    for row, number in zip(priorities, numbers, strict=True):
        tree = notebook.SumTree(4)
        tree.update(np.arange(4), row)
        expected += tree.find(np.array([number])).tolist()
    found = driver.execute_script(
        "return arguments[0].map((row, k) => figure.find(figure.sums(row), arguments[1][k]).leaf)",
        priorities.tolist(),
        numbers.tolist(),
    )
    assert found == expected and set(found) == set(range(4))
