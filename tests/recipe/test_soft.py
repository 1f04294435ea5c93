"""Learning from the target's distribution: the map between vocabularies, and the loss."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from uag_core.recipe.soft import SoftTargets
from uag_core.recipe.tokenizer import prune_target, train_bpe
from uag_core.recipe.train import encode, goals, soft_loss


def spelled(ids, others, done):
    """A record's "top": each id with 60 %, another one with 30 %."""
    last = [f"0:900 {others[0]}:50"] if done else []
    return [f"{i}:600 {o}:300" for i, o in zip(ids, others, strict=False)] + last


def record(row, target_tokenizer, others):
    ids = target_tokenizer(row["a"], add_special_tokens=False)["input_ids"]
    others = [others[k % len(others)] for k in range(len(ids) + 1)]
    return {**row, "ids": ids, "top": spelled(ids, others, row["done"])}


@pytest.fixture(scope="module", params=["prune", "bpe"])
def pair(request, rows, target_tokenizer):
    texts = [f"{r['u']}\n{r['a']}" for r in rows]
    made = (
        prune_target(target_tokenizer, texts, 300)
        if request.param == "prune"
        else train_bpe(texts, 340)
    )
    return made, SoftTargets(target_tokenizer, made, {target_tokenizer.eos_token_id})


@settings(deadline=None, max_examples=40)
@given(row=st.integers(0, 159), others=st.lists(st.integers(2, 400), min_size=1, max_size=9))
def test_every_position_has_a_distribution_with_what_was_said_in_it(
    pair, rows, target_tokenizer, row, others
):
    tokenizer, softener = pair
    given_row = record(rows[row], target_tokenizer, others)
    answer = tokenizer(given_row["a"], add_special_tokens=False)["input_ids"]
    weights = softener.weights(given_row, answer)
    goal = [*answer, tokenizer.eos_token_id] if given_row["done"] else answer
    assert len(weights) == len(goal)
    for pairs, wanted in zip(weights, goal, strict=True):
        assert sum(w for _, w in pairs) == pytest.approx(1.0)
        assert wanted in [i for i, _ in pairs]


def test_equal_vocabularies_keep_the_distribution(rows, target_tokenizer):
    softener = SoftTargets(target_tokenizer, target_tokenizer, {target_tokenizer.eos_token_id})
    row = record({**rows[0], "done": False}, target_tokenizer, [2])
    for pairs, own in zip(softener.weights(row, row["ids"]), row["ids"], strict=True):
        expected = {own: 2 / 3, 2: 1 / 3} if own != 2 else {2: 1.0}
        assert dict(pairs) == pytest.approx(expected)


def test_inside_a_target_token_only_what_agrees_so_far_counts(rows, target_tokenizer):
    letters = prune_target(target_tokenizer, [], 260)  # bytes alone: every token is taken apart
    softener = SoftTargets(target_tokenizer, letters, set())
    cat, sat = (
        target_tokenizer(w, add_special_tokens=False)["input_ids"] for w in (" cat", " sat")
    )
    assert len(cat) == len(sat) == 1
    row = {"done": False, "ids": cat, "top": [f"{cat[0]}:600 {sat[0]}:300"]}
    answer = letters(" cat", add_special_tokens=False)["input_ids"]
    weights = softener.weights(row, answer)
    assert weights[0] == [(answer[0], pytest.approx(1.0))]  # both begin with a space
    s = letters("s", add_special_tokens=False)["input_ids"][0]
    assert dict(weights[1]) == pytest.approx({answer[1]: 2 / 3, s: 1 / 3})
    assert weights[2] == [(answer[2], pytest.approx(1.0))]  # " sat" is out: it has no "c"


def test_the_end_of_the_targets_turn_is_the_assistants_end(rows, target_tokenizer):
    stop = target_tokenizer.eos_token_id
    softener = SoftTargets(target_tokenizer, target_tokenizer, {stop})
    row = {"done": True, "ids": [60], "top": ["60:900", f"{stop}:700 61:200"]}
    assert dict(softener.weights(row, [60])[1]) == pytest.approx({stop: 7 / 9, 61: 2 / 9})


def test_without_a_distribution_the_loss_is_the_cross_entropy_of_the_answer(rows, pair):
    documents = encode(rows[:4], pair[0], 64)
    ids, weights = goals(documents, torch.device("cpu"))
    logits = torch.randn(len(ids), len(pair[0]))
    assert torch.allclose(soft_loss(logits, ids, weights), F.cross_entropy(logits, ids[:, 0]))


def test_documents_bring_their_distribution_cut_to_their_length(rows, target_tokenizer, pair):
    tokenizer, softener = pair
    row = record(rows[1], target_tokenizer, [70])
    whole = encode([row], tokenizer, 64, softener)[0]
    assert whole.soft is not None
    assert len(whole.soft) == len(whole.ids) - whole.start
    cut = encode([row], tokenizer, whole.start + 8, softener)[0]
    assert cut.soft == whole.soft[:8]
