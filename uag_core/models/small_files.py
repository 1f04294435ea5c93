"""A Hub model's configuration and tokenizer alone: fetched without any weights, checked, kept.

Also what can be said about weights that nobody downloads: whether there are any that could be
loaded, and whether they are small enough for this host. Knows files, not tokenizers.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path

from huggingface_hub import constants

from uag_core import hosting
from uag_core.errors import InputError, NetworkError, RunError, UAGError
from uag_core.models import checks, disk, download, headers, hub, hub_errors
from uag_core.models.facts import check_gguf_architecture, check_gguf_library
from uag_core.models.hub import Token

_METADATA = ".metadata"
_GGUF_STEPS = (1 << 22, 1 << 24, 1 << 26)  # of a file's beginning; vocabularies take megabytes


def fetch(repo: str, sha: str, name: str, token: Token = None) -> Path:
    """The folder with configuration and tokenizer of a commit, downloaded where they are missing.

    Out of the Hub's reach, whichever cache holds both. Refuses what `hub.fetch_config` refuses,
    and where the app is hosted models whose weights are too large for it. Raises as `hub_errors`.
    """
    try:
        return _fetch(repo, sha, name, token)
    except UAGError as error:
        problem = error.with_traceback(None)
    if isinstance(problem, NetworkError) or constants.is_offline_mode():
        for base in (disk.own_root(), disk.shared_root()):
            folder = disk.repo_folder(base, repo) / "snapshots" / sha
            if (folder / "config.json").is_file() and disk.has_tokenizer(folder):
                return folder
    raise problem


def _fetch(repo: str, sha: str, name: str, token: Token) -> Path:
    hub.fetch_config(repo, sha, name, token)
    folder = disk.snapshot(repo, sha)
    disk.touch(folder)
    whole, rules = disk.is_whole(folder), hosting.current()
    if whole and rules.max_model_bytes is None:
        return folder
    files = hub.info(repo, sha, name, token).files
    rules.check_size(_weight_bytes(files), name)
    if whole:
        return folder
    lacking = [
        file
        for key, file in files.items()
        if hub.is_small(key) and key != checks.WEIGHTS_INDEX and not (folder / key).is_file()
    ]
    if sum(file.size or 0 for file in lacking) > hub.MAX_SMALL_BYTES:
        raise InputError(f"The tokenizer files of {name} are too large to be real.")
    hub.check_access(repo, sha, name, token)
    hub.download_files(folder, lacking, name, token, None, apart=True)
    return folder


def check_weights(repo: str, sha: str, name: str, token: Token = None) -> None:
    """Raise `UnsafeModelError` or `UnsupportedModelError` for weights that are never loaded.

    Says nothing out of the Hub's reach.
    """
    if disk.is_whole(disk.snapshot(repo, sha)):
        return
    try:
        files = hub.info(repo, sha, name, token).files
    except UAGError as error:
        if isinstance(error, NetworkError) or constants.is_offline_mode():
            return
        raise
    checks.check_files(files, name)


def fetch_gguf(repo: str, sha: str, file: str, name: str, token: Token = None) -> Path:
    """A GGUF file to read configuration and tokenizer from.

    The model's own where it was downloaded, else a small one with its metadata alone. Raises as
    `facts.gather`, and `InputError` for a file that is too large for the host.
    """
    check_gguf_library()
    rules = hosting.current()
    whole = disk.snapshot(repo, sha, file) / file
    if rules.max_model_bytes is not None:
        known = hub.info(repo, sha, name, token).files.get(file)
        rules.check_size((known and known.size) or 0, name)
    if whole.is_file():
        return whole
    small = disk.repo_folder(disk.root(), repo) / "snapshots" / sha / _METADATA / file
    if not small.is_file():
        hub.missing_files(repo, sha, name, token, file)  # is there such a file?
        content = _metadata(repo, sha, file, name, token)
        small.parent.mkdir(parents=True, exist_ok=True)
        partial = small.with_name(f".{small.name}.{os.getpid()}-{threading.get_ident()}")
        hub_errors.call(name, lambda: partial.write_bytes(content))
        partial.replace(small)
    disk.touch(small.parents[file.count("/") + 1])
    return small


def _metadata(repo: str, sha: str, file: str, name: str, token: Token) -> bytes:
    data = b""
    for count in _GGUF_STEPS:
        data = hub.beginning(repo, sha, file, name, token, count)
        header = headers.gguf_beginning(data, name)
        check_gguf_architecture(str(header.values.get("general.architecture") or ""), name)
        found = headers.gguf_without_weights(data)
        if found is not None:
            return found
        if len(data) < count:
            break
    raise RunError(f"The GGUF file {name} is damaged or cannot be read.")


def _weight_bytes(files: Mapping[str, download.RemoteFile]) -> int:
    """Bytes of the weights as transformers would read them: one file, or all of its parts."""
    if checks.WEIGHTS in files:
        return files[checks.WEIGHTS].size or 0
    parts = (f for key, f in files.items() if key.startswith("model") and _is_part(key))
    return sum(file.size or 0 for file in parts)


def _is_part(name: str) -> bool:
    return name.endswith(".safetensors") and "/" not in name
