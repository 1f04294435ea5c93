"""Stage ``answers``: the target answers each request greedily; what it says is what to learn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from transformers import PreTrainedTokenizerBase

from .chat import answer_prompt
from .generator import BatchedGenerator, Job


def write_answers(
    model: object,
    tokenizer: PreTrainedTokenizerBase,
    requests: Iterable[Mapping[str, Any]],
    *,
    max_new_tokens: int = 160,
    slots: int = 96,
    context: int = 640,
    stops: set[int],
    num_top: int = 0,
) -> Iterator[dict[str, object]]:
    """Yield records {"kind", "u", "a", "done"} in the order in which answers end.

    ``done`` is false when the answer was cut at ``max_new_tokens``. Requests that leave no room
    for the answer in ``context`` are left out, and so are answers that are not whole characters.
    With ``num_top`` a record also has "ids", the answer's target ids, and "top": for each of them
    (and for the end, when ``done``) the likeliest target ids, "id:permille" in falling order. That
    is the target's distribution, which training can learn from instead of the one id chosen.
    """
    rows = list(requests)
    generator = BatchedGenerator(
        model, slots=slots, context=context, stop_ids=stops, num_top=num_top
    )
    jobs = []
    for key, row in enumerate(rows):
        prompt = answer_prompt(tokenizer, row["u"])
        if len(prompt) + max_new_tokens <= generator.context:
            jobs.append(Job(key, prompt, max_new_tokens))
    # Attention runs over the longest row in flight: similar lengths go together.
    jobs.sort(key=lambda job: len(job.prompt))
    for output in generator.run(jobs):
        text = tokenizer.decode(output.ids, skip_special_tokens=True)
        text = text.rstrip("\ufffd")  # the limit may have cut inside a character
        if text and "\ufffd" not in text:
            soft: dict[str, object] = {}
            if num_top:
                soft = {"ids": output.ids, "top": [_spelled(top) for top in output.top]}
            yield {**rows[output.key], "a": text, "done": output.done, **soft}


def _spelled(top: list[tuple[int, float]]) -> str:
    """The likeliest ids as text; what is below one in a thousand is left out."""
    return " ".join(f"{i}:{round(p * 1000)}" for i, p in top if p >= 0.001)
