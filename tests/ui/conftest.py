"""One running page with the scripted pair, and a browser, for all tests of this folder."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.ui.fake_pair import FakePair
from uag_core.runs.library import RunLibrary
from uag_core.runs.store import RunStore
from uag_core.ui.build import build_demo
from uag_core.ui.theme import launch_options

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> RunLibrary:
    """The shipped runs, and a store of its own for shared ones."""
    return RunLibrary(RunStore(tmp_path_factory.mktemp("home") / "runs"))


@pytest.fixture(scope="session")
def url(library: RunLibrary) -> Iterator[str]:
    demo = build_demo(FakePair, library=library)
    _, address, _ = demo.launch(prevent_thread_lock=True, quiet=True, **launch_options())
    yield address
    demo.close(verbose=False)


@pytest.fixture(scope="session")
def browser():
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium on this machine")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        instance = playwright.chromium.launch(executable_path=chromium, headless=True, args=FLAGS)
        yield instance
        instance.close()
