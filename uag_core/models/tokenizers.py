"""A model's tokenizer and configuration, without its weights.

A few files are read (for a Hub model: fetched), and what is no causal language model is refused
as it is when one is loaded. Kept in memory for as long as the files stay the same; tokenizers are
handed out read-only. Knows nothing of weights or devices.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uag_core.errors import UAGError, UnsupportedModelError
from uag_core.models import checks, hub
from uag_core.models.loading import check_folder, quiet
from uag_core.models.sources import Progress, Source, resolve

_KEPT = 6


@dataclass(frozen=True, slots=True)
class Opened:
    """A tokenizer (a fast one), the configuration beside it, and where they come from."""

    source: Source
    tokenizer: Any
    config: Any


_opened: OrderedDict[tuple[str, str], Opened] = OrderedDict()
_lock = threading.Lock()


def open_tokenizer(ref: str, *, progress: Progress | None = None) -> Opened:
    """Tokenizer and configuration of the model that `ref` names.

    Raises as `loading.load` does for names, files and models that cannot be used.
    """
    source = resolve(ref, progress=progress)
    key = (source.kind + ":" + source.id, source.fingerprint)
    with _lock:
        if key not in _opened:
            _opened[key] = _open(source)
            while len(_opened) > _KEPT:
                _opened.popitem(last=False)
        _opened.move_to_end(key)
        return _opened[key]


def load_tokenizer(ref: str, *, progress: Progress | None = None) -> Any:
    """The tokenizer of the model that `ref` names. Raises as `open_tokenizer`."""
    return open_tokenizer(ref, progress=progress).tokenizer


def _open(source: Source) -> Opened:
    name = source.ref
    if source.kind == "gguf":
        folder, options = source.path.parent, {"gguf_file": source.path.name}
    elif source.kind == "hub":
        assert source.revision is not None
        folder, options = hub.fetch_small_files(source.id, source.revision, name), {}
    else:
        folder, options = source.path, {}
    if not options:
        check_folder(folder, name)
    config = _read("AutoConfig", folder, options, name)
    checks.check_causal(config.to_dict(), name)
    tokenizer = _read("AutoTokenizer", folder, options, name)
    if getattr(tokenizer, "backend_tokenizer", None) is None:
        raise UnsupportedModelError(
            f"{name} has only a slow tokenizer.", "Choose a model with a tokenizer.json."
        )
    return Opened(source, tokenizer, config)


def _read(what: str, folder: Path, options: dict[str, str], name: str) -> Any:
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
