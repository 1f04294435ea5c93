"""What compiled runs of a pair need, made before any clock starts.

`settle` turns what was asked for (exact, compiled, how to draft) into what will be done: the exact
form, W, the prompts with the lengths of their compiled caches, notices, and the seconds that
compiling took. Where nothing can be compiled the answer is the one without, and a notice says why.
Knows the engines of a pair; generates nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import TYPE_CHECKING

from uag_core.config import AssistantConfig
from uag_core.decoding import compiled, probes
from uag_core.decoding import profile as profiles
from uag_core.decoding.compiled import CompiledModel, CompileError
from uag_core.errors import RunCancelled
from uag_core.models.handle import LanguageModel

if TYPE_CHECKING:
    from uag_core.decoding.engines import Engines, Prompt

# The widths that an assistant is compiled for: a draft step, and reading what was committed.
DRAFT_WIDTHS = (1, 4)
_LEAST_GAIN = 0.95  # a compiled draft step has to take less than this share of the eager one
_SPARE = 64  # positions of the assistant's cache for text that is tokenized less well


@dataclass(slots=True)
class Settled:
    """How runs will be shaped. `compile_s` is None for uncompiled runs, 0 where all was known."""

    exact: bool
    width: int | None
    prompts: list[Prompt]
    notices: list[str] = field(default_factory=list)
    compile_s: float | None = None


def settle(
    engines: Engines,
    config: AssistantConfig,
    exact: bool,
    prompts: Sequence[Prompt],
    new_tokens: int,
    cancelled: Callable[[], bool] = lambda: False,
) -> Generator[str, None, Settled]:
    """Compile what these runs need; yields a line before each long wait, returns the outcome.

    Raises `RunCancelled` when `cancelled()` became true between two waits.
    """
    if not config.compile:
        return _uncompiled(engines, config, exact, prompts)
    try:
        return (yield from _compiled(engines, config, prompts, new_tokens, cancelled))
    except CompileError as error:
        settled = _uncompiled(engines, config, exact, prompts)
        settled.notices.insert(0, f"compile is off: {error}.")
        return settled


def finished(steps: Generator[str, None, Settled]) -> Settled:
    """The outcome of `settle`, its lines left out."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            settled: Settled = stop.value
            return settled


def _uncompiled(
    engines: Engines, config: AssistantConfig, exact: bool, prompts: Sequence[Prompt]
) -> Settled:
    really, width, notices = engines.exactness(exact, config)
    return Settled(really, width, list(prompts), list(notices))


def _compiled(
    engines: Engines,
    config: AssistantConfig,
    prompts: Sequence[Prompt],
    new_tokens: int,
    cancelled: Callable[[], bool],
) -> Generator[str, None, Settled]:
    target = engines.target
    reason = compiled.why_not(target)
    if reason is not None:
        raise CompileError(reason)
    if not probes.can_roll_back(target):
        raise CompileError(f"{target.id} keeps a state without fixed shapes")
    width = engines.fixed_width(config)
    if not probes.takes_fixed_shapes(target, width):
        raise CompileError(f"{target.id} cannot be padded to fixed shapes")
    settled = Settled(True, width, [], compile_s=0.0)
    lengths = _few([_positions(target, prompt, new_tokens) + width for prompt in prompts])
    for length in sorted(set(lengths)):
        yield from _make(settled, target, "target", length, (width,), cancelled)
    helpers = yield from _assistant(engines, config, settled, prompts, new_tokens, cancelled)
    settled.prompts = [
        replace(prompt, compiled=(length, helper))
        for prompt, length, helper in zip(prompts, lengths, helpers, strict=True)
    ]
    if target.is_half_precision and not all(_independent(target, n, width) for n in set(lengths)):
        settled.exact = False
        settled.notices.append(
            f"exact is off: in {target.dtype} the compiled logits of {target.id} depend on the "
            "other rows of a forward; float32 would be exact."
        )
    if settled.compile_s:
        settled.notices.append(
            f"Compiled in {settled.compile_s:.1f} s, which is part of no time that is reported."
        )
    return settled


def _few(needed: list[int]) -> list[int]:
    """A cache length for each number of positions, no more of them than are kept."""
    wanted = [compiled.cache_length(positions) for positions in needed]
    kept = sorted(set(wanted))[-compiled.MOST_LENGTHS :]
    return [next(length for length in kept if length >= each) for each in wanted]


def _positions(target: LanguageModel, prompt: Prompt, new_tokens: int) -> int:
    count = len(prompt.target_ids)
    return count + min(new_tokens, max(0, target.context_length - count))


