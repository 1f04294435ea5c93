"""Model files from the Hugging Face Hub: the pinned commit, its small files, then its weights.

Every error that the Hub's client can raise becomes one of ours with a fixed message, so that no
token, address or traceback of theirs reaches a user. Does not know how a model is loaded.
"""

from __future__ import annotations

import errno
import io
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import huggingface_hub
from huggingface_hub import constants, errors
from tqdm.auto import tqdm

from uag_core.errors import (
    DiskSpaceError,
    GatedModelError,
    InputError,
    ModelNotFoundError,
    NetworkError,
    UAGError,
)
from uag_core.models import checks

Progress = Callable[[str], None]
T = TypeVar("T")

_TIMEOUT_S = 15
_SHA = re.compile(r"[0-9a-f]{40}")
_SMALL_FILES = (
    "config.json",
    "generation_config.json",
    "tokenizer*",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "*.model",
    "chat_template*",
    "additional_chat_templates/*",
    checks.WEIGHTS_INDEX,
)
_TELL_EVERY_S = 1.0
_SPARE_BYTES = 200_000_000


def call(name: str, action: Callable[[], T]) -> T:
    """The result of `action`, with the Hub client's errors turned into ours.

    The error is raised outside of the except block, so that it carries nothing of the original.
    """
    try:
        return action()
    except UAGError:
        raise
    except Exception as error:  # noqa: BLE001 - the client's own and its HTTP library's
        problem = translate(error, name)
    raise problem


def translate(error: Exception, name: str) -> UAGError:
    """The error to show for one of `huggingface_hub`, of its HTTP client or of the disk."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(error, errors.GatedRepoError):
        return GatedModelError(
            f"{name} is gated.",
            "Accept its terms on its page, log in with `hf auth login`, then try again.",
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return ModelNotFoundError(f"{name} has no such revision.")
    if isinstance(error, errors.RepositoryNotFoundError):
        return ModelNotFoundError(
            f"There is no model {name} on the Hub, or it is private.",
            "Check the spelling, or log in with `hf auth login`.",
        )
    if isinstance(error, (errors.OfflineModeIsEnabled, errors.LocalEntryNotFoundError)):
        return _out_of_reach(name)
    if isinstance(error, errors.EntryNotFoundError):
        return ModelNotFoundError(f"{name} holds no model that transformers can load.")
    if isinstance(error, (errors.HFValidationError, errors.RevisionResolutionError)):
        return InputError(f"{name} is no model name.", "Use owner/name or owner/name@revision.")
    if status == 401:
        return InputError(
            "The Hub does not accept the stored access token.",
            "Log in again with `hf auth login`, or log out with `hf auth logout`.",
        )
    if status == 403:
        return GatedModelError(f"The Hub does not allow access to {name}.")
    if status == 429:
        return NetworkError("The Hub asks to slow down.", "Try again in some minutes.")
    if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
        return DiskSpaceError(f"The disk is full: {name} could not be stored.")
    if getattr(error, "errno", None) in (errno.EACCES, errno.EROFS):
        return InputError("The Hub's cache folder cannot be written.", "Set HF_HOME to another.")
    if status is not None:
        return NetworkError(f"The Hub could not deliver {name} (status {status}).")
    if isinstance(error, (ConnectionError, TimeoutError, errors.HTTPError)):
        return _out_of_reach(name)
    return NetworkError(f"The download of {name} failed.", "Try again: it goes on where it was.")


def _out_of_reach(name: str) -> UAGError:
    hint = "The embedded pair works without the Hub."
    if constants.is_offline_mode():
        return ModelNotFoundError(
            f"{name} is not in the local cache, and offline mode (HF_HUB_OFFLINE) is on.", hint
        )
    return NetworkError(f"{name} is not in the local cache, and the Hub is out of reach.", hint)


def resolve(repo: str, revision: str | None, name: str) -> str:
    """The commit (40 hex digits) that `revision`, or the default branch, stands for.

    Out of the Hub's reach, the commit that the local cache has for it. Raises as `translate`.
    """
    if revision is not None and _SHA.fullmatch(revision):
        return revision
    try:
        info = huggingface_hub.HfApi().model_info(repo, revision=revision, timeout=_TIMEOUT_S)
        problem: Exception | None = None
    except Exception as error:  # noqa: BLE001 - the client's own and its HTTP library's
        problem = translate(error, name)
    if problem is None and info.sha and _SHA.fullmatch(info.sha):
        return info.sha
    if problem is None or isinstance(problem, NetworkError) or constants.is_offline_mode():
        cached = huggingface_hub.try_to_load_from_cache(repo, "config.json", revision=revision)
        if isinstance(cached, str):
            return Path(cached).parent.name
    raise problem or NetworkError(f"The Hub did not say which commit {name} is at.")


def fetch_small_files(repo: str, sha: str, name: str) -> Path:
    """Download configuration and tokenizer, check them, and return the snapshot's folder.

    Raises `UnsafeModelError` or `UnsupportedModelError` before any weights are touched.
    """
    config = Path(
        call(name, lambda: huggingface_hub.hf_hub_download(repo, "config.json", revision=sha))
    )
    content = checks.read_config(config, name)
    checks.check_code(content, name)
    checks.check_causal(content, name)
    return Path(call(name, lambda: _snapshot(repo, sha, list(_SMALL_FILES), None)))


def fetch_weights(repo: str, sha: str, folder: Path, name: str, progress: Progress | None) -> None:
    """Download the safetensors of one commit into the Hub's cache; what is there is kept.

    Raises `UnsafeModelError` where there are only pickles, `DiskSpaceError` where they do not
    fit, and as `translate`.
    """
    index = folder / checks.WEIGHTS_INDEX
    if index.is_file():
        files = checks.shards(index, name)
    else:
        files = (checks.WEIGHTS,)
    if all((folder / file).exists() for file in files):
        return
    sizes = call(name, lambda: _sizes(repo, sha))
    checks.check_files(sizes, name)
    needed = sum(sizes.get(file, 0) for file in files if not (folder / file).exists())
    if shutil.disk_usage(folder).free < needed + _SPARE_BYTES:
        raise DiskSpaceError(
            f"{name} needs {needed / 1e9:.1f} GB of free disk space.",
            "Free some, or set HF_HOME to another folder.",
        )
    call(name, lambda: _snapshot(repo, sha, list(files), _bar(name, progress)))


def _sizes(repo: str, sha: str) -> dict[str, int]:
    info = huggingface_hub.HfApi().model_info(
        repo, revision=sha, timeout=_TIMEOUT_S, files_metadata=True
    )
    return {sibling.rfilename: sibling.size or 0 for sibling in info.siblings or ()}


def _snapshot(repo: str, sha: str, patterns: list[str], bar: type[tqdm] | None) -> str:
    return huggingface_hub.snapshot_download(
        repo, revision=sha, allow_patterns=patterns, tqdm_class=bar or _bar("", None)
    )


def _bar(name: str, progress: Progress | None) -> type[tqdm]:
    """A progress bar that draws nothing and tells `progress` about bytes once a second."""
    told = time.monotonic()

    class Bar(tqdm):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            kwargs.pop("name", None)
            super().__init__(*args, **{**kwargs, "file": io.StringIO(), "disable": False})

        def update(self, n: float | None = 1) -> bool | None:
            nonlocal told
            result = super().update(n)
            if progress and self.unit == "B" and time.monotonic() - told >= _TELL_EVERY_S:
                told = time.monotonic()
                progress(
                    f"Downloading {name}: {self.n / 1e6:.0f} of {(self.total or 0) / 1e6:.0f} MB."
                )
            return result

    return Bar
