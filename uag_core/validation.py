"""Checks of plain values, with messages that can be shown. Knows no setting by name."""

from __future__ import annotations

import math
from typing import Any

from uag_core.errors import InputError


def number(name: str, value: Any, *, low: float, high: float, integer: bool = False) -> Any:
    """`value` as a finite number inside [low, high], or an `InputError` naming the setting."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"{name} must be a number, not {value!r}.")
    try:
        finite = math.isfinite(value)
    except OverflowError:
        finite = False
    if not finite:
        raise InputError(f"{name} must be a finite number, not {str(value)[:40]}.")
    if integer and int(value) != value:
        raise InputError(f"{name} must be a whole number, not {value!r}.")
    if not low <= value <= high:
        bounds = f"at least {low:g}" if math.isinf(high) else f"between {low:g} and {high:g}"
        raise InputError(f"{name} must be {bounds}, not {value!r}.")
    return int(value) if integer else float(value)


def assign(instance: Any, name: str, value: Any) -> None:
    """Set a field of a frozen dataclass, from inside its own `__post_init__`."""
    object.__setattr__(instance, name, value)
