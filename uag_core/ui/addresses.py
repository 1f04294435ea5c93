"""What an address of the page says: a view, a run, and the pair, prompt and settings of the form.

`from_query` reads what a stranger may have written: bounded, checked, and never more than values
for the form. `to_query` writes it. Knows plain values; no component, no model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from uag_core.config import DTYPES, METHODS, REFERENCES
from uag_core.errors import InputError
from uag_core.ui.request import NUMBER_NAMES, parse_number

VIEWS = ("compare", "alignment", "chart")
LONGEST = {"prompt": 2000, "system": 1000, "stop": 500, "target": 200, "assistant": 200}
_CHOICES: dict[str, tuple[str, ...]] = {"method": METHODS, "dtype": DTYPES}
_FLAGS = ("raw", "exact", "compile")
_TRUE, _FALSE = ("1", "true"), ("0", "false")
_DEVICE_LENGTH = 20


def view_of(query: Mapping[str, str]) -> str | None:
    """The compact view that an address asks for; None for the whole page."""
    view = query.get("view")
    return view if view in VIEWS else None


def from_query(query: Mapping[str, str]) -> dict[str, Any]:
    """Values for the form by name; only those that the address gives. Raises `InputError`."""
    values: dict[str, Any] = {}
    for name, text in query.items():
        if name in LONGEST:
            if len(text) > LONGEST[name]:
                raise InputError(
                    f"The {name} in the address has {len(text):,} characters; "
                    f"at most {LONGEST[name]:,} are taken."
                )
            values[name] = text
        elif name in _CHOICES:
            if text not in _CHOICES[name]:
                raise InputError(f"{name} in the address must be one of {_listed(_CHOICES[name])}.")
            values[name] = text
        elif name in _FLAGS:
            if text.lower() not in (*_TRUE, *_FALSE):
                raise InputError(f"{name} in the address must be 1 or 0.")
            values[name] = text.lower() in _TRUE
        elif name in NUMBER_NAMES:
            number = parse_number(f"{name} in the address", text)
            values[name] = "" if number is None else str(number)
        elif name == "device":
            if len(text) > _DEVICE_LENGTH:
                raise InputError("device in the address must be auto, cpu or cuda.")
            values[name] = text
        elif name == "references":
            names = [part for part in text.split(",") if part]
            if not set(names) <= set(REFERENCES):
                raise InputError(f"references in the address must be among {_listed(REFERENCES)}.")
            values[name] = names
    return values


def to_query(form: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, str]:
    """The parts of an address that give the form back: what differs from its usual values.

    Raises `InputError` where a text is too long for an address.
    """
    parts: dict[str, str] = {}
    for name, value in form.items():
        if value == usual.get(name) or (not value and not usual.get(name)):
            continue
        if isinstance(value, bool):
            parts[name] = "1" if value else "0"
        elif isinstance(value, (list, tuple)):
            parts[name] = ",".join(map(str, value))
        else:
            parts[name] = str(value)
        if len(parts[name]) > LONGEST.get(name, 200):
            raise InputError(
                f"The {name} is too long for an address: at most {LONGEST.get(name, 200):,} "
                "characters. Share the run instead."
            )
    return parts


def address(parts: Mapping[str, str]) -> str:
    """A whole address, with "{page}" for what only the browser knows."""
    return "{page}" + (f"?{urlencode(parts)}" if parts else "")


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names)
