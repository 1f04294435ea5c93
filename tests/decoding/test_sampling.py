"""Sampling: the target's processed distribution, whatever is proposed."""

from __future__ import annotations

import math

import pytest
import torch

from tests.fixtures.runs import settings_of
from uag_core.decoding.sampling import TokenChooser, build_processors, top2_gap

LOGITS = torch.log(torch.tensor([[0.5, 0.3, 0.15, 0.05]]))
DRAWS = 4000


def draws(candidates: list[int], **changes) -> list[int]:
    """The first token chosen behind `[0]`, over many seeds."""
    rows = LOGITS.expand(1 + len(candidates), -1)
    result = []
    for seed in range(DRAWS):
        settings = settings_of(4, **{"temperature": 1.0, **changes, "seed": seed})
        result.append(TokenChooser(settings).choose(rows, [0], candidates)[0])
    return result


def chi_square(observed: list[int], expected: list[float]) -> float:
    counts = [observed.count(i) for i in range(len(expected))]
    assert all(count == 0 for count, p in zip(counts, expected, strict=True) if p == 0)
    return sum(
        (count - p * len(observed)) ** 2 / (p * len(observed))
        for count, p in zip(counts, expected, strict=True)
        if p
    )


@pytest.mark.parametrize("candidates", [[], [0], [3], [2, 2]])
def test_tokens_follow_the_targets_distribution_whatever_is_proposed(candidates) -> None:
    observed = draws(candidates)
    assert chi_square(observed, [0.5, 0.3, 0.15, 0.05]) < 16.3  # p = 0.001, 3 degrees of freedom


def test_tokens_follow_the_processed_distribution() -> None:
    """top-k 2 at temperature 0.7: nothing else gets any mass."""
    weights = [0.5 ** (1 / 0.7), 0.3 ** (1 / 0.7)]
    expected = [w / sum(weights) for w in weights] + [0.0, 0.0]
    observed = draws([2], temperature=0.7, top_k=2)
    assert chi_square(observed, expected) < 10.9  # p = 0.001, 1 degree of freedom


def test_neighbouring_positions_and_seeds_are_unrelated() -> None:
    """The second token is as likely behind any first one."""
    rows = LOGITS.expand(2, -1)
    pairs = []
    for seed in range(DRAWS):
        chooser = TokenChooser(settings_of(4, temperature=1.0, seed=seed))
        first = chooser.choose(rows[:1], [0], [])[0]
        pairs.append((first, chooser.choose(rows[:1], [0, first], [])[0]))
    probabilities = [0.5, 0.3, 0.15, 0.05]
    statistic = 0.0
    for a in range(4):
        for b in range(4):
            mean = DRAWS * probabilities[a] * probabilities[b]
            statistic += (pairs.count((a, b)) - mean) ** 2 / mean
    assert statistic < 37.7  # p = 0.001, 15 degrees of freedom


def test_a_candidate_is_kept_exactly_when_plain_sampling_would_draw_it() -> None:
    rows = torch.randn((5, 8), generator=torch.Generator().manual_seed(1))
    for seed in range(50):
        settings = settings_of(4, temperature=1.2, seed=seed)
        plain: list[int] = []
        for index in range(5):
            chooser = TokenChooser(settings)
            plain += chooser.choose(rows[index : index + 1], [7, *plain], [])
        for kept in range(5):
            candidates = plain[:kept] + [(plain[kept] + 1) % 8] + [0] * (3 - kept)
            candidates = candidates[:4]
            chosen = TokenChooser(settings).choose(rows, [7], candidates)
            assert chosen == plain[: kept + 1]


def test_choosing_leaves_the_logits_as_they_are() -> None:
    for dtype in (torch.float32, torch.bfloat16):
        rows = torch.randn((3, 8)).to(dtype)
        before = rows.clone()
        settings = settings_of(4, temperature=0.9, top_k=3, repetition_penalty=1.4, seed=1)
        TokenChooser(settings).choose(rows, [1, 2], [3, 4])
        assert torch.equal(rows, before)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"repetition_penalty": 1.0},
        {"no_repeat_ngram_size": 0},
        {"top_k": 5, "top_p": 0.5, "min_p": 0.1},  # of no effect without sampling
        {"temperature": 0.0, "top_k": 5},
    ],
)
def test_settings_that_are_off_add_no_processor(changes: dict) -> None:
    assert len(build_processors(settings_of(4, **changes))) == 0


def test_processors_come_in_the_order_of_transformers() -> None:
    settings = settings_of(
        4,
        temperature=0.8,
        top_k=5,
        top_p=0.9,
        min_p=0.1,
        repetition_penalty=1.1,
        no_repeat_ngram_size=2,
        seed=1,
    )
    names = [type(processor).__name__ for processor in build_processors(settings)]
    assert [
        name.removesuffix("LogitsProcessor").removesuffix("LogitsWarper") for name in names
    ] == [
        "RepetitionPenalty",
        "NoRepeatNGram",
        "Temperature",
        "TopK",
        "TopP",
        "MinP",
    ]


def test_the_gap_is_between_the_two_largest_logits() -> None:
    assert top2_gap(torch.tensor([[0.5, 3.0, 2.25, -1.0]])) == pytest.approx(0.75)
    assert math.isfinite(top2_gap(torch.tensor([[0.0, -math.inf, 1.0]], dtype=torch.bfloat16)))
