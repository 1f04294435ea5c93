"""Prompt lookup and its combination with an assistant: what they propose, and that it is exact."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fixtures.models import tiny
from tests.fixtures.proposers import Scripted
from tests.fixtures.reciting import reciting
from tests.fixtures.runs import (
    FIXED,
    PROMPT,
    SAMPLED,
    Run,
    plain,
    prompt_ids,
    prompt_of,
    settings_of,
)
from uag_core.config import AssistantConfig
from uag_core.decoding.combined import CombinedProposer
from uag_core.decoding.engines import Engines
from uag_core.decoding.lookup import (
    MAX_CANDIDATES,
    LookupProposer,
    MatchCalibration,
    SuffixIndex,
)
from uag_core.errors import InputError
from uag_core.pair import ModelPair
from uag_core.tokenization import TargetLedger

METHODS = ("lookup", "uag+lookup")
MODES = {"greedy": {}, "sampled": SAMPLED}
few_ids = st.lists(st.integers(0, 3), max_size=60)


def longest_match(ids: Sequence[int], most: int) -> tuple[int, int]:
    """By brute force: the longest suffix that stood before, the most recent one of equals."""
    for length in range(min(most, len(ids) - 1), 0, -1):
        suffix = list(ids[len(ids) - length :])
        for end in range(len(ids) - 1, length - 1, -1):
            if list(ids[end - length : end]) == suffix:
                return length, end
    return 0, -1


def run(
    method: str,
    ids: Sequence[int] | str,
    limits,
    *,
    target=None,
    assistant=None,
    width: int | None = None,
    **config,
) -> Run:
    target = target or tiny()
    if assistant is None and method != "lookup":
        assistant = tiny("byte_level_b")
    engines = Engines(target, assistant)
    prompt = (
        prompt_of(target, ids)
        if method == "lookup" and not isinstance(ids, str)
        else engines.prompt(ids, raw=True, system=None)
    )
    asked = AssistantConfig(method=method, **config)
    return Run(tuple(engines.assisted(prompt, limits, asked, exact=True, width=width)))


# The index


@given(few_ids, st.integers(1, 8))
@settings(max_examples=150, deadline=None)
def test_the_longest_most_recent_match_is_found(ids: list[int], most: int) -> None:
    index = SuffixIndex(max_ngram=most)
    for count, token_id in enumerate(ids, 1):
        index.extend([token_id])
        assert index.match() == longest_match(ids[:count], most)


@given(few_ids, few_ids)
@settings(max_examples=50, deadline=None)
def test_in_one_go_or_one_by_one_is_the_same_index(first: list[int], second: list[int]) -> None:
    index = SuffixIndex(first)
    index.extend(second)
    assert index.match() == SuffixIndex([*first, *second]).match()


def test_a_match_shorter_than_asked_for_is_none() -> None:
    ids = [1, 2, 3, 9, 2, 3]
    assert SuffixIndex(ids, min_ngram=2).match() == (2, 3)
    assert SuffixIndex(ids, min_ngram=3).match() == (0, -1)
    assert SuffixIndex(ids, max_ngram=1).match() == (1, 3)


def test_a_stretch_at_the_end_is_continued_by_itself() -> None:
    index = SuffixIndex([7, 1, 2, 1, 2])
    _, start = index.match()
    assert index.continuation(start, 5) == [1, 2, 1, 2, 1]
    index = SuffixIndex([5, 5])
    assert index.continuation(index.match()[1], 3) == [5, 5, 5]


def test_memory_grows_evenly_and_old_occurrences_cost_nothing() -> None:
    """The same two ids ten thousand times: only the last occurrences are looked at."""
    index = SuffixIndex([1, 2, 3, 4] * 10_000)
    assert len(index._two) == 4
    assert len(index._before) == len(index) - 1
    assert index.match()[0] == index.max_ngram


def test_calibration_learns_each_length_for_itself() -> None:
    calibration = MatchCalibration()
    before = calibration(4)
    for _ in range(200):
        calibration.observe(1, False)
        calibration.observe(9, True)
    assert calibration(1) < 0.05
    assert calibration(9) > 0.95
    assert calibration(4) == before


# The proposer


def propose(proposer: LookupProposer, limit: int = 5) -> tuple[int, ...]:
    ledger = TargetLedger(tiny().codec, [1], 10)
    return proposer.propose(ledger, limit, 0, lambda _: True).candidate_ids


def test_it_proposes_what_followed_and_obeys_the_limit() -> None:
    proposer = LookupProposer(tiny().codec, [11, 12, 13, 14, 15, 16, 11, 12, 13])
    assert propose(proposer, 2) == (14, 15)
    assert propose(proposer, 0) == ()
    assert propose(LookupProposer(tiny().codec, [11, 12, 13])) == ()


def test_control_tokens_are_never_proposed() -> None:
    codec = tiny().codec
    control = min(codec.control_ids)
    assert propose(LookupProposer(codec, [11, 12, 13, control, 15, 11, 12])) == (13,)
    assert propose(LookupProposer(codec, [11, 12, control, 15, 11, 12])) == ()


def test_what_costs_more_than_it_brings_is_not_proposed() -> None:
    ids = [11, 12, 13, 14, 15, 16, 11, 12, 13]
    assert propose(LookupProposer(tiny().codec, ids, cost=lambda count: 0.9 * count)) == ()
    fixed = LookupProposer(tiny().codec, ids, cost=lambda count: 0.9 * count, num_tokens=3)
    assert propose(fixed) == (14, 15, 16)  # asked for, so obeyed


def test_it_learns_from_proposals_that_nobody_verified() -> None:
    proposer = LookupProposer(tiny().codec, [11, 12, 13] * 9, cost=lambda _: 9.0)
    assert propose(proposer) == ()
    before = proposer.calibration(16)
    proposer.commit([11], [b"x"])
    assert proposer.calibration(16) > before


def combined(accepted: float, ids: Sequence[int]) -> CombinedProposer:
    proposer = CombinedProposer(
        LookupProposer(tiny().codec, ids), Scripted(lambda _, limit: [3] * limit)
    )
    proposer._accepted.extend([int(accepted)] * 16)
    return proposer


@pytest.mark.parametrize(
    ("accepted", "ids", "source"),
    [
        (4, [11, 12, 13, 14, 11], "scripted"),  # a match of one id against a good assistant
        (0, [11, 12, 13, 14, 11], "lookup"),
        (1, [*range(20, 40), 9, *range(20, 34)], "lookup"),  # a match of fourteen
        (0, [11, 12, 13], "scripted"),  # no match at all
    ],
)
def test_the_source_that_promises_more_is_asked(accepted: int, ids, source: str) -> None:
    ledger = TargetLedger(tiny().codec, [1], 10)
    proposal = combined(accepted, ids).propose(ledger, 5, 5, lambda _: True)
    assert proposal.source == source


def test_while_the_assistant_pauses_only_the_lookup_proposes() -> None:
    ledger = TargetLedger(tiny().codec, [1], 10)
    nothing = combined(4, [11, 12, 13]).propose(ledger, 5, 0, lambda _: True)
    assert nothing.candidate_ids == ()
    found = combined(4, [11, 12, 13, 14, 11]).propose(ledger, 5, 0, lambda _: True)
    assert found.source == "lookup"


def test_a_short_answer_never_pays_for_reading_the_prompt() -> None:
    """Two steps to read it: the first rounds that would be the assistant's are let go."""
    proposer = CombinedProposer(
        LookupProposer(tiny().codec, range(20, 60)),
        Scripted(lambda _, limit: [3] * limit),
        plain_step=lambda: 0.020,
        draft_step_s=0.002,
        prompt_tokens=64 * 19,
    )
    ledger = TargetLedger(tiny().codec, [1], 10)
    asked = []
    for token_id in range(70, 80):
        proposal = proposer.propose(ledger, 5, 5, lambda _: True)
        asked.append(bool(proposal.candidate_ids))
        proposer.commit([token_id], [b"x"])
    assert asked[:3] == [False] * 3
    assert asked[3]
    fixed = CombinedProposer(
        LookupProposer(tiny().codec, range(20, 60)),
        Scripted(lambda _, limit: [3] * limit),
        plain_step=lambda: 0.020,
        draft_step_s=0.002,
        prompt_tokens=64 * 19,
        always=True,
    )
    assert fixed.propose(ledger, 5, 5, lambda _: True).candidate_ids


