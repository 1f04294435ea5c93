"""What the name of a model means: embedded, a local folder, a GGUF file, or a Hub repository.

Strict on purpose: the names come from text fields and the command line. Looks at the local disk
but never at the network, and does not know how anything is loaded. Imports no torch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from uag_core.errors import InputError, ModelNotFoundError

EMBEDDED = ("embedded/target", "embedded/assistant")
MAX_LENGTH = 1024

Kind = Literal["embedded", "folder", "gguf", "hub"]

# One part of a Hub id: letters, digits, "-", "_" and ".", neither "-" nor "." at its ends.
_PART = r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?"
_HUB = re.compile(
    rf"(?P<id>(?:{_PART}/)?{_PART})(?:@(?P<revision>[A-Za-z0-9][A-Za-z0-9._/-]{{0,127}}))?"
)
_MAX_HUB_ID = 96
_LOCAL_STARTS = ("/", "./", "../", "~", ".\\", "..\\")
_EXAMPLE = "Use owner/name, owner/name@revision, a local folder or embedded/target."


@dataclass(frozen=True, slots=True)
class Reference:
    """A parsed model name.

    `id` is what reports show: the embedded name, the Hub id without its revision, or the path as
    it was typed. `path` is the absolute folder or file of local references, else None.
    `revision` is the branch, tag or commit that was asked for, else None.
    """

    kind: Kind
    id: str
    path: Path | None = None
    revision: str | None = None


def parse(ref: str) -> Reference:
    """The meaning of `ref`.

    Raises `InputError` for text that names no model, and `ModelNotFoundError` for embedded
    names, folders and files that do not exist. A Hub id is only checked for its form.
    """
    if not isinstance(ref, str) or not ref.strip():
        raise InputError("No model was named.", _EXAMPLE)
    text = ref.strip()
    if len(text) > MAX_LENGTH or not text.isprintable():
        raise InputError("That is no model name: too long, or with control characters.", _EXAMPLE)
    if "://" in text:
        raise InputError("A model is named by its id, not by a web address.", _EXAMPLE)
    if text == "embedded" or text.startswith("embedded/"):
        return _embedded(text)
    if text.lower().endswith(".gguf"):
        return _gguf(text)
    if _looks_local(text):
        return _folder(text)
    return _hub(text)


def _embedded(text: str) -> Reference:
    if text not in EMBEDDED:
        raise ModelNotFoundError(
            f"There is no embedded model {text!r}; there are {' and '.join(EMBEDDED)}."
        )
    return Reference("embedded", text)


def _absolute(text: str) -> Path:
    try:
        return Path(text).expanduser().resolve()
    except (OSError, RuntimeError) as error:
        raise InputError(f"The path {text!r} cannot be used.") from error


def _exists(path: Path, *, folder: bool) -> bool:
    try:
        return path.is_dir() if folder else path.is_file()
    except OSError:
        return False


def _gguf(text: str) -> Reference:
    path = _absolute(text)
    if not _exists(path, folder=False):
        raise ModelNotFoundError(f"There is no GGUF file {text!r}.")
    return Reference("gguf", text, path)


def _looks_local(text: str) -> bool:
    if text in (".", "..") or text.startswith(_LOCAL_STARTS):
        return True
    if "\\" in text or re.match(r"[A-Za-z]:", text):
        return True
    before_revision = text.partition("@")[0]
    if before_revision.count("/") > 1:
        return True
    # As in transformers, a folder that is there wins over a Hub id of the same spelling.
    return _exists(Path(text) / "config.json", folder=False)


def _folder(text: str) -> Reference:
    path = _absolute(text)
    if not _exists(path, folder=True):
        raise ModelNotFoundError(f"There is no model folder {text!r}.", _EXAMPLE)
    if not _exists(path / "config.json", folder=False):
        raise ModelNotFoundError(f"The folder {text!r} holds no model: it has no config.json.")
    return Reference("folder", text, path)


def _hub(text: str) -> Reference:
    match = _HUB.fullmatch(text)
    repo = match["id"] if match else ""
    if not match or len(repo) > _MAX_HUB_ID or "--" in repo or ".." in text:
        raise InputError(f"{text!r} is no model name.", _EXAMPLE)
    if repo.endswith(".git"):
        raise InputError(f"{text!r} is no model name: leave out '.git'.", _EXAMPLE)
    return Reference("hub", repo, revision=match["revision"])
