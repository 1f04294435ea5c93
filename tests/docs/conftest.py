"""A running app with the scripted pair, for the examples of docs/."""

from __future__ import annotations

from tests.ui.conftest import browser, url  # noqa: F401