def test_an_assistant_that_does_not_pay_is_tried_now_and_then() -> None:
    proposer = combined(0, [11])
    proposer._plain_step = lambda: 0.020
    proposer._spent.extend([0.060] * 16)  # three plain steps a draft
    proposer._rounds, ledger = 16, TargetLedger(tiny().codec, [1], 10)
    asked = 0
    for token_id in range(100, 200):
        asked += bool(proposer.propose(ledger, 5, 5, lambda _: True).candidate_ids)
        proposer.commit([token_id], [b"x"])
    assert 2 <= asked <= 5


def test_an_assistant_that_is_always_wrong_loses_its_turn() -> None:
    proposer = combined(4, [11, 12, 13, 14, 15])
    ledger = TargetLedger(tiny().codec, [1], 10)
    before = proposer.assistant_gain()
    for token_id in range(60, 90):
        proposer.propose(ledger, 5, 5, lambda _: True)
        proposer.commit([token_id], [b"x"])
    assert proposer.assistant_gain() < 0.3 < before


# Whole runs


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("width", [None, 6])
def test_the_ids_stay_the_target_s_own(mode: str, method: str, width: int | None) -> None:
    limits = settings_of(60, **MODES[mode])
    ids = prompt_ids() * 2
    found = run(method, ids, limits, width=width)
    assert found.ids == plain(tiny(), ids, limits, width=width).ids


