"""Runs in the real page: opened from a link, downloaded, uploaded, shared, compared."""

from __future__ import annotations

import json

import pytest

from tests.runs.make import FIXTURE
from uag_core.runs.document import dump_run, load_run

pytestmark = pytest.mark.browser
DONE = "#results .uag-number"
UPLOAD = "#recorded input[type=file]"


@pytest.fixture
def open_page(url, browser):
    pages = []

    def opened(query: str = "", width: int = 1400):
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.set_default_timeout(15_000)
        pages.append(page)
        page.goto(f"{url}?__theme=light{query}")
        page.wait_for_selector("#assisted .uag-panel")
        return page

    yield opened
    for page in pages:
        page.close()


def test_a_link_opens_a_recorded_run_with_its_form(open_page, library) -> None:
    page = open_page("&run=summary")
    page.wait_for_selector(DONE)
    run = library.open("summary").run
    assert page.inner_text(".uag-run-title") == run["title"]
    assert page.text_content("#assisted .uag-text") == run["result"]["assisted"]["text"]
    assert page.input_value("#prompt textarea") == run["request"]["prompt"]
    shown = f"{run['result']['assisted']['num_new_tokens']} tokens"
    assert shown in page.inner_text("#assisted footer")


def test_nothing_is_shown_before_a_run_is_opened(open_page) -> None:
    page = open_page()
    assert not page.is_visible("#results")
    page.click("#recorded button >> nth=0")
    page.wait_for_selector(DONE)


@pytest.mark.parametrize("run_id", ["nothing-here", "..%2F..%2Fetc%2Fpasswd", "http://x/y"])
def test_a_link_to_nothing_is_one_line(open_page, run_id) -> None:
    page = open_page(f"&run={run_id}")
    page.wait_for_selector(".uag-error")
    assert "run" in page.inner_text(".uag-error")
    assert not page.is_visible("#results")


def test_a_download_can_be_opened_again_and_shows_hostile_text(open_page, tmp_path) -> None:
    run = load_run(FIXTURE.read_bytes())
    run["title"] = "<img src=x onerror='window.pwned=1'> ${window.pwned=1}"
    path = tmp_path / "run.json"
    path.write_text(dump_run(run), encoding="utf-8")
    page = open_page()
    page.set_input_files(UPLOAD, str(path))
    page.wait_for_selector(DONE)
    assert page.inner_text(".uag-run-title") == run["title"]
    assert page.evaluate("window.pwned") is None
    assert not page.is_visible("#run-file")  # the carrier of downloads is nobody's button
    with page.expect_download() as download:
        page.click("#save-run")
    assert download.value.suggested_filename.startswith("uag-run-img-src")
    assert json.loads(download.value.path().read_bytes()) == {**run, "id": None}


def test_a_broken_file_is_one_line_and_nothing_is_lost(open_page, tmp_path) -> None:
    page = open_page("&run=code")
    page.wait_for_selector(DONE)
    page.fill("#prompt textarea", "I was typing this")
    before = page.inner_text("#summary .uag-results")
    for number in (1, 2):  # the same file again is refused again
        path = tmp_path / f"broken-{number}.json"
        path.write_text('{"kind": "run", "schema_version": 9}')
        page.set_input_files(UPLOAD, str(path))
        page.wait_for_selector(".uag-error:has-text('version 9')")
    assert page.inner_text("#summary .uag-results") == before
    assert page.input_value("#prompt textarea") == "I was typing this"


def test_sharing_is_explicit_and_the_link_opens(open_page, tmp_path, library, url) -> None:
    page = open_page()
    page.set_input_files(UPLOAD, str(FIXTURE))
    page.wait_for_selector(DONE)
    kept = set(library.store.folder.glob("*.gz"))
    page.click("#share-run")
    page.wait_for_selector("#share-panel:has-text('the prompt, the system prompt, every answer')")
    assert set(library.store.folder.glob("*.gz")) == kept
    page.click("#do-share")
    page.wait_for_selector("#share-panel:has-text('can read the run until')")
    link = "document.querySelector('#share-link :is(input, textarea)').value"
    page.wait_for_function(f"{link}.startsWith('http')")
    address = page.evaluate(link)
    assert address.startswith(url)
    page.goto(address)
    page.wait_for_selector(DONE)
    assert "this link expires" in page.inner_text("#run-line")


def test_two_runs_are_compared(open_page) -> None:
    page = open_page("&run=code", width=390)
    page.wait_for_selector(DONE)
    page.click("#versus > button")
    page.fill("#other-run input", "summary")
    page.press("#other-run input", "Enter")
    page.click("#compare-runs")
    page.wait_for_selector("#versus-table table")
    assert "prompts differ" in page.inner_text("#versus-table")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.set_input_files("#versus input[type=file]", str(FIXTURE))
    page.wait_for_selector("#versus-table:has-text('The targets differ')")
