"""The two text panels and the other small pieces of markup around model text.

Pure strings. Everything a model or a person wrote is hostile: it is escaped here, once, and
nothing else in this module lets text through. Imports neither torch nor gradio.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

_INVISIBLE = {code: f"\\x{code:02x}" for code in range(32) if chr(code) not in "\t\n\r"}
_INVISIBLE[0x7F] = "\\x7f"
# Controls that reorder what follows would let text leave its panel's reading order.
_INVISIBLE.update(
    {code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}
)


def text(value: object) -> str:
    """Any text as HTML that can only be read: escaped, control characters spelled out.

    A carriage return is a reference, since a parser would make a newline of a bare one.
    """
    return escape(str(value).translate(_INVISIBLE), quote=True).replace("\r", "&#13;")


def _rate(tokens_per_second: float | None) -> str:
    return "" if tokens_per_second is None else f"{tokens_per_second:,.1f} tokens/s"


def panel(
    *,
    title: str,
    subtitle: str,
    answer: str,
    num_new_tokens: int = 0,
    tokens_per_second: float | None = None,
    finish_reason: str | None = None,
    active: bool = False,
    placeholder: str = "",
) -> str:
    """One side of the comparison: a heading with its counts, and the answer below it.

    The structure never changes while an answer grows, so the page only swaps the text node and
    the reader's scroll position survives.
    """
    counts = [f"{num_new_tokens:,} token{'' if num_new_tokens == 1 else 's'}"]
    if rate := _rate(tokens_per_second):
        counts.append(rate)
    if finish_reason:
        counts.append(FINISH_WORDS.get(finish_reason, finish_reason))
    foot = " · ".join(counts) if num_new_tokens or finish_reason else ""
    state = "active" if active else "idle"
    shown = text(answer) if answer else ""
    return (
        f'<section class="uag-panel" data-state="{state}" aria-label="{text(title)}">'
        f'<header><h3>{text(title)}</h3><p class="uag-sub">{text(subtitle)}</p></header>'
        f'<div class="uag-answer" tabindex="0" role="region" aria-label="{text(title)}: answer">'
        f'<div class="uag-text" data-empty="{text(placeholder)}">{shown}</div></div>'
        f"<footer>{text(foot)}</footer></section>"
    )


FINISH_WORDS = {
    "eos": "ended by itself",
    "stop_string": "ended at a stop string",
    "length": "reached the token limit",
    "context": "reached the end of the context",
    "cancelled": "stopped",
}


def status(
    message: str,
    *,
    state: str = "idle",
    elapsed_s: float | None = None,
    name: str = "uag-status-text",
) -> str:
    """The status line, whose text has the id `name`.

    The clock is hidden from screen readers, which hear changes of phase.
    """
    clock = "" if elapsed_s is None else f"{int(elapsed_s)} s"
    return (
        f'<div class="uag-status" data-state="{text(state)}">'
        '<span class="uag-dot" aria-hidden="true"></span>'
        f'<span role="status" aria-live="polite" id="{name}">{text(message)}</span>'
        f'<span class="uag-clock" aria-hidden="true">{clock}</span></div>'
    )


def error(message: str | None, *, name: str = "uag-error-text") -> str:
    """The error region: always in the page, so that a screen reader announces what appears."""
    shown = f'<p class="uag-error"><strong>Error.</strong> {text(message)}</p>' if message else ""
    return f'<div role="alert" id="{name}">{shown}</div>'


def breakable(html: str) -> str:
    """A table whose names of models may be broken behind their slash."""
    return re.sub(r"(<td>[\w.-]+/)(?=[\w.-]+</td>)", r"\1<wbr>", html)


def table(caption: str, head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A plain table; the first column names each row."""
    cells = "".join(f'<th scope="col">{text(name)}</th>' for name in head)
    body = "".join(
        f'<tr><th scope="row">{text(row[0])}</th>'
        + "".join(f"<td>{text(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="uag-table"><table><caption>{text(caption)}</caption>'
        f"<thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table></div>"
    )
