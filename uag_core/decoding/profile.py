"""What the steps of a pair cost here and now, measured in about a second.

Knows models and clocks; it sends them ids that mean nothing and keeps nothing but times.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import median
from time import perf_counter
from typing import Any

import torch

from uag_core.decoding.caches import CachedModel, synchronize
from uag_core.models.handle import LanguageModel

_CONTEXT = 96
_REPEATS = 7


@dataclass(frozen=True, slots=True)
class CostProfile:
    """Median seconds: a plain unpadded target step, a verification of `width` positions in the
    run's own shape, a draft step; `width` is None for unpadded verification (of 5 positions)."""

    plain_step_s: float
    verify_s: float
    draft_step_s: float | None
    width: int | None
    context: int = _CONTEXT

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def measure(
    target: LanguageModel, assistant: LanguageModel | None, *, width: int | None
) -> CostProfile:
    """Time the steps of a pair over a short context."""
    verify = _step_time(target, width or 5, static=width is not None)
    return CostProfile(
        plain_step_s=_step_time(target, 1, static=False),
        verify_s=verify,
        draft_step_s=None if assistant is None else _step_time(assistant, 1, static=False),
        width=width,
    )


def _step_time(lm: LanguageModel, width: int, *, static: bool) -> float:
    context = max(1, min(_CONTEXT, lm.context_length - width - 1))
    ids = _some_ids(lm, context + width)
    times = []
    with CachedModel(lm, context + width, static=static) as model:
        model.prefill(ids[:context])
        for _ in range(_REPEATS + 2):
            start = perf_counter()
            model.forward(ids[context:]).argmax(dim=-1).tolist()
            synchronize(lm)
            times.append(perf_counter() - start)
            model.rollback(width)
    return median(times[2:])


def rows_are_independent(lm: LanguageModel, width: int) -> bool:
    """Whether a row's logits are bit-equal at every row index and under any padding.

    Where they are not (some mixture-of-experts or quantised kernels), fixed shapes do not make
    half precision exact. Compares the last of `width` rows with the same position computed as
    each earlier row, behind other padding.
    """
    start = max(1, min(16, lm.context_length - width))
    ids = _some_ids(lm, start + width)
    last = start + width - 1
    seen: list[torch.Tensor] = []
    for row in range(width - 1, -1, -1):
        first = last - row
        with CachedModel(lm, start + 2 * width, static=True) as model:
            # The same prefill each time; what stands between it and `first` is read one by one.
            model.prefill(ids[:start])
            model.width = width
            for position in range(start, first):
                model.forward([ids[position]])
            seen.append(model.forward(ids[first : last + 1])[row].clone())
    return all(torch.equal(seen[0], other) for other in seen[1:])


def _some_ids(lm: LanguageModel, count: int) -> list[int]:
    """Ids spread over the vocabulary, always the same ones."""
    size = min(lm.codec.size or lm.embedding_rows, lm.embedding_rows)
    return [(7919 * index + 13) % size for index in range(1, count + 1)]
