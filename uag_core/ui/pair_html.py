"""A pair's report as HTML: the verdict and the hazards first, then small tables.

Pure strings; every text of a report is hostile and goes through `token_html.text`. Imports neither
torch nor gradio and computes nothing.
"""

from __future__ import annotations

from typing import Any

from uag_core.ui.token_html import breakable, table, text

Report = dict[str, Any]
SIDES = ("target", "assistant")
_KINDS = {"works": "good", "unlikely": "bad", "plain": "bad"}
_LEVELS = {"loss": "loses text", "watch": "good to know", "handled": "taken care of"}
_ROLES = {
    "bos": "Begins a text",
    "eos": "Ends a text",
    "end_of_turn": "Ends a turn",
    "pad": "Pads",
    "unk": "Unknown",
}
PLACEHOLDER = (
    '<p class="uag-note">Looks at tokenizers and configurations only; no weights are loaded.</p>'
)


def report_html(report: Report) -> str:
    """The whole report of `inspection.inspect_pair`."""
    return (
        f'<div class="uag-results uag-pair">{_verdict(report)}{_watch(report)}'
        f'{_hazards(report)}<div class="uag-pair-tables">{_models(report)}{_text(report)}'
        f"{_controls(report)}{_vocabulary(report)}</div>{_method(report)}</div>"
    )


def _items(lines: list[str], kind: str, label: str) -> str:
    if not lines:
        return ""
    items = "".join(f"<li>{text(line)}</li>" for line in lines)
    return f'<ul class="{kind}" aria-label="{text(label)}">{items}</ul>'


def _verdict(report: Report) -> str:
    verdict = report["verdict"]
    expect = "".join(f"<p>{text(line)}</p>" for line in verdict["expect"])
    kind = _KINDS.get(verdict["level"], "bad")
    return (
        f'<section class="uag-verdict" data-kind="{kind}" aria-label="Verdict">'
        f"<h3>{text(verdict['headline'])}</h3>{expect}</section>"
    )


def _watch(report: Report) -> str:
    return _items(report["verdict"]["watch"], "uag-notices", "What to watch")


def _hazards(report: Report) -> str:
    rows: list[tuple[str, ...]] = []
    for side in SIDES:
        for hazard in report["hazards"][side]:
            level = _LEVELS.get(hazard["level"], hazard["level"])
            rows.append((side.capitalize(), level, hazard["what"], hazard["example"] or "–"))
    if not rows:
        return '<p class="uag-note">Both tokenizers give every text back as it was.</p>'
    order = list(_LEVELS.values())
    rows.sort(key=lambda row: order.index(row[1]) if row[1] in order else 0)
    return table("Between text and tokens", ("Tokenizer", "", "What", "Example"), rows)


def _both(name: str, value: Any) -> tuple[str, ...]:
    return (name, *(str(value(side)) for side in SIDES))


def _models(report: Report) -> str:
    def cache(side: str) -> str:
        kinds = report[side]["cache"]
        return ", ".join(f"{n} × {kind}" for kind, n in kinds.items()) or "–"

    rows = [
        _both("Name", lambda s: report[s]["id"]),
        _both("Kind", lambda s: report[s]["model_type"]),
        _both("Parameters", lambda s: size(report[s]["parameters"])),
        _both("Context", lambda s: _count(report[s]["context"], "no limit")),
        _both("Cache layers", cache),
        _both("Window", lambda s: _count(report[s]["window"], "–")),
        _both("Rolls back", lambda s: "yes" if report[s]["rolls_back"] else "no"),
    ]
    return breakable(table("Models", ("", "Target", "Assistant"), rows))


def _text(report: Report) -> str:
    fertility, cuts = report["fertility"], report["boundaries"]
    rows = [
        _both("Tokens", lambda s: _count(fertility[s]["tokens"], "–")),
        _both("Per word", lambda s: _number(fertility[s]["tokens_per_word"])),
        _both("Per character", lambda s: _number(fertility[s]["tokens_per_character"])),
        _both("Cuts shared", lambda s: _share(cuts[f"share_of_{s}"])),
        _both("Tokens shared", lambda s: _share(report["vocabulary"][f"weighted_{s}"])),
    ]
    given = "your text" if report["text"]["given"] else "a sample"
    name = f"On {given} of {report['text']['characters']:,} characters"
    return table(name, ("", "Target", "Assistant"), rows)


def _controls(report: Report) -> str:
    def token(side: str, role: str) -> str:
        value = report["control_tokens"][side][role]
        return "–" if value is None else f"{value['token']} ({value['id']})"

    rows = [_both(name, lambda s, r=role: token(s, r)) for role, name in _ROLES.items()]
    chat = {side: report["control_tokens"][side]["chat_template"] for side in SIDES}
    rows.append(_both("Chat template", lambda s: "yes" if chat[s] else "no"))
    return table("Control tokens", ("", "Target", "Assistant"), rows)


def _vocabulary(report: Report) -> str:
    words = report["vocabulary"]
    rows = [
        _both("Tokenizer", lambda s: report[s]["tokenizer"]["kind"]),
        _both("Text tokens", lambda s: _count(words[f"{s}_tokens"], "–")),
        _both("Shared", lambda s: _share(words[f"share_of_{s}"])),
    ]
    name = f"Vocabularies, {words['shared']:,} pieces shared"
    return table(name, ("", "Target", "Assistant"), rows)


def _method(report: Report) -> str:
    how = report["method"]
    lines = [*how["why"], *report["differences"], *how["exact"]]
    items = "".join(f"<p>{text(line)}</p>" for line in lines)
    return f'<section class="uag-how"><h3>How it runs, and why</h3>{items}</section>'


def error(message: str) -> str:
    """What to show instead of a report; a screen reader announces it."""
    return f'<p class="uag-error" role="alert"><strong>Error.</strong> {text(message)}</p>'


def size(count: int | None) -> str:
    """A number of parameters as people write it: 135M, 7.2B."""
    if count is None:
        return "–"
    for unit, letter in ((1e9, "B"), (1e6, "M"), (1e3, "K")):
        if count >= unit:
            return f"{count / unit:.3g}{letter}"
    return str(count)


def _count(value: int | None, none: str) -> str:
    return none if value is None else f"{value:,}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"
