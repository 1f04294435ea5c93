"""Limits of a run on a machine that many people share: how long, how much, how often.

They hold where the app is hosted (see `uag_core.hosting`) and wherever they are set. The time
limit ends a run as Stop does: what was measured until then is reported, with a notice. Knows no
model and no page.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from uag_core import hosting
from uag_core.errors import InputError

SECONDS_VARIABLE = "UAG_MAX_RUN_SECONDS"
TOKENS_VARIABLE = "UAG_MAX_NEW_TOKENS"
CHARACTERS_VARIABLE = "UAG_MAX_PROMPT_CHARACTERS"
REPEATS_VARIABLE = "UAG_MAX_REPEATS"
_HOSTED = {
    SECONDS_VARIABLE: 300,
    TOKENS_VARIABLE: 512,
    CHARACTERS_VARIABLE: 40_000,
    REPEATS_VARIABLE: 5,
}


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may ask for; None is no limit."""

    run_seconds: int | None = None
    max_new_tokens: int | None = None
    prompt_characters: int | None = None
    repeats: int | None = None

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Limits:
        """The limits that are set, and where the app is hosted the usual ones for the others.

        Raises `InputError` for a value that is no whole number above 0, and as `hosting.is_hosted`.
        """
        environ = os.environ if environ is None else environ
        hosted = hosting.is_hosted(environ)
        values = []
        for name, usual in _HOSTED.items():
            text = environ.get(name, "").strip()
            if text and (not text.isdecimal() or int(text) < 1):
                raise InputError(f"{name} must be a whole number above 0, not {text[:20]!r}.")
            values.append(int(text) if text else usual if hosted else None)
        return cls(*values)

    def check(self, *, prompt: str, max_new_tokens: int, repeats: int) -> None:
        """Raise `InputError` for what is more than a run may have here."""
        asked = (
            ("The prompt's number of characters", len(prompt), self.prompt_characters),
            ("max_new_tokens", max_new_tokens, self.max_new_tokens),
            ("repeats", repeats, self.repeats),
        )
        for name, value, limit in asked:
            if limit is not None and value > limit:
                raise InputError(f"{name} is {value:,}; on this shared machine at most {limit:,}.")


def current() -> Limits:
    """The limits as the environment stands now."""
    return Limits.from_environment()


class TimedFlag:
    """A cancel flag that also becomes set when its time is over.

    `seconds` None means no limit. `expired` says that it was the time, not the visitor.
    """

    def __init__(self, flag: Any, seconds: float | None) -> None:
        self._flag = flag
        self._seconds = seconds
        self._started = time.monotonic()
        self.expired = False

    def restart(self) -> None:
        """Count from now: waiting for others is nobody's running time."""
        self._started = time.monotonic()

    def wait(self, timeout: float | None = None) -> bool:
        """As `threading.Event.wait`, with the flag's own clock."""
        self._flag.wait(timeout)
        return self.is_set()

    def is_set(self) -> bool:
        if self.expired or self._flag.is_set():
            return True
        if self._seconds is not None and time.monotonic() - self._started > self._seconds:
            self.expired = True
        return self.expired

    @property
    def notice(self) -> str:
        """The line for the reader of a run that was ended by its limit."""
        return (
            f"Ended after {self._seconds or 0:g} s, the time a run has on this machine: "
            "ask for fewer new tokens, repeats or reference engines."
        )
