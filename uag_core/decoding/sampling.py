"""How the target chooses a token: greedily, or by Gumbel-max with keyed noise.

The distribution is processed by transformers' own logits processors, position by position on the
committed prefix, in the order of `transformers.generate`. Noise depends only on (seed, absolute
target position), so a candidate is kept exactly when it equals what plain sampling would have
drawn there: seeded assisted sampling returns the ids of seeded plain sampling, whatever drafts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import torch
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    NoRepeatNGramLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from uag_core.config import GenerationSettings

_HALF, _INT16 = frozenset((torch.bfloat16, torch.float16)), torch.int16


def ordered(logits: torch.Tensor) -> np.ndarray:
    """CPU logits (..., V) as an array whose largest entry along V stands where theirs does.

    Half precision is read as whole numbers of the same bits, which are in the same order as long
    as they are positive: no conversion, and several times faster than torch's argmax. Where no
    number of a row is positive (`largest` looks), the row has to be widened.
    """
    if logits.dtype in _HALF:
        logits = logits.view(_INT16)
    array: np.ndarray = logits.numpy()
    return array


def largest(rows: np.ndarray, index: int, logits: torch.Tensor) -> int:
    """Where row `index` of (n, V) CPU `logits` is largest; `rows` is `ordered(logits)`."""
    row = rows[index]
    where = int(row.argmax())
    if logits.dtype in _HALF and row[where] <= 0:
        return int(logits[index].float().numpy().argmax())
    return where


def greedy(logits: torch.Tensor) -> list[int]:
    """The index of the largest value of each (n, V) row, the first one among equals."""
    if logits.device.type == "cpu":
        rows = ordered(logits)
        return [largest(rows, index, logits) for index in range(len(rows))]
    indices: list[int] = logits.argmax(dim=-1).tolist()
    return indices


def probability(row: torch.Tensor, index: int, values: np.ndarray | None = None) -> float:
    """Probability that (1, V) CPU logits give to `index`; `values`: `ordered(row)`, if at hand."""
    if values is None or row.dtype is not torch.float32:
        values = row.float().numpy()
    values = values[0]
    return 1.0 / float(np.exp(values - values[index]).sum())


def probabilities(rows: Sequence[torch.Tensor], indices: Sequence[int]) -> list[float]:
    """`probability` of one index of each row, all in one go."""
    if not rows:
        return []
    values = torch.stack(tuple(rows)).float().numpy()
    chosen = values[np.arange(len(indices)), np.asarray(indices)]
    return (1.0 / np.exp(values - chosen[:, None]).sum(axis=1)).tolist()


def build_processors(
    settings: GenerationSettings, extra: Sequence[object] = ()
) -> LogitsProcessorList:
    """transformers' processors for these settings, in the order `generate` applies them.

    `extra` ones stand where `generate` puts a caller's: behind the penalties, before the warpers.
    """
    processors = LogitsProcessorList()
    if settings.repetition_penalty not in (None, 1.0):
        processors.append(RepetitionPenaltyLogitsProcessor(penalty=settings.repetition_penalty))
    if settings.no_repeat_ngram_size:
        processors.append(NoRepeatNGramLogitsProcessor(settings.no_repeat_ngram_size))
    processors.extend(extra)
    if not settings.do_sample:
        return processors
    if settings.temperature != 1.0:
        processors.append(TemperatureLogitsWarper(settings.temperature))
    if settings.top_k:
        processors.append(TopKLogitsWarper(top_k=settings.top_k))
    if settings.top_p is not None and settings.top_p < 1.0:
        processors.append(TopPLogitsWarper(top_p=settings.top_p))
    if settings.min_p:
        processors.append(MinPLogitsWarper(min_p=settings.min_p))
    return processors


class TokenChooser:
    """Picks the target's token at each position of one sequence.

    Args:
        settings: how to decode; `settings.seed` must be set when sampling.
        extra: further logits processors of the caller's. Each is called once per emitted position,
            in order, so stateful ones behave as in plain decoding.
    """

    def __init__(self, settings: GenerationSettings, extra: Sequence[object] | None = None) -> None:
        self.do_sample = settings.do_sample
        self.seed = settings.seed
        self.processors = build_processors(settings, extra or ())
        self._generators: dict[torch.device, torch.Generator] = {}
        self._context: torch.Tensor | None = None
        self._filled = 0

    def choose(self, logits: torch.Tensor, ids: list[int], candidates: Sequence[int]) -> list[int]:
        """The target's tokens behind `ids`, as far as the candidates agree.

        Args:
            logits: (1 + number of candidates, V); row i stands behind `ids` and i candidates.
            ids: the committed ids.
            candidates: proposed ids.

        Returns:
            The accepted candidates followed by one token of the target's own.
        """
        if not self.do_sample and not self.processors:
            return self._greedily(logits, candidates)
        result: list[int] = []
        for index in range(len(candidates) + 1):
            context = self._tensor([*result], ids, logits.device) if self.processors else None
            pick = self._one(logits[index : index + 1], context, len(ids) + index)
            result.append(pick)
            if index == len(candidates) or pick != candidates[index]:
                break
        return result

    @staticmethod
    def _greedily(logits: torch.Tensor, candidates: Sequence[int]) -> list[int]:
        count = len(candidates)
        if logits.device.type != "cpu":
            picks = greedy(logits[: count + 1])
            for index, candidate in enumerate(candidates):
                if picks[index] != candidate:
                    return picks[: index + 1]
            return picks
        rows = ordered(logits)
        picks = []
        for index in range(count + 1):  # rows behind a wrong candidate are not looked at
            pick = largest(rows, index, logits)
            picks.append(pick)
            if index == count or pick != candidates[index]:
                break
        return picks

    def _one(self, row: torch.Tensor, context: torch.Tensor | None, position: int) -> int:
        scores = row.float()
        if context is not None:
            # Processors may write into their input; the model's logits stay as they are.
            scores = self.processors(context, scores.clone() if scores is row else scores)
        if not self.do_sample:
            return int(scores.argmax(dim=-1))
        noise = torch.empty_like(scores).exponential_(generator=self._generator(scores, position))
        noise.clamp_min_(torch.finfo(noise.dtype).tiny)  # 0 / 0 would win every argmax
        # argmax(p / E) with E ~ Exp(1) draws from p (Gumbel-max, written without logarithms).
        return int((scores.softmax(dim=-1) / noise).argmax(dim=-1))

    def _generator(self, scores: torch.Tensor, position: int) -> torch.Generator:
        generator = self._generators.get(scores.device)
        if generator is None:
            generator = self._generators[scores.device] = torch.Generator(scores.device)
        # Neighbouring (seed, position) pairs must not give related streams: mix them well.
        digest = hashlib.blake2b(f"{self.seed}:{position}".encode(), digest_size=8).digest()
        return generator.manual_seed(int.from_bytes(digest, "big") >> 1)

    def _tensor(self, more: list[int], ids: list[int], device: torch.device) -> torch.Tensor:
        """(1, n) tensor of `ids` and `more`, extended in place from the last call's."""
        total = len(ids) + len(more)
        if (
            self._context is None
            or self._context.shape[1] < total
            or (self._context.device != device)
        ):
            fresh = torch.empty((1, max(1024, 2 * total)), dtype=torch.long, device=device)
            self._context, self._filled = fresh, 0
        if self._filled < len(ids):
            fill = torch.tensor(ids[self._filled :], dtype=torch.long, device=device)
            self._context[0, self._filled : len(ids)] = fill
            self._filled = len(ids)
        if more:
            fill = torch.tensor(more, dtype=torch.long, device=device)
            self._context[0, len(ids) : total] = fill
        return self._context[:, :total]


def top2_gap(logits: torch.Tensor) -> float:
    """Difference of the two largest logits of a (1, V) row: how near a tie the choice was."""
    values = logits.float().topk(2, dim=-1).values[0]
    return float(values[0] - values[1])
