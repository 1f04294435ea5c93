"""Whether a model does what the loop relies on, tried on the model itself with a few forwards.

Names and configurations tell which models keep a recurrent state; this tells it of all others. A
model that fails is decoded plainly over the cache that transformers makes for it, with a notice:
never approximately. What was found is kept with the model. Knows no tokenizer and no pair.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from uag_core.decoding.caches import ROLLS_BACK, CachedModel
from uag_core.models.handle import LanguageModel
from uag_core.models.memory import is_out_of_memory

_CONTEXT, _BLOCK = 12, 3
# Greatest relative difference of logits that is rounding: half precision, and float32.
_ROUNDING_HALF, _ROUNDING = 0.3, 1e-3


def can_roll_back(lm: LanguageModel) -> bool:
    """Whether positions can be taken back without a trace, and several be read at once.

    Compares a forward of several positions, behind others that were taken back, and the same
    positions one by one, with reading all of it afresh.
    """
    if lm.is_stateful:
        return False
    if ROLLS_BACK not in lm.measured:
        lm.measured[ROLLS_BACK] = _holds(lambda: _rolls_back(lm))
    return bool(lm.measured[ROLLS_BACK])


def unrolled(lm: LanguageModel) -> str | None:
    """What keeps a model from being rolled back, in words; None where nothing is known to."""
    if lm.is_stateful:
        return "a recurrent state that cannot be rolled back"
    return None if lm.measured.get(ROLLS_BACK, True) else "a cache that cannot be rolled back"


def takes_fixed_shapes(lm: LanguageModel, width: int) -> bool:
    """Whether a padded forward over a static cache gives the logits of an unpadded one."""
    key = ("takes fixed shapes", width)
    if key not in lm.measured:
        lm.measured[key] = _holds(lambda: _pads(lm, width))
    return bool(lm.measured[key])


def _holds(probe: Callable[[], bool]) -> bool:
    try:
        return probe()
    except Exception as error:
        if is_out_of_memory(error):
            raise
        return False


def _rolls_back(lm: LanguageModel) -> bool:
    ids, wrong = _ids(lm), _ids(lm, shift=5)[:_BLOCK]
    context = len(ids) - _BLOCK
    if context < 1:
        return True  # a context of three positions: nothing to be rolled back
    with CachedModel(lm, len(ids) + 1) as fresh:
        expected = fresh.forward(ids)[context:].clone()
    with CachedModel(lm, len(ids) + 1) as model:
        model.forward(ids[:context])
        model.forward(wrong)
        model.rollback(_BLOCK)
        together = model.forward(ids[context:]).clone()
        model.rollback(_BLOCK)
        single = torch.cat([model.forward([i]).clone() for i in ids[context:]])
    return close_enough(lm, together, expected) and close_enough(lm, single, expected)


def _pads(lm: LanguageModel, width: int) -> bool:
    ids = _ids(lm)
    context = len(ids) - _BLOCK
    with CachedModel(lm, len(ids) + 1) as growing:
        expected = growing.forward(ids)[context:].clone()
    with CachedModel(lm, len(ids) + 2 * width, static=True, width=width) as fixed:
        fixed.prefill(ids[:context])
        together = fixed.forward(ids[context:]).clone()
    return close_enough(lm, together, expected)


def close_enough(lm: LanguageModel, left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether two tensors of logits differ by no more than rounding."""
    left, right = left.float(), right.float()
    spread = (right - right.mean(dim=-1, keepdim=True)).norm()
    most = _ROUNDING_HALF if lm.is_half_precision else _ROUNDING
    return bool((left - right).norm() <= most * spread)


def _ids(lm: LanguageModel, shift: int = 0) -> list[int]:
    """A few ids spread over the vocabulary, no more than the context takes."""
    count = min(_CONTEXT + _BLOCK, lm.context_length)
    return spread_ids(lm, count, shift)


def spread_ids(lm: LanguageModel, count: int, shift: int = 0) -> list[int]:
    """`count` ids spread over the vocabulary, always the same ones."""
    size = min(lm.codec.size or lm.embedding_rows, lm.embedding_rows)
    return [(7919 * (index + shift) + 13) % size for index in range(1, count + 1)]
