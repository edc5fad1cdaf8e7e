"""The page to look around in, in headless Chromium with the network off.

Skipped without the extras of tests/requirements-browser.txt, Chromium and chromedriver.
"""

from __future__ import annotations

import base64
import io
import re
import shutil
import time

import numpy as np
import pytest
from PIL import Image

from reacher.drawing import points
from reacher.drawing.moving import still_png
from reacher.drawing.page import ASSETS, inline, page
from reacher.episode import play_episode, random_torques

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is an extra")
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="no Chromium with chromedriver")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--window-size=1000,900",
)
WAIT = 60  # seconds


def open_browser(folder, *more):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for option in (*OPTIONS, f"--user-data-dir={folder}", *more):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_page_load_timeout(WAIT)
    driver.execute_cdp_cmd("Network.enable", {})
    driver.execute_cdp_cmd(
        "Network.emulateNetworkConditions",
        {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0},
    )
    return driver


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    driver = open_browser(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def episodes():
    """Twenty arms, two actors, the same goals."""
    return [
        play_episode(random_torques(seed), 20, 3, 60).named(title, "a fact", "<b>another</b>")
        for seed, title in ((0, "First"), (1, "Second"))
    ]


@pytest.fixture
def show(browser, tmp_path):
    """Opens a page from disk; at the end there must have been no error in its console."""

    def show(content, driver=browser):
        path = tmp_path / "page.html"
        path.write_text(content, encoding="utf-8")
        driver.get(path.as_uri())
        return driver

    browser.get_log("browser")
    yield show
    errors = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert not errors


def canvas(driver, time_=None):
    """The canvas (height, width, 3) at a decision; drawn and read at once."""
    data = driver.execute_script(
        "if (arguments[0] !== null) arms.show(arguments[0]);"
        "return document.getElementById('view').toDataURL()",
        time_,
    )
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data.split(",")[1]))).convert("RGB"))


def text(driver, selector):
    return driver.execute_script("return document.querySelector(arguments[0]).innerText", selector)


def colors(driver, scheme):
    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {
            "features": [
                {"name": "prefers-color-scheme", "value": scheme},
                {"name": "prefers-reduced-motion", "value": "reduce"},
            ]
        },
    )


def test_it_loads_from_disk_without_a_network_and_draws(show, episodes):
    driver = show(page(episodes[:1], "A title", "What it shows", autoplay=False))
    first, later = canvas(driver, 2), canvas(driver, 40)
    assert first.std() > 8 and len(np.unique(first.reshape(-1, 3), axis=0)) > 500
    assert (first != later).any(-1).mean() > 0.01  # scrubbing changes it
    np.testing.assert_array_equal(canvas(driver, 2), first)
    assert text(driver, "h1") == "A title" and text(driver, "#what") == "What it shows"
    assert "<b>another</b>" in text(driver, "#captions")
    resources = driver.execute_script("return performance.getEntriesByType('resource').length")
    assert resources == 0


def test_positions_and_scores_are_the_recorded_ones(show, episodes):
    """To half a centimetre, and float32."""
    driver = show(page(episodes, autoplay=False))
    found = np.array(
        driver.execute_script(
            "return [0, 1].map(k => [0, 17, 60].map(time => [...Array(20).keys()].map(arm =>"
            "['elbow', 'hand', 'goal'].map(part => arms.place(k, time, arm, part)))))"
        )
    )
    for k, episode in enumerate(episodes):
        spot = points.arm_points(episode.observations[[0, 17, 60]])
        expected = np.stack([spot[part] for part in ("elbow", "hand", "goal")], -2)
        assert np.abs(found[k] - expected).max() < 0.00501
    driver.execute_script("arms.show(60)")
    rows = driver.execute_script(
        "return [...document.querySelectorAll('#scores tbody tr')].map("
        "row => [...row.cells].map(cell => cell.textContent))"
    )
    assert len(rows) == 21 and rows[0][0] == "mean"
    for arm in range(20):
        assert float(rows[arm + 1][1]) == pytest.approx(episodes[0].scores[arm], abs=0.006)
        assert float(rows[arm + 1][6]) == pytest.approx(episodes[1].scores[arm], abs=0.006)
        assert float(rows[arm + 1][3]) == pytest.approx(episodes[0].rewards[-1, arm], abs=1e-6)
    assert float(rows[0][1]) == pytest.approx(episodes[0].scores.mean(), abs=0.006)
    between = driver.execute_script("return arms.place(0, 17.5, 3, 'hand')")
    hands = points.arm_points(episodes[0].observations)["hand"]
    np.testing.assert_allclose(between, (hands[17, 3] + hands[18, 3]) / 2, atol=0.006)


def test_a_hand_is_drawn_where_it_is(show, episodes):
    driver = show(page(episodes[:1], autoplay=False))
    colors(driver, "dark")
    picture = canvas(driver, 30).astype(int)
    blue = 0
    for arm in range(20):
        x, y = driver.execute_script("return arms.pixel(0, arguments[0], 'hand')", arm)
        red, _, high = picture[int(y) - 1 : int(y) + 2, int(x) - 1 : int(x) + 2].mean((0, 1))
        blue += high - red > 40
    assert blue >= 15  # some are behind or within something else


