"""The sentences under a comparison, from its document: did the texts agree, was it faster.

Pure: a document of `compare --json` in, plain text out. Knows no markup; whoever shows these
sentences escapes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from uag_core.ui import methods

Document = Mapping[str, Any]
Kind = Literal["good", "bad", "neutral"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A headline, a sentence of explanation and the tone to show them in."""

    headline: str
    detail: str
    kind: Kind


def number(value: Any, digits: int = 2, unit: str = "") -> str:
    """A measured number as text; a dash where nothing was measured."""
    if value is None:
        return "–"
    return f"{value:,.{digits}f}{unit}"


def milliseconds(seconds: Any) -> str:
    """Whole milliseconds; below ten a digit more, below one another."""
    if seconds is None:
        return "–"
    digits = 0 if seconds >= 0.00995 or seconds == 0 else 1 if seconds >= 0.00095 else 2
    return f"{seconds * 1000:,.{digits}f} ms"


def seconds(value: float) -> str:
    """Seconds to at least three digits that count, for a sentence."""
    digits = 1 if value >= 100 else 2 if value >= 1 else 3
    return f"{value:,.{digits}f} s"


def times(speedup: Any) -> str:
    """A speedup such as `1.72×`; never rounded across 1, so that a slowdown reads as one."""
    if speedup is None:
        return "–"
    for digits in (2, 3, 4):
        text = f"{speedup:.{digits}f}"
        if float(text) != 1.0 or speedup == 1.0:
            return f"{text}×"
    return f"{speedup:.5f}×"


def pace(speedup: Any) -> str:
    """The word beside a speedup: faster, slower, as fast, or not measured."""
    if speedup is None:
        return "not measured"
    if speedup == 1.0:
        return "as fast"
    return "faster" if speedup > 1.0 else "slower"


def tokens(count: Any) -> str:
    return "1 token" if count == 1 else f"{count or 0:,} tokens"


def _part(document: Document, name: str) -> Mapping[str, Any]:
    return document.get(name) or {}


def cancelled(document: Document) -> bool:
    """Whether either run was stopped before its end."""
    runs = (_part(document, "baseline"), _part(document, "assisted"))
    return any(run.get("finish_reason") in ("cancelled", None) for run in runs)


def one_plain(document: Document) -> bool:
    """Whether one plain decoding is both baselines, as where nothing is padded."""
    padded, unpadded = _part(document, "baseline"), _part(document, "baseline_unpadded")
    same = document.get("decode_speedup") == document.get("decode_speedup_same_shape")
    return same and bool(padded.get("tpot_s")) and padded["tpot_s"] == unpadded.get("tpot_s")


def _sampled(document: Document) -> bool:
    return bool((document.get("settings") or {}).get("temperature"))


def verdict(document: Document) -> Verdict:
    """Whether the method wrote what plain decoding writes, and where they part if it did not."""
    assisted, baseline = _part(document, "assisted"), _part(document, "baseline")
    identical, name = document.get("identical"), methods.name(document.get("method"))
    count = assisted.get("num_new_tokens")
    if cancelled(document):
        done = [
            f"{lane} {tokens(run.get('num_new_tokens'))}"
            for lane, run in (("plain", baseline), (name, assisted))
        ]
        return Verdict(
            "Stopped",
            f"The runs were cut short, so they are not compared ({', '.join(done)}).",
            "neutral",
        )
    if identical is None:
        return Verdict(
            "Not compared token by token",
            "This method equals plain sampling in distribution only, so two single runs may "
            "differ without either being wrong.",
            "neutral",
        )
    if identical:
        how = "sampled with the same seed" if _sampled(document) else "greedy"
        return Verdict(
            f"Identical, {tokens(count)}",
            f"{name} wrote exactly the ids that plain decoding writes ({how}).",
            "good",
        )
    return Verdict(*_parting(document))


def _parting(document: Document) -> tuple[str, str, Kind]:
    divergence = document.get("first_divergence") or {}
    position, gap = divergence.get("position"), divergence.get("top2_gap")
    if position is None:
        return "They differ", "The two runs did not produce the same ids.", "bad"
    headline = f"They part at token {position + 1}"
    where = f"The first {tokens(position)} are the same." if position else "No token is the same."
    if gap is None:
        return headline, f"{where} The logit gap there was not recorded.", "bad"
    sentence = f"{where} Plain decoding's logit gap there is {gap:.4g}"
    if document.get("exact"):
        return headline, f"{sentence}; an exact run should not differ.", "bad"
    return headline, f"{sentence}: a near tie flips when the shapes of the forwards differ.", "bad"


def speed_sentence(document: Document) -> str:
    """The speed finding in one sentence; also the title of the chart."""
    speedup, name = document.get("decode_speedup"), methods.name(document.get("method"))
    if speedup is None:
        return "No speedup was measured"
    plain = "plain decoding" if one_plain(document) else "the fastest plain decoding"
    if speedup == 1.0:
        return f"{name} decodes exactly as fast as {plain}"
    if speedup > 1.0:
        return f"{name} decodes {times(speedup)} as fast as {plain}"
    return f"{name} is slower: {times(speedup)} the speed of {plain}"
