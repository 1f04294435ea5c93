"""JSON that every parser can read: no NaN, no infinity, text kept as it is.

Knows neither models nor torch nor pages.
"""

from __future__ import annotations

import json
import math
from typing import Any

SCHEMA_VERSION = 1


def clean(value: Any) -> Any:
    """`value` with tuples as lists and numbers that JSON lacks as None.

    Lone surrogates, which UTF-8 cannot carry, become question marks.
    """
    if isinstance(value, dict):
        return {str(key): clean(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8", "replace")
    return value


def dumps(value: Any, *, indent: int | None = 2, ascii_only: bool = False) -> str:
    """`value` as strict JSON; `ascii_only` writes other characters as escapes."""
    return json.dumps(clean(value), ensure_ascii=ascii_only, allow_nan=False, indent=indent)


def loads(text: str | bytes) -> Any:
    """Reverse of `dumps`, for JSON that this program wrote."""
    return json.loads(text)
