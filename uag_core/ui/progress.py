"""What the page shows while a comparison runs: a fold over its steps into plain values.

Knows events, not engines: a step is anything with `engine`, `repeat` and `event`. Pure, so the
page, the endpoint and a replay can share it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from uag_core.events import COMPILING, Finished, Notice, Started, Verified
from uag_core.ui import methods
from uag_core.ui.runner import Loading

PLAIN = "baseline"
UNPADDED = "baseline_unpadded"
_REFERENCE_NAMES = {
    "transformers": "transformers, plain",
    "transformers_uag": "transformers with its own UAG",
    "transformers_lookup": "transformers with prompt lookup",
}


def engine_name(engine: str) -> str:
    """An engine's name as people read it."""
    names = {PLAIN: "Plain decoding", UNPADDED: "Plain decoding, unpadded", **methods.NAMES}
    return names.get(engine) or _REFERENCE_NAMES.get(engine) or engine


@dataclass
class Lane:
    """One panel's growing answer."""

    parts: list[str] = field(default_factory=list)
    num_new_tokens: int = 0
    first_t: float | None = None
    first_tokens: int = 0
    last_t: float = 0.0
    finish_reason: str | None = None

    @property
    def text(self) -> str:
        return "".join(self.parts)

    @property
    def tokens_per_second(self) -> float | None:
        """Rate after the first emission, on the run's own clock."""
        if self.first_t is None or self.last_t <= self.first_t:
            return None
        return (self.num_new_tokens - self.first_tokens) / (self.last_t - self.first_t)

    def add(self, event: Any) -> None:
        if isinstance(event, Verified):
            self.parts.append(event.text)
            self.num_new_tokens += len(event.tokens)
            self.last_t = event.t
            if self.first_t is None:
                self.first_t, self.first_tokens = event.t, len(event.tokens)
        elif isinstance(event, Finished):
            self.finish_reason = event.finish_reason
            if event.text:
                self.parts = [event.text]


@dataclass
class Progress:
    """The state of a comparison as far as it has come."""

    method: str = "uag"
    repeats: int = 1
    phase: str = "Waiting for its turn"
    engine: str | None = None
    repeat: int = 0
    plain: Lane = field(default_factory=Lane)
    assisted: Lane = field(default_factory=Lane)
    notices: list[str] = field(default_factory=list)

    @property
    def lane(self) -> Lane | None:
        """The lane that is growing now, or None while nothing visible is."""
        if self.engine == PLAIN:
            return self.plain
        return self.assisted if self.engine == self.method else None

    def add(self, item: Any) -> None:
        """Takes one item of the stream in."""
        if isinstance(item, Loading):
            self.phase = item.message
            return
        if not hasattr(item, "event"):
            return
        self.engine, self.repeat = item.engine, item.repeat
        self.phase = self._phase(item.engine, item.repeat)
        event = item.event
        if isinstance(event, Notice) and item.engine == COMPILING:
            self.phase = event.message
        elif isinstance(event, Notice):
            self._note(event.message)
        elif isinstance(event, Started):
            for message in event.notices:
                self._note(message)
        if item.repeat == 0 and (lane := self.lane) is not None:
            lane.add(event)

    def _note(self, message: str) -> None:
        if message not in self.notices:
            self.notices.append(message)

    def _phase(self, engine: str, repeat: int) -> str:
        name = engine_name(engine)
        if repeat < 0:
            return f"Warming up: {name}"
        if self.repeats > 1:
            return f"Measuring {name}, repeat {repeat + 1} of {self.repeats}"
        return f"Measuring {name}"
