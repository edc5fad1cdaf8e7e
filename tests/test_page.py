"""The page in which the arms live, in headless Chromium with the network off.

Skipped without the extra `browser`, Chromium and chromedriver.
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

from tutorial.moving import still_png
from tutorial.paths import CHECKPOINTS
from web.packed import packed_actor
from web.page import ASSETS, Choice, inline, page
from web.watch import watch_page

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
def content():
    """The page of an actor after two episodes and of the best one."""
    return watch_page(CHECKPOINTS / "gallery" / "seed0", CHECKPOINTS / "default" / "seed0")


@pytest.fixture
def show(browser, tmp_path):
    """Opens a page from disk, paused; at the end there must have been no error in its console."""

    def show(content, hash="", motion="reduce", scheme="dark"):
        path = tmp_path / "page.html"
        path.write_text(content, encoding="utf-8")
        media(browser, motion, scheme)
        browser.get("about:blank")
        browser.get(path.as_uri() + hash)
        return browser

    browser.get_log("browser")
    yield show
    errors = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert not errors


def media(driver, motion="reduce", scheme="dark"):
    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {
            "features": [
                {"name": "prefers-color-scheme", "value": scheme},
                {"name": "prefers-reduced-motion", "value": motion},
            ]
        },
    )


def canvas(driver, name="view"):
    """The canvas (height, width, 3) after the next picture."""
    data = driver.execute_async_script(
        "const done = arguments[1]; requestAnimationFrame(() => requestAnimationFrame(() =>"
        "done(document.getElementById(arguments[0]).toDataURL())))",
        name,
    )
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data.split(",")[1]))).convert("RGB"))


def text(driver, selector):
    return driver.execute_script("return document.querySelector(arguments[0]).innerText", selector)


def run(driver, steps):
    """Physics steps, at once."""
    driver.execute_script("for (let k = 0; k < arguments[0]; k++) page.tick()", steps)


def pixel(driver, arm, part):
    """Where a part of an arm is, in pixels of the window."""
    return driver.execute_script(
        """
        const arm = page.arms[arguments[0] - 1], [x, y, z] = arm[arguments[1]], at = arm.place;
        page.scene.look();
        const spot = page.scene.project([x + at[0], z + at[1], y + at[2]]);
        const box = document.getElementById("view").getBoundingClientRect();
        return [spot[0] + box.left, spot[1] + box.top].map(Math.round)""",
        arm,
        part,
    )


def value(driver, expression):
    return driver.execute_script(f"return {expression}")


def mouse(driver, kind, spot, **more):
    driver.execute_cdp_cmd(
        "Input.dispatchMouseEvent",
        {"type": kind, "x": spot[0], "y": spot[1], "button": "left", "clickCount": 1, **more},
    )


def drag(driver, start, end, release=True):
    mouse(driver, "mousePressed", start)
    for share in (0.3, 0.6, 1):
        mouse(
            driver,
            "mouseMoved",
            [a + share * (b - a) for a, b in zip(start, end, strict=True)],
            buttons=1,
        )
    if release:
        mouse(driver, "mouseReleased", end)


def touch(driver, kind, *spots):
    driver.execute_cdp_cmd(
        "Input.dispatchTouchEvent",
        {
            "type": kind,
            "touchPoints": [{"x": x, "y": y, "id": k} for k, (x, y) in enumerate(spots)],
        },
    )


def corner(driver):
    """Two pixels in the scene's lower left corner, where nothing can be dragged."""
    box = driver.execute_script("return document.getElementById('view').getBoundingClientRect()")
    return [box["left"] + 10, box["bottom"] - 10], [box["left"] + 30, box["bottom"] - 10]


def test_it_loads_from_disk_without_a_network_and_draws(show, content):
    driver = show(content)
    first = canvas(driver)
    run(driver, 40)
    later = canvas(driver)
    assert first.std() > 8 and len(np.unique(first.reshape(-1, 3), axis=0)) > 500
    assert (first != later).any(-1).mean() > 0.01
    resources = driver.execute_script("return performance.getEntriesByType('resource').length")
    assert resources == 0 and "://" not in content and len(content) < 1_000_000


