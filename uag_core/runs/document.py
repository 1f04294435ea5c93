"""The run document: made from a finished comparison, and read back from anywhere.

A document that `load_run` returns can be trusted in its form: it follows `schema.Run`, holds no
NaN, and each engine's events begin with Started, end with Finished and add up to its tokens. The
texts in it are as hostile as any text. Knows no files and no pages.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from pydantic import ValidationError

from uag_core import __version__, metrics, serialization
from uag_core.config import AssistantConfig, GenerationSettings
from uag_core.errors import InputError
from uag_core.events import Event, to_json
from uag_core.runs import machine
from uag_core.runs.schema import SCHEMA_VERSION, Run

APP = {"name": "UAG Studio", "version": __version__}
MAX_BYTES = 16 * 2**20  # of a document as compact JSON; 8,000 tokens with every engine fit
_TITLE = 80
_SETTINGS = (
    "max_new_tokens",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "repetition_penalty",
    "no_repeat_ngram_size",
    "seed",
)
_DRAFTING = (
    "num_assistant_tokens",
    "assistant_confidence_threshold",
    "prompt_lookup_num_tokens",
    "max_matching_ngram_size",
    "target_lookbehind",
    "assistant_lookbehind",
    "compile",
)

RunDocument = dict[str, Any]


class Done(Protocol):
    """The end of a comparison, as `benchmark.compare.CompareDone` gives it."""

    @property
    def document(self) -> dict[str, Any]: ...
    @property
    def runs(self) -> dict[str, list[list[Event]]]: ...
    @property
    def profile(self) -> dict[str, Any] | None: ...


def request_of(
    *,
    prompt: str,
    target: str,
    assistant: str | None,
    settings: GenerationSettings,
    drafting: AssistantConfig,
    raw: bool,
    system: str | None,
    dtype: str,
    device: str,
    exact: bool,
    references: Sequence[str],
    repeats: int,
) -> dict[str, Any]:
    """What somebody asked for, by the names of the `compare` command's flags."""
    return {
        "prompt": prompt,
        "system": system,
        "raw": raw,
        "target": target,
        "assistant": assistant,
        "method": drafting.method,
        "dtype": dtype,
        "device": device,
        "exact": exact,
        **{name: getattr(settings, name) for name in _SETTINGS},
        "stop": list(settings.stop),
        **{name: getattr(drafting, name) for name in _DRAFTING},
        "references": list(references),
        "repeats": repeats,
    }


def build_run(
    done: Done, request: Mapping[str, Any], *, id: str | None = None, title: str | None = None
) -> RunDocument:
    """The document of a comparison that has ended; `request` as `request_of` makes it.

    Of several repeats the events of the one with the median time per token are kept: those that
    the result's numbers are from.
    """
    result = done.document
    devices = [result[name]["device"] for name in ("target", "assistant") if result.get(name)]
    events = {}
    for engine, repeats in done.runs.items():
        run = metrics.median_run(repeats)
        if run is not None:
            events[engine] = [to_json(event) for event in run]
    run_document = {
        "schema_version": SCHEMA_VERSION,
        "kind": "run",
        "id": id,
        "title": title or title_of(str(request["prompt"])),
        "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "app": dict(APP),
        "machine": machine.facts(tuple(devices)),
        # A seed that was drawn is needed to run it again.
        "request": {**request, "seed": result.get("seed")},
        "result": result,
        "events": events,
        "profile": done.profile,
    }
    cleaned = serialization.clean(run_document)
    assert isinstance(cleaned, dict)
    return cleaned


def title_of(prompt: str) -> str:
    """A prompt's first words, on one line."""
    line = " ".join(prompt[: 4 * _TITLE].split())
    return line if len(line) <= _TITLE else line[: _TITLE - 1].rstrip() + "…"


def dump_run(run: Mapping[str, Any]) -> str:
    """The document as compact JSON."""
    return json.dumps(
        serialization.clean(dict(run)),
        ensure_ascii=False,
        allow_nan=False,
        separators=(",", ":"),
    )


