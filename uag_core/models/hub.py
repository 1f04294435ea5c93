"""Model files from the Hugging Face Hub: the pinned commit, its small files, then its weights.

Asks with the caller's own token and keeps who may have what apart. Does not know how a model is
loaded, nor where the errors' words come from (hub_errors.py).
"""

from __future__ import annotations

import fnmatch
import hashlib
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import huggingface_hub
from huggingface_hub import constants
from huggingface_hub.utils import build_hf_headers

from uag_core import hosting
from uag_core.errors import InputError, ModelNotFoundError, NetworkError, UAGError
from uag_core.models import checks, disk, download
from uag_core.models.hub_errors import call

Progress = Callable[[str], None]
Token = str | bool | None  # a visitor's own, False for none, None for the one stored here

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
MAX_SMALL_BYTES = 500_000_000  # all small files together
_MAX_INFOS = 500
_ACCESS_S = 600.0  # how long an allowed access is believed


@dataclass(frozen=True, slots=True)
class RepoInfo:
    """What the Hub says about one commit of a repository.

    `files` maps names to `RemoteFile`s; `parameters` counts values by dtype, as in safetensors
    headers, None where the Hub does not say; `gated` is "auto" or "manual" where terms apply.
    """

    repo: str
    sha: str
    files: dict[str, download.RemoteFile] = field(repr=False)
    gated: str | None = None
    licence: str | None = None
    likes: int | None = None
    parameters: dict[str, int] | None = None
    gguf_parameters: int | None = None


_infos: dict[tuple[str, str | None, str], RepoInfo] = {}
_allowed: dict[tuple[str, str], float] = {}


def identity(token: Token) -> str:
    """Who asks, as a key: never the token itself."""
    if isinstance(token, str):
        return hashlib.sha256(token.encode()).hexdigest()[:16]
    return "nobody" if token is False else "local"


def info(repo: str, revision: str | None, name: str, token: Token = None) -> RepoInfo:
    """What the Hub says about `revision` (or the default branch). Raises as `hub_errors`."""
    token = hosting.current().token_for(token)
    key = (repo, revision, identity(token))
    if key not in _infos:
        api = huggingface_hub.HfApi()

        def ask() -> Any:
            return api.model_info(
                repo, revision=revision, timeout=_TIMEOUT_S, files_metadata=True, token=token
            )

        said = call(name, ask)
        if not said.sha or not _SHA.fullmatch(said.sha):
            raise NetworkError(f"The Hub did not say which commit {name} is at.")
        while len(_infos) > _MAX_INFOS:
            _infos.pop(next(iter(_infos)))
        _infos[key] = _infos[repo, said.sha, identity(token)] = _read_info(repo, said)
        disk.remember_commit(repo, revision, said.sha)
    return _infos[key]


def _read_info(repo: str, said: Any) -> RepoInfo:
    files = {}
    for sibling in said.siblings or ():
        large = getattr(sibling, "lfs", None)
        files[sibling.rfilename] = download.RemoteFile(
            name=sibling.rfilename,
            url=huggingface_hub.hf_hub_url(repo, sibling.rfilename, revision=said.sha),
            size=sibling.size,
            sha256=getattr(large, "sha256", None),
            blob=None if large else getattr(sibling, "blob_id", None),
        )
    weights = getattr(said, "safetensors", None)
    gguf = getattr(said, "gguf", None)
    card = getattr(said, "card_data", None)
    total = gguf.get("total") if isinstance(gguf, dict) else None
    return RepoInfo(
        repo=repo,
        sha=said.sha,
        files=files,
        gated=said.gated if isinstance(getattr(said, "gated", None), str) else None,
        licence=_text(getattr(card, "license", None)),
        likes=getattr(said, "likes", None),
        parameters=dict(weights.parameters) if weights is not None else None,
        gguf_parameters=total if isinstance(total, int) else None,
    )


def _text(value: Any) -> str | None:
    if isinstance(value, list):
        value = value[0] if value else None
    return value if isinstance(value, str) else None


def check_access(repo: str, revision: str | None, name: str, token: Token = None) -> None:
    """Raise `GatedModelError` where the caller may not download a gated model.

    The Hub is asked with the caller's own token; a yes is believed for ten minutes.
    """
    token = hosting.current().token_for(token)
    key = (repo, identity(token))
    if time.monotonic() - _allowed.get(key, -_ACCESS_S) < _ACCESS_S:
        return
    if info(repo, revision, name, token).gated:
        call(name, lambda: huggingface_hub.HfApi().auth_check(repo, token=token))
    _allowed[key] = time.monotonic()


def resolve(repo: str, revision: str | None, name: str, token: Token = None) -> str:
    """The commit (40 hex digits) that `revision`, or the default branch, stands for.

    Out of the Hub's reach, the commit that a local cache has for it. Raises as `hub_errors`.
    """
    if revision is not None and _SHA.fullmatch(revision):
        return revision
    try:
        return info(repo, revision, name, token).sha
    except UAGError as error:
        problem = error.with_traceback(None)
    if isinstance(problem, NetworkError) or constants.is_offline_mode():
        cached = disk.cached_commit(repo, revision)
        if cached:
            return cached
    raise problem


