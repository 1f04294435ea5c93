"""Where files from the Hub are kept: a cache of our own with a limit, beside the user's shared one.

Models that are whole in the shared cache of the Hub's own tools are used from there and never
touched. What we download lies in our folder (same layout), of which the least recently used
models are removed to stay below a limit. UAG_SHARED_CACHE=1 downloads into the shared cache
instead, of which nothing is ever removed. Knows folders and bytes, not the network.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout
from huggingface_hub import constants

from uag_core import hosting
from uag_core.errors import DiskSpaceError
from uag_core.models import checks, embedded

LIMIT_VARIABLE = "UAG_DISK_LIMIT_GB"
SHARED_VARIABLE = "UAG_SHARED_CACHE"
DEFAULT_LIMIT_GB = 50.0
SPARE_BYTES = 200_000_000
_USED = ".uag-used"  # its time is when the model was last asked for
_TOKENIZERS = ("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json")


def own_root() -> Path:
    """Our folder for files from the Hub."""
    return embedded.uag_home() / "hub"


def shared_root() -> Path:
    """The folder of the Hub's own tools (HF_HOME, HF_HUB_CACHE)."""
    return Path(constants.HF_HUB_CACHE)


def uses_shared() -> bool:
    """Whether new files go into the shared cache because the user asked for it."""
    return os.environ.get(SHARED_VARIABLE, "").strip().lower() in ("1", "true", "yes", "on")


def root() -> Path:
    """Where new files go."""
    return shared_root() if uses_shared() else own_root()


def limit_bytes() -> int:
    """Bytes that our own cache may hold (UAG_DISK_LIMIT_GB, 50 by default)."""
    value = hosting.gigabytes_of(os.environ, LIMIT_VARIABLE)
    return int((DEFAULT_LIMIT_GB if value is None else value) * 1e9)


def repo_folder(base: Path, repo: str) -> Path:
    return base / ("models--" + repo.replace("/", "--"))


def has_tokenizer(folder: Path) -> bool:
    """Whether `folder` holds a tokenizer."""
    return any((folder / name).is_file() for name in _TOKENIZERS)


def is_whole(folder: Path) -> bool:
    """Whether `folder` holds configuration, tokenizer and every weight file of a model."""
    index = folder / checks.WEIGHTS_INDEX
    if not (folder / "config.json").is_file():
        return False
    if not has_tokenizer(folder):
        return False
    try:
        files = checks.shards(index, "") if index.is_file() else (checks.WEIGHTS,)
    except Exception:  # noqa: BLE001 - a damaged list: not whole
        return False
    return all((folder / file).is_file() for file in files)


def snapshot(repo: str, sha: str, file: str | None = None) -> Path:
    """The folder of one commit: the shared one where the model (or `file`) is there, else ours."""
    shared = repo_folder(shared_root(), repo) / "snapshots" / sha
    there = (shared / file).is_file() if file else is_whole(shared)
    return shared if there else repo_folder(root(), repo) / "snapshots" / sha


def cached_commit(repo: str, revision: str | None) -> str | None:
    """The commit that a cache last knew for a branch or tag, where some of its files are there."""
    for base in (own_root(), shared_root()):
        folder = repo_folder(base, repo)
        with suppress(OSError, UnicodeDecodeError):
            sha = (folder / "refs" / (revision or "main")).read_text(encoding="utf-8").strip()
            if re.fullmatch(r"[0-9a-f]{40}", sha) and any((folder / "snapshots" / sha).iterdir()):
                return sha
    return None


def remember_commit(repo: str, revision: str | None, sha: str) -> None:
    """Note what a branch or tag meant, for a time without the Hub."""
    path = repo_folder(root(), repo) / "refs" / (revision or "main")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(sha, encoding="utf-8")


@contextmanager
def in_use(repo: str, sha: str, waiting: object = None) -> Iterator[None]:
    """While the context is open, no process removes or downloads this commit's files.

    `waiting()` is called several times a second while another process has them, and may raise.
    """
    path = root() / ".locks" / f"uag-{repo.replace('/', '--')}-{sha[:12]}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    while True:
        try:
            lock.acquire(timeout=0.2)
            break
        except Timeout:
            if callable(waiting):
                waiting()
    try:
        yield
    finally:
        lock.release()


def touch(folder: Path) -> None:
    """Note that the model in `folder` was used now."""
    if own_root() in folder.parents:
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / _USED).write_text(str(time.time()), encoding="ascii")


@dataclass(frozen=True, slots=True)
class Stored:
    """One commit of one repository in our own cache: its size, and when it was last used."""

    repo: str
    sha: str
    folder: Path
    bytes: int
    used: float


def stored() -> list[Stored]:
    """What our own cache holds, least recently used first."""
    found = []
    for folder in own_root().glob("models--*/snapshots/*"):
        if not folder.is_dir():
            continue
        repo = folder.parent.parent.name.removeprefix("models--").replace("--", "/", 1)
        try:
            used = float((folder / _USED).read_text(encoding="ascii"))
        except (OSError, ValueError):
            used = folder.stat().st_mtime
        found.append(Stored(repo, folder.name, folder, _size(folder), used))
    return sorted(found, key=lambda item: item.used)


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.stat().st_size if path.is_file() else 0
    return total


def check_room(needed: int, name: str) -> None:
    """Raise `DiskSpaceError` where `needed` bytes would not fit even after a clean-up."""
    removable = 0 if uses_shared() else sum(item.bytes for item in stored())
    free = free_bytes() + removable
    if free < needed + SPARE_BYTES:
        raise DiskSpaceError(
            f"{name} needs {needed / 1e9:.1f} GB of disk space; {max(0, free) / 1e9:.1f} GB can be "
            "made free.",
            "Free some, or set UAG_HOME to a folder on another disk.",
        )
    if not uses_shared() and needed > limit_bytes():
        raise DiskSpaceError(
            f"{name} needs {needed / 1e9:.1f} GB of disk space; the cache may hold "
            f"{limit_bytes() / 1e9:g} GB.",
            f"Raise {LIMIT_VARIABLE}, or choose a smaller model.",
        )


def make_room(needed: int, keep: Path, name: str) -> None:
    """Remove the least recently used models of our own cache until `needed` more bytes fit.

    `keep` stays, as does what another process uses. Raises as `check_room`.
    """
    if uses_shared():
        check_room(needed, name)
        return
    items = stored()
    total = sum(item.bytes for item in items)
    for item in items:
        if total + needed <= limit_bytes() and free_bytes() >= needed + SPARE_BYTES:
            return
        if item.folder != keep and _remove(item):
            total -= item.bytes
    if free_bytes() < needed + SPARE_BYTES or needed > limit_bytes():
        check_room(needed, name)


def _remove(item: Stored) -> bool:
    lock = FileLock(
        own_root() / ".locks" / f"uag-{item.repo.replace('/', '--')}-{item.sha[:12]}.lock"
    )
    try:
        lock.acquire(timeout=0)
    except (Timeout, OSError):
        return False
    try:
        shutil.rmtree(item.folder, ignore_errors=True)
        return not item.folder.exists()
    finally:
        lock.release()


def free_bytes() -> int:
    """Free bytes on the disk that new files go to."""
    folder = root()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return shutil.disk_usage(folder).free
