"""The notebook as one HTML file that needs nothing else, not even the network.

    python -m tutorial.page NOTEBOOK [HTML]
    python -m tutorial.page --describe NOTEBOOK

The last makes an executed notebook fit for the repository: it writes the pictures' words into it,
gives its figures 256 colors, which makes them a third as large, and links the pictures of doc/
that a copy carries.

Sphinx makes the page and the site (`make site`) with the settings of `doc/conf.py`. This module is
one of its extensions. It turns formulas into MathML, because the usual script would need the
network. It also folds the cells tagged `plumbing` or `solution`, and links figures and sections.
"""

from __future__ import annotations

import base64
import html
import io
import itertools
import mimetypes
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from bs4 import BeautifulSoup
from docutils import nodes
from latex2mathml.converter import convert
from PIL import Image

from reacher.files import write_whole
from tutorial.notebook import carry_pictures, link_pictures
from tutorial.paths import DOC

FONT = DOC / "_static" / "STIXTwoMath.woff2"
FOLDED = {"plumbing": "Show the code", "solution": "Show the solution"}  # by their cells' tags
LINKED = re.compile(r"\b([Ff]igure|[Ss]ection) (\d++(?:\.\d+)*+)(?! of )")  # another text


def mathml(tex: str, display: str) -> str:
    """A formula as MathML, and as TeX for programs that cannot read that.

    Args:
        display: "block" or "inline".
    """
    formula = convert(tex.strip(), display=display)
    # A sign after an operator or a bracket belongs to what follows it.
    formula = re.sub(
        r"(<mo(?: [^>]*)?>(?:&#x0003D;|&#x00028;|\[)</mo>)<mo>&#x02212;",
        r'\1<mo form="prefix">&#x02212;',
        formula,
    )
    formula = formula.replace("<mi>log</mi><mi>", '<mi>log</mi><mspace width="0.17em"/><mi>')
    return formula.replace("<math ", f'<math alttext="{html.escape(tex.strip())}" ', 1)


