"""The site that `make site` writes: README, notebooks and the pages of doc/, by Sphinx."""

import itertools
import os
import re
import runpy
import subprocess
import sys
from urllib.parse import unquote

import pytest
from bs4 import BeautifulSoup

from tutorial.paths import DOC, PROJECT

SERVER, NAME = "https://host.test", "owner/name"
FOLDERS = "checkpoints", "doc", "research", "research/results", "packages/*"
PAGES = [PROJECT / "README.md", *(x for y in FOLDERS for x in sorted(PROJECT.glob(f"{y}/*.md")))]
ELSEWHERE = "bugs.md", "differences.md", "parameters.md"  # whose examples other tests run
EXAMPLES = [
    page for page in PAGES if "```python" in page.read_text() and page.name not in ELSEWHERE
]
FILES = f"{SERVER}/{NAME}/blob/HEAD/"


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Of the site. No warning came, so no link to a page or section is broken."""
    folder = tmp_path_factory.mktemp("site") / "html"
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-c", DOC, PROJECT, folder]
    about = os.environ | {"GITHUB_SERVER_URL": SERVER, "GITHUB_REPOSITORY": NAME}
    # In the project's folder, where conf.py finds the packages.
    made = subprocess.run(command, capture_output=True, text=True, cwd=PROJECT, env=about)
    assert made.returncode == 0, made.stderr
    return folder


@pytest.fixture(scope="session")
def site(folder):
    """All pages, by their path."""
    return {
        path.resolve(): BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
        for path in folder.rglob("*.html")
        if path not in (folder / "genindex.html", folder / "search.html")
    }


@pytest.mark.parametrize("page", EXAMPLES, ids=str)
def test_the_examples_of_a_page_run_as_printed(page, monkeypatch):
    """One after the other, in the project's folder; the long one stops early."""
    monkeypatch.chdir(PROJECT)
    names = {}
    for code in re.findall(r"```python\n(.+?)```", page.read_text(), re.DOTALL):
        for module in re.findall(r"^from (stable_baselines3) ", code, re.MULTILINE):
            pytest.importorskip(module)
        try:
            exec(code.replace("20 * 1001 * 10", "20"), names)
        except RuntimeError as error:
            if "MUJOCO_GL" not in str(error):
                raise
            pytest.skip("no OpenGL")


def test_every_page_is_in_the_sidebar_and_so_are_the_arms(site):
    [start] = (path for path in site if path.parent.name == "html" and path.stem == "README")
    links = [link["href"].partition("#")[0] for link in site[start].select(".sidebar-tree a")]
    assert links[0] == "play.html" and len(links) > 10
    assert {(start.parent / link).resolve() for link in links[1:]} == site.keys() - {start}


def test_every_link_leads_somewhere(site):
    found = 0
    for path, page in site.items():
        for link in page.select("article a[href]"):
            target, _, anchor = unquote(link["href"]).partition("#")
            if target.startswith(FILES):
                assert (PROJECT / target.removeprefix(FILES)).exists(), (path.name, target)
            elif "://" not in target and target != "play.html":  # `make site` adds that
                file = (path.parent / target).resolve() if target else path
                assert file.exists(), (path.name, target)
                assert not anchor or site[file].find(id=anchor), (path.name, link["href"])
            found += 1
    assert found > 100


def test_everything_that_is_loaded_is_there_and_pictures_have_words(site):
    for path, page in site.items():
        for element in page.select("img, script[src], link[href], iframe[src]"):
            address = (element.get("src") or element["href"]).partition("?")[0]
            if not address.startswith(("data:", f"{SERVER}/{NAME}/actions/", "https://owner.")):
                assert (path.parent / unquote(address)).exists(), (path.name, address)
        for picture in page.select("article img"):
            assert len(picture.get("alt", "")) > 4, (path.name, str(picture)[:100])


def test_no_formula_shows_its_source(site):
    """They are MathML, and no TeX is left in them or in the text."""
    formulas = 0
    for path, page in site.items():
        formulas += len(page("math"))
        for element in page(["code", "pre", "style", "script", "title", "annotation"]):
            element.decompose()
        left = re.findall(r"\$[^$\n]{0,40}\$|\\[a-z]{2,}", page.get_text())
        assert not left, (path.name, left)
    assert formulas > 50


def test_a_hit_of_the_search_opens_at_the_word(site, folder, driver):
    """And not at the top of the notebook."""
    driver.get((folder / "Continuous_Control.html").as_uri() + "?highlight=quaternions")
    place = "return document.querySelector('.highlighted').getBoundingClientRect().top"
    look = "const [done] = arguments, look = () => scrollY > 2000 ? done() : setTimeout(look, 99)"
    driver.execute_async_script(f"{look}; look()")
    assert 0 <= driver.execute_script(place) < 900


def test_formulas_are_whole_and_nothing_scrolls_sideways(site, driver):
    """At the width of a notebook computer, and on a phone; labels of drawings can be read."""
    cut = "return [...document.querySelectorAll('.formula')].find(box => box.scrollWidth > "
    page = "return document.documentElement.scrollWidth - innerWidth"
    small = "return [...document.querySelectorAll('article img[src$=svg]')].some("
    small += "image => image.clientWidth < 0.8 * image.naturalWidth)"
    for width, path in itertools.product((1440, 390), site):
        screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        driver.get(path.as_uri())
        assert width < 1000 or not driver.execute_script(cut + "box.clientWidth + 1)")
        assert driver.execute_script(page) <= 0, (path.name, width)
        assert not driver.execute_script(small), path.name
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("page", [*PAGES, PROJECT / "CONTRIBUTING.md"], ids=str)
def test_commands_of_a_page_name_the_python_that_has_the_packages(page):
    """But those that make it, and those for whoever wants a package alone."""
    bare = re.findall(r"^    (?:python|pip)3? .+", page.read_text(), re.MULTILINE)
    apart = "./packages/", "grpcio", "unityagents"
    assert [line for line in bare if not any(word in line for word in apart)] == []


def test_a_site_whose_address_nobody_knows_names_none(monkeypatch, tmp_path):
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    monkeypatch.chdir(tmp_path)  # where git finds no remote
    conf = runpy.run_path(DOC / "conf.py")
    page = conf["prepare_page"]("README", (PROJECT / "README.md").read_text(encoding="utf-8"))
    assert f"]({PROJECT.as_uri()}/LICENSE)" in page and "    make run" in page
    assert not re.search("OWNER|git clone|github", page + conf["html_baseurl"])
