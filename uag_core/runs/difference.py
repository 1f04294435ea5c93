"""Two runs side by side: the numbers of both with their ratio, and what makes them hard to compare.

Pure: two run documents in, plain values out. Knows no markup.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from uag_core.metrics import ratio
from uag_core.runs.document import RunDocument

# (label, unit, where the number is in a result); ratios are of this run to the other one.
_ROWS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("Decode speedup", "×", ("decode_speedup",)),
    ("Same-shape speedup", "×", ("decode_speedup_same_shape",)),
    ("Wall speedup", "×", ("wall_speedup",)),
    ("Assisted", "tokens/s", ("assisted", "tokens_per_second")),
    ("Plain, fastest", "tokens/s", ("baseline_unpadded", "tokens_per_second")),
    ("Plain, same shapes", "tokens/s", ("baseline", "tokens_per_second")),
    ("Acceptance rate", "", ("assisted", "acceptance_rate")),
    ("Acceptance length τ", "tokens", ("assisted", "mean_acceptance_length")),
    ("Tokens per round", "", ("assisted", "tokens_per_round")),
    ("Time to first token", "s", ("assisted", "ttft_s")),
    ("Wall time", "s", ("assisted", "wall_s")),
    ("New tokens", "", ("assisted", "num_new_tokens")),
)
_SETTINGS = (
    "method",
    "exact",
    "compile",
    "max_new_tokens",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "repetition_penalty",
    "no_repeat_ngram_size",
    "stop",
    "seed",
    "num_assistant_tokens",
    "assistant_confidence_threshold",
    "prompt_lookup_num_tokens",
    "max_matching_ngram_size",
    "target_lookbehind",
    "assistant_lookbehind",
    "repeats",
)
_MACHINE = ("processor", "cores", "threads", "torch", "transformers", "devices")


@dataclass(frozen=True, slots=True)
class Row:
    """One number of both runs; `ratio` is this run's over the other's, None without both."""

    label: str
    unit: str
    this: float | int | None
    other: float | int | None
    ratio: float | None


def _at(run: RunDocument, path: tuple[str, ...]) -> Any:
    node: Any = run["result"]
    for name in path:
        node = (node or {}).get(name)
    return node


def rows(this: RunDocument, other: RunDocument) -> list[Row]:
    """A row for each number that at least one of the runs has."""
    found = []
    for label, unit, path in _ROWS:
        ours, theirs = _at(this, path), _at(other, path)
        if ours is not None or theirs is not None:
            found.append(Row(label, unit, ours, theirs, ratio(ours, theirs)))
    return found


def _model(run: RunDocument, role: str) -> tuple[Any, ...]:
    part = run["result"].get(role) or {}
    return tuple(part.get(key) for key in ("id", "revision"))


def _names(values: list[str]) -> str:
    return ", ".join(value.replace("_", " ") for value in values)


def warnings(this: RunDocument, other: RunDocument) -> list[str]:
    """What differs beside the numbers, a sentence each; empty when only they do."""
    ours, theirs = this["request"], other["request"]
    checks: tuple[tuple[Callable[[RunDocument], Any], str], ...] = (
        (lambda run: _model(run, "target"), "The targets differ"),
        (lambda run: _model(run, "assistant"), "The assistants differ"),
    )
    found = []
    for read, sentence in checks:
        one, two = read(this), read(other)
        if one != two:
            found.append(f"{sentence}: {_label(one)} here, {_label(two)} there.")
    if (ours["prompt"], ours["system"], ours["raw"]) != (
        theirs["prompt"],
        theirs["system"],
        theirs["raw"],
    ):
        found.append("The prompts differ, and with them what can be accepted.")
    where = [key for key in ("dtype", "device") if _used(this, key) != _used(other, key)]
    changed = where + [key for key in _SETTINGS if ours.get(key) != theirs.get(key)]
    if changed:
        found.append(f"The settings differ: {_names(changed)}.")
    machine = [key for key in _MACHINE if this["machine"].get(key) != other["machine"].get(key)]
    if machine:
        found.append(f"They were measured on different machines or versions: {_names(machine)}.")
    return found


def _used(run: RunDocument, key: str) -> Any:
    return (run["result"].get("target") or {}).get(key)


def _label(model: tuple[Any, ...]) -> str:
    name, revision = model
    return f"{name or 'none'}" + (f" ({str(revision)[:12]})" if revision else "")
