"""Means and intervals: what they are on known numbers, and when there is none."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uag_core.benchmark.statistics import geometric_mean, interval, middle, spread

ratios = st.lists(st.floats(0.05, 20), min_size=2, max_size=12)


def test_a_doubling_and_a_halving_cancel() -> None:
    assert geometric_mean([2.0, 0.5]) == pytest.approx(1.0)
    assert geometric_mean([]) is None
    assert geometric_mean([None, 0.0, math.nan, math.inf]) is None


def test_the_median_leaves_out_what_was_not_measured() -> None:
    assert middle([None, 3.0, 1.0, 2.0]) == 2.0
    assert middle([None]) is None


@given(ratios)
def test_the_interval_holds_the_mean_and_lies_within_the_values(values: list[float]) -> None:
    low, high = interval(values, resamples=200)
    assert low is not None
    assert high is not None
    tolerance = 1e-9
    assert min(values) * (1 - tolerance) <= low <= high <= max(values) * (1 + tolerance)


@given(ratios)
def test_the_same_numbers_give_the_same_interval(values: list[float]) -> None:
    assert interval(values, resamples=50) == interval(values, resamples=50)


def test_one_prompt_has_no_interval_and_many_have_a_narrower_one() -> None:
    assert spread([1.5]) == {"geomean": pytest.approx(1.5), "low": None, "high": None}
    few, many = spread([1.0, 2.0] * 3), spread([1.0, 2.0] * 60)
    assert many["high"] - many["low"] < few["high"] - few["low"]
    assert few["low"] <= few["geomean"] <= few["high"]
