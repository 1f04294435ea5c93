"""What a tokenizer does not give back as it took it, found by trying.

A hazard is something between a text and its ids, and back, that a draft may stumble over. Most are
neutralised by the engine, and the report says so; those that lose text cost accepted candidates,
never the target's own output. Knows tokenizers, no models.
"""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass
from typing import Any, Literal

from uag_core.tokenization.codec import TokenizerCodec

Level = Literal["loss", "watch", "handled"]

_LACKS = ("rare characters", "characters it lacks become unknown tokens")
# A text of each kind that some tokenizers change, and what they do to it.
_TRIALS: tuple[tuple[str, str, str], ...] = (
    ("case", "Upper CASE", "it writes capitals as small letters"),
    ("accents", "é à ö ñ", "it drops accents"),
    ("compatibility characters", "ﬁ ½ Ⅳ ① ｆｕｌｌ", "it replaces compatibility characters"),
    ("decomposed accents", "e\u0301 n\u0303", "it composes or splits accented characters"),
    ("runs of spaces", "a  b    c", "it joins runs of spaces"),
    ("spaces at the ends", " a ", "it drops spaces at the ends"),
    ("indentation", "if x:\n    y\n\tz", "it changes line ends, tabs or indentation"),
    ("carriage returns", "a\r\nb", "it changes carriage returns"),
    ("spaces before punctuation", "don 't , x != y .", "it drops spaces before punctuation"),
    (_LACKS[0], "🦙🏿 𒎗 ጠጡ 歪", _LACKS[1]),
    ("control characters", "a\x00b\u200bc", "it drops characters that cannot be seen"),
    ("the metaspace", "a▁b", "it writes the character ▁ as a space"),
)
# Lost here, hardly any text suffers.
_RARE = frozenset({"control characters", "the metaspace", "decomposed accents"})


@dataclass(frozen=True, slots=True)
class Hazard:
    """One thing to know. `level`: "loss" (drafts lose text), "watch", or "handled"."""

    kind: str
    level: Level
    what: str
    example: str | None = None

    def to_dict(self) -> dict[str, str | None]:
        return {"kind": self.kind, "level": self.level, "what": self.what, "example": self.example}


def round_trip(codec: TokenizerCodec, text: str) -> str:
    """`text` encoded as a continuation and decoded again, as the engine does it."""
    data = b"".join(codec.pieces(codec.encode(text)))
    return data.decode("utf-8", "replace")


def hazards(tokenizer: Any, codec: TokenizerCodec, text: str = "") -> list[Hazard]:
    """Everything about one tokenizer that drafts or people may stumble over, worst first.

    `text` is tried besides our own examples.
    """
    found = [*_lossy_decoding(codec), *_losses(codec)]
    if text and not any(h.level == "loss" for h in found):
        back = round_trip(codec, text)
        if back != text:
            found.append(
                Hazard("the text", "loss", "the text itself does not come back", _part(text, back))
            )
    document = json.loads(tokenizer.backend_tokenizer.to_str())
    found += [*_prefixes(document), *_clean_up(tokenizer, document), *_specials(tokenizer)]
    order: dict[str, int] = {"loss": 0, "watch": 1, "handled": 2}
    return sorted(found, key=lambda hazard: order[hazard.level])


def _lossy_decoding(codec: TokenizerCodec) -> list[Hazard]:
    if codec.is_exact:
        return []
    what = "its tokens are no plain pieces of text; they are decoded in a short window"
    return [Hazard("decoding", "watch", what)]


def _losses(codec: TokenizerCodec) -> list[Hazard]:
    found: list[Hazard] = []
    for kind, sample, what in _TRIALS:
        back = round_trip(codec, sample)
        if back == sample:
            continue
        if kind == "spaces at the ends" and not codec.is_exact and back.strip() == sample.strip():
            continue  # words begin with a space there whatever the text
        if kind == "accents" and unicodedata.normalize("NFC", back) == sample:
            kind, what = "decomposed accents", "it composes or splits accented characters"
        if codec.unknown_id is not None and codec.unknown_id in codec.encode(sample):
            kind, what = _LACKS
        level: Level = "watch" if kind in _RARE else "loss"
        if kind not in {hazard.kind for hazard in found}:
            found.append(Hazard(kind, level, what, _part(sample, back)))
    return found


def _part(before: str, after: str, width: int = 24) -> str:
    """Where two texts part, short enough to be shown: `before → after`."""
    start = 0
    for left, right in zip(before, after, strict=False):
        if left != right:
            break
        start += 1
    start = max(0, start - 6)
    return f"{before[start : start + width]!r} → {after[start : start + width]!r}"


def _flat(part: Any) -> list[dict[str, Any]]:
    """Every step of a part of a tokenizer's document."""
    if not isinstance(part, dict):
        return []
    children = [
        child
        for key in ("normalizers", "pretokenizers", "decoders")
        for child in part.get(key) or ()
    ]
    return [part, *(step for child in children for step in _flat(child))]


def _prefixes(document: dict[str, Any]) -> list[Hazard]:
    steps = [*_flat(document.get("normalizer")), *_flat(document.get("pre_tokenizer"))]
    for step in steps:
        adds = (
            step["type"] == "Prepend"
            or (step["type"] == "Metaspace" and step.get("prepend_scheme") != "never")
            or (step["type"] == "ByteLevel" and step.get("add_prefix_space"))
        )
        if adds:
            what = "it puts a space in front of every text; drafts are encoded without it"
            return [Hazard("dummy prefix", "handled", what)]
    return []


def _clean_up(tokenizer: Any, document: dict[str, Any]) -> list[Hazard]:
    cleans = getattr(tokenizer, "clean_up_tokenization_spaces", False)
    if cleans or any(step.get("cleanup") for step in _flat(document.get("decoder"))):
        what = "its decode removes spaces before punctuation; here it is always off"
        return [Hazard("clean-up", "handled", what)]
    return []


def _specials(tokenizer: Any) -> list[Hazard]:
    """Tokens that the tokenizer itself adds to a text."""
    with_them = tokenizer("x", verbose=False)["input_ids"]
    without = tokenizer("x", add_special_tokens=False, verbose=False)["input_ids"]
    added = [i for i in with_them if i not in without]
    if not added:
        return []
    names = " ".join(str(tokenizer.convert_ids_to_tokens(i)) for i in added)
    what = f"it adds {names} to every text; here that happens once, at the prompt"
    return [Hazard("added tokens", "handled", what)]
