"""One benchmark as somebody asked for it in the page or through the endpoint.

Turns plain values by name into a `Plan`, with limits that keep one visitor from holding the
machine for ever. Knows neither gradio nor models.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uag_core.benchmark.plan import DEFAULT_METHODS, Plan
from uag_core.benchmark.suites import DEFAULT_PROMPTS, BenchPrompt, evenly, load, parse
from uag_core.config import (
    DEFAULT_ASSISTANT,
    DEFAULT_MAX_NEW_TOKENS,
    DEFAULT_TARGET,
    DTYPES,
    MAX_CANDIDATES,
    GenerationSettings,
)
from uag_core.errors import InputError
from uag_core.models import references
from uag_core.ui import limits

MAX_BYTES = 1_000_000  # of pasted or uploaded prompts
MAX_RUNS = 4_000  # prompts x engines x repeats
DEFAULT_LIMIT = 10  # of the project's own prompts: one of each kind
SUFFIXES = (".jsonl", ".json", ".txt")


@dataclass(frozen=True, slots=True)
class BenchRequest:
    """What to measure and with which models."""

    plan: Plan
    target: str = DEFAULT_TARGET
    assistant: str | None = DEFAULT_ASSISTANT
    dtype: str = "auto"
    device: str = "auto"

    def __post_init__(self) -> None:
        if not self.plan.uses_assistant:
            object.__setattr__(self, "assistant", None)
        for name in ("target", "assistant", "dtype", "device"):
            value = getattr(self, name)
            if name == "assistant" and not self.plan.uses_assistant:
                continue
            if not isinstance(value, str) or not value.strip():
                raise InputError(f"{name} is empty: give a name.")
            object.__setattr__(self, name, value.strip())
            if name in ("target", "assistant"):
                references.parse(value)
        if self.dtype not in DTYPES:
            raise InputError(f"dtype must be one of {', '.join(DTYPES)}, not {self.dtype!r}.")
        runs = len(self.plan.prompts) * len(self.plan.variants()) * self.plan.repeats
        if runs > MAX_RUNS:
            raise InputError(
                f"That is {runs:,} runs; at most {MAX_RUNS:,} are made here.",
                "Take fewer prompts, engines, draft lengths or repeats.",
            )

    def open(self, pair: Any, *, cancel: Any, waiting: Callable[[int], None]) -> Iterator[Any]:
        """The stream of the benchmark."""
        bench = getattr(pair, "bench_stream", None)
        if bench is None:
            raise InputError(
                "This host runs no benchmarks.", "Run the app on a machine of your own."
            )
        stream: Iterator[Any] = bench(self.plan, cancel=cancel, waiting=waiting)
        return stream


def build_bench_request(values: Mapping[str, Any]) -> BenchRequest:
    """A request from plain values by name; what is missing or `None` takes its default."""
    methods = values.get("methods")
    if methods is None:
        methods = DEFAULT_METHODS
    if isinstance(methods, str):
        methods = [name.strip() for name in methods.split(",") if name.strip()]
    if not isinstance(methods, (list, tuple)) or not all(isinstance(m, str) for m in methods):
        raise InputError("methods must be a list of names.")
    tokens = values.get("max_new_tokens")
    plan = Plan(
        prompts=tuple(prompts_of(values.get("prompts"), _whole("limit", values.get("limit")))),
        methods=tuple(methods),
        settings=GenerationSettings(
            max_new_tokens=DEFAULT_MAX_NEW_TOKENS if tokens is None else tokens
        ),
        sweep=values.get("sweep") or (None,),
        repeats=_whole("repeats", values.get("repeats")) or 1,
        exact=values.get("exact", True),
        compile=bool(values.get("compile")),
    )
    limits.current().check(
        prompt=max((item.prompt for item in plan.prompts), key=len, default=""),
        max_new_tokens=plan.settings.max_new_tokens,
        repeats=plan.repeats,
    )
    return BenchRequest(
        plan=plan,
        target=values.get("target") or "",
        assistant=values.get("assistant") or "",
        dtype=values.get("dtype") or "auto",
        device=values.get("device") or "auto",
    )


def prompts_of(given: Any, limit: int | None) -> list[BenchPrompt]:
    """Prompts from a text (JSON Lines or one a line) or a list of texts or objects.

    Nothing given: the project's own, `DEFAULT_LIMIT` of them unless `limit` says more.
    """
    if given is None or given == [] or (isinstance(given, str) and not given.strip()):
        return load(DEFAULT_PROMPTS, limit or DEFAULT_LIMIT)
    if isinstance(given, (list, tuple)):
        items = [item if isinstance(item, dict) else {"prompt": item} for item in given]
        try:
            given = "\n".join(json.dumps(item) for item in items)
        except (TypeError, ValueError, RecursionError):
            raise InputError("prompts must be texts or objects with a prompt.") from None
    if not isinstance(given, str):
        raise InputError("prompts must be a text or a list.")
    if len(given) > MAX_BYTES:
        raise InputError(f"The prompts have more than {MAX_BYTES:,} characters.")
    found = parse(given)
    return found if limit is None else evenly(found, limit)


def read_upload(path: str) -> str:
    """The text of an uploaded file. Raises `InputError` for one that is no set of prompts."""
    file = Path(path)
    if file.suffix.lower() not in SUFFIXES:
        raise InputError(f"{file.name} is none of {', '.join(SUFFIXES)}.")
    if file.stat().st_size > MAX_BYTES:
        raise InputError(f"{file.name} is larger than {MAX_BYTES // 1000:,} kB.")
    load(file)
    return file.read_text(encoding="utf-8-sig")


def parse_sweep(text: Any) -> tuple[int | None, ...]:
    """Draft lengths as typed: numbers from 0 and "auto", with commas or spaces; blank is auto."""
    words = str(text or "").replace(",", " ").lower().split()
    found: list[int | None] = []
    for word in words:
        if word == "auto":
            found.append(None)
        elif word.isdecimal() and int(word) <= MAX_CANDIDATES:
            found.append(int(word))
        else:
            raise InputError(
                f"Draft lengths must be numbers from 0 to {MAX_CANDIDATES} or auto, "
                f"not {word[:40]!r}."
            )
    return tuple(found) or (None,)


def _whole(name: str, value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value):
        raise InputError(f"{name} must be a whole number, not {value!r}.")
    if value < 1:
        raise InputError(f"{name} must be at least 1, not {value!r}.")
    return int(value)
