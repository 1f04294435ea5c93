"""transformers' own decoding beside ours: plain, universal assisted, prompt lookup.

`transformers` changes models that take part in assisted generation (its sampled path even
replaces the assistant's head), so each reference engine works on module objects of its own: the
target's share their weights, the assistant's are copied whole. Runs are recorded as events.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import torch
from transformers import GenerationConfig, StoppingCriteria
from transformers.generation.streamers import BaseStreamer
from transformers.utils import logging

from uag_core.config import GenerationSettings
from uag_core.decoding.caches import synchronize
from uag_core.decoding.job import pieces
from uag_core.errors import InputError
from uag_core.events import Event, Finished, FinishReason, Origin, Started, Verified
from uag_core.models.handle import LanguageModel
from uag_core.tokenization.utf8 import StreamingText

LOOKUP_TOKENS = 10  # the value in transformers' own documentation of prompt lookup


class _Recorder(BaseStreamer):
    """Notes when ids arrive; the first delivery is the prompt itself."""

    def __init__(self, start: float) -> None:
        self._start = start
        self._prompt_seen = False
        self.deliveries: list[tuple[float, list[int]]] = []

    def put(self, value: torch.Tensor) -> None:
        if not self._prompt_seen:
            self._prompt_seen = True
            return
        ids = value.reshape(-1).tolist()
        if ids:
            self.deliveries.append((perf_counter() - self._start, ids))

    def end(self) -> None:
        pass


class _Cancel(StoppingCriteria):
    def __init__(self, cancelled: Callable[[], bool]) -> None:
        self._cancelled = cancelled

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        return torch.full((input_ids.shape[0],), self._cancelled(), device=input_ids.device)


class ReferenceEngine:
    """One of `transformers`, `transformers_uag`, `transformers_lookup` for a pair of models.

    `num_assistant_tokens` None keeps transformers' defaults (20 tokens, constant, threshold 0.4).
    Raises `InputError` when universal assisted generation is asked for without an assistant.
    """

    def __init__(
        self,
        name: str,
        target: LanguageModel,
        assistant: LanguageModel | None,
        *,
        num_assistant_tokens: int | None = None,
        same_tokenizer: bool = False,
    ) -> None:
        self.name = name
        self.target = target
        self.assistant = assistant
        self._same = same_tokenizer
        self._model = _shell(target)
        self._assistant_model = None
        if name == "transformers_uag":
            if assistant is None:
                raise InputError("transformers_uag needs an assistant.")
            self._assistant_model = copy.deepcopy(assistant.model)
            if num_assistant_tokens is not None:
                config = self._assistant_model.generation_config
                config.num_assistant_tokens = num_assistant_tokens
                config.num_assistant_tokens_schedule = "constant"
                config.assistant_confidence_threshold = 0.0

    def _kwargs(self) -> dict[str, Any]:
        if self._assistant_model is not None and self.assistant is not None:
            kwargs: dict[str, Any] = {"assistant_model": self._assistant_model}
            if not self._same:
                kwargs["tokenizer"] = self.target.tokenizer
                kwargs["assistant_tokenizer"] = self.assistant.tokenizer
            return kwargs
        if self.name == "transformers_lookup":
            return {"prompt_lookup_num_tokens": LOOKUP_TOKENS}
        return {}

    def run(
        self,
        prompt_ids: Sequence[int],
        settings: GenerationSettings,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Iterator[Event]:
        """The run's events, all of them after `generate` has returned."""
        target = self.target
        yield Started(
            engine=self.name,
            num_prompt_tokens_target=len(prompt_ids),
            num_prompt_tokens_assistant=None,
            max_new_tokens=settings.max_new_tokens,
            width=None,
            cache_length=None,
            exact=False,
            seed=settings.seed,
        )
        if settings.max_new_tokens == 0:
            yield _finished([], "", "length", 0.0, None)
            return
        ids = torch.tensor([list(prompt_ids)], device=target.input_device)
        kwargs = self._kwargs()
        if settings.stop:
            kwargs["tokenizer"] = target.tokenizer
        eos = target.eos_token_ids if settings.eos_token_ids is None else settings.eos_token_ids
        config = settings.to_generation_config()
        config.eos_token_id = list(eos) or None
        config.pad_token_id = eos[0] if eos else 0
        config.max_new_tokens = min(
            settings.max_new_tokens, target.context_length - len(prompt_ids)
        )
        if settings.seed is not None:
            torch.manual_seed(settings.seed)
        start = perf_counter()
        recorder = _Recorder(start)
        with warnings.catch_warnings(), _quiet(), torch.inference_mode():
            warnings.simplefilter("ignore")
            output = self._model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                generation_config=config,
                streamer=recorder,
                stopping_criteria=[_Cancel(cancelled)],
                **kwargs,
            )
        synchronize(target)
        wall = perf_counter() - start
        new_ids = [int(i) for i in output[0, len(prompt_ids) :].tolist()]
        yield from self._events(recorder, new_ids, prompt_ids)
        reason = self._reason(new_ids, config.max_new_tokens, settings, eos, cancelled())
        text = _text(target, new_ids, prompt_ids)
        first = recorder.deliveries[0][0] if recorder.deliveries else None
        yield _finished(new_ids, text, reason, wall, first)

    def _events(
        self, recorder: _Recorder, new_ids: list[int], prompt_ids: Sequence[int]
    ) -> Iterator[Verified]:
        codec = self.target.codec
        stream = StreamingText()
        position = 0
        history = list(prompt_ids[-16:])
        for number, (moment, delivered) in enumerate(recorder.deliveries):
            ids = new_ids[position : position + len(delivered)]
            position += len(ids)
            raws = codec.pieces(ids, history)
            shown = tuple(pieces(codec, ids, history))
            history.extend(ids)
            origin: Origin = "prefill" if number == 0 else "plain"
            yield Verified(
                round=number,
                tokens=shown,
                origins=(origin,) * len(ids),
                text=stream.feed(b"".join(raws)),
                num_draft_tokens=0,
                num_candidates=0,
                num_accepted=0,
                draft_s=0.0,
                reencode_s=0.0,
                verify_s=0.0,
                other_s=0.0,
                t=moment,
            )

    def _reason(
        self,
        ids: list[int],
        limit: int,
        settings: GenerationSettings,
        eos: Sequence[int],
        cancelled: bool,
    ) -> FinishReason:
        if ids and ids[-1] in eos:
            return "eos"
        if cancelled and len(ids) < limit:
            return "cancelled"
        if len(ids) >= limit:
            return "length" if limit == settings.max_new_tokens else "context"
        return "stop_string"


