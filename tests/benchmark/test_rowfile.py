"""Rows on disk: taken up again, refused when they belong elsewhere, whole after a crash."""

from __future__ import annotations

import pytest

from tests.benchmark.rows import row
from uag_core.benchmark.rowfile import RowFile
from uag_core.errors import InputError

HEADER = {"pair": {"target": "t"}, "settings": {"repeats": 2}}


def test_rows_come_back(tmp_path) -> None:
    file = RowFile(tmp_path / "rows.jsonl")
    assert file.resume(HEADER) == []
    file.add([row("baseline"), row("uag")])
    again = RowFile(tmp_path / "rows.jsonl")
    assert again.resume(HEADER) == [row("baseline"), row("uag")]
    assert again.resumed == 2


def test_half_a_group_and_half_a_line_are_measured_again(tmp_path) -> None:
    path = tmp_path / "rows.jsonl"
    file = RowFile(path)
    file.resume(HEADER)
    file.add([row("baseline", "a"), row("uag", "a")])
    file.add([row("baseline", "b")])
    with path.open("a") as out:
        out.write('{"method": "uag", "prompt_id"')
    known = RowFile(path).resume(HEADER)
    assert {item["prompt_id"] for item in known} == {"a"}
    assert len(path.read_text().splitlines()) == 3


@pytest.mark.parametrize("content", [b'{"pair": {"target": "other"}}\n', b"a diary\n", b"\xff\xfe"])
def test_somebody_else_s_file_is_left_alone(tmp_path, content: bytes) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError):
        RowFile(path).resume(HEADER)
    assert path.read_bytes() == content


def test_places_that_cannot_be_written(tmp_path) -> None:
    with pytest.raises(InputError, match="is a folder"):
        RowFile(tmp_path)
    with pytest.raises(InputError, match="cannot be written"):
        RowFile(tmp_path / "missing" / "rows.jsonl").resume(HEADER)