def load_run(source: str | bytes | Mapping[str, Any]) -> RunDocument:
    """The run in a JSON text or a plain dictionary, checked; unknown keys are kept.

    Raises `InputError` with one line for anything that is no run of a known version.
    """
    if isinstance(source, Mapping):
        try:
            source = json.dumps(source, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            raise InputError("This is no run: it holds what JSON cannot.") from None
    size = len(source) if isinstance(source, bytes) else len(source.encode("utf-8", "replace"))
    if size > MAX_BYTES:
        raise InputError(
            f"The run has {size / 2**20:,.1f} MB; at most {MAX_BYTES // 2**20} MB are accepted."
        )
    data = _parse(source)
    _check_kind(data)
    try:
        Run.model_validate(data)
    except ValidationError as error:
        raise InputError(_first_line(error)) from None
    for engine, events in data["events"].items():
        _check_events(engine, events)
    assert isinstance(data, dict)
    return data


def _parse(source: str | bytes) -> Any:
    def no_constant(name: str) -> float:
        raise ValueError(f"{name} is no JSON number")

    def finite(text: str) -> float:
        value = float(text)
        if not math.isfinite(value):
            raise ValueError("a number is out of range")
        return value

    if not source.strip():
        raise InputError("This is no run: the file is empty.")
    try:
        if isinstance(source, bytes):
            source = source.decode("utf-8-sig")
        data = json.loads(source, parse_constant=no_constant, parse_float=finite)
        # A lone surrogate written as an escape could not be written down again.
        json.dumps(data, ensure_ascii=False).encode("utf-8")
    except RecursionError:
        raise InputError("This is no run: its JSON is nested too deeply.") from None
    except UnicodeError:
        raise InputError("This is no run: the file is not UTF-8 text.") from None
    except ValueError as error:
        reason = getattr(error, "msg", None) or str(error)
        where = f" at line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise InputError(f"This is no run: the JSON is broken{where} ({reason[:80]}).") from None
    return data


def _check_kind(data: Any) -> None:
    if not isinstance(data, dict) or data.get("kind") != "run":
        hint = (
            "It looks like the output of compare --json; a run is saved with compare --save."
            if isinstance(data, dict) and "decode_speedup" in data
            else "A run is made by Download or by compare --save."
        )
        raise InputError('This is no run: "kind" is not "run".', hint)
    version = data.get("schema_version")
    if version != SCHEMA_VERSION or isinstance(version, bool):
        shown = repr(version)[:20]
        raise InputError(
            f"This run has version {shown}; this app reads version {SCHEMA_VERSION}.",
            "Use a newer app for a newer run.",
        )


def _first_line(error: ValidationError) -> str:
    """Where and what, of the first fault; never the value itself, which may be anything."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    path = ".".join(str(part)[:40] for part in first["loc"][:12])
    return f"This is no run: {path or 'the document'}: {first['msg'][:120]}."


def _check_events(engine: str, events: list[dict[str, Any]]) -> None:
    """Raises `InputError` where a fold over the events would go wrong."""

    def broken(reason: str) -> InputError:
        return InputError(f"This is no run: the events of {engine[:40]} {reason}.")

    kinds = [event["type"] for event in events]
    if not kinds or kinds[0] != "Started" or kinds.count("Started") != 1:
        raise broken("do not begin with Started")
    if kinds[-1] != "Finished" or kinds.count("Finished") != 1:
        raise broken("do not end with Finished")
    ids: list[int] = []
    last = -1
    for event in events:
        if event["type"] == "Verified":
            if event["round"] <= last:
                raise broken("are out of order")
            if len(event["tokens"]) != len(event["origins"]):
                raise broken("have tokens without an origin")
            last = event["round"]
            ids.extend(piece["id"] for piece in event["tokens"])
        elif event["type"] == "Drafted" and event["round"] <= last:
            raise broken("are out of order")
    if ids != events[-1]["token_ids"]:
        raise broken("do not add up to its tokens")
