"""Which form of an assistant drafts: as it was loaded, or with 8-bit weights on a CPU.

The 8-bit form is a `LeanModel` where the assistant has the shape for it, else a copy with 8-bit
layers. Drafts are only proposed, so the choice cannot change an output. Measured once and kept
with the assistant's handle. Knows models and clocks.
"""

from __future__ import annotations

from dataclasses import dataclass

from uag_core.decoding.profile import step_times
from uag_core.models import lean, quantize
from uag_core.models.handle import LanguageModel

_MOST_PARAMETERS = 4_000_000_000  # an assistant larger than this is not copied unasked
_LEAST_GAIN = 0.95  # the 8-bit step has to take less than this share of the other's time


@dataclass(frozen=True, slots=True)
class Drafter:
    """The model that drafts, and what a user should know about the choice."""

    model: LanguageModel
    notices: tuple[str, ...] = ()


def choose(assistant: LanguageModel, wanted: str) -> Drafter:
    """The form of `assistant` that drafts; `wanted` is `AssistantConfig.assistant_dtype`."""
    key = ("drafter", wanted)
    known = assistant.measured
    if key not in known:
        known[key] = _choose(assistant, wanted)
    chosen: Drafter = known[key]
    return chosen


def _choose(assistant: LanguageModel, wanted: str) -> Drafter:
    if wanted == "same" or assistant.is_stateful:
        return Drafter(assistant)
    reason = quantize.why_not(assistant)
    if reason is not None:
        notices = (f"The assistant drafts in {assistant.dtype}: {reason}.",)
        return Drafter(assistant, notices if wanted == "int8" else ())
    size = sum(parameter.numel() for parameter in assistant.model.parameters())
    if wanted == "auto" and size > _MOST_PARAMETERS:
        return Drafter(assistant)
    try:
        small = _int8(assistant)
        times = [step_times(lm, [1], static=False)[1] for lm in (small, assistant)]
    except (RuntimeError, KeyError):  # no kernel for a shape, or no room for a single step
        notices = (f"The assistant drafts in {assistant.dtype}: 8-bit weights do not work here.",)
        return Drafter(assistant, notices if wanted == "int8" else ())
    if wanted == "int8" or times[0] < _LEAST_GAIN * times[1]:
        return Drafter(small)
    if not any(d.model is small for d in assistant.measured.values() if isinstance(d, Drafter)):
        assistant.measured.pop("int8", None)
        assistant.extra_bytes = 0
    return Drafter(assistant)


def _int8(assistant: LanguageModel) -> LanguageModel:
    known = assistant.measured
    if "int8" not in known:
        known["int8"] = lean.lean_copy(assistant) or quantize.int8_copy(assistant)
        assistant.extra_bytes = quantize.extra_bytes(assistant, known["int8"])
    small: LanguageModel = known["int8"]
    return small