def test_a_hand_is_drawn_where_it_is(show, content):
    driver = show(content, "#size=0")  # no goal is before it
    box = driver.execute_script("return document.getElementById('view').getBoundingClientRect()")
    picture, blue = canvas(driver).astype(int), 0
    for arm in range(1, 21):
        x, y = pixel(driver, arm, "hand")
        x, y = x - round(box["left"]), y - round(box["top"])
        red, _, high = picture[y - 1 : y + 2, x - 1 : x + 2].mean((0, 1))
        blue += high - red > 40
    assert blue >= 18  # one may be behind something else


def test_it_moves_by_itself_unless_the_reader_wants_no_motion(show, content):
    driver = show(content, motion="no-preference")
    assert value(driver, "page.state.playing")
    start, end = value(driver, "page.arms[0].lived"), time.monotonic() + WAIT
    while value(driver, "page.arms[0].lived") < start + 10 and time.monotonic() < end:
        time.sleep(0.05)
    assert value(driver, "page.arms[0].lived") >= start + 10
    driver = show(content)
    time.sleep(0.3)
    assert not value(driver, "page.state.playing") and value(driver, "page.arms[0].lived") == 0
    driver.find_element("id", "play").click()
    assert value(driver, "page.state.playing") and text(driver, "#play") == "Pause"


def test_a_goal_is_dragged_along_its_circle_and_off_it(show, content):
    driver = show(content, "#arm=7")
    run(driver, 400)
    assert value(driver, "page.arms[6].touches")
    x, y, z = value(driver, "page.arms[6].goal")
    assert np.hypot(x, z) == pytest.approx(8)
    goal, hand = pixel(driver, 7, "goal"), pixel(driver, 7, "hand")
    edge = [round(g + 1.8 * (g - h) / max(abs(g - h), 1)) for g, h in zip(goal, hand, strict=True)]
    driver.execute_script("page.arms[6].hand = [0, 50, 0]")  # out of the way of the pointer
    drag(driver, edge, [edge[0] + 500, edge[1]])
    off = value(driver, "page.arms[6].orbit")
    assert off > 9.5  # m: off its circle
    run(driver, 1)
    x, y, z = value(driver, "page.arms[6].goal")
    assert np.hypot(x, z) == pytest.approx(off) and y == -1


def test_the_page_says_how_long_the_hand_took(show, content):
    driver = show(content, "#arm=7")
    run(driver, 400)
    driver.execute_script("page.pullGoals(60)")
    run(driver, 200)
    said = re.fullmatch(r"Arm 7 is back after ([\d.]+) s\.", text(driver, "#message"))
    assert said and 0 < float(said[1]) < 2
    assert driver.find_element("id", "message").get_attribute("aria-live") == "polite"


def test_a_hand_is_pulled_and_let_go(show, content):
    driver = show(content, "#arm=7&acting=false")
    run(driver, 5)
    before, start = value(driver, "page.arms[6].hand"), pixel(driver, 7, "hand")
    drag(driver, start, [start[0] + 120, start[1] - 60], release=False)
    run(driver, 25)
    pulled = value(driver, "page.arms[6].hand")
    assert np.linalg.norm(np.subtract(pulled, before)) > 1  # m
    mouse(driver, "mouseReleased", [start[0] + 120, start[1] - 60])
    assert value(driver, "page.arms[5].hand") == pytest.approx(before, abs=1e-9)  # the neighbour's


