"""Which proposer a method means, made for one run.

`maker` turns a method's name ("uag", "lookup", "uag+lookup") into the function that builds its
proposer once the first token is out. Knows proposers and the cost profile; decides nothing about
shapes and runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from uag_core.config import AssistantConfig
from uag_core.decoding.bridges import Bridge, IdBridge, TextBridge
from uag_core.decoding.combined import CombinedProposer
from uag_core.decoding.compiled import CompiledModel, Form
from uag_core.decoding.job import Job
from uag_core.decoding.lookup import MAX_NGRAM, LookupProposer
from uag_core.decoding.proposers import AssistantProposer, Proposer
from uag_core.models.handle import LanguageModel

# What one more candidate of a padded forward costs on the host, in plain steps.
_PADDED_COST = 0.004


def candidate_cost(
    *, padded: bool, plain_step_s: float | None, verify_s: float | None, width: int = 5
) -> Callable[[int], float]:
    """cost(k): what k candidates add to a target forward, in plain steps.

    A padded forward costs the same whatever it holds. An unpadded one is taken to grow evenly
    between a plain step and a verification of `width` positions, which took `verify_s` seconds.
    """
    if padded or not plain_step_s or not verify_s or width < 2:
        return lambda count: _PADDED_COST * count
    slope = max(_PADDED_COST, (verify_s / plain_step_s - 1) / (width - 1))
    return lambda count: slope * count


def maker(
    config: AssistantConfig,
    job: Job,
    *,
    assistant: LanguageModel | None,
    form: Form | None = None,
    assistant_ids: tuple[int, ...] | None,
    same_tokenizer: bool,
    cost: Callable[[int], float],
    plain_step: Callable[[], float | None],
    draft_step_s: float | None = None,
) -> Callable[[], Proposer]:
    """The function that builds the proposer of `config.method` for `job`.

    `assistant` and `assistant_ids` may be None for "lookup" only. `plain_step()` gives the seconds
    of a plain step as far as they are known by then, `draft_step_s` is the assistant's. `form` is
    its compiled one, where that drafts.
    """

    if assistant is not None and not same_tokenizer:
        for codec in (job.target.codec, assistant.codec):
            _ = codec.words  # found once, and not on the run's clock

    def lookup() -> LookupProposer:
        return LookupProposer(
            job.target.codec,
            job.prompt_ids,
            cost=cost,
            num_tokens=config.prompt_lookup_num_tokens,
            max_ngram=config.max_matching_ngram_size or MAX_NGRAM,
            min_ngram=config.min_matching_ngram_size,
        )

    def helper() -> AssistantProposer:
        assert assistant is not None
        assert assistant_ids is not None
        bridge: Bridge
        if same_tokenizer:
            bridge = IdBridge(assistant.codec, assistant_ids)
        else:
            bridge = TextBridge(assistant.codec, assistant_ids, config.assistant_lookbehind)
        room = len(assistant_ids) + 2 * min(job.settings.max_new_tokens, 512) + 64
        return AssistantProposer(
            assistant,
            bridge,
            capacity=room,
            model=None if form is None else CompiledModel(assistant, form),
            target_eos_id=job.target.end_of_turn_id,
            cancelled=job.cancelled,
        )

    def both() -> Proposer:
        return CombinedProposer(
            lookup(),
            helper(),
            cost=cost,
            plain_step=plain_step,
            draft_step_s=draft_step_s,
            prompt_tokens=len(assistant_ids or ()),
            always=config.num_assistant_tokens is not None or not config.fallback,
        )

    makers: dict[str, Callable[[], Proposer]] = {"uag": helper, "lookup": lookup}
    return makers.get(config.method, both)