def _make(
    settled: Settled,
    lm: LanguageModel,
    role: str,
    length: int,
    widths: Sequence[int],
    cancelled: Callable[[], bool],
) -> Generator[str, None, None]:
    before = compiled.spent(lm, length)
    for width in widths:
        if cancelled():
            raise RunCancelled("The run was cancelled while its models were compiled.")
        if not compiled.is_made(lm, length, width):
            places = "1 position" if width == 1 else f"{width} positions"
            yield f"Compiling the {role} for {places}, once for texts up to {length} tokens"
        compiled.form(lm, length, (width,))
    settled.compile_s = (settled.compile_s or 0.0) + compiled.spent(lm, length) - before


def _assistant(
    engines: Engines,
    config: AssistantConfig,
    settled: Settled,
    prompts: Sequence[Prompt],
    new_tokens: int,
    cancelled: Callable[[], bool],
) -> Generator[str, None, list[int | None]]:
    """The assistant's cache length for each prompt; None where it drafts uncompiled."""
    eager: list[int | None] = [None] * len(prompts)
    drafter, assistant = engines.drafter(config), engines.assistant
    if drafter is None or assistant is None:
        return eager
    reason = compiled.why_not(assistant)
    if assistant is engines.target:
        reason = "it is the target itself"
    if reason is None:
        lengths = _few([_assistant_positions(assistant, each, new_tokens) for each in prompts])
        key = ("drafts compiled", drafter.model.dtype)
        try:
            for length in sorted(set(lengths)):
                if assistant.measured.get(key, True):
                    widths = DRAFT_WIDTHS
                    yield from _make(settled, assistant, "assistant", length, widths, cancelled)
                if key not in assistant.measured:
                    assistant.measured[key] = _pays(assistant, drafter.model, length)
        except CompileError as error:
            reason = str(error)
        else:
            if assistant.measured[key]:
                return list(lengths)
            reason = f"its uncompiled step in {drafter.model.dtype} is faster here"
    settled.notices.append(f"The assistant drafts uncompiled: {reason}.")
    return eager


def _assistant_positions(assistant: LanguageModel, prompt: Prompt, new_tokens: int) -> int:
    ids = prompt.assistant_ids or ()
    share = max(1.0, len(ids) / max(1, len(prompt.target_ids)))
    needed = len(ids) + ceil(1.25 * share * new_tokens) + _SPARE
    return min(needed, assistant.context_length + 1)


def _pays(assistant: LanguageModel, other: LanguageModel, length: int) -> bool:
    """Whether a compiled draft step is faster than one of the form that would draft otherwise."""
    ours = draft_step_s(assistant, length)
    theirs = profiles.step_times(other, [1], static=False).get(1)
    return ours is None or theirs is None or ours < _LEAST_GAIN * theirs


def _independent(target: LanguageModel, length: int, width: int) -> bool:
    key = ("compiled rows are independent", length, width)
    if key not in target.measured:
        form = compiled.form(target, length, (width,))
        opened = CompiledModel(target, form, width=width)
        target.measured[key] = profiles.rows_are_independent(target, width, opened)
    return bool(target.measured[key])


def draft_opener(assistant: LanguageModel, length: int) -> Callable[[], CompiledModel]:
    """What opens the assistant at the widths of drafting."""
    form = compiled.form(assistant, length, DRAFT_WIDTHS)
    return lambda: CompiledModel(assistant, form)


def draft_step_s(assistant: LanguageModel, length: int, context: int = 1) -> float | None:
    """Median seconds of a compiled draft step behind `context` tokens."""
    return _step_s(assistant, length, 1, context)


def _step_s(lm: LanguageModel, length: int, width: int, context: int) -> float | None:
    form = compiled.form(lm, length, (width,))
    times = profiles.step_times(
        lm, [width], static=True, context=context, open_model=lambda: CompiledModel(lm, form)
    )
    return times.get(width)


def profile(
    engines: Engines,
    config: AssistantConfig,
    prompt: Prompt,
    width: int,
    cancelled: Callable[[], bool] = lambda: False,
) -> profiles.CostProfile | None:
    """The cost profile of compiled runs over this prompt; None when cancelled."""
    assert prompt.compiled is not None
    length, helper_length = prompt.compiled
    target, context = engines.target, profiles.bucket(len(prompt.target_ids))
    drafter = engines.drafter(config)
    drafts = drafter.model.dtype if drafter else None
    key = ("compiled profile", width, context, length, helper_length, drafts)
    if key not in target.measured:
        eager = profiles.measure(
            target,
            drafter.model if drafter else None,
            width=None,
            context=context,
            cancelled=cancelled,
        )
        verify = _step_s(target, length, width, context)
        if eager is None or verify is None:
            return None
        step = eager.draft_step_s
        if helper_length is not None and engines.assistant is not None:
            step = draft_step_s(engines.assistant, helper_length, context) or step
        target.measured[key] = replace(
            eager,
            # What `decode_speedup` divides by: the fastest plain decoding.
            plain_step_s=min(eager.plain_step_s, verify),
            verify_by_width={width: verify},
            draft_step_s=step,
            width=width,
        )
    found: profiles.CostProfile = target.measured[key]
    return found
