"""The page in which the arms live, in headless Chromium with the network off.

Skipped without the extra `browser`, Chromium and chromedriver.
"""

import io
import re
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from browser import value, wait_for
from reacher_page import interactive
from reacher_page.actor import actor_files, read_network
from reacher_page.page import STILL, inline, page
from reacher_page.watch import watch_page

CHECKPOINTS = Path(__file__).parents[3] / "checkpoints"


@pytest.fixture(scope="module")
def content():
    """The page of a stored run: its actors after some episodes, and the best."""
    return watch_page(CHECKPOINTS / "whole" / "seed0")


@pytest.fixture
def show(driver, tmp_path):
    """Opens a page from disk, paused; at the end there must have been no error in its console."""

    def show(content, hash="", motion="reduce", scheme="dark", width=1000, mobile=False):
        path = tmp_path / "page.html"
        path.write_text(content, encoding="utf-8")
        media = {"prefers-color-scheme": scheme, "prefers-reduced-motion": motion}
        features = [{"name": name, "value": value} for name, value in media.items()]
        screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": mobile}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": mobile})
        driver.get("about:blank")
        driver.get(path.as_uri() + hash)
        return driver

    driver.get_log("browser")
    yield show
    driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert not [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]


def canvas(driver, name="view"):
    """What is seen of a canvas, (height, width, 3)."""
    picture = driver.find_element("id", name).screenshot_as_png
    return np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"))


def text(driver, selector):
    return value(driver, f"document.querySelector('{selector}').innerText")


def run(driver, steps):
    """Physics steps, at once."""
    driver.execute_script("for (let k = 0; k < arguments[0]; k++) page.tick()", steps)


def pixel(driver, arm, part):
    """Where a part of an arm is, in pixels of the window."""
    program = f"""
        const arm = page.arms[{arm - 1}], [x, y, z] = arm.{part}, at = arm.place;
        page.scene.look();
        const spot = page.scene.project([x + at[0], z + at[1], y + at[2]]);
        const box = document.getElementById("view").getBoundingClientRect();
        return [spot[0] + box.left, spot[1] + box.top].map(Math.round)"""
    return driver.execute_script(program)


def mouse(driver, kind, spot):
    event = {"type": f"mouse{kind}", "x": spot[0], "y": spot[1], "button": "left", "clickCount": 1}
    driver.execute_cdp_cmd("Input.dispatchMouseEvent", event | {"buttons": 1})


def drag(driver, start, end):
    mouse(driver, "Pressed", start)
    for share in (0.3, 0.6, 1):
        mouse(driver, "Moved", [a + share * (b - a) for a, b in zip(start, end, strict=True)])
    mouse(driver, "Released", end)


def swipe(driver, start, step):
    """One finger, ten steps."""
    for kind, k in [("Start", 0), *(("Move", k) for k in range(1, 11)), ("End", None)]:
        spot = {} if k is None else {"x": start[0] + k * step[0], "y": start[1] + k * step[1]}
        points = [spot] if spot else []
        event = {"type": f"touch{kind}", "touchPoints": points}
        driver.execute_cdp_cmd("Input.dispatchTouchEvent", event)


def corner(driver):
    """A pixel in the scene's lower left corner, where nothing can be dragged."""
    box = value(driver, "document.getElementById('view').getBoundingClientRect()")
    return [box["left"] + 10, box["bottom"] - 10]


@pytest.mark.parametrize("scheme, darkest, brightest", [("light", 150, 255), ("dark", 10, 90)])
def test_it_loads_without_a_network_and_draws(show, content, scheme, darkest, brightest):
    driver = show(content, scheme=scheme)
    first = canvas(driver)
    assert darkest < np.median(first) < brightest  # the colors that the reader prefers
    run(driver, 40)
    later = canvas(driver)
    assert first.std() > 8 and len(np.unique(first.reshape(-1, 3), axis=0)) > 500
    assert (first != later).any(-1).mean() > 0.01
    assert value(driver, "performance.getEntriesByType('resource').length") == 0


