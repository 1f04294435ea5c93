"""Reading logits by their bits: the same choice as by their values."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.fixtures.models import tiny
from uag_core.decoding.caches import CachedModel
from uag_core.decoding.sampling import greedy, ordered, probabilities, probability

DTYPES = (torch.bfloat16, torch.float16, torch.float32)
VALUES = st.floats(-60000, 60000, width=16) | st.sampled_from([0.0, -0.0, 1.0, -1.0])


@given(rows=st.lists(st.lists(VALUES, min_size=7, max_size=7), min_size=1, max_size=4))
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_first_of_the_largest_is_chosen(rows: list[list[float]], dtype: torch.dtype) -> None:
    logits = torch.tensor(rows).to(dtype)
    assert greedy(logits) == logits.float().numpy().argmax(axis=-1).tolist()


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_without_a_positive_number_are_read_by_value(dtype: torch.dtype) -> None:
    logits = torch.tensor([[-3.0, -1.0, -2.0], [-5.0, -0.0, 0.0]], dtype=dtype)
    assert greedy(logits) == [1, 1]


def test_probabilities_are_those_of_a_softmax() -> None:
    logits = torch.randn(5, 40)
    indices = [3, 0, 39, 7, 7]
    expected = logits.softmax(dim=-1)[torch.arange(5), indices].numpy()
    assert np.allclose(probabilities(list(logits), indices), expected, rtol=1e-5)
    assert probability(logits[:1], 3) == pytest.approx(float(expected[0]), rel=1e-5)
    assert probabilities([], []) == []


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_probability_is_the_same_from_the_values_at_hand(dtype: torch.dtype) -> None:
    row = torch.randn(1, 40).to(dtype)
    assert probability(row, 5, ordered(row)) == probability(row, 5)


@pytest.mark.parametrize("static", [True, False])
def test_a_rolled_back_cache_gives_the_logits_of_a_fresh_one(static: bool) -> None:
    lm, ids = tiny(), [5, 9, 11, 4, 23, 8, 30, 2]
    with CachedModel(lm, 32, static=static) as model, CachedModel(lm, 32, static=static) as other:
        model.prefill(ids[:3])
        model.forward([40, 41, 42, 43])
        model.rollback(3)
        model.rollback(1)
        other.prefill(ids[:3])
        assert torch.equal(model.forward(ids[3:]), other.forward(ids[3:]))
        assert model.length == len(ids)


def test_ids_on_the_device_are_read_like_a_list() -> None:
    lm = tiny()
    with CachedModel(lm, 32) as model:
        model.prefill([5, 9, 11])
        listed = model.forward([7, 8]).clone()
        model.rollback(2)
        assert torch.equal(model.forward(torch.tensor([[7, 8]])), listed)
