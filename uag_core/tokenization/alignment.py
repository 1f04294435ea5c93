"""Two rows of tokens over one axis: which tokens of two vocabularies stand for the same bytes.

The axis counts bytes of the text that both rows spell. Where the rows differ (a normaliser changed
characters, one row ends earlier), the place is as wide as the longer of the two. A token without
text (a control token, an empty piece) takes one place of its own. Knows no tokenizer and no model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby, pairwise

Span = tuple[float, float]  # first place, place after the last

# Beyond this many characters that differ, rows are laid over each other without looking closer.
_MOST_COMPARED = 2_000


@dataclass(frozen=True, slots=True)
class Group:
    """Tokens of both rows that cover the same places; one side may be empty."""

    upper: tuple[int, ...]
    lower: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Alignment:
    """The two rows on their axis.

    `upper[i]`, `lower[j]` are spans of places, never empty, in order and without overlap inside a
    row. `links` are the pairs (i, j) whose spans overlap. `groups` divide all tokens into those
    that hang together through links. `shared` are the places where both rows have a boundary.
    """

    length: int
    upper: tuple[Span, ...]
    lower: tuple[Span, ...]
    links: tuple[tuple[int, int], ...]
    groups: tuple[Group, ...]
    shared: tuple[float, ...]


def units(data: bytes) -> list[bytes]:
    """The characters of `data` as bytes; bytes that are no character stand alone."""
    text = data.decode("utf-8", "surrogateescape")
    return [char.encode("utf-8", "surrogateescape") for char in text]


def align(
    upper: Sequence[bytes | None], lower: Sequence[bytes | None], *, pending: bytes = b""
) -> Alignment:
    """Put two rows of tokens on one axis.

    Each token is given by the bytes of text that it adds; None or no bytes: it adds no text.
    `pending` are bytes that the upper row may repeat in front of the text that both spell (the
    beginning of a character which is committed already).
    """
    first, second = _Row(upper, "upper", pending), _Row(lower, "lower")
    length = _place(first, second)
    above, below = first.spans(), second.spans()
    links = tuple(_overlaps(above, below))
    return Alignment(
        length=length,
        upper=above,
        lower=below,
        links=links,
        groups=_groups(len(above), len(below), links),
        shared=tuple(sorted(_boundaries(above) & _boundaries(below))),
    )


def from_ends(upper: Sequence[int], lower: Sequence[int]) -> Alignment:
    """The same for two tokenizations of one text, given by the byte offset where each token ends.

    The axis is the text. Tokens that stand for one stretch of it together (they end at the same
    offset) share it evenly, in fractions of a place; no such inner boundary counts as shared.
    """
    above, below = _spread(upper), _spread(lower)
    links = tuple(_overlaps(above, below))
    common = _boundaries(above) & _boundaries(below)
    return Alignment(
        length=max([0, *upper, *lower]),
        upper=above,
        lower=below,
        links=links,
        groups=_groups(len(above), len(below), links),
        shared=tuple(sorted(place for place in common if place in {0, *upper})),
    )


def _spread(ends: Sequence[int]) -> tuple[Span, ...]:
    spans: list[Span] = []
    start = 0
    for end, same in groupby(ends):
        count = len(list(same))
        width = end - start
        cuts = [start + width * i / count for i in range(count)] if count > 1 else [start]
        spans.extend(pairwise([*cuts, end]))
        start = end
    return tuple(spans)


class _Row:
    """One row while it is being placed: symbols to compare, and a place for every offset."""

    def __init__(self, tokens: Sequence[bytes | None], name: str, pending: bytes = b"") -> None:
        self.symbols: list[object] = []
        self.sizes: list[int] = []  # of each symbol, in places
        self._offsets: list[tuple[int, int]] = []
        text = b""
        offset = 0
        for index, data in enumerate(tokens):
            if data:
                text += data
                size = len(data)
            else:
                self._add_text(text, pending)
                text, pending, size = b"", b"", 1
                self.symbols.append((name, index))  # equal to nothing in the other row
                self.sizes.append(1)
            self._offsets.append((offset, offset + size))
            offset += size
        self._add_text(text, pending)
        self.starts = [0] * (offset + 1)
        self.ends = [0] * (offset + 1)

    def _add_text(self, text: bytes, pending: bytes) -> None:
        known = len(pending) if pending and text.startswith(pending) else 0
        chars = [bytes([byte]) for byte in text[:known]] + units(text[known:])
        self.symbols.extend(chars)
        self.sizes.extend(len(char) for char in chars)

    def put(self, offset: int, size: int, place: int, width: int) -> None:
        """`size` offsets from `offset` on are spread over `width` places from `place` on."""
        for step in range(size + 1):
            where = place + step * width // size
            if step < size:
                self.starts[offset + step] = where
            if step > 0:
                self.ends[offset + step] = where

    def spans(self) -> tuple[Span, ...]:
        return tuple((self.starts[start], self.ends[end]) for start, end in self._offsets)


def _place(upper: _Row, lower: _Row) -> int:
    """Gives every offset of both rows its place; returns how many places there are."""
    place = above = below = 0
    for i1, i2, j1, j2, equal in _differences(upper.symbols, lower.symbols):
        size_above, size_below = sum(upper.sizes[i1:i2]), sum(lower.sizes[j1:j2])
        width = size_above if equal else max(size_above, size_below)
        if size_above:
            upper.put(above, size_above, place, width)
        if size_below:
            lower.put(below, size_below, place, width)
        place, above, below = place + width, above + size_above, below + size_below
    return place


def _differences(
    upper: list[object], lower: list[object]
) -> Iterator[tuple[int, int, int, int, bool]]:
    """Stretches (i1, i2, j1, j2, equal) that cover both lists in order."""
    same = 0
    for left, right in zip(upper, lower, strict=False):
        if left != right:
            break
        same += 1
    if same:
        yield 0, same, 0, same, True
    rest_above, rest_below = upper[same:], lower[same:]
    if not rest_above and not rest_below:
        return
    if not rest_above or not rest_below or max(len(upper), len(lower)) - same > _MOST_COMPARED:
        yield same, len(upper), same, len(lower), False
        return
    matcher = SequenceMatcher(None, rest_above, rest_below, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        yield same + i1, same + i2, same + j1, same + j2, tag == "equal"


def _overlaps(upper: Sequence[Span], lower: Sequence[Span]) -> Iterator[tuple[int, int]]:
    first = 0
    for i, (start, end) in enumerate(upper):
        while first < len(lower) and lower[first][1] <= start:
            first += 1
        j = first
        while j < len(lower) and lower[j][0] < end:
            yield i, j
            j += 1


def _boundaries(row: Sequence[Span]) -> set[float]:
    return {place for span in row for place in span}


def _groups(num_upper: int, num_lower: int, links: Sequence[tuple[int, int]]) -> tuple[Group, ...]:
    """Links are in order, so a group goes on while a link meets one of its tokens."""
    groups: list[Group] = []
    above = below = index = 0  # the next token of each row, the next link
    while index < len(links):
        first_above, first_below = links[index]
        groups.extend(Group((i,), ()) for i in range(above, first_above))
        groups.extend(Group((), (j,)) for j in range(below, first_below))
        above, below = first_above + 1, first_below + 1
        while index < len(links) and (links[index][0] < above or links[index][1] < below):
            above, below = max(above, links[index][0] + 1), max(below, links[index][1] + 1)
            index += 1
        groups.append(Group(tuple(range(first_above, above)), tuple(range(first_below, below))))
    groups.extend(Group((i,), ()) for i in range(above, num_upper))
    groups.extend(Group((), (j,)) for j in range(below, num_lower))
    return tuple(groups)
