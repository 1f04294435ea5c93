"""Two tokenizations of a text as the Tokenize tab shows them: a drawing's JSON and two tables.

Pure; everything that a person or a tokenizer wrote is escaped here. Knows no component.
"""

from __future__ import annotations

from typing import Any

from uag_core.tokenization.round_trip import visible
from uag_core.tokenization.side_by_side import rows
from uag_core.ui import token_html
from uag_core.ui.alignment_json import compact, label

MAX_DRAWN = 3_000  # bytes of the text that are drawn; everything is counted
_SHOWN_LOSSES = 12
_SHOWN_CHARACTERS = 40


def drawing_json(found: dict[str, Any]) -> str:
    """What assets/js/tokenize.js draws of `side_by_side`'s answer.

    `{"names": [assistant, target], "upper", "lower", "links", "shared", "note"}`; a token is
    [id, label, start, end, group, control].
    """
    shown = rows(found, MAX_DRAWN)
    note = None
    if shown["cut"] is not None:
        note = f"The drawing shows the first {shown['cut']:,} bytes; the counts are of all of it."
    return compact(
        {
            "names": [found["assistant"]["name"], found["target"]["name"]],
            "upper": [_token(*item) for item in shown["upper"]],
            "lower": [_token(*item) for item in shown["lower"]],
            "links": shown["links"],
            "shared": shown["shared"],
            "note": note,
        }
    )


def _token(token: dict[str, Any], span: tuple[float, float], group: int) -> list[Any]:
    shown = label(bytes.fromhex(token["bytes"]))
    return [token["id"], shown, *span, group, int(token["control"])]


def summary_html(found: dict[str, Any]) -> str:
    """The counts as a table, the shared boundaries as a sentence, the losses as a list."""
    sides = (("Target", found["target"]), ("Assistant", found["assistant"]))
    table = token_html.table(
        "Tokens of this text",
        ("", *(role for role, _ in sides)),
        [
            (label, *(value(one) for _, one in sides))
            for label, value in (
                ("Name", lambda one: one["name"]),
                ("Tokens", lambda one: f"{one['count']:,}"),
                ("Characters per token", lambda one: _ratio(one["chars_per_token"])),
                ("Bytes per token", lambda one: _ratio(one["bytes_per_token"])),
                ("Vocabulary", lambda one: f"{one['vocab_size']:,}"),
                ("Round trip", lambda one: _round_trip(one["round_trip"])),
            )
        ],
    )
    return (
        token_html.breakable(table)
        + f'<p class="uag-note">{token_html.text(_shared(found))}</p>'
        + _lost(sides)
    )


def _ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _round_trip(trip: dict[str, Any]) -> str:
    count = trip["num_losses"]
    return "exact" if trip["exact"] else f"{count:,} loss{'' if count == 1 else 'es'}"


def _shared(found: dict[str, Any]) -> str:
    shared = found["shared_boundaries"]
    if found["same_tokenizer"]:
        return "Both have the same tokenizer: drafts need no re-encoding."
    if shared["percent"] is None:
        return "No token boundary inside the text."
    return (
        f"{shared['count']:,} token boundaries are shared: {shared['percent']:.0f} % of those "
        f"that either has ({shared['target']:,} in the target, "
        f"{shared['assistant']:,} in the assistant)."
    )


def _lost(sides: tuple[tuple[str, dict[str, Any]], ...]) -> str:
    parts = []
    for role, one in sides:
        losses = one["round_trip"]["losses"]
        if not losses:
            continue
        items = "".join(
            f"<li><b>{token_html.text(loss['reason'])}</b>, byte {loss['start']:,}: "
            f"<code>{_shown(loss['before'])}</code> becomes <code>{_shown(loss['after'])}</code>. "
            f'<span class="uag-dim">{token_html.text(loss["why"])}</span></li>'
            for loss in losses[:_SHOWN_LOSSES]
        )
        more = one["round_trip"]["num_losses"] - min(len(losses), _SHOWN_LOSSES)
        rest = f"<li>and {more:,} more</li>" if more else ""
        parts.append(
            f'<section class="uag-lost"><h3>What the {role.lower()} does not give back</h3>'
            f"<ul>{items}{rest}</ul></section>"
        )
    return "".join(parts)


def _shown(text: str) -> str:
    cut = text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"
    return token_html.text(visible(cut)) if cut else "nothing"
