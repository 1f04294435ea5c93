"""Run documents as files of the user's own: read with a limit, written whole or not at all.

Knows paths and bytes; what is in a run is `document`'s business.
"""

from __future__ import annotations

import os
import re
import tempfile
import unicodedata
from pathlib import Path

from uag_core.errors import DiskSpaceError, InputError
from uag_core.runs.document import MAX_BYTES, RunDocument, dump_run, load_run


def check_place(name: str) -> Path:
    """The path to save to. Raises `InputError` when nothing could be written there."""
    path = Path(name).expanduser()
    if path.is_dir():
        raise InputError(f"{name!r} is a folder: name a file to save the run to.")
    if not path.absolute().parent.is_dir():
        raise InputError(f"The run cannot be saved to {name!r}: there is no such folder.")
    return path


def save_run(run: RunDocument, path: Path) -> None:
    """Writes the run. Raises `DiskSpaceError` in one line when that fails."""
    path = path.absolute()
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(prefix=".run-", dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(dump_run(run) + "\n")
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise DiskSpaceError(
            f"The run could not be saved: {error.strerror or type(error).__name__}."
        ) from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def read_run(path: Path) -> RunDocument:
    """The run in a file. Raises `InputError` with one line; reads no more than a run may have."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError):
        raise InputError("The file cannot be read.") from None
    if len(data) > MAX_BYTES:
        raise InputError(f"The file is too large: a run has at most {MAX_BYTES // 2**20} MB.")
    return load_run(data)


def file_name(run: RunDocument) -> str:
    """A name to download under: letters, digits and hyphens, whatever the title holds."""
    plain = unicodedata.normalize("NFKD", run["title"]).encode("ascii", "ignore").decode("ascii")
    words = re.findall(r"[a-z0-9]+", plain.lower())
    slug = run["id"] if run["id"] and len(run["id"]) < 32 else "-".join(words)[:40].strip("-")
    stamp = re.sub(r"\D", "", run["created"])[:12]
    return "-".join(part for part in ("uag-run", slug, stamp) if part) + ".json"
