"""The notebook with its outputs as one HTML file that needs nothing else, not even the network.

    python -m tutorial.report.page NOTEBOOK [HTML]
    python -m tutorial.report.page --describe NOTEBOOK

The last makes an executed notebook fit for the repository: it writes the pictures' words into it,
gives its figures 256 colors, which makes them a third as large, and links the pictures of doc/
that a copy carries.

nbconvert makes the page. It leaves formulas to a script from the network, and pictures without
words; here formulas become MathML with a font that comes along, and a picture is described by the
caption of its figure.
"""

from __future__ import annotations

import base64
import html
import io
import itertools
import logging
import re
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

import nbformat
from bs4 import BeautifulSoup
from fontTools import subset
from jinja2 import pass_context
from latex2mathml.converter import convert
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from PIL import Image

from reacher.files import write_whole
from tutorial.notebook import link_pictures

LETTERS = {
    *map(chr, range(0x20, 0x7F)),  # and the italic ones, that stand for them in formulas
    *map(chr, range(0x1D434, 0x1D468)),
    *map(chr, range(0x1D6E2, 0x1D71C)),
    "\u210e",
}
DRAWN = set("\u221a\u203e\u2032")  # the root, the bar and the prime, which stand for elements
STYLE = """
@font-face {{ font-family: Formulas; src: url(data:font/woff;base64,{font}) }}
math {{ font-family: Formulas, math; font-size: 1.1em }}
.jp-RenderedMarkdown td, .jp-RenderedMarkdown th {{ text-align: left }}
td math, td code {{ white-space: nowrap }}
@media print {{ .jp-OutputArea-output iframe {{ display: none }} }} /* its still picture prints */
"""


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


def formula_font(page: str) -> str:
    """STIX Two Math, with the characters of a page alone, as base64 of a WOFF file."""
    used = (
        LETTERS
        | DRAWN
        | {
            character
            for formula in re.findall(r"<math .*?</math>", page, re.DOTALL)
            for character in html.unescape(formula)
        }
    )
    logging.getLogger("fontTools").setLevel(logging.WARNING)  # else papermill shows its steps
    options = subset.Options(flavor="woff", layout_features=["*"])
    fonts = Path(find_spec("ziamath").origin).parent / "fonts"
    font = subset.load_font(fonts / "STIXTwoMath-Regular.ttf", options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(text="".join(used))
    subsetter.subset(font)
    content = io.BytesIO()
    subset.save_font(font, content, options)
    return base64.b64encode(content.getvalue()).decode()


class Markdown(IPythonRenderer):
    """nbconvert's Markdown, with formulas as MathML."""

    def inline_math(self, body: str) -> str:
        return mathml(body, "inline")

    def block_math(self, body: str) -> str:
        return mathml(body, "block")


class Page(HTMLExporter):
    """nbconvert's page of a notebook, as above."""

    @pass_context
    def markdown2html(self, context, source):
        cell = context.get("cell", {})
        renderer = Markdown(
            escape=False,
            attachments=cell.get("attachments", {}),
            path=context["resources"]["metadata"]["path"],  # of linked pictures
            embed_images=True,
            anchor_link_text=self.anchor_link_text,
            exclude_anchor_links=self.exclude_anchor_links,
            **self.lexer_options,
        )
        return MarkdownWithMath(renderer=renderer).render(source)

    def from_notebook_node(self, notebook, *arguments, **options):
        self.log = logging.getLogger("nbconvert without warnings")
        self.log.setLevel(logging.ERROR)  # it misses the pictures' words, which come below
        with warnings.catch_warnings(action="ignore"):
            page, resources = super().from_notebook_node(notebook, *arguments, **options)
        soup = BeautifulSoup(page, "html.parser")
        for script in soup("script"):  # all of them ask the network for what is here already
            script.decompose()
        words = [
            output.metadata.get("image/png", {}).get("alt", "")
            for cell in notebook.cells
            for output in cell.get("outputs", [])
            if "image/png" in output.get("data", {})
        ]
        pictures = soup.select('.jp-RenderedImage img[src^="data:image/png"]')
        for picture, text in zip(pictures, words, strict=True):
            picture["alt"] = text
        style = soup.new_tag("style")
        style.string = STYLE.format(font=formula_font(page))
        soup.head.append(style)
        return str(soup), resources


def describe_pictures(notebook: nbformat.NotebookNode) -> None:
    """Give every picture in the outputs words for whoever cannot see it.

    They are the first sentence of its caption, *Figure N: ...*, in the next Markdown cell.
    """
    for cell, following in itertools.pairwise(notebook.cells):
        found = re.search(
            r"^\*(Figure \d+.*?[.:])(?=\s+[A-Z]|\*$)", following.source, re.MULTILINE | re.DOTALL
        )
        if cell.cell_type != "code" or not found:
            continue
        for output in cell.outputs:
            if "image/png" in output.get("data", {}):
                metadata = output.metadata.setdefault("image/png", {})
                metadata["alt"] = re.sub(r"[`*]", "", found[1])


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
    content = nbformat.read(notebook, as_version=4)
    describe_pictures(content)
    texts = "\n".join(cell.source for cell in content.cells if cell.cell_type == "markdown")
    title = re.search(r"^# (.+)", texts, re.MULTILINE)
    place = {"path": str(notebook.parent), "name": title[1] if title else notebook.stem}
    made, _ = Page().from_notebook_node(content, resources={"metadata": place})
    write_whole(page, made.encode())


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
