"""A browser for tests of pages."""

import shutil
import time

import pytest


@pytest.fixture(scope="session")
def driver():
    """Headless Chromium without a network, by Selenium; its tests are skipped where one lacks."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is an extra")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    chromedriver = shutil.which("chromedriver")
    if not (chromium and chromedriver):
        pytest.skip("no Chromium with chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    network = "host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
    for option in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", network):
        options.add_argument(f"--{option}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(chromedriver))
    yield driver
    driver.quit()


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def value(driver, expression):
    return driver.execute_script(f"return {expression}")
