"""One comparison as somebody asked for it: a frozen value, checked when it is made.

Turns plain values by name (from the page or from the endpoint) into the settings classes of
`uag_core.config`. Knows neither gradio nor models: a name that cannot be one, or that may not be
used here, is refused; whether a model of that name exists is not its business.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from uag_core.config import (
    DEFAULT_ASSISTANT,
    DEFAULT_MAX_NEW_TOKENS,
    DEFAULT_TARGET,
    DTYPES,
    METHODS,
    REFERENCES,
    AssistantConfig,
    GenerationSettings,
)
from uag_core.errors import InputError
from uag_core.models import references
from uag_core.runs.document import request_of
from uag_core.ui import limits

MAX_REPEATS = 20
MAX_PROMPT_CHARACTERS = 400_000
SETTING_NAMES = (
    "max_new_tokens",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "repetition_penalty",
    "no_repeat_ngram_size",
    "seed",
)
ASSISTANT_NAMES = ("num_assistant_tokens", "assistant_confidence_threshold")
NUMBER_NAMES = (*SETTING_NAMES, *ASSISTANT_NAMES, "repeats")


@dataclass(frozen=True, slots=True)
class CompareRequest:
    """What to compare and how. Raises `InputError` with one clear line on what cannot be used."""

    prompt: str
    target: str = DEFAULT_TARGET
    assistant: str | None = DEFAULT_ASSISTANT  # None for the method "lookup", which has none
    settings: GenerationSettings = field(default_factory=GenerationSettings)
    drafting: AssistantConfig = field(default_factory=AssistantConfig)
    raw: bool = False
    system: str | None = None
    dtype: str = "auto"
    device: str = "auto"
    exact: bool = True
    references: tuple[str, ...] = ()
    repeats: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.prompt, str) or not self.prompt.strip():
            raise InputError("The prompt is empty: type something for the model to answer.")
        if len(self.prompt) > MAX_PROMPT_CHARACTERS:
            raise InputError(
                f"The prompt has {len(self.prompt):,} characters; "
                f"at most {MAX_PROMPT_CHARACTERS:,} are accepted."
            )
        if not self.drafting.uses_assistant:
            object.__setattr__(self, "assistant", None)
        for name in ("target", "assistant", "dtype", "device"):
            if name == "assistant" and not self.drafting.uses_assistant:
                continue
            value = getattr(self, name)
            if not isinstance(value, str) or not value.strip():
                raise InputError(f"{name} is empty: give a name.")
            object.__setattr__(self, name, value.strip())
            if name in ("target", "assistant"):
                references.parse(value)
        if self.dtype not in DTYPES:
            raise InputError(f"dtype must be one of {', '.join(DTYPES)}, not {self.dtype!r}.")
        for name in ("raw", "exact"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name} must be true or false, not {getattr(self, name)!r}.")
        if self.system is not None and not isinstance(self.system, str):
            raise InputError("system must be text.")
        if not (self.system or "").strip():
            object.__setattr__(self, "system", None)
        if self.raw and self.system:
            raise InputError("A system prompt needs the chat template: clear it or leave raw text.")
        for name in self.references:
            if name not in REFERENCES:
                known = ", ".join(REFERENCES)
                raise InputError(f"references must be among {known}, not {name!r}.")
        if not 1 <= self.repeats <= MAX_REPEATS:
            raise InputError(f"repeats must be between 1 and {MAX_REPEATS}, not {self.repeats!r}.")

    def open(self, pair: Any, *, cancel: Any, waiting: Callable[[int], None]) -> Iterator[Any]:
        """The stream of the comparison."""
        stream: Iterator[Any] = pair.compare_stream(
            self.prompt,
            self.settings,
            self.drafting,
            raw=self.raw,
            system=self.system,
            exact=self.exact,
            seed=self.settings.seed,
            references=self.references,
            repeats=self.repeats,
            cancel=cancel,
            waiting=waiting,
        )
        return stream

    def to_dict(self) -> dict[str, Any]:
        """The request part of a run document."""
        return request_of(
            prompt=self.prompt,
            target=self.target,
            assistant=self.assistant,
            settings=self.settings,
            drafting=self.drafting,
            raw=self.raw,
            system=self.system,
            dtype=self.dtype,
            device=self.device,
            exact=self.exact,
            references=self.references,
            repeats=self.repeats,
        )


def form_values(request: Mapping[str, Any]) -> dict[str, Any]:
    """The request part of a run document as a form holds it: numbers and lists as text.

    What a run does not say takes its default.
    """
    numbers = {name: request.get(name) for name in NUMBER_NAMES}
    stop = [item.replace("\n", "\\n").replace("\t", "\\t") for item in request.get("stop") or ()]
    known = [name for name in request.get("references") or () if name in REFERENCES]
    return {
        "prompt": request["prompt"],
        "target": request["target"],
        "assistant": request.get("assistant") or DEFAULT_ASSISTANT,
        "method": request["method"] if request["method"] in METHODS else "uag",
        "system": request.get("system") or "",
        "raw": request["raw"],
        "dtype": request["dtype"] if request["dtype"] in DTYPES else "auto",
        "device": request["device"],
        "exact": request["exact"],
        "compile": bool(request.get("compile")),
        "references": known,
        "stop": "\n".join(stop),
        **{name: "" if value is None else str(value) for name, value in numbers.items()},
    }


def parse_stop_lines(text: str | None) -> tuple[str, ...]:
    """Stop strings written one per line; `\\n` and `\\t` stand for a newline and a tab."""
    lines = (text or "").splitlines()
    return tuple(line.replace("\\n", "\n").replace("\\t", "\t") for line in lines if line)


def parse_number(label: str, text: str | None) -> float | int | None:
    """A number as somebody typed it; blank is `None`. Raises `InputError` naming the field."""
    typed = (text or "").strip()
    if not typed:
        return None
    try:
        value = float(typed.replace(",", ".") if typed.count(",") == 1 else typed)
    except ValueError:
        raise InputError(f"{label} must be a number, not {typed[:40]!r}.") from None
    if not math.isfinite(value):
        raise InputError(f"{label} must be a finite number, not {typed[:40]!r}.")
    return int(value) if value == int(value) else value


def _strings(name: str, value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)) or not all(isinstance(item, str) for item in items):
        raise InputError(f"{name} must be a list of strings.")
    return tuple(items)


def _repeats(value: Any) -> int:
    if value is None:
        return 1
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value):
        raise InputError(f"repeats must be a whole number, not {value!r}.")
    return int(value)


def build_request(values: Mapping[str, Any]) -> CompareRequest:
    """A request from plain values by name; what is missing or `None` takes its default.

    Numbers that a form leaves blank arrive as `None` and mean "off" or "let the engine choose".
    """
    settings: dict[str, Any] = {name: values.get(name) for name in SETTING_NAMES}
    if settings["max_new_tokens"] is None:
        settings["max_new_tokens"] = DEFAULT_MAX_NEW_TOKENS
    method = values.get("method") or "uag"
    drafting: dict[str, Any] = {name: values.get(name) for name in ASSISTANT_NAMES}
    asked = CompareRequest(
        prompt=values.get("prompt") or "",
        target=values.get("target") or "",
        assistant=values.get("assistant") or "",
        settings=GenerationSettings(**settings, stop=_strings("stop", values.get("stop"))),
        drafting=AssistantConfig(
            assistant=None if method == "lookup" else values.get("assistant") or None,
            method=method,
            compile=values.get("compile") or False,
            **drafting,
        ),
        raw=values.get("raw", False),
        system=values.get("system"),
        dtype=values.get("dtype") or "auto",
        device=values.get("device") or "auto",
        exact=values.get("exact", True),
        references=_strings("references", values.get("references")),
        repeats=_repeats(values.get("repeats")),
    )
    limits.current().check(
        prompt=asked.prompt,
        max_new_tokens=asked.settings.max_new_tokens,
        repeats=asked.repeats,
    )
    return asked