def fetch_config(repo: str, sha: str, name: str, token: Token = None) -> dict[str, Any]:
    """The model's configuration, checked: nothing else is downloaded for it.

    Raises `UnsafeModelError` or `UnsupportedModelError` for what can be refused by it.
    """
    folder = disk.snapshot(repo, sha)
    config = folder / "config.json"
    if not config.is_file():
        files = info(repo, sha, name, token).files
        check_access(repo, sha, name, token)
        if "config.json" not in files:
            checks.check_files(files, name)
            raise ModelNotFoundError(f"{name} holds no model that transformers can load.")
        download_files(folder, [files["config.json"]], name, token, None, apart=True)
    content = checks.read_config(config, name)
    checks.check_code(content, name)
    checks.check_causal(content, name)
    return content


def beginning(repo: str, sha: str, file: str, name: str, token: Token, count: int) -> bytes:
    """The first `count` bytes of a file, without downloading it. Raises as `hub_errors`."""
    check_access(repo, sha, name, token)
    headers = build_hf_headers(token=hosting.current().token_for(token))
    url = huggingface_hub.hf_hub_url(repo, file, revision=sha)
    return call(name, lambda: download.beginning(url, headers, count))


def header_parameters(
    repo: str, sha: str, files: Iterable[str], name: str, token: Token
) -> dict[str, int]:
    """Values by dtype, as headers of safetensors files on the Hub say. Raises as `hub_errors`."""
    check_access(repo, sha, name, token)
    asks_as = hosting.current().token_for(token)
    counts: dict[str, int] = {}
    for file in files:

        def ask(file: str = file) -> Any:
            return huggingface_hub.HfApi().parse_safetensors_file_metadata(
                repo, file, revision=sha, token=asks_as, timeout=_TIMEOUT_S
            )

        for dtype, count in call(name, ask).parameter_count.items():
            counts[str(dtype)] = counts.get(str(dtype), 0) + count
    return counts


def missing_files(
    repo: str, sha: str, name: str, token: Token = None, gguf: str | None = None
) -> list[download.RemoteFile]:
    """What would have to be downloaded. Raises `UnsafeModelError` where there are only pickles."""
    folder = disk.snapshot(repo, sha, gguf)
    if (folder / gguf).is_file() if gguf else disk.is_whole(folder):
        return []
    files = info(repo, sha, name, token).files
    if gguf:
        if gguf not in files:
            some = checks.some_gguf(files)
            raise ModelNotFoundError(
                f"{name} is not in its repository.", f"It has {some}." if some else None
            )
        return [files[gguf]]
    checks.check_files(files, name)
    small = [file for key, file in files.items() if is_small(key)]
    if sum(file.size or 0 for file in small) > MAX_SMALL_BYTES:
        raise InputError(f"The tokenizer files of {name} are too large to be real.")
    index = folder / checks.WEIGHTS_INDEX
    if checks.WEIGHTS_INDEX in files and not index.is_file():
        check_access(repo, sha, name, token)
        download_files(folder, [files[checks.WEIGHTS_INDEX]], name, token, None, apart=True)
    names = checks.shards(index, name) if index.is_file() else (checks.WEIGHTS,)
    lacking = [key for key in names if key not in files]
    if lacking:
        raise ModelNotFoundError(f"{name} lacks the weight file {lacking[0]}.")
    wanted = [*small, *(files[key] for key in names)]
    return [file for file in wanted if not (folder / file.name).is_file()]


def is_small(name: str) -> bool:
    """Whether a file of a repository belongs to its configuration or its tokenizer."""
    if ".." in name or "\\" in name or name.endswith(checks.PICKLES):
        return False
    return any(
        fnmatch.fnmatchcase(name, pattern) and name.count("/") == pattern.count("/")
        for pattern in _SMALL_FILES
    )


def fetch(
    repo: str,
    sha: str,
    name: str,
    token: Token = None,
    progress: Progress | None = None,
    gguf: str | None = None,
) -> Path:
    """Download what is missing of a commit; the folder with all files of the model.

    Going on where an earlier attempt ended, with room made in our own cache first. `progress` is
    called at least twice a second while it lasts, and may raise to cancel. Raises
    `DiskSpaceError` where it does not fit, and as `hub_errors`.
    """
    folder = disk.snapshot(repo, sha, gguf)
    files = missing_files(repo, sha, name, token, gguf)
    disk.touch(folder)
    if files:
        check_access(repo, sha, name, token)
        weights = sum(file.size or 0 for file in files if not is_small(file.name))
        hosting.current().check_size(weights, name)
        needed = sum((file.size or 0) - _have(folder, file) for file in files)
        disk.make_room(needed, folder, name)
        download_files(folder, files, name, token, progress)
    return folder


def _have(folder: Path, file: download.RemoteFile) -> int:
    partial = download.partial_path(folder / file.name)
    return partial.stat().st_size if partial.is_file() else 0


def download_files(
    folder: Path,
    files: Iterable[download.RemoteFile],
    name: str,
    token: Token,
    progress: Progress | None,
    *,
    apart: bool = False,
) -> None:
    """Download `files` into `folder`; `apart` as in `download.fetch`. Raises as `hub_errors`."""
    files = list(files)
    total = sum(file.size or 0 for file in files)
    meter = download.Meter(name, total, progress or (lambda _line: None))
    headers = build_hf_headers(token=hosting.current().token_for(token))

    def get_all() -> None:
        for file in files:
            meter.begin_file()
            target = folder / file.name
            download.fetch(file, target, headers=headers, advance=meter.advance, apart=apart)

    call(name, get_all)
