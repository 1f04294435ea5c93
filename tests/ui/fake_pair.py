"""A scripted pair: yields the events and the document of a comparison without any model.

What happens is chosen by the target's name, so that one running app serves every test:
`fake/fast`, `fake/slower`, `fake/parts`, `fake/hostile`, `fake/long` (takes many seconds unless
cancelled), `fake/fails` (dies midway), `fake/stuck` (says nothing for a while), `fake/unknown`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.ui import fake_bench
from uag_core.config import AssistantConfig, GenerationSettings
from uag_core.errors import InputError, ModelNotFoundError
from uag_core.events import Event, Finished, Piece, Started, Verified

SENTENCE = "The keeper wound the clock and listened to it walk backwards through the night. "
HOSTILE = (
    "<script>window.pwned=1</script><img src=x onerror='window.pwned=1'> "
    "${window.pwned=1} `${window.pwned=1}` {{constructor}} </div></section><b>bold?</b> "
)


@dataclass(frozen=True, slots=True)
class CompareStep:
    engine: str
    repeat: int
    event: Event


@dataclass(frozen=True, slots=True)
class CompareDone:
    document: dict[str, Any]
    runs: dict[str, list[list[Event]]]
    profile: dict[str, Any] | None = None


def words(text: str, limit: int) -> list[str]:
    pieces = [f"{word} " for word in text.split(" ") if word]
    return (pieces * (limit // len(pieces) + 1))[:limit]


def run_summary(text: str, count: int, tpot_s: float | None, reason: str | None) -> dict[str, Any]:
    wall = None if tpot_s is None else 0.1 + count * tpot_s
    return {
        "text": text,
        "token_ids": [5] * count,
        "num_new_tokens": count,
        "finish_reason": reason,
        "ttft_s": None if tpot_s is None else 0.1,
        "tpot_s": tpot_s,
        "wall_s": wall,
        "tokens_per_second": None if tpot_s is None else 1 / tpot_s,
        "end_to_end_tokens_per_second": None if wall is None else count / wall,
    }


def document(
    *,
    text: str = SENTENCE,
    count: int = 128,
    decode_speedup: float | None = 1.72,
    identical: bool | None = True,
    divergence: dict[str, Any] | None = None,
    finish_reason: str | None = "length",
    target: str = "fake/fast",
    **changes: Any,
) -> dict[str, Any]:
    """A compare object with every key of the contract, numbers consistent with each other."""
    plain_tpot = 0.02
    ours = None if decode_speedup is None else plain_tpot / decode_speedup
    assisted = run_summary(text, count, ours, finish_reason)
    assisted |= {
        "num_draft_tokens": 190,
        "num_candidate_tokens": 160,
        "num_accepted_tokens": 84,
        "num_rounds": 44,
        "num_draft_rounds": 40,
        "num_target_forwards": 45,
        "tokens_per_round": 2.886,
        "mean_acceptance_length": 3.1,
        "acceptance_rate": 0.525,
        "acceptance_per_position": [0.9, 0.7, 0.5],
        "acceptance_histogram": [5, 10, 15, 10],
        "prefill_s": 0.08,
        "draft_s": 0.31,
        "reencode_s": 0.02,
        "verify_s": 0.98,
        "other_s": 0.06,
    }
    data = {
        "schema_version": 1,
        "target": {"id": target, "revision": "r1", "dtype": "bfloat16", "device": "cpu"},
        "assistant": {"id": "fake/draft", "revision": "r1", "dtype": "bfloat16", "device": "cpu"},
        "method": "uag",
        "path": "text",
        "exact": True,
        "seed": None,
        "settings": {"max_new_tokens": count, "temperature": None},
        "notices": [],
        "prompt": {"num_prompt_tokens_target": 20, "num_prompt_tokens_assistant": 24},
        "baseline": run_summary(text, count, 0.021, finish_reason),
        "baseline_unpadded": {"tpot_s": plain_tpot, "tokens_per_second": 1 / plain_tpot},
        "assisted": assisted,
        "references": [],
        "decode_speedup": decode_speedup,
        "decode_speedup_same_shape": decode_speedup and decode_speedup * 1.05,
        "wall_speedup": decode_speedup and decode_speedup * 0.97,
        "speedup_bound": decode_speedup and decode_speedup * 1.08,
        "predicted_speedup": None,
        "identical": identical,
        "first_divergence": divergence,
    }
    return {**data, **changes}


class FakePair:
    """Answers as `ModelPair` does, from a script."""

    active = 0  # how many streams are open now, over all pairs
    most_active = 0
    _lock = threading.Lock()

    def __init__(self, target: str, assistant: str | None, **options: Any) -> None:
        if target == "fake/unknown":
            raise ModelNotFoundError(f"There is no model named {target!r}.")
        if progress := options.get("progress"):
            progress("Loading the scripted pair")
        self.target = target

    def compare_stream(
        self,
        prompt: str,
        generation_config: GenerationSettings,
        assistant_config: AssistantConfig,
        *,
        cancel: threading.Event,
        repeats: int = 1,
        **options: Any,
    ) -> Iterator[CompareStep | CompareDone]:
        if len(prompt) > 20_000:
            raise InputError("The prompt has 9,000 tokens; the target's context holds 8,192.")
        with FakePair._lock:
            FakePair.active += 1
            FakePair.most_active = max(FakePair.most_active, FakePair.active)
        try:
            yield from self._stream(generation_config, assistant_config.method, cancel, repeats)
        finally:
            with FakePair._lock:
                FakePair.active -= 1

    def bench_stream(self, plan: Any, *, cancel: threading.Event, **_: Any) -> Iterator[Any]:
        with FakePair._lock:
            FakePair.active += 1
            FakePair.most_active = max(FakePair.most_active, FakePair.active)
        try:
            yield from fake_bench.stream(plan, self.target, cancel)
        finally:
            with FakePair._lock:
                FakePair.active -= 1

    def _stream(
        self, settings: GenerationSettings, method: str, cancel: threading.Event, repeats: int
    ) -> Iterator[CompareStep | CompareDone]:
        count = settings.max_new_tokens
        text = HOSTILE if self.target == "fake/hostile" else SENTENCE
        pieces = words(text, count)
        step_s = {"fake/long": 0.05, "fake/paced": 0.02}.get(self.target, 0.004)
        if self.target == "fake/stuck":
            cancel.wait(1.0)
        texts: dict[str, str] = {}
        runs: dict[str, list[list[Event]]] = {}
        for repeat in range(-1, repeats):
            for engine in ("baseline", "baseline_unpadded", method):
                shown = pieces[:4] if repeat < 0 else pieces
                events: list[Event] = []
                for step in self._engine(engine, repeat, shown, step_s, cancel):
                    events.append(step.event)
                    yield step
                texts[engine] = "".join(e.text for e in events if isinstance(e, Verified))
                if repeat >= 0 and isinstance(events[-1], Finished):
                    runs.setdefault(engine, []).append(events)
                if cancel.is_set():
                    yield CompareDone(self._cancelled(texts, method), runs)
                    return
        document = self._document(count, "".join(pieces))
        yield CompareDone({**document, "method": method}, runs)

    def _engine(
        self, engine: str, repeat: int, pieces: list[str], step_s: float, cancel: threading.Event
    ) -> Iterator[CompareStep]:
        yield CompareStep(engine, repeat, Started(engine, 20, 24, len(pieces), 8, 256, True, None))
        t = 0.1
        size = 1 if engine.startswith("baseline") else 3
        for index in range(0, len(pieces), size):
            if cancel.is_set():
                return
            if self.target == "fake/fails" and repeat == 0 and index >= 5:
                raise ValueError("secret internals /home/somebody/model")
            time.sleep(step_s)
            t += step_s
            chunk = pieces[index : index + size]
            tokens = tuple(Piece(5, piece.encode().hex()) for piece in chunk)
            origins = ("accepted",) * len(chunk)
            yield CompareStep(
                engine,
                repeat,
                Verified(index, tokens, origins, "".join(chunk), 3, 3, 2, 0, 0, step_s, 0, t),
            )
        text = "".join(pieces)
        yield CompareStep(
            engine,
            repeat,
            Finished("length", (5,) * len(pieces), text, 9, 0.1, 0, 0, 0, 0, t, 0.1, t),
        )

    def _cancelled(self, texts: dict[str, str], method: str) -> dict[str, Any]:
        data = document(
            target=self.target, decode_speedup=None, identical=None, finish_reason="cancelled"
        )
        data["baseline_unpadded"] = {"tpot_s": None, "tokens_per_second": None}
        for key, engine in (("baseline", "baseline"), ("assisted", method)):
            text = texts.get(engine, "")
            data[key] |= {"text": text, "num_new_tokens": len(text.split())}
            if engine not in texts:
                data[key] = dict.fromkeys(data[key])
            data[key]["finish_reason"] = "cancelled"
        return data

    def _document(self, count: int, text: str) -> dict[str, Any]:
        if self.target == "fake/slower":
            return document(target=self.target, text=text, count=count, decode_speedup=0.83)
        if self.target == "fake/parts":
            return document(
                target=self.target,
                text=text,
                count=count,
                exact=False,
                identical=False,
                divergence={"position": 56, "top2_gap": 0.0031},
                notices=["Decoded without padding: half precision may part at near ties."],
            )
        return document(target=self.target, text=text, count=count)
