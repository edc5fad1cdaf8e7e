"""Settings of Sphinx: `make site` writes README, notebooks and pages as a site into `_site/html/`.

The site works without a network. So formulas become MathML here, because the usual script would be
fetched. Notebooks are shown with the cells folded that are tagged `plumbing` or `solution`.
"""

import html
import os
import posixpath
import re
import sys
from pathlib import Path

import nbformat
from docutils import nodes
from latex2mathml.converter import convert

PROJECT = Path(__file__).parents[1]
sys.path[:0] = [str(PROJECT), str(PROJECT / "doc")]  # the second for `conf.read_notebook`

from tutorial.notebook import describe_pictures  # noqa: E402

FOLDED = {"plumbing": "Show the code", "solution": "Show the solution"}  # by their cells' tags
CONTENTS = {  # of the sidebar; pages that no line names follow the evidence
    "The tutorial": [
        "The notebook <Continuous_Control>",
        "doc/extensions",
        "doc/reports",
        "doc/bugs",
        "doc/troubleshooting",
    ],
    "How to": [
        f"doc/{page}" for page in ("install", "parameters", "watching", "gymnasium", "unity")
    ],
    "The evidence": [
        f"doc/{page}" for page in ("results", "ingredients", "comparisons", "history", "plans")
    ],
    "The project": ["doc/layout", "CONTRIBUTING", "CHANGELOG"],
}
SERVER = os.environ.get("GITHUB_SERVER_URL", "https://github.com")
REPOSITORY = f"{SERVER}/{os.environ.get('GITHUB_REPOSITORY', 'OWNER/NAME')}"  # as its workflow says
OWNER, NAME = REPOSITORY.split("/")[-2:]

project = "Twenty arms learn to reach"
html_title = project
html_baseurl = f"https://{OWNER.lower()}.github.io/{NAME}/"
language = "en"
smartquotes = False
extensions = ["myst_nb", "sphinx_copybutton"]
include_patterns = [
    "*.md",
    "*.ipynb",
    "doc/*.md",
    "doc/*.ipynb",
    "checkpoints/README.md",
    "tapejit/README.md",
]
exclude_patterns = ["my_copy.ipynb"]
root_doc = "README"

html_theme = "furo"
templates_path = ["_templates"]
html_static_path = ["_static"]
html_extra_path = ["gallery_still.png"]  # for previews of links
html_favicon = "_static/favicon.svg"
html_css_files = ["page.css"]
html_js_files = ["page.js"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "play.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
pygments_dark_style = "a11y-dark"
html_theme_options = {"top_of_page_buttons": []}
copybutton_selector = "div:not(.output) > div.highlight pre"  # code, and not what it printed

myst_enable_extensions = ["dollarmath", "html_image"]
myst_heading_anchors = 4
myst_url_schemes = {"http": None, "https": None, "site": "{{path}}"}
nb_execution_mode = "off"
nb_merge_streams = True
nb_render_markdown_format = "gfm"
nb_custom_formats = {".ipynb": "conf.read_notebook"}
nb_code_prompt_hide = "Hide"


def mathml(tex, display):
    """A formula as MathML, display "block" or "inline", and as TeX for what cannot read that."""
    whole = tex.strip().replace(r"\arg\max", r"\operatorname{arg\,max}")
    formula = convert(whole, display=display)
    # A sign after an operator or a bracket belongs to what follows it.
    formula = re.sub(
        r"(<mo(?: [^>]*)?>(?:&#x0003D;|&#x00028;|\[)</mo>)<mo>&#x02212;",
        r'\1<mo form="prefix">&#x02212;',
        formula,
    )
    formula = formula.replace("<mi>log</mi><mi>", '<mi>log</mi><mspace width="0.17em"/><mi>')
    return formula.replace("<math ", f'<math alttext="{html.escape(tex.strip())}" ', 1)


def write_formula(translator, node):
    """Write a formula into Sphinx's page, a displayed one in a box that scrolls."""
    if isinstance(node, nodes.math):
        translator.body.append(mathml(node.astext(), "inline"))
    else:
        translator.body.append(f'<div class="formula">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def read_notebook(text):
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
                shown["image"] = {"alt": words}
        if cell.cell_type == "markdown":  # Jupyter's anchors as GitHub's, which Sphinx uses
            cell.source = re.sub(
                r"\]\(#(.+?)\)",
                lambda link: "](#" + re.sub(r"[^\w-]", "", link[1]).lower() + ")",
                cell.source,
            )
    return notebook


def mark_moving_pictures(app, document):
    """Moving pictures get a button that stops them (page.js)."""
    for picture in document.findall(nodes.image):
        file = Path(app.srcdir) / picture["uri"].lstrip("/")
        if file.suffix == ".png" and file.is_file() and b"acTL" in file.read_bytes()[:2000]:
            picture["classes"].append("moving")


def target(line):
    """The page of a line of CONTENTS, which may give it a title of its own."""
    return re.sub(r".*<(.+)>", r"\1", line)


def prepare(app, page, source):
    """Give the start page the contents, and links of pages their places on the site.

    Files that are not on the site are shown by the repository's host.
    """
    if app.env.doc2path(page).suffix != ".md":
        return

    def published(link):
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), link[1]))
        if path.startswith("../../"):
            return f"]({REPOSITORY}/{path[6:]})"
        if path.endswith((".md", ".ipynb", ".png", ".svg")) and (PROJECT / path).exists():
            return link[0]
        return f"]({REPOSITORY}/blob/HEAD/{path})"

    source[0] = re.sub(r"\]\((?![a-z]+:|#)([^)#\s]+)\)", published, source[0])
    source[0] = source[0].replace("](https://OWNER.github.io/NAME/", "](site:")
    source[0] = source[0].replace("https://github.com/OWNER/NAME", REPOSITORY)
    if page == "CHANGELOG":  # else its many words rank before the pages that explain them
        source[0] = f"---\nnosearch: true\n---\n{source[0]}"
    if page == root_doc:
        listed = {target(line) for lines in CONTENTS.values() for line in lines}
        evidence = [*CONTENTS["The evidence"], *sorted(app.env.found_docs - listed - {page})]
        for caption, pages in (CONTENTS | {"The evidence": evidence}).items():
            lines = "\n".join(line for line in pages if target(line) in app.env.found_docs)
            source[0] += f"\n\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{lines}\n```\n"


def add_preview(app, page, template, context, document):
    """What a link to a page shows elsewhere: title, first paragraph, picture."""
    if document is None:
        return
    texts = (
        " ".join(node.astext().split())
        for node in document.findall(nodes.paragraph)
        if not node.next_node(nodes.image)
    )
    words = next((text for text in texts if len(text) > 80), project)
    words = html.escape(words if len(words) < 200 else words[:200].rsplit(" ", 1)[0] + " ...")
    title = html.escape(re.sub("<.*?>", "", context["title"]))
    context["metatags"] += (
        f'<meta name="description" content="{words}">'
        f'<meta property="og:title" content="{title}"><meta property="og:type" content="article">'
        f'<meta property="og:description" content="{words}">'
        f'<meta property="og:image" content="{html_baseurl}gallery_still.png">'
    )


def setup(app):
    app.add_html_math_renderer("mathml", (write_formula, None), (write_formula, None))
    app.connect("source-read", prepare)
    app.connect("doctree-read", mark_moving_pictures)
    app.connect("html-page-context", add_preview)