def test_a_click_flies_to_an_arm_and_back(show, content):
    driver = show(content)
    mouse(driver, "mousePressed", spot := pixel(driver, 9, "elbow"))
    mouse(driver, "mouseReleased", spot)
    assert value(driver, "page.state.arm") == 9 and text(driver, "#message").startswith("Arm 9")
    assert value(driver, "location.hash") == "#arm=9"
    end = time.monotonic() + WAIT
    while canvas(driver, "landscape").std() < 8 and time.monotonic() < end:
        time.sleep(0.05)
    assert canvas(driver, "landscape").std() > 8 and text(driver, "#status").startswith("Arm 9")
    driver.find_element("id", "all").click()
    assert value(driver, "page.state.arm") == 0
    drag(driver, *corner(driver))  # nothing is there: it turns
    assert value(driver, "page.scene.camera.azimuth") != 90


def test_the_wheel_is_the_readers_until_the_scene_was_clicked(show, content):
    driver = show(content)

    def wheel():
        return driver.execute_script(
            "const event = new WheelEvent('wheel', {deltaY: 100, cancelable: true, bubbles: true});"
            "document.getElementById('view').dispatchEvent(event); return event.defaultPrevented"
        )

    far = value(driver, "page.scene.camera.distance")
    assert not wheel() and value(driver, "page.scene.camera.distance") == far
    drag(driver, *corner(driver))
    assert wheel() and value(driver, "page.scene.camera.distance") > far
    driver.execute_script("document.activeElement.blur()")
    assert not wheel()


def test_one_finger_scrolls_past_it_and_drags_goals(show, content):
    driver = show(content)
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 390, "height": 700, "deviceScaleFactor": 1, "mobile": True},
    )
    driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
    try:
        canvas(driver)
        run(driver, 200)
        angle, goal = value(driver, "page.arms[17].angle"), pixel(driver, 18, "goal")
        touch(driver, "touchStart", goal)
        for step in range(1, 6):
            touch(driver, "touchMove", [goal[0] + 4 * step, goal[1] + 4 * step])
        touch(driver, "touchEnd")
        changed = value(driver, "[page.arms[17].angle, page.arms[17].orbit]")
        hand = value(driver, "page.arms[17].chase")
        assert changed != [angle, 8] or hand is not None  # the goal, or the hand that is in it
        assert value(driver, "scrollY") == 0
        empty = [20, 560]
        assert value(driver, f"page.under({empty[0]}, {empty[1] - 140})") is None
        touch(driver, "touchStart", empty)
        for step in range(1, 11):
            touch(driver, "touchMove", [empty[0], empty[1] - 20 * step])
        touch(driver, "touchEnd")
        end = time.monotonic() + WAIT
        while not value(driver, "scrollY") and time.monotonic() < end:
            time.sleep(0.05)
        assert value(driver, "scrollY") > 50
    finally:
        driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_links_set_the_scene(show, content):
    driver = show(content, "#episode=2&arm=3&gravity=20&acting=false&slow=0.5")
    state = value(driver, "page.state")
    assert (state["episode"], state["arm"], state["gravity"], state["acting"], state["slow"]) == (
        "2",
        3,
        20,
        False,
        0.5,
    )
    assert text(driver, "#trained") == "2 episodes" and text(driver, "#acting") == "Actor off"
    for link in driver.find_elements("css selector", "#prompts a"):
        driver.execute_script("arguments[0].click()", link)
        hash = link.get_attribute("href").split("#")[1]
        wanted = dict(part.split("=") for part in hash.split("&"))
        state = value(driver, "page.state")
        assert {name: str(state[name]) for name in wanted} == wanted and state["acting"]
        assert state["gravity"] == float(wanted.get("gravity", 9.81))
    assert value(driver, "page.state.playing") and text(driver, "#message")


@pytest.mark.parametrize(
    "hash",
    ["#arm=99&gravity=-5&size=1e9", "#episode=nothing&arm=x", "#speed=NaN&noise=", "#<img src=x>"],
)
def test_any_link_is_a_scene(show, content, hash):
    driver = show(content, hash)
    run(driver, 50)
    assert 0 <= value(driver, "page.state.arm") <= 20
    assert 0 <= value(driver, "page.state.size") <= 16
    assert np.isfinite(value(driver, "page.arms[0].hand")).all()