def write_formula(translator: Any, node: nodes.Element) -> None:
    """Write a formula into Sphinx's page, a displayed one in a box that scrolls."""
    if isinstance(node, nodes.math):
        translator.body.append(mathml(node.astext(), "inline"))
    else:
        translator.body.append(f'<div class="formula">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def read_notebook(text: str) -> nbformat.NotebookNode:
    """A notebook as MyST-NB shall show it, from the text of its file."""
    notebook = nbformat.reads(text, as_version=4)
    describe_pictures(notebook)
    for cell in notebook.cells:
        tags, shown = cell.metadata.get("tags", []), cell.metadata.setdefault("mystnb", {})
        for tag in FOLDED.keys() & set(tags):
            cell.metadata["tags"] = [*tags, "hide-input"]
            shown["code_prompt_show"] = FOLDED[tag]
        for output in cell.get("outputs", []):
            if words := output.get("metadata", {}).get("image/png", {}).get("alt"):
                shown["image"] = {"alt": words.partition(" (picture ")[0]}  # one for the cell
        for name, picture in cell.get("attachments", {}).items():
            [[kind, content]] = picture.items()
            cell.source = cell.source.replace(
                f"](attachment:{name})", f"](data:{kind};base64,{content})"
            )
        if cell.cell_type == "markdown":  # Jupyter's anchors as GitHub's, which Sphinx uses
            cell.source = re.sub(
                r"\]\(#(.+?)\)",
                lambda link: "](#" + re.sub(r"[^\w-]", "", link[1]).lower() + ")",
                cell.source,
            )
    return notebook


def finish_page(app: Any, document: nodes.document) -> None:
    """Mark moving pictures, and make links of what the text says about figures and sections."""
    pictures = list(document.findall(nodes.image))
    for picture in pictures:
        if b"acTL" in picture_bytes(app, picture["uri"]):
            picture["classes"].append("moving")
    for words in {picture.get("alt", "") for picture in pictures}:
        number_words([picture for picture in pictures if picture.get("alt", "") == words])
    places = {}
    for section in document.findall(nodes.section):
        if number := re.match(r"(\d+(?:\.\d+)*)\.? ", section[0].astext()):
            places["section", number[1]] = section["ids"][0]
    for start in document.findall(nodes.emphasis):
        found = LINKED.match(start.astext())
        if found and found[1] == "Figure" and start is start.parent[0]:
            places["figure", found[2]] = name = f"figure-{found[2]}"
            start.parent["ids"].append(name)
            start.parent["classes"].append("figure-caption")
    for text in list(document.findall(nodes.Text)):
        if isinstance(text.parent, (nodes.paragraph, nodes.strong)):
            text.parent.replace(text, linked(text, places))


def number_words(pictures: list[nodes.image]) -> None:
    """Tell pictures apart that one caption describes."""
    for number, picture in enumerate(pictures, start=1):
        if len(pictures) > 1:
            picture["alt"] = f"{picture.get('alt', '')} (picture {number} of {len(pictures)})"


def picture_bytes(app: Any, uri: str) -> bytes:
    if uri.startswith("data:"):
        return base64.b64decode(uri.partition(",")[2])
    return b"" if "://" in uri else (Path(app.srcdir) / uri.lstrip("/")).read_bytes()


def linked(text: nodes.Text, places: dict[tuple[str, str], str]) -> list[nodes.Node]:
    """A piece of text, in which each figure and section that the page has is a link."""
    pieces, end = [], 0
    for found in LINKED.finditer(text):
        if place := places.get((found[1].lower(), found[2])):
            pieces.append(nodes.Text(text[end : found.start()]))
            pieces.append(nodes.reference("", found[0], internal=True, refid=place))
            end = found.end()
    return [*pieces, nodes.Text(text[end:])]


def setup(app: Any) -> dict[str, bool]:
    """Make this module an extension of Sphinx."""
    app.add_html_math_renderer("mathml", (write_formula, None), (write_formula, None))
    app.connect("doctree-read", finish_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def describe_pictures(notebook: nbformat.NotebookNode) -> None:
    """Give every picture in the outputs words for whoever cannot see it.

    They are the first sentence of its caption, *Figure N: ...*, in the next Markdown cell.
    """
    for cell, following in itertools.pairwise(notebook.cells):
        found = re.search(
            r"^\*(Figure \d+.*?[.:])(?=\*?\s+[A-Z]|\*$)", following.source, re.MULTILINE | re.DOTALL
        )
        if cell.cell_type != "code" or not found:
            continue
        pictures = [output for output in cell.outputs if "image/png" in output.get("data", {})]
        for number, output in enumerate(pictures, start=1):
            words = re.sub(r"[`*]", "", found[1])
            several = f" (picture {number} of {len(pictures)})" if len(pictures) > 1 else ""
            output.metadata.setdefault("image/png", {})["alt"] = words + several


def shrink_pictures(notebook: nbformat.NotebookNode) -> None:
    """Give the figures in the outputs a palette of 256 colors; moving pictures have one."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/png" not in data:
                continue
            picture = Image.open(io.BytesIO(base64.b64decode(data["image/png"])))
            if picture.mode == "P":
                continue
            file = io.BytesIO()
            picture.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(
                file, "PNG", optimize=True
            )
            data["image/png"] = base64.b64encode(file.getvalue()).decode()


def write_page(notebook: Path, page: Path) -> None:
    """Write the notebook as it is, its pictures described; nothing is executed.

    Raises:
        OSError: the page cannot be written; names it, and leaves an earlier one as it was.
    """
    from sphinx.application import Sphinx  # here, because it takes a second

    content = nbformat.read(notebook, as_version=4)
    carry_pictures(content, page.parent)
    for cell in content.cells:
        if cell.cell_type == "markdown":  # a page that may be anywhere has no links to others
            cell.source = re.sub(r"(?<!!)\[([^\]]+)\]\((?!#|https?:)[^)\s]+\)", r"\1", cell.source)
    texts = "\n".join(cell.source for cell in content.cells if cell.cell_type == "markdown")
    title = re.search(r"^# (.+)", texts, re.MULTILINE)
    settings = {"root_doc": "page", "html_title": title[1] if title else notebook.stem}
    settings["html_sidebars"] = {"**": []}
    with tempfile.TemporaryDirectory() as folder:
        source, target, scratch = (Path(folder, name) for name in ("source", "target", "scratch"))
        source.mkdir()
        nbformat.write(content, source / "page.ipynb")
        Sphinx(source, DOC, target, scratch, "html", settings, status=None, warning=None).build()
        write_whole(page, inline(target / "page.html").encode())


def inline(page: Path) -> str:
    """One of Sphinx's pages, with its styles, font, scripts and pictures in it."""
    soup = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
    for link in soup("link"):
        if "stylesheet" not in link["rel"]:
            link.decompose()  # it leads to another page of a site
            continue
        file = page.parent / link["href"].partition("?")[0]
        style = soup.new_tag("style")
        style.string = file.read_text(encoding="utf-8").replace(
            f"url({FONT.name})", f"url({data_uri(FONT)})"
        )
        link.replace_with(style)
    for element in soup.select("script[src], img[src]"):
        if not element["src"].startswith("data:"):
            element["src"] = data_uri(page.parent / element["src"].partition("?")[0])
    return str(soup)


def data_uri(path: Path) -> str:
    kind = mimetypes.guess_type(path)[0] or "font/woff2"
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


if __name__ == "__main__":
    if sys.argv[1] == "--describe":
        content = nbformat.read(sys.argv[2], as_version=4)
        describe_pictures(content)
        shrink_pictures(content)
        link_pictures(content)
        nbformat.write(content, sys.argv[2])
        sys.exit()
    source = Path(sys.argv[1])
    target = Path(sys.argv[2]) if len(sys.argv) > 2 else source.with_suffix(".html")
    write_page(source, target)
    print(target)