def test_it_moves_and_shows_a_hand_that_drags_unless_the_reader_wants_no_motion(show, content):
    driver = show(content, motion="no-preference")
    hand, left = driver.find_element("id", "hand"), "document.getElementById('hand').style.left"
    wait_for(hand.is_displayed)
    start = value(driver, left)
    wait_for(lambda: "drag a goal" in text(driver, "#message"))
    assert value(driver, left) != start and not hand.is_displayed()
    driver = show(content, motion="no-preference")
    wait_for(driver.find_element("id", "hand").is_displayed)
    drag(driver, spot := corner(driver), [spot[0] + 60, spot[1]])  # the reader takes over
    assert not driver.find_element("id", "hand").is_displayed()
    assert value(driver, "page.scene.camera.azimuth") != 90
    driver = show(content)
    time.sleep(0.3)
    assert value(driver, "[page.state.playing, page.arms[0].lived]") == [False, 0]
    driver.find_element("id", "play").click()
    wait_for(lambda: value(driver, "page.arms[0].lived") > 10)
    assert text(driver, "#play") == "Pause"


def test_a_goal_is_dragged_along_its_circle_and_off_it(show, content):
    driver = show(content, "#arm=7")
    run(driver, 400)
    assert value(driver, "page.arms[6].touches")
    goal, hand = pixel(driver, 7, "goal"), pixel(driver, 7, "hand")
    edge = [round(g + 1.8 * (g - h) / max(abs(g - h), 1)) for g, h in zip(goal, hand, strict=True)]
    driver.execute_script("page.arms[6].hand = [0, 50, 0]")  # out of the way of the pointer
    drag(driver, edge, [edge[0] + 500, edge[1]])
    off = value(driver, "page.arms[6].orbit")
    assert off > 9.5  # m: off its circle
    driver.execute_script("page.arms[6].moveBodies()")  # the hand is back
    wait_for(lambda: not value(driver, "page.arms[6].touches"))
    run(driver, 1)
    x, y, z = value(driver, "page.arms[6].goal")
    assert np.hypot(x, z) == pytest.approx(off) and y == -1


def test_a_click_flies_to_an_arm_and_there_is_a_way_back(show, content):
    driver = show(content)
    everything, home = driver.find_element("id", "all"), value(driver, "page.scene.camera")
    mouse(driver, "Pressed", spot := pixel(driver, 9, "elbow"))
    mouse(driver, "Released", spot)
    assert value(driver, "page.state.arm") == 9 and text(driver, "#message").startswith("Arm 9")
    assert value(driver, "location.hash") == "#arm=9"
    wait_for(lambda: text(driver, "#status").startswith("Arm 9"))
    wait_for(lambda: canvas(driver, "landscape").std() > 8)
    everything.click()
    assert value(driver, "[page.state.arm, page.scene.camera]") == [0, home]
    for back in (everything, driver.find_element("id", "reset")):
        wait_for(lambda: not everything.is_enabled())
        drag(driver, spot := corner(driver), [spot[0] + 20, spot[1]])  # nothing is there: it turns
        assert value(driver, "page.scene.camera.azimuth") != 90
        wait_for(everything.is_enabled)
        back.click()
        assert value(driver, "page.scene.camera") == home


def test_one_finger_scrolls_past_it_and_drags_goals(show, content):
    driver = show(content, width=390, mobile=True)
    run(driver, 200)
    state = "[page.arms[17].angle, page.arms[17].orbit, page.arms[17].chase]"
    before, camera = value(driver, state), value(driver, "page.scene.camera")
    swipe(driver, pixel(driver, 18, "goal"), (2, 2))
    assert value(driver, state) != before  # the goal, or the hand that is in it
    assert value(driver, "scrollY") == 0
    swipe(driver, corner(driver), (2, -20))
    wait_for(lambda: value(driver, "scrollY") > 50)
    assert value(driver, "page.scene.camera") == camera


