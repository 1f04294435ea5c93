"""Windowed re-encoding against encoding the whole text again, over the length of the context.

    python -m benchmarks.reencode [--lengths 100,250,500,1000,2000,4000,8000]

Times what a round needs from the two tokenizers: the assistant's ids for the text so far and the
target's ids for a draft. `windowed` is what the engine does; `whole` decodes and encodes all of
the text each round, as transformers#33383 began. Also counts how many candidate lists are equal.
Needs the embedded pair's tokenizers only. Prints JSON with medians in milliseconds.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from statistics import median
from time import perf_counter

from transformers import AutoTokenizer

from uag_core.models import embedded
from uag_core.tokenization import AssistantLedger, TargetLedger, TokenizerCodec, reencode

_TEXT = (
    "The river runs past the old mill, where water once turned a wheel of oak. In spring the "
    "banks are full of reeds; in autumn, 1,200 geese rest there for a week or two. "
    "def area(width, height):\n    return width * height\n\nNobody knows who built it first. "
)
_ROUNDS, _ACCEPTED, _DRAFT = 40, 3, 24  # rounds, tokens a round commits, bytes of a draft


def measure(target: TokenizerCodec, assistant: TokenizerCodec, length: int) -> dict[str, float]:
    """Medians of `_ROUNDS` rounds behind `length` target tokens of one long text."""
    whole_ids = target.encode(_TEXT * (2 + (length + 4 * _ROUNDS) // len(target.encode(_TEXT))))
    data = b"".join(target.pieces(whole_ids))
    ledger = TargetLedger(target, whole_ids[:length], 10)
    position = len(b"".join(target.pieces(whole_ids[:length])))
    helper = AssistantLedger(assistant, assistant.encode(data[:position].decode()), 10)
    windowed: list[float] = []
    whole: list[float] = []
    same = 0
    for index in range(_ROUNDS):
        draft = data[position : position + _DRAFT]
        start = perf_counter()
        helper.sync()
        candidates = reencode(ledger, draft, 4)
        windowed.append(perf_counter() - start)
        start = perf_counter()
        text = target._decode(ledger.ids)
        assistant.encode(text)
        joint = target.encode(text + draft.decode())
        whole.append(perf_counter() - start)
        same += joint[len(ledger.ids) :][:4] == candidates
        first = length + index * _ACCEPTED
        for token_id in whole_ids[first : first + _ACCEPTED]:
            piece = ledger.append(token_id)
            helper.feed(piece)
            position += len(piece)
    return {
        "windowed_ms": 1e3 * median(windowed),
        "whole_ms": 1e3 * median(whole),
        "same_candidates": same / _ROUNDS,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--lengths", default="100,250,500,1000,2000,4000,8000")
    arguments = parser.parse_args()
    folders = (embedded.ensure_target(print_to_stderr), embedded.assistant_folder())
    target, assistant = (TokenizerCodec(AutoTokenizer.from_pretrained(path)) for path in folders)
    lengths = [int(part) for part in arguments.lengths.split(",")]
    measure(target, assistant, lengths[0])  # warm-up
    curve = {str(length): measure(target, assistant, length) for length in lengths}
    report = {"machine": platform.processor() or platform.machine(), "by_context": curve}
    print(json.dumps(report, indent=2))


def print_to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
