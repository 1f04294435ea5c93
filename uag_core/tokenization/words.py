"""Words: the stretches of a text that a tokenizer encodes by themselves, whatever stands around.

Nearly every tokenizer cuts a running text in front of the space of a word. Between two such cuts
the same word always has the same ids, so a window may begin at the last of them, and a word that
has been encoded once needs no call of the tokenizer again (a call costs as much as encoding some
sixty characters, more when the processor's caches are full of weights). Whether a tokenizer cuts
so is checked, not assumed. Knows tokenizers only.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tokenizers import Tokenizer

_BEFORE = string.ascii_letters + string.digits + ",.;:!?"  # ends a word, in front of a space
_AFTER = string.ascii_letters + string.digits  # begins one, behind the space
_BEFORE_BYTES, _AFTER_BYTES = frozenset(_BEFORE.encode()), frozenset(_AFTER.encode())
_SPACE = 0x20
_CUT = "(?<=[A-Za-z0-9,.;:!?])(?= [A-Za-z0-9])"
_STOP = f"{_CUT}|(?<=[A-Za-z])(?=[,.;:!?])"
_DIGIT = f"{_STOP}|(?<=[0-9])(?=[0-9,.;:!?])"
# Finer first: most vocabularies part a word from the punctuation behind it, many every digit.
_CUTS = (re.compile(_DIGIT), re.compile(_STOP), re.compile(_CUT))
_WORD = re.compile(r" ?[A-Za-z0-9]+|[,.;:!?]")
_MOST = 32_768  # words of the vocabulary, by id: byte-pair vocabularies begin with the usual ones
_LONGEST = 240  # characters; a longer text is given to the tokenizer as it is
# What is known to disturb its neighbourhood, between words that are easily disturbed.
_ODD = (
    *("'s", "'ll", "n't", '"', "(", ")", "*", "**", "-", "--", "/", "\\", "_", "#", "@", "&", "="),
    *("\n", "\n\n", "\r\n", "\t", "  ", "   ", "\u00a0", "\u3000", "...", "…", "?!", "'", "’"),
    *("é", "e\u0301", "ß", "ﬁ", "½", "中文", "한국", "ไทย", "🦙", "👩\u200d👧", "\ufffd", "▁", "Ġ"),
    *("3.14", "1,000", "U.S.", "e.g.", "I", "A", "x", "def", "the", "The", "THE", "zq", "Qx"),
)


@dataclass(frozen=True, slots=True)
class Words:
    """Where the texts of a tokenizer may be cut, and the words of its vocabulary.

    `single[word]` is the id of a word, its space included, that is one token.
    """

    cut: re.Pattern[str]
    single: dict[str, int]

    def split(self, text: str) -> list[str]:
        """The words of `text`; their ids in a row are the ids of the text."""
        return self.cut.split(text)


def begins_word(before: int, space: int, after: int) -> bool:
    """Whether the three neighbouring bytes are a word's end, a space and a word's beginning."""
    return space == _SPACE and before in _BEFORE_BYTES and after in _AFTER_BYTES


def disturbed(document: dict[str, Any]) -> bool:
    """Whether a tokenizer's JSON form rules words out: chance, or a token that takes in spaces."""
    takes_in = any(token["rstrip"] and not token["special"] for token in document["added_tokens"])
    return bool(document["model"].get("dropout")) or takes_in


def find_words(tokenizer: Tokenizer, pieces: tuple[bytes, ...]) -> Words | None:
    """The words of `tokenizer`, whose tokens are `pieces`.

    None where a text cannot be cut: a token stands across a cut, or samples encode otherwise.
    """
    texts = [piece.decode(errors="replace") for piece in pieces]
    for cut in _CUTS:
        if not any(cut.search(text) for text in texts) and _cuts_nothing(tokenizer, cut):
            words = [text for text in texts if _WORD.fullmatch(text)][:_MOST]
            encoded = tokenizer.encode_batch_fast(words, add_special_tokens=False)
            ids = [encoding.ids for encoding in encoded]
            return Words(cut, {w: i[0] for w, i in zip(words, ids, strict=True) if len(i) == 1})
    return None


def _cuts_nothing(tokenizer: Tokenizer, cut: re.Pattern[str], samples: int = 300) -> bool:
    """Whether seeded samples encode to the ids of their words in a row."""
    rng = random.Random(0)
    parts = [*_ODD, *_BEFORE, *([" "] * (len(_ODD) + len(_BEFORE)))]
    texts = ["".join(rng.choices(parts, k=3 + k % 24)) for k in range(samples)]
    # Every letter beside a cut: one that is no token of its own could be joined across it.
    texts += [f"{a} {b}{c}" for a, b in zip(_BEFORE, reversed(_BEFORE), strict=True) for c in ".x"]
    texts += [f" {a}{b}{c}" for a in string.digits for b in "0123456789,.;:!?" for c in (a, "x")]
    split = [cut.split(text) for text in texts]
    whole = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    flat = [word for words in split for word in words]
    ids = iter(tokenizer.encode_batch_fast(flat, add_special_tokens=False))
    for words, expected in zip(split, whole, strict=True):
        if [i for _ in words for i in next(ids).ids] != expected.ids:
            return False
    return True


class WordEncoder:
    """Encodes short texts word by word, remembering the words of one run.

    `encode` gives a text's ids, `words` says where it may be cut (None: nowhere, and every text
    goes to the tokenizer as a whole).
    """

    def __init__(self, words: Words | None, encode: Callable[[str], list[int]]) -> None:
        self.words = words
        self._encode = encode
        self._seen: dict[str, list[int]] = {}

    def __call__(self, text: str) -> list[int]:
        """The ids of `text`."""
        words = self.words
        if words is None or len(text) > _LONGEST:
            return self._encode(text)
        single, seen = words.single, self._seen
        result: list[int] = []
        for word in words.cut.split(text):
            token_id = single.get(word)
            if token_id is not None:
                result.append(token_id)
                continue
            ids = seen.get(word)
            if ids is None:
                ids = seen[word] = self._encode(word)
            result += ids
        return result