def halves(picture):
    half = picture.shape[1] // 2
    return picture[:, :half], picture[:, -half:]


@pytest.mark.parametrize("width", [700, 1000, 1280])
def test_things_cast_shadows(show, episodes, width):
    """Once they fought with the floor for each pixel, and lost at some sizes."""
    driver = show(page(episodes[:1], autoplay=False))
    colors(driver, "light")
    driver.set_window_size(width, 800)
    bright = canvas(driver, 0).astype(int).mean(-1)
    x, y = driver.execute_script("""
        const { sun, floor } = arms.data.look, at = arms.data.places[10];
        const goal = arms.place(0, 0, 10, 'goal'), high = goal[1] - floor;
        return arms.pixelOf([goal[0] + at[0] - sun[0] / sun[2] * high,
                             goal[2] + at[1] - sun[1] / sun[2] * high, floor])""")
    shadow = bright[int(y) - 2 : int(y) + 3, int(x) - 2 : int(x) + 3].mean()
    assert np.median(bright) - shadow > 20


def test_side_by_side_shows_two(show, episodes):
    driver = show(page(episodes, autoplay=False))
    picture = canvas(driver, 30)
    left, right = halves(picture)
    assert left.std() > 8 and right.std() > 8
    assert (left != right).any(-1).mean() > 0.01
    captions = text(driver, "#captions")
    assert "First" in captions and "Second" in captions
    alone = show(page([episodes[0], episodes[0]], autoplay=False))
    picture = canvas(alone, 30).astype(int)
    left, right = halves(picture)
    assert (np.abs(left - right) > 8).mean() < 0.005  # the same twice looks the same


def test_it_plays_and_pauses_and_heeds_the_speed(show, episodes):
    driver = show(page(episodes[:1], autoplay=False, start=0))
    now = lambda: driver.execute_script("return arms.state.time")  # noqa: E731
    time.sleep(0.3)
    assert now() == 0
    driver.execute_script("arms.state.speed = 0.1")  # slow enough for a slow machine
    driver.find_element("id", "play").click()
    end = time.monotonic() + WAIT
    while now() < 2 and time.monotonic() < end:
        time.sleep(0.05)
    driver.find_element("id", "play").click()
    stopped = now()
    time.sleep(0.3)
    assert 2 <= stopped < 60 and now() == stopped
    driver.execute_script("""arms.show(0); const speed = document.getElementById('speed');
                             speed.value = '8'; speed.dispatchEvent(new Event('change'))""")
    assert driver.execute_script("return arms.state.speed") == 8
    driver.execute_script("arms.play(true)")
    while driver.execute_script("return arms.state.playing") and time.monotonic() < end:
        time.sleep(0.05)
    assert now() == 60  # it ends with the episode


def test_it_plays_by_itself_unless_the_reader_wants_no_motion(show, episodes):
    driver = show("")
    for motion, playing in (("no-preference", True), ("reduce", False)):
        driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-reduced-motion", "value": motion}]},
        )
        show(page(episodes[:1], start=0))
        assert driver.execute_script("return arms.state.playing") is playing


def test_keys_move_time_view_and_choice(show, episodes):
    driver = show(page(episodes[:1], autoplay=False, start=10))
    body = driver.find_element("tag name", "body")
    state = lambda name: driver.execute_script("return arms.state[arguments[0]]", name)  # noqa: E731
    body.send_keys(".")
    assert state("time") == 11
    body.send_keys(",,")
    assert state("time") == 9
    body.send_keys("n")
    assert state("arm") == 0
    body.send_keys("p")
    assert state("arm") == -1
    body.send_keys("<<<")
    assert state("speed") == 0.1
    body.send_keys(" ")
    assert state("playing")
    body.send_keys(" ")
    assert not state("playing")
    before = state("zoom"), state("azimuth")
    body.send_keys("+")
    view = driver.find_element("id", "view")
    driver.execute_script("arguments[0].focus()", view)
    view.send_keys("\ue012")  # left arrow
    assert state("zoom") < before[0] and state("azimuth") != before[1]
    body.send_keys("0")
    assert (state("zoom"), state("azimuth")) == before


def test_mouse_and_fingers_turn_and_zoom(show, episodes):
    driver = show(page(episodes[:1], autoplay=False))
    state = lambda name: driver.execute_script("return arms.state[arguments[0]]", name)  # noqa: E731
    view = driver.find_element("id", "view")
    first, azimuth = canvas(driver, 20), state("azimuth")
    webdriver.ActionChains(driver).drag_and_drop_by_offset(view, 80, 30).perform()
    assert state("azimuth") != azimuth
    assert (canvas(driver, 20) != first).any(-1).mean() > 0.05

    def touch(kind, *spots):
        driver.execute_cdp_cmd(
            "Input.dispatchTouchEvent",
            {
                "type": kind,
                "touchPoints": [{"x": x, "y": y, "id": k} for k, (x, y) in enumerate(spots)],
            },
        )

    azimuth, zoom = state("azimuth"), state("zoom")
    touch("touchStart", (300, 300))
    touch("touchMove", (360, 300))
    touch("touchEnd")
    assert state("azimuth") != azimuth
    touch("touchStart", (300, 300), (400, 300))
    touch("touchMove", (250, 300), (450, 300))
    touch("touchEnd")
    assert state("zoom") < zoom  # two fingers apart: nearer


