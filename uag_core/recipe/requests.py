"""Stage ``requests``: the target writes user requests of many kinds, in its own user turn.

Each shard is drawn from its own seed, so shards can be made in any order and made again. A form
(see `kinds`) is completed hole by hole: literal text, then what the target samples, then more.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from transformers import PreTrainedTokenizerBase

from .chat import user_prefix
from .generator import BatchedGenerator, Job
from .kinds import FORMS, WEIGHTS, fill

_HOLE = re.compile(r"\{gen:(\d+)\}")
MIN_CHARS, MAX_CHARS = 8, 1400


@dataclass
class _Draft:
    """A request being written: its kind, the text so far, and the pieces still to come."""

    kind: str
    text: str = ""
    pieces: list[str | int] = field(default_factory=list)

    def settle(self) -> None:
        """Append literal pieces until a hole is next, or nothing."""
        while self.pieces and isinstance(piece := self.pieces[0], str):
            del self.pieces[0]
            # A sampled ending already closed the sentence: do not punctuate it twice.
            if piece[:1] in "?.:" and self.text.rstrip()[-1:] in "?.!:":
                self.text, piece = self.text.rstrip(), piece[1:]
            self.text += piece


def draw_forms(count: int, seed: int, shares: Mapping[str, float] | None = None) -> list[_Draft]:
    """``count`` drafts with their kinds in the shares of `WEIGHTS`, from one seed.

    ``shares`` replaces some of those shares, for text of the kinds that an assistant is bad at.
    """
    rng = random.Random(f"requests-{seed}")
    weights = WEIGHTS | dict(shares or {})
    kinds = rng.choices(list(weights), weights=list(weights.values()), k=count)
    drafts = []
    for kind in kinds:
        parts = _HOLE.split(fill(rng.choice(FORMS[kind]), rng))
        pieces = [int(p) if i % 2 else p for i, p in enumerate(parts) if p]
        draft = _Draft(kind, pieces=pieces)
        draft.settle()
        drafts.append(draft)
    return drafts


def _tidy(text: str, ended: bool, more: bool) -> str:
    """Cut what was sampled where a person would have stopped.

    With more literal text to come, one paragraph is kept. Text cut by the limit goes back to its
    last full sentence when that keeps at least half of it.
    """
    if more:
        lead = len(text) - len(text.lstrip())
        text = text[:lead] + text[lead:].split("\n\n")[0]
    if not ended:
        cut = max(text.rfind(mark) for mark in (". ", "? ", "! ", ".\n", "?\n"))
        if cut + 1 > len(text) // 2:
            text = text[: cut + 1]
    return text.rstrip()


def write_requests(
    model: object,
    tokenizer: PreTrainedTokenizerBase,
    *,
    count: int,
    seed: int,
    slots: int = 96,
    temperature: float = 0.9,
    top_p: float = 0.95,
    stops: set[int],
    shares: Mapping[str, float] | None = None,
) -> Iterator[dict[str, str]]:
    """Yield up to ``count`` records {"kind", "u"}; empty, huge and repeated ones are left out."""
    prefix = user_prefix(tokenizer)
    generator = BatchedGenerator(
        model, slots=slots, context=640, temperature=temperature, top_p=top_p,
        stop_ids=stops, seed=seed,
    )  # fmt: skip
    drafts = draw_forms(count, seed, shares)
    while pending := [i for i, d in enumerate(drafts) if d.pieces]:
        jobs = []
        for i in pending:
            ids = tokenizer(drafts[i].text, add_special_tokens=False)["input_ids"] if (
                drafts[i].text) else []  # fmt: skip
            jobs.append(Job(i, (prefix + ids)[: 640 - 140], int(drafts[i].pieces[0])))
        jobs.sort(key=lambda job: (len(job.prompt) + job.max_new_tokens, job.key))
        for output in generator.run(jobs):
            draft = drafts[output.key]
            draft.pieces.pop(0)
            text = tokenizer.decode(output.ids, skip_special_tokens=True)
            draft.text += _tidy(text, output.done, bool(draft.pieces))
            draft.settle()
    seen: set[str] = set()
    for draft in drafts:
        text = draft.text.strip()
        if MIN_CHARS <= len(text) <= MAX_CHARS and "\ufffd" not in text and text not in seen:
            seen.add(text)
            yield {"kind": draft.kind, "u": text}
