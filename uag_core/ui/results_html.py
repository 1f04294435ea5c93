"""The results under the panels as markup: verdict, numbers, the time split, the download.

Pure: the document of a comparison in, one string out. Every number is the document's own; none
is computed here except shares of a whole.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from uag_core import serialization
from uag_core.advice import Advice
from uag_core.ui import methods
from uag_core.ui.token_html import text
from uag_core.ui.verdict import (
    Document,
    cancelled,
    milliseconds,
    number,
    one_plain,
    pace,
    times,
    verdict,
)

# The five shares of a run's wall time, in the order they are drawn.
PARTS = (
    ("draft_s", "draft", "the assistant proposes"),
    ("reencode_s", "re-encode", "its text becomes target tokens"),
    ("verify_s", "verify", "the target checks them"),
    ("prefill_s", "prefill", "the target reads the prompt"),
    ("other_s", "other", "everything else on the host"),
)
MEANINGS = (
    ("tokens/s", "Tokens after the first one, over the time they took: the speed of decoding."),
    ("Plain, same shapes", "The target alone, every forward as wide as the assisted ones."),
    ("Plain, fastest", "The target alone, one position in a forward and no padding."),
    ("Decode speedup", "Assisted tokens/s over those of the faster plain decoding."),
    ("Wall speedup", "Whole times, reading the prompt included: plain over assisted."),
    ("Speedup bound", "What this run's costs allow when work outside the models takes no time."),
    ("Acceptance length τ", "One and the accepted tokens of an average round with a draft."),
    ("Acceptance rate", "The share of the candidates that the target agreed with."),
    ("Tokens per round", "Tokens written in an average forward of the target after the first."),
    ("Time to first token", "From the start until the target has read the prompt and written one."),
)


def _run(document: Document, name: str) -> Mapping[str, Any]:
    return document.get(name) or {}


def _metric(name: str, value: str, note: str = "") -> str:
    hint = f'<span class="uag-note">{text(note)}</span>' if note else ""
    return f"<div><dt>{text(name)}</dt><dd>{text(value)}{hint}</dd></div>"


def _headline(document: Document) -> str:
    speedup = document.get("decode_speedup")
    word = pace(speedup)
    unpadded, plain = _run(document, "baseline_unpadded"), _run(document, "baseline")
    assisted = _run(document, "assisted")
    rates = [rate for rate in (run.get("tokens_per_second") for run in (unpadded, plain)) if rate]
    best = number(max(rates) if rates else None, 1)
    ours = number(assisted.get("tokens_per_second"), 1)
    outcome = verdict(document)
    compared = "No decode speedup was measured"
    if speedup is not None:
        until = " until it was stopped" if cancelled(document) else ""
        compared = f"decode speedup{until}: {ours} tokens/s against {best}"
    return (
        f'<div class="uag-headline"><div class="uag-big" data-pace="{text(word)}">'
        f'<span class="uag-number">{text(times(speedup))}</span>'
        f'<span class="uag-word">{text(word)}</span>'
        f'<span class="uag-note">{text(compared)}</span></div>'
        f'<div class="uag-verdict" data-kind="{outcome.kind}"><h3>{text(outcome.headline)}</h3>'
        f"<p>{text(outcome.detail)}</p></div></div>"
    )


def _metrics(document: Document) -> str:
    plain, assisted = _run(document, "baseline"), _run(document, "assisted")
    unpadded = _run(document, "baseline_unpadded")
    rate = assisted.get("acceptance_rate")
    candidates, accepted = (assisted.get(f"num_{k}_tokens") for k in ("candidate", "accepted"))
    drafted = f"{accepted or 0:,} of {candidates:,} candidates" if candidates else "no candidates"
    predicted, bound = document.get("predicted_speedup"), document.get("speedup_bound")
    if one_plain(document):
        baselines = [_rate("Plain decoding", plain)]
    else:
        baselines = [
            _rate("Plain, same shapes", plain),
            _rate("Plain, fastest", unpadded),
            _metric("Same-shape speedup", times(document.get("decode_speedup_same_shape"))),
        ]
    cells = [
        _rate(methods.name(document.get("method")), assisted),
        *baselines,
        _metric("Wall speedup", times(document.get("wall_speedup")), "end to end"),
        _metric(
            "Speedup bound",
            times(bound),
            "from this run" if predicted is None else f"predicted {times(predicted)}",
        ),
        _metric("Acceptance length τ", number(assisted.get("mean_acceptance_length")), "tokens"),
        _metric("Acceptance rate", "–" if rate is None else f"{rate:.1%}", drafted),
        _metric("Tokens per round", number(assisted.get("tokens_per_round"))),
        _metric(
            "Time to first token",
            milliseconds(assisted.get("ttft_s")),
            f"plain {milliseconds(plain.get('ttft_s'))}",
        ),
    ]
    return f'<dl class="uag-metrics">{"".join(cells)}</dl>{_glossary(document)}'


def _rate(name: str, run: Mapping[str, Any]) -> str:
    return _metric(name, number(run.get("tokens_per_second"), 1), "tokens/s")


def _glossary(document: Document) -> str:
    """What the numbers above it mean, folded up."""
    left_out = ("Plain, same shapes", "Plain, fastest") if one_plain(document) else ()
    items = "".join(
        f"<dt>{text(name)}</dt><dd>{text(meaning)}</dd>"
        for name, meaning in MEANINGS
        if name not in left_out
    )
    return (
        '<details class="uag-glossary"><summary>What these numbers mean</summary>'
        f"<dl>{items}</dl></details>"
    )


def time_split(document: Document) -> str:
    """Where the method's wall time went: one bar and its legend, which says the same in words."""
    assisted = _run(document, "assisted")
    known = [
        (key, name, hint, float(assisted[key]))
        for key, name, hint in PARTS
        if assisted.get(key) is not None
    ]
    if not str(document.get("method") or "uag").startswith("uag"):
        known = [
            (k, n, "the text so far proposes" if k == "draft_s" else h, s) for k, n, h, s in known
        ]
    total = sum(part[3] for part in known)
    if not known or total <= 0:
        return ""
    bars = "".join(
        f'<span data-part="{key}" style="width:{seconds / total:.4%}"></span>'
        for key, _, _, seconds in known
    )
    legend = "".join(
        f'<li><span class="uag-key" data-part="{key}" aria-hidden="true"></span>'
        f"<strong>{text(name)}</strong> {seconds / total:.1%} "
        f'<span class="uag-note">{text(milliseconds(seconds))}, {text(hint)}</span></li>'
        for key, name, hint, seconds in known
    )
    return (
        '<section class="uag-split" aria-label="Where the time went"><h3>Where the time went</h3>'
        f'<div class="uag-bar" aria-hidden="true">{bars}</div><ul>{legend}</ul></section>'
    )


