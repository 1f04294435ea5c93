"""What the steps of a pair cost here and now, measured in about a second.

Knows models and clocks; it sends them ids that mean nothing and keeps nothing but times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import torch

from uag_core.decoding.caches import CachedModel, synchronize
from uag_core.decoding.probes import spread_ids
from uag_core.models.handle import LanguageModel

BUCKETS = (96, 512, 2048, 8192)  # contexts that are told apart, in tokens
_PADDED_WIDTHS = (4, 5, 6, 8)
_WIDTHS = (2, 3, 5, 8)
_GPU_WIDTHS = (12, 16)
_WARMUP, _REPEATS = 1, 5
_BUDGET_S = 0.4  # per shape; a large model is stepped three times


@dataclass(frozen=True, slots=True)
class CostProfile:
    """Median seconds of a pair's steps behind `context` tokens.

    `plain_step_s` is a plain unpadded target step, `verify_by_width` target forwards of so many
    positions (in the run's own kind of shape), `draft_step_s` an assistant's step and
    `prefill_s_per_token` what reading costs it. `width` is None for unpadded verification.
    """

    plain_step_s: float
    verify_by_width: dict[int, float]
    draft_step_s: float | None
    width: int | None
    prefill_s_per_token: float | None = None
    context: int = BUCKETS[0]

    @property
    def verify_s(self) -> float:
        """A verification of `width` positions (of 5 where nothing is padded)."""
        return self.verify_at(self.width or 5)

    def verify_at(self, positions: int) -> float:
        """A target forward of so many positions; straight lines between what was measured."""
        points = {**self.verify_by_width}
        if self.width is None:
            points.setdefault(1, self.plain_step_s)
        known = sorted(points)
        above = next((width for width in known if width >= positions), known[-1])
        below = max((width for width in known if width <= positions), default=known[0])
        if above == below:
            return points[above]
        share = (positions - below) / (above - below)
        return points[below] + share * (points[above] - points[below])

    def to_dict(self, host_s: float | None = None) -> dict[str, Any]:
        """Plain numbers for a run document; `host_s` is host work per round, from a run."""
        return {
            "target_step_s": self.plain_step_s,
            "verify_s": {str(width): self.verify_by_width[width] for width in self.verify_by_width},
            "draft_step_s": self.draft_step_s,
            "prefill_s_per_token": self.prefill_s_per_token,
            "host_s": host_s,
            "context": self.context,
            "width": self.width,
        }


def bucket(context: int) -> int:
    """The context that stands for `context` tokens in a profile."""
    return next((size for size in BUCKETS if context <= size), BUCKETS[-1])


def measure(
    target: LanguageModel,
    assistant: LanguageModel | None,
    *,
    width: int | None,
    context: int = BUCKETS[0],
    cancelled: Callable[[], bool] = lambda: False,
) -> CostProfile | None:
    """Time the steps of a pair behind `context` tokens; None when cancelled on the way."""
    widths = [*(_PADDED_WIDTHS if width else _WIDTHS), *([width] if width else [])]
    if target.input_device.type == "cuda":
        widths += _GPU_WIDTHS
    widths = sorted(set(widths))
    plain = step_times(target, [1], static=False, context=context, cancelled=cancelled)
    verify = step_times(
        target, widths, static=width is not None, context=context, cancelled=cancelled
    )
    draft = None
    if assistant is not None:
        draft = step_times(assistant, [1, 32], static=False, context=context, cancelled=cancelled)
    if not plain or not verify or cancelled():
        return None
    return CostProfile(
        plain_step_s=plain[1],
        verify_by_width=verify,
        draft_step_s=draft.get(1) if draft else None,
        width=width,
        prefill_s_per_token=draft[32] / 32 if draft and 32 in draft else None,
        context=context,
    )


def step_times(
    lm: LanguageModel,
    widths: Sequence[int],
    *,
    static: bool,
    context: int = BUCKETS[0],
    cancelled: Callable[[], bool] = lambda: False,
    open_model: Callable[[], CachedModel] | None = None,
) -> dict[int, float]:
    """Median seconds of a forward of each of `widths` positions behind `context` tokens.

    Widths that the model's context has no room for are left out; all of them when cancelled. The
    cache is only said to be filled: what it holds does not matter to a clock. `open_model` gives
    the model to time in place of an eager one.
    """
    widths = [width for width in widths if width + 1 < lm.context_length]
    if not widths:
        return {}
    context = max(1, min(context, lm.context_length - max(widths) - 1))
    ids = spread_ids(lm, max(widths))
    result: dict[int, float] = {}
    opened = open_model() if open_model else None
    if opened is not None:
        context = max(1, min(context, opened.capacity - max(widths)))
    with opened or CachedModel(lm, context + max(widths), static=static) as model:
        if model.prefill(ids[:1], cancelled) is None:
            return {}
        model.pretend(context)
        for width in widths:
            times: list[float] = []
            while len(times) < _WARMUP + _REPEATS:
                if cancelled():
                    return {}
                start = perf_counter()
                model.forward(ids[:width])
                synchronize(lm)
                times.append(perf_counter() - start)
                if model.rolls_back:  # a state cannot be rolled back; a clock does not mind
                    model.rollback(width)
                if sum(times) > _BUDGET_S and len(times) > _WARMUP + 1:
                    break
            result[width] = median(times[_WARMUP:])
    return result


def rows_are_independent(lm: LanguageModel, width: int, opened: CachedModel | None = None) -> bool:
    """Whether a row's logits are bit-equal at every row index and under any padding.

    Where they are not (some mixture-of-experts or quantised kernels), fixed shapes do not make
    half precision exact. Compares the last of `width` rows with the same position computed as
    each earlier row, behind other padding. `opened` is asked in place of an eager model.
    """
    start = max(1, min(16, lm.context_length - width))
    ids = spread_ids(lm, start + width)
    seen: list[torch.Tensor] = []
    with opened or CachedModel(lm, start + 2 * width, static=True, width=width) as model:
        model.prefill(ids[:start])
        for first in range(start, start + width):
            seen.append(model.forward(ids[first:], last_only=True).clone())
            model.rollback(start + width - first - 1)  # keep one more position each time
    return all(torch.equal(seen[0], other) for other in seen[1:])
