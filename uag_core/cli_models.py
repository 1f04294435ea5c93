"""`python -m uag_core models`: the search, the presets and the plan of a model, as text or JSON.

Knows the keys of the catalogue and of a plan; computes nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Mapping
from typing import Any, TextIO

from uag_core.cli_text import printable


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of the command."""
    add = parser.add_argument
    add("query", nargs="?", default="", metavar="QUERY", help="words of the model's name")
    add("--limit", type=int, default=12, metavar="N", help="at most so many; default 12")
    add(
        "--plan",
        metavar="MODEL",
        help="instead: what this one would need here, and whether it would work",
    )
    add("--tokens", type=int, default=2048, metavar="N", help="with --plan; default 2048")
    add("--dtype", default="auto", metavar="TYPE", help="with --plan; default auto")
    add("--device", default="auto", metavar="DEVICE", help="with --plan; default auto")
    add("--json", action="store_true", help="print JSON, and nothing else")


def run(args: argparse.Namespace) -> int:
    """Run the command; the exit status.

    Raises the errors of the search. A model that would not work is an answer, not an error.
    """
    output = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):  # whatever a library prints
        document, text = _find(args)
    output.write(as_json(document, output) if args.json else text + "\n")
    return 0


def as_json(document: Any, stream: TextIO) -> str:
    """`document` as lines of JSON; plain ASCII where the stream could not carry the text."""
    from uag_core.serialization import dumps

    unicode = (stream.encoding or "").lower().replace("-", "") == "utf8"
    return dumps(document, ascii_only=not unicode) + "\n"


def _find(args: argparse.Namespace) -> tuple[dict[str, Any], str]:
    if args.plan is not None:
        from uag_core.models import planning
        from uag_core.validation import number

        tokens = number("tokens", args.tokens, low=1, high=1 << 24, integer=True)
        plan = planning.plan(args.plan, dtype=args.dtype, device=args.device, tokens=tokens)
        line = planning.line(plan)
        if not line.startswith(plan["ref"]):
            line = f"{plan['ref']}: {line}"
        return plan, printable(line, one_line=True)
    from uag_core.models import catalogue

    found = catalogue.search(args.query, args.limit)
    return found, _table(found)


def _table(found: Mapping[str, Any]) -> str:
    from uag_core.models import families

    lines = [found["notice"], ""] if found["notice"] else []
    rows: list[tuple[str, ...]] = [("model", "size", "licence", "likes", "")]
    for entry in found["models"]:
        size = families.count_text(entry["parameters"]) if entry["parameters"] else "-"
        marks = [name for name in ("gated", "cached") if entry[name]]
        if entry["fits"] is not None:
            marks.append("fits" if entry["fits"] else "too big")
        likes = "-" if entry["likes"] is None else str(entry["likes"])
        rows.append((entry["id"], size, entry["licence"] or "-", likes, ", ".join(marks)))
    lines += _columns(rows) if len(rows) > 1 else ["No model was found."]
    if not found["query"]:
        lines += ["", "Pairs to start from:"]
        rows = [
            (
                preset["target"],
                "with " + preset["assistant"],
                "gated" if preset["gated"] else "",
            )
            for preset in found["presets"]
        ]
        lines += _columns(rows)
    return "\n".join(lines)


def _columns(rows: list[tuple[str, ...]]) -> list[str]:
    clean = [[printable(cell, one_line=True) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in clean) for i in range(len(clean[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in clean
    ]