@given(st.lists(st.integers(0, 255), min_size=1, max_size=30), st.booleans(), st.integers(1, 40))
@settings(max_examples=40, deadline=None)
def test_any_prompt_with_its_own_repetition(ids: list[int], sampled: bool, count: int) -> None:
    limits = settings_of(count, **(SAMPLED if sampled else {}))
    expected = plain(tiny(), [*ids, *ids], limits)
    for method in METHODS:
        assert run(method, [*ids, *ids], limits).ids == expected.ids


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("architecture", ["llama", "gemma3", "gpt2"])
def test_bfloat16_is_exact_at_fixed_shapes(architecture: str, method: str, mode: str) -> None:
    target = tiny("byte_level_a", architecture, dtype=torch.bfloat16)
    assistant = tiny("byte_level_b", dtype=torch.bfloat16)
    exact, width, _ = Engines(target, assistant).exactness(True, FIXED)
    limits, ids = settings_of(40, **MODES[mode]), prompt_ids(count=8)
    expected = plain(target, ids, limits, width=width)
    found = run(method, ids, limits, target=target, assistant=assistant, width=width)
    assert exact
    assert found.ids == expected.ids


@pytest.mark.parametrize("method", METHODS)
def test_a_stop_inside_a_proposal_ends_the_run_there(method: str) -> None:
    ids = prompt_ids() * 2
    whole = plain(tiny(), ids, settings_of(60))
    for limits in (
        settings_of(60, eos_token_ids=(whole.ids[30],)),
        settings_of(60, stop=(whole.text[len(whole.text) // 2 :][:4],)),
        settings_of(31),
    ):
        expected, found = plain(tiny(), ids, limits), run(method, ids, limits)
        assert (found.ids, found.text, found.reason) == (
            expected.ids,
            expected.text,
            expected.reason,
        )
        assert sum(len(event.tokens) for event in found.rounds) == len(found.ids) - 1


SENTENCE = " the keeper wound the clock and listened to it walk backwards through the night."


def test_a_text_that_repeats_itself_is_accepted_in_long_stretches() -> None:
    target = reciting("byte_level_a", "Say:", SENTENCE * 3)
    read = Engines(target, None).prompt("Say:", raw=True, system=None).target_ids
    found = run("lookup", read, settings_of(130), target=target, width=8)
    assert found.started.path == "ids"
    assert found.accepted > 60
    assert {event.source for event in found.drafted} == {"lookup"}
    assert max(event.num_accepted for event in found.rounds) == 7
    assert all(event.num_draft_tokens == 0 for event in found.rounds)


def test_the_combination_says_who_proposed() -> None:
    """What is new comes from the assistant, what is repeated from the lookup."""
    target = reciting("byte_level_a", "Say:", SENTENCE * 3)
    assistant = reciting("byte_level_b", "Say:", SENTENCE * 3)
    config = {"num_assistant_tokens": 4}  # no fallback: the clock decides nothing
    found = run(
        "uag+lookup",
        "Say:",
        settings_of(130),
        target=target,
        assistant=assistant,
        width=5,
        **config,
    )
    sources = [event.source for event in found.drafted]
    assert sources[0] == "assistant"
    assert "lookup" in sources


def test_unpadded_verification_takes_as_many_as_pay() -> None:
    engines = Engines(tiny(), None)
    for width, most in ((None, MAX_CANDIDATES), (6, 5)):
        job = engines._job(
            prompt_of(tiny(), prompt_ids()),
            settings_of(9),
            width,
            "lookup",
            True,
            AssistantConfig(method="lookup"),
        )
        assert job.shapes.max_candidates == most


def test_a_fixed_number_of_candidates_is_obeyed() -> None:
    found = run("lookup", prompt_ids() * 2, settings_of(60), prompt_lookup_num_tokens=3)
    counts = [len(event.candidates) for event in found.drafted]
    assert max(counts) == 3
    assert Engines.width(AssistantConfig(method="lookup", prompt_lookup_num_tokens=9)) == 10
    assert Engines.width(AssistantConfig(prompt_lookup_num_tokens=9)) == Engines.width(
        AssistantConfig()
    )


@pytest.mark.parametrize("count", [3, 10])
def test_transformers_prompt_lookup_gives_the_same_ids(count: int) -> None:
    target, ids = tiny(), prompt_ids() * 2
    tensor = torch.tensor([ids])
    expected = target.model.generate(
        tensor,
        attention_mask=torch.ones_like(tensor),
        max_new_tokens=50,
        do_sample=False,
        prompt_lookup_num_tokens=count,
        max_matching_ngram_size=2,
    )[0, len(ids) :].tolist()
    found = run(
        "lookup", ids, settings_of(50), prompt_lookup_num_tokens=count, max_matching_ngram_size=2
    )
    assert list(found.ids) == expected


# Pairs


def test_lookup_needs_no_assistant_and_the_others_do() -> None:
    pair = ModelPair.from_models(tiny(), None)
    document = pair.compare(PROMPT, settings_of(20), AssistantConfig(method="lookup"), raw=True)
    assert document["identical"] is True
    assert document["assistant"] is None
    assert (document["method"], document["path"]) == ("lookup", "ids")
    assert document["prompt"]["num_prompt_tokens_assistant"] is None
    for method in ("uag", "uag+lookup"):
        with pytest.raises(InputError, match="needs an assistant"):
            pair.compare(PROMPT, settings_of(4), AssistantConfig(method=method), raw=True)


def test_an_assistant_that_is_there_plays_no_part_in_a_lookup() -> None:
    pair = ModelPair.from_models(tiny(), tiny("byte_level_b"))
    document = pair.compare(PROMPT, settings_of(20), AssistantConfig(method="lookup"), raw=True)
    assert document["assistant"] is None
    assert document["settings"]["assistant"] is None
    assert document["assisted"]["num_draft_tokens"] == 0


def test_a_recurrent_target_is_decoded_plainly() -> None:
    target = tiny("byte_level_a", "mamba")
    found = run("lookup", prompt_ids() * 2, settings_of(20), target=target)
    assert found.ids == plain(target, prompt_ids() * 2, settings_of(20)).ids
    assert not found.drafted
    assert found.notices
