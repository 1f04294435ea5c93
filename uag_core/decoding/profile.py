"""What the steps of a pair cost here and now, measured in about a second.

Knows models and clocks; it sends them ids that mean nothing and keeps nothing but times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median
from time import perf_counter
from typing import Any

import torch

from uag_core.decoding.caches import CachedModel, synchronize
from uag_core.models.handle import LanguageModel

_CONTEXT = 96
_WARMUP, _REPEATS = 2, 7
_BUDGET_S = 0.6


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
    target: LanguageModel,
    assistant: LanguageModel | None,
    *,
    width: int | None,
    cancelled: Callable[[], bool] = lambda: False,
) -> CostProfile | None:
    """Time the steps of a pair over a short context; None when cancelled on the way."""
    plain = _step_time(target, 1, static=False, cancelled=cancelled)
    verify = _step_time(target, width or 5, static=width is not None, cancelled=cancelled)
    draft = None
    if assistant is not None:
        draft = _step_time(assistant, 1, static=False, cancelled=cancelled)
    if plain is None or verify is None or cancelled():
        return None
    return CostProfile(plain_step_s=plain, verify_s=verify, draft_step_s=draft, width=width)


def _step_time(
    lm: LanguageModel, width: int, *, static: bool, cancelled: Callable[[], bool]
) -> float | None:
    context = max(1, min(_CONTEXT, lm.context_length - width - 1))
    ids = _some_ids(lm, context + width)
    times: list[float] = []
    with CachedModel(lm, context + width, static=static) as model:
        if model.prefill(ids[:context], cancelled) is None:
            return None
        while len(times) < _WARMUP + _REPEATS and not cancelled():
            start = perf_counter()
            model.forward(ids[context:]).argmax(dim=-1).tolist()
            synchronize(lm)
            times.append(perf_counter() - start)
            if lm.is_stateful:
                continue  # its state cannot be rolled back; for a clock that does not matter
            model.rollback(width)
            if sum(times) > _BUDGET_S and len(times) > _WARMUP + 1:
                break  # a large model: three steps say enough
    return median(times[_WARMUP:]) if len(times) > _WARMUP else None


def rows_are_independent(lm: LanguageModel, width: int) -> bool:
    """Whether a row's logits are bit-equal at every row index and under any padding.

    Where they are not (some mixture-of-experts or quantised kernels), fixed shapes do not make
    half precision exact. Compares the last of `width` rows with the same position computed as
    each earlier row, behind other padding.
    """
    start = max(1, min(16, lm.context_length - width))
    ids = _some_ids(lm, start + width)
    seen: list[torch.Tensor] = []
    with CachedModel(lm, start + 2 * width, static=True, width=width) as model:
        model.prefill(ids[:start])
        for first in range(start, start + width):
            seen.append(model.forward(ids[first:], last_only=True).clone())
            model.rollback(start + width - first - 1)  # keep one more position each time
    return all(torch.equal(seen[0], other) for other in seen[1:])


def _some_ids(lm: LanguageModel, count: int) -> list[int]:
    """Ids spread over the vocabulary, always the same ones."""
    size = min(lm.codec.size or lm.embedding_rows, lm.embedding_rows)
    return [(7919 * index + 13) % size for index in range(1, count + 1)]
