"""What a comparison looks like on a terminal: a fold over the stream of `compare_stream`.

Model text is hostile input: control characters never reach the terminal. Knows the keys of the
`compare --json` document and the events; knows no models and no flags.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from textwrap import wrap
from typing import Any, TextIO

from uag_core import metrics
from uag_core.advice import explain
from uag_core.events import COMPILING, Notice, Started, Verified

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_CONTROL_AND_BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_NONE = "-"
_RULE = 72

_NAMES = {
    "baseline": "plain",
    "baseline_unpadded": "plain, unpadded",
    "uag": "UAG",
    "lookup": "prompt lookup",
    "uag+lookup": "UAG + lookup",
    "transformers": "transformers",
    "transformers_uag": "transformers UAG",
    "transformers_lookup": "transformers lookup",
}
_ROWS: tuple[tuple[str, str, str], ...] = (
    ("tokens", "num_new_tokens", "d"),
    ("tokens per second", "tokens_per_second", ".1f"),
    ("  end to end", "end_to_end_tokens_per_second", ".1f"),
    ("time to first token, s", "ttft_s", ".3f"),
    ("whole run, s", "wall_s", ".3f"),
    ("finished by", "finish_reason", ""),
)
_PARTS = (
    ("prefill", "prefill_s"),
    ("draft", "draft_s"),
    ("re-encode", "reencode_s"),
    ("verify", "verify_s"),
    ("other", "other_s"),
)


def printable(text: str, *, one_line: bool = False) -> str:
    """`text` with control characters (C0, DEL, C1) spelled out as \\xNN.

    Newlines and tabs stay, except with `one_line`, where they become spaces.
    """
    if one_line:
        text = " ".join(text.split())
        return _CONTROL_AND_BREAKS.sub(_escape, text)
    return _CONTROL.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


class TextReport:
    """Shows the steps of one comparison as they come, and a summary at the end.

    `output` None shows no texts (for --json); `tell` gets notices and progress, line by line.
    `document` is the result once the stream has ended, None before.
    """

    def __init__(
        self, output: TextIO | None, tell: Callable[[str], None], method: str = "uag"
    ) -> None:
        self._output = output
        self._tell = tell
        self._method = method
        self._shown: tuple[str, int] | None = None
        self._told: set[str] = set()
        self.document: Mapping[str, Any] | None = None
        self._reasons: list[str] = []

    def step(self, step: Any) -> None:
        """Take one `CompareStep` or the final `CompareDone`."""
        if hasattr(step, "document"):
            self._end_text()
            self.document = step.document
            run = metrics.median_run(step.runs.get(self._method) or [])
            advice = explain(step.document, run or [], step.profile)
            self._reasons = [line.replace("×", "x") for line in advice.sentences]
            for notice in step.document.get("notices") or ():
                self._notice(notice)
            return
        event = step.event
        if isinstance(event, Started):
            self._start(step.engine, step.repeat, event)
        elif isinstance(event, Notice) and step.engine == COMPILING:
            self._tell(f"{event.message}.")
        elif isinstance(event, Notice):
            self._notice(event.message)
        elif isinstance(event, Verified) and self._shown == (step.engine, step.repeat):
            self._write(printable(event.text))

    def _start(self, engine: str, repeat: int, event: Started) -> None:
        self._end_text()
        for notice in event.notices:
            self._notice(notice)
        name = _NAMES.get(engine, engine)
        if self._output is not None and repeat == 0 and engine in ("baseline", self._method):
            self._shown = (engine, repeat)
            self._write(f"--- {name} ".ljust(_RULE, "-") + "\n")
        else:
            self._tell(f"Warming up: {name}." if repeat < 0 else f"Run {repeat + 1}: {name}.")

    def _notice(self, message: str) -> None:
        if message not in self._told:
            self._told.add(message)
            self._end_text()
            self._tell(f"note: {message}")

    def _end_text(self) -> None:
        if self._shown is not None:
            self._shown = None
            self._write("\n\n")

    def _write(self, text: str) -> None:
        if self._output is not None and text:
            self._output.write(text)
            self._output.flush()

    def summary(self) -> None:
        """Write verdict, speeds and shares. To be called after the stream has ended."""
        if self.document is not None:
            reasons = [line for reason in self._reasons for line in wrap(f"- {reason}", _RULE)]
            lines = [*_summary(self.document), "", "why this speed", *reasons]
            self._write("\n".join(lines) + "\n")


def _summary(document: Mapping[str, Any]) -> list[str]:
    method = _NAMES.get(document.get("method") or "", document.get("method") or "assisted")
    assisted = document.get("assisted") or {}
    lines = ["-" * _RULE, verdict(document), ""]
    lines += _models(document)
    lines += _table(document, method, assisted)
    lines += ["", *_speedups(document), ""]
    lines.append(
        f"mean acceptance length (tau) {_number(assisted.get('mean_acceptance_length'), '.2f')}, "
        f"acceptance rate {_number(assisted.get('acceptance_rate'), '.1%')}, "
        f"tokens per round {_number(assisted.get('tokens_per_round'), '.2f')}"
    )
    lines.append(_split(assisted))
    if document.get("seed") is not None:
        lines.append(f"seed {document['seed']}")
    return lines


def verdict(document: Mapping[str, Any]) -> str:
    """One line: are the two outputs the same, and if not, where do they part."""
    identical = document.get("identical")
    tokens = (document.get("assisted") or {}).get("num_new_tokens")
    if identical is True:
        return f"identical, {tokens} tokens"
    if identical is None:
        return "the outputs were not compared"
    where = document.get("first_divergence") or {}
    line = f"different from token {where.get('position', '?')} on (counted from 0)"
    gap = where.get("top2_gap")
    return line if gap is None else f"{line}; there the two best plain logits are {gap:.4g} apart"


def _models(document: Mapping[str, Any]) -> list[str]:
    lines = []
    for role in ("target", "assistant"):
        model = document.get(role)
        if model:
            revision = f"@{_short(model['revision'])}" if model.get("revision") else ""
            where = f"{model.get('dtype')} on {model.get('device')}"
            lines.append(
                printable(f"{role:<10} {model.get('id')}{revision}, {where}", one_line=True)
            )
    return [*lines, ""]


def _short(revision: str) -> str:
    return revision[:12] if re.fullmatch(r"[0-9a-f]{40}", revision) else revision


def _table(document: Mapping[str, Any], method: str, assisted: Mapping[str, Any]) -> list[str]:
    columns: list[tuple[str, Mapping[str, Any]]] = [
        ("plain", document.get("baseline") or {}),
        (method, assisted),
    ]
    for reference in document.get("references") or ():
        name = reference.get("engine") or "reference"
        columns.append((_NAMES.get(name, name), reference))
    widths = [max(10, len(name)) for name, _ in columns]
    head = "".join(f"  {name:>{width}}" for (name, _), width in zip(columns, widths, strict=True))
    lines = [f"{'':<22}{head}"]
    for title, key, form in _ROWS:
        cells = "".join(
            f"  {_number(values.get(key), form):>{width}}"
            for (_, values), width in zip(columns, widths, strict=True)
        )
        lines.append(f"{title:<22}{cells}")
    unpadded = (document.get("baseline_unpadded") or {}).get("tokens_per_second")
    if unpadded is not None:
        lines.append(f"plain without padding: {unpadded:.1f} tokens per second")
    return lines


def _speedups(document: Mapping[str, Any]) -> list[str]:
    value = document.get("decode_speedup")
    if value is None:
        first = "decode speedup: not measured"
    else:
        kind = "faster" if value > 1 else "slower" if value < 1 else "the same"
        first = f"decode speedup {value:.2f}x ({kind}), against the fastest plain decoding"
    others = (
        ("same shapes", "decode_speedup_same_shape"),
        ("whole run", "wall_speedup"),
        ("bound", "speedup_bound"),
        ("predicted", "predicted_speedup"),
    )
    rest = ", ".join(
        f"{name} {document[key]:.2f}x" for name, key in others if document.get(key) is not None
    )
    return [first, rest] if rest else [first]


def _split(assisted: Mapping[str, Any]) -> str:
    parts = [(name, assisted.get(key)) for name, key in _PARTS]
    known = [(name, value) for name, value in parts if value is not None]
    total = sum(value for _, value in known)
    if total <= 0:
        return "time split: not measured"
    return "time split: " + ", ".join(f"{name} {value / total:.0%}" for name, value in known)


def _number(value: Any, form: str) -> str:
    return _NONE if value is None else format(value, form)