def notices(document: Document) -> str:
    items = "".join(f"<li>{text(item)}</li>" for item in document.get("notices") or ())
    return f'<ul class="uag-notices" aria-label="Notices">{items}</ul>' if items else ""


def models_line(document: Document) -> str:
    """Which models really ran, at which precision, on what."""
    target, assistant = _run(document, "target"), _run(document, "assistant")
    exact = "exact" if document.get("exact") else "not exact"
    seed = document.get("seed")
    items = [
        f"target {target.get('id', '–')}",
        f"assistant {assistant['id']}" if assistant.get("id") else "no assistant",
        f"{target.get('dtype', '–')} on {target.get('device', '–')}",
        f"{document.get('path', '–')} path",
        exact,
    ]
    if document.get("compiled"):
        items.append(f"compiled in {document.get('compile_s') or 0:.1f} s, not counted")
    if seed is not None:
        items.append(f"seed {seed}")
    return f'<p class="uag-models">{" · ".join(text(item) for item in items)}</p>'


def why(advice: Advice) -> str:
    """What limits this pair, most first, and what to change."""
    change = advice.change.sentence if advice.change else None
    items = "".join(
        f'<li data-kind="{"change" if sentence == change else "reason"}">{text(sentence)}</li>'
        for sentence in advice.sentences
    )
    return (
        '<section class="uag-why" aria-label="Why this speed"><h3>Why this speed</h3>'
        f"<ul>{items}</ul></section>"
    )


def results(document: Document, advice: Advice | None = None) -> str:
    """Everything under the panels except the chart and its table."""
    reasons = why(advice) if advice else ""
    return (
        f'<div class="uag-results">{_headline(document)}{reasons}{_metrics(document)}'
        f"{time_split(document)}{notices(document)}{models_line(document)}</div>"
    )


def download(document: Document, filename: str = "uag-compare.json") -> str:
    """A link that holds the whole document, so that nothing is kept on the server for it."""
    body = serialization.dumps(document)
    data = base64.b64encode(body.encode("utf-8")).decode("ascii")
    return (
        f'<a class="uag-download" download="{text(filename)}" '
        f'href="data:application/json;base64,{data}">Download the result (JSON)</a>'
    )
