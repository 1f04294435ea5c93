"""The command `python -m uag_core inspect`: a pair's report as text or as JSON.

Knows how a report is printed, not how it comes about.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from uag_core.cli_text import printable
from uag_core.config import DEFAULT_ASSISTANT, DEFAULT_TARGET

_ROLES = ("bos", "eos", "pad", "unk", "end_of_turn")


def add_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--target", default=DEFAULT_TARGET, metavar="MODEL", help="default: %(default)s")
    add("--assistant", default=DEFAULT_ASSISTANT, metavar="MODEL", help="default: %(default)s")
    text = parser.add_mutually_exclusive_group()
    text.add_argument("--text", help="count tokens on this text instead of a sample")
    text.add_argument("--text-file", metavar="FILE", help="read it from FILE; - is stdin")
    add("--json", action="store_true", help="print the report as JSON, and nothing else")


def run(
    args: argparse.Namespace, read: Callable[[str], str], progress: Callable[[str], None]
) -> int:
    """Print the report that `args` asks for; `read(name)` gives the text of a file."""
    text = args.text if args.text_file is None else read(args.text_file)
    output = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        from uag_core.inspection import inspect_pair

        report = inspect_pair(args.target, args.assistant, text, progress=progress)
    if args.json:
        from uag_core.serialization import dumps

        unicode = (output.encoding or "").lower().replace("-", "") == "utf8"
        output.write(dumps(report, ascii_only=not unicode) + "\n")
    else:
        for line in lines(report):
            output.write(printable(line) + "\n")
    return 0


def lines(report: dict[str, Any]) -> Iterator[str]:
    """The report as lines of text."""
    verdict = report["verdict"]
    yield verdict["headline"]
    yield from (f"  {line}" for line in [*verdict["expect"], *report["method"]["why"]])
    yield from (f"  ! {line}" for line in verdict["watch"])
    yield ""
    yield from _columns(report)
    yield ""
    words = report["vocabulary"]
    cuts = report["boundaries"]
    sample = "the text given" if report["text"]["given"] else "a sample text"
    yield f"shared pieces  {words['shared']:,}: {_share(words['share_of_target'])} of the target's"
    yield (
        f"on {sample}  {_share(words['weighted_target'])} of the target's tokens are shared "
        f"pieces, {_share(cuts['share_of_target'])} of its boundaries are the assistant's too"
    )
    yield from (f"differs  {line}" for line in report["differences"])
    for side in ("target", "assistant"):
        for hazard in report["hazards"][side]:
            example = f" ({hazard['example']})" if hazard["example"] else ""
            yield f"{side}, {hazard['level']}  {hazard['what']}{example}"
    yield from (f"exact  {line}" for line in report["method"]["exact"])


def _columns(report: dict[str, Any]) -> Iterator[str]:
    rows: list[tuple[str, str, str]] = [("", "target", "assistant")]

    def add(name: str, value: Callable[[str], str]) -> None:
        rows.append((name, value("target"), value("assistant")))

    add("model", lambda s: str(report[s]["id"]))
    add("kind", lambda s: str(report[s]["model_type"]))
    add("parameters", lambda s: _count(report[s]["parameters"]))
    add("context", lambda s: _count(report[s]["context"], none="no limit"))
    add("cache", lambda s: ", ".join(f"{n} {k}" for k, n in report[s]["cache"].items()))
    add("tokenizer", lambda s: report[s]["tokenizer"]["kind"])
    add("ids", lambda s: _count(report[s]["tokenizer"]["size"]))
    add("tokens/word", lambda s: _number(report["fertility"][s]["tokens_per_word"]))
    add("tokens/char", lambda s: _number(report["fertility"][s]["tokens_per_character"]))
    for role in _ROLES:
        ours, theirs = (report["control_tokens"][side][role] for side in ("target", "assistant"))
        rows.append((role.replace("_", " "), _token(ours), _token(theirs)))
    add("chat template", lambda s: "yes" if report["control_tokens"][s]["chat_template"] else "no")
    width = min(44, max(len(row[1]) for row in rows))
    for row in rows:
        name, left, right = (printable(cell, one_line=True) for cell in row)
        yield f"{name:<14} {left:<{width}}  {right}".rstrip()


def _token(value: dict[str, Any] | None) -> str:
    return "-" if value is None else f"{value['token']} ({value['id']})"


def _count(value: int | None, none: str = "unknown") -> str:
    return none if value is None else f"{value:,}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"
