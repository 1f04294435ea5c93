"""Shared runs on disk: a folder that stays small, under ids that nobody can guess.

Bounded in number and bytes (the oldest go first) and in time. A run is written beside its place
and moved there, so that other processes see all of it or nothing; making room happens under a
lock file. Knows bytes and ids, not what a run says.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from uag_core.errors import DiskSpaceError, RunError
from uag_core.runs.document import MAX_BYTES

MAX_RUNS = 500
MAX_STORE_BYTES = 256 * 2**20
LIFE_DAYS = 7
_DAY_S = 86_400.0
_ID_BYTES = 16  # 128 random bits
_ID = re.compile(r"[0-9a-f]{32}")
_SUFFIX = ".json.gz"
_LOCK_S = 10.0


@dataclass(frozen=True, slots=True)
class Kept:
    """A stored run: its text, and the Unix time at which it expires."""

    text: bytes
    expires: float


@dataclass(frozen=True, slots=True)
class RunStore:
    """A folder of shared runs. `now` gives the Unix time."""

    folder: Path
    max_runs: int = MAX_RUNS
    max_bytes: int = MAX_STORE_BYTES
    life_s: float = LIFE_DAYS * _DAY_S
    now: Callable[[], float] = time.time

    def put(self, make_text: Callable[[str], str]) -> tuple[str, float]:
        """Keeps the text that `make_text(id)` gives; returns the new id and when it expires.

        Raises `DiskSpaceError` when it cannot be written.
        """
        name = secrets.token_hex(_ID_BYTES)
        packed = gzip.compress(make_text(name).encode("utf-8"), 6)
        if len(packed) > self.max_bytes:
            raise RunError("The run is too large to be shared.", "Download it instead.")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with FileLock(self.folder / ".lock", timeout=_LOCK_S):
                self._make_room(len(packed))
                self._write(name, packed)
        except Timeout:
            raise RunError("The shared runs are busy.", "Try again in a moment.") from None
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise DiskSpaceError(
                f"The run could not be kept: {reason}.", "Download it instead."
            ) from None
        return name, self.now() + self.life_s

    def get(self, name: str) -> Kept | None:
        """The run of that id; None when there is none, or none any more."""
        if not _ID.fullmatch(name):
            return None
        path = self.folder / f"{name}{_SUFFIX}"
        try:
            expires = path.stat().st_mtime + self.life_s
            if expires <= self.now():
                path.unlink(missing_ok=True)
                return None
            with gzip.open(path) as file:
                text = file.read(MAX_BYTES + 1)
        except (OSError, EOFError):
            return None
        return Kept(text, expires)

    def _entries(self) -> Iterator[tuple[float, int, Path]]:
        for path in self.folder.glob(f"*{_SUFFIX}"):
            with contextlib.suppress(OSError):
                seen = path.stat()
                yield seen.st_mtime, seen.st_size, path

    def _make_room(self, size: int) -> None:
        """Deletes what has expired, then the oldest, until one more run of `size` bytes fits."""
        for path in self.folder.glob(".new-*"):  # left by a process that died while writing
            path.unlink(missing_ok=True)
        entries = sorted(self._entries())
        count, total = len(entries), sum(entry[1] for entry in entries)
        for made, bytes_, path in entries:
            expired = made + self.life_s <= self.now()
            if not expired and count < self.max_runs and total + size <= self.max_bytes:
                break
            path.unlink(missing_ok=True)
            count, total = count - 1, total - bytes_

    def _write(self, name: str, packed: bytes) -> None:
        handle, temporary = tempfile.mkstemp(prefix=".new-", dir=self.folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(packed)
            made = self.now()
            os.utime(temporary, (made, made))
            os.replace(temporary, self.folder / f"{name}{_SUFFIX}")
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
