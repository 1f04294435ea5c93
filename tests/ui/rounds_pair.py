"""A scripted pair whose runs have real rounds: drafts, candidates and fates over two tokenizers.

The target's name chooses the text; no model is involved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tests.fixtures.reference import codec_of
from tests.ui.fake_pair import HOSTILE, CompareDone, CompareStep, FakePair, document
from uag_core.events import Drafted, Event, Finished, Origin, Piece, Started, Verified
from uag_core.tokenization.codec import TokenizerCodec
from uag_core.tokenization.utf8 import StreamingText

PROSE = (
    "The keeper wound the clock and listened to it walk backwards through the night.\n\n"
    "1. Café, naïve, e\u0301.\r\n2. 今天天气很好 🦙🏿 👩\u200d👩\u200d👧\n"
    "\tif x != 1:\n        return \x07x\n"
)
TEXTS = {"fake/prose": PROSE, "fake/hostile": HOSTILE, "fake/book": PROSE * 40}
ENDING = "<|im_end|>"


def pieces(codec: TokenizerCodec, text: str) -> list[Piece]:
    ids = codec.encode(text)
    return [Piece(i, raw.hex()) for i, raw in zip(ids, codec.pieces(ids), strict=True)]


def rounds_of(
    text: str, *, target: str = "byte_level_a", assistant: str = "byte_level_b"
) -> list[Event]:
    """The events of a run that writes `text` and then ends: every fate and origin occurs."""
    ours, drafter = codec_of(target), codec_of(assistant)
    tokens = [*pieces(ours, text), Piece(2, ENDING.encode().hex(), True)]
    events: list[Event] = [Started("uag", 20, 24, len(tokens), 8, 256, True, None)]
    stream = StreamingText()

    def commit(number: int, chunk: Sequence[Piece], origins: Sequence[Origin], counts: Any) -> None:
        shown = stream.feed(b"".join(piece.raw for piece in chunk if not piece.control))
        draft, candidates, accepted = counts
        events.append(
            Verified(
                number, tuple(chunk), tuple(origins), shown, draft, candidates, accepted,
                0.002, 0.001, 0.01, 0.001, 0.1 + 0.014 * number,
            )
        )  # fmt: skip

    commit(0, tokens[:1], ["prefill"], (0, 0, 0))
    at, number = 1, 0
    while at < len(tokens):
        number += 1
        ahead = tokens[at : at + 5]
        if number % 6 == 5:
            commit(number, ahead[:1], ["plain"], (0, 0, 0))
            at += 1
            continue
        accepted = min(number % 5, len(ahead) - 1)
        candidates = list(ahead[: min(4, len(ahead))])
        if accepted < len(candidates) and number % 3 != 0:
            candidates[accepted : accepted + 1] = pieces(ours, " wrong")
        else:
            candidates = candidates[:accepted] if accepted else candidates[:1]
            accepted = len(candidates)
        accepted = min(accepted, len(candidates))
        words = b"".join(piece.raw for piece in candidates if not piece.control)
        draft = pieces(drafter, words.decode("utf-8", "ignore"))
        events.append(
            Drafted(
                number, tuple(draft), tuple(0.97 - 0.07 * i for i in range(len(draft))),
                tuple(candidates), "assistant", 0.002, 0.001, 0.1 + 0.014 * number - 0.01,
            )
        )  # fmt: skip
        done = tokens[at : at + accepted + 1]
        origins: list[Origin] = ["accepted"] * min(accepted, len(done))
        if len(done) > accepted:
            origins.append("bonus" if accepted == len(candidates) else "corrected")
        commit(number, done, origins, (len(draft), len(candidates), accepted))
        at += len(done)
    ids = tuple(piece.id for piece in tokens)
    events.append(
        Finished(
            "eos", ids, text, number + 1, 0.08, 0.1, 0.05, 0.5, 0.05, 0.9, 0.1, 0.1 + 0.014 * number
        )
    )
    return events


class RoundsPair(FakePair):
    """`FakePair` with `rounds_of` a text as its assisted run; runs at once."""

    def _stream(self, settings, method, cancel, repeats) -> Iterator[CompareStep | CompareDone]:
        text = TEXTS.get(self.target, PROSE)
        events = rounds_of(text)
        plain = [events[0], *(e for e in events if isinstance(e, Verified)), events[-1]]
        runs = {"baseline": [plain], "baseline_unpadded": [plain], method: [events]}
        for event in events:
            yield CompareStep(method, 0, event)
        finished = events[-1]
        data = document(target=self.target, text=text, count=len(finished.token_ids))
        for part in ("baseline", "assisted"):
            data[part]["token_ids"] = list(finished.token_ids)
        yield CompareDone(data, runs)
