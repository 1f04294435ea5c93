"""The results of a benchmark as markup: a headline, two tables, notices and downloads.

Pure: the `bench --json` object in, strings out. Names of prompts and categories are hostile text.
"""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Mapping
from typing import Any

from uag_core import serialization
from uag_core.ui.bench_charts import ENGINE_NAMES, compared, kinds_sentence
from uag_core.ui.token_html import table, text
from uag_core.ui.verdict import number, pace, times

Document = Mapping[str, Any]
HEAD = (
    "Engine",
    "Decode speedup",
    "Same shape",
    "End to end",
    "Tokens/s",
    "τ",
    "Accepted",
    "Of bound",
    "Worst",
    "Same ids",
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def speedup(value: Mapping[str, Any] | None) -> str:
    """`1.52× (1.40 to 1.66)`: the geometric mean and its 95 % interval over prompts."""
    value = value or {}
    if value.get("geomean") is None:
        return "–"
    if value.get("low") is None:
        return times(value["geomean"])
    return f"{times(value['geomean'])} ({value['low']:.2f} to {value['high']:.2f})"


def headline(document: Document, *, stopped: bool = False) -> str:
    """The finding in large print, and whether the ids were the same."""
    found = _headline(document, stopped) if document.get("rows") else "<p>Nothing was measured.</p>"
    return f'<div class="uag-results">{found}</div>'


def tables(document: Document) -> str:
    """Every number in tables, the notices, and what it was measured on."""
    if not document.get("rows"):
        return ""
    return (
        f'<div class="uag-results">{_engines(document)}'
        f"{_against(document)}{_categories(document)}{_sweep(document)}"
        f"{_notices(document)}{_where(document)}</div>"
    )


def progress(done: int, total: int, line: str) -> str:
    """A bar and the words that say the same."""
    if not total:
        return ""
    return (
        f'<div class="uag-progress" aria-hidden="true"><span style="width:{done / total:.1%}">'
        f'</span></div><p class="uag-note">{text(line)}</p>'
    )


def _headline(document: Document, stopped: bool) -> str:
    summary = document["summary"]
    names = [name for name in summary if name in _OURS] or compared(document) or list(summary)
    best = max(names, key=lambda name: summary[name]["decode_speedup"]["geomean"] or 0.0)
    entry = document["summary"][best]
    value = entry["decode_speedup"]["geomean"]
    prompts = len({row["prompt_id"] for row in document["rows"]})
    ours = [entry for name, entry in summary.items() if name in _OURS]
    kind, checked, detail = _identity(ours, bool(document["settings"].get("exact")))
    unfinished = " Stopped before the end." if stopped else ""
    return (
        f'<div class="uag-headline"><div class="uag-big" data-pace="{text(pace(value))}">'
        f'<span class="uag-number">{text(times(value))}</span>'
        f'<span class="uag-word">{text(ENGINE_NAMES.get(best, best))}</span>'
        f'<span class="uag-note">{text(kinds_sentence(document))}, over '
        f"{prompts} prompt{'' if prompts == 1 else 's'}.{text(unfinished)}</span></div>"
        f'<div class="uag-verdict" data-kind="{kind}"><h3>{text(checked)}</h3>'
        f"<p>{text(detail)}</p></div></div>"
    )


def _identity(ours: list[Mapping[str, Any]], exact: bool) -> tuple[str, str, str]:
    """Tone, headline and sentence on whether our engines gave plain decoding's ids."""
    different = sum(entry["different"] for entry in ours)
    seen = different + sum(entry["identical"] for entry in ours)
    if not seen:
        return "neutral", "No ids to compare", "Only plain decoding and reference engines ran."
    if not different:
        return "good", "The same ids as plain decoding", f"In all {seen} runs of our engines."
    detail = f"They gave other ids than plain decoding, of {seen} runs of our engines"
    why = "; an exact run should not differ." if exact else ": near ties flip without fixed shapes."
    return "bad", f"{different} run{'' if different == 1 else 's'} differ", detail + why


_OURS = ("uag", "lookup", "uag+lookup")


def _engines(document: Document) -> str:
    rows = []
    for name, entry in document["summary"].items():
        seen = entry["identical"] + entry["different"]
        rate = entry["acceptance_rate"]
        rows.append(
            (
                ENGINE_NAMES.get(name, name),
                speedup(entry["decode_speedup"]),
                speedup(entry["decode_speedup_same_shape"]),
                speedup(entry["end_to_end_speedup"]),
                number(entry["tokens_per_second"], 1),
                number(entry["mean_acceptance_length"]),
                "–" if rate is None else f"{rate:.0%}",
                number(entry["share_of_bound"]),
                times(entry["worst"]),
                f"{entry['identical']} of {seen}" if seen else "–",
            )
        )
    return table("Geometric means over prompts, with 95 % intervals", HEAD, rows)


def _against(document: Document) -> str:
    """Our engines against transformers' own, end to end."""
    summary = document["summary"]
    others = list(dict.fromkeys(name for entry in summary.values() for name in entry["against"]))
    if not others:
        return ""
    rows = [
        (ENGINE_NAMES[name], *(speedup(entry["against"].get(other)) for other in others))
        for name, entry in summary.items()
        if name in _OURS
    ]
    head = ("End to end, against", *(ENGINE_NAMES.get(name, name) for name in others))
    return table("Against transformers' own engines", head, rows)


def _categories(document: Document) -> str:
    shown = compared(document)
    groups = document.get("categories") or {}
    if len(groups) < 2 or not shown:
        return ""
    rows = [
        (
            category,
            str(max((entry["num_prompts"] for entry in values.values()), default=0)),
            *(speedup((values.get(name) or {}).get("decode_speedup")) for name in shown),
        )
        for category, values in groups.items()
    ]
    head = ("Kind", "Prompts", *(ENGINE_NAMES.get(name, name) for name in shown))
    return table("Decode speedup by kind of prompt", head, rows)


def _sweep(document: Document) -> str:
    rows = [
        (
            f"{ENGINE_NAMES.get(name, name)}, "
            + (
                "auto"
                if point["num_assistant_tokens"] is None
                else str(point["num_assistant_tokens"])
            ),
            speedup(point["decode_speedup"]),
            speedup(point["decode_speedup_same_shape"]),
            number(point["mean_acceptance_length"]),
        )
        for name, points in (document.get("sweep") or {}).items()
        for point in points
    ]
    if not rows:
        return ""
    head = ("Draft tokens", "Decode speedup", "Same shape", "τ")
    return table("By number of draft tokens; 0 is plain decoding", head, rows)


def _notices(document: Document) -> str:
    items = "".join(f"<li>{text(item)}</li>" for item in document.get("notices") or ())
    return f'<ul class="uag-notices" aria-label="Notices">{items}</ul>' if items else ""


def _where(document: Document) -> str:
    pair, settings, machine = document["pair"], document["settings"], document["machine"]
    target, helper = pair["target"], pair.get("assistant")
    items = [
        f"target {target['id']}",
        f"assistant {helper['id']}" if helper else "no assistant",
        f"{target['dtype']} on {target['device']}",
        f"{settings['max_new_tokens']} new tokens",
        f"{settings['repeats']} repeats",
        "exact" if settings.get("exact") else "not exact",
        "compiled" if document.get("compiled") else "",
        str(machine.get("processor") or ""),
        f"{machine.get('threads')} threads",
    ]
    return f'<p class="uag-models">{" · ".join(text(item) for item in items if item)}</p>'


def as_csv(document: Document) -> str:
    """The rows as comma-separated values; texts that a spreadsheet would run are quoted."""
    rows = list(document.get("rows") or ())
    names = list(dict.fromkeys(key for row in rows for key, value in row.items() if _plain(value)))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow([_cell(row.get(name)) for name in names])
    return out.getvalue()


def _plain(value: Any) -> bool:
    return not isinstance(value, (dict, list))


def _cell(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return "" if value is None or not _plain(value) else value


def downloads(document: Document) -> str:
    """Links that hold the whole result, so that nothing is kept on the server for it."""
    if not document.get("rows"):
        return ""
    links = (
        ("uag-bench.json", "application/json", serialization.dumps(document), "JSON"),
        ("uag-bench.csv", "text/csv", as_csv(document), "rows as CSV"),
    )
    return " ".join(
        f'<a class="uag-download" download="{name}" href="data:{kind};base64,'
        f'{base64.b64encode(body.encode("utf-8")).decode("ascii")}">Download {label}</a>'
        for name, kind, body, label in links
    )