def test_links_set_the_scene_and_the_scene_is_a_link(show, content):
    driver = show(content, "#episode=2&arm=3&gravity=20&acting=false&slow=0.5")
    names = "episode, arm, gravity, acting, slow"
    state = f"(({{ {names} }}) => [{names}])(page.state)"
    assert value(driver, state) == ["2", 3, 20, False, 0.5]
    assert text(driver, "#trained") == "2 episodes" and text(driver, "#acting") == "Switch actor on"
    driver.execute_script("page.set('gravity', 5)")
    driver = show(content, value(driver, "location.hash"))
    assert value(driver, state) == ["2", 3, 5, False, 0.5]
    for link in driver.find_elements("css selector", "#stored-prompts a"):
        driver.execute_script("arguments[0].click()", link)
        wanted = dict(re.findall(r"(\w+)=([^&]+)", link.get_attribute("href")))
        found = value(driver, "page.state")
        assert {name: str(found[name]) for name in wanted} == wanted and found["acting"]
        assert found["gravity"] == float(wanted.get("gravity", 9.81))
    assert value(driver, "page.state.playing") and text(driver, "#message")


@pytest.mark.parametrize(
    "hash", ["#episode=77", "#arm=99&gravity=-5&size=1e9", "#speed=NaN&noise=", "#<img src=x>"]
)
def test_a_bad_link_says_so_and_plays_the_best_actor(show, content, hash):
    driver = show(content, hash)
    run(driver, 50)
    assert value(driver, "[page.state.episode, page.state.arm, page.state.size]") == ["best", 0, 5]
    assert np.isfinite(value(driver, "page.arms[0].hand")).all()
    assert "not here" in text(driver, "#message")


def test_the_slider_chooses_how_long_the_actor_trained(show, content):
    driver = show(content)
    scores, spots = [], []
    for index in (0, 2, 6):
        driver.execute_script(
            "const slider = document.getElementById('episode'); slider.value = arguments[0];"
            "slider.dispatchEvent(new Event('input')); document.getElementById('reset').click()",
            index,
        )
        run(driver, 500)
        shares = "page.arms.map((arm) => arm.recent.reduce((a, b) => a + b, 0) / 500)"
        scores.append(np.mean(value(driver, shares)))
        spots.append(driver.find_element("id", "here").location)
    assert scores[0] < 0.1 < scores[1] < scores[2] and scores[2] > 0.8
    assert spots[0]["x"] < spots[1]["x"] < spots[2]["x"] and spots[0]["y"] > spots[1]["y"]
    assert set(text(driver, "#stops").split()) == {"0", "1", "2", "3", "5", "20", "best"}


def test_keys(show, content):
    driver = show(content)
    view = driver.find_element("id", "view")
    driver.execute_script("arguments[0].focus()", view)
    for key, expected in (("n", 1), ("p", 0)):
        view.send_keys(key)
        assert value(driver, "page.state.arm") == expected
    azimuth, far = value(driver, "[page.scene.camera.azimuth, page.scene.camera.distance]")
    view.send_keys("\ue012+")  # left arrow
    assert value(driver, "page.scene.camera.azimuth") != azimuth
    assert value(driver, "page.scene.camera.distance") < far
    angle = value(driver, "page.arms[0].angle")
    view.send_keys("]")
    assert value(driver, "page.arms[0].angle") == pytest.approx(angle + 30)
    view.send_keys("a ")
    assert value(driver, "[page.state.acting, page.state.playing]") == [False, True]
    view.send_keys(".")
    lived = value(driver, "page.arms[0].lived")
    view.send_keys(".")
    assert value(driver, "[page.state.playing, page.arms[0].lived]") == [False, lived + 4]


@pytest.mark.parametrize("width, size", [(360, 200), (390, 100), (1000, 200)])
def test_text_scales_and_nothing_is_cut(show, content, width, size):
    driver = show(content, "#arm=3", width=width)
    driver.execute_script(f"document.documentElement.style.fontSize = '{size}%'")
    assert value(driver, "document.documentElement.scrollWidth") <= width
    high = value(driver, "document.getElementById('play').offsetHeight")
    assert high >= 40 * size / 100  # large enough for a finger


def test_without_scripts_it_shows_a_still_and_says_what_is_missed(show, content, driver):
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        driver = show(content)
        shown = driver.find_element("tag name", "body").text
        assert driver.find_element("css selector", "noscript img").size["width"] > 300
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert "scripts do not run here" in shown and "drag the goals" in shown


