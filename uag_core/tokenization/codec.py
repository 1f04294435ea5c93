"""Encoding and decoding of running text for one tokenizer, safely and byte by byte.

`TokenizerCodec` works on a private copy of the fast tokenizer, prepared for text that continues
something: special-token parsing off, no BOS, no dummy prefix, decode clean-up off. The copy is
never shared with anybody else, and a lock guards it (a fast tokenizer used by two threads can
raise "Already borrowed": transformers#47085). Knows nothing of models or tensors.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any

from tokenizers import Tokenizer

from uag_core.errors import UnsupportedModelError
from uag_core.tokenization.byte_table import METASPACE, ByteTable, build_table
from uag_core.tokenization.words import WordEncoder, Words, disturbed, find_words

# Enough to see every merge that a decoder makes across neighbouring tokens.
_DECODE_WINDOW = 8
# A noncharacter: tokenizers never see it in text worth generating.
_HIDDEN = "\U0010ffff"


def _without_prefixes(part: dict[str, Any] | None) -> dict[str, Any] | None:
    """A normalizer or pre-tokenizer that puts no dummy space in front of a text."""
    if part is None:
        return None
    kind = part["type"]
    if kind == "Sequence":
        for key in ("normalizers", "pretokenizers"):
            if key in part:
                kept = [_without_prefixes(child) for child in part[key]]
                return {**part, key: [child for child in kept if child is not None]}
    if kind == "Prepend":
        return None
    if kind == "Metaspace":
        return {**part, "prepend_scheme": "never"}
    if kind == "ByteLevel":
        return {**part, "add_prefix_space": False}
    return part


def _without_cleanup(part: dict[str, Any] | None) -> dict[str, Any] | None:
    """A decoder that keeps every space."""
    if part is None:
        return None
    if part["type"] == "Sequence":
        return {**part, "decoders": [_without_cleanup(child) for child in part["decoders"]]}
    return {**part, "cleanup": False} if "cleanup" in part else part


class TokenizerCodec:
    """Bytes of tokens and tokens of bytes, for a `PreTrainedTokenizerFast`.

    Attributes:
        table: the `ByteTable`, or None where tokens must be decoded by prefix difference.
        size: number of ids the tokenizer knows (largest id + 1).
        control_ids: ids that are no text (special tokens).
        fingerprint: equal exactly when two tokenizers turn the same text into the same ids.

    Raises `UnsupportedModelError` for a tokenizer without a fast back end.
    """

    def __init__(self, tokenizer: Any) -> None:
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise UnsupportedModelError(
                f"The tokenizer {type(tokenizer).__name__} has no fast version.",
                "Choose a model that ships a tokenizer.json.",
            )
        document = json.loads(backend.to_str())
        document["truncation"] = document["padding"] = None
        self.fingerprint = _fingerprint(document)
        document["post_processor"] = None
        document["normalizer"] = _without_prefixes(document.get("normalizer"))
        document["pre_tokenizer"] = _without_prefixes(document.get("pre_tokenizer"))
        document["decoder"] = _without_cleanup(document.get("decoder"))
        added = document["added_tokens"]
        self._spellings = {token["id"]: token["content"] for token in added}
        _hide_specials(document)
        self._backend = Tokenizer.from_str(json.dumps(document))
        self._backend.encode_special_tokens = True
        self._lock = threading.Lock()
        self.table: ByteTable | None = build_table(self._backend, document)
        self._has_words = self.table is not None and not disturbed(document)
        self.normalizer: str | None = (document["normalizer"] or {}).get("type")
        vocabulary = self._backend.get_vocab(with_added_tokens=True)
        self.size = max(vocabulary.values(), default=-1) + 1
        special = {token["id"] for token in added if token["special"]}
        special.update(i for i in getattr(tokenizer, "all_special_ids", ()) if i is not None)
        self.control_ids = frozenset(special)
        self._known = frozenset(vocabulary.values())
        unknown = document["model"].get("unk_token") or getattr(tokenizer, "unk_token", None)
        self._texts: tuple[bytes, ...] = ()  # of a table, control ids left blank
        if self.table is not None:
            blank = (b"" if self.is_control(i) else p for i, p in enumerate(self.table.pieces))
            self._texts = tuple(blank)
        self.unknown_id: int | None = vocabulary.get(unknown) if unknown else None
        if "unk_id" in document["model"]:
            self.unknown_id = document["model"]["unk_id"]

    @property
    def is_exact(self) -> bool:
        """Whether a sequence's text is the concatenation of its tokens' bytes."""
        return self.table is not None

    def is_control(self, token_id: int) -> bool:
        """Whether the id is no text: a special token, or an id that the tokenizer lacks."""
        return token_id in self.control_ids or token_id not in self._known

    def spelling(self, token_id: int) -> bytes:
        """The literal spelling of an id, for showing control tokens; empty where unknown."""
        token = self._spellings.get(token_id)
        if token is None and 0 <= token_id < self.size:
            token = self._backend.id_to_token(token_id)
        return (token or "").encode()

    def piece(self, token_id: int, previous: Sequence[int] = ()) -> bytes:
        """Bytes that `token_id` adds to a text after the ids `previous`; control ids add none."""
        if self._texts:
            return self._texts[token_id] if 0 <= token_id < len(self._texts) else b""
        if self.is_control(token_id):
            return b""
        window: list[int] = []
        for earlier in reversed(previous[-_DECODE_WINDOW:] if previous else ()):
            if self.is_control(earlier):
                break
            window.insert(0, earlier)
        before, after = self._decode(window), self._decode([*window, token_id])
        if after.startswith(before):
            return after[len(before) :].encode()
        common = 0
        for left, right in zip(before, after, strict=False):
            if left != right:
                break
            common += 1
        return after[common:].encode()

    def pieces(self, ids: Sequence[int], previous: Sequence[int] = ()) -> list[bytes]:
        """`piece` of each id in turn."""
        if self._texts:
            return [self.piece(token_id) for token_id in ids]
        history = list(previous)
        result = []
        for token_id in ids:
            result.append(self.piece(token_id, history))
            history.append(token_id)
        return result

    def _decode(self, ids: list[int]) -> str:
        with self._lock:
            return self._backend.decode(ids, skip_special_tokens=False)

    def encode(self, text: str) -> list[int]:
        """Ids of a text that continues another one: no specials, no BOS, no dummy prefix."""
        with self._lock:
            return self._backend.encode(text, add_special_tokens=False).ids

    def encode_with_ends(self, text: str) -> tuple[list[int], list[int]]:
        """`encode`, with the byte offset in UTF-8 `text` at which each token ends."""
        with self._lock:
            encoding = self._backend.encode(text, add_special_tokens=False)
        ids = encoding.ids
        total = len(text.encode())
        exact = self.ends(ids, text)
        if exact is not None:
            return ids, exact
        # A normaliser changed the text, or a token stands for several characters: its own offsets.
        byte_at = [0]
        for char in text:
            byte_at.append(byte_at[-1] + len(char.encode()))
        ends: list[int] = []
        position = 0
        for start, end in encoding.offsets:
            position = max(position, byte_at[end])
            # A token that begins inside the text of earlier ones shares one span with them.
            index = len(ends) - 1
            while index >= 0 and ends[index] > byte_at[start]:
                ends[index] = position
                index -= 1
            ends.append(position)
        if ends:
            ends[-1] = total
        return ids, ends

    def ends(self, ids: Sequence[int], text: str) -> list[int] | None:
        """Where in UTF-8 `text` its tokens `ids` end; None where their bytes are not its bytes."""
        if self.table is None:
            return None
        # Equal lengths are not enough: a normaliser may lengthen one character and shorten another.
        pieces = [self.table.pieces[token_id] for token_id in ids]
        return list(accumulate(map(len, pieces))) if b"".join(pieces) == text.encode() else None

    def normalise(self, text: str) -> str:
        """What the tokenizer makes of a text before cutting it, with spaces written as spaces."""
        with self._lock:
            part = self._backend.normalizer
            changed = text if part is None else part.normalize_str(text)
        marks = self.table is not None and METASPACE not in text
        return changed.replace(METASPACE, " ") if marks else changed

    @cached_property
    def words(self) -> Words | None:
        """Where texts may be cut for encoding, found at the first use (a fraction of a second)."""
        if self.table is None or not self._has_words:
            return None
        with self._lock:
            return find_words(self._backend, self.table.pieces)

    def word_encoder(self) -> WordEncoder:
        """`encode` for the short texts of one run, word by word."""
        return WordEncoder(self.words, self.encode)

    @cached_property
    def has_unknown(self) -> bool:
        """Whether some text can only be encoded as the unknown token."""
        return self.unknown_id is not None and "\U0001f999" not in self._round_trip("\U0001f999")

    def _round_trip(self, text: str) -> str:
        return self._decode(self.encode(text))


def _hide_specials(document: dict[str, Any]) -> None:
    """Keep typed text from becoming a special token where the model's own vocabulary has it.

    Unigram vocabularies (T5, XLM-R) list their control tokens as ordinary pieces, word-level ones
    as ordinary words; no parsing switch reaches those. They get a spelling that no text has.
    """
    model = document["model"]
    whole_words = model["type"] in {"Unigram", "WordLevel", "WordPiece"}
    if not whole_words and not model.get("ignore_merges"):
        return
    special = {token["content"] for token in document["added_tokens"] if token["special"]}
    special.discard(model.get("unk_token"))
    vocabulary = model["vocab"]
    if isinstance(vocabulary, dict):
        hidden = special & set(vocabulary)
        model["vocab"] = {_HIDDEN * (k in hidden) + k: v for k, v in vocabulary.items()}
    else:
        hidden = special & {piece for piece, _ in vocabulary}
        model["vocab"] = [[_HIDDEN * (p in hidden) + p, score] for p, score in vocabulary]
    document["added_tokens"] = [
        token for token in document["added_tokens"] if token["content"] not in hidden
    ]


def _fingerprint(document: dict[str, Any]) -> str:
    """Digest of what decides ids: vocabulary, merges, normaliser, splitting, added tokens.

    Sizes decide nothing (transformers#45307, sglang#24051); truncation, padding and the
    post-processor (which only adds BOS or EOS) are left out.
    """
    parts = {
        key: document.get(key)
        for key in ("model", "normalizer", "pre_tokenizer", "decoder", "added_tokens")
    }
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
