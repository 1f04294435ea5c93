"""Plans for a pair of loaded models: which shapes, which proposer, which ids to read first.

`Engines` answers "give me the events of plain decoding / of assisted decoding for this prompt" for
two `LanguageModel`s. It takes no lock and loads nothing. What it measures about a pair (the shape
probe, the cost profile) is kept with the target; nothing of a run is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from uag_core.config import MAX_CANDIDATES, AssistantConfig, GenerationSettings
from uag_core.decoding import compiled, compiling, lookup, probes
from uag_core.decoding import drafter as drafters
from uag_core.decoding import profile as profiles
from uag_core.decoding.drafting import candidate_cost, maker
from uag_core.decoding.gains import best_width
from uag_core.decoding.job import Job, Shapes
from uag_core.decoding.loop import decode
from uag_core.decoding.pacing import Pacer
from uag_core.decoding.prompts import Prompt, assistant_prompt_ids, target_prompt_ids
from uag_core.decoding.proposers import Proposer
from uag_core.errors import InputError
from uag_core.events import Event
from uag_core.models.handle import LanguageModel

DEFAULT_WIDTH = 6  # as fast as 5, 7 or 8 on the embedded pair, and kinder to hard texts than 8
_FIRST_ROOM = 512  # new tokens a growing cache makes room for at first
MIN_WIDTH = 4  # narrower forwards take other kernels than wider ones


class Engines:
    """Plain and assisted decoding for a target and an optional assistant.

    `path` is "ids" when both tokenizers turn text into the same ids (whatever the padding of the
    vocabularies), "text" otherwise.
    """

    def __init__(self, target: LanguageModel, assistant: LanguageModel | None) -> None:
        self.target = target
        self.assistant = assistant
        same = assistant is not None and (assistant.codec.fingerprint == target.codec.fingerprint)
        self.path: str = "ids" if same else "text"

    @property
    def notices(self) -> tuple[str, ...]:
        """What a user of this pair should know before any run."""
        found: list[str] = []
        if state := probes.unrolled(self.target):
            found.append(f"{self.target.id} keeps {state}: it is decoded plainly.")
        elif self.assistant is not None and (state := probes.unrolled(self.assistant)):
            found.append(
                f"{self.assistant.id} keeps {state}: "
                "it does not draft and the target is decoded plainly."
            )
        for lm in (self.target, self.assistant):
            if lm is not None and not lm.codec.is_exact:
                found.append(
                    f"The tokens of {lm.id} are not plain pieces of text: they are decoded in a "
                    "short window, and drafts may lose what its tokenizer does not keep."
                )
        return tuple(found)

    def drafter(self, config: AssistantConfig) -> drafters.Drafter | None:
        """The form of the assistant that drafts under `config`; chosen once, by measuring."""
        if self.assistant is None or not config.uses_assistant or not self.can_draft():
            return None
        return drafters.choose(self.assistant, config.assistant_dtype)

    def can_draft(self, method: str = "uag") -> bool:
        """Whether the proposer of `method` may propose at all. Tries it on the models, once."""
        if method == "lookup":
            return probes.can_roll_back(self.target)
        return (
            self.assistant is not None
            and probes.can_roll_back(self.target)
            and probes.can_roll_back(self.assistant)
        )

    def prompt(self, prompt: Any, *, raw: bool, system: str | None) -> Prompt:
        """The ids both models read. Raises `InputError` for what cannot be a prompt."""
        ids, notices = target_prompt_ids(self.target, prompt, raw=raw, system=system)
        other: list[int] | None = None
        if self.assistant is not None:
            other = (
                ids
                if self.path == "ids"
                else assistant_prompt_ids(
                    self.assistant, prompt, raw=raw, system=system, target=self.target
                )
            )
        return Prompt(tuple(ids), None if other is None else tuple(other), tuple(notices))

    def exactness(self, exact: bool, config: AssistantConfig) -> tuple[bool, int | None, list[str]]:
        """Whether runs can be exact, the fixed width W (None: no padding), and notices."""
        target = self.target
        if not exact:
            return False, None, []
        if not target.is_half_precision:
            return True, None, []
        if not probes.can_roll_back(target):
            return False, None, [f"exact is off: {target.id} keeps a state without fixed shapes."]
        width = self.width(config)
        if not probes.takes_fixed_shapes(target, width):
            return False, None, [f"exact is off: {target.id} cannot be padded to fixed shapes."]
        width = self.fixed_width(config)
        key = ("rows are independent", width)
        if key not in target.measured:
            target.measured[key] = profiles.rows_are_independent(target, width)
        if not target.measured[key]:
            return (
                False,
                None,
                [
                    f"exact is off: in {target.dtype} the logits of {target.id} depend on the "
                    "other rows of a forward; float32 would be exact."
                ],
            )
        return True, width, []

    def fixed_width(self, config: AssistantConfig) -> int:
        """W for a run: as asked for, else the one that the cost profile promises most of."""
        width = self.width(config)
        free = config.width is None and config.num_assistant_tokens is None
        if not free or config.uses_lookup or not self.can_draft():
            return width
        profile = self.profile(width, config=config)
        return width if profile is None else best_width(profile, width)

    @staticmethod
    def width(config: AssistantConfig) -> int:
        """W: candidates of a round plus one."""
        if config.width is not None:
            return max(MIN_WIDTH, config.width)
        wanted = 0
        if config.num_assistant_tokens is not None and config.uses_assistant:
            # A heuristic schedule starts there and may grow to twice as many.
            grows = config.num_assistant_tokens_schedule.startswith("heuristic")
            wanted = config.num_assistant_tokens * (2 if grows else 1)
        if config.prompt_lookup_num_tokens is not None and config.uses_lookup:
            wanted = max(wanted, config.prompt_lookup_num_tokens)
        if wanted:
            return max(MIN_WIDTH, min(MAX_CANDIDATES, wanted) + 1)
        return DEFAULT_WIDTH

    def profile(
        self,
        width: int | None,
        cancelled: Callable[[], bool] = lambda: False,
        *,
        config: AssistantConfig | None = None,
        context: int = 0,
    ) -> profiles.CostProfile | None:
        """The pair's cost profile for verifications of this shape, measured once.

        `context` is the length of the text; profiles are kept per bucket of lengths.

        None when `cancelled()` became true while it was measured.
        """
        drafter = self.drafter(config or AssistantConfig())
        helper = drafter.model if drafter else None
        known = self.target.measured
        bucket = profiles.bucket(context)
        key = ("profile", width, bucket, tuple(helper.describe().values()) if helper else None)
        if key not in known:
            measured = profiles.measure(
                self.target,
                helper,
                width=width,
                context=bucket,
                cancelled=cancelled,
            )
            if measured is None:
                return None
            known[key] = measured
        result: profiles.CostProfile = known[key]
        return result

    def run_profile(
        self,
        prompt: Prompt,
        width: int | None,
        config: AssistantConfig,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> profiles.CostProfile | None:
        """The cost profile of assisted runs over this prompt, compiled ones where it says so."""
        if prompt.compiled and width:
            return compiling.profile(self, config, prompt, width, cancelled)
        return self.profile(width, cancelled, config=config, context=len(prompt.target_ids))

    def plain(
        self,
        prompt: Prompt,
        settings: GenerationSettings,
        *,
        exact: bool,
        width: int | None,
        engine: str = "baseline",
        cancelled: Callable[[], bool] = lambda: False,
        gap_position: int | None = None,
        logits_processor: Sequence[object] | None = None,
    ) -> Iterator[Event]:
        """Events of plain decoding, padded to `width` or not at all."""
        job = self._job(prompt, settings, width, engine, exact, AssistantConfig())
        job.cancelled = cancelled
        job.gap_position = gap_position
        job.logits_processor = logits_processor
        return decode(job)

    def assisted(
        self,
        prompt: Prompt,
        settings: GenerationSettings,
        config: AssistantConfig,
        *,
        exact: bool,
        width: int | None,
        cancelled: Callable[[], bool] = lambda: False,
        make_proposer: Callable[[], Proposer] | None = None,
        logits_processor: Sequence[object] | None = None,
    ) -> Iterator[Event]:
        """Events of assisted decoding; `make_proposer` replaces the assistant (for tests)."""
        job = self._job(prompt, settings, width, config.method, exact, config)
        job.cancelled = cancelled
        job.logits_processor = logits_processor
        drafts = self.can_draft(config.method)  # before the notices, which say what it found
        job.notices = (*self.notices, *prompt.notices)
        if make_proposer is None and config.uses_assistant and self.assistant is None:
            raise InputError(f"The method {config.method} needs an assistant.", "Name one.")
        if make_proposer is None and not drafts:
            return decode(job)
        profile = None
        if settings.max_new_tokens:
            profile = self.run_profile(prompt, width, config, cancelled)
        drafter = self.drafter(config) if make_proposer is None else None
        helper = drafter.model if drafter else self.assistant
        form = None
        if self.assistant and drafter and width and prompt.compiled and prompt.compiled[1]:
            helper = self.assistant
            form = compiled.form(self.assistant, prompt.compiled[1], compiling.DRAFT_WIDTHS)
        if drafter is not None:
            job.notices = (*job.notices, *drafter.notices)
        most = self.width(config) - 1
        pacer = Pacer(
            config,
            max_candidates=min(job.shapes.max_candidates, most if width is None else width - 1),
            profile=profile,
            same_shape=width is not None,
            blind=bool(drafter and helper and helper.input_device.type != "cpu"),
            prompt_tokens=len(prompt.assistant_ids or ()),
            new_tokens=settings.max_new_tokens,
        )
        if make_proposer is None:
            make_proposer = maker(
                config,
                job,
                assistant=helper,
                form=form,
                assistant_ids=prompt.assistant_ids,
                same_tokenizer=self.path == "ids",
                cost=candidate_cost(
                    padded=width is not None,
                    plain_step_s=None if profile is None else profile.plain_step_s,
                    verify_s=None if profile is None else profile.verify_s,
                ),
                plain_step=pacer.plain_step,
                draft_step_s=None if profile is None else profile.draft_step_s,
            )
        return decode(job, make_proposer, pacer)

    def _job(
        self,
        prompt: Prompt,
        settings: GenerationSettings,
        width: int | None,
        engine: str,
        exact: bool,
        config: AssistantConfig,
    ) -> Job:
        probes.can_roll_back(self.target)  # which cache it needs
        count = len(prompt.target_ids)
        room = self.target.context_length - count
        new = min(settings.max_new_tokens, room)
        most = (width or self.width(config)) - 1
        if width is None and config.width is None and config.uses_lookup:
            most = max(most, lookup.MAX_CANDIDATES)  # as many as pay; nothing has to be padded
        path = "ids" if engine == "lookup" else self.path
        # One length for every run over this prompt: rows must not see it change.
        length = count + (new + width if width else min(new, _FIRST_ROOM) + 16)
        open_model = None
        if prompt.compiled and width:
            length = prompt.compiled[0]
            open_model = compiled.opener(self.target, length, width)
        return Job(
            target=self.target,
            prompt_ids=prompt.target_ids,
            settings=settings,
            shapes=Shapes(
                width=width,
                cache_length=length,
                max_candidates=most,
            ),
            engine=engine,
            exact=exact,
            target_lookbehind=config.target_lookbehind,
            num_prompt_tokens_assistant=(
                None
                if prompt.assistant_ids is None or not config.uses_assistant
                else len(prompt.assistant_ids)
            ),
            path=None if engine.startswith("baseline") else path,
            notices=prompt.notices,
            open_model=open_model,
        )
