"""The pure renderers: hostile text stays text, and every number shown is the document's."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys

import pytest

from tests.ui.fake_pair import HOSTILE, document
from uag_core.ui import charts, results_html, token_html
from uag_core.ui.verdict import cancelled, pace, speed_sentence, times, verdict


def test_hostile_text_is_escaped_in_every_place() -> None:
    panel = token_html.panel(
        title="Plain", subtitle=HOSTILE, answer=HOSTILE, placeholder=HOSTILE, finish_reason=HOSTILE
    )
    data = document(notices=[HOSTILE], target=HOSTILE)
    pieces = [
        panel,
        token_html.status(HOSTILE),
        token_html.error(HOSTILE),
        token_html.table(HOSTILE, (HOSTILE,), [(HOSTILE, HOSTILE)]),
        results_html.results(data),
        results_html.download(data, filename=HOSTILE),
    ]
    for markup in pieces:
        assert "<script" not in markup
        assert "<img" not in markup
        assert "onerror='" not in markup
        assert "<b>" not in markup


def test_control_characters_are_spelled_out_and_layout_kept() -> None:
    assert token_html.text("a\x00b\u202ec\n\td") == "a\\x00b\\u202ec\n\td"


def test_panel_structure_is_the_same_for_any_answer() -> None:
    def tags(answer: str) -> list[str]:
        return re.findall(r"<[^> ]+", token_html.panel(title="t", subtitle="s", answer=answer))

    assert tags("") == tags("words\n\nmore <b>") == tags(HOSTILE)


@pytest.mark.parametrize("speedup", [1.72, 0.83, 0.997, 1.0])
def test_chart_and_table_show_the_documents_numbers(speedup: float) -> None:
    data = document(decode_speedup=speedup)
    figure = charts.speedup_chart(data)
    bar = figure.data[0]
    assert bar.type == "bar"
    shown = dict(zip(bar.y, bar.x, strict=True))
    assert shown["Fastest plain"] == data["decode_speedup"]
    assert shown["Same-shape plain"] == data["decode_speedup_same_shape"]
    assert shown["Plain, end to end"] == data["wall_speedup"]
    assert figure.layout.shapes[0].x0 == 1
    colour = charts.SLOWER if speedup < 1 else charts.FASTER
    assert bar.marker.color[bar.y.index("Fastest plain")] == colour
    assert "×" in figure.layout.xaxis.title.text
    assert charts.table(data)[0][1:] == (times(speedup), pace(speedup))


def test_reference_engines_are_compared_end_to_end() -> None:
    reference = {"engine": "transformers", "end_to_end_tokens_per_second": 20.0}
    data = document(references=[reference])
    name, _, value = charts.speedups(data)[-1]
    assert name == "transformers, plain"
    assert value == data["assisted"]["end_to_end_tokens_per_second"] / 20.0


def test_speedup_is_never_rounded_across_one() -> None:
    assert times(0.997) == "0.997×"
    assert times(1.0004) == "1.0004×"
    assert times(1.0) == "1.00×"
    assert times(None) == "–"
    assert pace(0.9999) == "slower"
    assert "slower" in speed_sentence(document(decode_speedup=0.83))


def test_slowdown_is_called_slower_beside_its_number() -> None:
    markup = results_html.results(document(decode_speedup=0.83))
    assert 'data-pace="slower"' in markup
    assert '<span class="uag-number">0.83×</span><span class="uag-word">slower</span>' in markup


def test_verdicts() -> None:
    assert verdict(document()).headline == "Identical, 128 tokens"
    parted = document(identical=False, exact=False, divergence={"position": 56, "top2_gap": 0.0031})
    assert verdict(parted).headline == "They part at token 57"
    assert "0.0031" in verdict(parted).detail
    assert "distribution" in verdict(document(identical=None)).detail
    stopped = document(identical=None, decode_speedup=None, finish_reason="cancelled")
    assert cancelled(stopped)
    assert verdict(stopped).headline == "Stopped"
    assert "–" in results_html.results(stopped)


def test_time_split_adds_up_and_names_its_parts() -> None:
    markup = results_html.time_split(document())
    shares = [float(share) for share in re.findall(r"width:([\d.]+)%", markup)]
    assert sum(shares) == pytest.approx(100, abs=0.01)
    for name in ("draft", "re-encode", "verify", "other"):
        assert f"<strong>{name}</strong>" in markup


def test_download_holds_the_whole_document() -> None:
    data = document(text="naïve 🦙 </script>")
    encoded = re.search(r"base64,([^\"]+)", results_html.download(data))
    assert encoded is not None
    assert json.loads(base64.b64decode(encoded[1])) == data


def test_renderers_import_neither_torch_nor_gradio() -> None:
    code = (
        "import sys, uag_core.ui.charts, uag_core.ui.token_html, uag_core.ui.results_html\n"
        "assert not {'torch', 'gradio', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
