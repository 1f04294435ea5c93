"""The page in a real browser, with the scripted pair behind it."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.browser
DONE = "#results .uag-number"


@pytest.fixture
def open_page(url, browser):
    pages = []

    def opened(width: int = 1400, height: int = 900, theme: str = "light"):
        page = browser.new_page(viewport={"width": width, "height": height})
        page.set_default_timeout(15_000)
        pages.append(page)
        page.goto(f"{url}?__theme={theme}")
        page.wait_for_selector("#assisted .uag-panel")
        return page

    yield opened
    for page in pages:
        page.close()


def ask(page, target: str, prompt: str = "Tell me a story.", tokens: str = "40") -> None:
    page.fill("#prompt textarea", prompt)
    page.fill("#target input", target)
    page.press("#target input", "Enter")
    page.fill("#max-new-tokens :is(input, textarea)", tokens)
    page.click("#run")


def idle(page) -> None:
    page.wait_for_selector("#run:not([disabled])")
    page.wait_for_selector("#stop[disabled]")


def test_run_shows_texts_verdict_numbers_and_chart(open_page) -> None:
    page = open_page()
    page.click("#examples button >> nth=4")
    page.wait_for_function("document.querySelector('#prompt textarea').value.includes('clock')")
    ask(page, "fake/fast")
    page.wait_for_selector(DONE)
    page.wait_for_selector("#chart .bars")
    assert page.inner_text(DONE) == "1.72×"
    assert "Identical, 40 tokens" in page.inner_text("#summary")
    assert "The keeper wound" in page.inner_text("#plain .uag-text")
    assert page.inner_text("#plain .uag-text") == page.inner_text("#assisted .uag-text")
    assert "1.72×" in page.inner_text("#chart-table")
    idle(page)
    with page.expect_download() as download:
        page.click("#download .uag-download")
    assert download.value.suggested_filename == "uag-compare.json"


def test_the_method_is_chosen_by_name(open_page) -> None:
    page = open_page()
    page.click("#method input")
    page.click("text=Prompt lookup (no assistant)")
    ask(page, "fake/fast")
    page.wait_for_selector(DONE)
    assert "Prompt lookup" in page.inner_text("#assisted h3")
    assert "Prompt lookup wrote exactly" in page.inner_text("#summary")


def test_stop_then_run_again(open_page) -> None:
    page = open_page()
    ask(page, "fake/long", tokens="600")
    page.wait_for_function("document.querySelector('#plain .uag-text').textContent.length > 100")
    assert page.is_disabled("#run")
    page.click("#stop")
    page.wait_for_selector("#uag-status-text:has-text('Stopped')")
    idle(page)
    assert "Stopped" in page.inner_text("#summary .uag-verdict")
    ask(page, "fake/slower")
    page.wait_for_selector(".uag-big[data-pace=slower]")
    assert page.inner_text(".uag-word") == "slower"


def test_stop_while_waiting_withdraws(open_page) -> None:
    first, second = open_page(), open_page()
    ask(first, "fake/long", tokens="600")
    first.wait_for_selector("#plain .uag-panel[data-state=active]")
    ask(second, "fake/fast")
    second.wait_for_selector("#stop:not([disabled])")
    second.click("#stop")
    second.wait_for_selector("#uag-status-text:has-text('Stopped before it began')")
    idle(second)
    first.click("#stop")
    idle(first)
    ask(second, "fake/fast")
    second.wait_for_selector(DONE)


def test_closed_tab_frees_the_slot(open_page, browser) -> None:
    page = open_page()
    ask(page, "fake/long", tokens="600")
    page.wait_for_selector("#plain .uag-panel[data-state=active]")
    page.close()
    other = open_page()
    ask(other, "fake/fast")
    other.wait_for_selector(DONE)


@pytest.mark.parametrize("target", ["fake/unknown", "fake/fails"])
def test_an_error_is_shown_and_recovered_from(open_page, target) -> None:
    page = open_page()
    ask(page, target)
    page.wait_for_selector(".uag-error")
    assert "secret" not in page.content()
    idle(page)
    assert page.input_value("#prompt textarea") == "Tell me a story."
    ask(page, "fake/fast")
    page.wait_for_selector(DONE)
    assert page.locator(".uag-error").count() == 0


def test_bad_number_is_said_before_anything_runs(open_page) -> None:
    page = open_page()
    page.fill("#temperature :is(input, textarea)", "nan")
    ask(page, "fake/fast")
    page.wait_for_selector(".uag-error:has-text('Temperature must be a finite number')")
    page.fill("#temperature :is(input, textarea)", "")
    ask(page, "fake/fast")
    page.wait_for_selector(DONE)


def test_dark_theme(open_page) -> None:
    page = open_page(theme="dark")
    ask(page, "fake/fast")
    page.wait_for_selector("#chart .bars")
    script = "s => getComputedStyle(document.querySelector(s))"
    assert page.evaluate(f"({script})('body').backgroundColor") != "rgb(255, 255, 255)"
    assert page.evaluate(f"({script})('#chart .xtick text').fill") == "rgb(232, 232, 230)"
    assert page.evaluate(f"({script})('.uag-text').color") == "rgb(232, 232, 230)"


def test_phone_stacks_panels_without_horizontal_scroll(open_page) -> None:
    page = open_page(390, 844)
    ask(page, "fake/fast")
    page.wait_for_selector("#chart .bars")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for name in ("#chart", "#chart-table", "#summary", "#actions", "#ask"):
        box = page.locator(name).bounding_box()  # the frame clips, so look at each part as well
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    for name in (".uag-table", ".uag-metrics", ".uag-split"):
        overflow = f"(e => e.scrollWidth - e.clientWidth)(document.querySelector('{name}'))"
        assert page.evaluate(overflow) <= 1
    plain, assisted = (page.locator(name).bounding_box() for name in ("#plain", "#assisted"))
    assert assisted["y"] >= plain["y"] + plain["height"] - 1
    page.locator("#chart").scroll_into_view_if_needed()
    box = page.locator("#stop").bounding_box()
    assert 0 <= box["y"] < 844  # the bar sticks, so Stop stays in reach


def test_hostile_text_is_shown_not_run(open_page) -> None:
    page = open_page()
    ask(page, "fake/hostile")
    page.wait_for_selector(DONE)
    assert "<script>window.pwned=1</script>" in page.inner_text("#plain .uag-text")
    assert "${window.pwned=1}" in page.inner_text("#assisted .uag-text")
    assert page.evaluate("window.pwned") is None
    assert page.locator(".uag-text img, .uag-text b").count() == 0


def test_scrolled_up_reader_is_left_alone(open_page) -> None:
    page = open_page()
    ask(page, "fake/long", tokens="600")
    answer = "document.querySelector('#plain .uag-answer')"
    page.wait_for_function(f"{answer}.scrollHeight > {answer}.clientHeight + 120")
    at_end = f"{answer}.scrollHeight - {answer}.scrollTop - {answer}.clientHeight < 30"
    page.wait_for_function(at_end)
    page.evaluate(f"{answer}.scrollTop = 5")
    height = page.evaluate(f"{answer}.scrollHeight")
    page.wait_for_function(f"{answer}.scrollHeight > {height}")
    assert page.evaluate(f"{answer}.scrollTop") == 5
    page.click("#stop")
    idle(page)


def test_keyboard_reaches_run(open_page) -> None:
    page = open_page()
    page.fill("#target input", "fake/fast")
    page.press("#target input", "Enter")
    page.fill("#prompt textarea", "Hello")
    page.press("#prompt textarea", "Shift+Enter")
    page.wait_for_selector(DONE)
