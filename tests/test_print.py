"""The notebook as one HTML file, and as a PDF. The last needs Chromium or Chrome."""

from __future__ import annotations

import base64
import errno
import io
import os
import re
import shutil
import subprocess

import nbformat
import pytest
from bs4 import BeautifulSoup
from PIL import Image

from tutorial import print as printing
from tutorial.page import mathml, shrink_pictures, write_page
from tutorial.paths import NOTEBOOK


@pytest.fixture(scope="module")
def soup(tmp_path_factory):
    """The page of the notebook, in a folder far from the project's."""
    path = tmp_path_factory.mktemp("page") / "page.html"
    write_page(NOTEBOOK, path)
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def test_the_page_needs_nothing_from_outside_to_be_shown(soup):
    loaded = [
        element.get("src") or element.get("href")
        for element in soup.select("script[src], img, link, iframe:not([srcdoc]), video, source")
    ]
    assert len(loaded) > 5 and all(address.startswith("data:") for address in loaded)
    assert "url(http" not in str(soup) and "@import" not in str(soup)


def test_the_page_has_the_notebook_s_title(soup):
    assert soup.title.text.startswith("Continuous Control: ")


def test_a_page_that_cannot_be_written_is_named_and_the_one_before_stays(tmp_path, monkeypatch):
    page = tmp_path / "page.html"
    page.write_text("the one before")

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="page.html"):
        write_page(NOTEBOOK, page)
    assert page.read_text() == "the one before"


def test_no_link_depends_on_where_the_page_lies(soup):
    targets = {link["href"] for link in soup.select("a[href]")}
    assert all(re.match(r"https?://|#", target) for target in targets), targets
    names = {element["id"] for element in soup.select("[id]")}
    assert {target[1:] for target in targets if target.startswith("#")} <= {*names, ""}  # top


def test_every_picture_has_words(soup):
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    pictures = sum(len(re.findall(r"!\[.*?\]\(doc/", cell.source)) for cell in cells) + sum(
        ("image/png" in output.get("data", {}))
        + "".join(output.get("data", {}).get("text/html", "")).count("<img ")
        for cell in cells
        for output in cell.get("outputs", [])
    )
    words = [picture.get("alt", "") for picture in soup("img")]
    assert len(words) == pictures > 5 and len(set(words)) == len(words)
    assert all(len(text) > 20 and "No description" not in text for text in words)


def test_every_formula_is_mathml(soup):
    """As many as the notebook has; no TeX is left in the text."""
    source = "\n".join(
        cell.source
        for cell in nbformat.read(NOTEBOOK, as_version=4).cells
        if cell.cell_type == "markdown"
    )
    source = re.sub(r"```.*?```|`[^`]*`", "", source, flags=re.DOTALL)
    formulas = re.findall(r"\$\$.+?\$\$|\$.+?\$", source, re.DOTALL)
    assert len(soup("math")) == len(formulas) > 100
    for element in soup(["math", "code", "pre", "style"]):
        element.decompose()
    assert not re.search(r"\$|\\[a-z]+", soup.body.get_text())


def test_plumbing_and_solutions_are_folded(tmp_path):
    """The other code is open, and text inside of `<details>` is Markdown as outside."""
    cells = [
        nbformat.v4.new_code_cell("plot = 1", metadata={"tags": ["plumbing"]}),
        nbformat.v4.new_code_cell("mine = 3", metadata={"tags": ["solution"]}),
        nbformat.v4.new_code_cell("agent = 2"),
        nbformat.v4.new_markdown_cell(
            "<details><summary>Answer</summary>\n\nIt is **two**, $x = 2$.\n\n</details>"
        ),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "small.ipynb")
    write_page(tmp_path / "small.ipynb", tmp_path / "small.html")
    soup = BeautifulSoup((tmp_path / "small.html").read_text(encoding="utf-8"), "html.parser")
    plumbing, solution, answer = folded = soup.select("article details")
    assert "plot" in plumbing.pre.text and "mine" in solution.pre.text
    assert "Show the solution" in solution.summary.text
    assert not any("agent" in part.text for part in folded)
    assert answer.summary.text == "Answer" and answer.strong.text == "two" and answer.math
    assert not any(part.has_attr("open") for part in folded)