@contextmanager
def _quiet() -> Iterator[None]:
    """transformers warns about arguments that its own assisted path passes; not our readers."""
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


def _shell(lm: LanguageModel) -> Any:
    """A module tree of its own over the same weights, with a neutral generation config."""
    shared = {id(tensor): tensor for tensor in lm.model.parameters()}
    shared.update({id(tensor): tensor for tensor in lm.model.buffers()})
    model = copy.deepcopy(lm.model, shared)
    original = lm.model.generation_config
    model.generation_config = GenerationConfig(
        bos_token_id=original.bos_token_id,
        eos_token_id=original.eos_token_id,
        pad_token_id=original.pad_token_id,
    )
    return model


def _text(lm: LanguageModel, ids: list[int], prompt_ids: Sequence[int]) -> str:
    raw = b"".join(lm.codec.pieces(ids, list(prompt_ids[-16:])))
    return raw.decode("utf-8", "replace")


def _finished(
    ids: list[int], text: str, reason: FinishReason, wall: float, first: float | None
) -> Finished:
    return Finished(
        finish_reason=reason,
        token_ids=tuple(ids),
        text=text,
        num_target_forwards=0,
        prefill_s=first or 0.0,
        draft_s=0.0,
        reencode_s=0.0,
        verify_s=0.0,
        other_s=wall - (first or 0.0),
        wall_s=wall,
        ttft_s=first,
        t=wall,
    )