def test_one_arm_can_be_chosen(show, episodes):
    driver = show(page(episodes[:1], autoplay=False))
    every = canvas(driver, 20)
    driver.find_elements("css selector", "#scores tbody tr")[4].click()
    assert driver.execute_script("return arms.state.arm") == 3
    assert driver.execute_script("return document.getElementById('arm').value") == "3"
    one = canvas(driver, 20)
    assert (one != every).any(-1).mean() > 0.1
    x, _ = driver.execute_script("return arms.pixel(0, 3, 'base')")
    assert abs(x - one.shape[1] / 2) < one.shape[1] * 0.1


@pytest.mark.parametrize("scheme, darkest, brightest", [("light", 150, 255), ("dark", 10, 90)])
def test_it_follows_the_readers_colours(show, episodes, scheme, darkest, brightest):
    driver = show(page(episodes[:1], autoplay=False))
    colors(driver, scheme)
    assert darkest < np.median(canvas(driver, 20)) < brightest
    back = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert darkest - 10 < np.mean([int(value) for value in re.findall(r"\d+", back)]) <= brightest


@pytest.mark.parametrize("size", [100, 200])
@pytest.mark.parametrize("width", [360, 1000])
def test_text_scales_and_nothing_is_cut(show, episodes, width, size):
    driver = show(page(episodes, "A long title of many words " * 3, autoplay=False))
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False},
    )
    try:
        driver.execute_script(f"document.documentElement.style.fontSize = '{size}%'")
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width
        high = driver.execute_script("return document.getElementById('play').offsetHeight")
        assert high >= 40 * size / 100  # large enough for a finger
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_is_readable(scheme):
    """WCAG AA: 4.5 for text, 3 for what is no text."""
    style = (ASSETS / "page.css").read_text()
    part = style.split("prefers-color-scheme: dark")[scheme == "dark"]
    color = dict(re.findall(r"--(\w+): (#\w{6})", part))

    def light(name):
        values = np.array([int(color[name][k : k + 2], 16) for k in (1, 3, 5)]) / 255
        return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4) @ [
            0.2126,
            0.7152,
            0.0722,
        ]

    def contrast(one, other):
        low, high = sorted((light(one), light(other)))
        return (high + 0.05) / (low + 0.05)

    for ink in ("ink", "quiet"):
        for back in ("page", "field"):
            assert contrast(ink, back) >= 4.5, (ink, back)
    assert contrast("page", "accent") >= 4.5  # the button that plays
    for reward_threshold in ("accent", "touched", "apart", "hand"):
        assert contrast(reward_threshold, "page") >= 3, reward_threshold


def test_without_webgl_it_is_painted_and_says_so(episodes, tmp_path):
    driver = open_browser(tmp_path / "profile", "--disable-3d-apis")
    try:
        path = tmp_path / "page.html"
        path.write_text(page(episodes, autoplay=False), encoding="utf-8")
        driver.get(path.as_uri())
        assert "WebGL 2 is missing" in text(driver, "#trouble")
        first, later = canvas(driver, 2), canvas(driver, 40)
        assert first.std() > 8 and (first != later).any(-1).mean() > 0.01
        assert not [
            entry
            for entry in driver.get_log("browser")
            if entry["level"] == "SEVERE" and "WebGL" not in entry["message"]
        ]
    finally:
        driver.quit()


def test_without_scripts_it_says_what_it_is(show, episodes):
    driver = show("")
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        show(page(episodes[:1], "Arms & goals"))
        shown = driver.find_element("tag name", "body").text
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert "Arms & goals" in shown and "scripts do not run here" in shown


def test_within_a_notebook_it_lies_over_the_picture(show, episodes):
    picture = still_png(np.full((40, 60, 3), (250, 0, 250), np.uint8))
    driver = show("<!DOCTYPE html><body>" + inline(page(episodes[:1], autoplay=False), picture))
    assert driver.execute_script("return document.querySelector('img').naturalWidth") == 60
    driver.switch_to.frame(0)
    try:
        assert canvas(driver, 20).std() > 8
        assert text(driver, "#play").startswith("\u25b6")  # though the notebook names no encoding
    finally:
        driver.switch_to.default_content()


def test_hostile_names_are_only_text(show, episodes):
    evil = "</script><img src=x onerror=\"document.title='evil'\"><script>document.title='evil'"
    driver = show(page([episodes[0].named(evil, evil)], evil, evil, autoplay=False))
    assert driver.title.startswith("</script>")
    for selector in ("h1", "#what", "#captions strong"):
        assert text(driver, selector).startswith("</script><img")
    assert not driver.find_elements("css selector", "main img")
