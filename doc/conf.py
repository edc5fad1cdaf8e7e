"""Settings of Sphinx: `make site` writes README, notebooks and pages as a site into `_site/html/`.

The site works without a network. Formulas become MathML, because the usual script is fetched.
"""

import html
import itertools
import os
import posixpath
import re
import subprocess
from pathlib import Path

import nbformat
from docutils import nodes
from latex2mathml.converter import convert

FOLDED = {"plumbing": "Show the code", "solution": "Show the solution"}  # by their cells' tags
CONTENTS = {  # of the sidebar
    "The tutorial": "The notebook <Continuous_Control>, doc/extensions, doc/reports, doc/bugs, "
    "doc/troubleshooting",
    "How to": "doc/install, doc/parameters, packages/reacher_page/README, packages/reacher/README, "
    "doc/unity",
    "The evidence": "doc/results, research/ingredients, research/comparisons, research/history, "
    "research/plans, checkpoints/README, research/results/README, doc/differences, "
    "packages/torch_phases/README",
    "The project": "doc/layout, CONTRIBUTING, research/README",
}
TOCTREE = "\n\n```{{toctree}}\n:hidden:\n:caption: {}\n\n{}\n```\n"


def address():
    """The repository's address: as its workflow says, or that of the remote, or empty."""
    if "GITHUB_REPOSITORY" in os.environ:
        return f"{os.environ['GITHUB_SERVER_URL']}/{os.environ['GITHUB_REPOSITORY']}"
    command = ["git", "config", "--get", "remote.origin.url"]
    remote = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    found = re.fullmatch(r"(?:https://|git@)([\w.-]+)[:/]([\w.-]+/[\w.-]+?)(?:\.git)?", remote)
    return f"https://{found[1]}/{found[2]}" if found else ""


REPOSITORY = address()
FILES = f"{REPOSITORY}/blob/HEAD" if REPOSITORY else Path(__file__).parents[1].as_uri()
OWNER, NAME = f"/{REPOSITORY}".split("/")[-2:]
IN_YOUR_COPY = "In your copy of this folder, type\n\n"
FETCH = f"    git clone --depth 1 {REPOSITORY}.git continuous-control\n    cd continuous-control\n"
PLAY = "**[Watch an agent learn in your browser](site:play.html)**\n\n"

html_title = "Twenty arms learn to reach"
html_baseurl = f"https://{OWNER.lower()}.github.io/{NAME}/" if REPOSITORY else ""
smartquotes = False
extensions = ["myst_nb", "sphinx_copybutton"]
include_patterns = [
    *"*.md Continuous_Control.ipynb doc/* checkpoints/*.md".split(),
    *"research/*.md research/results/*.md packages/*/README.md".split(),
]
root_doc = "README"

html_theme = "furo"
templates_path = ["_templates"]
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_css_files = ["page.css"]
html_js_files = ["page.js"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
pygments_dark_style = "a11y-dark"
copybutton_selector = "div:not(.output) > div.highlight pre"  # code, and not what it printed

myst_enable_extensions = ["dollarmath", "html_image"]
myst_heading_anchors = 4
myst_url_schemes = {"http": None, "https": None, "site": "{{path}}"}
nb_execution_mode = "off"
nb_merge_streams = True
nb_render_markdown_format = "gfm"
nb_code_prompt_hide = "Hide"


def write_formula(translator, node):
    """Write TeX as MathML, a displayed formula in a box that scrolls."""
    tex, displayed = node.astext().strip(), isinstance(node, nodes.math_block)
    formula = convert(tex, display="block" if displayed else "inline")
    # A sign after an operator or a bracket belongs to what follows it.
    sign = r"(&#x0003D;|&#x00028;|\[)</mo><mo>&#x02212;"
    formula = re.sub(sign, r'\1</mo><mo form="prefix">&#x02212;', formula)
    formula = formula.replace("<math ", f'<math alttext="{html.escape(tex)}" ', 1)
    translator.body.append(f'<div class="formula">{formula}</div>' if displayed else formula)
    raise nodes.SkipNode


def describe_pictures(notebook):
    """Give every picture in the outputs words for whoever cannot see it.

    They are the first sentence of its caption, *Figure N: ...*, in the next Markdown cell.
    """
    for cell, following in itertools.pairwise(notebook.cells):
        found = re.search(
            r"^\*(Figure \d+.*?[.:])(?=\*?\s+[A-Z]|\*$)", following.source, re.MULTILINE | re.DOTALL
        )
        for output in cell.get("outputs", []):
            if found and "image/png" in output.get("data", {}):
                words = re.sub(r"[`*]", "", found[1])
                output.metadata.setdefault("image/png", {})["alt"] = words


def prepare_notebook(text):
    """The text of a notebook's file, for MyST-NB, with words for pictures and with folded cells."""
    notebook = nbformat.reads(text, as_version=4)
    describe_pictures(notebook)
    for cell in notebook.cells:
        tags, shown = cell.metadata.setdefault("tags", []), cell.metadata.setdefault("mystnb", {})
        for tag in FOLDED.keys() & set(tags):
            tags.append("hide-cell" if tag == "solution" else "hide-input")
            shown["code_prompt_show"] = FOLDED[tag]
        for output in cell.get("outputs", []):
            if words := output.get("metadata", {}).get("image/png", {}).get("alt"):
                shown["image"] = {"alt": words}
    return nbformat.writes(notebook)


def prepare_page(page, text):
    """A page with links to where the site has its files; the start page has the contents, too.

    Files that are not on the site are shown by the repository's host.
    """

    def published(link):
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), link[1]))
        if path.startswith("../../"):
            return f"]({REPOSITORY}/{path[6:]})" if REPOSITORY else f"]({FILES})"
        shown = path.endswith((".md", ".ipynb", ".png", ".svg"))
        return link[0] if shown else f"]({FILES}/{path})"

    text = re.sub(r"\]\((?![a-z]+:|#)([^)#\s]+)\)", published, text)
    if page == root_doc:  # what needs an address
        assert IN_YOUR_COPY in text
        text = text.replace("\n\n", f"\n\n{PLAY}", 1)
        if REPOSITORY:
            text = text.replace(IN_YOUR_COPY, f"Type\n\n{FETCH}")
        for caption, pages in CONTENTS.items():
            text += TOCTREE.format(caption, pages.replace(", ", "\n"))
    return text


def prepare(app, page, source):
    """Make a notebook or page what the site shows."""
    notebook = app.env.doc2path(page).suffix == ".ipynb"
    text = prepare_notebook(source[0]) if notebook else prepare_page(page, source[0])
    anchor = r"(?<=\]\(#)[^)]+"  # Jupyter's become GitHub's, which Sphinx uses
    source[0] = re.sub(anchor, lambda link: re.sub(r"[^\w-]", "", link[0]).lower(), text)


def mark_moving_pictures(app, document):
    """Moving pictures get a button that stops them (page.js)."""
    for picture in document.findall(nodes.image):
        file = Path(app.srcdir, picture["uri"].lstrip("/"))
        if file.is_file() and b"acTL" in file.read_bytes()[:2000]:
            picture["classes"].append("moving")


def setup(app):
    app.add_html_math_renderer("mathml", (write_formula, None), (write_formula, None))
    app.connect("source-read", prepare)
    app.connect("doctree-read", mark_moving_pictures)
