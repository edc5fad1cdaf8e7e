"""The notebook as a PDF. Needs Chromium or Chrome, and is skipped without."""

from __future__ import annotations

import re

import pytest

from workshop.paths import NOTEBOOK
from workshop.report import print as printing


def test_a_missing_browser_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(printing.shutil, "which", lambda name: None)
    with pytest.raises(FileNotFoundError, match="chromium, .* is installed"):
        printing.print_notebook(NOTEBOOK, tmp_path / "out.pdf")
    assert not (tmp_path / "out.pdf").exists()


def test_the_notebook_is_printed_on_many_pages_with_its_pictures(tmp_path):
    try:
        printing.browser()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    printing.print_notebook(NOTEBOOK, tmp_path / "new" / "out.pdf", mathjax_url="")  # no network
    content = (tmp_path / "new" / "out.pdf").read_bytes()
    assert content.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type /Page\b", content)) >= 20
    assert content.count(b"/Subtype /Image") >= 5  # figures and both animations, at a standstill