def test_within_a_notebook_it_lies_over_the_picture_as_high_as_it_is(show):
    small = watch_page(CHECKPOINTS / "whole" / "seed0", arms=2, embedded=True)
    driver = show("<!DOCTYPE html><body>" + inline(small, STILL.read_bytes()), width=860)
    box = "document.querySelector('iframe').parentElement.getBoundingClientRect().height"

    def within(expression):
        driver.switch_to.frame(0)
        found = value(driver, expression)
        driver.switch_to.default_content()
        return found

    for is_open in ("true", "false"):
        within(f"document.querySelectorAll('details').forEach((each) => each.open = {is_open})")
        end = "Math.ceil(document.body.getBoundingClientRect().height)"
        wait_for(lambda end=end: value(driver, box) == within(end))
        assert within("document.documentElement.scrollHeight") <= value(driver, box)
    driver.switch_to.frame(0)
    assert canvas(driver).std() > 8
    driver.find_element("id", "pull").click()
    wait_for(lambda: "jumped" in text(driver, "#message"))
    assert not driver.find_element("tag name", "h1").is_displayed()
    driver.switch_to.default_content()


def test_newer_actors_come_by_messages(show):
    """As `reacher_page.live` sends them to a frame of the notebook, while an actor learns."""
    untrained = {"label": "0", "network": None, "episode": 0}
    driver = show(page([untrained], arms=3, embedded=True, live=True))
    files = actor_files(CHECKPOINTS / "whole" / "seed0")

    def send(episodes):
        packed = read_network(files[str(episodes)]).packed()
        post = "postMessage({scores: arguments[0], network: arguments[1]}, '*')"
        driver.execute_script(post, list(range(1, episodes + 1)), packed)

    driver.execute_script("postMessage('something else', '*')")
    for episodes in (1, 2, 3):
        send(episodes)
        wait_for(lambda episodes=episodes: value(driver, "page.state.episode") == str(episodes))
        assert f"After {episodes} episode" in text(driver, "#message")
    driver.execute_script("page.train(1)")
    send(5)  # a reader who looks at an older actor stays with it
    wait_for(lambda: value(driver, "page.actors.length") == 5)
    assert value(driver, "page.state.episode") == "1"


def figure(show, scripts=True, **options):
    """The notebook's interactive figure as a notebook shows it; with scripts, in its frame."""
    shown = interactive.sum_tree().data
    shown = shown if scripts else shown.replace("allow-scripts", "")
    driver = show(f"<!DOCTYPE html><body style='margin: 0 31px'>{shown}", **options)
    if scripts:
        driver.switch_to.frame(0)
    return driver


def test_a_figure_fits_a_phone_asks_for_nothing_and_is_drawn_without_scripts(show):
    driver = figure(show, width=390)
    driver.find_element("id", "play").click()
    page = "document.documentElement"
    across, down = value(driver, "[innerWidth, innerHeight]")
    assert value(driver, f"{page}.scrollWidth") == across < 390
    assert value(driver, f"{page}.scrollHeight") == down
    assert value(driver, "performance.getEntriesByType('resource').length") == 0
    driver = figure(show, scripts=False)
    assert value(driver, "document.querySelector('img').naturalWidth") > 500
    assert value(driver, "document.querySelector('img').alt").startswith("The path")


def test_the_tree_finds_the_leaves_that_the_notebook_finds(show, notebook):
    """A hundred trees with a number each, a third of the priorities 0."""
    driver, generator = figure(show), np.random.default_rng(0)
    priorities = generator.uniform(0, 9, (100, 4)) * (generator.random((100, 4)) > 1 / 3)
    priorities[:, 0] += 0.5  # never all 0
    numbers, expected = generator.random(100) * priorities.sum(1), []
    for row, number in zip(priorities, numbers, strict=True):
        tree = notebook.SumTree(4)
        tree.update(np.arange(4), row)
        expected += tree.find(np.array([number])).tolist()
    find = "arguments[0].map((row, k) => figure.find(figure.sums(row), arguments[1][k]).leaf)"
    found = driver.execute_script(f"return {find}", priorities.tolist(), numbers.tolist())
    assert found == expected and set(found) == set(range(4))
