"""The site that `make site` writes: README, notebooks and the pages of doc/, by Sphinx."""

from __future__ import annotations

import os
import subprocess
import sys
from urllib.parse import unquote

import pytest
from bs4 import BeautifulSoup

from tutorial.paths import DOC, PROJECT

SERVER, NAME = "https://host.test", "owner/name"
FILES = f"{SERVER}/{NAME}/blob/HEAD/"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """All pages, by their path. No warning came, so no link to a page or section is broken."""
    folder = tmp_path_factory.mktemp("site") / "html"
    made = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "-c", DOC, PROJECT, folder],
        capture_output=True,
        text=True,
        env=os.environ | {"GITHUB_SERVER_URL": SERVER, "GITHUB_REPOSITORY": NAME},
    )
    assert made.returncode == 0, made.stderr
    return {
        path.resolve(): BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
        for path in folder.rglob("*.html")
        if path not in (folder / "genindex.html", folder / "search.html")
    }


def test_every_page_is_in_the_sidebar(site):
    [start] = (path for path in site if path.name == "README.html")
    links = (link["href"].partition("#")[0] for link in site[start].select(".sidebar-tree a"))
    listed = {(start.parent / link).resolve() for link in links}
    assert listed == site.keys() - {start} and len(listed) > 15


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
    assert found > 200


def test_every_picture_is_there_and_nothing_else_is_loaded(site):
    for path, page in site.items():
        for element in page.select("img, script[src], link[href], iframe[src]"):
            address = (element.get("src") or element["href"]).partition("?")[0]
            if not address.startswith(("data:", f"{SERVER}/{NAME}/actions/")):
                assert (path.parent / unquote(address)).exists(), (path.name, address)
