"""Settings of Sphinx: `make site` writes README, notebooks and pages as a site into `_site/html/`.

`tutorial.page` has the hooks that a run's page needs, too.
"""

import os
import posixpath
import re
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[1]
sys.path.insert(0, str(PROJECT))

project = "Continuous Control"
html_title = project
language = "en"
smartquotes = False
extensions = ["myst_nb", "sphinx_copybutton", "tutorial.page"]
include_patterns = ["*.md", "*.ipynb", "doc/*.md", "doc/*.ipynb"]
exclude_patterns = [".*", "_site", "checkpoints", "reacher", "runs", "tests", "tutorial"]
root_doc = "README"

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["page.css"]
html_js_files = ["page.js"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
pygments_dark_style = "a11y-dark"
html_theme_options = {"top_of_page_buttons": []}
copybutton_selector = "div:not(.output) > div.highlight pre"  # code, and not what it printed

myst_enable_extensions = ["dollarmath", "html_image"]
myst_heading_anchors = 4
myst_url_schemes = {"http": None, "https": None, "site": "{{path}}"}
nb_execution_mode = "off"
nb_merge_streams = True
nb_render_markdown_format = "gfm"
nb_custom_formats = {".ipynb": "tutorial.page.read_notebook"}
nb_code_prompt_hide = "Hide"

CONTENTS = {  # of the sidebar; pages that no line names follow the evidence
    "The tutorial": ["Continuous_Control", "doc/extensions", "doc/bugs", "doc/troubleshooting"],
    "How to": [
        f"doc/{page}" for page in ("install", "parameters", "watching", "gymnasium", "unity")
    ],
    "The evidence": [
        f"doc/{page}" for page in ("results", "ingredients", "comparisons", "history", "plans")
    ],
    "The project": ["doc/layout", "CONTRIBUTING", "CHANGELOG"],
}
redirects = {  # pages that are gone, and where their readers find the answer now
    "doc/ablations.md": "doc/results.md#what-we-claim",
    "doc/baselines.md": "doc/comparisons.md#other-peoples-agents",
    "doc/benchmarks.md": "doc/results.md#how-fast-it-is",
    "doc/mirrors.md": "doc/ingredients.md#what-do-the-mirrors-bring",
    "doc/questions.md": "doc/ingredients.md",
    "doc/search.md": "doc/history.md",
    "doc/study.md": "doc/ingredients.md#the-study",
    "doc/study_appendix.md": "doc/plans.md#the-study",
}
REPOSITORY = "{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}".format_map(
    {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "OWNER/NAME"} | os.environ
)


def prepare(app, page, source):
    """Give the start page the contents, and links of pages their places on the site.

    Files that are not on the site are shown by the repository's host.
    """
    if app.env.doc2path(page).suffix != ".md":
        return

    def published(link):
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), link[1]))
        if path in redirects:
            return f"]({posixpath.relpath(redirects[path], posixpath.dirname(page) or '.')})"
        if path == "../../deployments/github-pages":
            return "](site:play.html)"
        if path.startswith("../../"):
            return f"]({REPOSITORY}/{path[6:]})"
        if path.endswith((".md", ".ipynb", ".png")):
            return link[0]
        return f"]({REPOSITORY}/blob/HEAD/{path})"

    source[0] = re.sub(r"\]\((?![a-z]+:|#)([^)#\s]+)\)", published, source[0])
    if page == root_doc:
        rest = app.env.found_docs - {page}.union(*CONTENTS.values())
        evidence = [*CONTENTS["The evidence"], *sorted(rest)]
        for caption, pages in (CONTENTS | {"The evidence": evidence}).items():
            listed = "\n".join(page for page in pages if page in app.env.found_docs)
            source[0] += f"\n\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{listed}\n```\n"


def write_redirects(app, error):
    """Leave a page at each old address that leads to the new one."""
    for old, new in {} if error else redirects.items():
        new = posixpath.basename(new).replace(".md", ".html")
        text = f'<meta http-equiv="refresh" content="0; url={new}"><a href="{new}">moved</a>'
        (Path(app.outdir) / old).with_suffix(".html").write_text(text)


def setup(app):
    app.connect("source-read", prepare)
    app.connect("build-finished", write_redirects)
