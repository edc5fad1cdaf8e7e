"""Fixtures of the pages' tests."""

from browser import driver
