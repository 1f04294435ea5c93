"""Logits processors run per position on the committed prefix, as in plain decoding."""

from __future__ import annotations

import pytest
import torch

from tests.fixtures.models import tiny
from tests.fixtures.proposers import catalogue
from tests.fixtures.runs import SAMPLED, assisted, plain, prompt_ids, scripted, settings_of


@pytest.mark.parametrize("mode", [{}, SAMPLED])
def test_a_logits_processor_is_called_once_per_emitted_position(mode: dict) -> None:
    """Stateful processors behave as in plain decoding: in order, on committed prefixes."""

    class Counting:
        def __init__(self) -> None:
            self.seen: list[tuple[int, ...]] = []

        def __call__(self, input_ids, scores):
            self.seen.append(tuple(input_ids[0].tolist()))
            scores[:, len(self.seen) % 50] += 3.0  # depends on how often it was called
            return scores

    target, ids, settings = tiny(), prompt_ids(), settings_of(25, **mode)
    alone = Counting()
    expected = plain(target, ids, settings, logits_processor=[alone])
    assert [len(seen) for seen in alone.seen] == list(range(len(ids), len(ids) + 25))
    for name, proposer in catalogue(target, expected.ids).items():
        helped = Counting()
        run = scripted(target, ids, settings, proposer, logits_processor=[helped])
        assert run.ids == expected.ids, name
        assert helped.seen == alone.seen, name


@pytest.mark.parametrize(
    "changes",
    [
        {"repetition_penalty": 1.3},
        {"repetition_penalty": 0.8},
        {"no_repeat_ngram_size": 3},
        {"no_repeat_ngram_size": 1},
        {"repetition_penalty": 1.2, "no_repeat_ngram_size": 2, **SAMPLED},
        {"temperature": 0.7, "top_k": 2, "top_p": 0.8, "seed": 3},
        {"temperature": 1.3, "min_p": 0.02, "seed": 3},
    ],
)
def test_processors_see_each_position_as_in_plain_decoding(changes: dict) -> None:
    target, settings = tiny(), settings_of(24, **changes)
    ids = [tiny().codec.encode(" la")[0]] * 6
    expected = plain(target, ids, settings)
    for name in ("perfect", "always_wrong", "right_then_wrong"):
        proposer = catalogue(target, expected.ids)[name]
        assert scripted(target, ids, settings, proposer).ids == expected.ids, name
    run = assisted(target, tiny("llama_style"), ids, settings)
    assert run.ids == expected.ids


@pytest.mark.parametrize(
    "changes",
    [{"repetition_penalty": 1.3}, {"no_repeat_ngram_size": 1}, {"repetition_penalty": 0.7}],
)
def test_greedy_processors_give_what_transformers_gives(changes: dict) -> None:
    target, ids = tiny(), prompt_ids()
    tensor = torch.tensor([ids])
    expected = target.model.generate(
        tensor,
        attention_mask=torch.ones_like(tensor),
        max_new_tokens=40,
        do_sample=False,
        **changes,
    )[0, len(ids) :]
    plain_run = plain(target, ids, settings_of(40, **changes))
    assert list(plain_run.ids) == expected.tolist()
    assert plain_run.ids != plain(target, ids, settings_of(40)).ids
