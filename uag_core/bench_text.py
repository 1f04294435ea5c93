"""The result of a benchmark as lines of text: one table by category, one of the sweep.

Pure: the `bench --json` object in, lines out. Names of prompts and categories are somebody's
input: control characters never reach the terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from uag_core.cli_text import printable

Document = Mapping[str, Any]
NONE = "-"


def report(document: Document) -> Iterator[str]:
    """The lines to print."""
    yield from (printable(line, one_line=True) for line in _where(document))
    yield ""
    yield "decode speedup against the fastest plain decoding (95 % interval over prompts)"
    yield from _by_category(document)
    yield ""
    yield from _by_method(document)
    for method, points in (document.get("sweep") or {}).items():
        yield ""
        yield f"{method}: decode speedup by number of draft tokens"
        yield from _table(
            ["draft tokens", "decode speedup", "same shape", "tau", "accepted"],
            [_point(point) for point in points],
        )
    yield from _notices(document)


def speedup(value: Mapping[str, Any] | None) -> str:
    """`1.52x [1.40, 1.66]`, without the interval where one prompt says nothing about others."""
    value = value or {}
    if value.get("geomean") is None:
        return NONE
    text = f"{value['geomean']:.2f}x"
    if value.get("low") is None:
        return text
    return f"{text} [{value['low']:.2f}, {value['high']:.2f}]"


def duration(seconds: float) -> str:
    """A time to wait, in the largest unit that says enough."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def number(value: float | None, form: str = ".2f") -> str:
    return NONE if value is None else format(value, form)


def _where(document: Document) -> Iterator[str]:
    pair, machine = document["pair"], document["machine"]
    settings = document["settings"]
    for role in ("target", "assistant"):
        model = pair.get(role)
        if model:
            yield f"{role:<10} {model['id']}, {model['dtype']} on {model['device']}"
    exact = "exact" if settings.get("exact") else "not exact"
    yield (
        f"{', '.join(machine.get('devices') or ())}: {machine.get('processor')}, "
        f"{machine.get('threads')} threads, "
        f"torch {machine.get('torch')}, transformers {machine.get('transformers')}"
    )
    prompts = len({row["prompt_id"] for row in document["rows"]})
    yield (
        f"{prompts} prompts, {settings['max_new_tokens']} new tokens, "
        f"{settings['repeats']} repeats, {exact}{', compiled' if document.get('compiled') else ''}"
    )


def _by_category(document: Document) -> Iterator[str]:
    methods = list(document["summary"])
    shown = [name for name in methods if name != "baseline"] or methods
    groups = list((document.get("categories") or {}).items())
    rows = [
        [category, str(_prompts(values)), *(speedup(_of(values, name)) for name in shown)]
        for category, values in groups
    ]
    summary = document["summary"]
    total = [str(_prompts(summary)), *(speedup(_of(summary, name)) for name in shown)]
    yield from _table(["category", "prompts", *shown], [*rows, ["all", *total]])


def _of(values: Mapping[str, Any], method: str) -> Mapping[str, Any] | None:
    entry = values.get(method) or {}
    return entry.get("decode_speedup")


def _prompts(values: Mapping[str, Any]) -> int:
    return max((entry["num_prompts"] for entry in values.values()), default=0)


def _by_method(document: Document) -> Iterator[str]:
    against = list(
        dict.fromkeys(name for entry in document["summary"].values() for name in entry["against"])
    )
    head = ["method", "tokens/s", "end to end", "same shape", "of bound", "tau", "accepted"]
    head += ["worst", "identical", *(f"vs {name}" for name in against)]
    rows = []
    for name, entry in document["summary"].items():
        compared = entry["identical"] + entry["different"]
        rows.append(
            [
                name,
                number(entry["tokens_per_second"], ".1f"),
                number(entry["end_to_end_tokens_per_second"], ".1f"),
                speedup(entry["decode_speedup_same_shape"]),
                number(entry["share_of_bound"]),
                number(entry["mean_acceptance_length"]),
                number(entry["acceptance_rate"], ".0%"),
                number(entry["worst"]),
                f"{entry['identical']}/{compared}" if compared else NONE,
                *(speedup(entry["against"].get(other)) for other in against),
            ]
        )
    yield from _table(head, rows)


def _point(point: Mapping[str, Any]) -> list[str]:
    count = point["num_assistant_tokens"]
    return [
        "auto" if count is None else str(count),
        speedup(point["decode_speedup"]),
        speedup(point["decode_speedup_same_shape"]),
        number(point["mean_acceptance_length"]),
        number(point["acceptance_rate"], ".0%"),
    ]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    cells = [[printable(str(cell), one_line=True) for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for index, row in enumerate(cells):
        first, *others = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join([first, *others]).rstrip()
        if index == 0:
            yield "-" * min(120, sum(widths) + 2 * len(widths))


def _notices(document: Document) -> Iterator[str]:
    for line in document.get("notices") or ():
        yield f"note: {printable(str(line), one_line=True)}"
