"""One file over HTTP, so that it can be cut off anywhere and goes on where it was.

The Hub's own client throws a partial file away when a download ends early; a model of gigabytes
deserves better. Bytes are written as they arrive, `advance` is called for every piece (and may
raise: that is how a download is cancelled), and what arrived is checked before it gets its name.
Knows addresses, sizes and checksums; knows nothing of repositories or models.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from huggingface_hub import get_session
from huggingface_hub.utils import hf_raise_for_status

from uag_core.errors import NetworkError

TIMEOUT = httpx2.Timeout(10.0)
ATTEMPTS = 5
_TRANSIENT = (httpx2.TransportError,)
_BUSY = (408, 429, 500, 502, 503, 504)
_WAIT_S = 1.0


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file to fetch. `size` in bytes and the checksums are None where the server names none.

    `sha256` is that of large files, `blob` git's SHA-1 of small ones.
    """

    name: str
    url: str
    size: int | None = None
    sha256: str | None = None
    blob: str | None = None


def partial_path(target: Path) -> Path:
    """Where the beginning of an unfinished `target` lies."""
    return target.with_name(f".{target.name}.partial")


def fetch(
    file: RemoteFile,
    target: Path,
    *,
    headers: Mapping[str, str],
    advance: Callable[[int], None],
    apart: bool = False,
) -> None:
    """Download `file` to `target`, going on behind what an earlier attempt left.

    `apart` is for small files that several may fetch at once: nothing of earlier attempts is
    taken, nothing is left, and whoever is last puts the same content in its place again.

    `advance(n)` is told of every n bytes that arrived (those already there included, negative when
    a server makes us start again) and of 0 while waiting. Raises `NetworkError` for a damaged
    file, and what the HTTP client and the disk raise. The beginning of a file that was cut off
    stays; a damaged one is removed.
    """
    if apart:
        mark = f".{target.name}.{os.getpid()}-{threading.get_ident()}.partial"
        partial = target.with_name(mark)
        try:
            _fetch(file, partial, target, headers, advance)
        finally:
            partial.unlink(missing_ok=True)
    else:
        _fetch(file, partial_path(target), target, headers, advance)


def _fetch(
    file: RemoteFile,
    partial: Path,
    target: Path,
    headers: Mapping[str, str],
    advance: Callable[[int], None],
) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    have = partial.stat().st_size if partial.is_file() else 0
    if file.size is not None and have > file.size:
        partial.unlink()
        have = 0
    advance(have)
    failures = 0
    while file.size is None or have < file.size:
        try:
            before = have
            have = _read_on(file, partial, have, dict(headers), advance)
            if file.size is None or have >= file.size:
                break
            problem: Exception = NetworkError(f"The download of {file.name} ended early.")
        except _TRANSIENT as error:
            problem = error
        except Exception as error:
            if getattr(getattr(error, "response", None), "status_code", None) not in _BUSY:
                raise
            problem = error
        have = partial.stat().st_size if partial.is_file() else 0
        failures = 1 if have > before else failures + 1
        if failures >= ATTEMPTS:
            raise problem
        _wait(_WAIT_S * failures, advance)
    if not partial.exists():  # an empty file
        partial.touch()
    _check(file, partial, advance)
    os.replace(partial, target)


def _read_on(
    file: RemoteFile,
    partial: Path,
    have: int,
    headers: dict[str, Any],
    advance: Callable[[int], None],
) -> int:
    """Append what one request delivers; the number of bytes that are there afterwards."""
    headers["Accept-Encoding"] = "identity"
    if have:
        headers["Range"] = f"bytes={have}-"
    with get_session().stream("GET", file.url, headers=headers, timeout=TIMEOUT) as response:
        if response.status_code == 416:  # what we have is no beginning of what is there
            partial.unlink(missing_ok=True)
            raise _damaged(file)
        if response.status_code >= 400:
            response.read()
        hf_raise_for_status(response)
        if have and response.status_code != 206:  # the server sends everything again
            advance(-have)
            have = 0
        with partial.open("ab" if have else "wb") as output:
            for piece in response.iter_bytes():
                output.write(piece)
                have += len(piece)
                advance(len(piece))
                if file.size is not None and have > file.size:
                    break  # more than was promised: damaged, as the check will say
    return have


def beginning(url: str, headers: Mapping[str, Any], count: int) -> bytes:
    """The first `count` bytes behind an address, or all where there are fewer."""
    asked = {**headers, "Accept-Encoding": "identity", "Range": f"bytes=0-{count - 1}"}
    data = b""
    with get_session().stream("GET", url, headers=asked, timeout=TIMEOUT) as response:
        if response.status_code >= 400:
            response.read()
        hf_raise_for_status(response)
        for piece in response.iter_bytes():
            data += piece
            if len(data) >= count:
                break
    return data[:count]


def _wait(seconds: float, advance: Callable[[int], None]) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        advance(0)
        time.sleep(min(0.1, left))


def _check(file: RemoteFile, path: Path, advance: Callable[[int], None]) -> None:
    """Compare size and checksum; remove a file that is damaged."""
    size = path.stat().st_size
    good = file.size is None or size == file.size
    if good and (file.sha256 or file.blob):
        digest = (
            hashlib.sha256()
            if file.sha256
            else hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
        )
        with path.open("rb") as content:
            while piece := content.read(1 << 22):
                digest.update(piece)
                advance(0)
        good = digest.hexdigest() == (file.sha256 or file.blob)
    if not good:
        with contextlib.suppress(OSError):
            path.unlink()
        raise _damaged(file)


def _damaged(file: RemoteFile) -> NetworkError:
    return NetworkError(
        f"The download of {file.name} is damaged: its size or checksum is wrong.", "Try again."
    )


class Meter:
    """Counts bytes over several files and says once in a while how far they are.

    `say(line)` is called at most every `EVERY_S` seconds, also while nothing arrives, and may
    raise to cancel. The time left is estimated from the bytes that arrived since the start, those
    of earlier attempts not counted.
    """

    EVERY_S = 0.5

    def __init__(self, what: str, total: int, say: Callable[[str], None]) -> None:
        self.what, self.total, self.say = what, total, say
        self.done = 0
        self._arrived = 0
        self._started = self._told = time.monotonic()
        self._fresh = False

    def begin_file(self) -> None:
        """The next report is of bytes that were there already."""
        self._fresh = True

    def advance(self, count: int) -> None:
        self.done += count
        if self._fresh:
            self._fresh = False
        else:
            self._arrived += max(0, count)
        now = time.monotonic()
        if now - self._told >= self.EVERY_S:
            self._told = now
            self.say(self.line(now - self._started))

    def line(self, elapsed_s: float) -> str:
        """ "Downloading o/n: 120 of 540 MB, about 35 s left." """
        text = f"Downloading {self.what}: {_mb(self.done)} of {_mb(self.total)} MB"
        left = self.total - self.done
        if self._arrived <= 0 or left <= 0 or elapsed_s <= 0:
            return f"{text}."
        return f"{text}, about {_duration(left * elapsed_s / self._arrived)} left."


def _mb(count: int) -> str:
    return f"{count / 1e6:,.1f}" if count < 10_000_000 else f"{count / 1e6:,.0f}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"
