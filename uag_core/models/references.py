"""What the name of a model means: embedded, a local folder, a GGUF file, or a Hub repository.

Strict on purpose: the names come from text fields and the command line. Looks at the local disk
(never in hosted mode) but not at the network, and does not know how anything is loaded. Imports
no torch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from uag_core import hosting
from uag_core.errors import InputError, ModelNotFoundError

EMBEDDED = ("embedded/target", "embedded/assistant")
MAX_LENGTH = 1024

Kind = Literal["embedded", "folder", "gguf", "hub", "hub_gguf"]

# One part of a Hub id: letters, digits, "-", "_" and ".", neither "-" nor "." at its ends.
_PART = r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?"
_HUB = re.compile(
    rf"(?P<id>(?:{_PART}/)?{_PART})(?:@(?P<revision>[A-Za-z0-9][A-Za-z0-9._/-]{{0,127}}))?"
)
_MAX_HUB_ID = 96
# A GGUF file inside a repository: owner/name:file.gguf, owner/name@revision:folder/file.gguf.
_HUB_GGUF = re.compile(
    rf"(?P<repo>(?:{_PART}/)?{_PART}(?:@[A-Za-z0-9][A-Za-z0-9._/-]{{0,127}})?)"
    rf":(?P<file>(?:{_PART}/)*{_PART})",
    re.IGNORECASE,
)
_SPLIT_GGUF = re.compile(r"-\d{5}-of-\d{5}\.gguf$", re.IGNORECASE)
_LOCAL_STARTS = ("/", "./", "../", "~", ".\\", "..\\")
_HOSTED_EXAMPLE = "Use owner/name, owner/name@revision, owner/name:file.gguf or embedded/target."
_EXAMPLE = (
    "Use owner/name, owner/name@revision, owner/name:file.gguf, a local folder or embedded/target."
)


@dataclass(frozen=True, slots=True)
class Reference:
    """A parsed model name.

    `id` is what reports show: the embedded name, the Hub id without its revision, or the path as
    it was typed. `path` is the absolute folder or file of local references, else None.
    `revision` is the branch, tag or commit that was asked for, else None. `file` is the GGUF file
    inside a Hub repository, else None.
    """

    kind: Kind
    id: str
    path: Path | None = None
    revision: str | None = None
    file: str | None = None


def parse(ref: str, *, rules: hosting.Hosting | None = None) -> Reference:
    """The meaning of `ref` under the rules of this process (see `uag_core.hosting`).

    Raises `InputError` for text that names no model or one that may not be used here, and
    `ModelNotFoundError` for embedded names, folders and files that do not exist. A Hub id is only
    checked for its form. Where local paths are closed, the disk is not even looked at.
    """
    rules = hosting.current() if rules is None else rules
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
        return _gguf(text, rules)
    if _has_local_form(text) or (rules.local_paths and _is_model_folder(text)):
        _check_local(rules)
        return _folder(text)
    return _hub(text, rules)


def _check_local(rules: hosting.Hosting) -> None:
    if not rules.local_paths:
        raise InputError("Folders and files of the server cannot be used here.", _HOSTED_EXAMPLE)


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


def _gguf(text: str, rules: hosting.Hosting) -> Reference:
    match = _HUB_GGUF.fullmatch(text)
    if _SPLIT_GGUF.search(text):
        raise InputError(
            f"{text!r} is one of several parts, which transformers cannot read.",
            "Choose a GGUF file that is whole.",
        )
    if match and ".." not in text and not _is_drive(text):
        hub = _hub(match["repo"], rules)
        return Reference("hub_gguf", hub.id, revision=hub.revision, file=match["file"])
    _check_local(rules)
    path = _absolute(text)
    if not _exists(path, folder=False):
        raise ModelNotFoundError(f"There is no GGUF file {text!r}.")
    return Reference("gguf", text, path)


def _is_drive(text: str) -> bool:
    return bool(re.match(r"[A-Za-z]:[\\/]", text))


def _has_local_form(text: str) -> bool:
    if text in (".", "..") or text.startswith(_LOCAL_STARTS):
        return True
    if "\\" in text or re.match(r"[A-Za-z]:", text):
        return True
    return text.partition("@")[0].count("/") > 1


def _is_model_folder(text: str) -> bool:
    """As in transformers, a folder that is there wins over a Hub id of the same spelling."""
    return _exists(Path(text) / "config.json", folder=False)


def _folder(text: str) -> Reference:
    path = _absolute(text)
    if not _exists(path, folder=True):
        raise ModelNotFoundError(f"There is no model folder {text!r}.", _EXAMPLE)
    if not _exists(path / "config.json", folder=False):
        raise ModelNotFoundError(f"The folder {text!r} holds no model: it has no config.json.")
    return Reference("folder", text, path)


def _hub(text: str, rules: hosting.Hosting) -> Reference:
    match = _HUB.fullmatch(text)
    repo = match["id"] if match else ""
    if not match or len(repo) > _MAX_HUB_ID or "--" in repo or ".." in text:
        raise InputError(
            f"{text!r} is no model name.", _EXAMPLE if rules.local_paths else _HOSTED_EXAMPLE
        )
    if repo.endswith(".git"):
        raise InputError(f"{text!r} is no model name: leave out '.git'.")
    rules.check_id(repo)
    return Reference("hub", repo, revision=match["revision"])
