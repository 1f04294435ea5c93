"""A running app with the scripted pair, for the examples of docs/."""

from __future__ import annotations

from tests.ui.conftest import library, url  # noqa: F401
