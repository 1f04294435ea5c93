"""The tiny tokenizers by name, as the Tokenize tab gets real ones."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tests.fixtures.reference import codec_of
from tests.fixtures.tokenizers import KINDS
from uag_core.errors import ModelNotFoundError


@dataclass
class Named:
    id: str
    tokenizer: Any
    codec: Any
    revision: str | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


@cache
def named(kind: str) -> Named:
    return Named(kind, KINDS[kind](), codec_of(kind))


def get(name: str, progress: Any = None) -> Named:
    """The two defaults are a byte-level tokenizer and a SentencePiece style one."""
    kind = {"embedded/target": "byte_level_a", "embedded/assistant": "gemma_style"}.get(name, name)
    if kind not in KINDS:
        raise ModelNotFoundError(f"There is no model named {name!r}.")
    return named(kind)
