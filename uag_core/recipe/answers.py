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
) -> Iterator[dict[str, object]]:
    """Yield records {"kind", "u", "a", "done"} in the order in which answers end.

    ``done`` is false when the answer was cut at ``max_new_tokens``. Requests that leave no room
    for the answer in ``context`` are left out, and so are answers that are not whole characters.
    """
    rows = list(requests)
    generator = BatchedGenerator(model, slots=slots, context=context, stop_ids=stops)
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
            yield {**rows[output.key], "a": text, "done": output.done}
