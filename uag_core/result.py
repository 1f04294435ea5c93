"""What a generation gives back, and how a failed one is told.

Knows events, metrics' names and errors; runs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from uag_core.errors import RunError, UAGError
from uag_core.events import Event
from uag_core.models import memory


@dataclass(frozen=True, slots=True)
class Result:
    """What one generation gave.

    `metrics` holds the counts, rates and times of `compare --json`'s "assisted"; `events` is the
    whole stream.
    """

    text: str
    token_ids: tuple[int, ...]
    finish_reason: str
    exact: bool
    seed: int | None
    metrics: dict[str, Any]
    notices: tuple[str, ...]
    events: tuple[Event, ...]


def shown(error: Exception, device: str) -> UAGError:
    """A failure inside a model or a library as one line that can be shown."""
    if memory.is_out_of_memory(error):
        return memory.out_of_memory("the run", device)
    line = str(error).strip().splitlines()
    reason = line[0] if line else type(error).__name__
    return RunError(f"The run failed: {type(error).__name__}: {reason[:300]}")
