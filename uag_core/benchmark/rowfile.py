"""Rows of a benchmark on disk: appended as they are measured, taken up again after a stop.

JSON Lines: a header that says what is measured, then one row a line. A line cut short by a crash
is dropped, with all rows of its prompt and repeat. Knows files, not engines.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from uag_core.errors import InputError
from uag_core.serialization import clean, dumps

Row = dict[str, Any]


class RowFile:
    """A file of rows. Raises `InputError` for one that belongs to another benchmark."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.resumed = 0  # rows that were there already
        if self.path.is_dir():
            raise InputError(f"{str(path)!r} is a folder.", "Name a file for the rows.")

    def resume(self, header: dict[str, Any]) -> list[Row]:
        """Start or take up the file for the benchmark of `header`; the whole groups in it."""
        wanted = clean(header)
        lines = self._lines()
        if lines and {k: lines[0].get(k) for k in wanted} != wanted:
            raise InputError(
                f"{str(self.path)!r} holds another benchmark (models, settings, prompts or machine "
                "differ).",
                "Name another file or remove that one.",
            )
        rows = _whole_groups(lines[1:])
        self.resumed = len(rows)
        self._rewrite([wanted, *rows])
        return rows

    def add(self, rows: Sequence[Row]) -> None:
        """Append the rows of one prompt and repeat; on disk when this returns."""
        text = "".join(_line(row) for row in rows)
        with self.path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())

    def _lines(self) -> list[dict[str, Any]]:
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise InputError(f"{str(self.path)!r} cannot be read: {error.strerror}.") from None
        found: list[dict[str, Any]] = []
        for line in data.split(b"\n"):
            try:
                item = json.loads(line)
            except ValueError:
                continue  # cut short
            if isinstance(item, dict):
                found.append(item)
        if data.strip() and not found:
            raise InputError(f"{str(self.path)!r} holds no benchmark.", "Name another file.")
        return found

    def _rewrite(self, items: Sequence[dict[str, Any]]) -> None:
        part = self.path.with_name(self.path.name + ".part")
        try:
            part.write_text("".join(map(_line, items)), encoding="utf-8", newline="\n")
            part.replace(self.path)
        except OSError as error:
            raise InputError(f"{str(self.path)!r} cannot be written: {error.strerror}.") from None


def _line(item: dict[str, Any]) -> str:
    return dumps(item, indent=None, ascii_only=True) + "\n"


def _whole_groups(rows: Sequence[Row]) -> list[Row]:
    """The rows without those of a prompt and repeat that lack an engine others have."""
    groups: dict[tuple[Any, Any], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.get("prompt_id"), row.get("repeat")), []).append(row)
    most = max(map(len, groups.values()), default=0)
    return [row for members in groups.values() if len(members) == most for row in members]
