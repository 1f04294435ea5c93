"""A model's tokenizer and configuration, without its weights.

A few files are read (for a Hub model: fetched), and what is no causal language model is refused
as it is when one is loaded. Kept in memory for as long as the files stay the same; what is
returned is never shared with a loaded model. Knows nothing of weights or devices.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from uag_core.errors import UAGError, UnsupportedModelError
from uag_core.models import checks, small_files
from uag_core.models.facts import check_gguf_library
from uag_core.models.loading import check_folder
from uag_core.models.sources import Source, resolve
from uag_core.models.watching import quiet
from uag_core.tokenization import TokenizerCodec

Progress = Callable[[str], None]

_KEPT = 8  # a tokenizer takes some ten megabytes


@dataclass(frozen=True)
class LoadedTokenizer:
    """A fast tokenizer with its codec and the configuration beside it.

    Hold `lock` while the tokenizer itself is used.
    """

    source: Source
    tokenizer: Any = field(repr=False)
    config: Any = field(repr=False)
    codec: TokenizerCodec = field(repr=False)
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def id(self) -> str:
        """The model's name, for reports."""
        return self.source.id

    @property
    def revision(self) -> str | None:
        """The commit or digest of its files, for reports."""
        return self.source.revision


_loaded: OrderedDict[tuple[str, str, str], LoadedTokenizer] = OrderedDict()
_mutex = threading.Lock()
_reading = threading.Lock()  # two visitors never read files at once


def load_tokenizer(
    ref: str, progress: Progress | None = None, *, token: str | bool | None = None
) -> LoadedTokenizer:
    """The tokenizer of the model that `ref` names; the last few are kept.

    `token` is the caller's own access token for the Hub. Raises as `loading.load`, with
    `UnsupportedModelError` where there is no fast tokenizer.
    """
    source = resolve(ref, progress=progress, token=token)
    key = (source.kind, source.id, source.fingerprint)
    found = _find(key)
    if found is not None:
        return found
    folder, options = _files(source)  # outside of the locks: a slow server holds up nobody else
    with _reading:
        found = _find(key)
        if found is None:
            found = _read(source, folder, options)
            with _mutex:
                _loaded[key] = found
                while len(_loaded) > _KEPT:
                    _loaded.popitem(last=False)
    return found


def _find(key: tuple[str, str, str]) -> LoadedTokenizer | None:
    with _mutex:
        if key in _loaded:
            _loaded.move_to_end(key)
        return _loaded.get(key)


def _files(source: Source) -> tuple[Path, dict[str, str]]:
    """The folder to read, and what `from_pretrained` has to know besides."""
    name, folder, options = source.ref, source.path, {}
    if source.kind == "hub":
        assert source.revision is not None
        folder = small_files.fetch(source.id, source.revision, name, source.token)
        check_folder(folder, name)
    elif source.kind == "hub_gguf":
        assert source.revision is not None
        assert source.file is not None
        file = small_files.fetch_gguf(source.id, source.revision, source.file, name, source.token)
        folder, options["gguf_file"] = file.parent, file.name
    elif source.kind == "gguf":
        check_gguf_library()
        folder, options["gguf_file"] = folder.parent, folder.name
    else:
        check_folder(folder, name)
    return folder, options


def _read(source: Source, folder: Path, options: dict[str, str]) -> LoadedTokenizer:
    name = source.ref
    config = _part("AutoConfig", folder, options, name)
    checks.check_causal(config.to_dict(), name)
    tokenizer = _part("AutoTokenizer", folder, options, name)
    if getattr(tokenizer, "backend_tokenizer", None) is None:
        raise UnsupportedModelError(
            f"{name} has only a slow tokenizer.", "Choose a model with a tokenizer.json."
        )
    return LoadedTokenizer(source, tokenizer, config, TokenizerCodec(tokenizer))


def _part(what: str, folder: Path, options: dict[str, str], name: str) -> Any:
    import transformers

    try:
        with quiet():
            return getattr(transformers, what).from_pretrained(
                folder, trust_remote_code=False, local_files_only=True, **options
            )
    except UAGError:
        raise
    except Exception:  # noqa: BLE001 - whatever a damaged file makes transformers raise
        part = "configuration" if what == "AutoConfig" else "tokenizer"
    raise UnsupportedModelError(f"{name} has no {part} that transformers can read.")
