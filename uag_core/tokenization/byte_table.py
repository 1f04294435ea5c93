"""One `id -> bytes` table per tokenizer.

A table exists where the text of a sequence is the concatenation of the bytes of its tokens:
byte-level BPE (each character of the vocabulary entry is a byte, GPT-2's map) and
SentencePiece style vocabularies (a metaspace is a space, `<0xHH>` is a byte). Other decoders
(WordPiece, none at all) have no table; `TokenizerCodec` then decodes by prefix difference.

Works on the JSON form of a `tokenizers.Tokenizer`; knows nothing of models.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import Any

from tokenizers import Tokenizer

METASPACE = "▁"
_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def _byte_level_alphabet() -> dict[str, int]:
    """GPT-2's printable stand-in for each byte, reversed: character -> byte."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    alphabet = {chr(byte): byte for byte in printable}
    shifted = (byte for byte in range(256) if byte not in set(printable))
    alphabet.update({chr(256 + index): byte for index, byte in enumerate(shifted)})
    return alphabet


_ALPHABET = _byte_level_alphabet()


def _steps(part: dict[str, Any] | None, children: str) -> list[dict[str, Any]]:
    """The flat list of a decoder, normalizer or pre-tokenizer that may be a `Sequence`."""
    if part is None:
        return []
    if part["type"] == "Sequence":
        return [step for child in part[children] for step in _steps(child, children)]
    return [part]


def _byte_level_piece(token: str) -> bytes:
    """Bytes of a byte-level entry; a spelling outside the alphabet stands for itself."""
    try:
        return bytes([_ALPHABET[char] for char in token])
    except KeyError:
        return token.encode()


@dataclass(frozen=True, slots=True)
class ByteTable:
    """`pieces[id]` is what the token adds to a text, `b""` where an id has no entry.

    `strips_first_space`: the tokenizer's own `decode` drops one leading space of a whole
    sequence (the dummy prefix). Generated text follows a prompt, so nothing is dropped there.
    """

    pieces: tuple[bytes, ...]
    strips_first_space: bool

    def join(self, ids: list[int]) -> bytes:
        return b"".join(self.pieces[i] if 0 <= i < len(self.pieces) else b"" for i in ids)


def build_table(tokenizer: Tokenizer, document: dict[str, Any]) -> ByteTable | None:
    """The table of `tokenizer`, whose JSON form is `document`, or None where none fits.

    A candidate table is checked against `tokenizer.decode` before it is trusted.
    """
    decoders = _steps(document.get("decoder"), "decoders")
    kinds = [step["type"] for step in decoders]
    size = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1) + 1
    tokens = [tokenizer.id_to_token(i) for i in range(size)]
    strips = False
    if "ByteLevel" in kinds and set(kinds) <= {"ByteLevel", "Fuse"}:
        pieces = [b"" if token is None else _byte_level_piece(token) for token in tokens]
    elif _is_sentencepiece(decoders):
        fallback = "ByteFallback" in kinds
        strips = any(
            (step["type"] == "Strip" and step.get("content") == " " and step.get("start"))
            or (step["type"] == "Metaspace" and step.get("prepend_scheme") != "never")
            for step in decoders
        )
        pieces = [b"" if token is None else _metaspace_piece(token, fallback) for token in tokens]
    else:
        return None
    table = ByteTable(tuple(pieces), strips)
    return table if _agrees(table, tokenizer) else None


def _is_sentencepiece(decoders: list[dict[str, Any]]) -> bool:
    if not decoders:
        return False
    spaces = False
    for step in decoders:
        kind = step["type"]
        if kind == "Metaspace":
            spaces = step.get("replacement", METASPACE) == METASPACE
        elif kind == "Replace":
            if step["pattern"].get("String") != METASPACE or step["content"] != " ":
                return False
            spaces = True
        elif kind not in {"ByteFallback", "Fuse", "Strip"} or step.get("stop"):
            return False  # something that a table cannot say, or a strip at the end
    return spaces


def _metaspace_piece(token: str, fallback: bool) -> bytes:
    match = _BYTE_PIECE.fullmatch(token) if fallback else None
    return bytes([int(match[1], 16)]) if match else token.replace(METASPACE, " ").encode()


def _agrees(table: ByteTable, tokenizer: Tokenizer, samples: int = 400) -> bool:
    """Whether the table gives what `decode` gives, on seeded random sequences of ids.

    Sequences whose bytes are no valid UTF-8 are passed over: there `decode` itself is lossy.
    """
    rng = random.Random(0)
    size = len(table.pieces)
    if size == 0:
        return False
    ids = [[rng.randrange(size) for _ in range(1 + k % 6)] for k in range(samples)]
    decoded = tokenizer.decode_batch(ids, skip_special_tokens=False)
    for sequence, text in zip(ids, decoded, strict=True):
        if any(tokenizer.id_to_token(i) is None for i in sequence):
            continue
        try:
            expected = table.join(sequence).decode()
        except UnicodeDecodeError:
            continue
        if table.strips_first_space:
            expected = expected.removeprefix(" ")
        if expected != text:
            return False
    return True
