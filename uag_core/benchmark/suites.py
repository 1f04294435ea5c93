"""Sets of prompts to measure with: read, checked, named.

Takes JSON Lines with a `prompt` (HumanEval: with its `task_id`) or Spec-Bench's `turns`, of which
the first is asked, and plain text with one prompt a line. Knows files and text, no models.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uag_core.errors import InputError

DEFAULT_PROMPTS = Path(__file__).resolve().parents[2] / "assets" / "prompts" / "dev.jsonl"
MAX_PROMPT_CHARACTERS = 400_000
NO_CATEGORY = "other"
_LABEL_LENGTH = 60


@dataclass(frozen=True, slots=True)
class BenchPrompt:
    """One prompt: its id, unique in the set, the kind of text it stands for, and the text."""

    id: str
    category: str
    prompt: str


def load(path: str | Path, limit: int | None = None) -> list[BenchPrompt]:
    """The prompts of a file. Raises `InputError` naming the line that cannot be used."""
    name = Path(path).name
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{name} is not UTF-8 text.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it cannot be read"
        raise InputError(f"The prompts {str(path)!r} cannot be used: {reason}.") from None
    return parse(text, source=name, limit=limit)


def parse(text: str, *, source: str = "the prompts", limit: int | None = None) -> list[BenchPrompt]:
    """The prompts of a text: JSON Lines where the first line is an object, else one a line.

    `limit` keeps that many, taken evenly from all categories. Raises `InputError` when nothing is
    left or a line cannot be used.
    """
    if limit is not None and limit < 1:
        raise InputError(f"limit must be at least 1, not {limit}.")
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not lines:
        raise InputError(f"There is no prompt in {source}.")
    if lines[0][1].lstrip().startswith("{"):
        found = [_from_json(line, number, source) for number, line in lines]
    else:
        found = [(str(number), NO_CATEGORY, line.strip()) for number, line in lines]
    prompts = list(_named(found))
    return prompts if limit is None else evenly(prompts, limit)


def evenly(prompts: Sequence[BenchPrompt], limit: int) -> list[BenchPrompt]:
    """`limit` prompts, the first ones of every category in turn, in their own order."""
    kinds: dict[str, list[int]] = {}
    for index, prompt in enumerate(prompts):
        kinds.setdefault(prompt.category, []).append(index)
    turns = max(map(len, kinds.values()), default=0)
    order = [
        members[turn] for turn in range(turns) for members in kinds.values() if turn < len(members)
    ]
    return [prompts[index] for index in sorted(order[:limit])]


def _from_json(line: str, number: int, source: str) -> tuple[str, str, str]:
    where = f"Line {number} of {source}"
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        raise InputError(f"{where} is not JSON.", "Give one object a line.") from None
    if not isinstance(data, dict):
        raise InputError(f"{where} is not a JSON object.")
    prompt = data.get("prompt")
    if prompt is None and isinstance(data.get("turns"), list) and data["turns"]:
        prompt = data["turns"][0]
    if not isinstance(prompt, str) or not prompt.strip():
        raise InputError(f'{where} has no text under "prompt" or "turns".')
    if len(prompt) > MAX_PROMPT_CHARACTERS:
        raise InputError(f"{where} is longer than {MAX_PROMPT_CHARACTERS:,} characters.")
    try:
        prompt.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(f"{where} is not valid UTF-8 text.") from None
    task = data.get("task_id")
    name = _first(data, ("id", "prompt_id", "question_id", "task_id"))
    category = _first(data, ("category", "kind"))
    if category is None and isinstance(task, str) and "/" in task:
        category = task.split("/")[0]
    return _label(name, str(number)), _label(category, NO_CATEGORY), prompt


def _first(data: dict[str, Any], keys: Iterable[str]) -> Any:
    return next((data[key] for key in keys if data.get(key) not in (None, "")), None)


def _label(value: Any, otherwise: str) -> str:
    """A short name on one line, as tables and charts can hold it."""
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        text = re.sub(r"[\x00-\x1f\x7f-\x9f\s]+", " ", str(value)).strip()[:_LABEL_LENGTH]
        return text.encode("utf-8", "replace").decode("utf-8") or otherwise
    return otherwise


def _named(found: Iterable[tuple[str, str, str]]) -> Iterator[BenchPrompt]:
    """The prompts with ids made unique."""
    used: set[str] = set()
    for name, category, prompt in found:
        unique, count = name, 2
        while unique in used:
            unique, count = f"{name}-{count}", count + 1
        used.add(unique)
        yield BenchPrompt(unique, category, prompt)
