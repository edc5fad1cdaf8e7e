#!/bin/sh
# Write the site into _site/: the README, the page to play with, the report and the pages of doc/.
# Needs pandoc and what `make demo` has installed, and no network: sh .github/site.sh
set -eu
site=_site
export REPOSITORY="${REPOSITORY:-..}"
python3 -m tutorial.tasks watch
mkdir -p $site/doc
cp runs/watch.html $site/play.html
cp doc/*.png $site/doc
for notebook in Continuous_Control doc/extensions; do
    .venv/bin/python -m tutorial.report.page $notebook.ipynb $site/$notebook.html
done
for page in README.md CONTRIBUTING.md CHANGELOG.md doc/*.md; do
    target=$site/${page%.md}.html
    [ "$page" = README.md ] && target=$site/index.html
    case $page in doc/*) FOLDER=doc/ ;; *) FOLDER= ;; esac
    FOLDER=$FOLDER pandoc --from gfm+tex_math_dollars --mathml --lua-filter .github/links.lua \
        --standalone --metadata pagetitle="$(sed -n '1s/^# //p' "$page")" \
        -V lang=en -V maxwidth=60em -V mainfont=system-ui \
        -V backgroundcolor=Canvas -V fontcolor=CanvasText -V linkcolor=LinkText \
        -V header-includes='<meta name="color-scheme" content="light dark">' "$page" --output "$target"
done
