"""The decoding loop: prefill, then rounds of propose, verify, commit.

Plain decoding is this same loop without a proposer, through the same shapes, so that "the output
is the target's own" is a property of one piece of code. Yields plain events; the run's clock
stands still while the consumer of the stream is at work.

Speculative decoding: Leviathan et al., arXiv 2211.17192; across tokenizers: transformers#33383 and
Timor et al., arXiv 2502.05202. Verification keeps a candidate while it equals the token that the
target chooses itself, which is lossless for any proposer, greedy or sampled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import perf_counter

import torch

from uag_core.decoding.caches import CachedModel, synchronize
from uag_core.decoding.job import Clock, Job, Totals, checked, drafted, shown
from uag_core.decoding.pacing import Pacer
from uag_core.decoding.proposers import LOOKUP, Proposal, Proposer
from uag_core.decoding.sampling import TokenChooser, top2_gap
from uag_core.decoding.stopping import StopChecker
from uag_core.events import (
    Event,
    Finished,
    FinishReason,
    Notice,
    Origin,
    Piece,
    Started,
    Verified,
)
from uag_core.tokenization import TargetLedger, TokenizerCodec
from uag_core.tokenization.utf8 import StreamingText


def decode(
    job: Job, make_proposer: Callable[[], Proposer] | None = None, pacer: Pacer | None = None
) -> Iterator[Event]:
    """Run `job`; yields `Started`, then `Drafted`/`Verified`/`Notice`, and at last `Finished`.

    The proposer is made after the first token has been emitted, so that its prefill counts as
    drafting and never delays the first token. Closing the iterator frees every cache.
    """
    loop = _Loop(job, make_proposer, pacer)
    try:
        for event in loop.run():
            paused = perf_counter()
            yield event
            loop.clock.skip(perf_counter() - paused)
    finally:
        loop.close()


class _Loop:
    def __init__(
        self, job: Job, make_proposer: Callable[[], Proposer] | None, pacer: Pacer | None
    ) -> None:
        self.job = job
        self.codec: TokenizerCodec = job.target.codec
        self.clock = Clock()
        self.totals = Totals()
        self.stream = StreamingText()
        self.ledger = TargetLedger(self.codec, job.prompt_ids, job.target_lookbehind)
        self.stop = StopChecker(
            eos_ids=(
                job.target.eos_token_ids
                if job.settings.eos_token_ids is None
                else job.settings.eos_token_ids
            ),
            stop_strings=job.settings.stop,
            max_new_tokens=job.settings.max_new_tokens,
            room=job.target.context_length - len(job.prompt_ids),
        )
        self.on_device = job.target.input_device.type != "cpu"
        self.chooser = TokenChooser(job.settings, job.logits_processor)
        self.make_proposer = make_proposer
        self.proposer: Proposer | None = None
        self.pacer = pacer
        self.model: CachedModel | None = None
        self.gap: float | None = None
        self.notices_given = 0
        self.committed: list[bytes] = []  # text bytes of the tokens committed last

    def close(self) -> None:
        if self.model is not None:
            self.model.close()
        if self.proposer is not None:
            self.proposer.close()
        self.model = self.proposer = self.make_proposer = None

    def run(self) -> Iterator[Event]:
        job = self.job
        yield Started(
            engine=job.engine,
            num_prompt_tokens_target=len(job.prompt_ids),
            num_prompt_tokens_assistant=job.num_prompt_tokens_assistant,
            max_new_tokens=job.settings.max_new_tokens,
            width=job.shapes.width,
            cache_length=job.shapes.cache_length if job.shapes.width else None,
            exact=job.exact,
            seed=job.settings.seed,
            path=job.path,  # type: ignore[arg-type]
            notices=tuple(job.notices),
        )
        reason: FinishReason | None = None
        if self.stop.remaining <= 0:
            yield self._finished(self.stop.limit_reason)
            return
        first = self._prefill()
        if first is None:
            yield self._finished("cancelled")
            return
        event, reason = first
        yield event
        if self.make_proposer is not None and reason is None:
            self.proposer = self.make_proposer()
            self.proposer.commit(self.totals.token_ids, self.committed)
        number = 0
        while reason is None:
            if job.cancelled():
                reason = "cancelled"
                break
            number += 1
            started = self.clock.now()
            proposal = self._propose()
            if proposal is not None and proposal.candidate_ids:
                yield drafted(number, proposal, self.codec, self.ledger.ids, self.clock.now())
            if job.cancelled():
                reason = "cancelled"
                break
            yield from self._new_notices()
            event, reason = self._round(number, proposal or Proposal(), started)
            yield event
        yield from self._new_notices()
        yield self._finished(reason)

    def _prefill(self) -> tuple[Verified, FinishReason | None] | None:
        """Read the prompt and commit the first token; None when cancelled on the way."""
        job = self.job
        width = job.shapes.width
        self.model = (
            job.open_model()
            if job.open_model
            else CachedModel(
                job.target, job.shapes.cache_length, static=width is not None, width=width
            )
        )
        logits = self.model.prefill(job.prompt_ids, job.cancelled)
        synchronize(job.target)
        self.totals.prefill = self.clock.now()
        if logits is None:
            return None
        tokens, text, reason = self._commit(self.chooser.choose(logits, self.ledger.ids, ()))
        if job.gap_position == 0:
            self.gap = top2_gap(logits)
        now = self.clock.now()
        self.totals.ttft = now
        event = Verified(
            round=0,
            tokens=tokens,
            origins=("prefill",),
            text=text,
            num_draft_tokens=0,
            num_candidates=0,
            num_accepted=0,
            draft_s=0.0,
            reencode_s=0.0,
            verify_s=self.totals.prefill,
            other_s=now - self.totals.prefill,
            t=now,
        )
        return event, reason

    def _propose(self) -> Proposal | None:
        limit = min(self.job.shapes.max_candidates, self.stop.remaining - 1)
        most = self.model.most_positions() if self.model is not None else None
        if most is not None:
            limit = min(limit, most - 1)
        if self.proposer is None or self.pacer is None or limit <= 0:
            return None
        draft_limit = self.pacer.draft_limit()
        proposal = self.proposer.propose(self.ledger, limit, draft_limit, self.pacer.decide)
        self.totals.draft += proposal.draft_s
        self.totals.reencode += proposal.reencode_s
        return checked(proposal, limit, self.job.target.embedding_rows)

    def _round(
        self, number: int, proposal: Proposal, started: float
    ) -> tuple[Verified, FinishReason | None]:
        """Verify the candidates, commit what the target says, roll the cache back."""
        assert self.model is not None
        candidates = proposal.candidate_ids
        before = self.clock.now()
        logits = self.model.forward([self.ledger.ids[-1], *candidates])
        verify_s = self.clock.now() - before
        picks = self.chooser.choose(logits, self.ledger.ids, candidates)
        if self.on_device:  # choosing was the wait for the device: one, not two
            verify_s = self.clock.now() - before
        self._look_at_gap(logits, len(picks))
        accepted = len(picks) - 1
        tokens, text, reason = self._commit(picks)
        self.model.rollback(len(candidates) - accepted)
        origins: list[Origin] = ["accepted"] * min(len(tokens), accepted)
        counted = len(candidates)
        if len(tokens) <= accepted:  # a stop inside the block: what lies behind it does not count
            accepted = counted = len(tokens)
        elif not candidates:
            origins.append("plain")
        else:
            origins.append("bonus" if accepted == counted else "corrected")
            if reason is not None:  # candidates behind a correction that is a stop: no more do they
                counted = min(counted, accepted + 1)
        self.totals.verify += verify_s
        now = self.clock.now()
        other_s = now - started - verify_s - proposal.draft_s - proposal.reencode_s
        # A lookup keeps its own record; the pacer's is the assistant's.
        if self.pacer is not None and reason is None and proposal.source != LOOKUP:
            host_s = other_s + proposal.reencode_s
            if candidates or proposal.draft_ids or proposal.draft_s:
                self.pacer.observe(
                    confidences=proposal.confidences,
                    num_draft=len(proposal.draft_ids),
                    num_candidates=counted,
                    num_accepted=accepted,
                    draft_s=proposal.draft_s,
                    verify_s=verify_s,
                    host_s=host_s,
                )
            else:
                self.pacer.observe_plain(now - started)
        event = Verified(
            round=number,
            tokens=tokens,
            origins=tuple(origins),
            text=text,
            num_draft_tokens=len(proposal.draft_ids),
            num_candidates=counted,
            num_accepted=accepted,
            draft_s=proposal.draft_s,
            reencode_s=proposal.reencode_s,
            verify_s=verify_s,
            other_s=max(0.0, other_s),
            t=now,
        )
        return event, reason

    def _look_at_gap(self, logits: torch.Tensor, count: int) -> None:
        if self.job.gap_position is not None:
            row = self.job.gap_position - len(self.totals.token_ids)
            if 0 <= row < count:
                self.gap = top2_gap(logits[row : row + 1])

    def _commit(self, picks: Sequence[int]) -> tuple[tuple[Piece, ...], str, FinishReason | None]:
        """Commit tokens up to the earliest stop; their pieces, the new text, the stop's reason."""
        tokens: list[Piece] = []
        data: list[bytes] = []
        reason: FinishReason | None = None
        for token_id in picks:
            raw = self.ledger.append(token_id)
            control = not raw and self.codec.is_control(token_id)
            spelling = self.codec.spelling(token_id) if control else raw
            tokens.append(shown(token_id, spelling, control))
            data.append(raw)
            reason = self.stop.push(token_id, spelling)
            if reason is not None:
                break
        committed = self.ledger.ids[len(self.ledger.ids) - len(tokens) :]
        self.totals.token_ids.extend(committed)
        self.committed = data
        text = self.stream.feed(b"".join(data))
        self.totals.texts.append(text)
        if self.proposer is not None and reason is None:
            self.proposer.commit(committed, data)
        return tuple(tokens), text, reason

    def _new_notices(self) -> Iterator[Notice]:
        notices = getattr(self.proposer, "notices", ())
        for message in notices[self.notices_given :]:
            self.notices_given += 1
            yield Notice(message, self.clock.now())

    def _finished(self, reason: FinishReason) -> Finished:
        wall = self.clock.now()
        totals = self.totals
        last = self.stream.close()
        spent = totals.prefill + totals.draft + totals.reencode + totals.verify
        return Finished(
            finish_reason=reason,
            token_ids=tuple(totals.token_ids),
            text="".join(totals.texts) + last,
            num_target_forwards=self._forwards(),
            prefill_s=totals.prefill,
            draft_s=totals.draft,
            reencode_s=totals.reencode,
            verify_s=totals.verify,
            other_s=max(0.0, wall - spent),
            wall_s=wall,
            ttft_s=totals.ttft,
            t=wall,
            top2_gap=self.gap,
        )

    def _forwards(self) -> int:
        return self.model.num_forwards if self.model is not None else 0
