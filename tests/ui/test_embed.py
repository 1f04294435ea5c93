"""Compact views in a frame of another page, the Embed panel, addresses that fill the form."""

from __future__ import annotations

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest

from tests.ui.fake_pair import FakePair

pytestmark = pytest.mark.browser
DOCS = Path(__file__).resolve().parents[2] / "docs"
DONE = "#results .uag-number"
PROMPT = "(document.querySelector('#prompt textarea') || {value: ''}).value"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None: ...


@pytest.fixture(scope="module")
def docs():
    """The folder docs/ on a server of its own: another origin than the app's."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(DOCS)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


@pytest.fixture
def page(browser):
    opened = browser.new_page(viewport={"width": 1200, "height": 900})
    opened.set_default_timeout(20_000)
    yield opened
    opened.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_of_the_docs_shows_runs_without_computing(page, docs, url, theme) -> None:
    FakePair.most_active = 0
    page.goto(f"{docs}embedding.html?app={quote(url)}&theme={theme}")
    frame = page.frame_locator("#compare")
    frame.locator("#summary .uag-number").first.wait_for()
    assert frame.locator("#plain .uag-text").inner_text()
    assert not frame.locator("#ask").is_visible()
    assert not frame.locator("#uag-header").is_visible()
    assert frame.locator("#run").is_visible()
    dark = frame.locator("body").evaluate("e => e.classList.contains('dark')")
    assert dark == (theme == "dark")
    page.locator("#alignment").scroll_into_view_if_needed()
    rounds = page.frame_locator("#alignment").locator("#views [role=tabpanel]:visible")
    rounds.first.wait_for()
    assert not page.frame_locator("#alignment").locator("#panels").is_visible()
    assert FakePair.most_active == 0


def test_run_inside_a_frame(page, docs, url) -> None:
    page.goto(f"{docs}embedding.html?app={quote(url)}")
    frame = page.frame_locator("#compare")
    frame.locator("#summary .uag-number").first.wait_for()
    before = frame.locator("#plain .uag-text").inner_text()
    # The form is there, out of sight: its pair is the recorded one's.
    frame.locator("#target input").evaluate(
        "e => { e.value = 'fake/fast'; e.dispatchEvent(new Event('input')); }"
    )
    frame.locator("#run").click()
    frame.locator("#stop:not([disabled])").wait_for()
    frame.locator("#run:not([disabled])").wait_for()
    assert frame.locator("#plain .uag-text").inner_text() != before


def test_an_address_fills_the_form(page, url) -> None:
    asked = {"prompt": "Who's <b>there</b>?", "target": "fake/fast", "max_new_tokens": "12"}
    page.goto(f"{url}?{urlencode(asked)}")
    page.wait_for_function(f"{PROMPT}.includes('there')")
    assert page.input_value("#prompt textarea") == asked["prompt"]
    assert page.input_value("#target input") == "fake/fast"
    assert page.input_value("#max-new-tokens :is(input, textarea)") == "12"
    page.click("#run")
    page.wait_for_selector(DONE)


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ({"prompt": "x" * 2001}, "at most 2,000 are taken"),
        ({"run": "../../etc/passwd"}, "no id of a run"),
        ({"view": "chart", "run": "nothing-here"}, "run"),
    ],
)
def test_nonsense_in_the_address_is_one_line_in_the_page(page, url, query, line) -> None:
    page.goto(f"{url}?{urlencode(query)}")
    page.wait_for_selector(f".uag-error:has-text('{line}')")


def test_the_embed_panel_gives_snippets_that_open_the_same(page, url) -> None:
    page.goto(url)
    page.fill("#prompt textarea", 'A "quoted" & <odd> prompt')
    page.click("#embed button >> nth=0")
    box = "document.querySelector('#embed-{} textarea').value"
    page.wait_for_function(f"{box.format('link')}.startsWith('{url}?prompt=')")
    frame = page.evaluate(box.format("frame"))
    assert frame.startswith(f'<iframe src="{url}?view=compare&amp;prompt=')
    assert "<gradio-app" in page.evaluate(box.format("component"))
    page.click("#embed-view label:has-text('chart')")
    page.wait_for_function(f"{box.format('frame')}.includes('view=chart')")
    link = page.evaluate(box.format("link"))
    page.goto(link)
    page.wait_for_function(f"{PROMPT}.includes('quoted')")
    assert page.input_value("#prompt textarea") == 'A "quoted" & <odd> prompt'
