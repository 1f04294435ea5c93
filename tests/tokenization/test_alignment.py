"""Two rows of tokens on one axis."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fixtures.reference import codec_of
from tests.fixtures.strategies import any_bytes, cut_bytes, some_text
from tests.fixtures.tokenizers import CORE_KINDS, LOSSLESS_KINDS
from uag_core.tokenization.alignment import Alignment, align, from_ends, units


def cut(data: bytes, cuts: list[int]) -> list[bytes]:
    """`data` divided at `cuts`, taken modulo its length."""
    at = sorted({0, len(data), *(c % (len(data) + 1) for c in cuts)})
    return [data[a:b] for a, b in pairwise(at)]


cuts = st.lists(st.integers(0, 200), max_size=8)
rows = st.lists(st.one_of(st.none(), st.binary(max_size=4), cut_bytes), max_size=8)


def check(found: Alignment, num_upper: int, num_lower: int) -> None:
    """What holds for any two rows."""
    assert len(found.upper) == num_upper
    assert len(found.lower) == num_lower
    for row in (found.upper, found.lower):
        assert all(0 <= start < end <= found.length for start, end in row)
        assert all(left[1] <= right[0] for left, right in pairwise(row))
    overlapping = {
        (i, j)
        for i, (a, b) in enumerate(found.upper)
        for j, (c, d) in enumerate(found.lower)
        if max(a, c) < min(b, d)
    }
    assert set(found.links) == overlapping
    assert len(found.links) == len(overlapping)
    group_of: dict[tuple[str, int], int] = {}
    for number, group in enumerate(found.groups):
        assert group.upper or group.lower
        for name, members in (("upper", group.upper), ("lower", group.lower)):
            for index in members:
                assert (name, index) not in group_of
                group_of[name, index] = number
    assert len(group_of) == num_upper + num_lower
    for i, j in found.links:
        assert group_of["upper", i] == group_of["lower", j]
    assert len(found.groups) == num_upper + num_lower - _joins(found, num_upper)


def _joins(found: Alignment, num_upper: int) -> int:
    """How many links are needed to hold the groups together: a count by union-find."""
    parent: dict[int, int] = {}

    def root(item: int) -> int:
        while parent.setdefault(item, item) != item:
            item = parent[item]
        return item

    joins = 0
    for i, j in found.links:
        a, b = root(i), root(num_upper + j)
        joins += a != b
        parent[a] = b
    return joins


@given(upper=rows, lower=rows)
def test_any_two_rows_get_an_axis(upper, lower) -> None:
    check(align(upper, lower), len(upper), len(lower))


@given(text=some_text, first=cuts, second=cuts)
def test_the_same_bytes_lie_at_the_same_places(text, first, second) -> None:
    data = text.encode()
    upper, lower = cut(data, first), cut(data, second)
    found = align(upper, lower)
    check(found, len(upper), len(lower))
    assert found.length == len(data)
    for row, spans in ((upper, found.upper), (lower, found.lower)):
        assert [data[int(a) : int(b)] for a, b in spans] == row
    ends = [
        {sum(len(piece) for piece in row[:count]) for count in range(len(row) + 1)}
        for row in (upper, lower)
    ]
    assert set(found.shared) == ends[0] & ends[1]
    for group in found.groups:
        assert b"".join(upper[i] for i in group.upper) == b"".join(lower[j] for j in group.lower)


@given(text=some_text, first=cuts, second=cuts, length=st.integers(0, 200))
def test_a_row_that_ends_earlier_keeps_its_places(text, first, second, length) -> None:
    chars = units(text.encode())
    kept = b"".join(chars[: length % (len(chars) + 1)])
    upper, lower = cut(text.encode(), first), cut(kept, second) if kept else []
    found = align(upper, lower)
    check(found, len(upper), len(lower))
    assert [kept[int(a) : int(b)] for a, b in found.lower] == lower


@given(data=any_bytes)
def test_units_are_characters_or_single_bytes(data) -> None:
    parts = units(data)
    assert b"".join(parts) == data
    for part in parts:
        assert len(part) == 1 or len(part.decode()) == 1


def test_many_to_many_hang_together() -> None:
    found = align([b"ab", b"cd", b"ef"], [b"a", b"bcd", b"ef"])
    assert found.links == ((0, 0), (0, 1), (1, 1), (2, 2))
    assert [(g.upper, g.lower) for g in found.groups] == [((0, 1), (0, 1)), ((2,), (2,))]
    assert found.shared == (0, 4, 6)


def test_a_control_token_has_a_place_of_its_own() -> None:
    found = align([b"Hi"], [b"Hi", None])
    assert found.lower == ((0, 2), (2, 3))
    assert [(g.upper, g.lower) for g in found.groups] == [((0,), (0,)), ((), (1,))]


def test_characters_that_a_normaliser_changed_lie_over_each_other() -> None:
    found = align([b"a ", "ﬁne".encode(), b" x"], [b"a", b" fi", b"ne", b" x"])
    check(found, 3, 4)
    assert [(g.upper, g.lower) for g in found.groups] == [
        ((0, 1), (0, 1, 2)),
        ((2,), (3,)),
    ]


def test_bytes_of_an_unfinished_character_are_repeated_by_the_draft_alone() -> None:
    euro = "€".encode()
    found = align([euro, b" x"], [euro[1:], b" x"], pending=euro[:1])
    assert found.upper == ((0, 3), (3, 5))
    assert found.lower == ((1, 3), (3, 5))


def test_rows_that_have_nothing_in_common_are_still_laid_out() -> None:
    check(align([b"x" * 5_000], [b"y" * 3_000, b"z"]), 1, 2)


@pytest.mark.parametrize("target", CORE_KINDS)
@pytest.mark.parametrize("assistant", CORE_KINDS)
@given(text=some_text)
def test_two_tokenizations_of_one_text(target: str, assistant: str, text: str) -> None:
    ends = [codec_of(kind).encode_with_ends(text)[1] for kind in (target, assistant)]
    found = from_ends(*ends)
    check(found, len(ends[0]), len(ends[1]))
    assert found.length <= len(text.encode())
    if all(kind in LOSSLESS_KINDS for kind in (target, assistant)) and "▁" not in text:
        assert found.length == len(text.encode())
        assert set(found.shared) == ({0, *ends[0]} & {0, *ends[1]} if ends[0] else set())


def test_tokens_that_stand_for_one_stretch_together_share_it() -> None:
    found = from_ends([2, 2, 2, 5], [2, 5])  # "½ ab" as 1, ⁄, 2, " ab" against "½", " ab"
    assert found.upper[2] == (pytest.approx(4 / 3), 2)
    assert found.shared == (0, 2, 5)
    assert found.links == ((0, 0), (1, 0), (2, 0), (3, 1))