def test_the_slider_chooses_how_long_the_actor_trained(show, content):
    driver = show(content)
    scores = []
    for index in (0, 2, 6):
        driver.execute_script(
            """const slider = document.getElementById("episode");
            slider.value = arguments[0]; slider.dispatchEvent(new Event("input"));
            document.getElementById("reset").click()""",
            index,
        )
        run(driver, 500)
        scores.append(
            value(
                driver,
                "page.arms.reduce((a, arm) => a + arm.recent.reduce("
                "(b, c) => b + c, 0), 0) / 500 / page.arms.length",
            )
        )
    assert scores[0] < 0.1 < scores[1] < scores[2] and scores[2] > 0.8
    assert text(driver, "#stops").split() == ["0", "1", "2", "3", "5", "20", "best"]
    points = value(driver, "document.querySelector('#curve polyline').getAttribute('points')")
    assert len(points.split()) > 100 and "NaN" not in points


def test_without_the_actor_the_arm_falls(show, content):
    driver = show(content, "#arm=7&drag=1")
    run(driver, 400)
    driver.find_element("id", "acting").click()
    run(driver, 2000)
    assert value(driver, "page.arms[6].hand[1]") < -9  # it hangs: the hand was at -10


def test_keys(show, content):
    driver = show(content)
    view = driver.find_element("id", "view")
    driver.execute_script("arguments[0].focus()", view)
    view.send_keys("n")
    assert value(driver, "page.state.arm") == 1
    view.send_keys("p")
    assert value(driver, "page.state.arm") == 0
    azimuth, far = value(driver, "[page.scene.camera.azimuth, page.scene.camera.distance]")
    view.send_keys("\ue012+")  # left arrow
    assert value(driver, "page.scene.camera.azimuth") != azimuth
    assert value(driver, "page.scene.camera.distance") < far
    angle = value(driver, "page.arms[0].angle")
    view.send_keys("]")
    assert value(driver, "page.arms[0].angle") == pytest.approx(angle + 30, abs=2)
    view.send_keys("a")
    assert not value(driver, "page.state.acting")
    view.send_keys(" ")
    assert value(driver, "page.state.playing")
    view.send_keys(".")
    lived = value(driver, "page.arms[0].lived")
    view.send_keys(".")
    assert not value(driver, "page.state.playing")
    assert value(driver, "page.arms[0].lived") == lived + 4


def test_its_score_stands_beside_pythons(show, content):
    driver = show(content)
    driver.execute_script("document.getElementById('compare').click()")
    end = time.monotonic() + WAIT
    while "in Python" not in value(driver, "document.getElementById('compared').textContent"):
        assert time.monotonic() < end
        time.sleep(0.2)
    shown = value(driver, "document.getElementById('compared').textContent")
    mine, pythons = map(float, re.findall(r"\d+\.\d\d", shown))
    assert mine == pytest.approx(pythons, abs=0.02) and pythons > 39


def test_a_hidden_tab_and_a_resized_window(show, content):
    driver = show(content, motion="no-preference")
    first = driver.current_window_handle
    driver.switch_to.new_window("tab")
    time.sleep(1)
    driver.close()
    driver.switch_to.window(first)
    assert value(driver, "page.arms.every(arm => arm.hand.every(Number.isFinite))")
    for width, height in ((500, 900), (1300, 600)):
        driver.set_window_size(width, height)
        picture = canvas(driver)
        assert picture.shape[1] == value(driver, "document.getElementById('view').clientWidth")
    driver.set_window_size(1000, 900)


