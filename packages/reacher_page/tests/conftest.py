"""Fixtures of the pages' tests."""

import pytest

from browser import driver


@pytest.fixture(scope="session")
def notebook():
    """The cells with which the page has to agree; its tests are skipped without the tutorial."""
    return pytest.importorskip("tutorial.notebook").definitions()