def test_figures_and_sections_are_linked(tmp_path):
    text = "# 4. Agent\n\n## 4.2 Replay\n\n*Figure 3: a curve.*\n\nFigure 3 is it, not figure 4."
    cells = [nbformat.v4.new_markdown_cell(text + " See section 4.2, not section 4.2 of a book.")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "small.ipynb")
    write_page(tmp_path / "small.ipynb", tmp_path / "small.html")
    soup = BeautifulSoup((tmp_path / "small.html").read_text(encoding="utf-8"), "html.parser")
    figure, section = soup.select("article p a")
    assert figure.text == "Figure 3" and section.text == "section 4.2"
    assert soup.find(id=figure["href"][1:]).text == "Figure 3: a curve."
    assert soup.find(id=section["href"][1:]).find(["h1", "h2"]).text.startswith("4.2 Replay")


@pytest.mark.parametrize(
    "tex, part",
    [
        (
            r"[-1, 1]",
            '<mo form="prefix">&#x02212;</mo><mn>1</mn>',
        ),  # no gap, as between two numbers
        (r"O(\log N)", '<mi>log</mi><mspace width="0.17em"/><mi>N</mi>'),
        (r"\sqrt{2}", "<msqrt><mrow><mn>2</mn></mrow></msqrt>"),
        (r'a < "b"', r'alttext="a &lt; &quot;b&quot;"'),
    ],
)
def test_a_formula(tex, part):
    assert part in mathml(tex, "inline")


def test_a_missing_browser_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(printing.shutil, "which", lambda name: None)
    with pytest.raises(FileNotFoundError, match="chromium, .* is installed"):
        printing.print_notebook(NOTEBOOK, tmp_path / "out.pdf")
    assert not (tmp_path / "out.pdf").exists()


def test_the_sandbox_is_left_off_only_where_it_cannot_start(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(printing.os, "geteuid", lambda: 1000, raising=False)
    assert printing.without_sandbox() == []
    monkeypatch.setattr(printing.os, "geteuid", lambda: 0)
    assert printing.without_sandbox() == ["--no-sandbox"]


def test_the_notebook_is_printed_on_many_pages_with_its_pictures(tmp_path):
    try:
        printing.browser()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    printing.print_notebook(NOTEBOOK, tmp_path / "new" / "out.pdf")
    content = (tmp_path / "new" / "out.pdf").read_bytes()
    assert content.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type /Page\b", content)) >= 20
    assert content.count(b"/Subtype /Image") >= 5  # figures and both animations, at a standstill
    assert b"/Outlines" in content  # bookmarks
    if not shutil.which("pdftotext"):
        pytest.skip("no pdftotext to read it with")
    text = subprocess.check_output(["pdftotext", "-layout", tmp_path / "new" / "out.pdf", "-"])
    pages = text.decode().split("\f")
    assert all(page.split()[-1] == str(number) for number, page in enumerate(pages[:-1], 1))
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    answers = re.findall(
        r"<summary>.*?</summary>\s*(\S+)", "".join(cell.source for cell in cells), re.DOTALL
    )
    for cell in cells:
        if "solution" in cell.metadata.get("tags", ()):
            answers.append(cell.source.splitlines()[1])
    text = " ".join(text.decode().split())
    assert answers and all(" ".join(answer.split()) in text for answer in answers)


def test_figures_shrink_and_moving_pictures_stay():
    """To a palette; three colours remain what they are."""
    figure, moving = Image.new("RGBA", (300, 200), "white"), io.BytesIO()
    figure.paste((0, 114, 178, 255), (20, 20, 200, 60))
    figure.paste((213, 94, 0, 255), (20, 80, 200, 120))
    still = io.BytesIO()
    figure.save(still, "PNG")
    frames = [figure.convert("P"), figure.convert("P").rotate(180)]
    frames[0].save(moving, "PNG", save_all=True, append_images=frames[1:])
    pictures = [base64.b64encode(file.getvalue()).decode() for file in (still, moving)]
    outputs = [nbformat.v4.new_output("display_data", {"image/png": one}) for one in pictures]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("", outputs=outputs)])
    shrink_pictures(notebook)
    small, same = (output.data["image/png"] for output in notebook.cells[0].outputs)
    assert same == pictures[1] and len(small) < len(pictures[0])
    shown = Image.open(io.BytesIO(base64.b64decode(small)))
    assert shown.mode == "P"
    assert shown.convert("RGBA").tobytes() == figure.tobytes()
