"""Charts and Replay in the real page, on a run that ships with the app."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.browser
REPLAY = "#replay .uag-replay"


@pytest.fixture
def opened(url, browser):
    pages = []

    def open_tab(tab: str, width: int = 1400, theme: str = "light", **options):
        page = browser.new_page(viewport={"width": width, "height": 900}, **options)
        page.set_default_timeout(20_000)
        pages.append(page)
        page.goto(f"{url}?__theme={theme}&run=code")
        page.wait_for_selector("#results .uag-number")
        page.evaluate(
            "tab => [...document.querySelectorAll('#views button[role=tab]')]"
            ".find(b => b.textContent.trim() === tab).click()",
            tab,
        )
        return page

    yield open_tab
    for page in pages:
        page.close()


def plots(page) -> None:
    page.wait_for_function(
        "document.querySelectorAll('#chart-grid .js-plotly-plot .main-svg').length >= 6"
        " && document.querySelectorAll('#chart-grid .js-plotly-plot .gtitle').length === 6"
    )


def test_every_chart_is_drawn_with_a_table_and_downloads(opened, library) -> None:
    page = opened("Charts")
    plots(page)
    titles = page.locator("#chart-grid .gtitle").all_text_contents()
    wall = library.open("code").run["result"]["assisted"]["wall_s"]
    assert f"{wall:.2f} s" in titles[0]
    assert page.locator("#chart-grid .uag-table table").count() == 6
    with page.expect_download() as saved:
        page.click(".uag-chart a.uag-download >> nth=0")
    assert saved.value.suggested_filename == "uag-tokens-over-time.csv"
    with page.expect_download() as saved:
        page.focus(".uag-chart button[data-picture] >> nth=1")
        page.keyboard.press("Enter")
    assert saved.value.suggested_filename == "uag-what-if.png"


def test_the_speedups_can_be_downloaded(opened) -> None:
    page = opened("Summary")
    page.wait_for_selector("#chart .bars")
    for kind in ("csv", "png"):
        with page.expect_download() as saved:
            page.click(f"#chart-table .uag-chart-links :text-is('{kind.upper()}')")
        assert saved.value.suggested_filename == f"uag-speedup.{kind}"


def test_charts_fit_a_phone(opened) -> None:
    page = opened("Charts", width=390, theme="dark")
    plots(page)
    for box in page.locator("#chart-grid .js-plotly-plot .main-svg").all():
        place = box.bounding_box()
        assert place is None or place["x"] + place["width"] <= 391
    colour = "getComputedStyle(document.querySelector('#chart-grid .gtitle')).fill"
    assert page.evaluate(colour) == "rgb(232, 232, 230)"


def test_charts_that_were_drawn_out_of_sight_fit_when_they_are_seen(opened) -> None:
    page = opened("Charts", width=390)
    select = "n => document.querySelectorAll('#views button[role=tab]')[n].click()"
    page.evaluate(select, 0)
    page.wait_for_timeout(1500)
    page.evaluate(select, 2)
    plots(page)
    page.wait_for_function(
        "[...document.querySelectorAll('#chart-grid .js-plotly-plot')].every(plot =>"
        " Math.abs(plot.querySelector('.main-svg').getBoundingClientRect().width"
        " - plot.parentElement.clientWidth) <= 1)"
    )


def test_the_replay_waits_plays_and_ends_with_the_outputs(opened, library) -> None:
    page = opened("Replay", reduced_motion="reduce")
    page.wait_for_selector(f"{REPLAY} .uag-lane")
    run = library.open("code").run
    assert page.inner_text(f"{REPLAY} .uag-play") == "Play"
    assert page.text_content(f"{REPLAY} .uag-lane-text >> nth=0") == ""
    page.select_option(f"{REPLAY} select", "4")
    page.click(f"{REPLAY} .uag-play")
    page.wait_for_function(f"document.querySelector('{REPLAY} .uag-fresh').textContent")
    assert "Playing" in page.text_content(f"{REPLAY} [aria-live=polite]")
    page.wait_for_selector(f"{REPLAY} .uag-lane[data-state=done] >> nth=1")
    engines = ("baseline", "uag")
    for index, engine in enumerate(engines):
        shown = page.text_content(f"{REPLAY} .uag-lane-text >> nth={index}")
        assert shown == run["events"][engine][-1]["text"]
    ends = [run["events"][engine][-1]["wall_s"] for engine in engines]
    assert f"{abs(ends[0] - ends[1]):.2f} s" in page.inner_text(f"{REPLAY} .uag-ahead")
    assert page.inner_text(f"{REPLAY} .uag-play") == "Play"


def test_the_replay_is_driven_by_keys_and_scrubber(opened, library) -> None:
    page = opened("Replay", width=390)
    page.wait_for_selector(f"{REPLAY} .uag-lane")
    steps = [e for e in library.open("code").run["events"]["uag"] if e["type"] == "Verified"]
    page.focus(f"{REPLAY} .uag-scrubber")
    page.keyboard.press("End")
    assert page.locator(f"{REPLAY} .uag-lane[data-state=done]").count() == 2
    page.keyboard.press("Home")
    assert page.locator(f"{REPLAY} .uag-lane[data-state=waiting]").count() == 2
    page.evaluate(
        "t => { const s = document.querySelector('#replay .uag-scrubber');"
        "s.value = Math.ceil(1000 * t); s.dispatchEvent(new Event('input')); }",
        steps[5]["t"] / max(e[-1]["wall_s"] for k, e in library.open("code").run["events"].items()
                            if k in ("uag", "baseline")),
    )  # fmt: skip
    text = "".join(step["text"] for step in steps[:6])
    assert page.text_content(f"{REPLAY} .uag-lane-text >> nth=1") == text
    page.check(f"{REPLAY} fieldset label:has-text('transformers, plain') input")
    assert page.locator(f"{REPLAY} .uag-lane").count() == 3
    page.focus(f"{REPLAY} .uag-lane-text >> nth=0")
    page.keyboard.press("k")
    assert page.inner_text(f"{REPLAY} .uag-play") == "Pause"
    page.keyboard.press("k")
    assert page.inner_text(f"{REPLAY} .uag-play") == "Play"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