def test_where_pictures_are_slow_they_get_coarser_and_the_view_stays(show, content):
    driver = show(content, "#arm=7")
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 800, "height": 800, "deviceScaleFactor": 2, "mobile": False},
    )
    try:
        width = value(driver, "document.getElementById('view').clientWidth")
        driver.execute_script("page.scene.sharpest = 2")  # however slow this machine is
        assert canvas(driver).shape[1] == 2 * width
        camera = value(driver, "page.scene.camera")
        driver.execute_script("page.scene.sharpest = 1")
        assert canvas(driver).shape[1] == width
        assert value(driver, "page.scene.camera") == camera
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("scheme, darkest, brightest", [("light", 150, 255), ("dark", 10, 90)])
def test_it_follows_the_readers_colours(show, content, scheme, darkest, brightest):
    driver = show(content, scheme=scheme)
    assert darkest < np.median(canvas(driver)) < brightest
    back = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert darkest - 10 < np.mean([int(value) for value in re.findall(r"\d+", back)]) <= brightest


@pytest.mark.parametrize("size", [100, 200])
@pytest.mark.parametrize("width", [360, 1000])
def test_text_scales_and_nothing_is_cut(show, content, width, size):
    driver = show(content, "#arm=3")
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
    for mark in ("accent", "touched", "apart"):
        assert contrast(mark, "page") >= 3, mark


def test_without_scripts_it_shows_a_still_and_says_what_is_missed(show, content):
    driver = show("")
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        show(content)
        shown = driver.find_element("tag name", "body").text
        assert driver.find_element("css selector", "noscript img").size["width"] > 300
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert "scripts do not run here" in shown and "drag the goals" in shown


def test_within_a_notebook_it_lies_over_the_picture(show):
    picture = still_png(np.full((40, 60, 3), (250, 0, 250), np.uint8))
    small = watch_page(CHECKPOINTS / "default" / "seed0", arms=2, embedded=True)
    driver = show("<!DOCTYPE html><body>" + inline(small, picture))
    assert driver.execute_script("return document.querySelector('img').naturalWidth") == 60
    driver.switch_to.frame(0)
    try:
        assert canvas(driver).std() > 8
        run(driver, 10)
        driver.find_element("id", "pull").click()
        assert "jumped" in text(driver, "#message")
        assert not driver.find_element("tag name", "h1").is_displayed()
    finally:
        driver.switch_to.default_content()


def test_newer_actors_come_by_messages(show):
    """As `web.live` sends them to a frame of the notebook, while an actor learns."""
    untrained = Choice("0", "random torques", 0.0, None, 0)
    content = page([untrained], arms=3, embedded=True, live=True)
    driver = show("<!DOCTYPE html><body>" + inline(content, b"", height=600, name="learning"))

    def send(episodes):
        packed = packed_actor(CHECKPOINTS / "gallery" / "seed0", str(episodes))
        driver.execute_script(
            "document.querySelector('iframe[name=learning]').contentWindow.postMessage("
            "{scores: arguments[0], network: arguments[1]}, '*')",
            [float(k) for k in range(1, episodes + 1)],
            packed,
        )

    def in_frame(expression):
        driver.switch_to.frame(0)
        found = driver.execute_script(f"return {expression}")
        driver.switch_to.default_content()
        return found

    driver.execute_script("window.frames[0].postMessage('something else', '*')")
    for episodes in (1, 2, 3):
        send(episodes)
        assert in_frame("page.state.episode") == str(episodes)
        assert f"After {episodes} episode" in in_frame(
            "document.getElementById('message').innerText"
        )
    points = in_frame("document.querySelector('#curve polyline').getAttribute('points')")
    assert points == "1,40 2,39 3,38"
    in_frame("page.train(1)")
    send(5)  # a reader who looks at an older actor stays with it
    assert in_frame("[page.state.episode, page.actors.length]") == ["1", 5]


def test_hostile_names_are_only_text(show):
    evil = "</script><img src=x onerror=\"document.title='evil'\"><script>document.title='evil'"
    driver = show(page([Choice(evil, evil, 0.0, None)], title=evil, what=evil, arms=1))
    assert driver.title.startswith("</script>")
    for selector in ("h1", "#what"):
        assert text(driver, selector).startswith("</script><img")
    assert not driver.find_elements("css selector", "main img")
